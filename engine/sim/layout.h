// SPDX-License-Identifier: Apache-2.0
//
// A workload laid out on ranks: the stage graph, the step's shape, durations and links.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/core/step_tasks.h"
#include "engine/sim/scenario.h"
#include "engine/sim/workload.h"

namespace rrfp::sim {

/// Each device has `chunks` stages of a chain. With two streams there is a second copy of the whole
/// model that runs through the devices in the opposite direction; every other microbatch takes it
/// (DualPipe).
struct Layout {
  core::Placement placement = core::Placement::kLinear;
  int32_t chunks = 1;
  int32_t streams = 1;

  [[nodiscard]] int32_t stages(const Realization& step) const {
    return step.devices() * chunks * streams;
  }
  [[nodiscard]] int32_t device(const Realization& step, int32_t stage) const {
    const int32_t p = step.devices();
    if (placement == core::Placement::kV || streams == 2) {
      return stage < p ? stage : 2 * p - 1 - stage;
    }
    return placement == core::Placement::kLoop ? stage % p : stage;
  }
  bool operator==(const Layout&) const = default;
};

/// Bytes that stand for a size of 1.
inline constexpr double kBytesPerSize = 1e6;

/// True duration of F, I or W of microbatch `m`.
[[nodiscard]] int64_t duration_ns(const Realization& step, const Layout& layout, int32_t stage,
                                  core::TaskKind kind, int32_t m);
/// Of a message between `stage` and the next one over an idle link.
[[nodiscard]] int64_t hop_ns(const Realization& step, const Layout& layout, int32_t stage,
                             core::Direction direction, int32_t m);

/// What is known before the step. Element k of `order` is the microbatch that goes in k-th.
[[nodiscard]] std::shared_ptr<const core::StepTasks> step_tasks(const Realization& step,
                                                                const Layout& layout,
                                                                std::span<const int32_t> order);
/// What really happens.
[[nodiscard]] Durations true_durations(const Realization& step, const Layout& layout,
                                       std::span<const int32_t> order);
/// What is predicted to happen: no noise, all devices alike.
[[nodiscard]] Durations predicted_durations(const Realization& step, const Layout& layout,
                                            std::span<const int32_t> order);
/// `step` must outlive the links.
[[nodiscard]] Links true_links(const Realization& step, const Layout& layout,
                               std::span<const int32_t> order);
[[nodiscard]] Links predicted_links(const Realization& step, std::span<const int32_t> order);

/// Most bytes that a device holds under strict 1F1B in the order of the data: the memory that a
/// cap of 1 stands for.
[[nodiscard]] int64_t native_bytes(const Realization& step);

/// 0, 1, 2, ...
[[nodiscard]] std::vector<int32_t> data_order(int32_t microbatches);

}  // namespace rrfp::sim
