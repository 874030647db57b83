// SPDX-License-Identifier: Apache-2.0
//
// CASES.md, part E: a rank that fails, sleeps or is cancelled ends the step everywhere, soon and
// with a text that says who and what; and the pipeline works again after a reset.
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "toy_chain.h"

namespace rrfp::cases {
namespace {

constexpr std::array kHints = {"gpipe", "1f1b", "bf", "bfw", "zb-h1"};
constexpr double kSoonSeconds = 2;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool is_task(const rrfp_task& task, int32_t stage, int32_t kind, int32_t microbatch) {
  return task.stage == stage && task.kind == kind && task.microbatch == microbatch;
}

/// The same failure reached every rank, soon.
void expect_everywhere(const StepResult& result, rrfp_status status, const std::string& part) {
  for (size_t r = 0; r < result.ranks.size(); ++r) {
    SCOPED_TRACE("rank " + std::to_string(r));
    const RankResult& rank = result.ranks[r];
    EXPECT_EQ(rank.status, status) << rrfp_status_name(rank.status) << ": " << rank.error.text;
    EXPECT_EQ(rank.error.status, status);
    EXPECT_TRUE(contains(rank.error.text, part)) << rank.error.text;
    EXPECT_LT(rank.seconds, kSoonSeconds);
  }
}

/// A stage on the rank of the same number.
struct Culprit {
  int32_t stage;
  int32_t kind;
  int32_t microbatch;
  int32_t user_code;
};

void expect_culprit(const StepResult& result, const Culprit& culprit) {
  for (const RankResult& each : result.ranks) {
    EXPECT_EQ(each.error.rank, culprit.stage);
    EXPECT_EQ(each.error.stage, culprit.stage);
    EXPECT_EQ(each.error.microbatch, culprit.microbatch);
    EXPECT_EQ(each.error.kind, culprit.kind);
    EXPECT_EQ(each.error.user_code, culprit.user_code);
  }
}

/// After a reset a step gives the values of T1 and leaves no tensor behind.
void expect_clean_step(ChainPipeline& p, const HintPtr& hint) {
  p.toy.before_task = {};
  p.toy.reset();
  const StepResult result = p.run(hint);
  ASSERT_TRUE(done(result));
  ASSERT_TRUE(p.chain.right());
  for (const RankResult& rank : result.ranks) EXPECT_EQ(rank.report.tensor_bytes_live, 0);
}

struct Failing : ChainPipeline {
  Failing() : ChainPipeline(ToyChain::t1()) { toy.quiesce = true; }
};

TEST(Failure, Case40aStageCodeFails) {
  for (const char* name : kHints) {
    const HintPtr hint = make_hint(name);
    Failing p;
    p.toy.open();
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(std::string(name) + ", seed " + std::to_string(seed));
      p.toy.delays = {seed, 300};
      p.toy.before_task = [](TaskContext& context) {
        if (is_task(context.task, 1, RRFP_FORWARD, 3)) throw StageFailed(77, "out of memory in l1");
      };
      const StepResult result = p.run(hint);
      expect_everywhere(result, RRFP_ERR_STAGE_FAILED, "out of memory in l1");
      expect_culprit(result, {1, RRFP_FORWARD, 3, 77});
      expect_clean_step(p, hint);
    }
  }
}

TEST(Failure, Case40bLossIsNotANumber) {
  Failing p;
  const HintPtr hint = make_hint("1f1b");
  p.toy.open();
  const float good = p.chain.x[2][0];
  p.chain.x[2][0] = std::numeric_limits<float>::quiet_NaN();
  // The policy is that of the program: it looks at the loss when the backward is to start.
  p.toy.before_task = [&](TaskContext& context) {
    const rrfp_task& task = context.task;
    if (task.stage != 3 || task.kind == RRFP_FORWARD) return;
    const float loss = p.chain.losses[static_cast<size_t>(task.microbatch)];
    if (std::isnan(loss)) throw StageFailed(-5, "the loss is nan");
  };
  const StepResult result = p.run(hint);
  expect_everywhere(result, RRFP_ERR_STAGE_FAILED, "the loss is nan");
  expect_culprit(result, {3, RRFP_BACKWARD, 2, -5});
  p.chain.x[2][0] = good;
  expect_clean_step(p, hint);
}

struct Logged {
  std::atomic<int> calls{0};
  rrfp_log_level level = -1;
  std::string text;

