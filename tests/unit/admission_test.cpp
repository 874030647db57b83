// SPDX-License-Identifier: Apache-2.0
//
// Ledger against the inequality of its header, recomputed naively after every change.
#include "engine/core/admission.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/fixtures.h"

namespace rrfp::core {
namespace {

using fixtures::Random;

/// What a rank does with its memory: microbatches, each with a few forwards.
class Model {
 public:
  Model(std::vector<std::vector<Amount>> forwards, Amount cap) : cap_(cap) {
    for (auto& list : forwards) {
      Microbatch& mb = microbatches_.emplace_back();
      for (const Amount& a : list) mb.forwards.push_back({a, kWaiting});
    }
  }

  enum State { kWaiting, kHeld, kReleased };
  struct Forward {
    Amount amount;
    State state;
  };
  struct Microbatch {
    std::vector<Forward> forwards;
    bool finished = false;
  };

  [[nodiscard]] Amount sum(size_t i, State state) const {
    Amount total;
    for (const Forward& f : microbatches_[i].forwards) {
      if (f.state == state) total += f.amount;
    }
    return total;
  }
  [[nodiscard]] std::vector<Amount> needs() const {
    std::vector<Amount> all;
    for (size_t i = 0; i < microbatches_.size(); ++i) all.push_back(sum(i, kWaiting));
    return all;
  }
  [[nodiscard]] Amount live() const {
    Amount total;
    for (size_t i = 0; i < microbatches_.size(); ++i) total += sum(i, kHeld);
    return total;
  }
  /// need(j) + sum of held(k) over k >= j <= cap for every unfinished j. The ledger does not know
  /// which are finished: they must make no difference.
  [[nodiscard]] bool safe() const {
    for (size_t j = 0; j < microbatches_.size(); ++j) {
      if (microbatches_[j].finished) continue;
      Amount total = sum(j, kWaiting);
      for (size_t k = j; k < microbatches_.size(); ++k) total += sum(k, kHeld);
      if (!total.within(cap_)) return false;
    }
    return true;
  }
  [[nodiscard]] bool fits(size_t i, size_t f) {
    Forward& forward = microbatches_[i].forwards[f];
    forward.state = kHeld;
    const bool is_safe = safe();
    forward.state = kWaiting;
    return is_safe;
  }
  [[nodiscard]] size_t oldest() const {
    size_t i = 0;
    while (i < microbatches_.size() && microbatches_[i].finished) ++i;
    return i;
  }
  [[nodiscard]] std::vector<Microbatch>& microbatches() { return microbatches_; }

 private:
  std::vector<Microbatch> microbatches_;
  Amount cap_;
};

struct Setup {
  std::vector<std::vector<Amount>> forwards;
  Amount cap;
};

Setup random_setup(Random& random) {
  Setup setup;
  const int32_t kind = random.below(3);  // slots limited, bytes limited, or both
  const int32_t count = random.chance(10) ? 1 + random.below(70) : 1 + random.below(9);
  const int32_t chunks = 1 + random.below(4);
  const bool uneven = random.chance(60);
  Amount least;
  for (int32_t i = 0; i < count; ++i) {
    auto& list = setup.forwards.emplace_back();
    Amount need;
    for (int32_t c = 0; c < chunks; ++c) {
      if (uneven && random.chance(25)) continue;  // skips this stage, or holds nothing there
      list.push_back({1, uneven ? random.below(100) : 10});
      need += list.back();
    }
    least = Amount::max(least, need);
  }
  setup.cap = {kind == 1 ? Ledger::kUnlimited : least.slots + random.below(2 * chunks),
               kind == 0 ? Ledger::kUnlimited : least.bytes + random.below(100)};
  return setup;
}

void run_random(uint64_t seed, int& refusals) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const Setup setup = random_setup(random);
  Model model(setup.forwards, setup.cap);
  Ledger ledger;
  ledger.reset(model.needs(), setup.cap);
  ASSERT_EQ(ledger.cap(), setup.cap);
  const auto is_done = [&](size_t i) {
    const auto& forwards = model.microbatches()[i].forwards;
    return std::all_of(forwards.begin(), forwards.end(),
                       [](const auto& f) { return f.state == Model::kReleased; });
  };
  for (size_t i = 0; i < setup.forwards.size(); ++i) {
    if (!is_done(i)) continue;  // a microbatch without tasks on the rank asks for nothing
    model.microbatches()[i].finished = true;
  }

