// SPDX-License-Identifier: Apache-2.0
//
// Steps in a row: ranks that run ahead of each other, several pipelines in one process, one thread
// for all ranks, full mailboxes.
#include <array>
#include <atomic>
#include <string_view>
#include <thread>

#include "toy_chain.h"

namespace rrfp::cases {
namespace {

constexpr std::array kHints = {"gpipe", "1f1b", "bf", "bfw", "zb-h1"};

rrfp_status begin(rrfp_rank* rank, const Step& step, rrfp_error* error = nullptr) {
  rrfp_step_options options;
  rrfp_step_options_init(&options);
  options.hint = step.hint;
  options.microbatches = step.microbatches;
  options.mode = step.mode;
  options.step = step.number;
  return rrfp_rank_begin_step(rank, &options, error);
}

rrfp_status next(rrfp_rank* rank, rrfp_task& task, int64_t timeout_us = 0) {
  rrfp_task_init(&task);
  return rrfp_rank_next(rank, timeout_us, &task, nullptr);
}

/// A forward-only chain of two, driven by hand.
class Relay {
 public:
  Relay() : toy(2) {
    toy.add_stage({});
    toy.add_stage({}, RRFP_STAGE_LOSS);
    toy.add_edge(0, 1);
    toy.place(RRFP_PLACEMENT_LINEAR);
    toy.open();
  }

  /// Hands the value on from rank 0.
  void send(float value) {
    rrfp_task task;
    ASSERT_EQ(next(toy.rank(0), task), RRFP_OK);
    TaskContext(toy.rank(0), task, {}).put_scalar(0, value);
    ASSERT_EQ(rrfp_rank_done(toy.rank(0), task.ticket, nullptr, nullptr), RRFP_OK);
  }
  /// What rank 1 gets.
  float receive() {
    rrfp_task task;
    EXPECT_EQ(next(toy.rank(1), task), RRFP_OK);
    const float value = TaskContext(toy.rank(1), task, {}).scalar(0);
    EXPECT_EQ(rrfp_rank_done(toy.rank(1), task.ticket, nullptr, nullptr), RRFP_OK);
    return value;
  }

