// SPDX-License-Identifier: Apache-2.0
//
// What may stand in a cell of a complete schedule text: a task, or something that
// torch.distributed.pipelining does between tasks. SEND_F and SEND_B name the stage that sends,
// RECV_F and RECV_B the stage that receives: an activation from stage 1 to stage 2 is 1SEND_F0 on
// one rank and 2RECV_F0 on the other, its gradient 2SEND_B0 and 1RECV_B0.
#pragma once

#include <array>
#include <compare>
#include <string>
#include <string_view>

#include "engine/core/ids.h"

namespace rrfp::core {

enum class ActionType : uint8_t {
  kSendForward,      // SEND_F
  kReceiveForward,   // RECV_F
  kSendBackward,     // SEND_B
  kReceiveBackward,  // RECV_B
  kUnshard,          // gather the parameters of the stage
  kReshard,          // let them go again
  kReduceGradient,   // sum the gradients of the stage over its replicas
  kCompute,          // the task
};

/// By ActionType, kCompute excluded.
constexpr std::array<std::string_view, 7> kActionNames = {
    "SEND_F", "RECV_F", "SEND_B", "RECV_B", "UNSHARD", "RESHARD", "REDUCE_GRAD"};

struct Action {
  ActionType type = ActionType::kCompute;
  StageId stage;
  MicrobatchId microbatch;             // invalid for UNSHARD, RESHARD and REDUCE_GRAD
  TaskKind kind = TaskKind::kForward;  // of the task

  Action() = default;
  explicit Action(const Task& t) : stage(t.stage), microbatch(t.microbatch), kind(t.kind) {}
  Action(ActionType t, StageId s, MicrobatchId i = {}) : type(t), stage(s), microbatch(i) {}

  [[nodiscard]] bool computes() const { return type == ActionType::kCompute; }
  [[nodiscard]] bool has_microbatch() const {
    return computes() || type <= ActionType::kReceiveBackward;
  }
  [[nodiscard]] Task task() const { return {stage, microbatch, kind}; }
  auto operator<=>(const Action&) const = default;
};

[[nodiscard]] inline std::string to_string(const Action& action) {
  if (action.computes()) return to_string(action.task());
  std::string text = std::to_string(action.stage.value);
  text += kActionNames[static_cast<size_t>(action.type)];
  if (action.has_microbatch()) text += std::to_string(action.microbatch.value);
  return text;
}

}  // namespace rrfp::core
