// SPDX-License-Identifier: Apache-2.0
#include "toy_pipeline.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace rrfp::cases {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The pauses of one rank.
class Pauses {
 public:
  Pauses(const Delays& delays, int32_t rank, uint64_t run)
      : random_(delays.seed * 1000003 + run * 1009 + static_cast<uint64_t>(rank)),
        max_us_(delays.max_us) {}

  void pause() {
    // Every other one is none at all: bursts are as interesting as gaps.
    if (max_us_ == 0 || random_.below(2) == 0) return;
    std::this_thread::sleep_for(std::chrono::microseconds(random_.below(max_us_ + 1)));
  }

 private:
  Random random_;
  int32_t max_us_;
};

}  // namespace

// --- What stage code may do

std::vector<rrfp_tensor> TaskContext::input(int32_t edge, void** opaque) const {
  rrfp_error error = {};
  size_t count = 0;
  std::vector<rrfp_tensor> tensors(4);
  rrfp_status status = rrfp_rank_input(rank, task.ticket, edge, tensors.data(), tensors.size(),
                                       &count, opaque, &error);
  check(status, error);
  if (status == RRFP_ABSENT) return {};
  const bool all = count <= tensors.size();
  tensors.resize(count);
  if (all) return tensors;
  status = rrfp_rank_input(rank, task.ticket, edge, tensors.data(), count, &count, opaque, &error);
  check(status, error);
  return tensors;
}

bool TaskContext::absent(int32_t edge) const {
  rrfp_error error = {};
  const rrfp_status status =
      rrfp_rank_input(rank, task.ticket, edge, nullptr, 0, nullptr, nullptr, &error);
  check(status, error);
  return status == RRFP_ABSENT;
}

std::span<const float> TaskContext::floats(int32_t edge) const {
  const std::vector<rrfp_tensor> tensors = input(edge);
  if (tensors.empty()) throw std::logic_error("no tensor on edge " + std::to_string(edge));
  const rrfp_tensor& tensor = tensors.front();
  size_t count = 1;
  for (int32_t d = 0; d < tensor.ndim; ++d) count *= static_cast<size_t>(tensor.shape[d]);
  return {static_cast<const float*>(tensor.data), count};
}

bool TaskContext::wanted(int32_t edge) const {
  rrfp_error error = {};
  const rrfp_status status = rrfp_rank_output_wanted(rank, task.ticket, edge, &error);
  check(status, error);
  return status == RRFP_OK;
}

rrfp_tensor TaskContext::alloc(rrfp_dtype dtype, std::initializer_list<int64_t> shape) const {
  rrfp_error error = {};
  rrfp_tensor tensor = {};
  check(rrfp_rank_alloc(rank, task.ticket, dtype, static_cast<int32_t>(shape.size()),
                        std::data(shape), &tensor, &error),
        error);
  return tensor;
}

void TaskContext::put(int32_t edge, std::span<const rrfp_tensor> tensors, void* opaque) const {
  if (before_put_) before_put_();
  rrfp_error error = {};
  check(rrfp_rank_put(rank, task.ticket, edge, tensors.data(), tensors.size(), opaque, &error),
        error);
}

void TaskContext::put_scalar(int32_t edge, float value) const {
  rrfp_tensor tensor = {};
  tensor.data = &value;
  tensor.dtype = RRFP_F32;
  if (task.kind == RRFP_FORWARD) tensor.flags = RRFP_TENSOR_WANTS_GRADIENT;
  put(edge, tensor);
}

// --- Results

bool StepResult::ok() const {
  return std::all_of(ranks.begin(), ranks.end(),
                     [](const RankResult& r) { return r.status == RRFP_STEP_DONE; });
}

std::string StepResult::text() const {
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].status == RRFP_STEP_DONE) continue;
    return "rank " + std::to_string(r) + ": " + rrfp_status_name(ranks[r].status) + ": " +
           ranks[r].error.text + "\n" + report;
  }
  return {};
}

int32_t StepResult::count(rrfp_events event, int32_t stage) const {
  int32_t count = 0;
  for (const RankResult& rank : ranks) {
    for (const TaskRecord& record : rank.tasks) {
      if (record.task.stage == stage && (record.events & event) != 0) ++count;
    }
  }
  return count;
}

std::string StepResult::order(int32_t rank) const {
  std::string text;
  for (const TaskRecord& record : ranks[static_cast<size_t>(rank)].tasks) {
    text += (text.empty() ? "" : " ") + task_text(record.task);
  }
  return text;
}

