// SPDX-License-Identifier: Apache-2.0
//
// The named schedules that were published for one shape of pipeline: exact lists from SCHEDULES.md,
// what they refuse, and which tasks they leave out. Their closed forms for many sizes are in
// tests/property/published_forms_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/core/hint.h"
#include "tests/unit/fixtures.h"
#include "tests/unit/schedules_golden.h"

namespace rrfp::core {
namespace {

using namespace fixtures;
using Rows = std::vector<std::string>;
using TasksPtr = std::shared_ptr<const StepTasks>;

TasksPtr loop(int32_t p, int32_t v, int32_t m) {
  return make_step(chain(p, v, Placement::kLoop), m);
}
TasksPtr v_shape(int32_t p, int32_t m) {
  return make_step(chain(p, 2, Placement::kV), m);
}

Rows rows_of(std::string_view name, const StepTasks& tasks) {
  Rows rows;
  for (int32_t r = 0; r < tasks.graph().ranks(); ++r) {
    rows.push_back(text_of(order_of(*named_hint(name), tasks, r)));
  }
  return rows;
}

/// Every rank refuses, with the same text.
Status refusal(std::string_view name, const StepTasks& tasks) {
  std::vector<Task> order;
  const Status first = named_hint(name)->order(tasks, RankId(0), order);
  for (int32_t r = 1; r < tasks.graph().ranks(); ++r) {
    const Status other = named_hint(name)->order(tasks, RankId(r), order);
    EXPECT_EQ(other.text(), first.text());
  }
  return first;
}

constexpr std::string_view kLoopNames[] = {"interleaved", "looped-bfs", "interleaved-zb"};
constexpr std::string_view kVNames[] = {"zb-v", "v-half", "v-min", "dualpipe-v"};

std::span<const std::string_view> names_for(Placement placement) {
  if (placement == Placement::kV) return kVNames;
  return kLoopNames;
}

// --- Exact lists

TEST(PublishedLists, Interleaved) {
  EXPECT_EQ(rows_of("interleaved", *loop(2, 2, 4)),
            (Rows{"0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3",
                  "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3"}));
  EXPECT_EQ(rows_of("interleaved:2", *loop(2, 2, 4)), rows_of("interleaved", *loop(2, 2, 4)));
}

TEST(PublishedLists, InterleavedTable) {
  std::string microbatches;
  std::string chunks;
  for (const golden::TableEntry& e : golden::interleaved_table(2, 5, 3)) {
    microbatches += std::to_string(e.microbatch) + " ";
    chunks += std::to_string(e.chunk) + " ";
  }
  EXPECT_EQ(microbatches, "0 1 2 0 1 2 3 4 3 4 ");
  EXPECT_EQ(chunks, "0 0 0 1 1 1 0 0 1 1 ");
  // The forwards of every rank follow it.
  for (int32_t r = 0; r < 2; ++r) {
    std::vector<Task> forwards = order_of(*named_hint("interleaved:3"), *loop(2, 2, 5), r);
    std::erase_if(forwards, [](const Task& t) { return t.kind != TaskKind::kForward; });
    std::vector<golden::TableEntry> table;
    for (const Task& t : forwards) table.push_back({t.stage.value / 2, t.microbatch.value});
    EXPECT_EQ(table, golden::interleaved_table(2, 5, 3));
  }
}

TEST(PublishedLists, LoopedBfs) {
  EXPECT_EQ(rows_of("looped-bfs", *loop(2, 2, 2)),
            (Rows{"0F0,0F1,2F0,2F1,2B1,2B0,0B1,0B0", "1F0,1F1,3F0,3F1,3B1,3B0,1B1,1B0"}));
}

TEST(PublishedLists, ZeroBubbleH2) {
  EXPECT_EQ(rows_of("zb-h2", *make_step(chain(3), 6)),
            (Rows{"0F0,0F1,0F2,0F3,0F4,0I0,0W0,0F5,0I1,0W1,0I2,0W2,0I3,0W3,0I4,0W4,0I5,0W5",
                  "1F0,1F1,1F2,1I0,1F3,1I1,1F4,1I2,1W0,1F5,1I3,1W1,1I4,1W2,1I5,1W3,1W4,1W5",
                  "2F0,2I0,2F1,2I1,2F2,2I2,2F3,2I3,2F4,2I4,2W0,2F5,2I5,2W1,2W2,2W3,2W4,2W5"}));
}

TEST(PublishedLists, ZeroBubbleV) {
  EXPECT_EQ(rows_of("zb-v", *v_shape(2, 4)),
            (Rows{"0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0F3,0I0,0W0,3F2,3I2,3W2,0I1,0W1,3F3,3I3,"
                  "3W3,0I2,0W2,0I3,0W3",
                  "1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1F3,1I1,1W1,2F3,2I2,2W2,1I2,"
                  "2I3,1I3,1W2,2W3,1W3"}));
}

TEST(PublishedLists, DualPipeV) {
  EXPECT_EQ(rows_of("dualpipe-v", *v_shape(2, 4)),
            (Rows{"0F0,0F1,0F2,3F0,3I0,3W0,3F1,0F3,3B1,3F2,0B0,3B2,3F3,0B1,3B3,0I2,0W2,0I3,0W3",
                  "1F0,2F0,1F1,2F1,1F2,2B0,2F2,1B0,1F3,2B1,2F3,1B1,2B2,1B2,2I3,1I3,2W3,1W3"}));
}

// Written down here; V-Half and V-Min have no printed list.
TEST(PublishedLists, VHalfAndVMin) {
  EXPECT_EQ(rows_of("v-half", *v_shape(2, 2)),
            (Rows{"0F0,3F0,0F1,3I0,3W0,3F1,0I0,3I1,0W0,3W1,0I1,0W1",
                  "1F0,2F0,1F1,2F1,2I0,1I0,2W0,2I1,1W0,1I1,2W1,1W1"}));
  EXPECT_EQ(rows_of("v-min", *v_shape(2, 2)),
            (Rows{"0F0,3F0,3I0,3W0,0F1,0I0,0W0,3F1,3I1,3W1,0I1,0W1",
                  "1F0,2F0,2I0,1I0,1F1,2F1,2W0,1W0,2I1,1I1,2W1,1W1"}));
}

// Stages are counted along the chain; their numbers do not matter.
TEST(PublishedLists, StageNumbersMayBeAny) {
  StageGraph graph(2);
  const int32_t along[] = {2, 0, 3, 1};
  for (int32_t s = 0; s < 4; ++s) {
    Stage stage;
    stage.loss = s == along[3];
    const auto at = std::find(std::begin(along), std::end(along), s) - std::begin(along);
    stage.rank = RankId::of(at < 2 ? at : 3 - at);
    add_stage(graph, stage);
  }
  for (size_t k = 1; k < 4; ++k) add_edge(graph, along[k - 1], along[k]);
  add_edge(graph, along[0], along[3]);  // a shortcut asks for nothing new
  const Rows rows = rows_of("zb-v", *make_step(sealed(std::move(graph)), 2));
  EXPECT_EQ(rows[0], "2F0,2F1,1F0,1I0,1W0,1F1,1I1,1W1,2I0,2W0,2I1,2W1");
}

// --- What a step does not have

TEST(PublishedSteps, ForwardOnly) {
  const auto folded = make_step(chain(1, 2, Placement::kV), 2, StepMode::kForwardOnly);
  for (std::string_view name : kVNames) {
    EXPECT_EQ(rows_of(name, *folded), Rows{"0F0,1F0,0F1,1F1"}) << name;
  }
  EXPECT_EQ(
      rows_of("interleaved", *make_step(chain(2, 2, Placement::kLoop), 2, StepMode::kForwardOnly)),
      (Rows{"0F0,0F1,2F0,2F1", "1F0,1F1,3F0,3F1"}));
}

/// The order of a step is that of the full step without what the step does not have.
void expect_dropped(std::string_view name, const TasksPtr& full, const TasksPtr& step) {
  for (int32_t r = 0; r < full->graph().ranks(); ++r) {
    std::vector<Task> expected;
    for (Task task : order_of(*named_hint(name), *full, r)) {
      const bool weight = step->weight(task.stage, task.microbatch);
      const bool backward = step->backward(task.stage, task.microbatch);
      if (task.kind == TaskKind::kForward && !step->takes_part(task.stage, task.microbatch))
        continue;
      if (task.kind == TaskKind::kWeightGradient && !weight) continue;
      if (task.kind == TaskKind::kBackward || task.kind == TaskKind::kInputGradient) {
        if (!backward) continue;
        if (!weight) task.kind = TaskKind::kInputGradient;
      }
      expected.push_back(task);
    }
    ASSERT_EQ(order_of(*named_hint(name), *step, r), expected) << name << ", rank " << r;
  }
}

TEST(PublishedSteps, SkippedFrozenAndForwardOnly) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const int32_t p = 1 + random.below(3);
    const int32_t m = 2 * p * (1 + random.below(2));
    for (const Placement placement : {Placement::kLoop, Placement::kV}) {
      std::vector<Stage> stages(static_cast<size_t>(2 * p));
      for (Stage& stage : stages) stage.frozen = random.chance(40);
      const auto graph = sealed(chain_of(p, stages, placement));
      const TasksPtr full = make_step(chain(p, 2, placement), m);
      const TasksPtr step = make_step(graph, random_shape(random, *graph, m));
      for (std::string_view name : names_for(placement)) {
        expect_dropped(name, full, step);
      }
    }
  }
}

