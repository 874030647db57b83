// SPDX-License-Identifier: Apache-2.0
//
// Every named schedule gives the same gradients and losses as one rank, in ready and in strict
// order. DualPipe needs two chains and is not among them.
#include <string_view>
#include <vector>

#include "toy_chain.h"

namespace rrfp::cases {
namespace {

struct Case {
  const char* hint;
  rrfp_placement placement;
  int32_t chunks;
};

constexpr Case kCases[] = {{"gpipe", RRFP_PLACEMENT_LOOP, 2},
                           {"1f1b", RRFP_PLACEMENT_V, 2},
                           {"zb-h1", RRFP_PLACEMENT_LINEAR, 1},
                           {"zb-h2", RRFP_PLACEMENT_LINEAR, 1},
                           {"zb-h2", RRFP_PLACEMENT_LOOP, 2},
                           {"bf", RRFP_PLACEMENT_V, 2},
                           {"bfw", RRFP_PLACEMENT_V, 2},
                           {"interleaved", RRFP_PLACEMENT_LINEAR, 1},
                           {"interleaved", RRFP_PLACEMENT_LOOP, 2},
                           {"interleaved:4", RRFP_PLACEMENT_LOOP, 3},
                           {"looped-bfs", RRFP_PLACEMENT_LOOP, 2},
                           {"interleaved-zb", RRFP_PLACEMENT_LOOP, 2},
                           {"interleaved-zb:4", RRFP_PLACEMENT_LOOP, 3},
                           {"zb-v", RRFP_PLACEMENT_V, 2},
                           {"v-half", RRFP_PLACEMENT_V, 2},
                           {"v-min", RRFP_PLACEMENT_V, 2},
                           {"dualpipe-v", RRFP_PLACEMENT_V, 2}};

TEST(Schedules, AllGiveTheSameGradients) {
  constexpr int32_t kRanks = 2;
  for (const Case& c : kCases) {
    const HintPtr hint = make_hint(c.hint);
    const std::string_view name = c.hint;
    for (const rrfp_order order : {RRFP_ORDER_READY, RRFP_ORDER_STRICT}) {
      if (order == RRFP_ORDER_STRICT && (name == "bf" || name == "bfw")) continue;
      SCOPED_TRACE(name);
      std::vector<float> weights;
      for (int32_t s = 0; s < kRanks * c.chunks; ++s) {
        weights.push_back(static_cast<float>(s % 3 + 1));
      }
      ChainPipeline p(ToyChain(weights, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}), kRanks,
                      c.placement);
      p.toy.open();
      Step step = p.step(hint);
      step.order = order;
      ASSERT_TRUE(done(p.run(step)));
      ASSERT_TRUE(p.chain.right());
    }
  }
}

TEST(Schedules, ForwardOnlyAndFrozenStages) {
  for (const char* name : {"zb-v", "v-half", "v-min", "dualpipe-v"}) {
    SCOPED_TRACE(name);
    ToyChain chain({2, 1, 3, 2}, std::vector<float>{1, 2, 3, 4});
    chain.flags[1] = RRFP_STAGE_FROZEN;
    ChainPipeline p(chain, 2, RRFP_PLACEMENT_V);
    p.toy.open();
    const HintPtr hint = make_hint(name);
    Step step = p.step(hint);
    step.order = RRFP_ORDER_STRICT;
    ASSERT_TRUE(done(p.run(step)));
    ASSERT_EQ(p.chain.dw[1], 0.0F);
    step.mode = RRFP_MODE_FORWARD;
    ASSERT_TRUE(done(p.run(step)));
    ASSERT_TRUE(p.chain.right_losses());
  }
}

}  // namespace
}  // namespace rrfp::cases