  static void log(void* user_data, rrfp_log_level level, const char* text) {
    auto* self = static_cast<Logged*>(user_data);
    ++self->calls;
    self->level = level;
    self->text = text;
  }
};

TEST(Failure, Case40cWatchdogNamesTheSleeper) {
  for (rrfp_wake wake : {RRFP_WAKE_YIELD, RRFP_WAKE_PARK}) {
    SCOPED_TRACE("wake " + std::to_string(wake));
    const HintPtr hint = make_hint("1f1b");
    Failing p;
    Logged logged;
    p.toy.options.watchdog_ms = 1000;
    p.toy.options.log = Logged::log;
    p.toy.options.log_user_data = &logged;
    p.toy.options.wake = wake;
    p.toy.before_task = [](TaskContext& context) {
      if (!is_task(context.task, 2, RRFP_FORWARD, 1)) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(2300));
    };
    p.toy.open();
    StepResult result = p.run(hint);
    EXPECT_GE(result.ranks[2].seconds, 2.3);
    result.ranks[2].seconds = 0;  // it slept; the others must not have waited for it
    expect_everywhere(result, RRFP_ERR_TIMEOUT, "rank 2 has been running 2F1 for ");
    expect_culprit(result, {2, RRFP_FORWARD, 1, 0});
    for (const RankResult& rank : result.ranks) EXPECT_TRUE(rank.seconds == 0 || rank.seconds >= 1);
    const std::string report = report_text(p.toy.pipeline());
    EXPECT_TRUE(contains(report, "rank 2: step 0, running 2F1 for ")) << report;
    EXPECT_TRUE(contains(report, "rank 3: step 0, waiting for input for ")) << report;
    EXPECT_TRUE(contains(report, "3F1 needs activation 2 -> 3 of microbatch 1 from rank 2"))
        << report;
    EXPECT_TRUE(contains(report, "1B0 needs gradient 2 -> 1 of microbatch 0 from rank 2"))
        << report;
    EXPECT_TRUE(contains(report, "0B0 needs gradient 1 -> 0 of microbatch 0 from rank 1"))
        << report;
    EXPECT_EQ(logged.calls, 1);
    EXPECT_EQ(logged.level, RRFP_LOG_ERROR);
    EXPECT_TRUE(contains(logged.text, report)) << logged.text;
    expect_clean_step(p, hint);
    EXPECT_FALSE(contains(report_text(p.toy.pipeline()), "running"));
  }
}

TEST(Failure, WatchdogWhenARankNeverBegins) {
  Failing p;
  p.toy.options.watchdog_ms = 200;
  p.toy.before_begin = [](int32_t rank, const Step&) {
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  };
  p.toy.open();
  const StepResult result = p.run(make_hint("1f1b"));
  expect_everywhere(result, RRFP_ERR_TIMEOUT, "no task has finished for 2");
  EXPECT_LT(result.ranks[0].seconds, 0.9);
  EXPECT_TRUE(contains(report_text(p.toy.pipeline()), "rank 1: in no step"));
  p.toy.before_begin = {};
  expect_clean_step(p, make_hint("1f1b"));
}

