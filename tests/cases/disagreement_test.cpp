// SPDX-License-Identifier: Apache-2.0
//
// Ranks that describe a step differently: all of them are told, with both values, and none hangs.
#include <functional>

#include "toy_chain.h"

namespace rrfp::cases {
namespace {

struct Disagreement {
  const char* name;
  std::function<void(Step&)> change;  // of one rank
  std::vector<std::string> parts;     // of the text
};

class Disagreements : public testing::Test {
 protected:
  Disagreements() : p_(ToyChain({2, 3, 5}, std::vector<float>{1, 2, 3})) {
    p_.toy.quiesce = true;
    p_.toy.open();
  }

  /// One rank differs from the others; then, after a reset, all agree.
  void expect_mismatch(const Disagreement& disagreement, int32_t rank) {
    SCOPED_TRACE(std::string(disagreement.name) + " on rank " + std::to_string(rank));
    Step step = p_.step(hint_);
    step.number = 5;
    std::vector<std::vector<Step>> steps(3, {step});
    disagreement.change(steps[static_cast<size_t>(rank)][0]);
    p_.chain.feed({{1}, {2}, {3}, {4}});  // enough for whoever has more microbatches
    const StepResult result = p_.toy.run_each(steps)[0];
    for (const RankResult& each : result.ranks) {
      EXPECT_EQ(each.status, RRFP_ERR_HEADER_MISMATCH) << result.text();
      EXPECT_LT(each.seconds, 2);
      for (const std::string& part : disagreement.parts) {
        EXPECT_NE(std::string(each.error.text).find(part), std::string::npos)
            << each.error.text << " does not say " << part;
      }
      const std::string who = "rank " + std::to_string(rank);
      EXPECT_NE(std::string(each.error.text).find(who), std::string::npos) << each.error.text;
    }
    p_.toy.reset();
    p_.chain.feed({{1}, {2}, {3}});
    ASSERT_TRUE(done(p_.run(hint_)));
    ASSERT_TRUE(p_.chain.right());
  }

  void expect_mismatch_anywhere(const Disagreement& disagreement) {
    for (int32_t rank = 0; rank < 3; ++rank) expect_mismatch(disagreement, rank);
  }

  ChainPipeline p_;
  HintPtr hint_ = make_hint("1f1b");
};

TEST_F(Disagreements, StepNumber) {
  expect_mismatch_anywhere({"step", [](Step& s) { s.number = 6; }, {"step number", "5", "6"}});
}

TEST_F(Disagreements, Microbatches) {
  expect_mismatch_anywhere(
      {"microbatches", [](Step& s) { s.microbatches = 4; }, {"microbatches", "3", "4"}});
  expect_mismatch_anywhere(
      {"microbatches", [](Step& s) { s.microbatches = 1; }, {"microbatches", "3", "1"}});
}

TEST_F(Disagreements, Mode) {
  expect_mismatch_anywhere(
      {"mode", [](Step& s) { s.mode = RRFP_MODE_FORWARD; }, {"mode", "train", "forward"}});
}

TEST_F(Disagreements, Order) {
  expect_mismatch_anywhere(
      {"order", [](Step& s) { s.order = RRFP_ORDER_STRICT; }, {"order", "ready", "strict"}});
}

TEST_F(Disagreements, HintByName) {
  const HintPtr gpipe = make_hint("gpipe");
  expect_mismatch_anywhere(
      {"hint", [&](Step& s) { s.hint = gpipe.get(); }, {"hint", "1f1b", "gpipe"}});
}

TEST_F(Disagreements, HintByContent) {
  // The same name, but another order.
  hint_ = make_text_hint(
      "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1F2,1B0,1B1,1B2\n"
      "2F0,2B0,2F1,2B1,2F2,2B2\n");
  const HintPtr other = make_text_hint(
      "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1B0,1F2,1B1,1B2\n"
      "2F0,2B0,2F1,2B1,2F2,2B2\n");
  expect_mismatch_anywhere({"hint", [&](Step& s) { s.hint = other.get(); }, {"hint", "digest"}});
}

TEST_F(Disagreements, HintsThatSayTheSameAgree) {
  const HintPtr again = make_hint("1f1b");
  Step step = p_.step(hint_);
  std::vector<std::vector<Step>> steps(3, {step});
  steps[1][0].hint = again.get();
  p_.chain.clear();
  ASSERT_TRUE(done(p_.toy.run_each(steps)[0]));
  ASSERT_TRUE(p_.chain.right());
}

TEST_F(Disagreements, SkipMask) {
  expect_mismatch_anywhere(
      {"skip", [](Step& s) { s.skip = {0, 0, 0, 0, 0, 0, 0, 0, 1}; }, {"skip mask", "digest"}});
}

TEST_F(Disagreements, Sizes) {
  expect_mismatch_anywhere(
      {"sizes", [](Step& s) { s.activation_bytes.assign(9, 8); }, {"sizes", "digest"}});
}

TEST_F(Disagreements, NumberOfSteps) {
  // Rank 0 begins a second step that the others do not know of: it waits for them, and a cancel,
  // here from the watchdog's place, sends it home.
  Step step = p_.step(hint_);
  std::vector<std::vector<Step>> steps(3, {step});
  p_.chain.clear();
  ASSERT_TRUE(done(p_.toy.run_each(steps)[0]));
  rrfp_step_options options;
  rrfp_step_options_init(&options);
  options.hint = hint_.get();
  options.microbatches = 3;
  ASSERT_EQ(rrfp_rank_begin_step(p_.toy.rank(2), &options, nullptr), RRFP_OK);
  rrfp_task task;
  rrfp_task_init(&task);
  EXPECT_EQ(rrfp_rank_next(p_.toy.rank(2), 10'000, &task, nullptr), RRFP_AGAIN);
  ASSERT_EQ(rrfp_pipeline_cancel(p_.toy.pipeline(), "no more steps", nullptr), RRFP_OK);
  EXPECT_EQ(rrfp_rank_next(p_.toy.rank(2), -1, &task, nullptr), RRFP_ERR_CANCELLED);
  p_.toy.reset();
  ASSERT_TRUE(done(p_.run(hint_)));
}

}  // namespace
}  // namespace rrfp::cases
