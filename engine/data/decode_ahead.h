// SPDX-License-Identifier: Apache-2.0
//
// Decodes the samples that will be asked for next, on a thread of its own. What it gives out is
// what decoding in place would: only the time is another. Its memory is bounded by a number of
// samples and a number of bytes.
//
// The plan is a run of positions of one split: those from next_ on are still to be decoded. Each is
// decoded once, by the thread or by the reader, whoever comes first. A reader that goes elsewhere
// makes a new plan.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "engine/core/status.h"
#include "engine/data/split.h"

namespace rrfp::data {

/// Of decoded pictures that wait; a single sample may have more.
constexpr size_t kAheadBytesMax = size_t{256} << 20;

class DecodeAhead {
 public:
  struct Work {
    /// Numbers that the sample at a position has. Any thread.
    std::function<size_t(Split split, uint64_t position)> size;
    /// Writes them. Any thread.
    std::function<core::Status(Split split, uint64_t position, std::span<float> out)> decode;
  };
  struct Stats {
    size_t bytes_peak = 0;    // of samples that waited or were being decoded ahead
    size_t samples_peak = 0;  // the same in samples
    uint64_t used = 0;        // samples that were decoded ahead and then read
  };

  DecodeAhead(Work work, size_t samples_max, size_t bytes_max);
  /// Waits until the sample that is being decoded is done.
  ~DecodeAhead();
  DecodeAhead(const DecodeAhead&) = delete;
  DecodeAhead& operator=(const DecodeAhead&) = delete;

  /// The reader wants this position next, and those that follow. Starts the thread. One thread.
  void seek(Split split, uint64_t position);
  /// Writes the numbers of a sample at or behind the position of seek(). One thread.
  core::Status read(uint64_t position, std::span<float> out);

  [[nodiscard]] Stats stats() const;

 private:
  struct Decoded {
    core::Status status;
    std::vector<float> numbers;
    size_t bytes = 0;  // counted for it
  };

  // With the lock held.
  [[nodiscard]] uint64_t distance(uint64_t position) const { return position - begin_; }
  [[nodiscard]] bool has_room(size_t bytes) const;
  void forget_before(uint64_t position);

  void run();
  void decode_next(std::unique_lock<std::mutex>& lock, size_t size);
  void keep(uint64_t position, Decoded&& done);
  Decoded decode(Split split, uint64_t position, size_t size) const;

  const Work work_;
  const size_t samples_max_;
  const size_t bytes_max_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  Split split_ = Split::kTrain;
  // Positions wrap, so they are compared by their distances from begin_.
  uint64_t begin_ = 0;
  uint64_t next_ = 0;
  uint64_t plan_ = 0;                    // counts plans, so that the thread sees a new one
  std::map<uint64_t, Decoded> decoded_;  // by position
  bool decoding_ = false;                // for this plan, at decoding_at_
  uint64_t decoding_at_ = 0;
  size_t decoding_bytes_ = 0;  // of what is being decoded, even if for an old plan
  size_t bytes_ = 0;           // of this and of decoded_
  Stats stats_;

  bool started_ = false;  // for the reader only
  std::thread thread_;
};

}  // namespace rrfp::data
