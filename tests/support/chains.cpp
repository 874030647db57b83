// SPDX-License-Identifier: Apache-2.0
#include "tests/support/chains.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace rrfp::test {
namespace {

/// A test that asks for something invalid is wrong itself.
void must(const core::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "a test asks for an invalid chain: %s\n", status.text().c_str());
  std::abort();
}

}  // namespace

std::shared_ptr<const core::StepTasks> chain_of(const std::vector<core::Stage>& stages,
                                                int32_t ranks, int32_t microbatches,
                                                core::Placement placement) {
  auto graph = std::make_shared<core::StageGraph>(ranks);
  for (size_t s = 0; s < stages.size(); ++s) {
    core::Stage stage = stages[s];
    stage.loss = s + 1 == stages.size();
    core::StageId id;
    must(graph->add_stage(stage, id));
    if (s == 0) continue;
    core::EdgeId edge;
    must(graph->add_edge({core::StageId::of(s - 1), id, true}, edge));
  }
  must(graph->place(placement));
  must(graph->seal());
  core::StepShape shape;
  shape.microbatches = microbatches;
  std::shared_ptr<const core::StepTasks> tasks;
  must(core::StepTasks::create(std::move(graph), std::move(shape), tasks));
  return tasks;
}

std::shared_ptr<const core::Hint> named_hint(std::string_view name) {
  std::shared_ptr<const core::Hint> hint;
  must(core::Hint::named(name, hint));
  return hint;
}

std::vector<core::Task> tasks_of(const RankRecord& rank) {
  std::vector<core::Task> tasks;
  for (const TaskSpan& span : rank.spans) tasks.push_back(span.task);
  return tasks;
}

std::string text_of(const std::vector<core::Task>& tasks) {
  std::string text;
  for (const core::Task& task : tasks) text += (text.empty() ? "" : ",") + to_string(task);
  return text;
}

}  // namespace rrfp::test
