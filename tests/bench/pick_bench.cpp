// SPDX-License-Identifier: Apache-2.0
//
// What one scheduling decision costs, without transport and tensors: the state machine alone.
//
//   cycle     pull a task and report it done, on a single rank: no messages. The pick is part of
//   it. message   the same on the middle rank of three, with the two messages that each microbatch
//   brings blocked   a pull that finds many ready forwards and may start none: the cap is full
//
// The argument is the number of tasks in the hint. Time is per task.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>

#include "engine/core/rank_core.h"

namespace rrfp::core {
namespace {

std::shared_ptr<const RankPlan> make_plan(int32_t ranks, RankId rank, int32_t microbatches,
                                          const char* hint_name, int64_t cap_slots) {
  auto graph = std::make_shared<StageGraph>(ranks);
  for (int32_t s = 0; s < ranks; ++s) {
    Stage stage;
    stage.loss = s == ranks - 1;
    StageId id;
    EdgeId edge;
    if (!graph->add_stage(stage, id).ok()) std::abort();
    if (s > 0 && !graph->add_edge({StageId(s - 1), id}, edge).ok()) std::abort();
  }
  if (!graph->place(Placement::kLinear).ok() || !graph->seal().ok()) std::abort();
  StepShape shape;
  shape.microbatches = microbatches;
  std::shared_ptr<const StepTasks> tasks;
  std::shared_ptr<const Hint> hint;
  std::shared_ptr<const RankPlan> plan;
  if (!StepTasks::create(graph, shape, tasks).ok() || !Hint::named(hint_name, hint).ok() ||
      !build_plan(tasks, *hint, rank, {}, {cap_slots, 0}, plan).ok()) {
    std::abort();
  }
  return plan;
}

/// Pulls and finishes one task.
Task run_one(RankCore& core) {
  const Task task = core.apply(Event::pull(), 0).front().task;
  core.apply(Event::task_done(), 0);
  return task;
}

void cycle(benchmark::State& state) {
  const auto n = static_cast<int32_t>(state.range(0));
  const auto plan = make_plan(1, RankId(0), n / 2, "1f1b", n);
  RankCore core;
  core.begin_step(plan);
  for (auto _ : state) {
    if (core.complete()) {
      state.PauseTiming();
      core.begin_step(plan);
      state.ResumeTiming();
    }
    benchmark::DoNotOptimize(run_one(core));
  }
}

void message(benchmark::State& state) {
  const auto n = static_cast<int32_t>(state.range(0));
  const auto plan = make_plan(3, RankId(1), n / 2, "1f1b", 3);
  RankCore core;
  int32_t arrived = plan->microbatches();
  for (auto _ : state) {
    if (arrived == plan->microbatches()) {
      state.PauseTiming();
      core.begin_step(plan);
      arrived = 0;
      state.ResumeTiming();
    }
    const MicrobatchId i(arrived++);
    core.apply(Event::message(EdgeId(0), Direction::kForward, i), 0);
    run_one(core);
    core.apply(Event::message(EdgeId(1), Direction::kBackward, i), 0);
    benchmark::DoNotOptimize(run_one(core));
  }
  state.SetItemsProcessed(state.iterations() * 2);
}

void blocked(benchmark::State& state) {
  const auto n = static_cast<int32_t>(state.range(0));
  const auto plan = make_plan(2, RankId(0), n / 2, "bf", 2);
  RankCore core;
  core.begin_step(plan);
  run_one(core);
  run_one(core);  // both slots are taken; the rest of the forwards are ready
  for (auto _ : state) benchmark::DoNotOptimize(core.apply(Event::pull(), 0).front().reason);
}

BENCHMARK(cycle)->RangeMultiplier(10)->Range(1000, 1000000);
BENCHMARK(message)->RangeMultiplier(10)->Range(1000, 1000000);
BENCHMARK(blocked)->RangeMultiplier(10)->Range(1000, 1000000);

}  // namespace
}  // namespace rrfp::core

BENCHMARK_MAIN();
