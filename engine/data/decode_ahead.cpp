// SPDX-License-Identifier: Apache-2.0
#include "engine/data/decode_ahead.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

namespace rrfp::data {

using core::Code;
using core::Status;

DecodeAhead::DecodeAhead(Work work, size_t samples_max, size_t bytes_max)
    : work_(std::move(work)), samples_max_(samples_max), bytes_max_(bytes_max) {}

DecodeAhead::~DecodeAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

DecodeAhead::Stats DecodeAhead::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void DecodeAhead::seek(Split split, uint64_t position) {
  {
    const std::lock_guard lock(mutex_);
    const bool goes_on = started_ && split == split_ && distance(position) <= distance(next_);
    if (goes_on) {
      forget_before(position);
    } else {
      decoded_.clear();
      // What an old plan still decodes stays counted until it is done.
      bytes_ = decoding_bytes_;
      decoding_ = false;
      split_ = split;
      next_ = position;
      ++plan_;
    }
    begin_ = position;
  }
  changed_.notify_all();
  if (started_) return;
  started_ = true;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    // No thread to be had: the reader decodes everything.
  }
}

void DecodeAhead::forget_before(uint64_t position) {
  for (auto at = decoded_.begin(); at != decoded_.end();) {
    if (distance(at->first) >= distance(position)) {
      ++at;
      continue;
    }
    bytes_ -= at->second.bytes;
    at = decoded_.erase(at);
  }
}

Status DecodeAhead::read(uint64_t position, std::span<float> out) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !decoding_ || decoding_at_ != position; });
  const auto at = decoded_.find(position);
  if (at == decoded_.end()) {
    // The thread must not begin with it, too.
    if (distance(position) >= distance(next_)) next_ = position + 1;
    const Split split = split_;
    lock.unlock();
    return work_.decode(split, position, out);
  }
  const Decoded taken = std::move(at->second);
  decoded_.erase(at);
  bytes_ -= taken.bytes;
  ++stats_.used;
  lock.unlock();
  changed_.notify_all();
  if (!taken.status.ok()) return taken.status;
  assert(taken.numbers.size() == out.size());
  std::copy(taken.numbers.begin(), taken.numbers.end(), out.begin());
  return {};
}

bool DecodeAhead::has_room(size_t bytes) const {
  return decoded_.empty() || (decoded_.size() < samples_max_ && bytes_ + bytes <= bytes_max_);
}

void DecodeAhead::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    size_t size = 0;
    changed_.wait(lock, [&] {
      if (stop_) return true;
      size = work_.size(split_, next_);
      return has_room(size * sizeof(float));
    });
    if (stop_) return;
    decode_next(lock, size);
  }
}

void DecodeAhead::decode_next(std::unique_lock<std::mutex>& lock, size_t size) {
  const Split split = split_;
  const uint64_t position = next_++;
  const uint64_t plan = plan_;
  const size_t bytes = size * sizeof(float);
  decoding_ = true;
  decoding_at_ = position;
  decoding_bytes_ = bytes;
  bytes_ += bytes;
  stats_.bytes_peak = std::max(stats_.bytes_peak, bytes_);
  stats_.samples_peak = std::max(stats_.samples_peak, decoded_.size() + 1);
  lock.unlock();
  Decoded done = decode(split, position, size);
  done.bytes = bytes;
  lock.lock();
  decoding_bytes_ = 0;
  if (plan == plan_) decoding_ = false;
  // Unless the reader has left it behind, with a new plan or by going on past it.
  if (plan == plan_ && distance(position) < distance(next_)) {
    keep(position, std::move(done));
  } else {
    bytes_ -= bytes;
  }
  changed_.notify_all();
}

void DecodeAhead::keep(uint64_t position, Decoded&& done) {
  const size_t bytes = done.bytes;
  try {
    decoded_.emplace(position, std::move(done));
  } catch (const std::bad_alloc&) {
    bytes_ -= bytes;  // the reader will decode it again
  }
}

DecodeAhead::Decoded DecodeAhead::decode(Split split, uint64_t position, size_t size) const {
  Decoded done;
  try {
    done.numbers.resize(size);
    done.status = work_.decode(split, position, done.numbers);
  } catch (const std::bad_alloc&) {
    done.status = Status(Code::kNoMemory, "out of memory");
  } catch (const std::exception& e) {
    done.status = Status(Code::kInternal, e.what());
  }
  // An error is told to who reads this sample.
  if (!done.status.ok()) done.numbers = {};
  return done;
}

}  // namespace rrfp::data
