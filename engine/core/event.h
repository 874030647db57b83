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
    kReceiving,   // the receiver of (edge, direction, microbatch) asks for it; paired order only
    kOffloaded,   // the copy that kOffload began has ended
    kLoaded,      // the copy that kLoad began has ended
    kPeerFailed,  // the step has failed elsewhere
  };

  Kind kind = Kind::kPull;
  Direction direction = Direction::kForward;
  EdgeId edge;
  MicrobatchId microbatch;
  int64_t duration_ns = 0;
  bool late = false;  // kMessage: the sender has given up strict order

  [[nodiscard]] static Event pull() { return {}; }
  [[nodiscard]] static Event task_done() { return of(Kind::kTaskDone); }
  [[nodiscard]] static Event message(EdgeId edge, Direction direction, MicrobatchId i,
                                     bool late = false) {
    return {Kind::kMessage, direction, edge, i, 0, late};
  }
  [[nodiscard]] static Event receiving(EdgeId edge, Direction direction, MicrobatchId i) {
    return {Kind::kReceiving, direction, edge, i, 0, false};
  }
  [[nodiscard]] static Event offloaded() { return of(Kind::kOffloaded); }
  [[nodiscard]] static Event loaded() { return of(Kind::kLoaded); }
  [[nodiscard]] static Event credit(EdgeId edge) {
    return {Kind::kCredit, Direction::kForward, edge, {}, 0, false};
  }
  [[nodiscard]] static Event announce(EdgeId edge, Direction direction, MicrobatchId i,
                                      int64_t duration_ns) {
    return {Kind::kAnnounce, direction, edge, i, duration_ns, false};
  }
  [[nodiscard]] static Event peer_failed() { return of(Kind::kPeerFailed); }

 private:
  [[nodiscard]] static Event of(Kind kind) { return {kind, Direction::kForward, {}, {}, 0, false}; }
};

/// Why a rank that asked for a task got none.
enum class IdleReason : uint8_t {
  kInput,     // nothing is ready: inputs are missing
  kMemory,    // a forward is ready, but the cap does not admit it
  kCredit,    // a forward is ready, but too many of its messages wait at the consumer
  kPolicy,    // a task is ready, but strict order, a paired send or a hold forbids it
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
    kReceive,         // tell `peer` that (edge, direction, microbatch) is asked for
    kOffload,         // begin to copy what `task` (a forward) has kept to the host, in duration_ns
    kLoad,            // begin to copy it back, in duration_ns
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
  int64_t ready_ns = 0;  // kRun: when the task became ready, if Policy::record_ready
  bool late = false;     // kSend: this rank has given up strict order
};

}  // namespace rrfp::core
