// SPDX-License-Identifier: Apache-2.0
//
// CASES.md, part A, what goes over the channels: large messages in both directions at once, shapes
// that change with the microbatch, several channels between the same two ranks, ranks that come
// late, side inputs.
#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <numeric>
#include <thread>

#include "toy_chain.h"

namespace rrfp::cases {
namespace {

constexpr int64_t kMiB = 1 << 20;

void sleep_us(int32_t us) {
  std::this_thread::sleep_for(std::chrono::microseconds(us));
}

rrfp_tensor filled(const TaskContext& context, int64_t count, float value) {
  rrfp_tensor tensor = context.alloc(RRFP_F32, {count});
  std::fill_n(static_cast<float*>(tensor.data), count, value);
  return tensor;
}

bool all_are(std::span<const float> values, float expected) {
  return std::all_of(values.begin(), values.end(), [&](float v) { return v == expected; });
}

TEST(Messages, Case05LargeOnesInBothDirectionsAtOnce) {
  constexpr int32_t kTimes = 20;
  constexpr int64_t kCount = 8 * kMiB / 4;
  ToyPipeline toy(2);
  // The forward of microbatch i + 1 and the backward of i meet, so both ranks put at one moment.
  std::barrier meet(2);
  StageCode first;
  first.forward = [&](TaskContext& context) {
    const int32_t i = context.task.microbatch;
    rrfp_tensor tensor = filled(context, kCount, static_cast<float>(i));
    tensor.flags = RRFP_TENSOR_WANTS_GRADIENT;
    if (i > 0) meet.arrive_and_wait();
    context.put(0, tensor);
  };
  first.input_gradient = [&](TaskContext& context) {
    EXPECT_TRUE(all_are(context.floats(0), -static_cast<float>(context.task.microbatch)));
  };
  StageCode second;
  second.input_gradient = [&](TaskContext& context) {
    const int32_t i = context.task.microbatch;
    EXPECT_TRUE(all_are(context.floats(0), static_cast<float>(i)));
    const rrfp_tensor tensor = filled(context, kCount, -static_cast<float>(i));
    if (i < kTimes - 1) meet.arrive_and_wait();
    context.put(0, tensor);
  };
  toy.add_stage(first, 0, 0);
  toy.add_stage(second, RRFP_STAGE_LOSS, 1);
  toy.add_edge(0, 1);
  toy.options.cap_slots = 2;
  toy.open();
  const HintPtr hint = make_hint("1f1b");
  const StepResult result = toy.run({.hint = hint.get(), .microbatches = kTimes});
  ASSERT_TRUE(done(result));
  // Two activations, and one that is being made while an old one is on its way home.
  EXPECT_LE(result.ranks[0].report.tensor_bytes_peak, 3 * 8 * kMiB);
  EXPECT_LE(result.ranks[1].report.tensor_bytes_peak, 3 * 8 * kMiB);
  EXPECT_GE(result.ranks[0].report.tensor_bytes_peak, 2 * 8 * kMiB);
}

TEST(Messages, Case06LengthsThatVary) {
  constexpr std::array<int64_t, 8> kLengths = {7, 1, 512, 33, 2, 128, 5, 64};
  constexpr int64_t kHidden = 16;
  constexpr int32_t kStages = 4;
  ToyPipeline toy(kStages);
  const auto check_shape = [&](const TaskContext& context, int32_t edge, float expected) {
    const std::vector<rrfp_tensor> tensors = context.input(edge);
    ASSERT_EQ(tensors.size(), 1u);
    EXPECT_EQ(tensors[0].ndim, 2);
    EXPECT_EQ(tensors[0].shape[0], kLengths[static_cast<size_t>(context.task.microbatch)]);
    EXPECT_EQ(tensors[0].shape[1], kHidden);
    EXPECT_TRUE(all_are(context.floats(edge), expected));
  };
  const auto send = [&](const TaskContext& context, int32_t edge, float value, uint32_t flags) {
    const int64_t length = kLengths[static_cast<size_t>(context.task.microbatch)];
    rrfp_tensor tensor = context.alloc(RRFP_F32, {length, kHidden});
    std::fill_n(static_cast<float*>(tensor.data), length * kHidden, value);
    tensor.flags = flags;
    context.put(edge, tensor);
  };
  for (int32_t s = 0; s < kStages; ++s) {
    StageCode code;
    code.forward = [=](TaskContext& context) {
      const auto i = static_cast<float>(context.task.microbatch);
      if (s > 0) check_shape(context, s - 1, i);
      if (s < kStages - 1) send(context, s, i, RRFP_TENSOR_WANTS_GRADIENT);
    };
    code.input_gradient = [=](TaskContext& context) {
      const float g = 100 + static_cast<float>(context.task.microbatch);
      if (s < kStages - 1) check_shape(context, s, g);
      if (s > 0) send(context, s - 1, g, 0);
    };
    toy.add_stage(code, s == kStages - 1 ? RRFP_STAGE_LOSS : 0);
    if (s > 0) toy.add_edge(s - 1, s);
  }
  toy.place(RRFP_PLACEMENT_LINEAR);
  toy.open();
  for (const char* name : {"gpipe", "1f1b", "bf", "bfw", "zb-h1"}) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(std::string(name) + ", seed " + std::to_string(seed));
      const HintPtr hint = make_hint(name);
      toy.delays = {seed, 300};
      const StepResult result = toy.run({.hint = hint.get(), .microbatches = kLengths.size()});
      ASSERT_TRUE(done(result));
      // To each neighbour one word about the step and one message per tensor set: shapes travel
      // with the data, nobody asks for them.
      for (int32_t r = 0; r < kStages; ++r) {
        const int64_t neighbours = r == 0 || r == kStages - 1 ? 1 : 2;
        EXPECT_EQ(result.ranks[static_cast<size_t>(r)].report.messages_sent,
                  neighbours * (1 + static_cast<int64_t>(kLengths.size())));
      }
    }
  }
}