double StepResult::seconds() const {
  double last = 0;
  for (const RankResult& rank : ranks) last = std::max(last, rank.seconds);
  return last;
}

// --- Running

/// The threads of one run.
class ToyPipeline::Runner {
 public:
  Runner(ToyPipeline& toy, const std::vector<std::vector<Step>>& steps)
      : toy_(toy), steps_(steps), barrier_(toy.rank_count_), left_(toy.ranks()) {
    size_t longest = 0;
    for (const auto& list : steps) longest = std::max(longest, list.size());
    results_.resize(longest);
    for (StepResult& result : results_) result.ranks.resize(handles().size());
  }

  std::vector<StepResult> run() {
    std::vector<std::thread> threads;
    threads.reserve(handles().size());
    for (int32_t r = 0; r < toy_.ranks(); ++r) threads.emplace_back([this, r] { run_rank(r); });
    await();
    for (std::thread& thread : threads) thread.join();
    for (StepResult& result : results_) {
      const auto timed_out = [](const RankResult& r) { return r.status == RRFP_ERR_TIMEOUT; };
      if (std::any_of(result.ranks.begin(), result.ranks.end(), timed_out)) {
        result.report = report_text(toy_.pipeline());
      }
    }
    return std::move(results_);
  }

 private:
  [[nodiscard]] const std::vector<RankPtr>& handles() const { return toy_.handles_; }

  void await() {
    // A step may take as long as the deadline, and every step of the run may be that slow.
    const std::chrono::duration<double> limit(kDeadlineSeconds *
                                              (1 + static_cast<double>(results_.size())));
    std::unique_lock lock(mutex_);
    if (all_left_.wait_for(lock, limit, [this] { return left_ == 0; })) return;
    std::fprintf(stderr, "%d ranks did not come back in time:\n%s", left_,
                 report_text(toy_.pipeline_.get()).c_str());
    std::abort();
  }

  void run_rank(int32_t r) {
    Pauses pauses(toy_.delays, r, toy_.runs_);
    RankPtr& handle = toy_.handle(r);
    if (toy_.own_handles) {
      pauses.pause();
      handle = make_rank(toy_.pipeline(), r);
    }
    const auto& steps = steps_[static_cast<size_t>(r)];
    bool ok = true;
    for (size_t k = 0; k < steps.size() && ok; ++k) {
      RankResult& result = results_[k].ranks[static_cast<size_t>(r)];
      ok = run_step(r, steps[k], pauses, result);
      result.seconds = seconds_since(start_);
    }
    barrier_.arrive_and_drop();
    if (toy_.own_handles) handle.reset();
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) all_left_.notify_all();
  }

  bool run_step(int32_t r, const Step& step, Pauses& pauses, RankResult& result) {
    rrfp_rank* const rank = toy_.rank(r);
    uint64_t running = 0;  // the ticket
    try {
      if (toy_.before_begin) toy_.before_begin(r, step);
      pauses.pause();
      begin(rank, step);
      work(rank, pauses, running, result);
      if (toy_.quiesce) barrier_.arrive_and_wait();
      rrfp_error error = {};
      rrfp_step_report_init(&result.report);
      check(rrfp_rank_end_step(rank, &result.report, &error), error);
      return true;
    } catch (const CallFailed& failed) {
      // The others must hear of it; if they told us, this changes nothing.
      if (running != 0) (void)rrfp_rank_fail(rank, running, -1, failed.what(), nullptr);
      result.error = failed.error;
    } catch (const StageFailed& failed) {
      const rrfp_status told =
          rrfp_rank_fail(rank, running, failed.code, failed.what(), &result.error);
      if (told == RRFP_OK) (void)rrfp_rank_end_step(rank, nullptr, &result.error);
    } catch (const std::exception& failed) {
      if (running != 0) (void)rrfp_rank_fail(rank, running, -2, failed.what(), &result.error);
      result.error.status = RRFP_ERR_INTERNAL;
      std::snprintf(result.error.text, sizeof result.error.text, "harness: %s", failed.what());
    }
    result.status = result.error.status;
    return false;
  }

  static void begin(rrfp_rank* rank, const Step& step) {
    rrfp_step_options options;
    rrfp_step_options_init(&options);
    options.mode = step.mode;
    options.step = step.number;
    options.microbatches = step.microbatches;
    options.order = step.order;
    options.hint = step.hint;
    options.skip = step.skip.empty() ? nullptr : step.skip.data();
    options.activation_bytes =
        step.activation_bytes.empty() ? nullptr : step.activation_bytes.data();
    rrfp_error error = {};
    check(rrfp_rank_begin_step(rank, &options, &error), error);
  }

  void work(rrfp_rank* rank, Pauses& pauses, uint64_t& running, RankResult& result) {
    for (;;) {
      pauses.pause();
      rrfp_error error = {};
      rrfp_task task;
      rrfp_task_init(&task);
      result.status = rrfp_rank_next(rank, -1, &task, &error);
      check(result.status, error);
      if (result.status == RRFP_STEP_DONE) return;
      if (result.status == RRFP_AGAIN) continue;  // woken
      running = task.ticket;
      execute(rank, task, pauses);
      pauses.pause();
      rrfp_events events = 0;
      check(rrfp_rank_done(rank, task.ticket, &events, &error), error);
      running = 0;
      result.tasks.push_back({task, events});
      if (toy_.after_done) toy_.after_done(task, events);
    }
  }

  void execute(rrfp_rank* rank, const rrfp_task& task, Pauses& pauses) {
    pauses.pause();
    TaskContext context(rank, task, [&] { pauses.pause(); });
    if (toy_.before_task) toy_.before_task(context);
    const StageCode& code = toy_.code_[static_cast<size_t>(task.stage)];
    const auto call = [&](const std::function<void(TaskContext&)>& part) {
      if (part) part(context);
    };
    if (task.kind == RRFP_FORWARD) return call(code.forward);
    if (task.kind != RRFP_WEIGHT_GRADIENT) call(code.input_gradient);
    if (task.kind != RRFP_INPUT_GRADIENT) call(code.weight_gradient);
  }

  ToyPipeline& toy_;
  const std::vector<std::vector<Step>>& steps_;
  std::vector<StepResult> results_;
  std::barrier<> barrier_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable all_left_;
  int32_t left_;
};

