// SPDX-License-Identifier: Apache-2.0
#include "tests/support/virtual_pipeline.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "engine/core/rank_core.h"
#include "tests/support/oracle.h"

namespace rrfp::test {

using core::Command;
using core::Event;
using core::IdleReason;
using core::RankCore;
using core::RankId;
using core::Status;
using core::Task;
using core::TaskKind;

Timing Timing::steady(int64_t forward_ns, int64_t input_gradient_ns, int64_t weight_gradient_ns) {
  Timing timing;
  timing.task_ns = [=](const Task& task) {
    switch (task.kind) {
      case TaskKind::kForward: return forward_ns;
      case TaskKind::kInputGradient: return input_gradient_ns;
      case TaskKind::kWeightGradient: return weight_gradient_ns;
      case TaskKind::kBackward: break;
    }
    return input_gradient_ns + weight_gradient_ns;
  };
  return timing;
}

namespace {

struct Happening {
  int64_t time_ns = 0;
  uint64_t serial = 0;  // equal times: first come, first served
  RankId rank;
  bool wake = false;  // only asks the rank again; `event` does not count
  Event event;

  bool operator>(const Happening& o) const {
    return std::tie(time_ns, serial) > std::tie(o.time_ns, o.serial);
  }
};

std::string describe(const core::StageGraph& graph, const core::WaitingTask& waiting) {
  std::string text = to_string(waiting.task);
  if (waiting.ready) return text + " (ready)";
  text += " (waits for";
  if (waiting.own_forward_missing) text += " its forward";
  if (waiting.weight_turn_missing) text += " its weight turn";
  for (const auto& input : waiting.missing) {
    const core::Edge& edge = graph.edge(input.edge);
    const bool forward = input.direction == core::Direction::kForward;
    text += std::string(forward ? " activation" : " gradient") + " of stage " +
            std::to_string((forward ? edge.from : edge.to).value) + " from rank " +
            std::to_string(input.from.value);
  }
  return text + ")";
}

class Driver {
 public:
  explicit Driver(const VirtualPipeline& setup)
      : setup_(setup), graph_(setup.tasks->graph()), ranks_(static_cast<size_t>(graph_.ranks())) {
    last_arrival_.assign(static_cast<size_t>(graph_.edge_count()) * 2, 0);
    credit_serial_.assign(static_cast<size_t>(graph_.edge_count()), 0);
    result_.ranks.resize(ranks_.size());
  }

  VirtualResult run() {
    if (!begin()) return std::move(result_);
    pull_all();
    while (error_free() && !queue_.empty()) {
      now_ns_ = queue_.top().time_ns;
      while (error_free() && !queue_.empty() && queue_.top().time_ns == now_ns_) {
        const Happening next = queue_.top();
        queue_.pop();
        happen(next);
        if (setup_.pull_at_once) pull(next.rank);
      }
      pull_all();
    }
    finish();
    return std::move(result_);
  }

 private:
  struct Rank {
    RankCore core;
    bool dirty = true;  // something happened since it was last asked
    bool holding = false;
  };

  bool begin() {
    int64_t work = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const core::Cap cap = setup_.caps.empty() ? core::Cap() : setup_.caps[r];
      std::shared_ptr<const core::RankPlan> plan;
      const Status status =
          core::build_plan(setup_.tasks, *setup_.hint, RankId::of(r), setup_.policy, cap, plan);
      if (!status.ok()) {
        result_.error = status.text();
        result_.code = status.code();
        return false;
      }
      work += plan->work_count;
      ranks_[r].core.begin_step(plan);
    }
    oracle_.emplace(setup_);
    happenings_left_ = 1000 + 100 * work * (1 + int64_t{graph_.edge_count()});
    return true;
  }

  [[nodiscard]] bool error_free() {
    if (result_.error.empty()) result_.error = oracle_->error();
    return result_.error.empty();
  }

  void schedule(int64_t delay_ns, RankId rank, const Event& event) {
    queue_.push({now_ns_ + delay_ns, serial_++, rank, false, event});
  }

  void happen(const Happening& next) {
    if (--happenings_left_ < 0) {
      result_.error = "the run does not come to an end";
      return;
    }
    Rank& rank = ranks_[next.rank.index()];
    rank.dirty = true;
    if (next.wake) return;
    const Event& event = next.event;
    switch (event.kind) {
      case Event::Kind::kTaskDone: return task_done(next.rank);
      case Event::Kind::kMessage:
        oracle_->message_arrived(event.edge, event.direction, event.microbatch);
        break;
      case Event::Kind::kCredit: oracle_->credit_arrived(event.edge); break;
      case Event::Kind::kAnnounce:
        oracle_->announcement_arrived(event.edge, event.direction, event.microbatch);
        break;
      default: break;
    }
    if (!rank.core.apply(event, now_ns_).empty()) result_.error = "an arrival has an answer";
    check_core(next.rank);
  }

  void task_done(RankId id) {
    Rank& rank = ranks_[id.index()];
    oracle_->finished(id, rank.core.running_task());
    for (const Command& c : rank.core.apply(Event::task_done(), now_ns_)) {
      switch (c.kind) {
        case Command::Kind::kSend: send(id, c); break;
        case Command::Kind::kDeliver: oracle_->delivered(id, c); break;
        default: oracle_->counter(id, c); break;
      }
    }
    oracle_->finished_end();
    check_core(id);
    result_.makespan_ns = now_ns_;
  }

