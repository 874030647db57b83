// SPDX-License-Identifier: Apache-2.0
//
// CASES.md, part C (and 10 and 11 of part A): messages of several tensors of any type, of which
// only some have gradients, with shapes that change from step to step; microbatches that skip
// stages.
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "toy_chain.h"

namespace rrfp::cases {
namespace {

struct Part {
  rrfp_dtype dtype;
  std::vector<int64_t> shape;
  bool gradient;
};

int64_t count_of(const Part& part) {
  int64_t count = 1;
  for (int64_t extent : part.shape) count *= extent;
  return count;
}

size_t bytes_of(const Part& part) {
  const size_t size = part.dtype == RRFP_I64 ? 8 : 4;
  return static_cast<size_t>(count_of(part)) * size;
}

/// A chain whose stages send tuples of tensors, filled with a byte that says which it is, and check
/// all that arrives.
class TupleChain {
 public:
  explicit TupleChain(int32_t stages) : toy(stages), stages_(stages) {
    for (int32_t s = 0; s < stages; ++s) {
      toy.add_stage({[this, s](TaskContext& c) { forward(s, c); },
                     [this, s](TaskContext& c) { input_gradient(s, c); },
                     [this, s](TaskContext& c) { expect_inputs(s, c); }},
                    s == stages - 1 ? RRFP_STAGE_LOSS : 0);
      if (s > 0) toy.add_edge(s - 1, s);
    }
    toy.place(RRFP_PLACEMENT_LINEAR);
    toy.open();
  }

  ToyPipeline toy;
  std::vector<Part> parts;
  std::atomic<int> checked{0};  // messages looked at

 private:
  static unsigned char tag(int32_t edge, int32_t microbatch, size_t part, bool gradient) {
    return static_cast<unsigned char>(1 + edge * 64 + microbatch * 16 + static_cast<int>(part) * 2 +
                                      (gradient ? 1 : 0));
  }

  void expect(const TaskContext& context, int32_t edge, bool gradient) {
    const std::vector<rrfp_tensor> tensors = context.input(edge);
    size_t at = 0;
    for (size_t k = 0; k < parts.size(); ++k) {
      if (gradient && !parts[k].gradient) continue;
      ASSERT_LT(at, tensors.size());
      const rrfp_tensor& tensor = tensors[at++];
      EXPECT_EQ(tensor.dtype, parts[k].dtype);
      EXPECT_EQ(std::vector(tensor.shape, tensor.shape + tensor.ndim), parts[k].shape);
      EXPECT_EQ(tensor.flags, !gradient && parts[k].gradient ? RRFP_TENSOR_WANTS_GRADIENT : 0);
      const std::vector<unsigned char> expected(bytes_of(parts[k]),
                                                tag(edge, context.task.microbatch, k, gradient));
      EXPECT_EQ(std::memcmp(tensor.data, expected.data(), expected.size()), 0);
    }
    EXPECT_EQ(at, tensors.size()) << "a gradient for each tensor that asked, and no other";
    ++checked;
  }

  void send(const TaskContext& context, int32_t edge, bool gradient) {
    std::vector<rrfp_tensor> tensors;
    std::vector<std::vector<unsigned char>> memory;
    for (size_t k = 0; k < parts.size(); ++k) {
      if (gradient && !parts[k].gradient) continue;
      memory.emplace_back(bytes_of(parts[k]), tag(edge, context.task.microbatch, k, gradient));
      rrfp_tensor& tensor = tensors.emplace_back();
      tensor = {};
      tensor.data = memory.back().data();
      tensor.dtype = parts[k].dtype;
      tensor.ndim = static_cast<int32_t>(parts[k].shape.size());
      std::copy(parts[k].shape.begin(), parts[k].shape.end(), tensor.shape);
      if (!gradient && parts[k].gradient) tensor.flags = RRFP_TENSOR_WANTS_GRADIENT;
    }
    context.put(edge, tensors);
  }

  void expect_inputs(int32_t s, const TaskContext& context) {
    if (s > 0) expect(context, s - 1, false);
    if (s < stages_ - 1 && context.task.kind != RRFP_FORWARD) expect(context, s, true);
  }
  void forward(int32_t s, const TaskContext& context) {
    expect_inputs(s, context);
    if (s < stages_ - 1) send(context, s, false);
  }
  void input_gradient(int32_t s, const TaskContext& context) {
    expect_inputs(s, context);
    if (s > 0) send(context, s - 1, true);
  }