ToyPipeline::ToyPipeline(int32_t ranks) : rank_count_(ranks) {
  rrfp_error error = {};
  rrfp_graph* graph = nullptr;
  check(rrfp_graph_create(ranks, &graph, &error), error);
  graph_.reset(graph);
  rrfp_pipeline_options_init(&options);
  options.watchdog_ms = static_cast<int64_t>(kDeadlineSeconds * 1000);
}

int32_t ToyPipeline::add_stage(StageCode code, rrfp_stage_flags flags, int32_t rank,
                               int64_t activation_bytes, int64_t forward_ns) {
  rrfp_stage_options stage;
  rrfp_stage_options_init(&stage);
  stage.flags = flags;
  stage.rank = rank;
  stage.activation_bytes = activation_bytes;
  stage.forward_ns = forward_ns;
  rrfp_error error = {};
  int32_t id = -1;
  check(rrfp_graph_add_stage(graph_.get(), &stage, &id, &error), error);
  code_.push_back(std::move(code));
  return id;
}

int32_t ToyPipeline::add_edge(int32_t from, int32_t to, rrfp_edge_flags flags) {
  rrfp_error error = {};
  int32_t id = -1;
  check(rrfp_graph_add_edge(graph_.get(), from, to, flags, &id, &error), error);
  return id;
}

void ToyPipeline::place(rrfp_placement placement) {
  rrfp_error error = {};
  check(rrfp_graph_place(graph_.get(), placement, &error), error);
}

void ToyPipeline::open() {
  pipeline_ = make_pipeline(graph_.get(), &options);
  handles_.resize(static_cast<size_t>(rank_count_));
  if (own_handles) return;
  for (int32_t r = 0; r < rank_count_; ++r) handle(r) = make_rank(pipeline_.get(), r);
}

void ToyPipeline::drop_pipeline() {
  graph_.reset();
  pipeline_.reset();
}

StepResult ToyPipeline::run(const Step& step) {
  return std::move(run(std::vector<Step>{step}).front());
}

std::vector<StepResult> ToyPipeline::run(const std::vector<Step>& steps) {
  return run_each(std::vector<std::vector<Step>>(handles_.size(), steps));
}

std::vector<StepResult> ToyPipeline::run_each(const std::vector<std::vector<Step>>& steps_by_rank) {
  ++runs_;
  return Runner(*this, steps_by_rank).run();
}

void ToyPipeline::reset() {
  rrfp_error error = {};
  check(rrfp_pipeline_reset(pipeline_.get(), &error), error);
}

}  // namespace rrfp::cases
