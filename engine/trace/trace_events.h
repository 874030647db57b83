// SPDX-License-Identifier: Apache-2.0
//
// A timeline as a file in the trace event format (JSON) that Perfetto and chrome://tracing open,
// and back. The same format holds real runs and simulations:
//
//   {"displayTimeUnit": "ms",
//    "otherData": {"format": "rrfp-trace", "version": 1, "title": ..., "source": "run",
//                  "ranks": 4, "facts": [["hint", "1f1b"], ...],
//                  "stages": [[name, branch], ...]},
//    "traceEvents": [ one event a line ]}
//
//   a task     ph X, cat "forward", "backward", "input gradient", "weight gradient" or "update",
//              tid the rank, ts and dur, args {step, stage, microbatch, ready_us};
//              if there are several branches also branch, for viewers: readers know it by the stage
//   idle time  ph X, cat "idle", the same tid, args {step, reason}
//   a message  a flow, ph s and f, cat "message": an arrow from the task that made it to the task
//              that took it. The viewers drop arrows that do not begin and end within a task, so
//              the true times stand in the args of ph s, with ranks, stages, microbatch and step.
//
// Times are microseconds with three decimals, from the first time of the timeline on, so that no
// nanosecond is lost. The names of stages may be missing. Readers ignore events and fields that
// they do not know.
#pragma once

#include <string>
#include <string_view>

#include "engine/core/status.h"
#include "engine/trace/timeline.h"

namespace rrfp::trace {

// What a reader takes in, whatever the file says.
constexpr size_t kTraceBytesMax = size_t{1} << 30;
constexpr size_t kTraceEventsMax = 8'000'000;
constexpr int64_t kTraceRanksMax = 65'536;
constexpr size_t kTraceFactsMax = 1000;
constexpr size_t kTraceTextBytesMax = size_t{1} << 20;  // of the title, of a fact
constexpr size_t kTraceStagesMax = size_t{1} << 20;
constexpr size_t kTraceNameBytesMax = 4096;  // of a stage, of a branch
// 26 days; beyond, a double of microseconds would lose nanoseconds.
constexpr int64_t kTraceTimeMaxNs = int64_t{1} << 51;
// 36 years of all ranks together, so that no sum of durations overflows.
constexpr int64_t kTraceTotalMaxNs = int64_t{1} << 60;

/// Bytes that are not UTF-8, in the title and the like, are replaced.
[[nodiscard]] std::string to_trace_events(const Timeline& timeline);

/// Fails with kBadData, and a text that names `path` and says what is wrong and in which event;
/// `out` is then unchanged. `path` is for the errors only. Reading what was written gives the same
/// timeline, moved to begin at 0.
core::Status parse_trace_events(const std::string& path, std::string_view text, Timeline& out);

}  // namespace rrfp::trace