TEST(PublishedSteps, FrozenStages) {
  std::vector<Stage> stages(4);
  stages[0].frozen = true;
  stages[3].frozen = true;
  const auto tasks = make_step(sealed(chain_of(2, stages, Placement::kV)), 4);
  EXPECT_EQ(rows_of("dualpipe-v", *tasks),
            (Rows{"0F0,0F1,0F2,3F0,3I0,3F1,0F3,3I1,3F2,3I2,3F3,3I3",
                  "1F0,2F0,1F1,2F1,1F2,2B0,2F2,1B0,1F3,2B1,2F3,1B1,2B2,1B2,2I3,1I3,2W3,1W3"}));
}

// --- What is refused

TEST(PublishedErrors, NotAChain) {
  std::vector<Stage> stages(4);
  StageGraph graph(2);
  for (int32_t s = 0; s < 4; ++s) add_stage(graph, stages[0]);
  add_edge(graph, 0, 1);
  add_edge(graph, 0, 2);
  add_edge(graph, 1, 3);
  add_edge(graph, 2, 3);
  for (const Placement placement : {Placement::kLoop, Placement::kV}) {
    StageGraph placed = graph;
    require(placed.place(placement));
    const TasksPtr tasks = make_step(sealed(std::move(placed)), 4);
    for (std::string_view name : names_for(placement)) {
      EXPECT_TRUE(fails_with(refusal(name, *tasks), Code::kBadOrder,
                             {"\"" + std::string(name) + "\" needs a chain",
                              "the longest path has 3 of the 4 stages"}));
    }
  }
}

