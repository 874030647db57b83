// SPDX-License-Identifier: Apache-2.0
//
// The passes that add communication to a schedule, against texts that torch.distributed.pipelining
// wrote, and what they refuse.
#include "engine/core/schedule_lowering.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/core/schedule_text.h"
#include "tests/unit/fixtures.h"

namespace rrfp::core {
namespace {

using namespace fixtures;
using Lists = std::vector<std::vector<Task>>;

Lists lists_of(std::string_view text) {
  Lists rows;
  std::string note;
  require(parse_schedule_text(text, rows, note));
  return rows;
}

std::string lowered(std::string_view text, const LoweringOptions& options = {}) {
  std::vector<std::vector<Action>> out;
  require(lower_schedule(lists_of(text), options, out));
  return print_schedule_actions(out);
}

std::string lowered(std::string_view name, const StepTasks& tasks,
                    const LoweringOptions& options = {}) {
  Lists rows;
  for (int32_t r = 0; r < tasks.graph().ranks(); ++r) {
    rows.push_back(order_of(*named_hint(name), tasks, r));
  }
  return lowered(print_schedule_text(rows), options);
}

Status refusal(std::string_view text) {
  std::vector<std::vector<Action>> out(3);
  Status status = lower_schedule(lists_of(text), {}, out);
  EXPECT_EQ(out.size(), 3U) << "outputs are written on success only";
  return status;
}

// --- Golden texts

TEST(ScheduleLowering, OneForwardOneBackward) {
  const std::string expected =
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n";
  EXPECT_EQ(lowered("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"), expected);
  EXPECT_EQ(lowered("1f1b", *make_step(chain(2), 2)), expected);
}

TEST(ScheduleLowering, ZeroBubbleH1) {
  EXPECT_EQ(lowered("zb-h1", *make_step(chain(2), 2)),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0I0,0W0,0RECV_B1,0I1,0W1\n"
            "1RECV_F0,1F0,1RECV_F1,1I0,1SEND_B0,1F1,1I1,1SEND_B1,1W0,1W1\n");
}

TEST(ScheduleLowering, ZeroBubbleV) {
  EXPECT_EQ(lowered("zb-v", *make_step(chain(2, 2, Placement::kV), 3)),
            "0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,0F2,0SEND_F2,3F0,3RECV_F1,3I0,3SEND_B0,3W0,3F1,3I1,"
            "3SEND_B1,0RECV_B0,3W1,0I0,3RECV_F2,0W0,3F2,3I2,3SEND_B2,0RECV_B1,3W2,0I1,0RECV_B2,0W1,"
            "0I2,0W2\n"
            "1RECV_F0,1F0,1RECV_F1,2F0,2SEND_F0,1RECV_F2,1F1,2F1,2SEND_F1,2RECV_B0,2I0,2W0,1F2,"
            "2RECV_B1,1I0,1SEND_B0,1W0,2F2,2SEND_F2,2I1,2W1,2RECV_B2,1I1,1SEND_B1,2I2,1I2,1SEND_B2,"
            "1W1,2W2,1W2\n");
}

// --- Parameters and gradients

TEST(ScheduleLowering, ShardsAndReductions) {
  EXPECT_EQ(lowered("0F0,0F1,0B0,0B1\n", {true, false}), "0UNSHARD,0F0,0F1,0B0,0B1,0RESHARD\n");
  EXPECT_EQ(lowered("0F0,0F1,0I0,0B1,0W0\n", {false, true}), "0F0,0F1,0I0,0B1,0W0,0REDUCE_GRAD\n");
  EXPECT_EQ(lowered("0F0,0B0\n1F0,1B0\n", {true, true}),
            "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
            "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD\n");
  EXPECT_EQ(lowered("0F0,0F1\n", {true, true}), "0UNSHARD,0F0,0F1,0RESHARD\n")
      << "no gradient to reduce";
}

TEST(ScheduleLowering, ThreeStagesAreResidentAtATime) {
  // Stage 3 takes the place of stage 0 as soon as it is among the next three.
  EXPECT_EQ(lowered("0F0,1F0,2F0,3F0,3B0,2B0,1B0,0B0\n", {true, false}),
            "0UNSHARD,1UNSHARD,2UNSHARD,0F0,0RESHARD,3UNSHARD,1F0,2F0,3F0,3B0,3RESHARD,0UNSHARD,"
            "2B0,2RESHARD,1B0,1RESHARD,0B0,0RESHARD\n");
}

// --- What sends nothing

TEST(ScheduleLowering, NeighboursOnTheSameRankOrWithoutATask) {
  EXPECT_EQ(lowered("0F0,1F0,1B0,0B0\n"), "0F0,1F0,1B0,0B0\n");
  EXPECT_EQ(lowered("0F0,0B0\n\n"), "0F0,0B0\n\n");
  EXPECT_EQ(lowered("0F0,0F1,0B1\n1F1,1B1\n"),
            "0F0,0F1,0SEND_F1,0RECV_B1,0B1\n1RECV_F1,1F1,1B1,1SEND_B1\n")
      << "stage 1 skips microbatch 0";
  EXPECT_EQ(lowered("2147483647F0,2147483647B0\n"), "2147483647F0,2147483647B0\n");
  EXPECT_EQ(lowered("0F0\n2147483646F0\n"), "0F0\n2147483646F0\n");
}

// --- What is refused

TEST(ScheduleLoweringErrors, NoRankCanAdvance) {
  EXPECT_TRUE(
      fails_with(refusal("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"), Code::kBadOrder,
                 {"no rank can advance", "rank 0 at 0B0 needs 1B0", "rank 1 at 1F1 needs 0F1"}));
  EXPECT_TRUE(fails_with(refusal("1F0,0F0,1B0,0B0\n"), Code::kBadOrder,
                         {"no rank can advance", "rank 0 at 1F0 needs 0F0"}));
}

TEST(ScheduleLoweringErrors, StageOnTwoRows) {
  EXPECT_TRUE(fails_with(refusal("0F0,0B0\n0F1,0B1\n"), Code::kBadOrder,
                         {"0F1", "row 2", "already in row 1", "one rank"}));
}

}  // namespace
}  // namespace rrfp::core
