// SPDX-License-Identifier: Apache-2.0
#include "engine/sim/traced.h"

#include <algorithm>
#include <map>

#include "engine/sim/layout.h"

namespace rrfp::sim {

using core::Code;
using core::MicrobatchId;
using core::RankId;
using core::StageId;
using core::Status;
using core::Task;
using core::TaskKind;

namespace {

Status bad(const std::string& what) {
  return {Code::kBadData, "the timeline cannot be simulated: " + what};
}

/// Collects what the spans of a timeline say.
class Reader {
 public:
  Status read(const trace::Timeline& timeline, Traced& out) {
    for (size_t r = 0; r < timeline.ranks.size(); ++r) {
      for (const trace::TaskSpan& span : timeline.ranks[r].tasks) {
        if (span.kind == trace::SpanKind::kUpdate) continue;
        if (Status s = add_task(RankId::of(r), span); !s.ok()) return s;
      }
      for (const trace::Message& message : timeline.ranks[r].messages) {
        if (Status s = add_message(message); !s.ok()) return s;
      }
    }
    if (steps_.empty()) return bad("it has no tasks");
    if (Status s = check_message_time(); !s.ok()) return s;
    Traced made;
    made.microbatches = microbatches_;
    if (Status s = fill_steps(made); !s.ok()) return s;
    if (Status s = make_graph(static_cast<int32_t>(timeline.ranks.size()), made); !s.ok()) return s;
    if (message_ns_ != kNoMessage) made.message_ns = message_ns_;
    out = std::move(made);
    return {};
  }

 private:
  Status add_task(RankId rank, const trace::TaskSpan& span) {
    if (span.stage.value >= core::StageGraph::kStagesMax ||
        span.microbatch.value >= core::StepTasks::kMicrobatchesMax) {
      return bad("stage " + std::to_string(span.stage.value) + ", microbatch " +
                 std::to_string(span.microbatch.value) + " is out of range");
    }
    const auto [owner, is_new] = owner_.emplace(span.stage, rank);
    if (!is_new && owner->second != rank) {
      return bad("stage " + std::to_string(span.stage.value) + " ran on ranks " +
                 std::to_string(owner->second.value) + " and " + std::to_string(rank.value));
    }
    const Task task = {span.stage, span.microbatch, static_cast<TaskKind>(span.kind)};
    if (!steps_[span.step].emplace(task, span.end_ns - span.begin_ns).second) {
      return bad(to_string(task) + " ran twice in step " + std::to_string(span.step));
    }
    microbatches_ = std::max(microbatches_, span.microbatch.value + 1);
    return {};
  }

  Status add_message(const trace::Message& message) {
    const bool forward = message.direction == core::Direction::kForward;
    const StageId from = forward ? message.from_stage : message.to_stage;
    const StageId to = forward ? message.to_stage : message.from_stage;
    if (to.value != from.value + 1) {
      return bad("stage " + std::to_string(from.value) + " feeds stage " +
                 std::to_string(to.value) + "; expected a chain");
    }
    // A rank notices a message when it looks, so the shortest time is nearest to the link's own.
    if (message.sent_ns == trace::kUnknownTime || message.arrived_ns < message.sent_ns) return {};
    message_ns_ = std::min(message_ns_, message.arrived_ns - message.sent_ns);
    return {};
  }

  /// Hundreds of thousands of them, one after another, must not overflow the clock.
  Status check_message_time() const {
    constexpr int64_t kMessageMaxNs = int64_t{1} << 40;  // 18 minutes
    if (message_ns_ == kNoMessage || message_ns_ <= kMessageMaxNs) return {};
    return bad("its fastest message took " + std::to_string(message_ns_ / 1'000'000) +
               " ms; expected at most " + std::to_string(kMessageMaxNs / 1'000'000) + " ms");
  }

