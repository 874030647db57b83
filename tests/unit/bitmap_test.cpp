// SPDX-License-Identifier: Apache-2.0
//
// Bitmap against std::set.
#include "engine/core/bitmap.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/unit/fixtures.h"

namespace rrfp::core {
namespace {

using fixtures::Random;

uint32_t first_of(const std::set<uint32_t>& set) {
  return set.empty() ? Bitmap::kNone : *set.begin();
}

uint32_t next_of(const std::set<uint32_t>& set, uint32_t member) {
  const auto at = set.upper_bound(member);
  return at == set.end() ? Bitmap::kNone : *at;
}

std::vector<uint32_t> members_of(const Bitmap& bitmap) {
  std::vector<uint32_t> members;
  for (uint32_t k = bitmap.first(); k != Bitmap::kNone; k = bitmap.next(k)) members.push_back(k);
  return members;
}

class BitmapSizes : public ::testing::TestWithParam<uint32_t> {
 protected:
  /// Often next to the border of a word of one of the levels, where the mistakes are.
  uint32_t pick(Random& random) const {
    const auto size = static_cast<int32_t>(GetParam());
    if (random.chance(50)) return static_cast<uint32_t>(random.below(size));
    constexpr int32_t kBorders[] = {0, 64, 128, 4096, 8192, 262144, 266240};
    const int32_t at = kBorders[random.below(7)] + random.below(4) - 2;
    return static_cast<uint32_t>(at < 0 || at >= size ? size - 1 : at);
  }
};

TEST_P(BitmapSizes, EmptyAfterReset) {
  Bitmap bitmap;
  bitmap.reset(GetParam());
  EXPECT_EQ(bitmap.size(), GetParam());
  EXPECT_TRUE(bitmap.empty());
  EXPECT_EQ(bitmap.first(), Bitmap::kNone);
}

TEST_P(BitmapSizes, AgreesWithASet) {
  if (GetParam() == 0) return;
  Random random(GetParam());
  Bitmap bitmap;
  bitmap.reset(GetParam());
  std::set<uint32_t> set;
  // Phases that fill and phases that drain, so that the set is large, small and empty in turn.
  for (int op = 0; op < 20000; ++op) {
    const bool fill = (op / 700) % 2 == 0;
    const uint32_t member = pick(random);
    if (random.chance(fill ? 70 : 10)) {
      bitmap.insert(member);
      set.insert(member);
    } else {
      const uint32_t gone = fill || set.empty() ? member : next_of(set, member);
      const uint32_t erased = gone == Bitmap::kNone ? first_of(set) : gone;
      bitmap.erase(erased);  // also what is not there
      set.erase(erased);
    }
    const uint32_t asked = pick(random);
    ASSERT_EQ(bitmap.contains(asked), set.count(asked) == 1) << "member " << asked << ", op " << op;
    ASSERT_EQ(bitmap.next(asked), next_of(set, asked)) << "after " << asked << ", op " << op;
    ASSERT_EQ(bitmap.first(), first_of(set)) << "op " << op;
    ASSERT_EQ(bitmap.empty(), set.empty()) << "op " << op;
  }
  EXPECT_EQ(members_of(bitmap), std::vector<uint32_t>(set.begin(), set.end()));
}

TEST_P(BitmapSizes, FullAndEmptiedAgain) {
  const uint32_t size = GetParam();
  Bitmap bitmap;
  bitmap.reset(size);
  for (uint32_t k = 0; k < size; ++k) bitmap.insert(k);
  for (uint32_t k = 0; k < size; ++k) {
    ASSERT_EQ(bitmap.first(), k);
    ASSERT_EQ(bitmap.next(k), k + 1 == size ? Bitmap::kNone : k + 1);
    ASSERT_FALSE(bitmap.empty());
    bitmap.erase(k);
    ASSERT_FALSE(bitmap.contains(k));
  }
  EXPECT_TRUE(bitmap.empty());
  EXPECT_EQ(bitmap.first(), Bitmap::kNone);
}

TEST_P(BitmapSizes, OneMember) {
  const uint32_t size = GetParam();
  Bitmap bitmap;
  bitmap.reset(size);
  for (uint32_t k = 0; k < size; k += 1 + k / 3) {
    bitmap.insert(k);
    bitmap.insert(k);
    ASSERT_EQ(members_of(bitmap), std::vector<uint32_t>{k});
    if (k > 0) {
      ASSERT_EQ(bitmap.next(0), k);
      ASSERT_EQ(bitmap.next(k - 1), k);
    }
    bitmap.erase(k);
    ASSERT_TRUE(bitmap.empty()) << "one erase undoes two inserts of " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, BitmapSizes,
                         ::testing::Values(0U, 1U, 63U, 64U, 65U, 4096U, 4097U, 300000U));

TEST(Bitmap, EverySubsetOfTenMembers) {
  Bitmap bitmap;
  for (uint32_t subset = 0; subset < 1024; ++subset) {
    bitmap.reset(10);
    std::vector<uint32_t> expected;
    for (uint32_t k = 0; k < 10; ++k) {
      if (((subset >> k) & 1) == 0) continue;
      bitmap.insert(k);
      expected.push_back(k);
    }
    ASSERT_EQ(members_of(bitmap), expected) << "subset " << subset;
  }
}

TEST(Bitmap, DefaultIsEmpty) {
  const Bitmap bitmap;
  EXPECT_TRUE(bitmap.empty());
  EXPECT_EQ(bitmap.first(), Bitmap::kNone);
  EXPECT_EQ(bitmap.size(), 0U);
}

TEST(Bitmap, ResetForgetsAndResizes) {
  Bitmap bitmap;
  for (const uint32_t size : {300000U, 65U, 1U, 4097U, 64U, 300000U}) {
    bitmap.reset(size);
    ASSERT_TRUE(bitmap.empty()) << size;
    ASSERT_EQ(bitmap.first(), Bitmap::kNone) << size;
    bitmap.insert(size - 1);
    ASSERT_EQ(bitmap.first(), size - 1);
    bitmap.insert(0);
    ASSERT_EQ(bitmap.first(), 0U);
  }
}

TEST(Bitmap, ACopyIsIndependent) {
  Bitmap a;
  a.reset(4097);
  a.insert(4096);
  Bitmap b = a;
  b.insert(7);
  a.erase(4096);
  EXPECT_TRUE(a.empty());
  EXPECT_EQ(members_of(b), (std::vector<uint32_t>{7, 4096}));
}

}  // namespace
}  // namespace rrfp::core
