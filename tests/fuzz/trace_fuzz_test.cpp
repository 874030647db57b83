// SPDX-License-Identifier: Apache-2.0
//
// Mutated trace files. Whatever the bytes, reading must either succeed, and then the timeline can
// be written, read back the same, and drawn; or fail with an error that names the file. A failure,
// also a crash, prints the seed and the command that replays it:
//   RRFP_FUZZ_SEED=<seed>   runs this one file only
//   RRFP_FUZZ_RUNS=<count>  runs that many files of each kind instead of kRunsDefault
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "engine/trace/html.h"
#include "engine/trace/svg.h"
#include "engine/trace/trace_events.h"
#include "tests/fuzz/seeds.h"
#include "tests/support/splitmix.h"
#include "tests/trace/sample.h"
#include "tests/train/scratch.h"

namespace rrfp::trace {
namespace {

using core::Code;
using core::Status;
using test::Splitmix;

constexpr uint64_t kRunsDefault = 2000;

template <class Run>
void for_each_seed(Run run) {
  fuzz::for_each_seed("tests/fuzz/trace_fuzz_test", kRunsDefault, run);
}

std::string random_piece(Splitmix& random) {
  constexpr std::string_view kPieces[] = {"{",
                                          "}",
                                          "[",
                                          "]",
                                          ",",
                                          ":",
                                          "\"",
                                          "\\",
                                          "\\u0000",
                                          "\\ud800",
                                          "0",
                                          "7",
                                          "-1",
                                          "1e3",
                                          "1e300",
                                          "0.0005",
                                          "65535",
                                          "4503599627370",
                                          "18446744073709551615",
                                          "2147483648",
                                          "null",
                                          "true",
                                          "\"ph\":\"X\"",
                                          "\"cat\":\"idle\"",
                                          "\"reason\":\"credit\"",
                                          "\"traceEvents\":",
                                          "\"otherData\":{}",
                                          "\"stages\":[]",
                                          "[\"a\",\"b\"]",
                                          "{},",
                                          "\xff",
                                          "\xc3",
                                          "[[[[[[[["};
  if (random.percent(80)) return std::string(random.pick(kPieces));
  return std::string(static_cast<size_t>(random.between(1, 3)),
                     static_cast<char>(random.between(0, 255)));
}

void mutate(Splitmix& random, std::string& text) {
  if (text.empty()) {
    text = random_piece(random);
    return;
  }
  const auto at = static_cast<size_t>(random.between(0, static_cast<int64_t>(text.size()) - 1));
  const size_t begin = std::min(text.find_first_of(",{[:\"", at), text.size() - 1);
  const size_t end = std::min(text.find_first_of(",}]:\"", begin + 1), text.size() - 1);
  const std::string unit = text.substr(begin, end + 1 - begin);
  switch (random.between(0, 6)) {
    case 0: text[at] = static_cast<char>(text[at] ^ (1 << random.between(0, 7))); break;
    case 1: text.insert(at, random_piece(random)); break;
    case 2: text.erase(at, static_cast<size_t>(random.between(1, 4))); break;
    case 3: text.erase(begin, unit.size()); break;
    case 4: text.insert(begin, unit); break;
    case 5: {  // a figure changes
      const size_t digit = text.find_first_of("0123456789", at);
      if (digit != std::string::npos) text[digit] = static_cast<char>('0' + random.between(0, 9));
      break;
    }
    case 6: text.resize(at); break;
  }
}

/// True if it can be read.
bool check(const std::string& text) {
  Timeline timeline;
  const Status status = parse_trace_events("the path", text, timeline);
  if (!status.ok()) {
    EXPECT_TRUE(test::fails_with(status, Code::kBadData, {"the path"}));
    EXPECT_LT(status.text().size(), 500U);
    EXPECT_TRUE(std::all_of(status.text().begin(), status.text().end(),
                            [](char c) { return c >= ' ' && c <= '~'; }));
    return false;
  }
  // Once written, it begins at 0 and stays what it is.
  const std::string written = to_trace_events(timeline);
  Timeline again;
  test::require(parse_trace_events("the path", written, again));
  EXPECT_EQ(to_trace_events(again), written);
  if (timeline.ranks.size() > 100) return true;
  EXPECT_TRUE(to_svg(timeline).ends_with("</svg>\n"));
  EXPECT_TRUE(to_html(timeline).ends_with("</html>\n"));
  return true;
}

TEST(TraceFuzz, MutatedFiles) {
  const std::string good = to_trace_events(
      test::sample_timeline({.ranks = 2, .microbatches = 2, .steps = 1, .branches = 2}));
  int read = 0;
  for_each_seed([&](uint64_t seed) {
    Splitmix random(seed);
    std::string text = good;
    for (int64_t k = random.between(0, 3); k >= 0; --k) mutate(random, text);
    read += check(text) ? 1 : 0;
  });
  // Some must still be good, or only errors are tried.
  if (std::getenv("RRFP_FUZZ_SEED") == nullptr && std::getenv("RRFP_FUZZ_RUNS") == nullptr) {
    EXPECT_GT(read, static_cast<int>(kRunsDefault / 100));
  }
}

TEST(TraceFuzz, RandomPieces) {
  for_each_seed([&](uint64_t seed) {
    Splitmix random(seed);
    std::string text = random.percent(50) ? "{\"traceEvents\":[" : "[";
    for (int64_t k = random.between(0, 60); k > 0; --k) text += random_piece(random);
    check(text);
  });
}

}  // namespace
}  // namespace rrfp::trace
