// SPDX-License-Identifier: Apache-2.0
//
// CASES.md, part B: gradients, losses and norms that come out right, whatever order the backwards
// take and whoever holds the weights; and the uneven steps of part A (short batches, empty stages).
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <mutex>
#include <thread>

#include "toy_chain.h"

namespace rrfp::cases {
namespace {

constexpr std::array kHints = {"gpipe", "1f1b", "bf", "bfw", "zb-h1"};

using Samples = std::vector<std::vector<float>>;

TEST(Gradients, Case14ShortLastBatch) {
  // 10 samples, 2 a microbatch, 4 microbatches a step: the second step has one. Then 9 samples.
  const std::vector<Samples> steps = {{{1, 2}, {3, 4}, {5, 6}, {7, 8}},
                                      {{9, 10}},
                                      {{1, 2}, {3, 4}, {5, 6}, {7, 8}},
                                      {{9}},
                                      {{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9}}};
  const std::vector<float> mean_losses = {945, 1995, 945, 1890, 1050};
  for (const char* name : kHints) {
    SCOPED_TRACE(name);
    const HintPtr hint = make_hint(name);
    ChainPipeline p(ToyChain({2, 3, 5, 7}, steps[0]));
    p.toy.delays = {5, 300};
    p.toy.open();
    for (size_t k = 0; k < steps.size(); ++k) {
      p.chain.feed(steps[k]);
      ASSERT_TRUE(done(p.run(hint)));
      ASSERT_TRUE(p.chain.right());
      size_t samples = 0;
      for (const auto& microbatch : steps[k]) samples += microbatch.size();
      EXPECT_EQ(p.chain.loss_sum() / static_cast<float>(samples), mean_losses[k]);
    }
  }
}

TEST(Gradients, Case15EmptyStage) {
  for (const char* name : kHints) {
    SCOPED_TRACE(name);
    ToyChain chain({2, 3, 1, 7}, std::vector<float>{1});
    chain.flags[2] = RRFP_STAGE_FROZEN;
    ChainPipeline p(chain);
    p.toy.open();
    const StepResult result = p.run(make_hint(name));
    ASSERT_TRUE(done(result));
    ASSERT_TRUE(p.chain.right());
    EXPECT_EQ(p.chain.losses, std::vector<float>{42});
    EXPECT_EQ(p.chain.dw, (std::vector<float>{21, 14, 0, 6}));
    EXPECT_EQ(result.order(2), "2F0 2I0") << "no weight gradient where there are no weights";
  }
}

TEST(Gradients, Case17AccumulationOverTwoRounds) {
  ToyChain chain({1, 1, 1, 1}, std::vector<float>{1, 1, 1, 1});
  ChainPipeline p(chain);
  p.toy.open();
  const HintPtr hint = make_hint("1f1b");
  // Sum.
  ASSERT_TRUE(done(p.toy.run(p.step(hint))));
  ASSERT_TRUE(done(p.toy.run(p.step(hint))));
  EXPECT_EQ(p.chain.dw, (std::vector<float>(4, 8)));
  // Mean over the eight microbatches of both rounds: nobody else divides.
  p.chain.clear();
  p.chain.seed = 0.125f;
  ASSERT_TRUE(done(p.toy.run(p.step(hint))));
  ASSERT_TRUE(done(p.toy.run(p.step(hint))));
  EXPECT_EQ(p.chain.dw, (std::vector<float>(4, 1)));
  EXPECT_TRUE(p.chain.right(2));
}

TEST(Gradients, Case21BackwardsInReverseOrder) {
  constexpr std::array<float, 2> kX = {1, 2};
  constexpr std::array<float, 2> kC = {10, 20};
  constexpr float kW0 = 2;
  constexpr float kW1 = 3;
  for (rrfp_pipeline_flags flags : {rrfp_pipeline_flags{0}, RRFP_PIPELINE_NONDETERMINISTIC}) {
    SCOPED_TRACE("flags " + std::to_string(flags));
    std::array<float, 2> arrived = {};
    std::array<float, 2> dw = {};
    std::atomic<int> sent{0};
    const auto at = [](const TaskContext& c) { return static_cast<size_t>(c.task.microbatch); };
    ToyPipeline toy(2);
    toy.add_stage({[&](TaskContext& c) { c.put_scalar(0, kW0 * kX[at(c)]); },
                   [&](TaskContext& c) { arrived[at(c)] = c.scalar(0); },
                   [&](TaskContext& c) { dw[0] += kX[at(c)] * c.scalar(0); }});
    toy.add_stage({{},
                   [&](TaskContext& c) { c.put_scalar(0, kC[at(c)] * kW1); },
                   [&](TaskContext& c) { dw[1] += kC[at(c)] * c.scalar(0); }},
                  RRFP_STAGE_LOSS);
    toy.add_edge(0, 1);
    toy.place(RRFP_PLACEMENT_LINEAR);
    toy.options.flags = flags;
    toy.options.order = RRFP_ORDER_STRICT;
    toy.after_done = [&](const rrfp_task& task, rrfp_events) {
      if (task.stage == 1 && task.kind != RRFP_FORWARD) ++sent;
      // Rank 0 looks at its mailbox only when both gradients are in it.
      while (task.stage == 0 && task.microbatch == 1 && task.kind == RRFP_FORWARD && sent < 2) {
        std::this_thread::yield();
      }
    };
    toy.open();
    const HintPtr hint = make_text_hint("0F0,0F1,0B0,0B1\n1F0,1F1,1B1,1B0\n");
    const StepResult result = toy.run({.hint = hint.get(), .microbatches = 2});
    ASSERT_TRUE(done(result));
    // In deterministic mode weight gradients keep the order of the microbatches.
    EXPECT_EQ(result.order(1), flags == 0 ? "1F0 1F1 1I1 1B0 1W1" : "1F0 1F1 1B1 1B0");
    EXPECT_EQ(arrived, (std::array<float, 2>{30, 60}));
    EXPECT_EQ(dw, (std::array<float, 2>{150, 100}));
  }
}

/// 1F1B in which odd microbatches split their backward and compute the weight halves at the end.
std::string half_split_1f1b(int32_t p, int32_t m) {
  std::string text;
  for (int32_t r = 0; r < p; ++r) {
    const std::string s = std::to_string(r);
    const auto add = [&](char kind, int32_t i) {
      text += (text.empty() || text.back() == '\n' ? "" : ",") + s + kind + std::to_string(i);
    };
    const int32_t warm_up = std::min(m, p - 1 - r);
    for (int32_t i = 0; i < warm_up; ++i) add('F', i);
    for (int32_t i = 0; i < m; ++i) {
      if (warm_up + i < m) add('F', warm_up + i);
      add(i % 2 == 0 ? 'B' : 'I', i);
    }
    for (int32_t i = 1; i < m; i += 2) add('W', i);
    text += '\n';
  }
  return text;
}

/// Two replicas of a chain whose numbers are not exact, so that the order of additions shows.
class Replicas {
 public:
  static constexpr int32_t kStages = 4;
  static constexpr int32_t kMicrobatches = 8;
  using Bits = std::array<std::array<uint32_t, kStages>, 2>;