  Amount peak;
  while (model.oldest() < setup.forwards.size()) {
    const auto i =
        random.chance(40)
            ? model.oldest()
            : static_cast<size_t>(random.below(static_cast<int32_t>(setup.forwards.size())));
    auto& mb = model.microbatches()[i];
    if (mb.forwards.empty()) continue;
    const auto f = static_cast<size_t>(random.below(static_cast<int32_t>(mb.forwards.size())));
    const Amount amount = mb.forwards[f].amount;
    if (mb.forwards[f].state == Model::kWaiting) {
      const bool expected = model.fits(i, f);
      ASSERT_EQ(ledger.fits(MicrobatchId::of(i), amount), expected)
          << "microbatch " << i << ", " << ::testing::PrintToString(amount) << ", live "
          << ::testing::PrintToString(ledger.live()) << ", cap "
          << ::testing::PrintToString(setup.cap);
      ASSERT_TRUE(expected || i != model.oldest()) << "the oldest is always admitted";
      refusals += expected ? 0 : 1;
      if (!expected) continue;
      mb.forwards[f].state = Model::kHeld;
      ledger.acquire(MicrobatchId::of(i), amount);
    } else if (mb.forwards[f].state == Model::kHeld) {
      mb.forwards[f].state = Model::kReleased;
      mb.finished = is_done(i);
      ledger.release(MicrobatchId::of(i), amount);
    }
    peak = Amount::max(peak, model.live());
    ASSERT_TRUE(model.safe());
    ASSERT_EQ(ledger.live(), model.live());
    ASSERT_EQ(ledger.peak(), peak);
    ASSERT_TRUE(ledger.live().within(setup.cap)) << ::testing::PrintToString(ledger.live());
  }
  ASSERT_EQ(ledger.live(), Amount());
}

TEST(Ledger, AgreesWithTheInequality) {
  int refusals = 0;
  for (uint64_t seed = 0; seed < 4000 && !::testing::Test::HasFatalFailure(); ++seed) {
    run_random(seed, refusals);
  }
  EXPECT_GT(refusals, 10000) << "the caps must be tight enough to refuse";
}

// The case that a plain counter gets wrong: two chunks, cap 2. Once microbatch 0 has its first
// chunk, microbatch 1 must leave room for the second one.
TEST(Ledger, KeepsRoomForTheOldest) {
  const std::vector<Amount> needs(3, Amount{2, 0});
  Ledger ledger;
  ledger.reset(needs, {2, Ledger::kUnlimited});
  const Amount one = {1, 0};
  EXPECT_TRUE(ledger.fits(MicrobatchId(0), one));
  EXPECT_FALSE(ledger.fits(MicrobatchId(1), one)) << "0 needs both slots";
  ledger.acquire(MicrobatchId(0), one);
  EXPECT_FALSE(ledger.fits(MicrobatchId(1), one));
  EXPECT_TRUE(ledger.fits(MicrobatchId(0), one));
  ledger.acquire(MicrobatchId(0), one);
  EXPECT_EQ(ledger.live(), (Amount{2, 0}));
  ledger.release(MicrobatchId(0), one);
  EXPECT_TRUE(ledger.fits(MicrobatchId(1), one)) << "0 needs nothing more";
  ledger.acquire(MicrobatchId(1), one);
  EXPECT_FALSE(ledger.fits(MicrobatchId(2), one));
  ledger.release(MicrobatchId(0), one);
  EXPECT_TRUE(ledger.fits(MicrobatchId(1), one));
  EXPECT_FALSE(ledger.fits(MicrobatchId(2), one)) << "1 still needs a slot";
  EXPECT_EQ(ledger.peak(), (Amount{2, 0}));
  EXPECT_EQ(ledger.live(), one);
}

TEST(Ledger, SlotsAndBytesBothCount) {
  const std::vector<Amount> needs = {{1, 10}, {1, 30}, {1, 1}};
  Ledger ledger;
  ledger.reset(needs, {2, 35});
  ledger.acquire(MicrobatchId(0), {1, 10});
  EXPECT_FALSE(ledger.fits(MicrobatchId(1), {1, 30})) << "40 bytes exceed 35";
  EXPECT_TRUE(ledger.fits(MicrobatchId(2), {1, 1}));
  ledger.acquire(MicrobatchId(2), {1, 1});
  EXPECT_EQ(ledger.live(), (Amount{2, 11}));
  ledger.release(MicrobatchId(0), {1, 10});
  EXPECT_TRUE(ledger.fits(MicrobatchId(1), {1, 30}));
  ledger.acquire(MicrobatchId(1), {1, 30});
  EXPECT_EQ(ledger.peak(), (Amount{2, 31}));
}

TEST(Ledger, WithoutLimitEverythingFits) {
  const std::vector<Amount> needs(5, Amount{3, int64_t{1} << 50});
  Ledger ledger;
  ledger.reset(needs, {Ledger::kUnlimited, Ledger::kUnlimited});
  for (int32_t i = 4; i >= 0; --i) {
    ASSERT_TRUE(ledger.fits(MicrobatchId(i), needs[0]));
    ledger.acquire(MicrobatchId(i), needs[0]);
  }
  EXPECT_EQ(ledger.live(), (Amount{15, int64_t{5} << 50}));
}

TEST(Ledger, ResetForgets) {
  Ledger ledger;
  const std::vector<Amount> first = {{1, 5}, {1, 5}};
  ledger.reset(first, {1, 5});
  ledger.acquire(MicrobatchId(0), {1, 5});
  ledger.reset({}, {});
  EXPECT_EQ(ledger.live(), Amount());
  EXPECT_EQ(ledger.peak(), Amount());
  ledger.reset(first, {1, 5});
  EXPECT_TRUE(ledger.fits(MicrobatchId(0), {1, 5}));
  EXPECT_FALSE(ledger.fits(MicrobatchId(1), {1, 5}));
}

TEST(Amount, Arithmetic) {
  EXPECT_EQ((Amount{1, 2} + Amount{3, 4}), (Amount{4, 6}));
  EXPECT_EQ((Amount{1, 2} - Amount{3, 5}), (Amount{-2, -3}));
  EXPECT_EQ(Amount::max({1, 9}, {4, 2}), (Amount{4, 9}));
  EXPECT_TRUE((Amount{1, 9}).within({1, 9}));
  EXPECT_FALSE((Amount{2, 0}).within({1, 9}));
  EXPECT_FALSE((Amount{0, 10}).within({1, 9}));
}

}  // namespace
}  // namespace rrfp::core