TEST(Messages, Case07PreviousAndNextPeerAreOneRank) {
  constexpr int32_t kStages = 4;
  const auto tag = [](int32_t edge, int32_t direction, int32_t microbatch) {
    return static_cast<float>(edge * 1000 + direction * 500 + microbatch);
  };
  const auto expect = [](const TaskContext& context, int32_t edge, float value) {
    if (edge < 0 || edge >= kStages - 1) return;
    EXPECT_EQ(context.scalar(edge), value) << "edge " << edge;
  };
  ToyPipeline toy(2);
  for (int32_t s = 0; s < kStages; ++s) {
    StageCode code;
    code.forward = [=](TaskContext& context) {
      const int32_t i = context.task.microbatch;
      expect(context, s - 1, tag(s - 1, 0, i));
      if (s < kStages - 1) context.put_scalar(s, tag(s, 0, i));
    };
    code.input_gradient = [=](TaskContext& context) {
      const int32_t i = context.task.microbatch;
      expect(context, s - 1, tag(s - 1, 0, i));
      expect(context, s, tag(s, 1, i));
      if (s > 0) context.put_scalar(s - 1, tag(s - 1, 1, i));
    };
    toy.add_stage(code, s == kStages - 1 ? RRFP_STAGE_LOSS : 0);
    if (s > 0) toy.add_edge(s - 1, s);
  }
  toy.place(RRFP_PLACEMENT_LOOP);
  toy.open();
  ChainPipeline t1(ToyChain::t1(), 2, RRFP_PLACEMENT_LOOP);
  t1.toy.open();
  for (const char* name : {"gpipe", "1f1b", "bf", "bfw", "zb-h1"}) {
    const HintPtr hint = make_hint(name);
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(std::string(name) + ", seed " + std::to_string(seed));
      toy.delays = t1.toy.delays = {seed, 300};
      ASSERT_TRUE(done(toy.run({.hint = hint.get(), .microbatches = 4})));
      ASSERT_TRUE(done(toy.run({.hint = hint.get(), .microbatches = 5})));
      ASSERT_TRUE(done(t1.run(hint)));
      ASSERT_TRUE(t1.chain.right());
    }
  }
}

