// SPDX-License-Identifier: Apache-2.0
#include "engine/trace/trace_events.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/trace/sample.h"
#include "tests/train/scratch.h"

namespace rrfp::trace {
namespace {

using core::Code;
using core::Status;
using Json = nlohmann::json;

Timeline sample() {
  return test::sample_timeline({.ranks = 4, .microbatches = 8, .steps = 2});
}

/// A file with these events, and no more.
std::string with_events(const std::string& events) {
  return R"({"otherData":{"format":"rrfp-trace","version":1,"title":"t","source":"run","ranks":2},)"
         R"("traceEvents":[)" +
         events + "]}";
}

constexpr const char* kTask =
    R"({"ph":"X","pid":0,"tid":1,"name":"0F3","cat":"forward","ts":1.5,"dur":2,)"
    R"("args":{"step":7,"stage":0,"microbatch":3,"ready_us":1.25}})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Timeline must_read(const std::string& text) {
  Timeline out;
  test::require(parse_trace_events("the file", text, out));
  return out;
}

testing::AssertionResult refused(const std::string& text,
                                 std::initializer_list<std::string_view> parts) {
  Timeline out;
  out.title = "untouched";
  const Status status = parse_trace_events("the file", text, out);
  if (out.title != "untouched") return testing::AssertionFailure() << "the output was changed";
  if (status.text().find("the file") == std::string::npos) {
    return testing::AssertionFailure() << "no file in: " << status.text();
  }
  return test::fails_with(status, Code::kBadData, parts);
}

TEST(TraceEvents, AreReadAsTheyWereWritten) {
  for (const bool split : {false, true}) {
    for (const int32_t per_rank : {1, 2}) {
      const Timeline timeline = test::sample_timeline({.ranks = 3,
                                                       .stages_per_rank = per_rank,
                                                       .microbatches = 10,
                                                       .steps = 2,
                                                       .split_backward = split});
      EXPECT_EQ(must_read(to_trace_events(timeline)), timeline);
    }
  }
}

TEST(TraceEvents, KeepTheNamesOfStages) {
  Timeline timeline = test::sample_timeline({.ranks = 4, .microbatches = 4, .branches = 2});
  ASSERT_EQ(timeline.stages.size(), 4U);
  EXPECT_EQ(must_read(to_trace_events(timeline)), timeline);
  timeline.stages = {{"\"a\" \\ \n <b>", "\xC3\xA4"}, {"", ""}, {"x", ""}};
  EXPECT_EQ(must_read(to_trace_events(timeline)), timeline);
}

TEST(TraceEvents, SayTheBranchOfATaskIfThereAreSeveral) {
  Timeline timeline = test::sample_timeline({.ranks = 2, .microbatches = 4, .branches = 2});
  const auto branches = [&] {
    std::map<std::string, std::string> found;
    const Json trace = Json::parse(to_trace_events(timeline));
    for (const Json& event : trace["traceEvents"]) {
      if (event["ph"] != "X" || event["cat"] == "idle") continue;
      const Json& args = event["args"];
      found[args.contains("stage") ? args["stage"].dump() : ""] = args.value("branch", "none");
    }
    return found;
  };
  using Found = std::map<std::string, std::string>;
  EXPECT_EQ(branches(),
            (Found{{"0", "branch0.embedding"}, {"1", "branch1.embedding"}, {"", "none"}}));
  timeline.stages[1].branch = "";
  EXPECT_EQ(branches(), (Found{{"0", "branch0.embedding"}, {"1", "none"}, {"", "none"}}));
  timeline.stages[1].branch = "branch0.embedding";
  EXPECT_EQ(branches(), (Found{{"0", "none"}, {"1", "none"}, {"", "none"}}));
}

TEST(TraceEvents, KeepUnknownTimesRanksWithoutSpansAndTexts) {
  Timeline timeline = sample();
  timeline.ranks.emplace_back();
  timeline.title = "\"quotes\", \\ and \n <tags>, \xC3\xA4";
  timeline.facts = {{"b", "1"}, {"a", "2"}, {"b", ""}};
  timeline.ranks[1].tasks[0].ready_ns = kUnknownTime;
  timeline.ranks[1].messages[0].sent_ns = kUnknownTime;
  EXPECT_EQ(must_read(to_trace_events(timeline)), timeline);
  EXPECT_EQ(must_read(to_trace_events({})), Timeline());
}

TEST(TraceEvents, BeginAtZero) {
  const Timeline timeline = sample();
  Timeline later = timeline;
  constexpr int64_t kShiftNs = 1'234'567'890'123'456;
  for (RankSpans& rank : later.ranks) {
    for (TaskSpan& span : rank.tasks) {
      span.begin_ns += kShiftNs;
      span.end_ns += kShiftNs;
      if (span.ready_ns != kUnknownTime) span.ready_ns += kShiftNs;
    }
    for (IdleSpan& span : rank.idles) {
      span.begin_ns += kShiftNs;
      span.end_ns += kShiftNs;
    }
    for (Message& message : rank.messages) {
      message.sent_ns += kShiftNs;
      message.arrived_ns += kShiftNs;
    }
  }
  EXPECT_EQ(must_read(to_trace_events(later)), timeline);
}

TEST(TraceEvents, LoseNoNanosecondInWeeks) {
  Timeline timeline;
  timeline.ranks.resize(1);
  const int64_t late_ns = kTraceTimeMaxNs - 4096;
  for (int64_t k = 0; k < 2000; ++k) {
    timeline.ranks[0].idles.push_back(
        {IdleKind::kInput, 0, k == 0 ? 0 : late_ns + k, late_ns + k + 1});
  }
  EXPECT_EQ(must_read(to_trace_events(timeline)), timeline);
}

TEST(TraceEvents, ReplaceWhatIsNotUtf8) {
  Timeline timeline;
  timeline.title = "a\xFF";
  timeline.facts = {{"\xC3", "b"}};
  const Timeline read = must_read(to_trace_events(timeline));
  EXPECT_EQ(read.title, "a\xEF\xBF\xBD");
  EXPECT_EQ(read.facts[0].first, "\xEF\xBF\xBD");
}

// What the viewers of this format need.
TEST(TraceEvents, AreWhatViewersExpect) {
  const Timeline timeline = sample();
  const Json json = Json::parse(to_trace_events(timeline));
  EXPECT_EQ(json["displayTimeUnit"], "ms");
  std::map<std::string, size_t> phases;
  std::map<int64_t, std::vector<std::pair<double, double>>> tracks;
  for (const Json& event : json["traceEvents"]) {
    ++phases[event["ph"]];
    EXPECT_TRUE(event["pid"].is_number_integer());
    EXPECT_TRUE(event["name"].is_string());
    if (event["ph"] == "X") {
      tracks[event["tid"]].emplace_back(event["ts"].get<double>(), event["dur"].get<double>());
    }
  }
  size_t messages = 0;
  for (const RankSpans& rank : timeline.ranks) messages += rank.messages.size();
  EXPECT_EQ(phases["s"], messages);
  EXPECT_EQ(phases["f"], messages);
  EXPECT_EQ(phases["M"], 1 + 2 * timeline.ranks.size());
  EXPECT_EQ(tracks.size(), timeline.ranks.size());
  const auto inside = [&](const Json& event) {
    const double ts = event["ts"];
    for (const auto& [begin, length] : tracks[event["tid"]]) {
      if (begin <= ts && ts <= begin + length) return true;
    }
    return false;
  };
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] == "s" || event["ph"] == "f") {
      EXPECT_TRUE(inside(event)) << event;
    }
  }
}

