// SPDX-License-Identifier: Apache-2.0
#include "engine/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>

#include "engine/comm/clock.h"
#include "engine/model/partition.h"
#include "engine/sim/workload.h"
#include "engine/trace/trace_events.h"
#include "engine/train/atomic_folder.h"
#include "engine/train/name_stages.h"
#include "engine/train/propose_layout.h"
#include "engine/train/sha256.h"

namespace rrfp::train {

using core::Code;
using core::RankId;
using core::StageId;
using core::Status;

// --- Making one

namespace {

// Powers of two within which a scaled loss stays an ordinary f32 number.
constexpr double kLossScaleMin = 0x1p-64;
constexpr double kLossScaleMax = 0x1p64;

bool is_loss_scale(double scale) {
  return scale >= kLossScaleMin && scale <= kLossScaleMax && std::exp2(std::ilogb(scale)) == scale;
}

Status check(const TrainerOptions& o) {
  constexpr int32_t kTraceStepsMax = host::PipelineOptions::kTraceStepsMax;
  if (o.stages < 1) {
    return {Code::kInvalidArgument,
            "stages is " + std::to_string(o.stages) + "; expected at least 1"};
  }
  if (!o.first_blocks.empty() && o.first_blocks.size() != static_cast<size_t>(o.stages)) {
    return {Code::kInvalidArgument, "first_blocks has " + std::to_string(o.first_blocks.size()) +
                                        " entries; expected one for each of " +
                                        std::to_string(o.stages) + " stages"};
  }
  if (!o.stage_ranks.empty() && o.placement != core::Placement::kLinear) {
    return {Code::kInvalidArgument,
            "both stage_ranks and a placement are given; expected one of them"};
  }
  if (!o.stage_ranks.empty() && o.stage_ranks.size() != static_cast<size_t>(o.stages)) {
    return {Code::kInvalidArgument, "stage_ranks has " + std::to_string(o.stage_ranks.size()) +
                                        " entries; expected one for each of " +
                                        std::to_string(o.stages) + " stages"};
  }
  if (o.loss_scale != 0 && !is_loss_scale(o.loss_scale)) {
    return {Code::kInvalidArgument, "loss_scale is " + std::to_string(o.loss_scale) +
                                        "; expected 0 or a power of two, 2^-64 to 2^64"};
  }
  const auto at_least_0 = [](const char* what, int64_t value) -> Status {
    if (value >= 0) return {};
    return {Code::kInvalidArgument,
            std::string(what) + " is " + std::to_string(value) + "; expected at least 0"};
  };
  if (Status s = at_least_0("loss_scale_growth", o.loss_scale_growth); !s.ok()) return s;
  constexpr int64_t kDelayUsMax = 1'000'000;  // destroying waits for a delay to end
  if (o.delay_us_max < 0 || o.delay_us_max > kDelayUsMax) {
    return {Code::kInvalidArgument, "delay_us_max is " + std::to_string(o.delay_us_max) +
                                        "; expected 0 to " + std::to_string(kDelayUsMax)};
  }
  if (o.trace_steps < 0 || o.trace_steps > kTraceStepsMax) {
    return {Code::kInvalidArgument, "trace_steps is " + std::to_string(o.trace_steps) +
                                        "; expected 0 to " + std::to_string(kTraceStepsMax)};
  }
  return check(o.optimizer);
}

int32_t ranks_for(const TrainerOptions& o) {
  if (o.ranks != 0) return o.ranks;
  if (!o.stage_ranks.empty()) {
    const int32_t last = *std::max_element(o.stage_ranks.begin(), o.stage_ranks.end());
    return std::clamp(last, 0, std::numeric_limits<int32_t>::max() - 1) + 1;
  }
  return o.placement == core::Placement::kLinear ? o.stages : (o.stages + 1) / 2;
}

}  // namespace

Status Trainer::create(const model::Graph& graph, const TrainerOptions& options,
                       std::unique_ptr<Trainer>& out) {
  if (Status s = check(options); !s.ok()) return s;
  std::unique_ptr<Trainer> trainer(new Trainer(options));
  if (Status s = trainer->prepare(graph); !s.ok()) return s;
  out = std::move(trainer);
  return {};
}

Status Trainer::prepare(const model::Graph& graph) {
  setting_.graph = graph;
  setting_.kernels = &kernels::cpu_kernels();
  setting_.delay_us_max = options_.delay_us_max;
  branches_ = model::find_branches(graph);
  if (options_.first_blocks.empty()) {
    const std::vector<int64_t> costs = model::estimate_costs(graph);
    if (Status s = model::partition(costs, options_.stages, options_.first_blocks); !s.ok()) {
      return s;
    }
  }
  if (Status s = cut_model(setting_.graph, options_.first_blocks, setting_.cut); !s.ok()) return s;
  if (Status s = make_stages(); !s.ok()) return s;
  for (size_t k = 0; k < setting_.cut.stages.size(); ++k) {
    setting_.programs.push_back(model::Program::for_stage(setting_.graph, setting_.cut,
                                                          StageId::of(k), options_.recompute));
  }
  if (options_.hint == nullptr) {
    if (Status s = core::Hint::named("zb-h1", options_.hint); !s.ok()) return s;
  }
  weights_.emplace(setting_.graph, setting_.graph.needed_for_losses(),
                   moment_count(options_.optimizer));
  weights_->initialize(options_.seed);
  checks_.emplace(setting_.graph);
  work_.resize(setting_.programs.size());
  shape_plans_.emplace(setting_.graph, setting_.cut, setting_.programs, *setting_.kernels);
  squares_.assign(weights_->count(), 0);
  for (size_t p = 0; p < weights_->count(); ++p) {
    const model::OpId use = weights_->first_use(p);
    owner_.push_back(
        use.valid() ? setting_.stages->stage(setting_.cut.stage_of[use.index()]).rank.index() : 0);
  }
  loss_scale_ = options_.loss_scale > 0 ? options_.loss_scale : 1;
  return start_ranks();
}

Status Trainer::make_stages() {
  const int32_t ranks = ranks_for(options_);
  if (ranks < 1 || ranks > core::StageGraph::kRanksMax) {
    return {Code::kInvalidArgument, "ranks is " + std::to_string(ranks) + "; expected 1 to " +
                                        std::to_string(core::StageGraph::kRanksMax)};
  }
  auto graph = std::make_shared<core::StageGraph>(ranks);
  for (const model::CutStage& stage : setting_.cut.stages) {
    StageId id;
    if (Status s =
            graph->add_stage({.rank = {}, .loss = stage.loss, .frozen = !stage.trainable}, id);
        !s.ok()) {
      return s;
    }
  }
  for (const model::CutEdge& edge : setting_.cut.edges) {
    core::EdgeId id;
    if (Status s =
            graph->add_edge({.from = edge.from, .to = edge.to, .gradient = edge.gradient}, id);
        !s.ok()) {
      return s;
    }
  }
  if (options_.stage_ranks.empty()) {
    if (Status s = graph->place(options_.placement); !s.ok()) return s;
  }
  for (size_t s = 0; s < options_.stage_ranks.size(); ++s) {
    const RankId rank(options_.stage_ranks[s]);
    if (Status placed = graph->place(StageId::of(s), rank); !placed.ok()) return placed;
  }
  if (Status s = graph->seal(); !s.ok()) return s;
  setting_.stages = std::move(graph);
  return {};
}

Status Trainer::start_ranks() {
  host::PipelineOptions pipeline = options_.pipeline;
  pipeline.caps.assign(static_cast<size_t>(rank_count()), options_.cap);
  pipeline.trace_steps = options_.trace_steps;
  if (Status s = host::Pipeline::create(setting_.stages, host::EdgeSpecs(setting_.cut.edges.size()),
                                        std::move(pipeline), pipeline_);
      !s.ok()) {
    return s;
  }
  if (options_.choose_hint) {
    // It knows chains only.
    if (branches_.back() == 0 && options_.stage_ranks.empty()) {
      proposal_ = propose_layout(model::estimate_costs(setting_.graph), rank_count());
    }
    choice_.emplace(setting_.stages,
                    std::vector<core::Cap>(static_cast<size_t>(rank_count()), options_.cap),
                    options_.pipeline.policy);
  }
  meeting_.emplace(rank_count());
  for (int32_t r = 0; r < rank_count(); ++r) {
    auto rank = std::make_unique<Rank>();
    if (Status s = pipeline_->open(RankId(r), rank->host); !s.ok()) return s;
    rank->worker.emplace(setting_, weights_->table(), *rank->host);
    ranks_.push_back(std::move(rank));
  }
  for (size_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r]->thread = std::thread([this, r] { rank_loop(r); });
  }
  return {};
}

