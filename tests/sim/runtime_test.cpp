// SPDX-License-Identifier: Apache-2.0
//
// What stands between ranks and within them: links, tensor-parallel groups, early reports, copies
// to the host, paired messages, faults; and how large a step may be.
#include <sys/resource.h>

#include <chrono>
#include <iostream>
#include <map>
#include <set>

#include "engine/sim/network.h"
#include "tests/sim/runs.h"

namespace rrfp::sim {
namespace {

using core::Cap;
using core::Direction;
using core::EdgeId;
using core::MicrobatchId;
using core::Order;
using core::Policy;
using core::RankId;
using core::StageGraph;
using core::StageId;
using core::Task;

constexpr Direction kForward = Direction::kForward;
constexpr Direction kBackward = Direction::kBackward;

/// Stages 0 and 2 on rank 0, stage 1 on rank 1: edges 0 and 1 share the ranks.
StageGraph there_and_back() {
  StageGraph graph(2);
  for (int32_t s = 0; s < 3; ++s) {
    core::Stage stage;
    stage.rank = RankId(s % 2);
    stage.loss = s == 2;
    StageId id;
    require(graph.add_stage(stage, id));
  }
  EdgeId id;
  require(graph.add_edge({StageId(0), StageId(1), true}, id));
  require(graph.add_edge({StageId(1), StageId(2), true}, id));
  require(graph.seal());
  return graph;
}

// --- Links

TEST(SimLinks, OneAfterTheOther) {
  Links links;
  links.serialize_ns = 100;
  links.latency_ns = 7;
  const StageGraph graph = there_and_back();
  Network network(links, graph);
  EXPECT_EQ(network.send(EdgeId(0), kForward, MicrobatchId(0), 0), 107);
  EXPECT_EQ(network.send(EdgeId(0), kForward, MicrobatchId(1), 10), 207) << "waits for its turn";
  EXPECT_EQ(network.send(EdgeId(0), kBackward, MicrobatchId(0), 10), 117) << "the other way";
  // A gradient of edge 1 goes from rank 0 to rank 1, as the activations of edge 0 do.
  EXPECT_EQ(network.send(EdgeId(1), kBackward, MicrobatchId(0), 20), 307);
  EXPECT_EQ(network.send(EdgeId(0), kForward, MicrobatchId(2), 1000), 1107) << "idle again";
}

TEST(SimLinks, FactorsAreThoseOfTheMessage) {
  Links links;
  links.serialize_ns = 100;
  links.latency_ns = 10;
  links.factor = [](EdgeId, Direction, MicrobatchId i) { return 1.0 + i.value; };
  const StageGraph graph = there_and_back();
  Network network(links, graph);
  EXPECT_EQ(network.send(EdgeId(0), kForward, MicrobatchId(2), 0), 330);
}

TEST(SimLinks, EpisodesHaveTheirShareAndLength) {
  Links links;
  links.serialize_ns = 1000;
  links.episode_share = 0.1;
  links.episode_ns = 1e6;
  links.episode_factor = 3;
  const StageGraph graph = there_and_back();
  Network network(links, graph);
  constexpr int64_t kSamples = 2'000'000;
  constexpr int64_t kEveryNs = 10'000;
  int64_t slow = 0;
  int64_t episodes = 0;
  bool was_slow = false;
  for (int64_t k = 0; k < kSamples; ++k) {
    const int64_t now_ns = k * kEveryNs;
    const int64_t taken_ns = network.send(EdgeId(0), kForward, MicrobatchId(0), now_ns) - now_ns;
    ASSERT_TRUE(taken_ns == 1000 || taken_ns == 3000) << taken_ns;
    const bool is_slow = taken_ns == 3000;
    slow += is_slow ? 1 : 0;
    episodes += is_slow && !was_slow ? 1 : 0;
    was_slow = is_slow;
  }
  EXPECT_NEAR(static_cast<double>(slow) / kSamples, 0.1, 0.015);
  EXPECT_NEAR(static_cast<double>(slow * kEveryNs) / static_cast<double>(episodes), 1e6, 1e5);
}

// --- Groups and reports

int64_t group_ns(const Outcome& outcome) {
  int64_t sum = 0;
  for (const RankOutcome& rank : outcome.ranks) sum += rank.group_ns;
  return sum;
}

TEST(SimGroup, AllReportedNeverWaitsAndTheLeaderDoes) {
  const Realization step = realization("language", 4, 16);
  Scenario alone = scenario_of(step, kUncut, "1f1b", in_order(Order::kStrict));
  const Outcome single = simulate(alone);
  Scenario scenario = alone;
  scenario.group.size = 4;
  scenario.group.spread_ns = 2.0 * kMs;
  scenario.group.report_ns = 0;
  const Outcome all = simulate(scenario);
  scenario.group.readiness = Group::Readiness::kLeader;
  const Outcome leader = simulate(scenario);
  EXPECT_TRUE(single.complete && all.complete && leader.complete);
  EXPECT_EQ(group_ns(single), 0);
  EXPECT_EQ(group_ns(all), 0) << "what is reported is everywhere";
  EXPECT_GT(group_ns(leader), 0);
  EXPECT_GT(all.makespan_ns, single.makespan_ns);
  EXPECT_EQ(all.makespan_ns, leader.makespan_ns) << "in strict order the tasks start as early";
  scenario.group.readiness = Group::Readiness::kAll;
  scenario.group.report_ns = kMs;
  EXPECT_GT(simulate(scenario).makespan_ns, all.makespan_ns) << "a report takes time";
}

TEST(SimReports, APrematureOneCostsWaitingOnly) {
  const Realization step = realization("language", 4, 16);
  Scenario scenario = scenario_of(step, kUncut, "1f1b", in_order(Order::kStrict));
  const Outcome honest = simulate(scenario);
  scenario.runtime.early_probability = 1;
  scenario.runtime.early_ns = 5 * kMs;
  const Outcome early = simulate(scenario);
  ASSERT_TRUE(early.complete) << early.error;
  EXPECT_EQ(early.makespan_ns, honest.makespan_ns);
  EXPECT_EQ(early.tasks, honest.tasks);
  EXPECT_GT(group_ns(early), 0);
  // In ready order the choice suffers, but no task is lost.
  Scenario ready = scenario_of(step, kUncut, "bfw", {});
  const Outcome known = simulate(ready);
  ready.runtime = scenario.runtime;
  const Outcome guessed = simulate(ready);
  ASSERT_TRUE(guessed.complete) << guessed.error;
  EXPECT_GT(group_ns(guessed), 0);
  EXPECT_LT(guessed.makespan_ns, known.makespan_ns * 3 / 2);
}

TEST(SimReports, LateOnesAndDispatchTakeTime) {
  const Realization step = realization("ideal", 4, 8);
  Scenario scenario = scenario_of(step, kUncut, "1f1b", in_order(Order::kStrict));
  const int64_t ideal_ns = simulate(scenario).makespan_ns;
  scenario.runtime.report_ns = kMs;
  EXPECT_GE(simulate(scenario).makespan_ns, ideal_ns + 6 * kMs) << "six hops there and back";
  scenario.runtime.report_ns = 0;
  scenario.runtime.dispatch_ns = kMs;
  EXPECT_EQ(simulate(scenario).makespan_ns, ideal_ns + (2 * 8 + 2 * 3) * kMs)
      << "every task on the critical path";
}

// --- Offload

TEST(SimOffload, KeepsTheCapAndShortensTheStep) {
  int64_t without_ns = 0;
  int64_t with_ns = 0;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const Realization step = realization("language", 16, 64, seed);
    const int64_t cap = native_bytes(step);
    Policy policy;
    policy.reserve_permille = 100;
    policy.deterministic = false;
    without_ns += run(step, kVOfTwo, "bfw", policy, caps_of(16, cap)).makespan_ns;
    policy.offload_ns_per_mib = 20 * kMs;
    const Outcome outcome = run(step, kVOfTwo, "bfw", policy, caps_of(16, cap));
    ASSERT_TRUE(outcome.complete) << outcome.error;
    EXPECT_GT(outcome.offloads, 0);
    EXPECT_LE(outcome.peak_bytes(), cap);
    with_ns += outcome.makespan_ns;
  }
  EXPECT_LT(with_ns, without_ns * 98 / 100);
}

// --- Paired messages

TEST(SimPaired, NeverFasterThanAsynchronous) {
  const std::string_view names[] = {"ideal", "uniform", "language", "multimodal", "slow-link"};
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Realization step =
        realization(names[seed % std::size(names)], static_cast<int32_t>(2 + seed % 7), 12, seed);
    const Outcome paired = run(step, kUncut, "1f1b", in_order(Order::kPaired));
    ASSERT_TRUE(paired.complete) << paired.error;
    EXPECT_GE(paired.makespan_ns, strict_ns(step, kUncut, "1f1b")) << "seed " << seed;
  }
}