  int32_t stages_;
};

void run_tuples(TupleChain& chain, const char* hint_name) {
  constexpr int32_t kMicrobatches = 4;
  const HintPtr hint = make_hint(hint_name);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(std::string(hint_name) + ", seed " + std::to_string(seed));
    chain.toy.delays = {seed, 300};
    chain.checked = 0;
    ASSERT_TRUE(done(chain.toy.run({.hint = hint.get(), .microbatches = kMicrobatches})));
    // Each edge: one look in F, two in the input and two in the weight half, at both its ends.
    const int edges = chain.toy.ranks() - 1;
    EXPECT_EQ(chain.checked, kMicrobatches * edges * 5);
  }
}

constexpr std::array kHints = {"gpipe", "1f1b", "bf", "bfw", "zb-h1"};

TEST(Shapes, Case10TensorsThatNeedNoGradient) {
  TupleChain chain(3);
  chain.parts = {{RRFP_F32, {2, 4}, true}, {RRFP_I32, {2, 4}, false}, {RRFP_F32, {4}, false}};
  for (const char* hint : kHints) run_tuples(chain, hint);
}

TEST(Shapes, Case11TypesAndSizesThatChange) {
  for (int32_t p : {3, 4}) {
    TupleChain chain(p);
    for (const char* hint : kHints) {
      for (int64_t length : {1024, 16, 2048}) {  // shrinking, then growing
        SCOPED_TRACE("length " + std::to_string(length));
        chain.parts = {{RRFP_F32, {length}, true},
                       {RRFP_I64, {3}, false},
                       {RRFP_I64, {1}, false},
                       {RRFP_F32, {16}, true}};
        run_tuples(chain, hint);
      }
    }
  }
}

TEST(Shapes, Case30ShapesThatChangeBetweenSteps) {
  TupleChain chain(4);
  for (int64_t length : {128, 129, 64}) {
    SCOPED_TRACE("length " + std::to_string(length));
    chain.parts = {{RRFP_F32, {1, length, 8}, true}};
    run_tuples(chain, "1f1b");
  }
}

std::vector<std::vector<float>> microbatches_of(size_t count, size_t samples, float first) {
  constexpr size_t kLength = 16;
  std::vector<std::vector<float>> out(count, std::vector<float>(samples * kLength));
  for (auto& microbatch : out) {
    for (float& value : microbatch) value = first++;
  }
  return out;
}

TEST(Shapes, Case30EvaluationBetweenTrainingSteps) {
  for (const char* name : kHints) {
    SCOPED_TRACE(name);
    const HintPtr hint = make_hint(name);
    const auto first = microbatches_of(4, 2, 1);
    const auto last = microbatches_of(4, 2, 5);
    ChainPipeline with(ToyChain({2, 3, 5, 7}, first));
    ChainPipeline without(ToyChain({2, 3, 5, 7}, first));
    for (ChainPipeline* p : {&with, &without}) {
      p->toy.delays = {30, 200};
      p->toy.open();
      ASSERT_TRUE(done(p->run(hint)));
      ASSERT_TRUE(p->chain.right());
    }
    with.chain.feed(microbatches_of(3, 8, 2));
    Step evaluation = with.step(hint);
    evaluation.mode = RRFP_MODE_FORWARD;
    const StepResult result = with.run(evaluation);
    ASSERT_TRUE(done(result));
    ASSERT_TRUE(with.chain.right_losses());
    EXPECT_EQ(with.chain.dw, std::vector<float>(4, 0));
    for (const RankResult& rank : result.ranks) {
      EXPECT_EQ(rank.report.tasks, 3);
      EXPECT_EQ(rank.report.peak_slots, 0) << "nothing is kept for a backward";
    }
    for (ChainPipeline* p : {&with, &without}) {
      p->chain.feed(last);
      ASSERT_TRUE(done(p->run(hint)));
      ASSERT_TRUE(p->chain.right());
    }
    EXPECT_EQ(with.chain.dw, without.chain.dw);
    EXPECT_EQ(with.chain.dx, without.chain.dx);
    EXPECT_EQ(with.chain.losses, without.chain.losses);
  }
}

TEST(Shapes, Case32OpaqueObjectsAndIntegersBesideTheActivation) {
  constexpr int32_t kMicrobatches = 5;
  struct Sample {
    std::string text;
  };
  std::array<Sample, kMicrobatches> samples;
  for (size_t i = 0; i < kMicrobatches; ++i) samples[i].text = "sample " + std::to_string(i);
  ToyPipeline toy(3);
  std::atomic<int> seen{0};
  const auto at = [](const TaskContext& c) { return static_cast<size_t>(c.task.microbatch); };
  const auto look = [&](const TaskContext& context, int32_t edge) {
    void* opaque = nullptr;
    const auto tensors = context.input(edge, &opaque);
    ASSERT_EQ(tensors.size(), 2u);
    EXPECT_EQ(opaque, &samples[at(context)]);
    EXPECT_EQ(static_cast<Sample*>(opaque)->text, samples[at(context)].text);
    EXPECT_EQ(tensors[1].dtype, RRFP_I64);
    EXPECT_EQ(*static_cast<int64_t*>(tensors[1].data), 1000 + context.task.microbatch);
    ++seen;
  };
  const auto send = [&](const TaskContext& context, int32_t edge, float value) {
    const int64_t id = 1000 + context.task.microbatch;
    std::array<rrfp_tensor, 2> tensors = {context.alloc(RRFP_F32, {}),
                                          context.alloc(RRFP_I64, {1})};
    std::memcpy(tensors[0].data, &value, sizeof value);
    std::memcpy(tensors[1].data, &id, sizeof id);
    tensors[0].flags = RRFP_TENSOR_WANTS_GRADIENT;
    context.put(edge, tensors, &samples[at(context)]);
  };
  const auto gradient = [&](const TaskContext& context, int32_t edge) {
    EXPECT_EQ(context.input(edge).size(), 1u) << "only the activation has a gradient";
    return context.scalar(edge);
  };
  std::array<float, 3> dw = {};
  toy.add_stage({[&](TaskContext& c) { send(c, 0, 2); },
                 {},
                 [&](TaskContext& c) { dw[0] += gradient(c, 0); }});
  toy.add_stage({[&](TaskContext& c) {
                   look(c, 0);
                   send(c, 1, 3 * c.scalar(0));
                 },
                 [&](TaskContext& c) {
                   look(c, 0);
                   c.put_scalar(0, 3 * gradient(c, 1));
                 },
                 [&](TaskContext& c) {
                   look(c, 0);
                   dw[1] += c.scalar(0) * gradient(c, 1);
                 }});
  toy.add_stage({[&](TaskContext& c) { look(c, 1); }, [&](TaskContext& c) { c.put_scalar(1, 5); },
                 [&](TaskContext& c) { dw[2] += c.scalar(1); }},
                RRFP_STAGE_LOSS);
  toy.add_edge(0, 1);
  toy.add_edge(1, 2);
  toy.place(RRFP_PLACEMENT_LINEAR);
  toy.delays = {32, 300};
  toy.open();
  for (const char* name : kHints) {
    SCOPED_TRACE(name);
    const HintPtr hint = make_hint(name);
    seen = 0;
    dw = {};
    ASSERT_TRUE(done(toy.run({.hint = hint.get(), .microbatches = kMicrobatches})));
    EXPECT_EQ(seen, kMicrobatches * 4);
    EXPECT_EQ(dw,
              (std::array<float, 3>{15 * kMicrobatches, 10 * kMicrobatches, 6 * kMicrobatches}));
  }
}

TEST(Shapes, Case34MicrobatchesWithoutImages) {
  constexpr int32_t kImage = 0;
  constexpr int32_t kText = 1;
  constexpr std::array<float, 4> kImages = {1, 0, 2, 0};
  constexpr std::array<float, 4> kTexts = {1, 2, 3, 4};
  constexpr float kWe = 2;
  constexpr float kWl = 3;
  float loss = 0;
  float dw_e = 0;
  float dw_l = 0;
  std::atomic<bool> text_only_done{false};
  ToyPipeline toy(3);
  const auto at = [](const TaskContext& c) { return static_cast<size_t>(c.task.microbatch); };
  const auto input = [&](const TaskContext& context) {
    const bool has_image = context.task.microbatch % 2 == 0;
    EXPECT_NE(context.absent(kImage), has_image);
    return (has_image ? context.scalar(kImage) : 0) + context.scalar(kText);
  };
  toy.add_stage({[&](TaskContext& c) {
                   // The encoder waits for what must not wait for the encoder.
                   while (!text_only_done) std::this_thread::yield();
                   c.put_scalar(kImage, kWe * kImages[at(c)]);
                 },
                 {},
                 [&](TaskContext& c) { dw_e += kImages[at(c)] * c.scalar(kImage); }});
  toy.add_stage({[&](TaskContext& c) {
                   rrfp_tensor text = c.alloc(RRFP_F32, {1});
                   std::memcpy(text.data, &kTexts[at(c)], sizeof(float));
                   c.put(kText, text);
                 },
                 {},
                 {}},
                RRFP_STAGE_FROZEN);
  toy.add_stage({[&](TaskContext& c) {
                   loss += kWl * input(c);
                   if (c.task.microbatch == 3) text_only_done = true;
                 },
                 [&](TaskContext& c) {
                   const bool has_image = c.task.microbatch % 2 == 0;
                   EXPECT_EQ(c.wanted(kImage), has_image);
                   EXPECT_FALSE(c.wanted(kText));
                   if (has_image) c.put_scalar(kImage, kWl);
                 },
                 [&](TaskContext& c) { dw_l += input(c); }},
                RRFP_STAGE_LOSS);
  toy.add_edge(0, 2);
  toy.add_edge(1, 2, RRFP_EDGE_NO_GRADIENT);
  toy.place(RRFP_PLACEMENT_LINEAR);
  toy.options.cap_slots = 4;
  toy.open();
  for (const char* name : kHints) {
    SCOPED_TRACE(name);
    const HintPtr hint = make_hint(name);
    loss = dw_e = dw_l = 0;
    text_only_done = false;
    const StepResult result = toy.run(
        {.hint = hint.get(), .microbatches = 4, .skip = {0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}});
    ASSERT_TRUE(done(result));
    EXPECT_EQ(loss, 48);
    EXPECT_EQ(dw_l, 16);
    EXPECT_EQ(dw_e, 9);
    EXPECT_EQ(result.ranks[0].tasks.back().task.microbatch, 2);
    EXPECT_EQ(result.count(RRFP_EVENT_STAGE_GRADIENTS, 0), 1);
  }
}

}  // namespace
}  // namespace rrfp::cases
