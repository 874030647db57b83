// SPDX-License-Identifier: Apache-2.0
//
// What a rank tells a watchdog or a curious user: what it runs, what it waits for and from whom,
// what it holds. Called from any thread; the owner gives the mutex up while it waits and while it
// computes.
#include <cstdio>

#include "engine/host/pipeline.h"
#include "engine/host/rank_host.h"

namespace rrfp::host {
namespace {

constexpr size_t kTasksShown = 4;

std::string seconds(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f s", static_cast<double>(ns) / 1e9);
  return text;
}

const char* reason_text(core::IdleReason reason) {
  switch (reason) {
    case core::IdleReason::kInput: return "waiting for input";
    case core::IdleReason::kMemory: return "held by memory";
    case core::IdleReason::kCredit: return "held because its consumer is behind";
    case core::IdleReason::kPolicy: return "held by policy";
    case core::IdleReason::kComplete: return "done";
    case core::IdleReason::kFailed: return "failed";
  }
  return "?";
}

std::string limit_text(int64_t limit) {
  return limit >= core::Ledger::kUnlimited ? "unlimited" : std::to_string(limit);
}

std::string describe_task(const core::StageGraph& graph, core::RankId rank,
                          const core::WaitingTask& waiting) {
  std::string text = "  " + to_string(waiting.task);
  if (waiting.ready) return text + " is ready\n";
  const char* separator = " needs ";
  const auto need = [&](const std::string& what) {
    text += separator + what;
    separator = ", ";
  };
  if (waiting.own_forward_missing) need("its forward");
  if (waiting.weight_turn_missing) need("an older weight gradient of its stage");
  for (const core::WaitingTask::Input& input : waiting.missing) {
    const core::Edge& edge = graph.edge(input.edge);
    const bool forward = input.direction == core::Direction::kForward;
    const core::StageId from = forward ? edge.from : edge.to;
    const core::StageId to = forward ? edge.to : edge.from;
    need(std::string(forward ? "activation " : "gradient ") + std::to_string(from.value) + " -> " +
         std::to_string(to.value) + " of microbatch " +
         std::to_string(waiting.task.microbatch.value) +
         (input.from == rank ? "" : " from rank " + std::to_string(input.from.value)));
  }
  if (waiting.missing.empty() && !waiting.own_forward_missing && !waiting.weight_turn_missing) {
    need("its input gradient");
  }
  return text + "\n";
}

}  // namespace

std::string RankHost::describe(int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  std::string text = "rank " + std::to_string(rank_.value) + ": ";
  if (state_ == State::kNoStep) return text + (gone() ? "destroyed\n" : "in no step\n");
  text += "step " + std::to_string(request_.step) + ", ";
  if (state_ == State::kStepFailed) return text + "failed\n";
  if (running_) {
    text += "running " + to_string(task_) + " for " + seconds(now_ns - running_since_ns_);
  } else if (core_.complete()) {
    text += "done";
  } else if (idle_since_ns_ != 0) {
    text += std::string(reason_text(idle_reason_)) + " for " + seconds(now_ns - idle_since_ns_);
  } else {
    text += "not asking for a task";
  }
  const core::Ledger& ledger = core_.ledger();
  text += "; holds " + std::to_string(ledger.live().slots) + " of " +
          limit_text(ledger.cap().slots) + " slots, " + std::to_string(ledger.live().bytes) +
          " of " + limit_text(ledger.cap().bytes) + " bytes, and " +
          std::to_string(memory_->live_bytes()) + " bytes of tensors; " +
          std::to_string(core_.work_left()) + " tasks left\n";
  for (const core::WaitingTask& waiting : core_.waiting(kTasksShown)) {
    text += describe_task(pipeline_.graph(), rank_, waiting);
  }
  return text;
}

bool RankHost::running_since(core::Task& task, int64_t& since_ns) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kInStep || !running_) return false;
  task = task_;
  since_ns = running_since_ns_;
  return true;
}

}  // namespace rrfp::host
