// SPDX-License-Identifier: Apache-2.0
//
// What the unit tests share: small graphs, steps and hints in one line each, tasks as schedule
// text, a check of error texts, and a random number generator whose sequence is the same
// everywhere.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/admission.h"
#include "engine/core/graph.h"
#include "engine/core/hint.h"
#include "engine/core/step_tasks.h"

namespace rrfp::core {

// How GoogleTest shows them.
inline void PrintTo(const Task& task, std::ostream* out) {
  *out << to_string(task);
}
inline void PrintTo(const Amount& amount, std::ostream* out) {
  *out << amount.slots << " slots, " << amount.bytes << " bytes";
}

}  // namespace rrfp::core

namespace rrfp::core::fixtures {

/// splitmix64. The standard distributions may differ between libraries, so none is used.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// 0 .. bound-1
  int32_t below(int32_t bound) {
    return static_cast<int32_t>(next() % static_cast<uint64_t>(bound));
  }
  bool chance(int32_t percent) { return below(100) < percent; }

 private:
  uint64_t state_;
};

/// For steps that a test takes for granted: GoogleTest reports the exception as a failure.
inline void require(const Status& status) {
  if (!status.ok()) throw std::runtime_error("unexpected error: " + status.text());
}

/// What a test prints goes into XML reports, so whatever is not plain ASCII becomes '?'.
inline std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 300)) shown += c >= ' ' && c <= '~' ? c : '?';
  return shown;
}

/// The status is an error of this code, and its text has all these parts.
inline ::testing::AssertionResult fails_with(const Status& status, Code code,
                                             std::initializer_list<std::string_view> parts) {
  if (status.code() != code) {
    return ::testing::AssertionFailure()
           << "code " << static_cast<int>(status.code()) << " instead of " << static_cast<int>(code)
           << ", text \"" << printable(status.text()) << "\"";
  }
  for (std::string_view part : parts) {
    if (status.text().find(part) != std::string::npos) continue;
    return ::testing::AssertionFailure()
           << "the text \"" << printable(status.text()) << "\" does not have \"" << part << "\"";
  }
  return ::testing::AssertionSuccess();
}

/// Can run B, but not I and W apart.
inline Stage fused_stage() {
  Stage stage;
  stage.fused_only = true;
  return stage;
}

inline StageId add_stage(StageGraph& graph, const Stage& stage) {
  StageId id;
  require(graph.add_stage(stage, id));
  return id;
}

inline EdgeId add_edge(StageGraph& graph, int32_t from, int32_t to, bool gradient = true) {
  EdgeId id;
  require(graph.add_edge({StageId(from), StageId(to), gradient}, id));
  return id;
}

inline std::shared_ptr<const StageGraph> sealed(StageGraph graph) {
  require(graph.seal());
  return std::make_shared<const StageGraph>(std::move(graph));
}

/// Stages one after the other, edge k from stage k to stage k+1, the loss on the last.
inline StageGraph chain_of(int32_t ranks, std::vector<Stage> stages, Placement placement) {
  StageGraph graph(ranks);
  if (!stages.empty()) stages.back().loss = true;
  for (const Stage& stage : stages) add_stage(graph, stage);
  for (int32_t s = 1; s < graph.stage_count(); ++s) add_edge(graph, s - 1, s);
  require(graph.place(placement));
  return graph;
}

inline std::shared_ptr<const StageGraph> chain(int32_t ranks, int32_t chunks = 1,
                                               Placement placement = Placement::kLinear,
                                               const Stage& each = {}) {
  return sealed(
      chain_of(ranks, std::vector<Stage>(static_cast<size_t>(ranks * chunks), each), placement));
}

inline std::shared_ptr<const StepTasks> make_step(std::shared_ptr<const StageGraph> graph,
                                                  StepShape shape) {
  std::shared_ptr<const StepTasks> tasks;
  require(StepTasks::create(std::move(graph), std::move(shape), tasks));
  return tasks;
}

inline std::shared_ptr<const StepTasks> make_step(std::shared_ptr<const StageGraph> graph,
                                                  int32_t microbatches,
                                                  StepMode mode = StepMode::kTrain) {
  StepShape shape;
  shape.mode = mode;
  shape.microbatches = microbatches;
  return make_step(std::move(graph), std::move(shape));
}

