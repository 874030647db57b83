// SPDX-License-Identifier: Apache-2.0
#include "engine/comm/inproc/mailbox.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>

#include "engine/comm/clock.h"

namespace rrfp::comm {
namespace {

static_assert(sizeof(Message) <= 56, "a mailbox cell is one cache line");

constexpr int kLooksPerClock = 64;      // reading the clock costs as much as a look
constexpr int kLooksPerYield = 4096;    // spinning: about 80 us
constexpr int kLooksBeforePark = 2000;  // about 40 us: longer than most gaps between tasks

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Mailbox::Mailbox(uint32_t capacity, WakePolicy policy)
    : mask_(std::bit_ceil(std::max<uint64_t>(capacity, 2)) - 1),
      policy_(policy),
      cells_(new Cell[mask_ + 1]) {
  for (uint64_t k = 0; k <= mask_; ++k) cells_[k].sequence.store(k, std::memory_order_relaxed);
}

bool Mailbox::try_push(const Message& message) {
  uint64_t ticket = tail_.load(std::memory_order_relaxed);
  Cell* cell = nullptr;
  for (;;) {
    cell = &cells_[ticket & mask_];
    const uint64_t sequence = cell->sequence.load(std::memory_order_acquire);
    if (sequence == ticket) {
      if (tail_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed)) break;
    } else if (sequence < ticket) {
      return false;  // still filled from one round ago
    } else {
      ticket = tail_.load(std::memory_order_relaxed);
    }
  }
  cell->message = message;
  cell->sequence.store(ticket + 1, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst)) notify();
  return true;
}

bool Mailbox::try_pop(Message& out) {
  Cell& cell = cells_[head_ & mask_];
  if (cell.sequence.load(std::memory_order_acquire) != head_ + 1) return false;
  out = cell.message;
  cell.sequence.store(head_ + mask_ + 1, std::memory_order_release);
  ++head_;
  return true;
}

bool Mailbox::pending() const {
  return cells_[head_ & mask_].sequence.load(std::memory_order_seq_cst) == head_ + 1;
}

bool Mailbox::take_wake() {
  return woken_.load(std::memory_order_seq_cst) &&
         woken_.exchange(false, std::memory_order_seq_cst);
}

void Mailbox::wait(int64_t deadline_ns) {
  for (int64_t look = 1;; ++look) {
    if (pending() || take_wake()) return;
    if (look % kLooksPerClock == 0 && now_ns() >= deadline_ns) return;
    switch (policy_) {
      case WakePolicy::kYield: std::this_thread::yield(); break;
      case WakePolicy::kSpin:
        // Whoever is awaited may need this very core; a yield now and then costs the spinner
        // nothing and saves the two from waiting out the scheduler's time slices.
        if (look % kLooksPerYield == 0) std::this_thread::yield();
        relax();
        break;
      case WakePolicy::kPark:
        if (look < kLooksBeforePark) {
          relax();
          break;
        }
        return park(deadline_ns);
    }
  }
}

void Mailbox::park(int64_t deadline_ns) {
  std::unique_lock lock(mutex_);
  parked_.store(true, std::memory_order_seq_cst);
  // A wait for longer than this many hours would overflow the clock's arithmetic; ending it early
  // is harmless, for the caller looks again.
  const int64_t latest_ns = now_ns() + int64_t{3600} * 1'000'000'000;
  const auto deadline = std::chrono::steady_clock::time_point(
      std::chrono::nanoseconds(std::min(deadline_ns, latest_ns)));
  sleep_.wait_until(lock, deadline, [&] { return pending() || take_wake(); });
  parked_.store(false, std::memory_order_seq_cst);
}

void Mailbox::notify() {
  // Taking the lock makes sure that a receiver between its last look and its sleep is not missed.
  { const std::lock_guard lock(mutex_); }
  sleep_.notify_one();
}

void Mailbox::wake() {
  woken_.store(true, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst)) notify();
}

}  // namespace rrfp::comm
