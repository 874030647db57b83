// SPDX-License-Identifier: Apache-2.0
//
// Whether a strict order can be obeyed. In strict order every rank is a sequential process that
// waits only for messages, so the outcome does not depend on timing: one replay with instant
// messages decides. The replay runs the very state machine that will run the step.
#include <cassert>
#include <deque>
#include <optional>

#include "engine/core/rank_core.h"

namespace rrfp::core {
namespace {

class Replay {
 public:
  Status begin(const std::shared_ptr<const StepTasks>& tasks, const Hint& hint, Policy policy) {
    if (!policy.strict()) policy.order = Order::kStrict;
    policy.late_ns = 0;
    cores_.resize(static_cast<size_t>(tasks->graph().ranks()));
    queued_.assign(cores_.size(), false);
    for (size_t r = 0; r < cores_.size(); ++r) {
      std::shared_ptr<const RankPlan> plan;
      if (Status s = build_plan(tasks, hint, RankId::of(r), policy, {}, plan); !s.ok()) return s;
      cores_[r].begin_step(std::move(plan));
      wake(RankId::of(r));
    }
    return {};
  }

  void run() {
    while (!queue_.empty()) {
      const RankId rank = queue_.front();
      queue_.pop_front();
      queued_[rank.index()] = false;
      while (run_one(rank)) {
      }
    }
  }

  [[nodiscard]] const std::vector<RankCore>& cores() const { return cores_; }

 private:
  void wake(RankId rank) {
    if (queued_[rank.index()]) return;
    queued_[rank.index()] = true;
    queue_.push_back(rank);
  }

  bool run_one(RankId rank) {
    RankCore& core = cores_[rank.index()];
    const std::span<const Command> answer = core.apply(Event::pull(), 0);
    const bool runs = answer.front().kind == Command::Kind::kRun;
    for (const Command& c : answer.subspan(1)) {
      if (c.kind == Command::Kind::kReceive)
        tell(c, Event::receiving(c.edge, c.direction, c.microbatch));
    }
    if (!runs) return false;
    for (const Command& c : core.apply(Event::task_done(), 0)) {
      if (c.kind == Command::Kind::kSend)
        tell(c, Event::message(c.edge, c.direction, c.microbatch));
    }
    return true;
  }

  void tell(const Command& c, const Event& event) {
    cores_[c.peer.index()].apply(event, 0);
    wake(c.peer);
  }

  std::vector<RankCore> cores_;
  std::deque<RankId> queue_;
  std::vector<bool> queued_;
};

std::string explain(const StageGraph& graph, RankId rank, const WaitingTask& waiting) {
  std::string text =
      "rank " + std::to_string(rank.value) + " waits at " + to_string(waiting.task) + " for ";
  if (waiting.ready) {
    return "rank " + std::to_string(rank.value) + " cannot go on to " + to_string(waiting.task) +
           " until what it has sent is asked for";
  }
  if (waiting.own_forward_missing) return text + "its forward, which comes later in its order";
  if (waiting.weight_turn_missing) {
    return text + "an older weight gradient of the stage, which deterministic mode computes first";
  }
  if (waiting.missing.empty()) return text + "a task of its own rank that comes later in its order";
  const WaitingTask::Input& input = waiting.missing.front();
  const Edge& edge = graph.edge(input.edge);
  const bool forward = input.direction == Direction::kForward;
  return text + (forward ? "the activation of stage " : "the gradient of stage ") +
         std::to_string((forward ? edge.from : edge.to).value) + " on rank " +
         std::to_string(input.from.value);
}

/// The first task in a stuck rank's order that has not started.
std::string explain_stall(const std::vector<RankCore>& cores) {
  std::string text;
  for (size_t r = 0; r < cores.size(); ++r) {
    if (cores[r].complete()) continue;
    const std::optional<WaitingTask> next = cores[r].strict_next();
    text += text.empty() ? "" : "; ";
    text += next ? explain(cores[r].plan().tasks->graph(), RankId::of(r), *next)
                 : "rank " + std::to_string(r) + " has sent what nobody asks for";
  }
  return text;
}

}  // namespace

Status check_strict(const std::shared_ptr<const StepTasks>& tasks, const Hint& hint,
                    const Policy& policy, std::span<const Cap> caps) {
  Replay replay;
  if (Status s = replay.begin(tasks, hint, policy); !s.ok()) return s;
  replay.run();
  const std::string stall = explain_stall(replay.cores());
  if (!stall.empty()) {
    return {Code::kBadOrder,
            "the hint \"" + std::string(hint.name()) + "\" cannot be obeyed strictly: " + stall};
  }
  for (size_t r = 0; r < caps.size(); ++r) {
    const Amount peak = replay.cores()[r].ledger().peak();
    const auto too_small = [&](const char* unit, int64_t have, int64_t want) {
      return Status{Code::kCapTooSmall, "the cap of rank " + std::to_string(r) + " is " +
                                            std::to_string(have) + " " + unit +
                                            "; the minimum is " + std::to_string(want) +
                                            ", the peak of the strict order"};
    };
    if (caps[r].slots > 0 && caps[r].slots < peak.slots) {
      return too_small("slots", caps[r].slots, peak.slots);
    }
    if (caps[r].bytes > 0 && caps[r].bytes < peak.bytes) {
      return too_small("bytes", caps[r].bytes, peak.bytes);
    }
  }
  return {};
}

}  // namespace rrfp::core