TEST(TraceEvents, ReadersIgnoreWhatTheyDoNotKnow) {
  const std::string extended =
      replaced(kTask, "\"args\":{", "\"new\":[{}],\"args\":{\"x\":{\"y\":1},");
  const Timeline read = must_read(with_events(
      R"({"ph":"C","name":"counter","ts":1,"args":{"a":1}},{},{"ph":7},{"ph":"X","cat":"gpu"},)" +
      extended));
  ASSERT_EQ(read.ranks.size(), 2U);
  const TaskSpan expected = {
      SpanKind::kForward, core::StageId(0), core::MicrobatchId(3), 7, 1250, 1500, 3500};
  EXPECT_EQ(read.ranks[1].tasks, std::vector{expected});
  // Events before the head, other heads, other fields.
  EXPECT_EQ(must_read(std::string(R"({"x":[[{"ph":"X","cat":"idle"}]],"traceEvents":[)") + kTask +
                      R"(],"otherData":{"format":"other","ranks":"many"},"traceEvents2":7})")
                .ranks,
            read.ranks);
}

TEST(TraceEvents, AnArrayAloneIsATraceToo) {
  const Timeline read = must_read(std::string("[") + kTask + "]");
  EXPECT_EQ(read.ranks.size(), 2U);
  EXPECT_EQ(read.ranks[1].tasks.size(), 1U);
}

TEST(TraceEvents, DamageIsNamed) {
  EXPECT_TRUE(refused("", {"not JSON", "byte 1"}));
  EXPECT_TRUE(refused("{\"traceEvents\":[", {"not JSON", "byte"}));
  EXPECT_TRUE(refused("{\"traceEvents\":[{\"name\":\"\xFF\"}]}", {"not JSON in UTF-8"}));
  EXPECT_TRUE(refused("5", {"traceEvents"}));
  EXPECT_TRUE(refused("{}", {"traceEvents"}));
  EXPECT_TRUE(refused(R"({"traceEvents":5})", {"traceEvents is not an array"}));
  EXPECT_TRUE(refused(R"({"traceEvents":{"a":{}}})", {"traceEvents is not an array"}));
  EXPECT_TRUE(refused(R"({"traceEvents":[],"traceEvents":[]})", {"\"traceEvents\" twice"}));
  EXPECT_TRUE(refused(R"({"traceEvents":[]})", {"no event of rrfp"}));
  EXPECT_TRUE(refused(with_events("{},3"), {"event 1 is not an object"}));
  EXPECT_TRUE(refused(with_events("[]"), {"event 0 is not an object"}));
  EXPECT_TRUE(refused(with_events(std::string(40, '[') + std::string(40, ']')), {"event 0"}));
  EXPECT_TRUE(
      refused("{\"a\":" + std::string(40, '[') + std::string(40, ']') + "}", {"deeper than 32"}));
  EXPECT_TRUE(refused(with_events("{\"ts\":1e999}"), {"no double"}));
}

