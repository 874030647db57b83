// SPDX-License-Identifier: Apache-2.0
//
// Which rank gets which blocks of a model with branches.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>

#include "two_encoders.h"
#include "vision.h"

namespace rrfp::models {
namespace {

struct Placed {
  std::vector<int32_t> first_blocks;
  std::vector<int32_t> ranks;
};
Placed place(const rrfp_model* model, int32_t stages, int32_t ranks,
             const std::vector<int64_t>& costs) {
  Placed placed = {std::vector<int32_t>(static_cast<size_t>(stages)),
                   std::vector<int32_t>(static_cast<size_t>(stages))};
  rrfp_error error = {};
  check(rrfp_model_place(model, stages, ranks, costs.empty() ? nullptr : costs.data(),
                         placed.first_blocks.data(), placed.ranks.data(), &error),
        error);
  return placed;
}

TEST(Place, StagesKeepToTheirBranchAndRanksAreBalanced) {
  TwoEncoders model;
  //                                 sight    sound   text  join language late head
  const std::vector<int64_t> costs = {40, 20, 10, 5, 1, 30, 30, 4, 10};
  const Placed least = place(model.b.model.get(), 4, 2, costs);
  EXPECT_EQ(least.first_blocks, (std::vector<int32_t>{0, 2, 4, 5}));
  // 60 + 15 and 1 + 74.
  EXPECT_EQ(least.ranks, (std::vector<int32_t>{0, 0, 1, 1}));
  const Placed more = place(model.b.model.get(), 6, 3, costs);
  EXPECT_EQ(more.first_blocks, (std::vector<int32_t>{0, 1, 2, 4, 5, 6}));
  std::vector<int64_t> load(3, 0);
  const std::vector<int64_t> stage_costs = {40, 20, 15, 1, 30, 44};
  for (size_t s = 0; s < stage_costs.size(); ++s) {
    load.at(static_cast<size_t>(more.ranks[s])) += stage_costs[s];
  }
  EXPECT_EQ(*std::max_element(load.begin(), load.end()), 55);  // 44 + ..; 150 / 3 = 50 at best
  EXPECT_EQ(more.ranks[0], 0);
}

/// Calls body(digits) for all numbers of so many digits below `base`.
template <class Body>
void for_all_numbers(size_t digits, int32_t base, Body body) {
  std::vector<int32_t> number(digits, 0);
  while (true) {
    body(number);
    size_t at = 0;
    while (at < digits && ++number[at] == base) number[at++] = 0;
    if (at == digits) return;
  }
}

/// The cheapest way to cut the branches of TwoEncoders: what its most expensive stage costs.
int64_t cheapest_cut(const std::vector<int64_t>& costs, int32_t stages) {
  const std::vector<bool> begins_branch = {true, false, true,  false, true,
                                           true, false, false, false};
  int64_t best = INT64_MAX;
  for_all_numbers(kBlocks, 2, [&](const std::vector<int32_t>& begins) {
    int64_t most = 0;
    int64_t cost = 0;
    for (size_t b = 0; b < costs.size(); ++b) {
      if (begins_branch[b] && begins[b] == 0) return;
      cost = begins[b] == 1 ? costs[b] : cost + costs[b];
      most = std::max(most, cost);
    }
    if (std::accumulate(begins.begin(), begins.end(), 0) == stages) best = std::min(best, most);
  });
  return best;
}

int64_t busiest(const std::vector<int64_t>& costs, const std::vector<int32_t>& ranks) {
  std::vector<int64_t> load(costs.size(), 0);
  for (size_t s = 0; s < costs.size(); ++s) load.at(static_cast<size_t>(ranks[s])) += costs[s];
  return *std::max_element(load.begin(), load.end());
}

TEST(Place, NoCutIsCheaperAndNoSpreadMuchMoreEven) {
  TwoEncoders model;
  Random random(3);
  for (int k = 0; k < 60; ++k) {
    std::vector<int64_t> costs;
    for (int32_t b = 0; b < kBlocks; ++b) costs.push_back(random.below(k % 2 == 0 ? 100 : 4));
    const int32_t stages = 4 + random.below(4);
    const int32_t ranks = 1 + random.below(std::min(stages, 4));
    const Placed placed = place(model.b.model.get(), stages, ranks, costs);
    std::vector<int64_t> of_stages;
    for (size_t s = 0; s < placed.first_blocks.size(); ++s) {
      const auto end = s + 1 < placed.first_blocks.size() ? placed.first_blocks[s + 1] : kBlocks;
      of_stages.push_back(
          std::accumulate(costs.begin() + placed.first_blocks[s], costs.begin() + end, int64_t{0}));
    }
    EXPECT_EQ(*std::max_element(of_stages.begin(), of_stages.end()), cheapest_cut(costs, stages))
        << "case " << k;
    int64_t best = INT64_MAX;
    for_all_numbers(of_stages.size(), ranks, [&](const std::vector<int32_t>& other) {
      best = std::min(best, busiest(of_stages, other));
    });
    // 4/3 - 1/(3 ranks)
    EXPECT_LE(3 * ranks * busiest(of_stages, placed.ranks), (4 * ranks - 1) * best) << "case " << k;
    const std::set<int32_t> used(placed.ranks.begin(), placed.ranks.end());
    EXPECT_EQ(used.size(), static_cast<size_t>(ranks)) << "case " << k;
  }
}

TEST(Place, WhatItGivesTrains) {
  TwoEncoders model;
  const Outcome expected = train(model.b.model.get(), {});
  for (int32_t stages = 4; stages <= kBlocks; ++stages) {
    for (int32_t ranks = 1; ranks <= stages; ++ranks) {
      const Placed placed = place(model.b.model.get(), stages, ranks, {});
      const Pipeline p = {
          .first_blocks = placed.first_blocks, .stage_ranks = placed.ranks, .hint = "bfw"};
      EXPECT_EQ(train(model.b.model.get(), p), expected) << stages << " on " << ranks;
    }
  }
}

// Pictures have known numbers of rows, texts have not: an estimate must take a text neither for one
// row nor for as many as the first convolution has.
TEST(Place, EstimatesGiveEachBranchItsShare) {
  for (const rrfp_vision_flags flags : {0U, RRFP_VISION_CONV_STEM}) {
    rrfp_gpt_options language = small_gpt();
    language.layers = 8;
    rrfp_vision_options vision = small_vision(flags);
    vision.image_size = 64;
    vision.patch = 8;
    vision.layers = 8;
    vision.dim = language.dim;
    const ModelPtr model = make_vision_language(language, vision);
    // Blocks: 9 of vision, the projector, the embedding, 8 layers, the head.
    const Placed placed = place(model.get(), 10, 2, {});
    const auto of_language = std::count_if(placed.first_blocks.begin(), placed.first_blocks.end(),
                                           [](int32_t first) { return first >= 11; });
    EXPECT_EQ(of_language, 4) << "of 10 stages, flags " << flags;
  }
}

// A frozen encoder has no backward pass, two thirds of the work.
TEST(Place, EstimatesKnowWhatIsFrozen) {
  const auto of_language = [](rrfp_vision_flags flags) {
    rrfp_gpt_options language = small_gpt();
    language.layers = 8;
    rrfp_vision_options vision = small_vision(flags);
    vision.layers = 8;
    vision.dim = language.dim;
    const ModelPtr model = make_vision_language(language, vision);
    const Placed placed = place(model.get(), 10, 2, {});
    return std::count_if(placed.first_blocks.begin(), placed.first_blocks.end(),
                         [](int32_t first) { return first >= 11; });
  };
  EXPECT_EQ(of_language(0), 4);
  EXPECT_GE(of_language(RRFP_VISION_FROZEN), 5);
}

// Such as a head that is only asked for predictions: it is of no branch and costs nothing.
TEST(Place, BlocksThatNoLossNeedsGetNoStage) {
  Builder b;
  const int32_t x = b.input("x", RRFP_F32, {-1, 4});
  b.block("first");
  const int32_t first = b.op(RRFP_OP_LINEAR, {x}, {b.parameter("w0", {4, 4})});
  b.block("probe");
  b.op(RRFP_OP_LINEAR, {first}, {b.parameter("probe", {400, 4})});
  b.block("second");
  const int32_t second = b.op(RRFP_OP_LINEAR, {first}, {b.parameter("w1", {4, 4})});
  b.block("third");
  b.loss(b.op(RRFP_OP_LINEAR, {second}, {b.parameter("w2", {1, 4})}));
  for (int32_t stages = 1; stages <= 3; ++stages) {
    const Placed placed = place(b.model.get(), stages, stages, {});
    rrfp_trainer_options options = trainer_options(stages);
    options.first_blocks = placed.first_blocks.data();
    options.stage_ranks = placed.ranks.data();
    const TrainerPtr trainer = make_trainer(b.model.get(), options);
    BatchData data;
    data.add_f32({1, 2, 3, 4}, {1, 4});
    step(trainer.get(), data.batch(1));
  }
}

TEST(Place, AChainIsCutAsBefore) {
  const ModelPtr model = make_gpt(small_gpt());
  for (int32_t stages = 1; stages <= 6; ++stages) {
    std::vector<int32_t> cut(static_cast<size_t>(stages));
    rrfp_error error = {};
    check(rrfp_model_partition(model.get(), stages, nullptr, cut.data(), &error), error);
    const Placed placed = place(model.get(), stages, stages, {});
    EXPECT_EQ(placed.first_blocks, cut);
    std::vector<int32_t> own(static_cast<size_t>(stages));
    std::iota(own.begin(), own.end(), 0);
    EXPECT_EQ(placed.ranks, own);
  }
}

TEST(Place, MisuseIsToldApart) {
  TwoEncoders model;
  const auto failure = [&](int32_t stages, int32_t ranks, const std::vector<int64_t>& costs) {
    return std::string(failure_of([&] { place(model.b.model.get(), stages, ranks, costs); }).text);
  };
  EXPECT_EQ(failure(3, 1, {}),
            "stages is 3; the model has 4 branches and 9 blocks: expected 4 to 9");
  EXPECT_EQ(failure(10, 1, {}),
            "stages is 10; the model has 4 branches and 9 blocks: expected 4 to 9");
  EXPECT_EQ(failure(4, 0, {}), "ranks is 0; expected 1 to stages = 4");
  EXPECT_EQ(failure(4, 5, {}), "ranks is 5; expected 1 to stages = 4");
  std::vector<int64_t> costs(kBlocks, 1);
  costs[3] = -1;
  EXPECT_EQ(failure(4, 2, costs), "the cost of block 3 is -1; expected 0 to " +
                                      std::to_string(INT64_MAX - 4) + ", as the sum is of 64 bits");
  costs[3] = INT64_MAX - 4;
  EXPECT_NE(failure(4, 2, costs).find("the cost of block 4 is 1; expected 0 to 0"),
            std::string::npos);
}

TEST(StageRanks, MisuseIsToldApart) {
  TwoEncoders model;
  const auto failure = [&](std::vector<int32_t> ranks, rrfp_placement placement) {
    rrfp_trainer_options options = trainer_options(2);
    options.stage_ranks = ranks.data();
    options.placement = placement;
    return failure_of([&] { make_trainer(model.b.model.get(), options); });
  };
  EXPECT_STREQ(failure({0, 1}, RRFP_PLACEMENT_V).text,
               "both stage_ranks and a placement are given; expected one of them");
  EXPECT_EQ(failure({0, -1}, 0).status, RRFP_ERR_OUT_OF_RANGE);
  EXPECT_EQ(failure({0, 2}, 0).status, RRFP_ERR_UNPLACED_STAGE);
  EXPECT_STREQ(failure({0, INT32_MAX}, 0).text, "ranks is 2147483647; expected 1 to 65536");
  EXPECT_EQ(failure({-5, -5}, 0).status, RRFP_ERR_OUT_OF_RANGE);
}

}  // namespace
}  // namespace rrfp::models
