// SPDX-License-Identifier: Apache-2.0
#include "engine/train/auto_choice.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

namespace rrfp::train {

using core::MicrobatchId;
using core::StageId;
using core::Task;
using core::TaskKind;

namespace {

constexpr TaskKind kKinds[] = {TaskKind::kForward, TaskKind::kInputGradient,
                               TaskKind::kWeightGradient};

/// The same microbatches, of the same sizes.
bool same_work(const core::StepShape& a, const core::StepShape& b) {
  return a.mode == b.mode && a.microbatches == b.microbatches && a.skip == b.skip &&
         a.activation_bytes == b.activation_bytes;
}

}  // namespace

AutoChoice::AutoChoice(std::shared_ptr<const core::StageGraph> graph, std::vector<core::Cap> caps,
                       const core::Policy& base)
    : graph_(std::move(graph)),
      caps_(std::move(caps)),
      base_(base),
      first_(first_decision()),
      decision_(first_) {}

AutoChoice::~AutoChoice() {
  if (chooser_.joinable()) chooser_.join();
}

/// Before anything is measured: the first of the candidates that are ready policies. Without
/// durations there is no plan that could be late.
AutoChoice::Decision AutoChoice::first_decision() const {
  Decision decision;
  decision.policy = base_;
  [[maybe_unused]] const core::Status known = core::Hint::named("zb-h1", decision.hint);
  assert(known.ok());
  core::StepShape shape;
  shape.microbatches = 1;
  sim::Family family;
  if (!core::StepTasks::create(graph_, std::move(shape), family.tasks).ok()) return decision;
  family.base = base_;
  for (const sim::Candidate& c : sim::candidates(family)) {
    if (c.policy.strict()) continue;
    decision.name = c.name;
    decision.why = c.name + ", until a step has been measured";
    decision.hint = c.hint;
    decision.policy = c.policy;
    break;
  }
  return decision;
}

void AutoChoice::apply(host::StepRequest& request) {
  if (chooser_.joinable() && ready_.load(std::memory_order_acquire)) {
    chooser_.join();
    if (next_.hint != nullptr) decision_ = std::move(next_);
  }
  const bool same = same_work(request.shape, decision_.shape);
  fits_ = same || !decision_.policy.strict();
  const Decision& now = applied();
  request.hint = now.hint;
  request.policy = now.policy;
  request.shape.stage_ns = now.shape.stage_ns;
  request.shape.cost_permille = same ? now.shape.cost_permille : std::vector<int32_t>();
  request.shape.planned_ns = same ? now.shape.planned_ns : std::vector<int64_t>();
}

void AutoChoice::observe(const core::StepShape& shape, std::vector<double> sizes,
                         const sim::Durations& durations) {
  history_.push_back({shape, std::move(sizes), durations});
  if (history_.size() > kHistory) history_.pop_front();
  ++observed_;
  if (chooser_.joinable()) return;  // still at it, or not yet taken
  if (observed_ > kEveryFirst && observed_ % kEvery != 0) return;
  next_ = {};
  ready_.store(false, std::memory_order_relaxed);
  chooser_ = std::thread([this, history = std::vector<Measured>(history_.begin(), history_.end())] {
    try {
      next_ = decide(history);
    } catch (const std::exception&) {  // out of memory: what runs goes on
      next_ = {};
    }
    ready_.store(true, std::memory_order_release);
  });
}

/// [stage][3]: what F, I and W of a microbatch of the mean size of the last step take on average.
std::vector<int64_t> AutoChoice::stage_means(const std::vector<Measured>& history) const {
  std::vector<int64_t> means;
  for (int32_t s = 0; s < graph_->stage_count(); ++s) {
    const double unit = history.back().mean_size(s);
    for (const TaskKind kind : kKinds) {
      double ns = 0;
      double sizes = 0;
      for (const Measured& step : history) {
        const std::vector<double> of_stage = step.sizes_of(s, unit);
        for (size_t k = 0; k < of_stage.size(); ++k) {
          ns += static_cast<double>(step.durations.ns({StageId(s), MicrobatchId::of(k), kind}));
          sizes += of_stage[k];
        }
      }
      means.push_back(sizes > 0 ? std::llround(ns / sizes) : 0);
    }
  }
  return means;
}

std::span<const double> AutoChoice::Measured::row(int32_t stage) const {
  const auto count = static_cast<size_t>(shape.microbatches);
  return std::span(sizes).subspan(static_cast<size_t>(stage) * count, count);
}

double AutoChoice::Measured::mean_size(int32_t stage) const {
  const std::span<const double> all = row(stage);
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

std::vector<double> AutoChoice::Measured::sizes_of(int32_t stage, double unit) const {
  std::vector<double> result;
  for (const double size : row(stage)) result.push_back(unit > 0 ? size / unit : 0);
  return result;
}

/// What the tasks of one stage are expected to take in the next step, and what they would take with
/// the noise of each of the past ones.
void AutoChoice::predict(const std::vector<Measured>& history, int32_t stage,
                         std::span<const int64_t> stage_ns, sim::Durations& expected,
                         std::vector<sim::Replay>& replays) const {
  const double unit = history.back().mean_size(stage);
  const std::vector<double> sizes = history.back().sizes_of(stage, unit);
  std::vector<std::vector<double>> past_sizes;
  past_sizes.reserve(history.size());
  for (const Measured& past : history) past_sizes.push_back(past.sizes_of(stage, unit));
  for (size_t k = 0; k < sizes.size(); ++k) {
    for (size_t kind = 0; kind < std::size(kKinds); ++kind) {
      const Task task = {StageId(stage), MicrobatchId::of(k), kKinds[kind]};
      const auto mean_ns = static_cast<double>(stage_ns[kind]);
      expected.at(task) = std::llround(mean_ns * sizes[k]);
      for (size_t h = 0; h < history.size(); ++h) {
        // The noise of the task at the same place, on what is expected of this one.
        const size_t from = k % past_sizes[h].size();
        const double usual = mean_ns * past_sizes[h][from];
        const auto took = static_cast<double>(
            history[h].durations.ns({task.stage, MicrobatchId::of(from), task.kind}));
        replays[h].durations.at(task) =
            std::llround(mean_ns * sizes[k] * (usual > 0 ? took / usual : 1));
      }
    }
  }
}

AutoChoice::Decision AutoChoice::decide(const std::vector<Measured>& history) const {
  const Measured& last = history.back();  // the next step is expected to be like it
  core::StepShape shape = last.shape;
  shape.planned_ns.clear();
  shape.stage_ns = stage_means(history);
  shape.cost_permille.clear();
  for (int32_t s = 0; s < graph_->stage_count(); ++s) {
    for (const double size : last.sizes_of(s, last.mean_size(s))) {
      shape.cost_permille.push_back(static_cast<int32_t>(
          std::min<double>(std::round(size * 1000), core::StepTasks::kCostPermilleMax)));
    }
  }
  sim::Family family;
  Decision decision = first_;
  if (!core::StepTasks::create(graph_, shape, family.tasks).ok()) return decision;
  family.caps = caps_;
  family.base = base_;
  family.predicted.durations = sim::Durations(graph_->stage_count(), shape.microbatches);
  std::vector<sim::Replay> replays(history.size(), {family.predicted.durations, {}});
  for (int32_t s = 0; s < graph_->stage_count(); ++s) {
    predict(history, s, std::span(shape.stage_ns).subspan(3 * static_cast<size_t>(s), 3),
            family.predicted.durations, replays);
  }
  std::vector<sim::Candidate> all = sim::candidates(family);
  if (all.empty()) return decision;
  const sim::Choice choice = sim::choose(all, replays);
  sim::Candidate& best = all[choice.best];
  decision.name = best.name;
  decision.why = choice.why;
  decision.hint = best.hint;
  decision.policy = best.policy;
  decision.shape = best.tasks->shape();
  return decision;
}

}  // namespace rrfp::train