/// DualPipe: stream A on stages 0..p-1, stage r on rank r, stream Z on stages p..2p-1 the other
/// way.
inline StageGraph two_chains(int32_t p) {
  StageGraph graph(p);
  for (int32_t s = 0; s < 2 * p; ++s) {
    Stage stage;
    stage.loss = s == p - 1 || s == 2 * p - 1;
    stage.rank = RankId(s < p ? s : 2 * p - 1 - s);
    add_stage(graph, stage);
    if (s != 0 && s != p) add_edge(graph, s - 1, s);
  }
  return graph;
}

/// Even microbatches take stream A, odd ones stream Z.
inline std::shared_ptr<const StepTasks> make_dual_step(int32_t p, int32_t m) {
  StepShape shape;
  shape.microbatches = m;
  for (int32_t s = 0; s < 2 * p; ++s) {
    for (int32_t i = 0; i < m; ++i) shape.skip.push_back((i % 2 == 0) == (s < p) ? 0 : 1);
  }
  return make_step(sealed(two_chains(p)), std::move(shape));
}

inline std::shared_ptr<const Hint> named_hint(std::string_view name) {
  std::shared_ptr<const Hint> hint;
  require(Hint::named(name, hint));
  return hint;
}

inline std::shared_ptr<const Hint> text_hint(std::string_view text) {
  std::shared_ptr<const Hint> hint;
  require(Hint::text(text, hint));
  return hint;
}

inline std::vector<Task> order_of(const Hint& hint, const StepTasks& tasks, int32_t rank) {
  std::vector<Task> order;
  require(hint.order(tasks, RankId(rank), order));
  return order;
}

/// "0F0,0F1,0B0"
inline std::string text_of(std::span<const Task> tasks) {
  std::string text;
  for (const Task& task : tasks) text += (text.empty() ? "" : ",") + to_string(task);
  return text;
}

inline Task task_of(int32_t stage, TaskKind kind, int32_t microbatch) {
  return {StageId(stage), MicrobatchId(microbatch), kind};
}

/// A directed acyclic graph whose stage numbers say nothing about the topological order, with
/// frozen stages, stages that cannot split B, several loss stages and edges without gradient.
inline StageGraph random_graph(Random& random) {
  const int32_t ranks = 1 + random.below(4);
  const int32_t count = ranks + random.below(2 * ranks + 1);
  std::vector<int32_t> place;  // place[k]: the stage that stands k-th in the topological order
  for (int32_t s = 0; s < count; ++s) {
    place.insert(place.begin() + random.below(s + 1), s);
  }
  StageGraph graph(ranks);
  for (int32_t s = 0; s < count; ++s) {
    Stage stage;
    stage.rank = RankId(s < ranks ? s : random.below(ranks));
    stage.loss = s == place.back() || random.chance(15);
    stage.frozen = random.chance(25);
    stage.input_gradient = random.chance(15);
    stage.fused_only = random.chance(20);
    stage.activation_bytes = random.below(100);
    add_stage(graph, stage);
  }
  for (size_t k = 1; k < place.size(); ++k) {
    const auto earlier = [&] { return place[static_cast<size_t>(random.below(int32_t(k)))]; };
    for (int32_t n = random.below(3); n >= 0; --n) {
      const int32_t from = random.chance(50) ? place[k - 1] : earlier();
      add_edge(graph, from, place[k], random.chance(85));
    }
  }
  return graph;
}

inline StepShape random_shape(Random& random, const StageGraph& graph, int32_t microbatches) {
  StepShape shape;
  shape.mode = random.chance(85) ? StepMode::kTrain : StepMode::kForwardOnly;
  shape.microbatches = microbatches;
  const size_t cells = static_cast<size_t>(graph.stage_count()) * static_cast<size_t>(microbatches);
  if (random.chance(60)) {
    for (size_t k = 0; k < cells; ++k) shape.skip.push_back(random.chance(25) ? 1 : 0);
  }
  if (random.chance(50)) {
    for (size_t k = 0; k < cells; ++k) shape.activation_bytes.push_back(random.below(100));
  }
  return shape;
}

}  // namespace rrfp::core::fixtures
