// SPDX-License-Identifier: Apache-2.0
//
// CASES.md, part A: steps that must come back. T1 for every hint, cap, order and way of waiting,
// and the numbers of microbatches that hang elsewhere: fewer than stages, one, as many as stages.
#include <algorithm>
#include <array>

#include "toy_chain.h"

namespace rrfp::cases {
namespace {

constexpr std::array kHints = {"gpipe", "1f1b", "bf", "bfw", "zb-h1"};

enum class Cap { kMinimum, kRanks, kMicrobatches };

struct Setting {
  const char* hint;
  Cap cap;
  rrfp_order order;
};

std::string setting_name(const testing::TestParamInfo<Setting>& info) {
  std::string name = info.param.hint;
  std::erase(name, '-');
  constexpr std::array kCapNames = {"CapMinimum", "CapRanks", "CapMicrobatches"};
  return name + kCapNames[static_cast<size_t>(info.param.cap)] +
         (info.param.order == RRFP_ORDER_STRICT ? "Strict" : "Ready");
}

std::vector<Setting> all_settings() {
  std::vector<Setting> settings;
  for (const char* hint : kHints) {
    for (Cap cap : {Cap::kMinimum, Cap::kRanks, Cap::kMicrobatches}) {
      for (rrfp_order order : {RRFP_ORDER_READY, RRFP_ORDER_STRICT}) {
        settings.push_back({hint, cap, order});
      }
    }
  }
  return settings;
}

int64_t slots(Cap cap, int32_t chunks, int32_t ranks, int32_t microbatches) {
  const int64_t factor = cap == Cap::kMinimum ? 1 : cap == Cap::kRanks ? ranks : microbatches;
  return factor * chunks;
}

class EverySetting : public testing::TestWithParam<Setting> {
 protected:
  EverySetting() : hint_(make_hint(GetParam().hint)) {}

  /// Runs T on the chain, once per seed. In strict order the step may be refused instead, but only
  /// if the hint is no plan, or if its own peak is above the cap.
  void run(ChainPipeline& p, int32_t chunks, std::initializer_list<uint64_t> seeds,
           int32_t max_us) {
    const Setting& setting = GetParam();
    const int32_t m = p.chain.microbatches();
    p.toy.options.order = setting.order;
    p.toy.options.cap_slots = slots(setting.cap, chunks, p.toy.ranks(), m);
    p.toy.open();
    if (setting.order == RRFP_ORDER_STRICT && refused(p)) return;
    for (uint64_t seed : seeds) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      p.toy.delays = {seed, max_us};
      const StepResult result = p.run(hint_);
      ASSERT_TRUE(done(result));
      ASSERT_TRUE(p.chain.right());
      for (const RankResult& rank : result.ranks) {
        ASSERT_LE(rank.report.peak_slots, p.toy.options.cap_slots);
      }
    }
  }

 private:
  bool refused(ChainPipeline& p) {
    const std::string_view name = GetParam().hint;
    const int32_t m = p.chain.microbatches();
    rrfp_error error = {};
    const rrfp_status plan =
        rrfp_hint_check(hint_.get(), p.toy.graph(), m, RRFP_ORDER_STRICT, &error);
    const bool is_priority = name == "bf" || name == "bfw";
    EXPECT_EQ(plan, is_priority ? RRFP_ERR_BAD_ORDER : RRFP_OK) << error.text;
    // On a chain with one stage per rank: what the schedule itself holds at most.
    const int64_t peak = name == "gpipe" ? m : std::min(m, p.toy.ranks());
    const bool linear = p.chain.stages() == p.toy.ranks();
    const StepResult result = p.run(hint_);
    if (is_priority) {
      EXPECT_EQ(result.ranks[0].status, RRFP_ERR_BAD_ORDER) << result.text();
    } else if (linear) {
      const bool fits = peak <= p.toy.options.cap_slots;
      EXPECT_EQ(result.ranks[0].status, fits ? RRFP_STEP_DONE : RRFP_ERR_CAP_TOO_SMALL)
          << result.text();
    } else {
      EXPECT_TRUE(result.ok() || result.ranks[0].status == RRFP_ERR_CAP_TOO_SMALL) << result.text();
    }
    return !result.ok();
  }

