// SPDX-License-Identifier: Apache-2.0
//
// What the engine costs per task and rank when tasks do nothing: pull, put, hand over, done, with
// all messages, through the C API. A chain with one stage per rank, one thread per rank, 1F1B,
// 1,000 microbatches. The counter `per_task` is the wall time of a step divided by the tasks of one
// rank, so it contains the waits for messages too.
//
// Arguments: ranks, wake policy (0 yield, 1 spin, 2 park), tensors per message (0: an empty
// message, 1: a scalar that is copied in).
#include <benchmark/benchmark.h>
#include <rrfp/rrfp.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int32_t kMicrobatches = 1000;

void check(rrfp_status status, const rrfp_error& error) {
  if (status >= 0) return;
  std::fprintf(stderr, "%s: %s\n", rrfp_status_name(status), error.text);
  std::abort();
}

class Chain {
 public:
  Chain(int32_t ranks, rrfp_wake wake, size_t tensors) : tensors_(tensors) {
    rrfp_error error;
    rrfp_graph* graph = nullptr;
    check(rrfp_graph_create(ranks, &graph, &error), error);
    for (int32_t s = 0; s < ranks; ++s) {
      rrfp_stage_options stage;
      rrfp_stage_options_init(&stage);
      if (s == ranks - 1) stage.flags = RRFP_STAGE_LOSS;
      check(rrfp_graph_add_stage(graph, &stage, nullptr, &error), error);
      if (s > 0) check(rrfp_graph_add_edge(graph, s - 1, s, 0, nullptr, &error), error);
    }
    check(rrfp_graph_place(graph, RRFP_PLACEMENT_LINEAR, &error), error);
    rrfp_pipeline_options options;
    rrfp_pipeline_options_init(&options);
    options.wake = wake;
    check(rrfp_pipeline_create(graph, &options, &pipeline_, &error), error);
    check(rrfp_hint_create("1f1b", &hint_, &error), error);
    rrfp_graph_destroy(graph);
    ranks_.resize(static_cast<size_t>(ranks));
    for (int32_t r = 0; r < ranks; ++r) {
      check(rrfp_rank_create(pipeline_, r, &ranks_[static_cast<size_t>(r)], &error), error);
    }
    // Rank 0 runs on the thread of the benchmark.
    for (size_t r = 1; r < ranks_.size(); ++r) {
      threads_.emplace_back([this, r] {
        for (int64_t step = 0; wait_for(step); ++step) run_step(static_cast<int32_t>(r), step);
      });
    }
  }

  ~Chain() {
    stop_.store(true);
    for (std::thread& thread : threads_) thread.join();
    for (rrfp_rank* rank : ranks_) rrfp_rank_destroy(rank);
    rrfp_pipeline_destroy(pipeline_);
    rrfp_hint_destroy(hint_);
  }

  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  void run_step() {
    const int64_t step = begun_.fetch_add(1);
    run_step(0, step);
  }

 private:
  bool wait_for(int64_t step) {
    while (begun_.load() <= step) {
      if (stop_.load()) return false;
      std::this_thread::yield();
    }
    return true;
  }

  void run_step(int32_t r, int64_t step) {
    rrfp_rank* const rank = ranks_[static_cast<size_t>(r)];
    rrfp_error error;
    rrfp_step_options options;
    rrfp_step_options_init(&options);
    options.step = step;
    options.microbatches = kMicrobatches;
    options.hint = hint_;
    check(rrfp_rank_begin_step(rank, &options, &error), error);
    rrfp_task task;
    rrfp_task_init(&task);
    const auto last = static_cast<int32_t>(ranks_.size()) - 1;
    float value = 0;
    rrfp_tensor tensor = {};
    tensor.data = &value;
    tensor.dtype = RRFP_F32;
    for (;;) {
      const rrfp_status status = rrfp_rank_next(rank, -1, &task, &error);
      check(status, error);
      if (status == RRFP_STEP_DONE) break;
      const bool forward = task.kind == RRFP_FORWARD;
      tensor.flags = forward ? RRFP_TENSOR_WANTS_GRADIENT : 0;
      const bool sends = forward ? r < last : r > 0;
      if (sends) {
        const int32_t edge = forward ? r : r - 1;
        check(rrfp_rank_put(rank, task.ticket, edge, &tensor, tensors_, nullptr, &error), error);
      }
      check(rrfp_rank_done(rank, task.ticket, nullptr, &error), error);
    }
    check(rrfp_rank_end_step(rank, nullptr, &error), error);
  }

  const size_t tensors_;
  rrfp_pipeline* pipeline_ = nullptr;
  rrfp_hint* hint_ = nullptr;
  std::vector<rrfp_rank*> ranks_;
  std::vector<std::thread> threads_;
  std::atomic<int64_t> begun_{0};
  std::atomic<bool> stop_{false};
};

void empty_tasks(benchmark::State& state) {
  Chain chain(static_cast<int32_t>(state.range(0)), static_cast<rrfp_wake>(state.range(1)),
              static_cast<size_t>(state.range(2)));
  chain.run_step();  // warm-up: plans, pools
  for (auto _ : state) chain.run_step();
  const double tasks = 2.0 * kMicrobatches * static_cast<double>(state.iterations());
  state.counters["per_task"] =
      benchmark::Counter(tasks, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK(empty_tasks)
    ->ArgNames({"ranks", "wake", "tensors"})
    ->Args({1, RRFP_WAKE_SPIN, 0})
    ->Args({2, RRFP_WAKE_SPIN, 0})
    ->Args({2, RRFP_WAKE_SPIN, 1})
    ->Args({2, RRFP_WAKE_YIELD, 0})
    ->Args({2, RRFP_WAKE_PARK, 0})
    ->Args({8, RRFP_WAKE_YIELD, 0})
    ->Args({8, RRFP_WAKE_YIELD, 1})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
