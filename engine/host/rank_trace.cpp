// SPDX-License-Identifier: Apache-2.0
//
// What a rank records while a step runs. It costs nothing but a test where nobody asked for it.
#include "engine/comm/clock.h"
#include "engine/host/pipeline.h"
#include "engine/host/rank_host.h"

namespace rrfp::host {

void RankHost::begin_trace() {
  const StepRequest::Trace& trace = request_.trace;
  tracing_ = timeline_.enabled() && trace.record;
  if (!tracing_) return;
  traced_step_ = trace.step < 0 ? request_.step : trace.step;
  if (!trace.joins) timeline_.begin_step();
  // All that the step can need, and what its owner adds.
  constexpr size_t kOthers = 8;
  const auto tasks = static_cast<size_t>(plan_->work_count) + kOthers;
  timeline_.reserve(tasks, 2 * tasks, 2 * plan_->needs.size() * plan_->edges.size());
}

core::MicrobatchId RankHost::traced(core::MicrobatchId i) const {
  const int32_t* const numbers = request_.trace.microbatches;
  return numbers == nullptr ? i : core::MicrobatchId(numbers[i.index()]);
}

void RankHost::trace_task(int64_t now_ns) {
  timeline_.add_task({.kind = trace::span_kind(task_.kind),
                      .stage = task_.stage,
                      .microbatch = traced(task_.microbatch),
                      .step = traced_step_,
                      .ready_ns = ready_ns_,
                      .begin_ns = running_since_ns_,
                      .end_ns = now_ns});
}

void RankHost::trace_message(const comm::Message& message) {
  const core::Edge& edge = pipeline_.graph().edge(message.edge);
  const bool forward = message.direction == core::Direction::kForward;
  timeline_.add_message({.direction = message.direction,
                         .from_stage = forward ? edge.from : edge.to,
                         .to_stage = forward ? edge.to : edge.from,
                         .microbatch = traced(message.microbatch),
                         .from_rank = message.from,
                         .to_rank = rank_,
                         .step = traced_step_,
                         .sent_ns = message.data.sent_ns,
                         .arrived_ns = comm::now_ns()});
}

}  // namespace rrfp::host
