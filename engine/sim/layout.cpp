// SPDX-License-Identifier: Apache-2.0
#include "engine/sim/layout.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace rrfp::sim {
namespace {

constexpr double kNsPerMs = 1e6;

/// The stage of the uncut model that a chunk is part of.
int32_t whole_stage(const Realization& step, const Layout& layout, int32_t stage) {
  return stage / layout.chunks % step.devices();
}

int64_t predicted_ns(const Realization& step, const Layout& layout, int32_t stage, int32_t m) {
  return std::llround(step.preset().base_ms * kNsPerMs / layout.chunks *
                      step.cost(m, whole_stage(step, layout, stage)));
}

/// The same for messages at the same place of the model, however it is cut.
int32_t hop_key(const Layout& layout, int32_t stage) {
  return (stage + 1) * 2 / layout.chunks - 1;
}

template <class Ns>
Durations durations_of(const Realization& step, const Layout& layout,
                       std::span<const int32_t> order, Ns ns) {
  using core::TaskKind;
  const int32_t stages = layout.stages(step);
  Durations out(stages, step.microbatches());
  for (int32_t s = 0; s < stages; ++s) {
    for (size_t k = 0; k < order.size(); ++k) {
      for (const auto kind :
           {TaskKind::kForward, TaskKind::kInputGradient, TaskKind::kWeightGradient}) {
        out.at({core::StageId(s), core::MicrobatchId::of(k), kind}) = ns(s, kind, order[k]);
      }
    }
  }
  return out;
}

}  // namespace

int64_t duration_ns(const Realization& step, const Layout& layout, int32_t stage,
                    core::TaskKind kind, int32_t m) {
  const int32_t whole = whole_stage(step, layout, stage);
  return std::llround(static_cast<double>(predicted_ns(step, layout, stage, m)) *
                      step.noise(kind, m, whole) * step.device_factor(layout.device(step, stage)));
}

int64_t hop_ns(const Realization& step, const Layout& layout, int32_t stage,
               core::Direction direction, int32_t m) {
  const Preset& preset = step.preset();
  const double factor = step.hop_factor(hop_key(layout, stage), direction, m);
  // Rounded as the links do, so that a bound made of hops is one.
  return static_cast<int64_t>(preset.serialize_ms * kNsPerMs * factor) +
         static_cast<int64_t>(preset.latency_ms * kNsPerMs * factor);
}

std::shared_ptr<const core::StepTasks> step_tasks(const Realization& step, const Layout& layout,
                                                  std::span<const int32_t> order) {
  const int32_t stages = layout.stages(step);
  auto graph = std::make_shared<core::StageGraph>(step.devices());
  const int64_t base_ns = std::llround(step.preset().base_ms * kNsPerMs / layout.chunks);
  for (int32_t s = 0; s < stages; ++s) {
    core::Stage stage;
    stage.loss = (s + 1) % (stages / layout.streams) == 0;
    stage.forward_ns = stage.input_gradient_ns = stage.weight_gradient_ns = base_ns;
    core::StageId id;
    [[maybe_unused]] const core::Status added = graph->add_stage(stage, id);
    assert(added.ok());
    core::EdgeId edge;
    const bool first = s % (stages / layout.streams) == 0;
    if (!first) (void)graph->add_edge({core::StageId(s - 1), id, true}, edge);
  }
  [[maybe_unused]] core::Status ok;
  for (int32_t s = 0; s < stages; ++s) {
    ok = graph->place(core::StageId(s), core::RankId(layout.device(step, s)));
    assert(ok.ok());
  }
  ok = graph->seal();
  assert(ok.ok());
  core::StepShape shape;
  shape.microbatches = step.microbatches();
  for (int32_t s = 0; layout.streams == 2 && s < stages; ++s) {
    for (size_t k = 0; k < order.size(); ++k) {
      shape.skip.push_back(static_cast<uint8_t>((k % 2 == 0) != (s < step.devices())));
    }
  }
  shape.activation_bytes.reserve(static_cast<size_t>(stages) * order.size());
  for (int32_t s = 0; s < stages; ++s) {
    for (const int32_t m : order) {
      shape.activation_bytes.push_back(std::llround(step.size(m) * kBytesPerSize / layout.chunks));
      shape.cost_permille.push_back(static_cast<int32_t>(
          std::min(std::llround(step.cost(m, whole_stage(step, layout, s)) * 1000),
                   (long long)core::StepTasks::kCostPermilleMax)));
    }
  }
  std::shared_ptr<const core::StepTasks> tasks;
  ok = core::StepTasks::create(std::move(graph), std::move(shape), tasks);
  assert(ok.ok());
  return tasks;
}

Durations true_durations(const Realization& step, const Layout& layout,
                         std::span<const int32_t> order) {
  return durations_of(step, layout, order, [&](int32_t s, core::TaskKind kind, int32_t m) {
    return duration_ns(step, layout, s, kind, m);
  });
}

Durations predicted_durations(const Realization& step, const Layout& layout,
                              std::span<const int32_t> order) {
  return durations_of(step, layout, order, [&](int32_t s, core::TaskKind, int32_t m) {
    return predicted_ns(step, layout, s, m);
  });
}

Links true_links(const Realization& step, const Layout& layout, std::span<const int32_t> order) {
  const Preset& preset = step.preset();
  Links links;
  links.serialize_ns = preset.serialize_ms * kNsPerMs;
  links.latency_ns = preset.latency_ms * kNsPerMs;
  links.episode_share = preset.episode_share;
  links.episode_ns = preset.episode_ms * kNsPerMs;
  links.episode_factor = preset.episode_factor;
  links.seed = step.noise_seed();
  links.factor = [&step, layout, data = std::vector<int32_t>(order.begin(), order.end())](
                     core::EdgeId edge, core::Direction direction, core::MicrobatchId i) {
    // The second stream's first stage has no edge into it.
    const int32_t stage = edge.value % (layout.stages(step) / layout.streams - 1);
    return step.hop_factor(hop_key(layout, stage), direction, data[i.index()]);
  };
  return links;
}

Links predicted_links(const Realization& step, std::span<const int32_t> order) {
  const Preset& preset = step.preset();
  Links links;
  links.serialize_ns = preset.serialize_ms * kNsPerMs;
  links.latency_ns = preset.latency_ms * kNsPerMs;
  links.factor = [&step, data = std::vector<int32_t>(order.begin(), order.end())](
                     core::EdgeId, core::Direction, core::MicrobatchId i) {
    return step.message_size(data[i.index()]);
  };
  return links;
}

int64_t native_bytes(const Realization& step) {
  const Layout layout;
  const std::vector<int32_t> order = data_order(step.microbatches());
  std::shared_ptr<const core::Hint> hint;
  [[maybe_unused]] core::Status ok = core::Hint::named("1f1b", hint);
  assert(ok.ok());
  // Strict order: what a rank holds after each task depends on its order only.
  int64_t most = 0;
  const auto tasks = step_tasks(step, layout, order);
  for (int32_t r = 0; r < step.devices(); ++r) {
    std::vector<core::Task> list;
    ok = hint->order(*tasks, core::RankId(r), list);
    assert(ok.ok());
    int64_t held = 0;
    for (const core::Task& task : list) {
      const int64_t bytes = tasks->held_bytes(task.stage, task.microbatch);
      held += task.kind == core::TaskKind::kForward ? bytes : -bytes;
      most = std::max(most, held);
    }
  }
  return most;
}

std::vector<int32_t> data_order(int32_t microbatches) {
  std::vector<int32_t> order(static_cast<size_t>(microbatches));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace rrfp::sim
