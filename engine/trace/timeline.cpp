// SPDX-License-Identifier: Apache-2.0
#include "engine/trace/timeline.h"

#include <algorithm>
#include <limits>
#include <map>

namespace rrfp::trace {

namespace {

template <class Spans>
void widen(const Spans& spans, int64_t& begin_ns, int64_t& end_ns) {
  for (const auto& span : spans) {
    begin_ns = std::min(begin_ns, span.begin_ns);
    end_ns = std::max(end_ns, span.end_ns);
  }
}

/// Finds which stages are of which branch.
void name_branches(const Timeline& timeline, Totals& totals) {
  std::map<std::string, int32_t> numbers;
  totals.stages.resize(timeline.stages.size());
  for (size_t s = 0; s < timeline.stages.size(); ++s) {
    const std::string& name = timeline.stages[s].branch;
    if (name.empty()) continue;
    const auto [at, added] = numbers.emplace(name, static_cast<int32_t>(totals.branches.size()));
    if (added) totals.branches.emplace_back().name = name;
    totals.stages[s].branch = at->second;
  }
}

void add_to_stage(const TaskSpan& span, Totals& totals) {
  if (!span.stage.valid() || span.stage.index() >= totals.stages.size()) return;
  StageTotals& stage = totals.stages[span.stage.index()];
  stage.add(span);
  if (stage.branch != kNoBranch) totals.branches[static_cast<size_t>(stage.branch)].add(span);
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
  name_branches(timeline, totals);
  double computing_ns = 0;
  for (const RankSpans& rank : timeline.ranks) {
    RankTotals sums;
    int64_t rest_ns = totals.makespan_ns();
    for (const TaskSpan& span : rank.tasks) {
      sums.add(span);
      add_to_stage(span, totals);
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
  for (BranchTotals& branch : totals.branches) {
    if (computing_ns > 0) branch.share = static_cast<double>(branch.computing_ns) / computing_ns;
  }
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

char letter_of(int32_t branch) {
  return branch < kBranchLetters ? static_cast<char>('A' + branch) : '+';
}

std::string task_name(const TaskSpan& span) {
  if (span.kind == SpanKind::kUpdate) return "update";
  return to_string(core::Task{span.stage, span.microbatch, static_cast<core::TaskKind>(span.kind)});
}

}  // namespace rrfp::trace