TEST(TraceEvents, WrongFieldsAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("ts":1.5)", R"("ts":"x")"},   {R"("ts":1.5)", R"("ts":-1)"},
      {R"("ts":1.5)", R"("ts":1e13)"},  {R"("dur":2)", R"("dur":-2)"},
      {R"("dur":2)", R"("dur":null)"},  {R"("tid":1)", R"("tid":-1)"},
      {R"("tid":1)", R"("tid":65536)"}, {R"("tid":1)", R"("tid":1.5)"},
      {R"("step":7)", R"("step":"7")"}, {R"("stage":0)", R"("stage":2147483648)"},
      {R"("stage":0)", R"("sta":0)"},   {R"("microbatch":3)", R"("microbatch":[])"},
      {R"("args":{)", R"("argh":{)"},   {R"("ready_us":1.25)", R"("ready_us":-3)"},
  };
  for (const auto& [from, to] : cases) {
    const std::string field(from + 1, std::string_view(from).find('"', 1) - 1);
    EXPECT_TRUE(refused(with_events(std::string("{},") + replaced(kTask, from, to)),
                        {"event 1 (\"0F3\")", field, "expected"}))
        << to;
  }
  EXPECT_TRUE(refused(
      with_events(
          R"({"ph":"X","tid":0,"cat":"idle","ts":0,"dur":1,"args":{"step":1,"reason":"lazy"}})"),
      {"event 0", "args.reason is \"lazy\"", "one of input, memory"}));
  EXPECT_TRUE(refused(with_events(R"({"ph":"s","tid":0,"cat":"message","name":"activation","args":)"
                                  R"({"step":1,"to_rank":1}})"),
                      {"event 0", "args.arrived_us is missing"}));
}

TEST(TraceEvents, DurationsThatNoSumCanHoldAreRefused) {
  // Each of them is possible: 2^51 ns.
  const std::string span = replaced(kTask, R"("dur":2)", R"("dur":2251799813685)");
  std::string events = span;
  for (int k = 0; k < 511; ++k) events += "," + span;
  Timeline read;
  EXPECT_TRUE(parse_trace_events("x", with_events(events), read).ok());
  EXPECT_GT(summarize(read).ranks[1].computing_ns, int64_t{1} << 59);
  EXPECT_TRUE(
      refused(with_events(events + "," + span + "," + span), {"dur is 2251799813685", "36 years"}));
}

TEST(TraceEvents, WrongHeadsAreNamed) {
  const std::string good = with_events(kTask);
  EXPECT_TRUE(
      refused(replaced(good, "\"version\":1", "\"version\":2"), {"version", "is 2, expected 1"}));
  EXPECT_TRUE(
      refused(replaced(good, "\"ranks\":2", "\"ranks\":1"), {"otherData.ranks is 1", "rank 1"}));
  EXPECT_TRUE(refused(replaced(good, "\"ranks\":2", "\"ranks\":1000000"), {"otherData.ranks"}));
  EXPECT_TRUE(refused(replaced(good, "\"title\":\"t\"", "\"title\":5"), {"otherData.title is 5"}));
  EXPECT_TRUE(refused(replaced(good, "\"ranks\":2", "\"ranks\":2,\"facts\":[[\"a\"]]"),
                      {"facts", "pairs"}));
  const std::pair<std::string, std::string_view> stages[] = {
      {"7", "otherData.stages is 7"},
      {"{}", "otherData.stages is an object"},
      {"[7]", "otherData.stages has 7"},
      {R"([["a","b"],["c"]])", "otherData.stages has an array"},
      {R"([["a","b","c"]])", "expected pairs of texts of at most 4096 bytes"},
      {R"([["a",null]])", "pairs of texts"},
      {"[[\"a\",\"" + std::string(kTraceNameBytesMax + 1, 'x') + "\"]]", "4096 bytes"},
  };
  for (const auto& [value, part] : stages) {
    EXPECT_TRUE(refused(replaced(good, "\"ranks\":2", "\"ranks\":2,\"stages\":" + value), {part}))
        << value;
  }
  EXPECT_TRUE(
      refused(replaced(good, "\"t\"", "\"" + std::string(kTraceTextBytesMax + 1, 'x') + "\""),
              {"title has"}));
}

// Cut anywhere, it is refused, never taken for less.
TEST(TraceEvents, EveryCutIsRefused) {
  const std::string text = to_trace_events(test::sample_timeline({.ranks = 2, .microbatches = 2}));
  const size_t end = text.rfind('}');
  for (size_t bytes = 0; bytes <= end; ++bytes) {
    Timeline out;
    EXPECT_EQ(parse_trace_events("f", text.substr(0, bytes), out).code(), Code::kBadData) << bytes;
  }
}

}  // namespace
}  // namespace rrfp::trace