Trainer::~Trainer() {
  if (pipeline_ != nullptr) pipeline_->cancel("the trainer is being destroyed");
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (const auto& rank : ranks_) {
    if (rank->thread.joinable()) rank->thread.join();
    rank->worker->forget();
    pipeline_->close(*rank->host);
  }
}

// --- Steps

Status Trainer::check_batch(const Batch& batch) {
  if (batch.microbatches < 1 || batch.microbatches > core::StepTasks::kMicrobatchesMax) {
    return {Code::kInvalidArgument, "microbatches is " + std::to_string(batch.microbatches) +
                                        "; expected 1 to " +
                                        std::to_string(core::StepTasks::kMicrobatchesMax)};
  }
  if (batch.rounds < 1 || batch.microbatches % batch.rounds != 0) {
    return {Code::kInvalidArgument,
            "rounds is " + std::to_string(batch.rounds) +
                "; expected a divisor of microbatches = " + std::to_string(batch.microbatches)};
  }
  const auto count = static_cast<size_t>(batch.microbatches);
  const size_t inputs = setting_.graph.inputs().size();
  plans_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const std::span<const InputArray> row = batch.inputs.subspan(i * inputs, inputs);
    if (Status s = shape_plans_->find(row, plans_[i]); !s.ok()) {
      return {s.code(), "microbatch " + std::to_string(i) + ": " + s.text()};
    }
    if (Status s = checks_->check(static_cast<int32_t>(i), row, *plans_[i]); !s.ok()) return s;
    const double factor = batch.loss_factors.empty() ? 1 : batch.loss_factors[i];
    if (!std::isfinite(factor)) {
      return {Code::kInvalidArgument, "the loss factor of microbatch " + std::to_string(i) +
                                          " is " + std::to_string(factor) +
                                          "; expected a finite number"};
    }
  }
  return weigh_losses(batch);
}

