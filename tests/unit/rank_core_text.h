// SPDX-License-Identifier: Apache-2.0
//
// Commands of a RankCore as text, one line per answer, and a core that is driven and answers in
// text:
//   run 1F0 | idle input | idle policy until 40
//   send e0>2 to 1 | send e0<2 to 0 | deliver e1>2      edge, > activation or < gradient,
//   microbatch announce e0>2 in 50 to 1 | credit e0 to 0 forget 1:0 | losses 1 | gradients 1 |
//   complete      stage and microbatch, stage
//   receive e0>2 from 0 | offload 1F0 in 50 | load 1F0 in 50
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engine/core/rank_core.h"
#include "tests/unit/fixtures.h"

namespace rrfp::core::fixtures {

inline std::string text_of(IdleReason reason) {
  constexpr std::string_view kNames[] = {"input",  "memory",   "credit",
                                         "policy", "complete", "failed"};
  return std::string(kNames[static_cast<size_t>(reason)]);
}

inline std::string text_of(const Command& c) {
  const auto message = [&] {
    return "e" + std::to_string(c.edge.value) + (c.direction == Direction::kForward ? ">" : "<") +
           std::to_string(c.microbatch.value);
  };
  const std::string to = " to " + std::to_string(c.peer.value);
  const std::string stage = std::to_string(c.task.stage.value);
  switch (c.kind) {
    case Command::Kind::kRun: return "run " + to_string(c.task);
    case Command::Kind::kIdle:
      return "idle " + text_of(c.reason) +
             (c.until_ns == INT64_MAX ? "" : " until " + std::to_string(c.until_ns));
    case Command::Kind::kSend: return "send " + message() + to;
    case Command::Kind::kDeliver: return "deliver " + message();
    case Command::Kind::kAnnounce:
      return "announce " + message() + " in " + std::to_string(c.duration_ns) + to;
    case Command::Kind::kCredit: return "credit e" + std::to_string(c.edge.value) + to;
    case Command::Kind::kReceive:
      return "receive " + message() + " from " + std::to_string(c.peer.value);
    case Command::Kind::kOffload:
    case Command::Kind::kLoad:
      return std::string(c.kind == Command::Kind::kLoad ? "load " : "offload ") +
             to_string(c.task) + " in " + std::to_string(c.duration_ns);
    case Command::Kind::kForget:
      return "forget " + stage + ":" + std::to_string(c.task.microbatch.value);
    case Command::Kind::kLosses: return "losses " + stage;
    case Command::Kind::kStageGradients: return "gradients " + stage;
    case Command::Kind::kStepComplete: return "complete";
  }
  return "?";
}

inline std::string text_of(std::span<const Command> commands) {
  std::string text;
  for (const Command& c : commands) text += (text.empty() ? "" : ", ") + text_of(c);
  return text;
}

/// "1B0 waits e0<0 from 1, own forward, turn" or "1F0 ready".
inline std::string text_of(const WaitingTask& waiting) {
  std::string text = to_string(waiting.task) + (waiting.ready ? " ready" : " waits");
  for (const WaitingTask::Input& input : waiting.missing) {
    text += " e" + std::to_string(input.edge.value) +
            (input.direction == Direction::kForward ? ">" : "<") + " from " +
            std::to_string(input.from.value);
  }
  if (waiting.own_forward_missing) text += " own forward";
  if (waiting.weight_turn_missing) text += " turn";
  return text;
}

/// One rank of a step, driven by hand.
class Driven {
 public:
  Driven(const std::shared_ptr<const StepTasks>& tasks, const Hint& hint, int32_t rank,
         const Policy& policy = {}, const Cap& cap = {}) {
    std::shared_ptr<const RankPlan> plan;
    require(build_plan(tasks, hint, RankId(rank), policy, cap, plan));
    core.begin_step(std::move(plan));
  }

  std::string apply(const Event& event, int64_t now_ns = 0) {
    return text_of(core.apply(event, now_ns));
  }
  std::string pull(int64_t now_ns = 0) { return apply(Event::pull(), now_ns); }
  std::string done() { return apply(Event::task_done()); }
  std::string activation(int32_t edge, int32_t microbatch) {
    return apply(Event::message(EdgeId(edge), Direction::kForward, MicrobatchId(microbatch)));
  }
  std::string gradient(int32_t edge, int32_t microbatch) {
    return apply(Event::message(EdgeId(edge), Direction::kBackward, MicrobatchId(microbatch)));
  }
  std::string credit(int32_t edge) { return apply(Event::credit(EdgeId(edge))); }
  std::string announce(int32_t edge, Direction direction, int32_t microbatch, int64_t in_ns,
                       int64_t now_ns) {
    return apply(Event::announce(EdgeId(edge), direction, MicrobatchId(microbatch), in_ns), now_ns);
  }
  /// Pulls and finishes: both answers.
  std::string step() {
    const std::string answer = pull();
    return core.running() ? answer + "; " + done() : answer;
  }
  /// What waits, in hint order.
  [[nodiscard]] std::string waiting(size_t limit = 100) const {
    std::string text;
    for (const WaitingTask& w : core.waiting(limit))
      text += (text.empty() ? "" : ", ") + text_of(w);
    return text;
  }

  RankCore core;
};

}  // namespace rrfp::core::fixtures