  explicit Replicas(rrfp_pipeline_flags flags) {
    for (size_t d = 0; d < 2; ++d) {
      std::vector<float> x;
      for (int32_t i = 0; i < kMicrobatches; ++i) {
        x.push_back(0.1f + 0.37f * static_cast<float>(i) + static_cast<float>(d));
      }
      replicas_[d] = std::make_unique<ChainPipeline>(ToyChain({1.1f, 0.7f, 1.3f, 0.9f}, x));
      ToyPipeline& toy = replicas_[d]->toy;
      toy.options.flags = flags;
      toy.after_done = [this, d](const rrfp_task& task, rrfp_events events) {
        note(d, task, events);
      };
      toy.open();
    }
  }

  /// Runs both at once and returns what each stage held when its gradients were said to be in.
  Bits run(const HintPtr& hint, uint64_t seed) {
    fired_ = {};
    weights_done_ = {};
    std::array<StepResult, 2> results;
    const auto run_one = [&](size_t d) {
      replicas_[d]->toy.delays = {seed + d, 300};
      results[d] = replicas_[d]->run(hint);
    };
    std::thread other(run_one, 1);
    run_one(0);
    other.join();
    Bits bits = {};
    for (size_t d = 0; d < 2; ++d) {
      EXPECT_TRUE(done(results[d]));
      for (size_t s = 0; s < kStages; ++s) {
        EXPECT_EQ(fired_[d][s], 1) << "stage " << s;
        bits[d][s] = std::bit_cast<uint32_t>(replicas_[d]->chain.dw[s]);
        EXPECT_EQ(published_[d][s], bits[d][s]) << "a gradient came after the last";
        EXPECT_EQ(reduced_[d][s], reduced_[1 - d][s]);
      }
    }
    return bits;
  }