/// What each loss counts in the batch, and so what its gradient begins with.
Status Trainer::weigh_losses(const Batch& batch) {
  const std::span<const model::Loss> losses = setting_.graph.losses();
  const auto count = static_cast<size_t>(batch.microbatches);
  const size_t inputs = setting_.graph.inputs().size();
  losses_.assign(count * losses.size(), 0);
  weight_sums_.assign(losses.size(), 0);
  for (size_t i = 0; i < count; ++i) {
    const std::span<const InputArray> row = batch.inputs.subspan(i * inputs, inputs);
    for (size_t l = 0; l < losses.size(); ++l) {
      weight_sums_[l] +=
          static_cast<double>(loss_weight(setting_.graph, losses[l].value, row, *plans_[i]));
    }
  }
  const bool mean = options_.reduction == Reduction::kMean;
  const auto counts = [](double weight) { return weight > 0; };
  if (mean && std::none_of(weight_sums_.begin(), weight_sums_.end(), counts)) {
    return {Code::kInvalidArgument,
            "no element of the loss counts in the whole batch; the mean "
            "over it is not defined"};
  }
  loss_factors_.assign(count * losses.size(), 0);
  for (size_t i = 0; i < count; ++i) {
    const double factor = batch.loss_factors.empty() ? 1 : batch.loss_factors[i];
    for (size_t l = 0; l < losses.size(); ++l) {
      if (weight_sums_[l] == 0) continue;
      const double total = mean ? weight_sums_[l] : 1;
      loss_factors_[i * losses.size() + l] =
          static_cast<float>(losses[l].factor * factor * step_scale_ / total);
    }
  }
  return {};
}