/// A rank that waits for a message that does not come.
struct Waiting : ChainPipeline {
  explicit Waiting(int64_t watchdog_ms, rrfp_wake wake = RRFP_WAKE_YIELD)
      : ChainPipeline(ToyChain({2, 3}, std::vector<float>{1})), hint(make_hint("1f1b")) {
    toy.options.watchdog_ms = watchdog_ms;
    toy.options.wake = wake;
    toy.open();
    for (int32_t r = 0; r < 2; ++r) {
      rrfp_step_options options;
      rrfp_step_options_init(&options);
      options.microbatches = 1;
      options.hint = hint.get();
      EXPECT_EQ(rrfp_rank_begin_step(toy.rank(r), &options, nullptr), RRFP_OK);
    }
  }
  rrfp_status next(int64_t timeout_us) const {
    rrfp_task task;
    rrfp_task_init(&task);
    return rrfp_rank_next(toy.rank(1), timeout_us, &task, nullptr);
  }
  /// The status of a call of next and how long it took.
  std::pair<rrfp_status, double> timed_next(int64_t timeout_us) const {
    const auto start = std::chrono::steady_clock::now();
    const rrfp_status status = next(timeout_us);
    return {status,
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  }
  HintPtr hint;
};

constexpr std::array kWakes = {RRFP_WAKE_YIELD, RRFP_WAKE_SPIN, RRFP_WAKE_PARK};

TEST(Failure, TimeOutsOfNextAreKept) {
  for (rrfp_wake wake : kWakes) {
    SCOPED_TRACE("wake " + std::to_string(wake));
    const Waiting waiting(10'000, wake);
    for (const auto& [timeout_us, at_least] : {std::pair{0, 0.0}, std::pair{50'000, 0.05}}) {
      const auto [status, seconds] = waiting.timed_next(timeout_us);
      EXPECT_EQ(status, RRFP_AGAIN);
      EXPECT_GE(seconds, at_least);
      EXPECT_LT(seconds, at_least + 0.3);  // room for a busy machine
    }
  }
}

TEST(Failure, WakeEndsOneNext) {
  for (rrfp_wake wake : kWakes) {
    SCOPED_TRACE("wake " + std::to_string(wake));
    const Waiting waiting(10'000, wake);
    // The next one.
    ASSERT_EQ(rrfp_rank_wake(waiting.toy.rank(1), nullptr), RRFP_OK);
    EXPECT_EQ(waiting.next(-1), RRFP_AGAIN);
    // The current one.
    std::thread waker([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_EQ(rrfp_rank_wake(waiting.toy.rank(1), nullptr), RRFP_OK);
    });
    const auto [status, seconds] = waiting.timed_next(-1);
    waker.join();
    EXPECT_EQ(status, RRFP_AGAIN);
    EXPECT_LT(seconds, kSoonSeconds);
    // And no other: this one lasts until its time is over.
    EXPECT_GE(waiting.timed_next(50'000).second, 0.05);
  }
}

TEST(Failure, WatchdogOfRanksThatPoll) {
  // A loop that only looks must see the watchdog too: nobody else may be there to raise it.
  for (int64_t timeout_us : {1000, 0}) {
    SCOPED_TRACE("timeout_us " + std::to_string(timeout_us));
    const Waiting waiting(200);
    const auto start = std::chrono::steady_clock::now();
    rrfp_status status = RRFP_AGAIN;
    while (status == RRFP_AGAIN &&
           std::chrono::steady_clock::now() - start < std::chrono::seconds(1)) {
      status = waiting.next(timeout_us);
    }
    EXPECT_EQ(status, RRFP_ERR_TIMEOUT);
  }
}

TEST(Failure, WatchdogCanBeOff) {
  const Waiting waiting(-1);
  EXPECT_EQ(waiting.next(300'000), RRFP_AGAIN);
  const Waiting watched(100);
  EXPECT_EQ(watched.next(300'000), RRFP_ERR_TIMEOUT);
}

TEST(Failure, WakesAndReportsDisturbNobody) {
  for (rrfp_wake wake : kWakes) {
    SCOPED_TRACE("wake " + std::to_string(wake));
    ChainPipeline p(ToyChain({2, 3, 5}, std::vector<float>{1, 2, 3, 4}));
    p.toy.options.wake = wake;
    p.toy.delays = {3, 100};
    p.toy.open();
    std::atomic<bool> stop{false};
    std::thread visitor([&] {
      for (int32_t r = 0; !stop; r = (r + 1) % 3) {
        EXPECT_EQ(rrfp_rank_wake(p.toy.rank(r), nullptr), RRFP_OK);
        EXPECT_TRUE(contains(report_text(p.toy.pipeline()), "rank 2: "));
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    });
    for (int k = 0; k < 20; ++k) {
      EXPECT_TRUE(done(p.run(make_hint("bfw"))));
      EXPECT_TRUE(p.chain.right());
    }
    stop = true;
    visitor.join();
  }
}

TEST(Failure, CancelFromAnotherThread) {
  for (rrfp_wake wake : kWakes) {
    for (const char* reason :
         {static_cast<const char*>("the user pressed stop"), static_cast<const char*>(nullptr)}) {
      SCOPED_TRACE("wake " + std::to_string(wake));
      const HintPtr hint = make_hint("bfw");
      ChainPipeline p(ToyChain({2, 3}, std::vector<float>{1, 2, 3, 4}));
      p.toy.quiesce = true;
      p.toy.options.wake = wake;
      std::atomic<bool> cancelled{false};
      p.toy.before_task = [&](TaskContext& context) {
        while (is_task(context.task, 0, RRFP_FORWARD, 2) && !cancelled) std::this_thread::yield();
      };
      p.toy.open();
      std::thread canceller([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_EQ(rrfp_pipeline_cancel(p.toy.pipeline(), reason, nullptr), RRFP_OK);
        cancelled = true;
      });
      const StepResult result = p.run(hint);
      canceller.join();
      expect_everywhere(result, RRFP_ERR_CANCELLED, reason != nullptr ? reason : "no reason given");
      expect_clean_step(p, hint);
    }
  }
}

TEST(Failure, TheFirstOneCounts) {
  const HintPtr hint = make_hint("gpipe");
  Failing p;
  p.toy.open();
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    p.toy.delays = {seed, 200};
    p.toy.before_task = [](TaskContext& context) {
      if (context.task.microbatch != 1) return;
      throw StageFailed(context.task.stage, "failed on " + std::to_string(context.task.stage));
    };
    const StepResult result = p.run(hint);
    expect_everywhere(result, RRFP_ERR_STAGE_FAILED, result.ranks[0].error.text);
    expect_clean_step(p, hint);
  }
}

TEST(Failure, ARankThatBeginsLateHearsOfIt) {
  const HintPtr hint = make_hint("gpipe");
  Failing p;
  p.toy.before_task = [](TaskContext&) { throw StageFailed(1, "at once"); };
  p.toy.before_begin = [](int32_t rank, const Step&) {
    if (rank == 3) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  };
  p.toy.open();
  expect_everywhere(p.run(hint), RRFP_ERR_STAGE_FAILED, "at once");
  // Until the reset nothing begins. Ranks that had begun may end the failed step first.
  for (int32_t r = 0; r < 4; ++r) {
    const rrfp_status status = rrfp_rank_end_step(p.toy.rank(r), nullptr, nullptr);
    EXPECT_TRUE(status == RRFP_ERR_STAGE_FAILED || status == RRFP_ERR_BAD_STATE) << status;
  }
  expect_everywhere(p.run(hint), RRFP_ERR_STAGE_FAILED, "at once");
  expect_clean_step(p, hint);
}

}  // namespace
}  // namespace rrfp::cases
