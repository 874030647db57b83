// SPDX-License-Identifier: Apache-2.0
//
// Timelines of the real host: what a pipeline records, and that recording costs next to nothing.
#include <rrfp/simulate.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "toy_chain.h"

namespace rrfp::cases {
namespace {

namespace fs = std::filesystem;

constexpr int32_t kMicrobatches = 4;

/// A folder of its own, gone at the end.
class Scratch {
 public:
  Scratch() : path_(fs::temp_directory_path() / ("rrfp-timeline-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Scratch() { fs::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] std::string operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::string summary(const std::string& trace) {
  char text[4096] = {};
  rrfp_error error;
  EXPECT_EQ(rrfp_trace_summarize(trace.c_str(), text, sizeof text, nullptr, &error), RRFP_OK)
      << error.text;
  return text;
}

/// Two ranks; the second waits for the first, which sleeps in its forwards.
struct Pair {
  explicit Pair(int32_t trace_steps) : toy(2) {
    const auto relay = [](TaskContext& c) { c.put_scalar(0, 1); };
    toy.add_stage({[relay](TaskContext& c) {
                     std::this_thread::sleep_for(std::chrono::milliseconds(5));
                     relay(c);
                   },
                   {},
                   {}});
    toy.add_stage({{}, relay, {}}, RRFP_STAGE_LOSS);
    toy.add_edge(0, 1);
    toy.place(RRFP_PLACEMENT_LINEAR);
    toy.options.trace_steps = trace_steps;
    toy.open();
  }
  void step(int64_t number) {
    const StepResult result =
        toy.run(Step{.hint = hint.get(), .microbatches = kMicrobatches, .number = number});
    ASSERT_TRUE(result.ok()) << result.text();
  }

  ToyPipeline toy;
  const HintPtr hint = make_hint("1f1b");
};

TEST(Timeline, HasTheTasksMessagesAndWaitsOfTheLastSteps) {
  const Scratch scratch;
  Pair pair(2);
  for (int64_t k = 0; k < 3; ++k) pair.step(k);
  const std::string path = scratch / "trace.json";
  rrfp_error error;
  ASSERT_EQ(rrfp_pipeline_write_trace(pair.toy.pipeline(), path.c_str(), &error), RRFP_OK)
      << error.text;
  const std::string text = read(path);
  EXPECT_EQ(count(text, R"("cat":"forward")"), 2u * 2 * kMicrobatches) << "two ranks, two steps";
  EXPECT_EQ(count(text, R"("cat":"backward")"), 2u * 2 * kMicrobatches);
  EXPECT_EQ(count(text, R"("ph":"s")"), 2u * 2 * kMicrobatches) << "activations and gradients";
  EXPECT_EQ(count(text, R"("step":0)"), 0u) << "the oldest step is forgotten";
  EXPECT_GE(count(text, R"("reason":"input")"), 1u) << "rank 1 waits for activations";
  EXPECT_NE(text.find(R"("ready_us")"), std::string::npos);
  EXPECT_NE(summary(path).find(R"("tasks":16)"), std::string::npos) << summary(path);
  for (const auto& [name, picture] :
       {std::pair("page.html", RRFP_PICTURE_HTML), std::pair("picture.svg", RRFP_PICTURE_SVG)}) {
    const std::string out = scratch / name;
    ASSERT_EQ(rrfp_trace_draw(path.c_str(), picture, out.c_str(), &error), RRFP_OK) << error.text;
    EXPECT_GT(fs::file_size(out), 1000u);
  }
}

TEST(Timeline, IsRefusedWhereNoneWasKept) {
  Pair pair(0);
  rrfp_error error;
  EXPECT_EQ(rrfp_pipeline_write_trace(pair.toy.pipeline(), "/nowhere/x.json", &error),
            RRFP_ERR_BAD_STATE);
  EXPECT_NE(std::string(error.text).find("trace_steps"), std::string::npos) << error.text;
}

TEST(Timeline, SaysWhichFileItCannotWriteOrRead) {
  Pair pair(1);
  pair.step(0);
  rrfp_error error;
  EXPECT_EQ(rrfp_pipeline_write_trace(pair.toy.pipeline(), "/nowhere/x.json", &error), RRFP_ERR_IO);
  EXPECT_NE(std::string(error.text).find("/nowhere"), std::string::npos) << error.text;
  EXPECT_EQ(rrfp_trace_draw("/nowhere/x.json", RRFP_PICTURE_SVG, "x.svg", &error), RRFP_ERR_IO);
  EXPECT_NE(std::string(error.text).find("/nowhere/x.json"), std::string::npos) << error.text;
}

/// Nanoseconds per task of one rank whose tasks do nothing: the least of a few steps.
int64_t task_ns(int32_t trace_steps) {
  constexpr int32_t kMany = 5000;
  ToyPipeline toy(1);
  toy.add_stage({}, RRFP_STAGE_LOSS);
  toy.place(RRFP_PLACEMENT_LINEAR);
  toy.options.trace_steps = trace_steps;
  toy.open();
  const HintPtr hint = make_hint("1f1b");
  int64_t least = INT64_MAX;
  for (int64_t k = 0; k < 8; ++k) {
    const StepResult result = toy.run(Step{.hint = hint.get(), .microbatches = kMany, .number = k});
    EXPECT_TRUE(result.ok()) << result.text();
    least = std::min(least, result.ranks[0].report.total_ns / (2 * kMany));
  }
  return least;
}

TEST(Timeline, RecordingCostsLessThanAPercentOfAMillisecond) {
  constexpr int64_t kPercentOfMs = 10'000;
  EXPECT_LT(task_ns(2) - task_ns(0), kPercentOfMs);
}

}  // namespace
}  // namespace rrfp::cases
