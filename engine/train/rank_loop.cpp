// SPDX-License-Identifier: Apache-2.0
//
// The trainer on the threads of its ranks: waiting for jobs, running them, ending a step together.
#include <cmath>

#if defined(__SSE2__)
#include <pmmintrin.h>
#include <xmmintrin.h>
#endif

#include "engine/comm/clock.h"
#include "engine/train/trainer.h"

namespace rrfp::train {

namespace {

/// Moments of weights whose gradients stay zero decay into numbers so small that processors compute
/// with them tens of times slower. On the trainer's own threads they become zero instead.
void flush_denormals() {
#if defined(__SSE2__)
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
#endif
}

}  // namespace

void Trainer::rank_loop(size_t rank) {
  flush_denormals();
  int64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || jobs_posted_ != seen; });
      if (stop_) return;
      seen = jobs_posted_;
    }
    run_rounds(*ranks_[rank]);
    finish_step(rank);
    {
      const std::lock_guard lock(mutex_);
      if (++ranks_done_ == ranks_.size()) changed_.notify_all();
    }
  }
}

void Trainer::run_rounds(Rank& rank) {
  rank.status = {};
  rank.sums = {};
  for (size_t r = 0; r < job_.round_count && rank.status.code() == core::Code::kOk; ++r) {
    try {
      rank.status = rank.worker->run(job_.rounds[r], rank.report);
    } catch (const std::exception&) {  // out of memory: what the failure needs must be freed first
      rank.worker->forget();
      rank.status = {core::Code::kNoMemory, "out of memory"};
    }
    host::StepReport& sums = rank.sums;
    sums.total_ns += rank.report.total_ns;
    sums.busy_ns += rank.report.busy_ns;
    sums.wait_input_ns += rank.report.wait_input_ns;
    sums.wait_memory_ns += rank.report.wait_memory_ns;
    sums.wait_credit_ns += rank.report.wait_credit_ns;
    sums.wait_policy_ns += rank.report.wait_policy_ns;
    sums.other_ns += rank.report.other_ns;
    sums.tensor_bytes_peak = std::max(sums.tensor_bytes_peak, rank.report.tensor_bytes_peak);
  }
  if (!rank.status.failed()) return;
  failed_.store(true, std::memory_order_relaxed);
  // If the step could not even begin here, the others would wait for this rank for ever.
  pipeline_->cancel(rank.status.text());
}

/// The norm of all gradients and what follows from it. A tied parameter counts once.
Trainer::Verdict Trainer::judge() const {
  Verdict verdict;
  double squares = 0;
  for (const double of_parameter : squares_) squares += of_parameter;
  verdict.norm = std::sqrt(squares) / step_scale_;
  verdict.finite = std::isfinite(verdict.norm);
  for (const double loss : losses_) verdict.finite = verdict.finite && std::isfinite(loss);
  const double most = options_.optimizer.clip_norm;
  const bool clip = most > 0 && verdict.norm > most;
  verdict.gradient_scale = (clip ? most / verdict.norm : 1) / step_scale_;
  return verdict;
}

void Trainer::finish_step(size_t rank) {
  if (!job_.training) return;
  Rank& own = *ranks_[rank];
  const int64_t arrived_ns = comm::now_ns();
  meeting_->arrive_and_wait();  // all ranks have all their gradients, or have failed
  if (failed_.load(std::memory_order_relaxed)) return;
  const int64_t begin_ns = comm::now_ns();
  own.host->trace(trace::IdleSpan{.reason = trace::IdleKind::kGroup,
                                  .step = steps_,
                                  .begin_ns = arrived_ns,
                                  .end_ns = begin_ns});
  const kernels::Kernels& k = *setting_.kernels;
  const Weights& weights = *weights_;
  for (size_t p = 0; p < weights.count(); ++p) {
    if (owner_[p] != rank || !weights.trained(p)) continue;
    weights.gather_gradient(p, k);
    squares_[p] = k.sum_squares(weights.elements(p), weights.array(p, WeightSlot::kGradient));
  }
  meeting_->arrive_and_wait();  // all squares are known
  const Verdict verdict = judge();
  if (rank == 0) verdict_ = verdict;
  if (!job_.update) return;  // the gradients stay for the caller to read
  const Update update = {
      .lr = job_.lr, .gradient_scale = verdict.gradient_scale, .updates = updates_ + 1};
  for (size_t p = 0; p < weights.count(); ++p) {
    if (owner_[p] != rank || !weights.trained(p)) continue;
    if (verdict.finite) {
      const bool decay = setting_.graph.parameters()[p].decay;
      update_weight(options_.optimizer, update, weights, p, decay, k);
    } else {
      weights.clear_gradient(p, k);
    }
  }
  own.host->trace(trace::TaskSpan{.kind = trace::SpanKind::kUpdate,
                                  .stage = {},
                                  .microbatch = {},
                                  .step = steps_,
                                  .begin_ns = begin_ns,
                                  .end_ns = comm::now_ns()});
}

}  // namespace rrfp::train
