// SPDX-License-Identifier: Apache-2.0
//
// Names of things: ranks, stages, edges, microbatches, task kinds and tasks. All ids are small
// non-negative integers; the same number stands in a trace, in a message and in a test.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

namespace rrfp::core {

/// An integer that cannot be mixed up with an integer of another meaning.
template <class Tag>
struct Id {
  int32_t value = -1;

  constexpr Id() = default;
  constexpr explicit Id(int32_t v) : value(v) {}
  template <class Integer>
  static constexpr Id of(Integer v) {
    return Id(static_cast<int32_t>(v));
  }
  [[nodiscard]] constexpr size_t index() const { return static_cast<size_t>(value); }
  [[nodiscard]] constexpr bool valid() const { return value >= 0; }
  constexpr auto operator<=>(const Id&) const = default;
};

using RankId = Id<struct RankTag>;
using StageId = Id<struct StageTag>;
using EdgeId = Id<struct EdgeTag>;
/// A microbatch's number is also its place in the injection order of the step: 0 is the oldest.
using MicrobatchId = Id<struct MicrobatchTag>;

/// The values are part of the C ABI.
enum class TaskKind : uint8_t {
  kForward = 0,         // F
  kBackward = 1,        // B = I and W in one task
  kInputGradient = 2,   // I
  kWeightGradient = 3,  // W
};

[[nodiscard]] constexpr char letter(TaskKind kind) {
  constexpr char kLetters[] = {'F', 'B', 'I', 'W'};
  return kLetters[static_cast<size_t>(kind)];
}

enum class Direction : uint8_t {
  kForward = 0,   // activations, along the edge
  kBackward = 1,  // gradients, against the edge
};

struct Task {
  StageId stage;
  MicrobatchId microbatch;
  TaskKind kind = TaskKind::kForward;

  constexpr auto operator<=>(const Task&) const = default;
};

/// Schedule text of a task, for example "3F4": stage 3, forward, microbatch 4.
[[nodiscard]] inline std::string to_string(const Task& task) {
  return std::to_string(task.stage.value) + letter(task.kind) +
         std::to_string(task.microbatch.value);
}

}  // namespace rrfp::core
