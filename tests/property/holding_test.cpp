// SPDX-License-Identifier: Apache-2.0
//
// Holding: when a ready task is kept back for an announced better one, and how that ends.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/chains.h"

namespace rrfp::test {
namespace {

using core::EdgeId;
using core::MicrobatchId;
using core::Task;
using core::TaskKind;

constexpr int64_t kUnit = 1000;  // ns; predictions are divided by 1000 before they are used

/// Rank 2 comes to a point where 2I0 is done and its long 2W0 is ready, while rank 3 runs 3I1 and
/// will be done with it in half a unit. Two slow ranks upstream wait for the 2I1 that follows.
VirtualPipeline worth_holding(int32_t hold_permille) {
  std::vector<core::Stage> stages(4);
  for (core::Stage& stage : stages) {
    stage.forward_ns = stage.input_gradient_ns = stage.weight_gradient_ns = kUnit;
  }
  for (size_t s : {0u, 1u}) {
    stages[s].frozen = stages[s].input_gradient = true;
    stages[s].input_gradient_ns = 8 * kUnit;
  }
  stages[2].input_gradient_ns = 3 * kUnit / 2;  // so that 2I0 ends in the middle of 3I1
  stages[2].weight_gradient_ns = 10 * kUnit;
  VirtualPipeline setup;
  setup.tasks = chain_of(stages, 4, 2, core::Placement::kLinear);
  setup.hint = named_hint("bfw");
  setup.policy.hold_permille = hold_permille;
  setup.timing.task_ns = [stages](const Task& task) {
    const core::Stage& stage = stages[task.stage.index()];
    switch (task.kind) {
      case TaskKind::kForward: return stage.forward_ns;
      case TaskKind::kInputGradient: return stage.input_gradient_ns;
      case TaskKind::kWeightGradient: return stage.weight_gradient_ns;
      case TaskKind::kBackward: break;
    }
    return stage.input_gradient_ns + stage.weight_gradient_ns;
  };
  return setup;
}

TaskSpan span_of(const VirtualResult& run, size_t rank, const std::string& name) {
  for (const TaskSpan& span : run.ranks[rank].spans) {
    if (to_string(span.task) == name) return span;
  }
  ADD_FAILURE() << name << " did not run on rank " << rank;
  return {};
}

TEST(Holding, WaitsForTheBetterTask) {
  const VirtualResult without = run_virtual(worth_holding(0));
  const VirtualResult with = run_virtual(worth_holding(250));
  ASSERT_TRUE(without.ok) << without.error;
  ASSERT_TRUE(with.ok) << with.error;
  EXPECT_EQ(without.ranks[2].holds, 0);
  EXPECT_EQ(with.ranks[2].holds, 1);
  EXPECT_GT(span_of(without, 2, "2I1").start_ns, span_of(without, 2, "2W0").start_ns);
  EXPECT_LT(span_of(with, 2, "2I1").start_ns, span_of(with, 2, "2W0").start_ns);
  EXPECT_EQ(span_of(with, 2, "2I1").start_ns, span_of(with, 3, "3I1").end_ns);
  EXPECT_LT(with.makespan_ns, without.makespan_ns);
}

TEST(Holding, EndsAtItsDeadline) {
  VirtualPipeline setup = worth_holding(250);
  // Announced in time, but its message is stuck.
  setup.timing.message_ns = [](EdgeId e, core::Direction direction, MicrobatchId i) {
    const bool stuck = e == EdgeId(2) && direction == core::Direction::kBackward && i.value == 1;
    return stuck ? 100 * kUnit : 0;
  };
  const VirtualResult run = run_virtual(setup);
  ASSERT_TRUE(run.ok) << run.error;
  EXPECT_EQ(run.ranks[2].holds, 1);
  // The announced time, and 15 % of what is held back.
  const int64_t due_ns = span_of(run, 3, "3I1").end_ns;
  EXPECT_EQ(span_of(run, 2, "2W0").start_ns, due_ns + 15 * (10 * kUnit) / 100);
}

TEST(Holding, IsNotWorthALongWait) {
  // 2I1 is due in half a unit, which is more than 4 % of the ten units of 2W0.
  const VirtualResult run = run_virtual(worth_holding(40));
  ASSERT_TRUE(run.ok) << run.error;
  EXPECT_EQ(run.ranks[2].holds, 0);
}

/// Stages 0 and 1 feed stage 2 on rank 2, where the long 3F0 is always ready. When one of the two
/// inputs of 2F0 has arrived and the other is announced, 2F0 is imminent.
TEST(Holding, KnowsWhichInputsOfAJoinAreStillToCome) {
  auto graph = std::make_shared<core::StageGraph>(3);
  const int64_t forward_ns[] = {1 * kUnit, 4 * kUnit, 2 * kUnit, 10 * kUnit, 2 * kUnit};
  const int32_t rank[] = {0, 1, 2, 2, 2};
  for (size_t s = 0; s < 5; ++s) {
    core::Stage stage;
    stage.rank = core::RankId(rank[s]);
    stage.loss = s >= 2;
    stage.forward_ns = forward_ns[s];
    core::StageId id;
    ASSERT_TRUE(graph->add_stage(stage, id).ok());
  }
  for (const int32_t from : {0, 1}) {
    EdgeId id;
    ASSERT_TRUE(graph->add_edge({core::StageId(from), core::StageId(2), true}, id).ok());
  }
  ASSERT_TRUE(graph->seal().ok());
  core::StepShape shape;
  shape.mode = core::StepMode::kForwardOnly;
  shape.microbatches = 1;
  VirtualPipeline setup;
  ASSERT_TRUE(core::StepTasks::create(graph, shape, setup.tasks).ok());
  const auto f = [](int32_t s) {
    return Task{core::StageId(s), MicrobatchId(0), TaskKind::kForward};
  };
  // 0F0 ends during 4F0; after that 3F0 could start, but 1F0 will end before long.
  ASSERT_TRUE(core::Hint::lists({{f(0)}, {f(1)}, {f(4), f(2), f(3)}}, setup.hint).ok());
  setup.policy.hold_permille = 500;
  setup.timing.task_ns = [&](const Task& task) { return forward_ns[task.stage.index()]; };
  const VirtualResult run = run_virtual(setup);
  ASSERT_TRUE(run.ok) << run.error;
  EXPECT_EQ(run.ranks[2].holds, 1);
  EXPECT_EQ(text_of(tasks_of(run.ranks[2])), "4F0,2F0,3F0");
  EXPECT_EQ(span_of(run, 2, "2F0").start_ns, 4 * kUnit);
}

}  // namespace
}  // namespace rrfp::test
