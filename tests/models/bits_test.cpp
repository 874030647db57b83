// SPDX-License-Identifier: Apache-2.0
//
// Losses, gradient norms and final weights are the same to the bit however the pipeline is cut,
// placed, ordered, limited or delayed.
#include <array>

#include "harness.h"

namespace rrfp::models {
namespace {

constexpr int32_t kSteps = 3;
constexpr int32_t kMicrobatches = 4;

struct Pipeline {
  int32_t stages = 1;
  std::string hint = "zb-h1";
  rrfp_placement placement = RRFP_PLACEMENT_LINEAR;
  rrfp_order order = RRFP_ORDER_READY;
  bool recompute = false;
  int64_t cap_slots = 0;
  int64_t delay_us_max = 0;
  int32_t ranks = 0;
  std::vector<int32_t> first_blocks = {};
  rrfp_trainer_flags flags = 0;
  rrfp_injection injection = RRFP_INJECTION_DEFAULT;
  int32_t steps = kSteps;
};

Outcome train(rrfp_model* model, const Pipeline& p, rrfp_wake wake = RRFP_WAKE_YIELD) {
  const HintPtr hint = make_hint(p.hint);
  rrfp_trainer_options options = trainer_options(p.stages);
  options.flags = p.flags;
  options.injection = p.injection;
  if ((p.flags & RRFP_TRAINER_AUTO) == 0) options.hint = hint.get();
  options.placement = p.placement;
  if ((p.flags & RRFP_TRAINER_AUTO) == 0) options.order = p.order;
  options.ranks = p.ranks;
  options.cap_slots = p.cap_slots;
  options.delay_us_max = p.delay_us_max;
  options.wake = wake;
  options.clip_norm = 1;
  options.lr = 1e-2;
  if (!p.first_blocks.empty()) options.first_blocks = p.first_blocks.data();
  if (p.recompute) options.flags |= RRFP_TRAINER_RECOMPUTE;
  const TrainerPtr trainer = make_trainer(model, options);
  Outcome outcome;
  for (int32_t s = 0; s < p.steps; ++s) {
    // Microbatches of different lengths and sizes, and so of different costs.
    Random random(static_cast<uint64_t>(s) + 1);
    BatchData data;
    for (int32_t i = 0; i < kMicrobatches; ++i) {
      const int64_t samples = 1 + random.below(2);
      const int64_t length = 5 + random.below(12);
      for (int input = 0; input < 2; ++input) {
        std::vector<int32_t> ids(static_cast<size_t>(samples * length));
        for (int32_t& id : ids) id = random.below(32);
        if (input == 1) ids[0] = -100;  // does not count
        data.add_i32(std::move(ids), {samples, length});
      }
    }
    const rrfp_train_report report = step(trainer.get(), data.batch(2));
    outcome.losses.push_back(report.loss);
    outcome.norms.push_back(report.gradient_norm);
  }
  outcome.sha256 = weights_sha256(trainer.get());
  return outcome;
}

struct Variant {
  const char* name;
  rrfp_gpt_flags flags;
  double dropout;
};
class Bits : public testing::TestWithParam<Variant> {
 protected:
  ModelPtr model_ = make_gpt(small_gpt(GetParam().flags, GetParam().dropout));
  Outcome expected_ = train(model_.get(), {});
};

TEST_P(Bits, DoNotDependOnStagesHintAndOrder) {
  for (int32_t stages : {1, 2, 4, 6}) {
    for (const char* hint : {"gpipe", "1f1b", "bf", "bfw", "zb-h1"}) {
      const Pipeline p = {.stages = stages, .hint = hint};
      EXPECT_EQ(train(model_.get(), p), expected_) << stages << " stages, " << hint;
      const std::string name = hint;
      if (name == "bf" || name == "bfw") continue;  // priorities, which cannot be obeyed strictly
      const Pipeline strict = {.stages = stages, .hint = hint, .order = RRFP_ORDER_STRICT};
      EXPECT_EQ(train(model_.get(), strict), expected_) << stages << " stages, strict " << hint;
    }
  }
}

TEST_P(Bits, DoNotDependOnPlacement) {
  for (const char* hint : {"1f1b", "bfw"}) {
    const std::array<Pipeline, 5> places = {{
        {.stages = 4, .hint = hint, .placement = RRFP_PLACEMENT_V},
        {.stages = 6, .hint = hint, .placement = RRFP_PLACEMENT_V},
        {.stages = 4, .hint = hint, .placement = RRFP_PLACEMENT_LOOP},
        {.stages = 6, .hint = hint, .placement = RRFP_PLACEMENT_LOOP, .ranks = 3},
        {.stages = 5, .hint = hint, .placement = RRFP_PLACEMENT_LOOP, .ranks = 1},
    }};
    for (const Pipeline& p : places) {
      EXPECT_EQ(train(model_.get(), p), expected_)
          << p.stages << " stages, placement " << p.placement << ", " << hint;
    }
  }
}

TEST_P(Bits, DoNotDependOnThePublishedScheduleOrPolicy) {
  const auto same = [&](const char* hint, rrfp_placement placement, int32_t ranks,
                        std::initializer_list<rrfp_order> orders) {
    for (const rrfp_order order : orders) {
      const int32_t stages = placement == RRFP_PLACEMENT_LINEAR ? ranks : 2 * ranks;
      const Pipeline p = {
          .stages = stages, .hint = hint, .placement = placement, .order = order, .ranks = ranks};
      EXPECT_EQ(train(model_.get(), p), expected_) << hint << ", order " << order;
    }
  };
  const auto any = {RRFP_ORDER_READY, RRFP_ORDER_STRICT};
  for (const char* hint : {"zb-v", "v-half", "v-min", "dualpipe-v"}) {
    same(hint, RRFP_PLACEMENT_V, 2, any);
  }
  for (const char* hint : {"interleaved", "interleaved-zb", "looped-bfs"}) {
    same(hint, RRFP_PLACEMENT_LOOP, 2, any);
  }
  for (const char* policy : {"rf-v", "rf-m"}) same(policy, RRFP_PLACEMENT_V, 2, {RRFP_ORDER_READY});
  for (const char* policy : {"rf-1", "bfw-sort", "zb-h2"}) {
    same(policy, RRFP_PLACEMENT_LINEAR, 3, {RRFP_ORDER_READY});
  }
  same("1f1b", RRFP_PLACEMENT_LINEAR, 4, {RRFP_ORDER_PAIRED});
}

TEST_P(Bits, DoNotDependOnAChoiceByReplay) {
  constexpr int32_t kManySteps = 12;
  const Outcome expected = train(model_.get(), {.steps = kManySteps});
  for (const rrfp_placement placement : {RRFP_PLACEMENT_LINEAR, RRFP_PLACEMENT_V}) {
    const Pipeline p = {.stages = 4,
                        .placement = placement,
                        .delay_us_max = 500,
                        .flags = RRFP_TRAINER_AUTO,
                        .steps = kManySteps};
    EXPECT_EQ(train(model_.get(), p), expected) << "placement " << placement;
  }
}

TEST_P(Bits, InjectionIsTheSameForEveryPipeline) {
  const Pipeline alone = {.injection = RRFP_INJECTION_DATA};
  const Pipeline cut = {.stages = 4, .hint = "bfw", .injection = RRFP_INJECTION_DATA};
  EXPECT_EQ(train(model_.get(), cut), train(model_.get(), alone));
}

TEST_P(Bits, DoNotDependOnTheCut) {
  for (const std::vector<int32_t>& cut :
       {std::vector<int32_t>{0, 1}, {0, 5}, {0, 3}, {0, 1, 2}, {0, 4, 5}}) {
    const Pipeline p = {.stages = static_cast<int32_t>(cut.size()), .first_blocks = cut};
    EXPECT_EQ(train(model_.get(), p), expected_) << cut[1];
  }
}

TEST_P(Bits, DoNotDependOnRecompute) {
  for (int32_t stages : {1, 2, 4}) {
    for (const char* hint : {"1f1b", "bfw"}) {
      const Pipeline p = {.stages = stages, .hint = hint, .recompute = true};
      EXPECT_EQ(train(model_.get(), p), expected_) << stages << " stages, " << hint;
    }
  }
}

TEST_P(Bits, DoNotDependOnCapsAndTiming) {
  for (int64_t cap : {1, 2, 3}) {
    const Pipeline p = {.stages = 4, .hint = "bfw", .cap_slots = cap, .delay_us_max = 300};
    EXPECT_EQ(train(model_.get(), p), expected_) << "cap " << cap;
  }
  for (rrfp_wake wake : {RRFP_WAKE_YIELD, RRFP_WAKE_SPIN, RRFP_WAKE_PARK}) {
    const Pipeline p = {.stages = 2, .hint = "bf", .delay_us_max = 1000};
    EXPECT_EQ(train(model_.get(), p, wake), expected_) << "wake " << wake;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryModel, Bits,
                         testing::Values(Variant{"Plain", 0, 0}, Variant{"Dropout", 0, 0.2},
                                         Variant{"Tied", RRFP_GPT_TIED, 0.1},
                                         Variant{"Modern",
                                                 RRFP_GPT_TIED | RRFP_GPT_ROTARY |
                                                     RRFP_GPT_RMS_NORM | RRFP_GPT_SWIGLU,
                                                 0.1}),
                         [](const auto& p) { return std::string(p.param.name); });

// A value that several later stages read travels from reader to reader, so that its gradient adds
// up in one order.
TEST(BitsOfLongConnections, DoNotDependOnStages) {
  Builder b;
  const int32_t ids = b.input("ids", RRFP_I32, {-1});
  const int32_t target = b.input("target", RRFP_F32, {-1, 8});
  b.block();
  const int32_t x = b.op(RRFP_OP_EMBEDDING, {ids}, {b.parameter("table", {10, 8})});
  const int32_t shared = b.parameter("shared", {8, 8});
  int32_t y = x;
  for (int32_t k = 0; k < 5; ++k) {
    b.block();
    const std::string name = std::to_string(k);
    y = b.op(RRFP_OP_LINEAR, {y}, {k % 2 == 0 ? shared : b.parameter("w" + name, {8, 8})});
    y = b.op(RRFP_OP_GELU, {y});
    y = b.op(RRFP_OP_MUL, {y, x});
    y = b.op(RRFP_OP_ADD, {y, x});
  }
  b.loss(b.op(RRFP_OP_SQUARED_ERROR, {y, target}));

  const auto run = [&](int32_t stages, const char* hint, rrfp_trainer_flags flags) {
    const HintPtr owner = make_hint(hint);
    rrfp_trainer_options options = trainer_options(stages);
    options.hint = owner.get();
    options.flags = flags;
    const TrainerPtr trainer = make_trainer(b.model.get(), options);
    Outcome outcome;
    for (uint64_t s = 0; s < 3; ++s) {
      Random random(s);
      BatchData data;
      for (int i = 0; i < 3; ++i) {
        std::vector<int32_t> rows(7);
        std::vector<float> goal(7 * 8);
        for (int32_t& row : rows) row = random.below(10);
        for (float& g : goal) g = random.number();
        data.add_i32(rows, {7});
        data.add_f32(goal, {7, 8});
      }
      const rrfp_train_report report = step(trainer.get(), data.batch(2));
      outcome.losses.push_back(report.loss);
      outcome.norms.push_back(report.gradient_norm);
    }
    outcome.sha256 = weights_sha256(trainer.get());
    return outcome;
  };
  const Outcome expected = run(1, "1f1b", 0);
  for (int32_t stages = 2; stages <= 6; ++stages) {
    for (const char* hint : {"1f1b", "bfw", "zb-h1"}) {
      EXPECT_EQ(run(stages, hint, 0), expected) << stages << ' ' << hint;
      EXPECT_EQ(run(stages, hint, RRFP_TRAINER_RECOMPUTE), expected) << stages << ' ' << hint;
    }
  }
}

// Blocks that are computed again beside blocks that are kept.
TEST(BitsOfRecompute, DoNotDependOnWhichBlocksRecompute) {
  const auto run = [](uint32_t recomputed, int32_t stages, const char* hint) {
    Builder b;
    const int32_t ids = b.input("ids", RRFP_I32, {-1, -1});
    const int32_t target = b.input("target", RRFP_F32, {-1, -1, 8});
    b.block("first");
    int32_t x = b.op(RRFP_OP_EMBEDDING, {ids}, {b.parameter("table", {10, 8})});
    for (int32_t k = 0; k < 4; ++k) {
      const std::string name = std::to_string(k);
      b.block(nullptr, ((recomputed >> k) & 1) != 0 ? RRFP_BLOCK_RECOMPUTE : 0);
      const int32_t gain = b.parameter("gain" + name, {8});
      const int32_t n = b.op(RRFP_OP_RMS_NORM, {x}, {gain});
      const int32_t qkv = b.op(RRFP_OP_LINEAR, {n}, {b.parameter("qkv" + name, {24, 8})});
      int32_t y = b.op(RRFP_OP_ATTENTION, {qkv}, {}, {.flags = RRFP_OP_CAUSAL, .heads = 2});
      y = b.op(RRFP_OP_DROPOUT, {y}, {}, {.probability = 0.3});
      y = b.op(RRFP_OP_MUL, {y, n});
      x = b.op(RRFP_OP_ADD, {x, b.op(RRFP_OP_GELU, {y})});
    }
    b.loss(b.op(RRFP_OP_SQUARED_ERROR, {x, target}));
    const HintPtr owner = make_hint(hint);
    rrfp_trainer_options options = trainer_options(stages);
    options.hint = owner.get();
    const TrainerPtr trainer = make_trainer(b.model.get(), options);
    Random random(4);
    BatchData data;
    for (int i = 0; i < 3; ++i) {
      std::vector<int32_t> rows(2 * 5);
      std::vector<float> goal(2 * 5 * 8);
      for (int32_t& row : rows) row = random.below(10);
      for (float& g : goal) g = random.number();
      data.add_i32(rows, {2, 5});
      data.add_f32(goal, {2, 5, 8});
    }
    Outcome outcome;
    for (int s = 0; s < 2; ++s) {
      outcome.losses.push_back(step(trainer.get(), data.batch(2)).loss);
    }
    outcome.sha256 = weights_sha256(trainer.get());
    return outcome;
  };
  const Outcome expected = run(0, 1, "1f1b");
  for (uint32_t recomputed = 0; recomputed < 16; ++recomputed) {
    for (int32_t stages : {1, 2, 5}) {
      for (const char* hint : {"1f1b", "bfw"}) {
        EXPECT_EQ(run(recomputed, stages, hint), expected) << recomputed << ' ' << stages;
      }
    }
  }
}

// Without the promise of equal bits, sums still have the same terms.
TEST(NonDeterministic, DiffersByRoundingAtMost) {
  const ModelPtr model = make_gpt(small_gpt(RRFP_GPT_TIED, 0.1));
  const auto run = [&](rrfp_trainer_flags flags) {
    rrfp_trainer_options options = trainer_options(4);
    options.flags = flags;
    options.delay_us_max = 200;
    const TrainerPtr trainer = make_trainer(model.get(), options);
    BatchData data = random_tokens(8, 1, 12, 32, 3);
    double loss = 0;
    for (int s = 0; s < 4; ++s) loss = step(trainer.get(), data.batch(2)).loss;
    return loss;
  };
  const double expected = run(0);
  EXPECT_NEAR(run(RRFP_TRAINER_NONDETERMINISTIC), expected, 1e-4 * expected);
}

// The same masks whatever the split: a microbatch's place in the batch names them, not its round.
TEST(BitsOfRounds, AccumulationOverRoundsIsOneBatch) {
  const ModelPtr model = make_gpt(small_gpt(0, 0.2));
  const auto run = [&](int32_t rounds, int32_t stages) {
    const TrainerPtr trainer = make_trainer(model.get(), trainer_options(stages));
    BatchData data = random_tokens(8, 1, 9, 32, 5);
    Outcome outcome;
    for (int s = 0; s < 2; ++s) {
      outcome.losses.push_back(step(trainer.get(), data.batch(2, 0, rounds)).loss);
    }
    outcome.sha256 = weights_sha256(trainer.get());
    return outcome;
  };
  const Outcome expected = run(1, 1);
  for (int32_t rounds : {2, 4, 8}) {
    for (int32_t stages : {1, 2, 4}) EXPECT_EQ(run(rounds, stages), expected) << rounds;
  }
}

}  // namespace
}  // namespace rrfp::models
