// SPDX-License-Identifier: Apache-2.0
//
// Runs the instructions of one task. Memory, weights and what came with messages are bound by the
// caller; this knows only slots.
#pragma once

#include <vector>

#include "engine/model/layout.h"

namespace rrfp::model {

/// By parameter: its numbers; by operation and parameter: where its gradient adds up.
struct WeightTable {
  std::vector<const float*> weights;
  /// For operation o and its p-th parameter at [o * Op::kParametersMax + p]; null = no gradient.
  std::vector<float*> gradients;
};

struct Bindings {
  const kernels::Kernels* kernels = nullptr;
  const Graph* graph = nullptr;
  const WeightTable* table = nullptr;
  const Shape* shapes = nullptr;  // by value
  float* saved = nullptr;
  float* kept = nullptr;
  float* scratch = nullptr;
  /// By slot. The caller sets those of external slots; bind_slots() sets the others.
  std::vector<float*> pointers;
  kernels::RandomKey random;  // without the operation
  bool training = false;
  const float* loss_factors = nullptr;  // by loss; training only
  // Generating:
  int64_t first_position = 0;
  std::vector<KeyValueCache>* caches = nullptr;  // by operation
};

/// An operation's run with shapes, but without pointers.
[[nodiscard]] OpRun describe_run(const Op& op, std::span<const Shape> shapes,
                                 const kernels::Kernels& kernels);

/// Sets the pointers of the slots whose memory the layout decides, for a task of this kind.
void bind_slots(const Layout& layout, core::TaskKind kind, Bindings& bound);
void run_instruction(const Program& program, const Layout& layout, core::TaskKind kind,
                     const Instruction& instruction, Bindings& bound);
/// All of a task: binds the slots, runs the instructions. Allocates nothing.
void run_task(const Program& program, const Layout& layout, core::TaskKind kind, Bindings& bound);

}  // namespace rrfp::model
