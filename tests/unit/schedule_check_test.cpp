// SPDX-License-Identifier: Apache-2.0
//
// Complete schedule texts: what is read, and what is refused because messages, parameters or
// reductions do not fit the tasks. And the rules for the tasks of any schedule.
#include "engine/core/schedule_check.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/core/schedule_lowering.h"
#include "engine/core/schedule_text.h"
#include "tests/unit/fixtures.h"

namespace rrfp::core {
namespace {

using namespace fixtures;
using Lists = std::vector<std::vector<Task>>;

Status read(std::string_view text, Lists& rows) {
  std::string note;
  return parse_schedule_text(text, rows, note);
}

::testing::AssertionResult refused(std::string_view text, Code code,
                                   std::initializer_list<std::string_view> parts) {
  Lists rows;
  return fails_with(read(text, rows), code, parts);
}

::testing::AssertionResult inconsistent(std::string_view text,
                                        std::initializer_list<std::string_view> parts) {
  return refused(text, Code::kBadOrder, parts);
}

const std::string kFirst = "0F0,0SEND_F0,0RECV_B0,0B0\n";
const std::string kSecond = "1RECV_F0,1F0,1B0,1SEND_B0\n";

// --- Complete texts: what is read

TEST(CompleteText, TasksAreKept) {
  Lists rows;
  require(read(kFirst + kSecond, rows));
  EXPECT_EQ(print_schedule_text(rows), "0F0,0B0\n1F0,1B0\n");
  require(read(" 0UNSHARD , 0F0,0I0,0W0,\t0REDUCE_GRAD,0RESHARD\r\n", rows));
  EXPECT_EQ(print_schedule_text(rows), "0F0,0I0,0W0\n");
  require(read("0F0,(0F1;0B0)OVERLAP_F_B,0B1,0REDUCE_GRAD\n", rows));
  EXPECT_EQ(print_schedule_text(rows), "0F0,0F1,0B0,0B1\n");
}

TEST(CompleteText, RowsWithoutTasks) {
  Lists rows;
  require(read("0F0,0B0,0REDUCE_GRAD\n\n", rows));
  EXPECT_EQ(print_schedule_text(rows), "0F0,0B0\n\n");
}

TEST(CompleteText, OldStyle) {
  Lists rows;
  std::string note;
  require(parse_schedule_text("0F0,0SEND_F0,0RECV_B0,0B0,0W0\n1RECV_F0,1F0,1B0,1SEND_B0,1W0\n",
                              rows, note));
  EXPECT_EQ(print_schedule_text(rows), "0F0,0I0,0W0\n1F0,1I0,1W0\n");
  EXPECT_NE(note.find("for stages 0, 1"), std::string::npos) << note;
}

// --- Complete texts: cells

TEST(CompleteTextErrors, EmptyCells) {
  EXPECT_TRUE(refused("0F0,,0B0,0REDUCE_GRAD\n", Code::kSyntax,
                      {"row 1, column 2", "empty cell", "0REDUCE_GRAD makes this one complete"}));
  EXPECT_TRUE(refused("0F0,0B0\n1UNSHARD,1F0,1B0,\n", Code::kSyntax, {"row 2, column 4", "empty"}));
  EXPECT_TRUE(refused(",0F0,0B0,0REDUCE_GRAD\n", Code::kSyntax, {"row 1, column 1", "empty"}));
}

TEST(CompleteTextErrors, Actions) {
  EXPECT_TRUE(refused("0SEND_F\n", Code::kSyntax, {"row 1, column 1", "microbatch number"}));
  EXPECT_TRUE(refused("0UNSHARD0\n", Code::kSyntax, {"column 1", "unexpected \"0\""}));
  EXPECT_TRUE(refused("0F0,0SEND_F0x\n", Code::kSyntax, {"column 2", "unexpected \"x\""}));
  EXPECT_TRUE(refused("0F0,0SEND_0\n", Code::kSyntax, {"column 2", "unknown task type"}));
  EXPECT_TRUE(refused("SEND_F0\n", Code::kSyntax, {"stage number"}));
  EXPECT_TRUE(refused("(0F0;0SEND_F0)OVERLAP_F_B\n", Code::kSyntax,
                      {"row 1, column 1", "only tasks belong in a group", "0SEND_F0"}));
  EXPECT_TRUE(refused("0F0,0SEND_F0,0SEND_F0\n", Code::kSyntax,
                      {"column 3", "0SEND_F0 already stands in row 1, column 2"}));
  EXPECT_TRUE(refused("0F0,0B0,0REDUCE_GRAD,0REDUCE_GRAD\n", Code::kSyntax,
                      {"column 4", "0REDUCE_GRAD already stands"}));
}

// --- Complete texts: messages

TEST(CompleteTextErrors, MissingMessages) {
  EXPECT_TRUE(inconsistent("0F0,0RECV_B0,0B0\n" + kSecond,
                           {"row 1, column 1: 0F0 needs 0SEND_F0 in row 1"}));
  EXPECT_TRUE(inconsistent(kFirst + "1F0,1B0,1SEND_B0\n",
                           {"row 1, column 1: 0F0 needs 1RECV_F0 in row 2"}));
  EXPECT_TRUE(inconsistent(kFirst + "1RECV_F0,1F0,1B0\n",
                           {"row 1, column 3: 0RECV_B0 needs 1SEND_B0 in row 2"}));
  EXPECT_TRUE(inconsistent("0F0,0SEND_F0,0B0\n" + kSecond,
                           {"row 2, column 3: 1B0 needs 0RECV_B0 in row 1"}));
}

TEST(CompleteTextErrors, MessagesForNothing) {
  EXPECT_TRUE(inconsistent("0F0,1F0,0SEND_F0,1B0,0B0\n",
                           {"row 1, column 3: 0SEND_F0 is not needed", "stage 1", "same row"}));
  EXPECT_TRUE(inconsistent("0F0,0SEND_F0,0B0\n",
                           {"row 1, column 2: 0SEND_F0 has no forward task", "the other end"}));
  EXPECT_TRUE(inconsistent("0RECV_F0,0F0,0B0\n", {"0RECV_F0 has no forward task"}));
  EXPECT_TRUE(inconsistent("0F0,0B0,0SEND_B0\n", {"0SEND_B0 has no backward task"}));
  EXPECT_TRUE(inconsistent("0F0,0B0,0SEND_F7\n", {"0SEND_F7 belongs to no forward task"}));
  EXPECT_TRUE(
      inconsistent("2147483647F0,2147483647SEND_F0\n", {"2147483647SEND_F0 has no forward"}));
}

TEST(CompleteTextErrors, MessagesOnTheWrongRow) {
  EXPECT_TRUE(inconsistent("0F0,0SEND_F0,1RECV_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n",
                           {"row 1, column 3: 1RECV_F0", "tasks stand in row 2"}));
  EXPECT_TRUE(inconsistent("0F0,0B0,5RESHARD\n", {"5RESHARD names a stage that has no task"}));
  EXPECT_TRUE(inconsistent("0F0,0REDUCE_GRAD\n0B0\n",
                           {"row 2, column 1: 0B0", "another row", "row 1", "one rank"}));
}

TEST(CompleteTextErrors, MessagesAtTheWrongTime) {
  EXPECT_TRUE(inconsistent("0SEND_F0,0F0,0RECV_B0,0B0\n" + kSecond,
                           {"row 1, column 1: 0SEND_F0 stands before the task"}));
  EXPECT_TRUE(inconsistent(kFirst + "1F0,1RECV_F0,1B0,1SEND_B0\n",
                           {"row 2, column 2: 1RECV_F0 stands after the task"}));
  EXPECT_TRUE(inconsistent(kFirst + "1RECV_F0,1F0,1SEND_B0,1B0\n",
                           {"row 2, column 3: 1SEND_B0 stands before the task"}));
}

// --- Complete texts: parameters and gradients

TEST(CompleteTextErrors, Parameters) {
  EXPECT_TRUE(inconsistent("0UNSHARD,0UNSHARD,0F0,0B0\n",
                           {"row 1, column 2: 0UNSHARD", "already unsharded"}));
  EXPECT_TRUE(inconsistent("0F0,0B0,0RESHARD\n", {"column 3: 0RESHARD", "not unsharded"}));
  EXPECT_TRUE(inconsistent("0UNSHARD,0F0,0RESHARD,0B0\n", {"column 4: 0B0", "not unsharded"}));
  EXPECT_TRUE(inconsistent("0F0,0REDUCE_GRAD,0B0\n",
                           {"column 2: 0REDUCE_GRAD", "does not follow the last backward"}));
  EXPECT_TRUE(inconsistent("0F0,0REDUCE_GRAD\n", {"column 2: 0REDUCE_GRAD"}));
}

// --- The rules for tasks

Status validated(std::string_view text, int32_t ranks, int32_t microbatches) {
  Lists rows;
  require(read(text, rows));
  return validate_schedule(rows, ranks, microbatches);
}

TEST(ValidateSchedule, Good) {
  require(validated("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", 2, 2));
  require(validated("0F0,0F1,0I0,0B1,0W0\n", 1, 2));
  require(validated("1F0,1B0\n0F0,0B0\n", 2, 1));
}

TEST(ValidateSchedule, RowsAndStages) {
  EXPECT_TRUE(fails_with(validated("0F0,0B0\n", 2, 1), Code::kBadOrder,
                         {"1 rows", "expected 2", "one for each rank"}));
  EXPECT_TRUE(fails_with(validated("0F0,0B0\n0F1,0B1\n", 2, 2), Code::kBadOrder,
                         {"row 2 (rank 1): 0F1", "stage 0 is already in row 1"}));
  EXPECT_TRUE(fails_with(validated("0F0,0B0\n2F0,2B0\n", 2, 1), Code::kBadOrder,
                         {"stage 1 is on no row", "stage 2 is"}));
  EXPECT_TRUE(fails_with(validated("1F0,1B0\n", 1, 1), Code::kBadOrder, {"stage 0 is on no row"}));
  EXPECT_TRUE(fails_with(validated("\n", 1, 1), Code::kBadOrder, {"no tasks"}));
}

TEST(ValidateSchedule, Order) {
  EXPECT_TRUE(fails_with(validated("0B0,0F0\n", 1, 1), Code::kBadOrder,
                         {"row 1 (rank 0): 0B0 stands before the forward"}));
  EXPECT_TRUE(fails_with(validated("0I0,0F0,0W0\n", 1, 1), Code::kBadOrder, {"0I0", "forward"}));
  EXPECT_TRUE(fails_with(validated("0F0,0F1,0I1,0W0,0I0,0W1\n", 1, 2), Code::kBadOrder,
                         {"row 1 (rank 0): 0W0 stands before the input gradient I"}));
}

TEST(ValidateSchedule, Counts) {
  EXPECT_TRUE(fails_with(validated("0F0,0B0\n1F0,1B0,1F1,1B1\n", 2, 2), Code::kBadOrder,
                         {"row 1 (rank 0): stage 0 has no forward F of microbatch 1"}));
  EXPECT_TRUE(fails_with(validated("0F0,0F1,0B1\n", 1, 2), Code::kBadOrder,
                         {"stage 0 has no backward B or I of microbatch 0"}));
  EXPECT_TRUE(fails_with(validated("0F0,0F1,0I0,0I1,0W1\n", 1, 2), Code::kBadOrder,
                         {"stage 0 has no weight gradient W of microbatch 0"}));
  EXPECT_TRUE(fails_with(validated("0F0,0B0,0F2,0B2\n", 1, 2), Code::kBadOrder,
                         {"row 1 (rank 0): 0F2", "beyond the 2", "numbered from 0"}));
}

TEST(ValidateSchedule, Duplicates) {
  const Task f = task_of(0, TaskKind::kForward, 0);
  const Task b = task_of(0, TaskKind::kBackward, 0);
  const Task i = task_of(0, TaskKind::kInputGradient, 0);
  const Task w = task_of(0, TaskKind::kWeightGradient, 0);
  const auto validate = [](std::vector<Task> row) {
    return validate_schedule(Lists{std::move(row)}, 1, 1);
  };
  EXPECT_TRUE(fails_with(validate({f, f, b}), Code::kBadOrder, {"row 1", "0F0 stands twice"}));
  EXPECT_TRUE(fails_with(validate({f, b, b}), Code::kBadOrder, {"0B0 stands twice"}));
  EXPECT_TRUE(fails_with(validate({f, i, w, w}), Code::kBadOrder, {"0W0 stands twice"}));
  EXPECT_TRUE(fails_with(validate({f, b, i}), Code::kBadOrder, {"0I0", "the other form"}));
  EXPECT_TRUE(fails_with(validate({f, i, b}), Code::kBadOrder, {"0B0", "the other form"}));
}

}  // namespace
}  // namespace rrfp::core
