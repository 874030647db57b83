// SPDX-License-Identifier: Apache-2.0
//
// What is going to happen on the virtual clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/core/event.h"

namespace rrfp::sim {

struct Happening {
  enum class Kind : uint8_t {
    kEvent,    // for the core
    kWake,     // ask the rank again
    kArrival,  // of a paired message: also frees its sender
    kFail,     // the rank dies
  };

  core::Event event;
  core::RankId rank;
  core::RankId from;
  Kind kind = Kind::kEvent;
};

/// What is going to happen, the earliest first; at equal times, what was put in first. The heap
/// moves small entries; what happens stays where it was put.
class Agenda {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] int64_t time_ns() const { return heap_.front().time_ns; }

  void push(int64_t time_ns, const Happening& happening) {
    auto slot = static_cast<uint32_t>(slots_.size());
    if (free_.empty()) {
      slots_.push_back(happening);
    } else {
      slot = free_.back();
      free_.pop_back();
      slots_[slot] = happening;
    }
    heap_.push_back({time_ns, serial_++, slot});
    std::push_heap(heap_.begin(), heap_.end());
  }

  Happening pop() {
    std::pop_heap(heap_.begin(), heap_.end());
    const uint32_t slot = heap_.back().slot;
    heap_.pop_back();
    free_.push_back(slot);
    return slots_[slot];
  }

 private:
  struct Entry {
    int64_t time_ns;
    uint64_t serial;
    uint32_t slot;

    bool operator<(const Entry& o) const {  // for a heap whose top is the earliest
      return time_ns != o.time_ns ? time_ns > o.time_ns : serial > o.serial;
    }
  };
  std::vector<Entry> heap_;
  std::vector<Happening> slots_;
  std::vector<uint32_t> free_;
  uint64_t serial_ = 0;
};

}  // namespace rrfp::sim
