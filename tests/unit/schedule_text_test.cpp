// SPDX-License-Identifier: Apache-2.0
//
// The schedule text: what is read, what is refused and where, and that writing and reading again
// gives the same schedule. Texts with communication are in schedule_check_test.cpp; tests/fuzz
// mutates both kinds.
#include "engine/core/schedule_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/core/hint.h"
#include "tests/unit/fixtures.h"

namespace rrfp::core {
namespace {

using namespace fixtures;
using Rows = std::vector<std::string>;

struct Parsed {
  Status status;
  std::vector<std::vector<Task>> rows;
  std::string note;
};

Parsed parse(std::string_view text) {
  Parsed parsed;
  parsed.status = parse_schedule_text(text, parsed.rows, parsed.note);
  return parsed;
}

/// The rows of a text that must be good, each written as schedule text again.
Rows rows_of(std::string_view text) {
  const Parsed parsed = parse(text);
  require(parsed.status);
  Rows rows;
  for (const auto& row : parsed.rows) rows.push_back(text_of(row));
  return rows;
}

::testing::AssertionResult refused(std::string_view text,
                                   std::initializer_list<std::string_view> parts) {
  return fails_with(parse(text).status, Code::kSyntax, parts);
}

// --- What is read

TEST(ScheduleText, Golden) {
  EXPECT_EQ(rows_of("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"),
            (Rows{"0F0,0F1,0B0,0B1", "1F0,1B0,1F1,1B1"}));
  EXPECT_EQ(rows_of("0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1I1,1W0,1W1\n"),
            (Rows{"0F0,0F1,0I0,0W0,0I1,0W1", "1F0,1I0,1F1,1I1,1W0,1W1"}));
  const std::string zb_v0 =
      "0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0I0,0W0,3F2,3I2,3W2,0I1,0W1,0I2,0W2";
  const std::string zb_v1 =
      "1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1I1,2I2,1I2,1W1,2W2,1W2";
  const Parsed zb_v = parse(zb_v0 + "\r\n" + zb_v1 + "\r\n");
  ASSERT_TRUE(zb_v.status.ok()) << zb_v.status.text();
  EXPECT_EQ(zb_v.note, "");
  EXPECT_EQ(print_schedule_text(zb_v.rows), zb_v0 + "\n" + zb_v1 + "\n");
}

TEST(ScheduleText, GoldenTextsAreTheNamedSchedules) {
  const auto tasks = make_step(chain(2), 2);
  const auto named = [&](std::string_view name) {
    return Rows{text_of(order_of(*named_hint(name), *tasks, 0)),
                text_of(order_of(*named_hint(name), *tasks, 1))};
  };
  EXPECT_EQ(rows_of("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"), named("1f1b"));
  EXPECT_EQ(rows_of("0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1I1,1W0,1W1\n"), named("zb-h1"));
}

TEST(ScheduleText, Pairs) {
  EXPECT_EQ(rows_of("0F2,3F0,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2\n"),
            Rows{"0F2,3F0,0F3,3B1,3F2,0B0,3B2"});
  EXPECT_EQ(rows_of(" ( 0F3 ;\t3B1 )OVERLAP_F_B \n"), Rows{"0F3,3B1"});
  EXPECT_EQ(rows_of("(0F3)OVERLAP_F_B"), Rows{"0F3"});
}

TEST(ScheduleText, LineEndsAndBlanks) {
  const Rows expected = {"0F0,0B0", "1F0,1B0"};
  EXPECT_EQ(rows_of("0F0,0B0\n1F0,1B0\n"), expected);
  EXPECT_EQ(rows_of("0F0,0B0\n1F0,1B0"), expected) << "no end of line at the end";
  EXPECT_EQ(rows_of("0F0,0B0\r\n1F0,1B0\r\n"), expected);
  EXPECT_EQ(rows_of("0F0,0B0\r\n1F0,1B0\r"), expected);
  EXPECT_EQ(rows_of("0F0,0B0\n1F0,1B0\r\n"), expected) << "mixed";
  EXPECT_EQ(rows_of(" 0F0 ,\t0B0\t\n  1F0  ,  1B0  \n"), expected);
}

TEST(ScheduleText, IdleCellsAndRowsOfDifferentLength) {
  EXPECT_EQ(rows_of("0F0,0F1,,,0B0,0B1\n,1F0,1F1,1B0,1B1\n"),
            (Rows{"0F0,0F1,0B0,0B1", "1F0,1F1,1B0,1B1"}));
  EXPECT_EQ(rows_of(",,0F0, ,\t,\n"), Rows{"0F0"});
  EXPECT_EQ(rows_of("0F0\n\n2F0\n"), (Rows{"0F0", "", "2F0"})) << "an empty row is a rank";
  EXPECT_EQ(rows_of("\n"), Rows{""});
  EXPECT_EQ(rows_of("\r\n,,\n"), (Rows{"", ""}));
}

TEST(ScheduleText, Numbers) {
  EXPECT_EQ(rows_of("2147483647F2147483647\n"), Rows{"2147483647F2147483647"});
  EXPECT_EQ(rows_of("007F00\n"), Rows{"7F0"});
}

TEST(ScheduleText, OldStyle) {
  const Parsed old = parse("0F0,0F1,0B0,0W0,0B1,0W1\n1F0,1B0,1F1,1B1\n2F0,2B0,2W0\n");
  require(old.status);
  EXPECT_EQ(print_schedule_text(old.rows),
            "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1B0,1F1,1B1\n2F0,2I0,2W0\n");
  EXPECT_NE(old.note.find("B was read as the input gradient I for stages 0, 2,"), std::string::npos)
      << old.note;
  // The same text in today's spelling needs no note.
  const Parsed again = parse(print_schedule_text(old.rows));
  EXPECT_EQ(again.note, "");
  EXPECT_EQ(again.rows, old.rows);
}

TEST(ScheduleText, NotOldStyle) {
  for (const char* text : {"0F0,0I0,0W0,0F1,0B1\n",  // has I
                           "0F0,0B0,0F1,0B1,0W1\n",  // fewer W than B
                           "0F0,0B0\n", "0F0\n"}) {
    const Parsed parsed = parse(text);
    require(parsed.status);
    EXPECT_EQ(parsed.note, "");
    EXPECT_EQ(print_schedule_text(parsed.rows), text);
  }
}

TEST(ScheduleText, OldStyleInsidePairsAndOverRows) {
  const Parsed parsed = parse("(0F1;0B0)OVERLAP_F_B\n0F0,0W0\n");
  require(parsed.status);
  EXPECT_EQ(print_schedule_text(parsed.rows), "0F1,0I0\n0F0,0W0\n");
  EXPECT_NE(parsed.note, "");
}

// --- What is refused

TEST(ScheduleTextErrors, Empty) {
  EXPECT_TRUE(refused("", {"empty", "row per rank"}));
}

TEST(ScheduleTextErrors, RowAndColumn) {
  EXPECT_TRUE(refused("x", {"row 1, column 1", "\"x\""}));
  EXPECT_TRUE(refused("0F0,,x\n", {"row 1, column 3", "\"x\""}));
  EXPECT_TRUE(refused("0F0\n\r\n1F0 , 1F1,\t,1Z2\n", {"row 3, column 4", "\"1Z2\""}));
  EXPECT_TRUE(refused(",,,,,,,,,(0F0;x)OVERLAP_F_B", {"row 1, column 10", "(0F0;x)OVERLAP_F_B"}));
}

TEST(ScheduleTextErrors, TrailingJunk) {
  EXPECT_TRUE(refused("2F0zz\n", {"row 1, column 1", "\"2F0zz\"", "unexpected \"zz\""}));
  EXPECT_TRUE(refused("2F0 1\n", {"row 1, column 1", "unexpected \" 1\""}));
  EXPECT_TRUE(refused("0F0;0B0\n", {"unexpected \";0B0\""}));
  EXPECT_TRUE(refused("0F0,0F1.5\n", {"row 1, column 2", "unexpected \".5\""}));
  EXPECT_TRUE(refused("0F0\r\r\n", {"row 1, column 1", "unexpected"}));
  EXPECT_TRUE(refused("(0F0;0B0)OVERLAP_F_Bx\n", {"row 1, column 1", ")OVERLAP_F_B"}));
}

TEST(ScheduleTextErrors, UnknownType) {
  EXPECT_TRUE(refused("0F0,0X1\n", {"row 1, column 2", "\"X1\"", "F, B, I or W"}));
  EXPECT_TRUE(refused("0f0\n", {"unknown task type \"f0\"", "F, B, I or W"}));
  EXPECT_TRUE(refused("0\n", {"row 1, column 1", "unknown task type \"\"", "F, B, I or W"}));
  EXPECT_TRUE(refused("0-F0\n", {"unknown task type \"-F0\""}));
}

TEST(ScheduleTextErrors, MissingNumbers) {
  EXPECT_TRUE(refused("F0\n", {"row 1, column 1", "stage number", "\"F0\""}));
  EXPECT_TRUE(refused("-1F0\n", {"stage number", "\"-1F0\""}));
  EXPECT_TRUE(refused("+1F0\n", {"stage number", "\"+1F0\""}));
  EXPECT_TRUE(refused("0F\n", {"row 1, column 1", "\"0F\"", "microbatch number"}));
  EXPECT_TRUE(refused("0F-1\n", {"\"0F-1\"", "microbatch number"}));
  EXPECT_TRUE(refused("0F 1\n", {"\"0F 1\"", "microbatch number"}));
}

TEST(ScheduleTextErrors, NumbersTooLarge) {
  EXPECT_TRUE(refused("2147483648F0\n", {"row 1, column 1", "2147483648F0", "stage number"}));
  EXPECT_TRUE(refused("0F2147483648\n", {"0F2147483648", "microbatch number"}));
  EXPECT_TRUE(refused("0F99999999999999999999999\n", {"column 1", "microbatch number"}));
}

TEST(ScheduleTextErrors, Groups) {
  EXPECT_TRUE(refused("(0F0;0B0)\n", {"row 1, column 1", "must end in \")OVERLAP_F_B\""}));
  EXPECT_TRUE(refused("(0F0,0B0)OVERLAP_F_B\n", {"row 1, column 1", "\"(0F0\"", "must end in"}));
  EXPECT_TRUE(refused("()OVERLAP_F_B\n", {"column 1", "stage number"}));
  EXPECT_TRUE(refused("(0F0;)OVERLAP_F_B\n", {"column 1", "stage number"}));
  EXPECT_TRUE(refused("((0F0)OVERLAP_F_B)OVERLAP_F_B\n", {"column 1", "stage number"}));
  EXPECT_TRUE(refused("(\n", {"column 1", "must end in"}));
  EXPECT_TRUE(refused(")OVERLAP_F_B\n", {"column 1", "stage number"}));
}

TEST(ScheduleTextErrors, DuplicatesNameBothPlaces) {
  EXPECT_TRUE(
      refused("0F0,0F0\n", {"row 1, column 2", "0F0 already stands", "in row 1, column 1"}));
  EXPECT_TRUE(refused("0F0,,0B0\n1F0,0B0\n", {"row 2, column 2", "0B0", "row 1, column 3"}));
  EXPECT_TRUE(refused("0F0,(1F0;1F0)OVERLAP_F_B\n", {"1F0", "in row 1, column 2"}));
  EXPECT_TRUE(refused("0F0,00F00\n", {"row 1, column 2", "0F0 already", "row 1, column 1"}));
}

TEST(ScheduleTextErrors, OutputsAreLeftAlone) {
  std::vector<std::vector<Task>> rows = {{task_of(7, TaskKind::kForward, 7)}};
  std::string note = "before";
  EXPECT_FALSE(parse_schedule_text("0F0,x", rows, note).ok());
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(text_of(rows[0]), "7F7");
  EXPECT_EQ(note, "before");
}

// Error texts go into reports, logs and C strings: whatever stands in the file, they stay short and
// printable.
TEST(ScheduleTextErrors, TextsAreShortAndPrintable) {
  const std::string junk(100000, 'x');
  const std::string binary("\x00\x01\x7f\xff\n", 4);
  for (const std::string& cell :
       {junk, "0" + junk, "0F" + junk, "0F0" + junk, "(" + junk, "(0F0;" + junk + ")OVERLAP_F_B",
        binary, "0" + binary, "0F" + binary, "0F0" + binary, "(0F0;0F1" + binary + ")OVERLAP_F_B",
        std::string(100000, '9') + "F0", "0F" + std::string(100000, '9')}) {
    const Status status = parse("0F0," + cell).status;
    EXPECT_EQ(status.code(), Code::kSyntax);
    EXPECT_LT(status.text().size(), 300U) << printable(status.text());
    EXPECT_TRUE(std::all_of(status.text().begin(), status.text().end(), [](char c) {
      return c >= ' ' && c <= '~';
    })) << printable(status.text());
  }
}

// --- Writing and reading again

TEST(ScheduleText, Print) {
  const std::vector<std::vector<Task>> rows = {
      {task_of(0, TaskKind::kForward, 1), task_of(0, TaskKind::kInputGradient, 1)},
      {},
      {task_of(12, TaskKind::kBackward, 34), task_of(1, TaskKind::kWeightGradient, 0)}};
  EXPECT_EQ(print_schedule_text(rows), "0F1,0I1\n\n12B34,1W0\n");
  EXPECT_EQ(print_schedule_text({}), "");
}

TEST(ScheduleText, NamedSchedulesComeBack) {
  for (int32_t p = 1; p <= 6; ++p) {
    for (int32_t m = 1; m <= 10; ++m) {
      for (std::string_view name : Hint::general_names()) {
        SCOPED_TRACE(std::string(name) + ", p " + std::to_string(p) + ", m " + std::to_string(m));
        const auto tasks = make_step(chain(p), m);
        std::vector<std::vector<Task>> rows;
        for (int32_t r = 0; r < p; ++r) rows.push_back(order_of(*named_hint(name), *tasks, r));
        const std::string text = print_schedule_text(rows);
        const Parsed parsed = parse(text);
        ASSERT_TRUE(parsed.status.ok()) << parsed.status.text();
        ASSERT_EQ(parsed.rows, rows);
        ASSERT_EQ(parsed.note, "");
        ASSERT_EQ(print_schedule_text(parsed.rows), text);
        if (name == "bf" || name == "bfw") continue;  // no orders: backwards before forwards
        for (int32_t r = 0; r < p; ++r) {
          ASSERT_EQ(order_of(*text_hint(text), *tasks, r), rows[static_cast<size_t>(r)]);
          ASSERT_EQ(text_hint(text)->rank_of(StageId(r)), RankId(r));
        }
      }
    }
  }
}

}  // namespace
}  // namespace rrfp::core