 private:
  void note(size_t d, const rrfp_task& task, rrfp_events events) {
    const auto s = static_cast<size_t>(task.stage);
    if (task.kind == RRFP_BACKWARD || task.kind == RRFP_WEIGHT_GRADIENT) ++weights_done_[d][s];
    if ((events & RRFP_EVENT_STAGE_GRADIENTS) == 0) return;
    EXPECT_EQ(weights_done_[d][s], kMicrobatches);
    // The all-reduce of stage s, when it has fired on both replicas.
    const std::lock_guard lock(mutex_);
    ++fired_[d][s];
    published_[d][s] = std::bit_cast<uint32_t>(replicas_[d]->chain.dw[s]);
    if (fired_[1 - d][s] == 0) return;
    const float sum =
        std::bit_cast<float>(published_[0][s]) + std::bit_cast<float>(published_[1][s]);
    reduced_[0][s] = reduced_[1][s] = std::bit_cast<uint32_t>(sum);
  }

  std::array<std::unique_ptr<ChainPipeline>, 2> replicas_;
  std::array<std::array<int32_t, kStages>, 2> weights_done_ = {};
  std::mutex mutex_;  // of what follows
  std::array<std::array<int32_t, kStages>, 2> fired_ = {};
  Bits published_ = {};
  Bits reduced_ = {};
};

TEST(Gradients, Case22GradientsAreReadyOnceAndWhenAllAreIn) {
  for (rrfp_pipeline_flags flags : {rrfp_pipeline_flags{0}, RRFP_PIPELINE_NONDETERMINISTIC}) {
    SCOPED_TRACE("flags " + std::to_string(flags));
    Replicas replicas(flags);
    const Replicas::Bits reference = replicas.run(make_hint("gpipe"), 0);
    const HintPtr split =
        make_text_hint(half_split_1f1b(Replicas::kStages, Replicas::kMicrobatches));
    bool other_bits = false;
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      const HintPtr random = make_random_hint(Replicas::kStages, Replicas::kMicrobatches, seed);
      for (const HintPtr* hint : {&split, &random}) {
        const Replicas::Bits bits = replicas.run(*hint, seed);
        if (flags == 0) {
          EXPECT_EQ(bits, reference);  // whatever the order was
        }
        other_bits = other_bits || bits != reference;
      }
    }
    // Otherwise the comparison above would prove nothing.
    EXPECT_EQ(other_bits, flags != 0) << "the order of additions should show";
  }
}

/// y = w * (b * (w * x)); each holder of w has a copy of its own.
class Tied {
 public:
  explicit Tied(const std::vector<int32_t>& rank_of)
      : toy(*std::max_element(rank_of.begin(), rank_of.end()) + 1) {
    toy.add_stage({[this](TaskContext& c) { c.put_scalar(0, w[0] * kX); },
                   {},
                   [this](TaskContext& c) { dw[0] += kX * c.scalar(0); }},
                  0, rank_of[0]);
    toy.add_stage({[this](TaskContext& c) { c.put_scalar(1, b * c.scalar(0)); },
                   [this](TaskContext& c) { c.put_scalar(0, b * c.scalar(1)); },
                   [this](TaskContext& c) { db += c.scalar(0) * c.scalar(1); }},
                  0, rank_of[1]);
    toy.add_stage({[this](TaskContext& c) { loss = w[1] * c.scalar(1); },
                   [this](TaskContext& c) { c.put_scalar(1, w[1]); },
                   [this](TaskContext& c) { dw[1] += c.scalar(1); }},
                  RRFP_STAGE_LOSS, rank_of[2]);
    toy.add_edge(0, 1);
    toy.add_edge(1, 2);
    toy.after_done = [this](const rrfp_task& task, rrfp_events events) {
      if ((events & RRFP_EVENT_STAGE_GRADIENTS) == 0 || task.stage == 1) return;
      if (++holders_in_ == 2) dw_tied = dw[0] + dw[1];
    };
    toy.open();
  }

