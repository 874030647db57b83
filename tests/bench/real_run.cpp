// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/real_run.h"

#include <sys/prctl.h>

#include <algorithm>
#include <barrier>
#include <ctime>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/comm/clock.h"
#include "engine/host/pipeline.h"
#include "engine/sim/network.h"

namespace rrfp::bench {
namespace {

using core::Code;
using core::Status;

void sleep_until(int64_t at_ns) {
  const timespec at = {.tv_sec = at_ns / 1'000'000'000, .tv_nsec = at_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) != 0) {
  }
}

class Step {
 public:
  Step(const sim::Experiment& experiment, const sim::Prepared& prepared)
      : prepared_(prepared),
        scenario_(experiment.scenario(prepared)),
        network_(scenario_.links, graph()),
        meeting_(graph().ranks()) {}

  Status run(bool record, RealRun& out) {
    host::PipelineOptions options;
    options.policy.deterministic = prepared_.candidate.policy.deterministic;
    options.caps = prepared_.family.caps;
    // A fixed schedule keeps the memory that it needs; the host would refuse it.
    const core::Policy& policy = prepared_.candidate.policy;
    if (policy.strict() && policy.late_ns == 0) {
      options.caps.assign(options.caps.size(),
                          {core::Ledger::kUnlimited, core::Ledger::kUnlimited});
    }
    options.wake = comm::WakePolicy::kPark;
    options.trace_steps = record ? 1 : 0;
    options.links = {.arrival_ns = &Step::arrival_ns, .user = this};
    const auto graph_handle = std::shared_ptr<const core::StageGraph>(
        prepared_.candidate.tasks, &prepared_.candidate.tasks->graph());
    host::EdgeSpecs specs(static_cast<size_t>(graph().edge_count()));
    if (Status s = host::Pipeline::create(graph_handle, std::move(specs), options, pipeline_);
        !s.ok()) {
      return s;
    }
    request_.shape = prepared_.candidate.tasks->shape();
    request_.hint = prepared_.candidate.hint;
    request_.policy = prepared_.candidate.policy;
    request_.trace.microbatches = prepared_.injection.data();
    std::vector<std::thread> threads;
    for (int32_t r = 0; r < graph().ranks(); ++r) threads.emplace_back([this, r] { run_rank(r); });
    for (std::thread& thread : threads) thread.join();
    if (!status_.ok()) return status_;
    out.makespan_ns = end_ns_ - begin_ns_;
    out.overslept_ns = overslept_ns_ / std::max<int64_t>(tasks_, 1);
    out.peak_bytes = peak_bytes_;
    for (int32_t r = 0; record && r < graph().ranks(); ++r) {
      out.timeline.ranks.push_back(hosts_[static_cast<size_t>(r)]->timeline().spans());
    }
    return {};
  }

 private:
  [[nodiscard]] const core::StageGraph& graph() const { return prepared_.candidate.tasks->graph(); }

  /// Only the sender's thread uses a link.
  static int64_t arrival_ns(void* user, core::EdgeId edge, core::Direction direction,
                            core::MicrobatchId i, int64_t now_ns) {
    Step& step = *static_cast<Step*>(user);
    return step.begin_ns_ + step.network_.send(edge, direction, i, now_ns - step.begin_ns_);
  }

  void run_rank(int32_t r) {
    prctl(PR_SET_TIMERSLACK, 1UL);
    host::RankHost* rank = nullptr;
    Status status = pipeline_->open(core::RankId(r), rank);
    {
      const std::lock_guard lock(mutex_);
      hosts_.resize(static_cast<size_t>(graph().ranks()));
      hosts_[static_cast<size_t>(r)] = rank;
    }
    if (status.ok()) status = rank->begin_step(request_);
    meeting_.arrive_and_wait();
    if (r == 0) begin_ns_ = comm::now_ns();
    meeting_.arrive_and_wait();
    int64_t overslept_ns = 0;
    int64_t tasks = 0;
    int64_t end_ns = 0;
    while (status.ok()) {
      host::TaskInfo task;
      status = rank->next(-1, task);
      if (!status.ok()) break;
      const int64_t until_ns = comm::now_ns() + scenario_.durations.ns(task.task);
      sleep_until(until_ns);
      end_ns = comm::now_ns();
      overslept_ns += end_ns - until_ns;
      ++tasks;
      status = finish(*rank, task);
    }
    host::StepReport report;
    if (status.code() == Code::kStepDone) status = rank->end_step(report);
    const std::lock_guard lock(mutex_);
    if (!status.ok() && status_.ok()) status_ = status;
    if (!status.ok()) pipeline_->cancel(status.text());
    end_ns_ = std::max(end_ns_, end_ns);
    overslept_ns_ += overslept_ns;
    tasks_ += tasks;
    peak_bytes_ = std::max(peak_bytes_, report.peak.bytes);
  }

  Status finish(host::RankHost& rank, const host::TaskInfo& task) {
    const bool forward = task.task.kind == core::TaskKind::kForward;
    const bool sends = task.task.kind != core::TaskKind::kWeightGradient;
    for (core::EdgeId e : !sends    ? std::span<const core::EdgeId>()
                          : forward ? graph().out_edges(task.task.stage)
                                    : graph().in_edges(task.task.stage)) {
      if (rank.output_wanted(task.ticket, e).code() == Code::kAbsent) continue;
      if (Status s = rank.put(task.ticket, e, {}, nullptr); !s.ok()) return s;
    }
    uint32_t events = 0;
    return rank.done(task.ticket, events);
  }

  const sim::Prepared& prepared_;
  const sim::Scenario scenario_;
  sim::Network network_;
  std::barrier<> meeting_;
  std::shared_ptr<host::Pipeline> pipeline_;
  host::StepRequest request_;
  int64_t begin_ns_ = 0;

  std::mutex mutex_;  // of everything below
  std::vector<host::RankHost*> hosts_;
  Status status_;
  int64_t end_ns_ = 0;
  int64_t overslept_ns_ = 0;
  int64_t tasks_ = 0;
  int64_t peak_bytes_ = 0;
};

}  // namespace

Status run_real(const sim::Experiment& experiment, const sim::Prepared& prepared, bool record,
                RealRun& out) {
  return Step(experiment, prepared).run(record, out);
}

}  // namespace rrfp::bench