// Rank 0 has sent microbatch 0 and waits until it is wanted; rank 1 wants microbatch 1 first. With
// messages that wait at the receiver both orders can be obeyed.
TEST(SimPaired, ADeadlockIsSeen) {
  const Realization step = realization("ideal", 2, 2);
  const auto tasks = step_tasks(step, kUncut, data_order(2));
  std::shared_ptr<const core::Hint> hint;
  require(core::Hint::text("0F0,0F1,0B1,0B0\n1F1,1B1,1F0,1B0\n", hint));
  Policy policy = in_order(Order::kStrict);
  policy.deterministic = false;
  Scenario scenario;
  scenario.durations = true_durations(step, kUncut, data_order(2));
  require(make_plans(tasks, *hint, policy, {}, scenario.plans));
  EXPECT_TRUE(simulate(scenario).complete);
  policy.order = Order::kPaired;
  require(make_plans(tasks, *hint, policy, {}, scenario.plans));
  const Outcome outcome = simulate(scenario);
  EXPECT_FALSE(outcome.complete);
  EXPECT_TRUE(outcome.stalled);
  EXPECT_NE(outcome.error.find("rank 1 waits at 1F1"), std::string::npos) << outcome.error;
}

// --- Faults

TEST(SimFaults, ReachEveryRank) {
  const Realization step = realization("language", 6, 12);
  Scenario scenario = scenario_of(step, kUncut, "bfw", {});
  const Outcome healthy = simulate(scenario);
  scenario.faults.failing_rank = 2;
  scenario.faults.fail_at_ns = healthy.makespan_ns / 2;
  const Outcome died = simulate(scenario);
  EXPECT_FALSE(died.complete);
  EXPECT_FALSE(died.stalled);
  EXPECT_NE(died.error.find("rank 2 died"), std::string::npos) << died.error;
  EXPECT_LE(died.makespan_ns, scenario.faults.fail_at_ns);
  for (const RankOutcome& rank : died.ranks) EXPECT_TRUE(rank.told_of_failure);
  scenario.faults.fail_at_ns = healthy.makespan_ns + kMs;
  EXPECT_TRUE(simulate(scenario).complete) << "a rank that dies after the step does not matter";

  scenario.faults = {};
  scenario.faults.lose_message = healthy.messages / 2;
  const Outcome lost = simulate(scenario);
  EXPECT_FALSE(lost.complete);
  EXPECT_FALSE(lost.stalled);
  EXPECT_NE(lost.error.find("watchdog"), std::string::npos) << lost.error;
  for (const RankOutcome& rank : lost.ranks) EXPECT_TRUE(rank.told_of_failure);
}