void Trainer::fill_job(const Batch& batch, bool training) {
  order_microbatches(batch.rounds);
  const int32_t in_round = batch.microbatches / batch.rounds;
  job_.training = training;
  job_.update = training && !batch.keep_gradients;
  job_.lr = learning_rate(options_.optimizer, steps_);
  job_.round_count = static_cast<size_t>(batch.rounds);
  work_.assign(setting_.programs.size(), {});
  if (job_.rounds.size() < job_.round_count) job_.rounds.resize(job_.round_count);
  for (int32_t r = 0; r < batch.rounds; ++r) {
    Round& round = job_.rounds[static_cast<size_t>(r)];
    round.request.step = rounds_run_++;
    round.request.hint = options_.hint;
    round.request.policy = options_.pipeline.policy;
    round.microbatches = &injection_[static_cast<size_t>(r) * static_cast<size_t>(in_round)];
    round.request.trace = {
        .record = training, .joins = r > 0, .step = steps_, .microbatches = round.microbatches};
    core::StepShape& shape = round.request.shape;
    shape.mode = training ? core::StepMode::kTrain : core::StepMode::kForwardOnly;
    shape.microbatches = in_round;
    // What an earlier step has set is of its microbatches.
    shape.activation_bytes.clear();
    shape.skip.clear();
    shape.stage_ns.clear();
    shape.cost_permille.clear();
    shape.planned_ns.clear();
    const bool skips =
        std::any_of(round.microbatches, round.microbatches + in_round,
                    [&](int32_t i) { return plans_[static_cast<size_t>(i)]->any_skip; });
    round.step = batch.random_step != 0 ? batch.random_step : steps_;
    round.seed = options_.seed;
    round.training = training;
    round.batch = &batch;
    round.plans = plans_.data();
    round.loss_factors = loss_factors_.data();
    round.losses = losses_.data();
    round.work = work_.data();
    for (size_t s = 0; s < setting_.programs.size(); ++s) {
      for (int32_t i = 0; i < in_round; ++i) {
        const ShapePlan& plan = *plans_[static_cast<size_t>(round.microbatches[i])];
        shape.activation_bytes.push_back(plan.activation_bytes[s]);
        if (skips) shape.skip.push_back(plan.skips[s] ? 1 : 0);
      }
    }
    round.durations = nullptr;
    if (!choice_ || !training) continue;
    choice_->apply(round.request);
    // One round of a step is enough to go by.
    if (r + 1 < batch.rounds) continue;
    durations_ = sim::Durations(setting_.stages->stage_count(), in_round);
    round.durations = &durations_;
  }
}

/// Sizes are those of all values of the model, so they do not depend on how it is cut.
void Trainer::order_microbatches(int32_t rounds) {
  const size_t in_round = plans_.size() / static_cast<size_t>(rounds);
  injection_.clear();
  for (size_t first = 0; first < plans_.size(); first += in_round) {
    sizes_.clear();
    for (size_t i = first; i < first + in_round; ++i) {
      sizes_.push_back(static_cast<double>(plans_[i]->elements));
    }
    const bool tent =
        options_.injection == Injection::kTent &&
        std::adjacent_find(sizes_.begin(), sizes_.end(), std::not_equal_to<>()) != sizes_.end();
    if (tent) {
      for (const int32_t i : sim::tent_order(sizes_)) {
        injection_.push_back(static_cast<int32_t>(first) + i);
      }
    } else {
      for (size_t i = 0; i < in_round; ++i) {
        injection_.push_back(static_cast<int32_t>(first + i));
      }
    }
  }
}

/// For the choice of later steps. A step that has been done does not fail for want of it.
void Trainer::observe_round() {
  const Round& round = job_.rounds[job_.round_count - 1];
  const auto count = static_cast<size_t>(round.request.shape.microbatches);
  try {
    std::vector<double> sizes;
    for (size_t s = 0; s < setting_.programs.size(); ++s) {
      for (size_t i = 0; i < count; ++i) {
        const ShapePlan& plan = *plans_[static_cast<size_t>(round.microbatches[i])];
        sizes.push_back(static_cast<double>(plan.stage_elements[s]));
      }
    }
    choice_->observe(round.request.shape, std::move(sizes), durations_);
  } catch (const std::exception&) {  // no memory, or no thread: what runs goes on
  }
}

std::string Trainer::hint_name() const {
  return choice_ ? choice_->name() : std::string(options_.hint->name());
}

std::string Trainer::hint_why() const {
  if (!choice_) return {};
  return proposal_.empty() ? choice_->why() : choice_->why() + "; " + proposal_;
}