  void send(RankId id, const Command& c) {
    oracle_->sent(id, c);
    const auto& message_ns = setup_.timing.message_ns;
    const int64_t delay_ns = message_ns ? message_ns(c.edge, c.direction, c.microbatch) : 0;
    int64_t& last = last_arrival_[c.edge.index() * 2 + static_cast<size_t>(c.direction)];
    result_.overtakings += now_ns_ + delay_ns < last ? 1 : 0;
    last = std::max(last, now_ns_ + delay_ns);
    schedule(delay_ns, c.peer, Event::message(c.edge, c.direction, c.microbatch));
  }

  void pull_all() {
    for (size_t r = 0; r < ranks_.size(); ++r) pull(RankId::of(r));
  }

  void pull(RankId id) {
    Rank& rank = ranks_[id.index()];
    if (!error_free() || !rank.dirty || rank.core.running()) return;
    rank.dirty = false;
    const auto commands = rank.core.apply(Event::pull(), now_ns_);
    if (commands.empty()) {
      result_.error = "a pull without an answer";
      return;
    }
    const Command first = commands.front();
    if (first.kind == Command::Kind::kIdle) {
      idle(id, first);
    } else {
      start(id, first);
    }
    for (const Command& c : commands.subspan(1)) start_effect(id, c);
    check_core(id);
  }

  void idle(RankId id, const Command& command) {
    Rank& rank = ranks_[id.index()];
    RankRecord& record = result_.ranks[id.index()];
    ++record.idle_pulls[static_cast<size_t>(command.reason)];
    oracle_->idle(id, command, now_ns_);
    if (command.until_ns == INT64_MAX) return;
    record.holds += rank.holding ? 0 : 1;
    rank.holding = true;
    queue_.push({command.until_ns, serial_++, id, true, {}});
  }

  void start(RankId id, const Command& command) {
    if (command.kind != Command::Kind::kRun) {
      result_.error = "a pull answered by neither a task nor idling";
      return;
    }
    ranks_[id.index()].holding = false;
    oracle_->started(id, command.task);
    const int64_t duration_ns = setup_.timing.task_ns ? setup_.timing.task_ns(command.task) : 0;
    result_.ranks[id.index()].spans.push_back({command.task, now_ns_, now_ns_ + duration_ns});
    ++result_.tasks_run;
    schedule(duration_ns, id, Event::task_done());
  }

  void start_effect(RankId id, const Command& c) {
    if (c.kind == Command::Kind::kCredit) {
      oracle_->credit_sent(id, c);
      const auto& credit_ns = setup_.timing.credit_ns;
      const int64_t delay_ns = credit_ns ? credit_ns(c.edge, credit_serial_[c.edge.index()]++) : 0;
      schedule(delay_ns, c.peer, Event::credit(c.edge));
    } else if (c.kind == Command::Kind::kAnnounce) {
      oracle_->announced(id, c);
      const auto& announce_ns = setup_.timing.announce_ns;
      const int64_t delay_ns = announce_ns ? announce_ns(c.edge, c.direction, c.microbatch) : 0;
      schedule(delay_ns, c.peer, Event::announce(c.edge, c.direction, c.microbatch, c.duration_ns));
    } else {
      result_.error = "the start of a task has an effect that belongs to its end";
    }
  }

  void check_core(RankId id) {
    const RankCore& core = ranks_[id.index()].core;
    if (core.failed() && result_.error.empty()) {
      result_.error = "rank " + std::to_string(id.value) + " failed: " + core.fault().text();
    }
  }

  void finish() {
    std::string stuck;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const RankCore& core = ranks_[r].core;
      result_.ranks[r].peak = core.ledger().peak();
      if (core.ledger().peak() != oracle_->peak(RankId::of(r)) && error_free()) {
        result_.error = "rank " + std::to_string(r) + " reports a peak that is not the true one";
      }
      if (core.complete()) continue;
      stuck += "\n  rank " + std::to_string(r) + ":";
      for (const auto& waiting : core.waiting(4)) stuck += " " + describe(graph_, waiting);
    }
    if (!error_free()) return;
    if (!stuck.empty()) {
      result_.stalled = true;
      result_.error = "stall at " + std::to_string(now_ns_) + " ns:" + stuck;
      return;
    }
    oracle_->ended();
    result_.ok = error_free();
  }

  const VirtualPipeline& setup_;
  const core::StageGraph& graph_;
  std::vector<Rank> ranks_;
  std::optional<Oracle> oracle_;
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> queue_;
  uint64_t serial_ = 0;
  int64_t now_ns_ = 0;
  int64_t happenings_left_ = 0;
  std::vector<int64_t> last_arrival_;   // by edge and direction
  std::vector<int64_t> credit_serial_;  // by edge
  VirtualResult result_;
};

}  // namespace

VirtualResult run_virtual(const VirtualPipeline& setup) {
  return Driver(setup).run();
}

}  // namespace rrfp::test