  HintPtr hint_;
};

TEST_P(EverySetting, T1WhateverTheDelays) {
  ChainPipeline p(ToyChain::t1());
  run(p, 1, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 300);
}

TEST_P(EverySetting, T1WithLongDelays) {
  ChainPipeline p(ToyChain::t1());
  run(p, 1, {101}, 5000);
}

TEST_P(EverySetting, MoreMicrobatchesThanRanksParked) {
  ChainPipeline p(ToyChain({2, 3, 5, 7}, std::vector<float>{1, 2, 3, 4, 5, 6, 7}));
  p.toy.options.wake = RRFP_WAKE_PARK;
  run(p, 1, {21, 22, 23, 24, 25, 26}, 300);
}

TEST_P(EverySetting, TwoStagesSpinning) {
  ChainPipeline p(ToyChain({2, 3}, std::vector<float>{1, 2, 3, 4, 5}));
  p.toy.options.wake = RRFP_WAKE_SPIN;
  run(p, 1, {31, 32, 33}, 300);
}

TEST_P(EverySetting, TwiceAroundTheLoop) {
  ChainPipeline p(ToyChain({2, 3, 5, 7, 1, 2, 3, 1}, std::vector<float>{1, 2, 3, 4, 5, 6}), 4,
                  RRFP_PLACEMENT_LOOP);
  run(p, 2, {41, 42, 43, 44}, 300);
}

TEST_P(EverySetting, ThereAndBackInAV) {
  ChainPipeline p(ToyChain({2, 3, 5, 7, 1, 2}, std::vector<float>{1, 2, 3, 4, 5}), 3,
                  RRFP_PLACEMENT_V);
  run(p, 2, {51, 52, 53, 54}, 300);
}

INSTANTIATE_TEST_SUITE_P(Cases, EverySetting, testing::ValuesIn(all_settings()), setting_name);

TEST(Hangs, T1IsWhatCasesSays) {
  ChainPipeline p(ToyChain::t1());
  p.toy.open();
  ASSERT_TRUE(done(p.run(make_hint("1f1b"))));
  EXPECT_EQ(p.chain.loss_sum() / 4, 525);
  EXPECT_EQ(p.chain.dw, (std::vector<float>{262.5f, 175, 105, 75}));
  EXPECT_EQ(p.chain.dx, (std::vector<std::vector<float>>(4, {52.5f})));
  p.chain.seed = 1;
  ASSERT_TRUE(done(p.run(make_hint("1f1b"))));
  EXPECT_EQ(p.chain.loss_sum(), 2100);
  EXPECT_EQ(p.chain.dw, (std::vector<float>{1050, 700, 420, 300}));
}

TEST(Hangs, Case01FewerMicrobatchesThanStages) {
  const std::vector<float> x = {1, 2, 3};
  const std::vector<float> loss = {210, 315, 420};
  for (const char* hint : kHints) {
    for (size_t m = 1; m <= 3; ++m) {
      SCOPED_TRACE(std::string(hint) + ", m " + std::to_string(m));
      ChainPipeline p(ToyChain({2, 3, 5, 7}, std::vector<float>(x.begin(), x.begin() + m)));
      p.toy.options.cap_slots = 1;
      p.toy.open();
      for (uint64_t seed = 0; seed < 5; ++seed) {
        p.toy.delays = {seed, 300};
        ASSERT_TRUE(done(p.run(make_hint(hint))));
        ASSERT_TRUE(p.chain.right());
        EXPECT_EQ(p.chain.loss_sum() / static_cast<float>(m), loss[m - 1]);
        if (m == 1) {
          EXPECT_EQ(p.chain.dw, (std::vector<float>{105, 70, 42, 30}));
        }
      }
    }
  }
}

TEST(Hangs, Case02GPipeWithOneMicrobatch) {
  for (rrfp_order order : {RRFP_ORDER_READY, RRFP_ORDER_STRICT}) {
    ChainPipeline two(ToyChain({2, 3}, std::vector<float>{1}));
    two.toy.options.order = order;
    two.toy.open();
    ASSERT_TRUE(done(two.run(make_hint("gpipe"))));
    EXPECT_EQ(two.chain.losses, std::vector<float>{6});
    EXPECT_EQ(two.chain.dw, (std::vector<float>{3, 2}));

    ChainPipeline one(ToyChain({2}, std::vector<float>{1}));
    one.toy.options.order = order;
    one.toy.open();
    ASSERT_TRUE(done(one.run(make_hint("gpipe"))));
    EXPECT_EQ(one.chain.losses, std::vector<float>{2});
    EXPECT_EQ(one.chain.dw, std::vector<float>{1});
  }
}

TEST(Hangs, Case03AsManyMicrobatchesAsStages) {
  const std::vector<float> w = {2, 3, 5, 7, 1, 2, 3, 1};
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int32_t p = 1; p <= 8; ++p) {
    for (const char* hint : kHints) {
      SCOPED_TRACE(std::string(hint) + ", p " + std::to_string(p));
      const std::string_view name = hint;
      const bool may_be_strict = name != "bf" && name != "bfw";
      ChainPipeline chain(
          ToyChain({w.begin(), w.begin() + p}, std::vector<float>(x.begin(), x.begin() + p)));
      chain.toy.open();
      const HintPtr handle = make_hint(hint);
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        chain.toy.delays = {seed, 200};
        Step step = chain.step(handle);
        ASSERT_TRUE(done(chain.run(step)));
        ASSERT_TRUE(chain.chain.right());
        if (!may_be_strict) continue;
        step.order = RRFP_ORDER_STRICT;
        ASSERT_TRUE(done(chain.run(step)));
        ASSERT_TRUE(chain.chain.right());
      }
    }
  }
}

}  // namespace
}  // namespace rrfp::cases
