// SPDX-License-Identifier: Apache-2.0
#include "engine/trace/timeline.h"

#include <algorithm>
#include <limits>

namespace rrfp::trace {

namespace {

template <class Spans>
void widen(const Spans& spans, int64_t& begin_ns, int64_t& end_ns) {
  for (const auto& span : spans) {
    begin_ns = std::min(begin_ns, span.begin_ns);
    end_ns = std::max(end_ns, span.end_ns);
  }
}

}  // namespace

Totals summarize(const Timeline& timeline) {
  Totals totals;
  totals.begin_ns = std::numeric_limits<int64_t>::max();
  totals.end_ns = std::numeric_limits<int64_t>::min();
  for (const RankSpans& rank : timeline.ranks) {
    widen(rank.tasks, totals.begin_ns, totals.end_ns);
    widen(rank.idles, totals.begin_ns, totals.end_ns);
  }
  if (totals.begin_ns > totals.end_ns) totals.begin_ns = totals.end_ns = 0;
  double computing_ns = 0;
  for (const RankSpans& rank : timeline.ranks) {
    RankTotals sums;
    sums.tasks = rank.tasks.size();
    int64_t rest_ns = totals.makespan_ns();
    for (const TaskSpan& span : rank.tasks) {
      sums.task_ns[static_cast<size_t>(span.kind)] += span.end_ns - span.begin_ns;
      sums.computing_ns += span.end_ns - span.begin_ns;
    }
    for (const IdleSpan& span : rank.idles) {
      sums.idle_ns[static_cast<size_t>(span.reason)] += span.end_ns - span.begin_ns;
      rest_ns -= span.end_ns - span.begin_ns;
    }
    // Only a file that others wrote can have spans that overlap.
    sums.engine_ns = std::max<int64_t>(0, rest_ns - sums.computing_ns);
    computing_ns += static_cast<double>(sums.computing_ns);
    totals.ranks.push_back(sums);
  }
  const double available_ns =
      static_cast<double>(totals.makespan_ns()) * static_cast<double>(timeline.ranks.size());
  if (available_ns > 0) totals.idle_share = std::max(0.0, 1 - computing_ns / available_ns);
  return totals;
}

const char* name_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::kForward: return "forward";
    case SpanKind::kBackward: return "backward";
    case SpanKind::kInputGradient: return "input gradient";
    case SpanKind::kWeightGradient: return "weight gradient";
    case SpanKind::kUpdate: return "update";
  }
  return "";
}

const char* name_of(IdleKind kind) {
  switch (kind) {
    case IdleKind::kInput: return "input";
    case IdleKind::kMemory: return "memory";
    case IdleKind::kCredit: return "credit";
    case IdleKind::kPolicy: return "policy";
    case IdleKind::kGroup: return "group";
    case IdleKind::kComplete: return "complete";
  }
  return "";
}

const char* text_of(IdleKind kind) {
  switch (kind) {
    case IdleKind::kInput: return "nothing ready";
    case IdleKind::kMemory: return "held by memory";
    case IdleKind::kCredit: return "held by credit";
    case IdleKind::kPolicy: return "held by policy";
    case IdleKind::kGroup: return "waiting for the group";
    case IdleKind::kComplete: return "part of the step done";
  }
  return "";
}

std::string task_name(const TaskSpan& span) {
  if (span.kind == SpanKind::kUpdate) return "update";
  return to_string(core::Task{span.stage, span.microbatch, static_cast<core::TaskKind>(span.kind)});
}

}  // namespace rrfp::trace