TEST(PublishedErrors, WrongPlacement) {
  for (std::string_view name : kVNames) {
    EXPECT_TRUE(fails_with(refusal(name, *loop(2, 2, 4)), Code::kBadOrder,
                           {name, "stages r and 3 - r on rank r",
                            "stage 2, number 2 along the chain, is on rank 0 instead of rank 1"}));
    EXPECT_TRUE(fails_with(refusal(name, *loop(2, 3, 4)), Code::kBadOrder,
                           {name, "two stages for each rank", "6 stages for 2 ranks"}));
  }
  for (std::string_view name : kLoopNames) {
    EXPECT_TRUE(fails_with(
        refusal(name, *v_shape(2, 4)), Code::kBadOrder,
        {name, "stage k on rank k mod 2", "stage 2, number 2", "on rank 1", "instead of rank 0"}));
    const auto three = sealed(chain_of(2, std::vector<Stage>(3), Placement::kLoop));
    EXPECT_TRUE(fails_with(refusal(name, *make_step(three, 4)), Code::kBadOrder,
                           {name, "the same number on each rank", "3 stages for 2 ranks"}));
  }
}

TEST(PublishedErrors, GroupSize) {
  EXPECT_TRUE(fails_with(refusal("interleaved", *loop(4, 2, 9)), Code::kBadOrder,
                         {"\"interleaved\"", "from 4 ranks to 9 microbatches", "the default 4",
                          "\"interleaved:5\" would"}));
  EXPECT_TRUE(fails_with(refusal("interleaved-zb:3", *loop(4, 2, 8)), Code::kBadOrder,
                         {"\"interleaved-zb\"", "; 3 does not", "\"interleaved-zb:4\" would"}));
  EXPECT_TRUE(fails_with(refusal("interleaved:9", *loop(4, 2, 8)), Code::kBadOrder,
                         {"9 does not", "\"interleaved:4\" would"}));
  EXPECT_TRUE(
      fails_with(refusal("interleaved:2", *loop(4, 2, 3)), Code::kBadOrder,
                 {"one group of all 3 microbatches", "2 does not", "\"interleaved:3\" would"}));
}