// --- Bookkeeping

TEST(SimOutcome, TimeAddsUp) {
  const Realization step = realization("multimodal", 8, 16);
  Scenario scenario = scenario_of(step, kUncut, "zb-h1", {});
  int64_t observed = 0;
  std::map<int32_t, int64_t> busy_ns;
  Observer observer;
  observer.task = [&](RankId rank, const Task& task, int64_t ready_ns, int64_t begin_ns,
                      int64_t end_ns) {
    ++observed;
    busy_ns[rank.value] += end_ns - begin_ns;
    EXPECT_LE(ready_ns, begin_ns);
    EXPECT_EQ(end_ns - begin_ns, scenario.durations.ns(task));
  };
  const Outcome outcome = simulate(scenario, observer);
  EXPECT_EQ(outcome.tasks, observed);
  EXPECT_EQ(outcome.messages, 2 * 7 * 16);
  for (size_t r = 0; r < outcome.ranks.size(); ++r) {
    const RankOutcome& rank = outcome.ranks[r];
    EXPECT_EQ(rank.busy_ns, busy_ns[static_cast<int32_t>(r)]);
    int64_t sum_ns = rank.busy_ns + rank.group_ns;
    for (const int64_t idle_ns : rank.idle_ns) sum_ns += idle_ns;
    EXPECT_EQ(sum_ns, rank.end_ns) << "rank " << r;
  }
  const Outcome again = simulate(scenario);
  EXPECT_EQ(again.makespan_ns, outcome.makespan_ns) << "watching changes nothing";
}

TEST(SimSize, FourThousandRanks) {
  const auto begin = std::chrono::steady_clock::now();
  const Realization step = realization("language", 4096, 256);
  const Outcome outcome = run(step, kUncut, "1f1b", in_order(Order::kStrict));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(outcome.complete) << outcome.error;
  EXPECT_EQ(outcome.tasks, int64_t{4096} * 256 * 2);
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::cout << "4096 ranks x 256 microbatches: " << taken.count() << " s, peak "
            << usage.ru_maxrss / 1024 << " MiB\n";
}

}  // namespace
}  // namespace rrfp::sim
