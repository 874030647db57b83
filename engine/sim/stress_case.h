// SPDX-License-Identifier: Apache-2.0
//
// How a case of stress.h is made of its seed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/hint.h"
#include "engine/sim/random.h"
#include "engine/sim/scenario.h"
#include "engine/sim/stress.h"

namespace rrfp::sim {

/// Draws one after the other of a key, so that each part of a case has a sequence of its own.
class Dice {
 public:
  Dice(uint64_t seed, Draw draw, int64_t part) : key_(seed, draw, {part}) {}

  /// Both ends included.
  int64_t between(int64_t low, int64_t high) { return low + key_.below(high - low + 1, next_++); }
  int32_t between32(int32_t low, int32_t high) { return static_cast<int32_t>(between(low, high)); }
  bool percent(int64_t chance) { return between(0, 99) < chance; }
  double uniform() { return key_.uniform(next_++); }
  double lognormal(double sigma) {
    next_ += 2 + next_ % 2;  // two draws make one
    return key_.lognormal(sigma, next_ / 2 - 1);
  }
  template <class T>
  T pick(std::initializer_list<T> from) {
    return from.begin()[between(0, static_cast<int64_t>(from.size()) - 1)];
  }

 private:
  Key key_;
  uint64_t next_ = 0;
};

enum class Shape : uint8_t { kLinear, kLoop, kV, kGraph };

struct StressCase {
  Shape shape = Shape::kLinear;
  std::shared_ptr<const core::StepTasks> tasks;
  std::shared_ptr<const core::Hint> hint;
  core::Policy policy;
  std::vector<core::Cap> caps;  // by rank; empty = the defaults
  bool tight = false;           // no rank has more room than its largest microbatch needs
  int64_t messages = 0;         // that the step sends between ranks
  Scenario scenario;
  core::Status status;      // not ok: there is no plan, so nothing to run
  bool unobeyable = false;  // a strict order that deadlocks
};

[[nodiscard]] StressCase make_stress_case(uint64_t seed, StressFocus focus = StressFocus::kAll);
/// Several ranks, each with the least room, train several microbatches in ready order, without a
/// fault, over a graph in which branches join.
[[nodiscard]] bool joins_tightly(const StressCase& c);
/// A stage is fed by several others.
[[nodiscard]] bool has_join(const core::StageGraph& graph);
[[nodiscard]] std::string describe(const StressCase& c);

/// The parts (stress_graph.cpp).
/// `deep`: several ranks and many microbatches, so that much is in flight.
[[nodiscard]] std::shared_ptr<const core::StepTasks> make_step(Dice& dice, Shape shape, bool deep);
/// `strict`: mostly one that can be obeyed.
[[nodiscard]] std::shared_ptr<const core::Hint> make_hint(Dice& dice, Shape shape,
                                                          const core::StepTasks& tasks,
                                                          bool strict);

}  // namespace rrfp::sim
