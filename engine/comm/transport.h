// SPDX-License-Identifier: Apache-2.0
//
// Point-to-point transport as one rank sees it. Messages of one pair of ranks keep their order;
// nothing else about order is promised. All members belong to the rank's owner unless marked.
#pragma once

#include <cstdint>

#include "engine/comm/message.h"
#include "engine/core/status.h"

namespace rrfp::comm {

class Transport {
 public:
  static constexpr int64_t kForever = INT64_MAX;

  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  /// Hands a message over, or returns false if there is no room now. Never blocks. On success the
  /// receiver owns the payload.
  [[nodiscard]] virtual bool try_send(core::RankId to, const Message& message) = 0;
  /// The next message that has arrived, if any.
  [[nodiscard]] virtual bool poll(Message& out) = 0;
  /// True if nothing that was sent to this rank so far is still to be polled.
  [[nodiscard]] virtual bool quiet() const = 0;
  /// Returns when a message may be there, when woken, when the step has failed, or at the deadline
  /// (clock.h), whichever comes first.
  virtual void wait(int64_t deadline_ns) = 0;
  /// Ends the current or the next wait. Any thread.
  virtual void wake() = 0;

  /// Makes the step fail on every rank; the first failure counts. Any thread.
  virtual void raise(const core::Status& failure) = 0;
  /// True once a failure has been raised anywhere. Any thread.
  [[nodiscard]] virtual bool failed() const = 0;
  /// The failure, or ok. Any thread.
  [[nodiscard]] virtual core::Status failure() const = 0;
};

}  // namespace rrfp::comm
