// SPDX-License-Identifier: Apache-2.0
#include "engine/host/pipeline.h"

#include <algorithm>

namespace rrfp::host {

using core::Code;
using core::Status;

Pipeline::Pipeline(std::shared_ptr<const core::StageGraph> graph, EdgeSpecs specs,
                   PipelineOptions options)
    : graph_(std::move(graph)),
      specs_(std::move(specs)),
      options_(std::move(options)),
      domain_(graph_->ranks(), options_.mailbox_capacity, options_.wake) {
  ranks_.reserve(static_cast<size_t>(graph_->ranks()));
  for (int32_t r = 0; r < graph_->ranks(); ++r) {
    const core::RankId id(r);
    ranks_.push_back(std::make_unique<RankHost>(*this, id, domain_.endpoint(id)));
  }
}

Status Pipeline::create(std::shared_ptr<const core::StageGraph> graph, EdgeSpecs specs,
                        PipelineOptions options, std::shared_ptr<Pipeline>& out) {
  assert(graph->sealed());
  assert(options.caps.size() == static_cast<size_t>(graph->ranks()));
  assert(specs.size() == static_cast<size_t>(graph->edge_count()));
  // A cap that cannot hold even one plain microbatch is better refused now than in the first step.
  std::shared_ptr<const core::StepTasks> tasks;
  core::StepShape shape;
  shape.microbatches = 1;
  if (Status s = core::StepTasks::create(graph, shape, tasks); !s.ok()) return s;
  std::shared_ptr<const core::Hint> hint;
  if (Status s = core::Hint::named("1f1b", hint); !s.ok()) return s;
  for (int32_t r = 0; r < graph->ranks(); ++r) {
    std::shared_ptr<const core::RankPlan> plan;
    const core::RankId rank(r);
    Status s =
        core::build_plan(tasks, *hint, rank, options.policy, options.caps[rank.index()], plan);
    if (!s.ok()) return std::move(s).at(rank);
  }
  out.reset(new Pipeline(std::move(graph), std::move(specs), std::move(options)));
  return {};
}

// --- Handles

Status Pipeline::open(core::RankId rank, RankHost*& out) {
  if (Status s = graph_->check_rank(rank); !s.ok()) return s;
  RankHost& host = this->rank(rank);
  if (!host.open()) {
    return Status(Code::kBadState, "rank " + std::to_string(rank.value) +
                                       " already has a handle; a rank has one at a time")
        .at(rank);
  }
  out = &host;
  return {};
}

void Pipeline::close(RankHost& rank) {
  if (!rank.close()) return;
  ever_closed_.store(true, std::memory_order_release);
  // Others may wait for messages that will never come.
  for (const auto& other : ranks_) other->nudge();
}

// --- Failure

void Pipeline::cancel(std::string text) {
  domain_.raise({Code::kCancelled, "cancelled: " + std::move(text)});
}

/// Every rank, claimed, or none of them.
class Pipeline::Claims {
 public:
  ~Claims() {
    for (RankHost* rank : ranks_) rank->unclaim();
  }
  Status claim(std::span<const std::unique_ptr<RankHost>> ranks, RankHost::Claim as,
               const char* what) {
    ranks_.reserve(ranks.size());
    for (const auto& rank : ranks) {
      if (!rank->try_claim(as)) {
        return Status(Code::kBusy, "rank " + std::to_string(rank->id().value) +
                                       " is inside a call; " + what +
                                       " needs every rank's owner outside")
            .at(rank->id());
      }
      ranks_.push_back(rank.get());
    }
    return {};
  }

 private:
  std::vector<RankHost*> ranks_;
};

Status Pipeline::timeline(trace::Timeline& out) {
  if (options_.trace_steps == 0) {
    return {Code::kBadState, "no timeline was kept; set trace_steps when the pipeline is made"};
  }
  Claims claims;
  if (Status s = claims.claim(ranks_, RankHost::kLooker, "a timeline"); !s.ok()) return s;
  trace::Timeline timeline;
  timeline.title = "pipeline";
  timeline.source = "run";
  for (const auto& rank : ranks_) timeline.ranks.push_back(rank->timeline().spans());
  out = std::move(timeline);
  return {};
}

Status Pipeline::reset() {
  Claims claims;
  if (Status s = claims.claim(ranks_, RankHost::kOwner, "reset"); !s.ok()) return s;
  for (const auto& rank : ranks_) rank->reset();
  domain_.reset();
  // What the ranks held has gone home by now; this frees it.
  for (const auto& rank : ranks_) rank->reset();
  const std::lock_guard lock(report_mutex_);
  watchdog_report_.clear();
  return {};
}

void Pipeline::log(LogLevel level, const std::string& text) const {
  if (options_.log != nullptr) options_.log(options_.log_user, level, text.c_str());
}

// --- Watchdog and report

int64_t Pipeline::last_progress_ns() const {
  int64_t last = 0;
  for (const auto& rank : ranks_) last = std::max(last, rank->progress_ns());
  return last;
}

int64_t Pipeline::watch_due_ns() const {
  if (options_.watchdog_ns == 0) return comm::Transport::kForever;
  return last_progress_ns() + options_.watchdog_ns;
}

void Pipeline::watch(core::RankId watcher, int64_t now_ns) {
  if (domain_.failed() || now_ns < watch_due_ns()) return;
  std::string report = describe_all(now_ns);
  std::string text = "no task has finished for " +
                     std::to_string((now_ns - last_progress_ns()) / 1'000'000) + " ms";
  core::RankId culprit = watcher;
  core::Task culprit_task;
  int64_t oldest_ns = INT64_MAX;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    core::Task task;
    int64_t since_ns = 0;
    if (!ranks_[r]->running_since(task, since_ns) || since_ns >= oldest_ns) continue;
    oldest_ns = since_ns;
    culprit = core::RankId::of(r);
    culprit_task = task;
  }
  if (culprit_task.stage.valid()) {
    text += "; rank " + std::to_string(culprit.value) + " has been running " +
            to_string(culprit_task) + " for " + std::to_string((now_ns - oldest_ns) / 1'000'000) +
            " ms";
  } else {
    text += " and no rank runs a task; rank " + std::to_string(watcher.value) + " waited";
  }
  {
    // Whoever hears of the failure finds the report.
    const std::lock_guard lock(report_mutex_);
    if (!domain_.raise(Status(Code::kTimeout, text).at(culprit, culprit_task))) return;
    watchdog_report_ = report;
  }
  log(kError, text + "\n" + report);
}

std::string Pipeline::report() {
  {
    const std::lock_guard lock(report_mutex_);
    if (!watchdog_report_.empty()) return watchdog_report_;
  }
  return describe_all(comm::now_ns());
}

std::string Pipeline::describe_all(int64_t now_ns) {
  std::string text;
  for (const auto& rank : ranks_) text += rank->describe(now_ns);
  return text;
}

}  // namespace rrfp::host