  Status fill_steps(Traced& out) const {
    const auto stages = static_cast<int32_t>(owner_.size());
    for (const auto& [number, tasks] : steps_) {  // before memory is taken for all of them
      if (tasks.size() >= 2 * owner_.size() * static_cast<size_t>(microbatches_)) continue;
      return bad("step " + std::to_string(number) + " has " + std::to_string(tasks.size()) +
                 " tasks; expected a forward and a backward of " + std::to_string(stages) +
                 " stages and " + std::to_string(microbatches_) + " microbatches");
    }
    out.predicted = Durations(stages, microbatches_);
    for (const auto& [number, tasks] : steps_) {
      Durations durations(stages, microbatches_);
      for (int32_t s = 0; s < stages; ++s) {
        for (int32_t m = 0; m < microbatches_; ++m) {
          if (!add_pair(tasks, StageId(s), MicrobatchId(m), durations)) {
            return bad("step " + std::to_string(number) + " has no forward and backward of stage " +
                       std::to_string(s) + ", microbatch " + std::to_string(m));
          }
        }
      }
      out.steps.push_back(std::move(durations));
    }
    const auto count = static_cast<int64_t>(out.steps.size());
    for (int32_t s = 0; s < stages; ++s) {
      for (int32_t m = 0; m < microbatches_; ++m) {
        for (const TaskKind kind : kKinds) {
          const Task task = {StageId(s), MicrobatchId(m), kind};
          int64_t sum_ns = 0;
          for (const Durations& step : out.steps) sum_ns += step.ns(task);
          out.predicted.at(task) = sum_ns / count;
        }
      }
    }
    return {};
  }

  static bool add_pair(const std::map<Task, int64_t>& tasks, StageId s, MicrobatchId m,
                       Durations& out) {
    const auto add = [&](TaskKind kind) {
      const auto found = tasks.find({s, m, kind});
      if (found != tasks.end()) out.add(found->first, found->second);
      return found != tasks.end();
    };
    if (!add(TaskKind::kForward)) return false;
    if (add(TaskKind::kBackward)) return true;
    const bool input = add(TaskKind::kInputGradient);
    const bool weight = add(TaskKind::kWeightGradient);
    return input || weight;
  }

  Status make_graph(int32_t ranks, Traced& out) const {
    auto graph = std::make_shared<core::StageGraph>(ranks);
    int32_t next = 0;
    for (const auto& [stage, rank] : owner_) {
      if (stage.value != next) {
        return bad("stage " + std::to_string(next) + " has no tasks, but stage " +
                   std::to_string(stage.value) + " has");
      }
      core::Stage made;
      made.rank = rank;
      made.loss = ++next == static_cast<int32_t>(owner_.size());
      made.forward_ns = mean(out, stage, TaskKind::kForward);
      made.input_gradient_ns = mean(out, stage, TaskKind::kInputGradient);
      made.weight_gradient_ns = mean(out, stage, TaskKind::kWeightGradient);
      made.activation_bytes = static_cast<int64_t>(kBytesPerSize);
      StageId id;
      if (Status s = graph->add_stage(made, id); !s.ok()) return bad(s.text());
      core::EdgeId edge;
      if (id.value == 0) continue;
      if (Status s = graph->add_edge({StageId(id.value - 1), id, true}, edge); !s.ok()) return s;
    }
    if (Status s = graph->seal(); !s.ok()) return bad(s.text());
    out.graph = std::move(graph);
    return {};
  }

  static int64_t mean(const Traced& out, StageId stage, TaskKind kind) {
    int64_t sum_ns = 0;
    for (int32_t m = 0; m < out.microbatches; ++m) {
      sum_ns += out.predicted.ns({stage, MicrobatchId(m), kind});
    }
    return sum_ns / out.microbatches;
  }

  static constexpr TaskKind kKinds[] = {TaskKind::kForward, TaskKind::kInputGradient,
                                        TaskKind::kWeightGradient};

  std::map<StageId, RankId> owner_;
  std::map<int64_t, std::map<Task, int64_t>> steps_;
  int32_t microbatches_ = 0;
  static constexpr int64_t kNoMessage = INT64_MAX;
  int64_t message_ns_ = kNoMessage;
};

}  // namespace

Status read_traced(const trace::Timeline& timeline, Traced& out) {
  return Reader().read(timeline, out);
}

}  // namespace rrfp::sim
