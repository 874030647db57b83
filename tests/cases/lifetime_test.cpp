// SPDX-License-Identifier: Apache-2.0
//
// Handles may be destroyed in any state and in any order: nothing hangs, nothing leaks (this runs
// under the sanitizers too), whoever needed the rank hears of it and whoever did not goes on.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "handles.h"
#include "toy_chain.h"

namespace rrfp::cases {
namespace {

constexpr double kSoonSeconds = 2;

void sleep_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

enum class State { kNoStep, kBegun, kRunning, kPut, kWaiting, kFailed, kComplete, kEnded };
constexpr std::array kStates = {State::kNoStep,  State::kBegun,  State::kRunning,  State::kPut,
                                State::kWaiting, State::kFailed, State::kComplete, State::kEnded};

/// Brings the handles into a state. Rank 1 waits inside a call in one of them.
std::thread enter(State state, Handles& handles) {
  if (state != State::kNoStep) handles.begin_all();
  if (state == State::kRunning || state == State::kPut || state == State::kFailed) {
    EXPECT_EQ(handles.next(0), RRFP_OK);
    const TaskContext context(handles.ranks[0].get(), handles.task, {});
    (void)context.alloc(RRFP_F32, {1000});
    if (state == State::kPut) context.put_scalar(0, 1);
    if (state == State::kFailed) {
      EXPECT_EQ(rrfp_rank_fail(context.rank, handles.task.ticket, 1, nullptr, nullptr), RRFP_OK);
    }
  }
  if (state == State::kComplete || state == State::kEnded) handles.run_all();
  if (state == State::kEnded) {
    EXPECT_EQ(rrfp_rank_end_step(handles.ranks[0].get(), nullptr, nullptr), RRFP_OK);
    EXPECT_EQ(rrfp_rank_end_step(handles.ranks[1].get(), nullptr, nullptr), RRFP_OK);
  }
  if (state != State::kWaiting) return {};
  rrfp_rank* const rank = handles.ranks[1].get();
  std::thread waiter([rank] {
    rrfp_task task;
    rrfp_task_init(&task);
    rrfp_status status = RRFP_ERR_BUSY;  // while this thread asks and the other one looks
    while (status == RRFP_ERR_BUSY) status = rrfp_rank_next(rank, -1, &task, nullptr);
    EXPECT_EQ(status, RRFP_ERR_CLOSED);
  });
  // No call may begin after the destruction: waits until the thread is inside of one.
  rrfp_task task;
  rrfp_task_init(&task);
  while (rrfp_rank_next(rank, 0, &task, nullptr) != RRFP_ERR_BUSY) std::this_thread::yield();
  return waiter;
}

TEST(Lifetime, DestroyedInAnyStateAndInAnyOrder) {
  for (State state : kStates) {
    std::array<int, 5> order = {0, 1, 2, 3, 4};
    do {
      SCOPED_TRACE("state " + std::to_string(static_cast<int>(state)) + ", order " +
                   std::to_string(order[0]) + std::to_string(order[1]) + std::to_string(order[2]) +
                   std::to_string(order[3]) + std::to_string(order[4]));
      const auto start = std::chrono::steady_clock::now();
      Handles handles;
      std::thread waiter = enter(state, handles);
      for (int what : order) {
        switch (what) {
          case 0: handles.graph.reset(); break;
          case 1: handles.hint.reset(); break;
          case 2: handles.pipeline.reset(); break;
          default: handles.ranks[static_cast<size_t>(what - 3)].reset(); break;
        }
      }
      if (waiter.joinable()) waiter.join();
      ASSERT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
      // Every order in every state, but only some where a thread has to be waited for.
      const bool costly = state == State::kWaiting;
      for (int k = 0; costly && k < 6; ++k) std::next_permutation(order.begin(), order.end());
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(Lifetime, RanksGoOnWithoutTheOtherHandles) {
  ChainPipeline p(ToyChain::t1());
  p.toy.delays = {9, 200};
  p.toy.open();
  HintPtr hint = make_hint("bfw");
  bool dropped = false;  // used on one thread
  p.toy.before_task = [&](TaskContext& context) {
    // All have begun when the last stage runs: nobody needs hint and pipeline any more.
    if (context.task.stage != 3 || std::exchange(dropped, true)) return;
    hint.reset();
    p.toy.drop_pipeline();
  };
  ASSERT_TRUE(done(p.run(hint)));
  ASSERT_TRUE(p.chain.right());
}

// --- A rank that leaves

/// What rank 0 gets from next in the end, within the time; its tasks are done as they come.
rrfp_error outcome(Handles& handles, double& seconds) {
  const auto start = std::chrono::steady_clock::now();
  rrfp_error error = {};
  rrfp_status status = RRFP_OK;
  while ((status = handles.next(0, -1, &error)) == RRFP_OK) handles.finish(0);
  error.status = status;
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return error;
}

rrfp_pipeline_options watched() {
  rrfp_pipeline_options options;
  rrfp_pipeline_options_init(&options);
  options.watchdog_ms = 3000;  // instead of a hang
  return options;
}

void expect_closed(Handles& handles) {
  double seconds = 0;
  const rrfp_error error = outcome(handles, seconds);
  EXPECT_EQ(error.status, RRFP_ERR_CLOSED) << error.text;
  EXPECT_EQ(error.rank, 1);
  EXPECT_NE(std::string(error.text).find("rank 1 was destroyed"), std::string::npos) << error.text;
  EXPECT_LT(seconds, kSoonSeconds);
}

TEST(Lifetime, ARankThatLeavesInTheMiddleFailsTheStep) {
  const rrfp_pipeline_options options = watched();
  Handles handles(&options);
  handles.begin_all();
  std::thread leaver([&] {
    sleep_ms(50);
    handles.ranks[1].reset();
  });
  expect_closed(handles);
  leaver.join();
}

TEST(Lifetime, ARankThatLeavesBeforeItBegins) {
  // Rank 0 waits for a gradient.
  const rrfp_pipeline_options options = watched();
  Handles handles(&options);
  ASSERT_EQ(handles.begin(0), RRFP_OK);
  handles.ranks[1].reset();
  expect_closed(handles);
}

TEST(Lifetime, ARankThatLeavesWhileTheOtherIsHeldByMemory) {
  // Rank 0 has a forward that may not start until a gradient comes.
  rrfp_pipeline_options options = watched();
  options.cap_slots = 1;
  Handles handles(&options);
  ASSERT_EQ(handles.begin(0, 3), RRFP_OK);
  handles.ranks[1].reset();
  expect_closed(handles);
}

TEST(Lifetime, ARankThatLeavesWhileTheOtherIsHeldByCredits) {
  rrfp_pipeline_options options = watched();
  options.credits = 1;
  Handles handles(&options);
  ASSERT_EQ(handles.begin(0, 3, RRFP_MODE_FORWARD), RRFP_OK);
  handles.ranks[1].reset();
  expect_closed(handles);
}

TEST(Lifetime, ARankThatLeavesWhileTheOtherIsHeldByStrictOrder) {
  rrfp_pipeline_options options = watched();
  options.order = RRFP_ORDER_STRICT;
  Handles handles(&options);
  handles.hint = make_text_hint("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n");
  ASSERT_EQ(handles.begin(0), RRFP_OK);
  handles.ranks[1].reset();
  expect_closed(handles);
}

TEST(Lifetime, ARankThatLeavesBeforeItHasAgreedToTheStep) {
  // Rank 0 has done all its tasks, but rank 1 never said that it means the same step.
  const rrfp_pipeline_options options = watched();
  Handles handles(&options);
  ASSERT_EQ(handles.begin(0, 1, RRFP_MODE_FORWARD), RRFP_OK);
  handles.ranks[1].reset();
  expect_closed(handles);
}

TEST(Lifetime, ARankThatHasEndedItsStepMayLeave) {
  const HintPtr hint = make_hint("1f1b");
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ChainPipeline p(ToyChain({2, 3, 5, 7}, std::vector<float>{1, 2}));
    p.toy.own_handles = true;  // destroyed as soon as a rank has ended its step
    p.toy.delays = {seed, seed % 3 == 0 ? 0 : 200};
    p.toy.open();
    ASSERT_TRUE(done(p.run(hint)));
    ASSERT_TRUE(p.chain.right());
  }
}

TEST(Lifetime, ARankThatIsCompleteMayLeaveWithoutEndingItsStep) {
  // Rank 1 is through when it has sent its last gradient: it is not needed any more.
  const rrfp_pipeline_options options = watched();
  Handles handles(&options);
  handles.begin_all();
  while (handles.next(0) == RRFP_OK) handles.finish(0);  // both forwards
  rrfp_status status = RRFP_OK;
  while ((status = handles.next(1)) == RRFP_OK) handles.finish(1);
  ASSERT_EQ(status, RRFP_STEP_DONE);
  handles.ranks[1].reset();
  double seconds = 0;
  const rrfp_error error = outcome(handles, seconds);
  EXPECT_EQ(error.status, RRFP_STEP_DONE) << error.text;
  EXPECT_EQ(rrfp_rank_end_step(handles.ranks[0].get(), nullptr, nullptr), RRFP_OK);
}

TEST(Lifetime, LastMessagesOfARankThatLeavesAtOnce) {
  // Whatever rank 0 sent before it left must reach rank 1, which looks all the time: if it saw the
  // empty place before the message it would fail a step that lacks nothing.
  constexpr int kTimes = 20'000;
  const rrfp_pipeline_options options = watched();
  Handles handles(&options);
  std::atomic<int> failures{0};
  std::atomic<int> go{0};
  std::atomic<int> arrived{0};
  std::thread receiver([&] {
    for (int k = 1; k <= kTimes && failures == 0; ++k) {
      while (go < k) std::this_thread::yield();
      rrfp_task task;
      rrfp_task_init(&task);
      rrfp_rank* const rank = handles.ranks[1].get();
      rrfp_error error = {};
      rrfp_status status = handles.begin(1, 1, RRFP_MODE_FORWARD, &error);
      while (status == RRFP_OK && (status = rrfp_rank_next(rank, -1, &task, &error)) == RRFP_OK) {
        status = rrfp_rank_done(rank, task.ticket, nullptr, &error);
      }
      if (status == RRFP_STEP_DONE) status = rrfp_rank_end_step(rank, nullptr, &error);
      if (status != RRFP_OK) {
        ADD_FAILURE() << "time " << k << ": " << error.text;
        ++failures;
      }
      arrived = k;
    }
  });
  for (int k = 1; k <= kTimes && failures == 0; ++k) {
    if (handles.ranks[0] == nullptr) handles.ranks[0] = make_rank(handles.pipeline.get(), 0);
    go = k;
    rrfp_status status = handles.begin(0, 1, RRFP_MODE_FORWARD);
    while (status >= 0 && (status = handles.next(0, -1)) == RRFP_OK) handles.finish(0);
    if (status == RRFP_STEP_DONE) {
      EXPECT_EQ(rrfp_rank_end_step(handles.ranks[0].get(), nullptr, nullptr), RRFP_OK);
    }
    handles.ranks[0].reset();
    while (arrived < k && failures == 0) std::this_thread::yield();
  }
  receiver.join();
  EXPECT_EQ(failures, 0);
}

TEST(Lifetime, OneHandlePerRankAtATime) {
  Handles handles;
  rrfp_rank* second = nullptr;
  rrfp_error error = {};
  EXPECT_EQ(rrfp_rank_create(handles.pipeline.get(), 1, &second, &error), RRFP_ERR_BAD_STATE);
  EXPECT_EQ(second, nullptr);
  EXPECT_NE(std::string(error.text).find("rank 1 already has a handle"), std::string::npos);
  for (int k = 0; k < 3; ++k) {
    handles.ranks[1].reset();
    handles.ranks[1] = make_rank(handles.pipeline.get(), 1);
    handles.begin_all();
    handles.run_all();
    for (const RankPtr& rank : handles.ranks) {
      ASSERT_EQ(rrfp_rank_end_step(rank.get(), nullptr, nullptr), RRFP_OK);
    }
  }
}

TEST(Lifetime, AStepThatWasClosedCanBeReset) {
  Handles handles;
  handles.begin_all();
  ASSERT_EQ(handles.next(0), RRFP_OK);
  handles.finish(0);  // its message is on its way
  handles.ranks[1].reset();
  EXPECT_EQ(handles.next(0), RRFP_ERR_CLOSED);
  EXPECT_EQ(rrfp_rank_end_step(handles.ranks[0].get(), nullptr, nullptr), RRFP_ERR_CLOSED);
  handles.ranks[1] = make_rank(handles.pipeline.get(), 1);
  EXPECT_EQ(handles.begin(1), RRFP_ERR_CLOSED);
  ASSERT_EQ(rrfp_pipeline_reset(handles.pipeline.get(), nullptr), RRFP_OK);
  handles.begin_all();
  handles.run_all();
}

TEST(Lifetime, TasksInHandAreAbandonedByAReset) {
  Handles handles;
  handles.begin_all();
  ASSERT_EQ(handles.next(0), RRFP_OK);
  const uint64_t old_ticket = handles.task.ticket;
  ASSERT_EQ(rrfp_pipeline_cancel(handles.pipeline.get(), "enough", nullptr), RRFP_OK);
  ASSERT_EQ(rrfp_pipeline_reset(handles.pipeline.get(), nullptr), RRFP_OK);
  EXPECT_EQ(rrfp_rank_done(handles.ranks[0].get(), old_ticket, nullptr, nullptr),
            RRFP_ERR_BAD_STATE);
  handles.begin_all();
  ASSERT_EQ(handles.next(0), RRFP_OK);
  EXPECT_NE(handles.task.ticket, old_ticket);
  EXPECT_EQ(rrfp_rank_done(handles.ranks[0].get(), old_ticket, nullptr, nullptr),
            RRFP_ERR_BAD_STATE);
  handles.finish(0);
  handles.run_all();
}

TEST(Lifetime, ResetIsRefusedWhileARankIsInsideACall) {
  Handles handles;
  std::thread waiter = enter(State::kWaiting, handles);
  rrfp_error error = {};
  EXPECT_EQ(rrfp_pipeline_reset(handles.pipeline.get(), &error), RRFP_ERR_BUSY);
  EXPECT_EQ(error.rank, 1);
  EXPECT_EQ(handles.next(0), RRFP_OK) << "the other rank must not stay claimed";
  handles.ranks[1].reset();
  waiter.join();
}

}  // namespace
}  // namespace rrfp::cases
