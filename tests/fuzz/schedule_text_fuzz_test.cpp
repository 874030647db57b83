// SPDX-License-Identifier: Apache-2.0
//
// Mutated schedule texts, of tasks only and complete ones. Whatever the bytes, reading must either
// succeed, and then writing and reading again changes nothing, or name the first bad cell by row
// and column. A failure, also a crash, prints the seed and the command that replays it:
//   RRFP_FUZZ_SEED=<seed>   runs this one text only
//   RRFP_FUZZ_RUNS=<count>  runs that many texts of each kind instead of kRunsDefault
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/hint.h"
#include "engine/core/schedule_lowering.h"
#include "engine/core/schedule_text.h"
#include "tests/fuzz/seeds.h"
#include "tests/unit/fixtures.h"

namespace rrfp::core {
namespace {

using fixtures::printable;
using fixtures::Random;
using Rows = std::vector<std::vector<Task>>;

constexpr uint64_t kRunsDefault = 20000;

/// Calls run(seed) for many seeds.
template <class Run>
void for_each_seed(Run run) {
  fuzz::for_each_seed("tests/fuzz/schedule_text_fuzz_test", kRunsDefault, run);
}

// --- Where an error must point

struct Cell {
  size_t begin;  // offset in the text
  std::string_view text;
};

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// Cells by row, cut without regard to what stands in them.
std::vector<std::vector<Cell>> cells_of(std::string_view text) {
  std::vector<std::vector<Cell>> rows;
  for (size_t at = 0; at < text.size();) {
    const size_t newline = std::min(text.find('\n', at), text.size());
    size_t end = newline;
    if (end > at && text[end - 1] == '\r') --end;
    auto& row = rows.emplace_back();
    for (size_t begin = at;;) {
      const size_t comma = std::min(text.find(',', begin), end);
      row.push_back({begin, trimmed(text.substr(begin, comma - begin))});
      if (comma == end) break;
      begin = comma + 1;
    }
    at = newline + 1;
  }
  return rows;
}

/// The number after `key`, which must be there.
size_t number_after(const std::string& text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string::npos) throw std::runtime_error("no \"" + std::string(key) + "\"");
  return std::stoul(text.substr(at + key.size()));
}

// --- What must hold for any text

struct Parsed {
  Status status;
  Rows rows;
  std::string note;
};

Parsed parse(std::string_view text) {
  // Exactly as many bytes as the text has, so that the sanitizer sees a read beyond them.
  const std::vector<char> bytes(text.begin(), text.end());
  Parsed parsed;
  parsed.status =
      parse_schedule_text(std::string_view(bytes.data(), bytes.size()), parsed.rows, parsed.note);
  return parsed;
}

void check_read(std::string_view text, const Parsed& parsed) {
  ASSERT_EQ(parsed.rows.size(), cells_of(text).size());
  std::set<Task> all;
  for (const auto& row : parsed.rows) {
    for (const Task& task : row) {
      ASSERT_TRUE(all.insert(task).second) << to_string(task) << " was read twice";
      ASSERT_TRUE(task.stage.valid() && task.microbatch.valid()) << to_string(task);
    }
  }
  const std::string printed = print_schedule_text(parsed.rows);
  const Parsed again = parse(printed);
  ASSERT_TRUE(again.status.ok()) << printable(again.status.text());
  ASSERT_EQ(again.rows, parsed.rows);
  ASSERT_EQ(again.note, "");
  ASSERT_EQ(print_schedule_text(again.rows), printed);
}

void check_refused(std::string_view text, const Parsed& parsed) {
  const std::string error = parsed.status.text();
  // Actions that can be read may still not fit together.
  const bool misfit = parsed.status.code() == Code::kBadOrder;
  ASSERT_TRUE(misfit || parsed.status.code() == Code::kSyntax) << printable(error);
  ASSERT_TRUE(parsed.rows.empty() && parsed.note.empty()) << "outputs are written on success only";
  if (text.empty()) {
    ASSERT_NE(error.find("empty"), std::string::npos) << printable(error);
    return;
  }
  const auto cells = cells_of(text);
  const size_t row = number_after(error, "row ");
  const size_t column = number_after(error, ", column ");
  ASSERT_TRUE(row >= 1 && row <= cells.size()) << printable(error);
  ASSERT_TRUE(column >= 1 && column <= cells[row - 1].size()) << printable(error);
  const Cell& cell = cells[row - 1][column - 1];
  if (error.find("empty cell") != std::string::npos) {
    ASSERT_TRUE(cell.text.empty()) << printable(error) << " shows " << printable(cell.text);
    return;
  }
  ASSERT_FALSE(cell.text.empty()) << "an idle cell is not wrong: " << printable(error);
  if (misfit) return;
  ASSERT_NE(printable(error).find("\"" + printable(cell.text.substr(0, 40))), std::string::npos)
      << printable(error) << " does not show " << printable(cell.text);
  // It is the first one: what stands before it can be read.
  if (cell.begin > 0) {
    const Status before = parse(text.substr(0, cell.begin)).status;
    ASSERT_TRUE(before.code() != Code::kSyntax ||
                before.text().find("empty cell") != std::string::npos)
        << printable(error);
  }
}

/// A hint checks more; its errors name a task and, in what a row can be blamed for, its rank.
void check_hint(std::string_view text, const Parsed& parsed) {
  std::shared_ptr<const Hint> hint;
  const Status status = Hint::text(text, hint);
  ASSERT_EQ(hint != nullptr, status.ok());
  if (!parsed.status.ok()) {
    ASSERT_EQ(status.code(), parsed.status.code());
    ASSERT_EQ(status.text(), parsed.status.text());
    return;
  }
  if (status.ok()) {
    ASSERT_EQ(hint->note(), parsed.note);
    return;
  }
  bool names_a_task = false;
  for (const auto& row : parsed.rows) {
    for (const Task& task : row) {
      names_a_task = names_a_task || status.text().find(to_string(task)) != std::string::npos;
    }
  }
  ASSERT_TRUE(names_a_task) << printable(status.text());
  if (status.code() == Code::kOutOfRange) return;
  ASSERT_EQ(status.code(), Code::kBadOrder);
  ASSERT_LT(number_after(status.text(), "rank "), parsed.rows.size()) << status.text();
}

void check(std::string_view text) {
  const Parsed parsed = parse(text);
  SCOPED_TRACE("text: " + printable(text));
  if (parsed.status.ok()) {
    check_read(text, parsed);
  } else {
    check_refused(text, parsed);
  }
  if (!::testing::Test::HasFatalFailure()) check_hint(text, parsed);
}

// --- Texts

std::string valid_text(Random& random) {
  if (random.chance(30)) {
    constexpr std::string_view kTexts[] = {
        "0F0,0F1,,,0B0,0B1\r\n,1F0,1B0,1F1,1B1\r\n",
        "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,"
        "(3F3;0B1)OVERLAP_F_B,3B3,0I2,0W2,0I3,0W3\n1F0,2F0,1F1,2F1,1F2,2B0\n",
        "0F0,0B0,0W0\n1F0,1B0,1W0\n", " 0F0 ,\t0B0 \n\n2F2147483647\n", "0F0"};
    return std::string(kTexts[random.below(5)]);
  }
  const int32_t p = 1 + random.below(4);
  const auto tasks = fixtures::make_step(fixtures::chain(p), 1 + random.below(5));
  const auto name = Hint::names()[static_cast<size_t>(random.below(5))];
  Rows rows;
  for (int32_t r = 0; r < p; ++r) {
    rows.push_back(fixtures::order_of(*fixtures::named_hint(name), *tasks, r));
  }
  if (random.chance(50)) return print_schedule_text(rows);
  std::vector<std::vector<Action>> lowered;
  const LoweringOptions options = {random.chance(50), random.chance(50)};
  // The priorities are no order, so they may wait in a circle.
  if (!lower_schedule(rows, options, lowered).ok()) return print_schedule_text(rows);
  return print_schedule_actions(lowered);
}

std::string random_piece(Random& random) {
  constexpr std::string_view kPieces[] = {",",          "\n",          "\r\n",
                                          "(",          ";",           ")OVERLAP_F_B",
                                          "F",          "B",           "I",
                                          "W",          "0",           "2147483647",
                                          "2147483648", "-1",          "99999999999999999999",
                                          "SEND_F",     "RECV_B",      "UNSHARD",
                                          "RESHARD",    "REDUCE_GRAD", " ",
                                          "\t",         "1F1",         "(1F1;0B0)OVERLAP_F_B"};
  if (random.chance(75)) return std::string(kPieces[random.below(24)]);
  return std::string(1 + static_cast<size_t>(random.below(3)),
                     static_cast<char>(random.chance(20) ? 0 : random.below(256)));
}

/// A piece of the text that begins and ends at separators: a cell or a row.
std::pair<size_t, size_t> random_unit(Random& random, const std::string& text) {
  const std::string_view separators = random.chance(70) ? ",\n" : "\n";
  const auto at = static_cast<size_t>(random.below(static_cast<int32_t>(text.size())));
  const size_t before = at == 0 ? std::string::npos : text.find_last_of(separators, at - 1);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  const size_t end = std::min(text.find_first_of(separators, at), text.size() - 1);
  return {begin, end + 1 - std::min(begin, end)};
}

void mutate(Random& random, std::string& text) {
  if (text.empty()) {
    text = random_piece(random);
    return;
  }
  const auto at = static_cast<size_t>(random.below(static_cast<int32_t>(text.size())));
  const auto [begin, length] = random_unit(random, text);
  const std::string unit = text.substr(begin, length);
  switch (random.below(8)) {
    case 0: text[at] = static_cast<char>(text[at] ^ (1 << random.below(8))); break;
    case 1: text[at] = random_piece(random)[0]; break;
    case 2: text.insert(at, random_piece(random)); break;
    case 3: text.erase(at, static_cast<size_t>(1 + random.below(4))); break;
    case 4: text.erase(begin, length); break;  // delete a cell or a row
    case 5: text.insert(begin, unit); break;   // duplicate it
    case 6:                                    // move it
      text.erase(begin, length);
      text.insert(std::min(at, text.size()), unit);
      break;
    case 7: text.resize(at); break;
  }
}

TEST(ScheduleTextFuzz, MutatedTexts) {
  int read = 0;
  for_each_seed([&](uint64_t seed) {
    Random random(seed);
    std::string text = valid_text(random);
    check(text);
    for (int k = random.below(6); k >= 0; --k) mutate(random, text);
    check(text);
    read += parse(text).status.ok() ? 1 : 0;
  });
  // The mutations must leave enough texts that can still be read, or only errors are tried.
  if (std::getenv("RRFP_FUZZ_SEED") == nullptr && std::getenv("RRFP_FUZZ_RUNS") == nullptr) {
    EXPECT_GT(read, static_cast<int>(kRunsDefault / 20));
  }
}

TEST(ScheduleTextFuzz, RandomBytes) {
  for_each_seed([](uint64_t seed) {
    Random random(seed);
    std::string text;
    for (int32_t k = random.below(200); k > 0; --k) {
      text += random.chance(50) ? static_cast<char>(random.below(256)) : random_piece(random)[0];
    }
    check(text);
  });
}

// Error texts end up in C strings, logs and reports.
TEST(ScheduleTextFuzz, ErrorTextsAreShortAndPrintable) {
  for_each_seed([](uint64_t seed) {
    Random random(seed);
    std::string text = valid_text(random);
    for (int k = random.below(6); k >= 0; --k) mutate(random, text);
    const std::string error = parse(text).status.text();
    EXPECT_LT(error.size(), 300U);
    EXPECT_TRUE(std::all_of(error.begin(), error.end(), [](char c) {
      return c >= ' ' && c <= '~';
    })) << printable(error);
  });
}

// --- Sizes

std::string joined(int32_t count, char separator, std::string_view each) {
  std::string text;
  for (int32_t k = 0; k < count; ++k) {
    if (k > 0) text += separator;
    text += each;
    if (each.ends_with('F')) text += std::to_string(k);
  }
  return text;
}

TEST(ScheduleTextSizes, LongRows) {
  constexpr int32_t kCells = 100'000;
  const std::string row = joined(kCells, ',', "0F");
  const Parsed parsed = parse(row);
  ASSERT_TRUE(parsed.status.ok()) << printable(parsed.status.text());
  ASSERT_EQ(parsed.rows.size(), 1U);
  ASSERT_EQ(parsed.rows[0].size(), static_cast<size_t>(kCells));
  check_read(row, parsed);
  check_refused(row + ",x", parse(row + ",x"));
  EXPECT_EQ(number_after(parse(row + ",x").status.text(), "column "), 100'001U);
  EXPECT_EQ(number_after(parse(row + ",0F0").status.text(), "in row 1, column "), 1U);
}

TEST(ScheduleTextSizes, ManyRowsAndManyIdleCells) {
  EXPECT_EQ(parse(joined(100'000, '\n', "")).rows.size(), 99'999U);
  EXPECT_EQ(parse(std::string(100'000, ',')).rows, Rows(1));
  EXPECT_EQ(parse(std::string(100'000, ' ')).rows, Rows(1));
  EXPECT_EQ(number_after(parse(std::string(100'000, '\n') + "x").status.text(), "row "), 100'001U);
  EXPECT_EQ(number_after(parse(std::string(100'000, ',') + "x").status.text(), "column "),
            100'001U);
}

TEST(ScheduleTextSizes, LongCells) {
  const std::string pair = "(" + joined(100'000, ';', "0F") + ")OVERLAP_F_B";
  const Parsed parsed = parse(pair);
  ASSERT_TRUE(parsed.status.ok()) << printable(parsed.status.text());
  EXPECT_EQ(parsed.rows[0].size(), 100'000U);
  for (const char c : {'(', ')', ';', '0', '9', 'F', 'x', '\0', '\r', '"'}) {
    const std::string run(100'000, c);
    for (const std::string& cell : {run, "0" + run, "0F" + run, "0F0" + run, "(" + run,
                                    "(0F0;" + run + ")OVERLAP_F_B", run + "0F0"}) {
      check("1F1,," + cell + ",1B1\n");
    }
  }
}

TEST(ScheduleTextSizes, HugeNumbers) {
  for (const char* number : {"2147483647", "2147483648", "4294967296", "9223372036854775808",
                             "18446744073709551616", "00000000000000000000000000000000001"}) {
    check(std::string(number) + "F0\n");
    check("0F" + std::string(number) + "\n");
    check("0F0,(0F1;" + std::string(number) + "B" + number + ")OVERLAP_F_B\n");
  }
}

}  // namespace
}  // namespace rrfp::core