  StepResult run(const HintPtr& hint) {
    dw = {};
    db = 0;
    dw_tied = 0;
    holders_in_ = 0;
    return toy.run({.hint = hint.get(), .microbatches = 1});
  }
  /// The tied weight counts once.
  [[nodiscard]] float norm() const { return std::sqrt(dw_tied * dw_tied + db * db); }
  void descend(float rate) {
    for (float& copy : w) copy -= rate * dw_tied;
    b -= rate * db;
  }

  static constexpr float kX = 1;
  ToyPipeline toy;
  std::array<float, 2> w = {3, 3};
  float b = 2;
  std::array<float, 2> dw = {};
  float dw_tied = 0;
  float db = 0;
  float loss = 0;

 private:
  std::atomic<int> holders_in_{0};
};

TEST(Gradients, Case24TiedWeights) {
  // On ranks of their own, and there and back with both holders on one rank.
  for (const std::vector<int32_t>& rank_of : {std::vector{0, 1, 2}, std::vector{0, 1, 0}}) {
    SCOPED_TRACE("last stage on rank " + std::to_string(rank_of[2]));
    const bool together = rank_of[2] == 0;
    Tied tied(rank_of);
    const HintPtr hint = make_hint("bfw");
    for (int step = 0; step < 100; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      tied.toy.delays = {static_cast<uint64_t>(step), 100};
      const StepResult result = tied.run(hint);
      ASSERT_TRUE(done(result));
      if (step == 0) {
        EXPECT_EQ(tied.loss, 18);
        EXPECT_EQ(tied.dw_tied, 12);
        EXPECT_EQ(tied.db, 9);
        EXPECT_EQ(tied.norm(), 15);
        // One word about the step, an activation and a gradient: nothing is sent for the tie.
        EXPECT_EQ(result.ranks[0].report.messages_sent, together ? 3 : 2);
      }
      ASSERT_NE(tied.dw_tied, 0.0f);
      tied.descend(step == 0 ? 0.1f : 0.001f);  // the loss has no minimum; keep it finite
      if (step == 0) {
        EXPECT_EQ(tied.w[0], 3 - 0.1f * 12);
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(tied.w[0]), std::bit_cast<uint32_t>(tied.w[1]));
      ASSERT_TRUE(std::isfinite(tied.loss));
    }
  }
}

TEST(Gradients, Case29UnevenMicrobatches) {
  const Samples samples = {{1, 2, 3}, {4, 5, 6}, {7, 8}};
  for (const char* name : kHints) {
    SCOPED_TRACE(name);
    ChainPipeline p(ToyChain({2, 3, 5}, samples));
    p.chain.seed = 0.125f;  // the mean over samples
    p.toy.delays = {29, 300};
    p.toy.open();
    ASSERT_TRUE(done(p.run(make_hint(name))));
    ASSERT_TRUE(p.chain.right());
    EXPECT_EQ(p.chain.loss_sum() / 8, 135);
    EXPECT_EQ(p.chain.dw, (std::vector<float>{67.5f, 45, 27}));
    const std::vector<int64_t> sizes = {3, 3, 2};
    EXPECT_EQ(p.chain.samples_seen, (std::vector<std::vector<int64_t>>(3, sizes)));
  }
}

}  // namespace
}  // namespace rrfp::cases
