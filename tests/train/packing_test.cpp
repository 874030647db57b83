// SPDX-License-Identifier: Apache-2.0
#include "engine/data/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/support/splitmix.h"

namespace rrfp::data {
namespace {

using Groups = std::vector<std::vector<size_t>>;
using Ints = std::vector<int32_t>;

TEST(Packing, AnExampleByHand) {
  Microbatch m;
  m.append("a<image>bc", 2);
  m.append("<image><image>\xff", 2);
  m.append("<imag<image>", 2);
  EXPECT_EQ(m.tokens, (Ints{'a', 256, 256, 'b', 'c', 257, 256, 256, 256, 256,
                            255, 257, '<', 'i', 'm', 'a', 'g', 256, 256, 257}));
  EXPECT_EQ(m.targets, (Ints{-100, -100, 'b', 'c', 257, -100, -100, -100, -100, 255,
                             257,  -100, 'i', 'm', 'a', 'g',  -100, -100, 257,  -100}));
  EXPECT_EQ(m.segments, (Ints{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(m.positions, (Ints{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(m.sources,
            (Ints{-1, 0, 1, -1, -1, -1, 2, 3, 4, 5, -1, -1, -1, -1, -1, -1, -1, 6, 7, -1}));
  EXPECT_EQ(m.image_count, 4);
  m.clear();
  m.append("x", 2);
  EXPECT_EQ(m.tokens, (Ints{'x', 257}));
  EXPECT_EQ(m.targets, (Ints{257, -100}));
  EXPECT_EQ(m.segments, (Ints{0, 0}));
  EXPECT_EQ(m.positions, (Ints{0, 1}));
  EXPECT_EQ(m.image_count, 0);
}

TEST(Grouping, ByCount) {
  EXPECT_EQ(group_by_count(7, 3), (Groups{{0, 1, 2}, {3, 4}, {5, 6}}));
  EXPECT_EQ(group_by_count(4, 4), (Groups{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(group_by_count(3, 1), (Groups{{0, 1, 2}}));
}

TEST(Grouping, ByCostAnExampleByHand) {
  // 9 -> 0, 7 -> 1, 6 -> 2, the first 5 -> 2 (11), the second -> 1 (12), 1 -> 0 (10).
  EXPECT_EQ(group_by_cost(std::vector<double>{5, 9, 5, 1, 7, 6}, 3),
            (Groups{{1, 3}, {2, 4}, {0, 5}}));
  EXPECT_EQ(group_by_cost(std::vector<double>{2, 2, 2, 2, 2}, 2), (Groups{{0, 2, 4}, {1, 3}}));
}

TEST(Grouping, ByCostIsBalanced) {
  test::Splitmix random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> costs(static_cast<size_t>(random.between(1, 60)));
    for (double& cost : costs) cost = static_cast<double>(1 + random.heavy_tailed(1000));
    const auto groups = static_cast<size_t>(random.between(1, static_cast<int64_t>(costs.size())));
    const Groups found = group_by_cost(costs, groups);
    ASSERT_EQ(found, group_by_cost(costs, groups));
    ASSERT_EQ(found.size(), groups);
    std::vector<size_t> all;
    std::vector<double> loads;
    for (const auto& group : found) {
      ASSERT_FALSE(group.empty());
      ASSERT_TRUE(std::is_sorted(group.begin(), group.end()));
      all.insert(all.end(), group.begin(), group.end());
      loads.push_back(std::accumulate(group.begin(), group.end(), 0.0,
                                      [&](double sum, size_t k) { return sum + costs[k]; }));
    }
    std::sort(all.begin(), all.end());
    std::vector<size_t> each(costs.size());
    std::iota(each.begin(), each.end(), size_t{0});
    ASSERT_EQ(all, each);
    // Graham's bound of list scheduling, which holds for every order: the mean and one sample more.
    const double sum = std::accumulate(costs.begin(), costs.end(), 0.0);
    const double dearest = *std::max_element(costs.begin(), costs.end());
    const double bound = sum / static_cast<double>(groups) + dearest;
    ASSERT_LE(*std::max_element(loads.begin(), loads.end()), bound);
    // And what makes it the longest first: no group could give its last sample to another and gain.
    for (size_t g = 0; g < groups; ++g) {
      if (found[g].size() < 2) continue;
      double least = dearest;
      for (const size_t k : found[g]) least = std::min(least, costs[k]);
      ASSERT_LE(loads[g] - least, *std::min_element(loads.begin(), loads.end()));
    }
  }
}

}  // namespace
}  // namespace rrfp::data