TEST(Messages, Case08RanksThatComeInAnyOrder) {
  const HintPtr hint = make_hint("1f1b");
  ToyChain chain({2, 3, 5, 7, 1, 2, 3, 1}, std::vector<float>{1, 2, 3, 4, 5});
  for (uint64_t cycle = 0; cycle < 100; ++cycle) {
    SCOPED_TRACE("cycle " + std::to_string(cycle));
    ChainPipeline p(chain, 4, RRFP_PLACEMENT_LOOP);
    const auto late = static_cast<int32_t>(cycle % 4);
    const bool very_late = cycle % 25 == 3;
    Random random(cycle);
    const std::array<int32_t, 4> delay_us = {random.below(4000), random.below(4000),
                                             random.below(4000), random.below(4000)};
    p.toy.own_handles = true;
    p.toy.before_begin = [&](int32_t rank, const Step&) {
      sleep_us(delay_us[static_cast<size_t>(rank)] + (very_late && rank == late ? 300'000 : 0));
    };
    p.toy.open();
    ASSERT_TRUE(done(p.run(hint)));
    ASSERT_TRUE(p.chain.right());
  }
}

/// A chain of four with a label for each microbatch, given on rank 0 and used by the loss.
class Labelled {
 public:
  static constexpr int32_t kStages = 4;
  static constexpr int32_t kMicrobatches = 16;
  static constexpr int32_t kLabelEdge = 3;

  Labelled() : toy(kStages) {
    for (int32_t s = 0; s < kStages; ++s) {
      toy.add_stage({[this, s](TaskContext& c) { forward(s, c); },
                     [this, s](TaskContext& c) { input_gradient(s, c); },
                     [this, s](TaskContext& c) { weight_gradient(s, c); }},
                    s == kStages - 1 ? RRFP_STAGE_LOSS : 0);
    }
    for (int32_t s = 0; s + 1 < kStages; ++s) toy.add_edge(s, s + 1);
    EXPECT_EQ(toy.add_edge(0, kStages - 1, RRFP_EDGE_NO_GRADIENT), kLabelEdge);
    toy.place(RRFP_PLACEMENT_LINEAR);
    toy.options.cap_slots = 8;
    toy.open();
  }

  static float x(int32_t i) { return static_cast<float>(i + 1); }
  static float label(int32_t i) { return static_cast<float>(1 + i * 7 % 16); }

  ToyPipeline toy;
  std::array<float, kStages> dw = {};
  std::array<float, kMicrobatches> losses = {};
  std::vector<int32_t> loss_order;
  int32_t labels_waiting_max = 0;

 private:
  static constexpr std::array<float, kStages> kW = {2, 3, 5, 7};

  void forward(int32_t s, TaskContext& context) {
    const int32_t i = context.task.microbatch;
    const auto at = static_cast<size_t>(s);
    const float out = kW[at] * (s == 0 ? x(i) : context.scalar(s - 1));
    if (s == 0) {
      const float value = label(i);
      rrfp_tensor tensor = {};
      tensor.data = const_cast<float*>(&value);
      tensor.dtype = RRFP_F32;
      context.put(kLabelEdge, tensor);
      ++labels_waiting_;
    }
    if (s < kStages - 1) return context.put_scalar(s, out);
    // Rank 0 counts after it has put and before it is done, so this may be one too many.
    labels_waiting_max = std::max(labels_waiting_max, labels_waiting_.load());
    --labels_waiting_;
    losses[static_cast<size_t>(i)] = context.scalar(kLabelEdge) * out;
    loss_order.push_back(i);
  }
  float gradient(int32_t s, const TaskContext& context) const {
    return s == kStages - 1 ? context.scalar(kLabelEdge) : context.scalar(s);
  }
  void input_gradient(int32_t s, TaskContext& context) {
    if (s > 0) context.put_scalar(s - 1, kW[static_cast<size_t>(s)] * gradient(s, context));
  }
  void weight_gradient(int32_t s, TaskContext& context) {
    const float in = s == 0 ? x(context.task.microbatch) : context.scalar(s - 1);
    dw[static_cast<size_t>(s)] += in * gradient(s, context);
  }

  std::atomic<int32_t> labels_waiting_{0};
};

TEST(Messages, Case12LabelsFromTheFirstRankToTheLast) {
  constexpr float kProduct = 2 * 3 * 5 * 7;
  float sum = 0;
  for (int32_t i = 0; i < Labelled::kMicrobatches; ++i) sum += Labelled::label(i) * Labelled::x(i);
  bool out_of_order = false;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Labelled labelled;
    labelled.toy.delays = {seed, 300};
    const HintPtr hint = make_random_hint(Labelled::kStages, Labelled::kMicrobatches, seed);
    ASSERT_TRUE(
        done(labelled.toy.run({.hint = hint.get(), .microbatches = Labelled::kMicrobatches})));
    for (int32_t i = 0; i < Labelled::kMicrobatches; ++i) {
      EXPECT_EQ(labelled.losses[static_cast<size_t>(i)],
                Labelled::x(i) * kProduct * Labelled::label(i));
    }
    EXPECT_EQ(labelled.dw[0], sum * kProduct / 2);
    EXPECT_EQ(labelled.dw[3], sum * kProduct / 7);
    EXPECT_LE(labelled.labels_waiting_max, 8);
    out_of_order =
        out_of_order || !std::is_sorted(labelled.loss_order.begin(), labelled.loss_order.end());
  }
  EXPECT_TRUE(out_of_order) << "the seeds should make microbatches overtake each other";
}

}  // namespace
}  // namespace rrfp::cases
