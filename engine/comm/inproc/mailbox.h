// SPDX-License-Identifier: Apache-2.0
//
// The mailbox of one rank: a bounded queue with many senders and one receiver, without locks on the
// way of a message, and a way for the receiver to sleep.
//
// The queue is Vyukov's bounded queue: each cell carries a sequence number that says whether it is
// free for the sender that took ticket t (sequence == t) or filled for the receiver (t + 1).
// Sleeping is Dekker's pattern: the receiver says "parked" and then looks once more; a sender fills
// its cell and then looks at "parked". All four steps are sequentially consistent, so at least one
// of the two sees the other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "engine/comm/message.h"

namespace rrfp::comm {

/// How a rank waits. Values as in the C ABI.
enum class WakePolicy : int32_t {
  kYield = 0,  // give the core away between looks; best when threads share cores
  kSpin = 1,   // look all the time; lowest latency, burns a core
  kPark = 2,   // look for a short while, then sleep until woken
};

class Mailbox {
 public:
  /// `capacity` is rounded up to a power of two.
  Mailbox(uint32_t capacity, WakePolicy policy);

  /// False if full. Any thread.
  [[nodiscard]] bool try_push(const Message& message);
  /// False if empty. Receiver only.
  [[nodiscard]] bool try_pop(Message& out);
  /// True if no sender has begun to push something that has not been popped. Receiver only.
  [[nodiscard]] bool quiet() const { return tail_.load(std::memory_order_seq_cst) == head_; }
  /// Until a message is there, wake() was called, or the deadline has passed. Receiver only.
  void wait(int64_t deadline_ns);
  /// Any thread.
  void wake();

 private:
  struct alignas(64) Cell {
    std::atomic<uint64_t> sequence;
    Message message;
  };

  [[nodiscard]] bool pending() const;
  [[nodiscard]] bool take_wake();
  void park(int64_t deadline_ns);
  void notify();

  uint64_t mask_;
  WakePolicy policy_;
  std::unique_ptr<Cell[]> cells_;
  alignas(64) std::atomic<uint64_t> tail_{0};  // next ticket of a sender
  alignas(64) uint64_t head_ = 0;              // next ticket of the receiver
  alignas(64) std::atomic<bool> parked_{false};
  std::atomic<bool> woken_{false};
  std::mutex mutex_;
  std::condition_variable sleep_;
};

}  // namespace rrfp::comm
