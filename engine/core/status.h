// SPDX-License-Identifier: Apache-2.0
//
// The result of an operation that can fail: a code and, when it failed, a text that names the value
// that was wrong and what was expected. The codes are those of the C ABI (rrfp/rrfp.h).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "engine/core/ids.h"

namespace rrfp::core {

enum class Code : int32_t {
  kOk = 0,
  kAgain = 1,     // nothing to hand out before the time-out
  kStepDone = 2,  // every task of this rank is done
  kAbsent = 3,    // this microbatch has no message on that edge

  kInvalidArgument = -100,
  kNullHandle = -101,
  kBadStructSize = -102,
  kOutOfRange = -103,
  kUnknownName = -104,
  kSyntax = -105,
  kCycle = -106,
  kUnplacedStage = -107,
  kCapTooSmall = -108,
  kBadOrder = -109,  // a list that misses or repeats tasks, or that can never progress
  kTensorMismatch = -110,

  kNoMemory = -200,
  kIo = -201,       // a file cannot be read or written
  kBadData = -202,  // a file is not what it should be

  kHeaderMismatch = -300,  // ranks disagree about the step

  kStageFailed = -400,  // the caller's stage code reported a failure
  kNonFinite = -401,    // a loss or gradient is infinite or not a number, and the policy is to stop

  kBadState = -500,  // the call does not fit what the handle is doing
  kBusy = -501,      // another thread is inside a call on this handle
  kTimeout = -502,
  kCancelled = -503,
  kClosed = -504,
  kForked = -505,  // the handle belongs to the parent of this process
  kInternal = -599,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string text) : code_(code), text_(std::move(text)) {}
  // A plain code, for the results that need no text (kAgain, kStepDone, kAbsent).
  Status(Code code) : code_(code) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return code_ == Code::kOk; }
  [[nodiscard]] bool failed() const { return static_cast<int32_t>(code_) < 0; }
  [[nodiscard]] Code code() const { return code_; }
  [[nodiscard]] const std::string& text() const { return text_; }

  /// Says where it happened.
  Status&& at(RankId rank, const Task& task = {}) && {
    rank_ = rank;
    task_ = task;
    return std::move(*this);
  }
  /// The rank concerned; invalid if none is.
  [[nodiscard]] RankId rank() const { return rank_; }
  /// The task concerned; its stage is invalid if none is.
  [[nodiscard]] const Task& task() const { return task_; }

  /// The caller's own code, for kStageFailed.
  [[nodiscard]] int32_t user_code() const { return user_code_; }
  Status&& with_user_code(int32_t code) && {
    user_code_ = code;
    return std::move(*this);
  }

 private:
  Code code_ = Code::kOk;
  std::string text_;
  RankId rank_;
  Task task_;
  int32_t user_code_ = 0;
};

}  // namespace rrfp::core