/// Lets the ranks do the job and waits for them.
Status Trainer::run_job() {
  failed_.store(false, std::memory_order_relaxed);
  {
    std::unique_lock lock(mutex_);
    ranks_done_ = 0;
    ++jobs_posted_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return ranks_done_ == ranks_.size(); });
  }
  if (!failed_.load(std::memory_order_relaxed)) return {};
  return recover();
}

/// After a failed step: everything as before it. Returns why it failed.
Status Trainer::recover() {
  Status why;
  for (const auto& rank : ranks_) {
    // Whoever found the fault knows most; the others were told.
    if (rank->status.failed() && (why.ok() || rank->status.rank() == rank->host->id())) {
      why = rank->status;
    }
    rank->worker->forget();
  }
  if (Status s = pipeline_->reset(); !s.ok()) return s;
  if (!job_.training) return why;  // an evaluation leaves gradients alone
  for (size_t p = 0; p < weights_->count(); ++p) weights_->clear_gradient(p, *setting_.kernels);
  return why;
}

Status Trainer::step(const Batch& batch, TrainReport& out) {
  const int64_t begin_ns = comm::now_ns();
  step_scale_ = batch.keep_gradients ? 1 : loss_scale_;
  if (Status s = check_batch(batch); !s.ok()) return s;
  if (gradients_kept_) {
    for (size_t p = 0; p < weights_->count(); ++p) weights_->clear_gradient(p, *setting_.kernels);
    gradients_kept_ = false;
  }
  fill_job(batch, true);
  if (Status s = run_job(); !s.ok()) return s;
  reduce_losses();
  gradients_kept_ = !job_.update;
  const bool stop = !verdict_.finite && options_.non_finite == NonFinite::kStop;
  if (job_.update && !stop) {
    ++steps_;
    if (verdict_.finite) {
      ++updates_;
      ++good_steps_;
      const int64_t growth = options_.loss_scale_growth;
      if (options_.loss_scale > 0 && growth > 0 && good_steps_ >= growth) {
        loss_scale_ = std::min(loss_scale_ * 2, kLossScaleMax);
        good_steps_ = 0;
      }
    } else {
      if (options_.loss_scale > 0) loss_scale_ = std::max(loss_scale_ / 2, kLossScaleMin);
      good_steps_ = 0;
    }
  }
  if (stop && job_.update) {
    return {Code::kNonFinite,
            "step " + std::to_string(steps_ + 1) + ": the loss or the norm of the gradients (" +
                std::to_string(verdict_.norm) + ") is not finite; weights are as before the step"};
  }
  if (choice_) observe_round();
  fill_report(out, begin_ns);
  out.skipped = job_.update && !verdict_.finite;
  out.step = steps_;
  out.gradient_norm = verdict_.norm;
  out.lr = job_.lr;
  return {};
}

Status Trainer::evaluate(const Batch& batch, TrainReport& out) {
  const int64_t begin_ns = comm::now_ns();
  step_scale_ = 1;
  if (Status s = check_batch(batch); !s.ok()) return s;
  fill_job(batch, false);
  if (Status s = run_job(); !s.ok()) return s;
  reduce_losses();
  fill_report(out, begin_ns);
  out.step = steps_;
  return {};
}

void Trainer::cancel() {
  pipeline_->cancel("by the caller");
}

void Trainer::reduce_losses() {
  const Batch& batch = *job_.rounds[0].batch;
  const size_t count = weight_sums_.size();
  loss_sums_.assign(count, 0);
  reduced_.assign(count, std::numeric_limits<double>::quiet_NaN());
  for (size_t l = 0; l < count; ++l) {
    for (size_t i = 0; i < static_cast<size_t>(batch.microbatches); ++i) {
      const double factor = batch.loss_factors.empty() ? 1 : batch.loss_factors[i];
      loss_sums_[l] += factor * losses_[i * count + l];
    }
    if (weight_sums_[l] == 0) continue;
    const bool mean = options_.reduction == Reduction::kMean;
    reduced_[l] = mean ? loss_sums_[l] / weight_sums_[l] : loss_sums_[l];
  }
}