  ToyPipeline toy;
};

TEST(Steps, AFastRankIsOneStepAheadAndNotTwo) {
  Relay relay;
  rrfp_rank* const fast = relay.toy.rank(0);
  rrfp_rank* const slow = relay.toy.rank(1);
  const HintPtr hint = make_hint("1f1b");
  Step step = {.hint = hint.get(), .microbatches = 2, .mode = RRFP_MODE_FORWARD, .number = 10};
  rrfp_task task;
  ASSERT_EQ(begin(fast, step), RRFP_OK);
  relay.send(1);
  relay.send(2);
  // All tasks are done, but nobody knows yet whether the other rank means the same step.
  ASSERT_EQ(next(fast, task), RRFP_AGAIN);
  EXPECT_EQ(rrfp_rank_end_step(fast, nullptr, nullptr), RRFP_ERR_BAD_STATE);
  ASSERT_EQ(begin(slow, step), RRFP_OK);
  ASSERT_EQ(next(fast, task), RRFP_STEP_DONE);
  ASSERT_EQ(rrfp_rank_end_step(fast, nullptr, nullptr), RRFP_OK);
  // The next step, with other numbers, while the slow rank has done nothing of the first.
  step.number = 11;
  step.microbatches = 3;
  ASSERT_EQ(begin(fast, step), RRFP_OK);
  for (float value : {3.0f, 4.0f, 5.0f}) relay.send(value);
  ASSERT_EQ(next(fast, task), RRFP_AGAIN) << "a second step ahead would be unbounded";
  EXPECT_EQ(relay.receive(), 1);
  EXPECT_EQ(relay.receive(), 2);
  ASSERT_EQ(next(slow, task), RRFP_STEP_DONE);
  ASSERT_EQ(rrfp_rank_end_step(slow, nullptr, nullptr), RRFP_OK);
  ASSERT_EQ(next(fast, task), RRFP_AGAIN);
  ASSERT_EQ(begin(slow, step), RRFP_OK);
  ASSERT_EQ(next(fast, task), RRFP_STEP_DONE);
  for (float value : {3.0f, 4.0f, 5.0f}) EXPECT_EQ(relay.receive(), value);
  ASSERT_EQ(next(slow, task), RRFP_STEP_DONE);
  ASSERT_EQ(next(slow, task), RRFP_STEP_DONE) << "as often as one asks";
  ASSERT_EQ(rrfp_rank_end_step(slow, nullptr, nullptr), RRFP_OK);
  ASSERT_EQ(rrfp_rank_end_step(fast, nullptr, nullptr), RRFP_OK);
}

TEST(Steps, ManyInARowWithoutWaitingForEachOther) {
  for (const char* name : kHints) {
    for (rrfp_wake wake : {RRFP_WAKE_YIELD, RRFP_WAKE_PARK}) {
      SCOPED_TRACE(name);
      ChainPipeline p(ToyChain({2, 3, 5, 7}, std::vector<float>{1, 2, 3}));
      p.toy.options.wake = wake;
      p.toy.delays = {77, 150};
      p.toy.open();
      const HintPtr hint = make_hint(name);
      std::vector<Step> steps;
      for (int k = 0; k < 30; ++k) {
        Step step = p.step(hint);
        step.number = k;
        step.mode = k % 3 == 2 ? RRFP_MODE_FORWARD : RRFP_MODE_TRAIN;
        steps.push_back(step);
      }
      for (const StepResult& result : p.toy.run(steps)) {
        ASSERT_TRUE(result.ok()) << result.text();
        ASSERT_LT(result.seconds(), kDeadlineSeconds);
      }
      EXPECT_TRUE(p.chain.right(20));
      EXPECT_EQ(p.chain.losses, (std::vector<float>{210 * 30, 420 * 30, 630 * 30}));
    }
  }
}

TEST(Steps, TwoPipelinesAtOnce) {
  const HintPtr hint = make_hint("zb-h1");  // shared
  ChainPipeline a(ToyChain::t1());
  ChainPipeline b(ToyChain({7, 5, 3}, std::vector<float>{1, 2, 3, 4, 5}));
  a.toy.delays = {1, 200};
  b.toy.delays = {2, 200};
  a.toy.open();
  b.toy.open();
  const auto run = [&](ChainPipeline& p) {
    for (int k = 0; k < 20; ++k) {
      ASSERT_TRUE(done(p.run(hint)));
      ASSERT_TRUE(p.chain.right());
    }
  };
  std::thread other([&] { run(b); });
  run(a);
  other.join();
}

TEST(Steps, OneThreadForAllRanks) {
  // What a language with one thread does: it looks at each rank in turn and never waits.
  for (const char* name : kHints) {
    SCOPED_TRACE(name);
    ToyPipeline toy(3);
    float loss = 0;
    std::array<float, 3> dw = {};
    constexpr std::array<float, 3> kW = {2, 3, 5};
    for (int32_t s = 0; s < 3; ++s) toy.add_stage({}, s == 2 ? RRFP_STAGE_LOSS : 0);
    toy.add_edge(0, 1);
    toy.add_edge(1, 2);
    toy.place(RRFP_PLACEMENT_LINEAR);
    toy.open();
    const HintPtr hint = make_hint(name);
    for (int32_t r = 0; r < 3; ++r) {
      ASSERT_EQ(begin(toy.rank(r), {.hint = hint.get(), .microbatches = 4}), RRFP_OK);
    }
    std::array<bool, 3> complete = {};
    int rounds = 0;
    for (; complete != std::array{true, true, true}; ++rounds) {
      ASSERT_LT(rounds, 1000);
      for (int32_t r = 0; r < 3; ++r) {
        const auto at = static_cast<size_t>(r);
        rrfp_task task;
        const rrfp_status status = next(toy.rank(r), task);
        complete[at] = status == RRFP_STEP_DONE;
        if (status != RRFP_OK) {
          ASSERT_TRUE(complete[at] || status == RRFP_AGAIN);
          continue;
        }
        TaskContext context(toy.rank(r), task, {});
        const float in = r == 0 ? static_cast<float>(task.microbatch) : context.scalar(r - 1);
        const auto gradient = [&] { return r == 2 ? 1 : context.scalar(r); };
        if (task.kind == RRFP_FORWARD && r == 2) loss += kW[at] * in;
        if (task.kind == RRFP_FORWARD && r < 2) context.put_scalar(r, kW[at] * in);
        if (task.kind == RRFP_BACKWARD || task.kind == RRFP_WEIGHT_GRADIENT) {
          dw[at] += in * gradient();
        }
        if ((task.kind == RRFP_BACKWARD || task.kind == RRFP_INPUT_GRADIENT) && r > 0) {
          context.put_scalar(r - 1, kW[at] * gradient());
        }
        ASSERT_EQ(rrfp_rank_done(toy.rank(r), task.ticket, nullptr, nullptr), RRFP_OK);
      }
    }
    for (int32_t r = 0; r < 3; ++r) {
      EXPECT_EQ(rrfp_rank_end_step(toy.rank(r), nullptr, nullptr), RRFP_OK);
    }
    EXPECT_EQ(loss, 180);
    EXPECT_EQ(dw, (std::array<float, 3>{90, 60, 36}));
  }
}

TEST(Steps, ARankWithoutTasks) {
  // Every microbatch skips the stage in the middle, and with it the edges of that stage.
  const HintPtr hint = make_hint("1f1b");
  ToyPipeline toy(3);
  std::atomic<int> looked{0};
  for (int32_t s = 0; s < 3; ++s) {
    const auto look = [&looked, s](TaskContext& context) {
      EXPECT_NE(s, 1);
      EXPECT_TRUE(s == 0 || context.absent(1));
      ++looked;
    };
    toy.add_stage({look, look, {}}, s == 2 ? RRFP_STAGE_LOSS : 0);
    if (s > 0) toy.add_edge(s - 1, s);
  }
  toy.place(RRFP_PLACEMENT_LINEAR);
  toy.open();
  const Step step = {.hint = hint.get(), .microbatches = 2, .skip = {0, 0, 1, 1, 0, 0}};
  for (const StepResult& result : toy.run(std::vector<Step>(5, step))) {
    ASSERT_TRUE(done(result));
    EXPECT_EQ(result.order(0), "0F0 0F1") << "no loss, so no backward";
    EXPECT_EQ(result.order(1), "");
    EXPECT_EQ(result.ranks[1].report.total_ns, 0);
    EXPECT_EQ(result.ranks[2].tasks.size(), 4u);
  }
  EXPECT_EQ(looked, 5 * (2 + 4));
}

/// Two stages joined by many edges, so that one task sends more than a small mailbox holds.
class Bundle {
 public:
  static constexpr int32_t kEdges = 12;