TEST(PublishedErrors, TooFewMicrobatches) {
  EXPECT_TRUE(
      fails_with(refusal("dualpipe-v", *v_shape(3, 5)), Code::kBadOrder,
                 {"\"dualpipe-v\"", "two microbatches for each of the 3 ranks", "there are 5"}));
  EXPECT_TRUE(fails_with(refusal("dualpipe", *make_dual_step(4, 6)), Code::kBadOrder,
                         {"\"dualpipe\"", "at least one for each of the 4 ranks",
                          "3 microbatches enter at stage 0 and 3 at stage 4"}));
}

// --- DualPipe

TEST(PublishedDualPipe, StreamsMayRunEveryMicrobatch) {
  // Without a skip mask each microbatch runs in both streams, which is twice as many.
  const TasksPtr both = make_step(sealed(two_chains(2)), 2);
  EXPECT_EQ(rows_of("dualpipe", *both),
            (Rows{"0F0,3F0,0F1,3B0,3F1,0B0,3B1,0I1,0W1", "2F0,1F0,2F1,1B0,1F1,2B0,1B1,2I1,2W1"}));
}

TEST(PublishedDualPipe, Shape) {
  EXPECT_TRUE(fails_with(refusal("dualpipe", *make_step(sealed(two_chains(3)), 6)), Code::kBadOrder,
                         {"even number of ranks", "3 ranks and 6 stages"}));
  EXPECT_TRUE(fails_with(refusal("dualpipe", *loop(2, 3, 4)), Code::kBadOrder,
                         {"two chains", "2 ranks and 6 stages"}));
  EXPECT_TRUE(fails_with(
      refusal("dualpipe", *v_shape(2, 4)), Code::kBadOrder,
      {"A on stages 0 to 1", "Z on stages 2 to 3", "stage 1 feeds stage 2 of the other chain"}));
  StageGraph turned = two_chains(2);
  require(turned.place(StageId(2), RankId(0)));
  require(turned.place(StageId(3), RankId(1)));
  EXPECT_TRUE(fails_with(refusal("dualpipe", *make_step(sealed(std::move(turned)), 4)),
                         Code::kBadOrder, {"stage 2 is on rank 0 instead of rank 1"}));
  StageGraph loose(2);
  for (int32_t s = 0; s < 4; ++s) {
    Stage stage;
    stage.rank = RankId(s < 2 ? s : 3 - s);
    add_stage(loose, stage);
  }
  EXPECT_TRUE(fails_with(refusal("dualpipe", *make_step(sealed(std::move(loose)), 4)),
                         Code::kBadOrder, {"stage 1 is not number 1 of its chain"}));
}

TEST(PublishedDualPipe, UnequalStreams) {
  StepShape shape;
  shape.microbatches = 5;
  for (int32_t s = 0; s < 4; ++s) {
    for (int32_t i = 0; i < 5; ++i) shape.skip.push_back((i % 2 == 0) == (s < 2) ? 0 : 1);
  }
  EXPECT_TRUE(fails_with(refusal("dualpipe", *make_step(sealed(two_chains(2)), shape)),
                         Code::kBadOrder,
                         {"as many microbatches in stream A as in stream Z",
                          "3 microbatches enter at stage 0 and 2 at stage 2"}));
  // One that joins a stream on the way belongs to none.
  shape.microbatches = 4;
  shape.skip = {0, 1, 0, 1, /**/ 0, 0, 0, 1, /**/ 1, 0, 1, 0, /**/ 1, 0, 1, 0};
  const TasksPtr tasks = make_step(sealed(two_chains(2)), shape);
  std::vector<Task> order;
  EXPECT_TRUE(fails_with(named_hint("dualpipe")->order(*tasks, RankId(1), order), Code::kBadOrder,
                         {"rank 1", "no forward of stage 1, microbatch 1"}));
}

}  // namespace
}  // namespace rrfp::core
