// SPDX-License-Identifier: Apache-2.0
#include "engine/trace/timeline.h"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace rrfp::trace {

namespace {

constexpr double kNsPerUs = 1000.0;

const char* category(SpanKind kind) {
  switch (kind) {
    case SpanKind::kForward: return "forward";
    case SpanKind::kBackward: return "backward";
    case SpanKind::kInputGradient: return "input gradient";
    case SpanKind::kWeightGradient: return "weight gradient";
    case SpanKind::kUpdate: return "update";
  }
  return "";
}

std::string name_of(const Span& span) {
  if (span.kind == SpanKind::kUpdate) return "update";
  const auto kind = static_cast<core::TaskKind>(span.kind);
  return std::to_string(span.stage.value) + core::letter(kind) +
         std::to_string(span.microbatch.value);
}

void append_span(const Span& span, size_t rank, int64_t origin_ns, std::string& out) {
  char times[96];
  std::snprintf(times, sizeof times, R"("ts":%.3f,"dur":%.3f)",
                static_cast<double>(span.begin_ns - origin_ns) / kNsPerUs,
                static_cast<double>(span.end_ns - span.begin_ns) / kNsPerUs);
  out += R"({"ph":"X","pid":0,"tid":)" + std::to_string(rank) + R"(,"name":")" + name_of(span) +
         R"(","cat":")" + category(span.kind) + "\"," + times + R"(,"args":{"step":)" +
         std::to_string(span.step);
  if (span.stage.valid()) {
    out += ",\"stage\":" + std::to_string(span.stage.value) +
           ",\"microbatch\":" + std::to_string(span.microbatch.value);
  }
  out += "}}";
}

}  // namespace

std::vector<Span> RankTimeline::spans() const {
  std::vector<Span> all;
  for (size_t k = 1; k <= steps_.size(); ++k) {
    const std::vector<Span>& step = steps_[(current_ + k) % steps_.size()];
    all.insert(all.end(), step.begin(), step.end());
  }
  return all;
}

std::string to_trace_events(const std::vector<RankTimeline>& ranks) {
  int64_t origin_ns = std::numeric_limits<int64_t>::max();
  std::vector<std::vector<Span>> spans;
  for (const RankTimeline& rank : ranks) {
    spans.push_back(rank.spans());
    for (const Span& span : spans.back()) origin_ns = std::min(origin_ns, span.begin_ns);
  }
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  out += R"({"ph":"M","pid":0,"name":"process_name","args":{"name":"rrfp"}})";
  for (size_t r = 0; r < ranks.size(); ++r) {
    out += ",\n{\"ph\":\"M\",\"pid\":0,\"tid\":" + std::to_string(r) +
           R"(,"name":"thread_name","args":{"name":"rank )" + std::to_string(r) + "\"}}";
    for (const Span& span : spans[r]) {
      out += ",\n";
      append_span(span, r, origin_ns, out);
    }
  }
  return out + "\n]}\n";
}

}  // namespace rrfp::trace