  explicit Bundle(rrfp_wake wake) : toy(2) {
    toy.add_stage({[](TaskContext& c) { send(c, 1); }, [](TaskContext& c) { expect(c, 2); }, {}}, 0,
                  0);
    toy.add_stage({[](TaskContext& c) { expect(c, 1); }, [](TaskContext& c) { send(c, 2); }, {}},
                  RRFP_STAGE_LOSS, 1);
    for (int32_t e = 0; e < kEdges; ++e) toy.add_edge(0, 1);
    toy.options.mailbox_capacity = 2;
    toy.options.wake = wake;
    toy.open();
  }

  ToyPipeline toy;

 private:
  static float tag(const TaskContext& context, int32_t edge, int direction) {
    return static_cast<float>(edge * 1000 + context.task.microbatch * 10 + direction);
  }
  static void send(TaskContext& context, int direction) {
    for (int32_t e = 0; e < kEdges; ++e) context.put_scalar(e, tag(context, e, direction));
  }
  static void expect(TaskContext& context, int direction) {
    for (int32_t e = 0; e < kEdges; ++e) {
      EXPECT_EQ(context.scalar(e), tag(context, e, direction));
    }
  }
};

TEST(Steps, MailboxesForTwoMessages) {
  for (rrfp_wake wake : {RRFP_WAKE_YIELD, RRFP_WAKE_SPIN, RRFP_WAKE_PARK}) {
    for (const char* name : kHints) {
      // The ways of waiting are not a matter of the order of tasks.
      if (wake != RRFP_WAKE_YIELD && std::string_view(name) != "bfw") continue;
      SCOPED_TRACE(std::string(name) + ", wake " + std::to_string(wake));
      const HintPtr hint = make_hint(name);
      Bundle bundle(wake);
      for (uint64_t seed = 0; seed < 2; ++seed) {
        bundle.toy.delays = {seed, seed == 0 ? 0 : 200};
        const StepResult result = bundle.toy.run({.hint = hint.get(), .microbatches = 8});
        ASSERT_TRUE(done(result));
        EXPECT_EQ(result.ranks[0].report.messages_sent, 1 + 8 * Bundle::kEdges);
      }
      // Steps in a row: a rank may leave its step only when all it has to say is said.
      bundle.toy.delays = {};
      const Step step = {.hint = hint.get(), .microbatches = 4, .mode = RRFP_MODE_FORWARD};
      for (const StepResult& result : bundle.toy.run(std::vector<Step>(4, step))) {
        ASSERT_TRUE(done(result));
      }
    }
  }
}

TEST(Steps, MailboxesForTwoMessagesAroundTheLoop) {
  for (const char* name : kHints) {
    SCOPED_TRACE(name);
    ChainPipeline p(ToyChain({2, 3, 5, 7, 1, 2, 3, 1}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}),
                    4, RRFP_PLACEMENT_LOOP);
    p.toy.options.mailbox_capacity = 2;
    p.toy.open();
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      p.toy.delays = {seed, 200};
      ASSERT_TRUE(done(p.run(make_hint(name))));
      ASSERT_TRUE(p.chain.right());
    }
  }
}

}  // namespace
}  // namespace rrfp::cases