void Trainer::fill_report(TrainReport& out, int64_t begin_ns) const {
  out = {};
  const std::span<const model::Loss> losses = setting_.graph.losses();
  for (size_t l = 0; l < losses.size(); ++l) {
    if (weight_sums_[l] > 0) out.loss += losses[l].factor * reduced_[l];
  }
  out.loss_weight = weight_sums_[0];
  out.loss_sum = loss_sums_[0];
  out.loss_scale = step_scale_;
  out.state_bytes = weights_->bytes();
  for (const auto& rank : ranks_) {
    const host::StepReport& r = rank->sums;
    out.time.total_ns += r.total_ns;
    out.time.busy_ns += r.busy_ns;
    out.time.wait_input_ns += r.wait_input_ns;
    out.time.wait_memory_ns += r.wait_memory_ns;
    out.time.wait_credit_ns += r.wait_credit_ns;
    out.time.wait_policy_ns += r.wait_policy_ns;
    out.time.other_ns += r.other_ns;
    out.tensor_bytes_peak += static_cast<int64_t>(r.tensor_bytes_peak);
  }
  out.wall_ns = comm::now_ns() - begin_ns;
}

// --- Weights and files

std::string Trainer::weights_sha256() const {
  Sha256 sha;
  for (const NamedTensor& tensor : weights_->weight_tensors()) {
    int64_t count = 1;
    for (int64_t extent : tensor.shape) count *= extent;
    sha.update(tensor.data, static_cast<size_t>(count) * sizeof(float));
  }
  return sha.hex();
}

Status Trainer::write_trace(const std::string& path) const {
  if (options_.trace_steps == 0) {
    return {Code::kBadState, "no timeline was kept; set trace_steps when the trainer is made"};
  }
  trace::Timeline timeline;
  if (Status s = pipeline_->timeline(timeline); !s.ok()) return s;
  timeline.title = "training";
  timeline.facts.emplace_back("hint", hint_name());
  timeline.stages = name_stages(setting_.graph, setting_.cut);
  return replace_file(path, trace::to_trace_events(timeline));
}

CheckpointState Trainer::state(uint64_t position, const std::string& user_json) const {
  CheckpointState state;
  state.step = steps_;
  state.position = position;
  state.seed = options_.seed;
  state.loss_scale = options_.loss_scale > 0 ? loss_scale_ : 0;
  state.good_steps = good_steps_;
  state.updates = updates_;
  state.optimizer = name(options_.optimizer.kind);
  state.model = setting_.graph.recipe;
  state.user = user_json;
  return state;
}

Status Trainer::save(const std::string& root, uint64_t position, const std::string& user_json,
                     int32_t keep) const {
  return save_checkpoint(root, state(position, user_json), weights_->weight_tensors(),
                         weights_->moment_tensors(), keep);
}

Status Trainer::load(const std::string& path, bool weights_only, uint64_t& position) {
  std::shared_ptr<const Checkpoint> checkpoint;
  if (Status s = Checkpoint::open(path, checkpoint); !s.ok()) return s;
  const CheckpointState& state = checkpoint->state();
  const model::AlignedFloats values = weights_->like_values();
  if (Status s = checkpoint->read_weights(weights_->weight_tensors_in(values)); !s.ok()) return s;
  if (!weights_only) {
    const char* const expected = name(options_.optimizer.kind);
    if (state.optimizer != expected) {
      return {Code::kBadData, checkpoint->path() + " was made with optimizer " + state.optimizer +
                                  "; the trainer has " + expected};
    }
    const model::AlignedFloats moments = weights_->like_moments();
    if (Status s = checkpoint->read_optimizer(weights_->moment_tensors_in(moments)); !s.ok()) {
      return s;
    }
    if (state.loss_scale != 0 && !is_loss_scale(state.loss_scale)) {
      return {Code::kBadData, checkpoint->path() + " has a loss_scale of " +
                                  std::to_string(state.loss_scale) +
                                  "; expected 0 or a power of two, 2^-64 to 2^64"};
    }
    weights_->copy_moments(moments);
    options_.seed = state.seed;
    steps_ = state.step;
    updates_ = state.updates;
    good_steps_ = state.good_steps;
    const bool scaled = options_.loss_scale > 0 && state.loss_scale > 0;
    if (scaled) loss_scale_ = state.loss_scale;
  }
  weights_->copy_values(values);
  position = state.position;
  return {};
}

}  // namespace rrfp::train
