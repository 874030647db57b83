// SPDX-License-Identifier: Apache-2.0
//
// What each rank did in the last steps, and when. Recording writes to memory that is there already;
// a file is made only when asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/core/ids.h"

namespace rrfp::trace {

enum class SpanKind : uint8_t { kForward, kBackward, kInputGradient, kWeightGradient, kUpdate };

struct Span {
  SpanKind kind = SpanKind::kForward;
  core::StageId stage;            // invalid for kUpdate
  core::MicrobatchId microbatch;  // in the step; invalid for kUpdate
  int64_t step = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

/// The spans of one rank, the oldest steps dropped.
class RankTimeline {
 public:
  explicit RankTimeline(int32_t steps_max) : steps_(static_cast<size_t>(steps_max)) {}

  [[nodiscard]] bool enabled() const { return !steps_.empty(); }
  void begin_step() {
    if (!enabled()) return;
    current_ = (current_ + 1) % steps_.size();
    steps_[current_].clear();
  }
  void add(const Span& span) {
    if (enabled()) steps_[current_].push_back(span);
  }
  /// All spans, oldest step first.
  [[nodiscard]] std::vector<Span> spans() const;

 private:
  std::vector<std::vector<Span>> steps_;  // a ring; its vectors keep their memory
  size_t current_ = 0;
};

/// In the trace event format (JSON) that Perfetto and chrome://tracing read: one track per rank,
/// one complete event per span, times in microseconds from the first.
[[nodiscard]] std::string to_trace_events(const std::vector<RankTimeline>& ranks);

}  // namespace rrfp::trace
