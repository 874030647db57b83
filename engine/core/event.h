// SPDX-License-Identifier: Apache-2.0
//
// What goes into a RankCore and what comes out of it.
#pragma once

#include <cstdint>

#include "engine/core/ids.h"

namespace rrfp::core {

struct Event {
  enum class Kind : uint8_t {
    kPull,        // the rank is idle and asks for a task
    kTaskDone,    // the running task is done; its outputs are ready to be sent
    kMessage,     // the message (edge, direction, microbatch) has arrived
    kCredit,      // the consumer of `edge` has started on one of our messages
    kAnnounce,    // the message (edge, direction, microbatch) will be sent in about duration_ns
    kPeerFailed,  // the step has failed elsewhere
  };

  Kind kind = Kind::kPull;
  Direction direction = Direction::kForward;
  EdgeId edge;
  MicrobatchId microbatch;
  int64_t duration_ns = 0;

  [[nodiscard]] static Event pull() { return {}; }
  [[nodiscard]] static Event task_done() { return of(Kind::kTaskDone); }
  [[nodiscard]] static Event message(EdgeId edge, Direction direction, MicrobatchId i) {
    return {Kind::kMessage, direction, edge, i, 0};
  }
  [[nodiscard]] static Event credit(EdgeId edge) {
    return {Kind::kCredit, Direction::kForward, edge, {}, 0};
  }
  [[nodiscard]] static Event announce(EdgeId edge, Direction direction, MicrobatchId i,
                                      int64_t duration_ns) {
    return {Kind::kAnnounce, direction, edge, i, duration_ns};
  }
  [[nodiscard]] static Event peer_failed() { return of(Kind::kPeerFailed); }

 private:
  [[nodiscard]] static Event of(Kind kind) { return {kind, Direction::kForward, {}, {}, 0}; }
};

/// Why a rank that asked for a task got none.
enum class IdleReason : uint8_t {
  kInput,     // nothing is ready: inputs are missing
  kMemory,    // a forward is ready, but the cap does not admit it
  kCredit,    // a forward is ready, but too many of its messages wait at the consumer
  kPolicy,    // a task is ready, but strict order or a hold forbids it
  kComplete,  // every task of the step is done
  kFailed,    // the step has failed
};

struct Command {
  enum class Kind : uint8_t {
    kRun,             // run `task`; answer to a pull
    kIdle,            // nothing to run because of `reason`, at the latest until `until_ns`
    kSend,            // send the message (edge, direction, microbatch) to `peer`
    kDeliver,         // the same message stays on this rank; the core already knows of it
    kAnnounce,        // tell `peer` that (edge, direction, microbatch) comes in about duration_ns
    kCredit,          // tell `peer` that a message of `edge` has been consumed
    kForget,          // all tasks of (task.stage, task.microbatch) are done: free their inputs
    kLosses,          // all forwards of the loss stage task.stage are done
    kStageGradients,  // all weight gradients of task.stage are in
    kStepComplete,    // every task of this rank is done; a rank without tasks never says so
  };

  Kind kind = Kind::kIdle;
  Direction direction = Direction::kForward;
  IdleReason reason = IdleReason::kInput;
  EdgeId edge;
  MicrobatchId microbatch;
  RankId peer;
  Task task;
  int64_t duration_ns = 0;
  int64_t until_ns = 0;
};

}  // namespace rrfp::core
