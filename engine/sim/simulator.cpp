// SPDX-License-Identifier: Apache-2.0
//
// The discrete-event driver of engine/core. Everything that happens at one instant happens before
// any rank is asked for a task, and ranks are asked in order, so nothing depends on how equal times
// are sorted.
#include <algorithm>
#include <utility>

#include "engine/core/rank_core.h"
#include "engine/sim/agenda.h"
#include "engine/sim/network.h"
#include "engine/sim/random.h"
#include "engine/sim/scenario.h"

namespace rrfp::sim {

using core::Command;
using core::Direction;
using core::EdgeId;
using core::Event;
using core::IdleReason;
using core::MicrobatchId;
using core::RankCore;
using core::RankId;
using core::Status;
using core::Task;

int64_t Outcome::peak_bytes() const {
  int64_t peak = 0;
  for (const RankOutcome& rank : ranks) peak = std::max(peak, rank.peak.bytes);
  return peak;
}

namespace {

class Simulator {
 public:
  Simulator(const Scenario& scenario, const Observer& observer)
      : scenario_(scenario),
        observer_(observer),
        graph_(scenario.plans.front()->tasks->graph()),
        ranks_(scenario.plans.size()),
        network_(scenario.links, graph_) {
    waits_for_arrivals_ = scenario.group.size > 1 || scenario.runtime.early_probability > 0;
    microbatches_ = scenario.plans.front()->needs.size();
    const size_t messages = 2 * static_cast<size_t>(graph_.edge_count()) * microbatches_;
    if (waits_for_arrivals_) here_ns_.assign(messages, 0);
    const bool paired = scenario.plans.front()->policy.order == core::Order::kPaired;
    if (paired) rendezvous_.assign(messages, 0);
  }

  Outcome run() {
    begin();
    pull_dirty();
    while (!agenda_.empty() && !failed_) {
      now_ns_ = agenda_.time_ns();
      while (!agenda_.empty() && agenda_.time_ns() == now_ns_) happen(agenda_.pop());
      if (!failed_) pull_dirty();
    }
    finish();
    return std::move(outcome_);
  }

 private:
  struct Rank {
    RankCore core;
    bool dirty = false;  // something has happened since it was last asked
    bool dead = false;
    Task task;
    int64_t ready_ns = 0;
    int64_t idle_since_ns = 0;
    int64_t begun_ns = 0;  // of the running task, after waiting for its group
    IdleReason reason = IdleReason::kInput;
    bool idle = false;
  };

  void begin() {
    outcome_.ranks.resize(ranks_.size());
    dirty_.reserve(ranks_.size());
    for (size_t r = 0; r < ranks_.size(); ++r) {
      outcome_.ranks[r].cap = scenario_.plans[r]->cap;
      ranks_[r].core.begin_step(scenario_.plans[r]);
      mark(RankId::of(r));
    }
    const Faults& faults = scenario_.faults;
    if (faults.failing_rank >= 0) {
      agenda_.push(faults.fail_at_ns,
                   {{}, RankId(faults.failing_rank), {}, Happening::Kind::kFail});
    }
  }

  // --- The clock

  void schedule(int64_t time_ns, RankId rank, const Event& event) {
    agenda_.push(time_ns, {event, rank, {}, Happening::Kind::kEvent});
  }
  void mark(RankId id) {
    Rank& rank = ranks_[id.index()];
    if (rank.dirty) return;
    rank.dirty = true;
    dirty_.push_back(id);
  }

  void happen(const Happening& next) {
    Rank& rank = ranks_[next.rank.index()];
    if (rank.dead) return;
    switch (next.kind) {
      case Happening::Kind::kFail:
        if (complete()) return;  // too late to matter
        return fail(next.rank, "rank " + std::to_string(next.rank.value) + " died");
      case Happening::Kind::kWake: return mark(next.rank);
      case Happening::Kind::kArrival:
        tell(next.from,
             Event::receiving(next.event.edge, next.event.direction, next.event.microbatch));
        break;
      case Happening::Kind::kEvent: break;
    }
    if (next.event.kind == Event::Kind::kTaskDone) task_done(next.rank);
    tell(next.rank, next.event);
  }

  void tell(RankId id, const Event& event) {
    Rank& rank = ranks_[id.index()];
    mark(id);
    for (const Command& c : rank.core.apply(event, now_ns_)) obey(id, c);
    if (rank.core.failed() && !failed_) {
      fail(id, "rank " + std::to_string(id.value) + ": " + rank.core.fault().text());
    }
  }

  // --- Ranks

  void pull_dirty() {
    std::sort(dirty_.begin(), dirty_.end());
    for (const RankId id : dirty_) {
      Rank& rank = ranks_[id.index()];
      rank.dirty = false;
      if (rank.dead || rank.core.running()) continue;
      const auto answer = rank.core.apply(Event::pull(), now_ns_);
      const Command first = answer.front();
      if (first.kind == Command::Kind::kRun) {
        start(id, first);
      } else {
        idle(id, first);
      }
      for (const Command& c : answer.subspan(1)) obey(id, c);
    }
    dirty_.clear();
  }

  void start(RankId id, const Command& run) {
    Rank& rank = ranks_[id.index()];
    end_idle(id, now_ns_);
    rank.task = run.task;
    rank.ready_ns = run.ready_ns;
    int64_t begin_ns = now_ns_ + scenario_.runtime.dispatch_ns;
    if (waits_for_arrivals_) begin_ns = std::max(begin_ns, inputs_here_ns(run.task));
    rank.begun_ns = begin_ns;
    if (begin_ns > now_ns_ + scenario_.runtime.dispatch_ns) {
      outcome_.ranks[id.index()].group_ns += begin_ns - now_ns_;
      if (observer_.idle) observer_.idle(id, IdleReason::kInput, true, now_ns_, begin_ns);
    }
    schedule(begin_ns + scenario_.durations.ns(run.task), id, Event::task_done());
  }

  void task_done(RankId id) {
    const Rank& rank = ranks_[id.index()];
    RankOutcome& outcome = outcome_.ranks[id.index()];
    outcome.busy_ns += now_ns_ - rank.begun_ns;
    outcome.end_ns = now_ns_;
    outcome_.makespan_ns = now_ns_;
    ++outcome_.tasks;
    if (observer_.task) observer_.task(id, rank.task, rank.ready_ns, rank.begun_ns, now_ns_);
  }

  void idle(RankId id, const Command& command) {
    Rank& rank = ranks_[id.index()];
    if (!rank.idle || rank.reason != command.reason) {
      end_idle(id, now_ns_);
      rank.idle = true;
      rank.reason = command.reason;
      rank.idle_since_ns = now_ns_;
    }
    if (command.until_ns == INT64_MAX) return;
    agenda_.push(std::max(command.until_ns, now_ns_ + 1), {{}, id, {}, Happening::Kind::kWake});
  }

  void end_idle(RankId id, int64_t end_ns) {
    Rank& rank = ranks_[id.index()];
    if (!rank.idle) return;
    rank.idle = false;
    if (end_ns == rank.idle_since_ns) return;
    if (rank.reason != IdleReason::kComplete) {
      outcome_.ranks[id.index()].idle_ns[static_cast<size_t>(rank.reason)] +=
          end_ns - rank.idle_since_ns;
    }
    if (observer_.idle) observer_.idle(id, rank.reason, false, rank.idle_since_ns, end_ns);
  }

  // --- Messages

  void obey(RankId id, const Command& c) {
    switch (c.kind) {
      case Command::Kind::kSend: return send(id, c);
      case Command::Kind::kReceive: return asked(id, c);
      case Command::Kind::kCredit:
        return schedule(now_ns_ + latency_ns(), c.peer, Event::credit(c.edge));
      case Command::Kind::kAnnounce:
        return schedule(
            now_ns_ + latency_ns(), c.peer,
            Event::announce(c.edge, c.direction, c.microbatch, c.duration_ns - latency_ns()));
      case Command::Kind::kOffload:
        ++outcome_.offloads;
        return schedule(now_ns_ + c.duration_ns, id, Event::offloaded());
      case Command::Kind::kLoad: return schedule(now_ns_ + c.duration_ns, id, Event::loaded());
      default: return;
    }
  }

  [[nodiscard]] int64_t latency_ns() const {
    return static_cast<int64_t>(scenario_.links.latency_ns);
  }
  [[nodiscard]] size_t message_index(EdgeId edge, Direction direction, MicrobatchId i) const {
    return (2 * edge.index() + static_cast<size_t>(direction)) * microbatches_ + i.index();
  }

  void send(RankId id, const Command& c) {
    if (outcome_.messages++ == scenario_.faults.lose_message) return;
    const Event event = Event::message(c.edge, c.direction, c.microbatch, c.late);
    if (rendezvous_.empty()) return transfer(id, c.peer, event);
    uint8_t& state = rendezvous_[message_index(c.edge, c.direction, c.microbatch)];
    state |= kSent;
    if (state == (kSent | kAsked)) transfer(id, c.peer, event);
  }

  /// Paired order: the receiver asks.
  void asked(RankId id, const Command& c) {
    uint8_t& state = rendezvous_[message_index(c.edge, c.direction, c.microbatch)];
    state |= kAsked;
    if (state != (kSent | kAsked)) return;
    transfer(c.peer, id, Event::message(c.edge, c.direction, c.microbatch, false));
  }

  void transfer(RankId from, RankId to, const Event& event) {
    const int64_t here_ns = network_.send(event.edge, event.direction, event.microbatch, now_ns_);
    if (observer_.message) {
      observer_.message(event.edge, event.direction, event.microbatch, now_ns_, here_ns);
    }
    if (!rendezvous_.empty()) {
      agenda_.push(known_ns(event, here_ns), {event, to, from, Happening::Kind::kArrival});
      return;
    }
    schedule(known_ns(event, here_ns), to, event);
  }

  /// When the scheduler hears of a message that arrives at `here_ns`.
  int64_t known_ns(const Event& event, int64_t here_ns) {
    const Runtime& runtime = scenario_.runtime;
    const Group& group = scenario_.group;
    int64_t known_ns = here_ns;
    if (waits_for_arrivals_) {
      const Key key(
          scenario_.seed, Draw::kGroup,
          {event.edge.value, static_cast<int64_t>(event.direction), event.microbatch.value});
      int64_t last_ns = here_ns;
      for (int32_t k = 0; group.size > 1 && k < group.size; ++k) {
        const auto n = static_cast<uint64_t>(k);
        double delay_ns = group.spread_ns * key.lognormal(group.spread_sigma, n);
        if (key.uniform(1000 + n) < group.straggle_probability) delay_ns += group.straggle_ns;
        const int64_t member_ns = here_ns + static_cast<int64_t>(delay_ns);
        if (k == 0) known_ns = member_ns;  // the leader
        last_ns = std::max(last_ns, member_ns);
      }
      here_ns_[message_index(event.edge, event.direction, event.microbatch)] = last_ns;
      if (group.size > 1 && group.readiness == Group::Readiness::kAll) {
        known_ns = last_ns + group.report_ns;
      }
      const Key early(
          scenario_.seed, Draw::kEarlyReport,
          {event.edge.value, static_cast<int64_t>(event.direction), event.microbatch.value});
      if (early.uniform() < runtime.early_probability) {
        known_ns -= static_cast<int64_t>(early.uniform(1) * static_cast<double>(runtime.early_ns));
      }
    }
    return std::max(known_ns + runtime.report_ns, now_ns_);
  }

  [[nodiscard]] int64_t inputs_here_ns(const Task& task) const {
    if (task.kind == core::TaskKind::kWeightGradient) return 0;
    const bool forward = task.kind == core::TaskKind::kForward;
    const Direction direction = forward ? Direction::kForward : Direction::kBackward;
    int64_t here_ns = 0;
    for (EdgeId e : forward ? graph_.in_edges(task.stage) : graph_.out_edges(task.stage)) {
      here_ns = std::max(here_ns, here_ns_[message_index(e, direction, task.microbatch)]);
    }
    return here_ns;
  }

  // --- The end

  [[nodiscard]] bool complete() const {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const Rank& rank) { return rank.core.complete(); });
  }

  /// The failure reaches every rank: what each does from then on is up to its core.
  void fail(RankId origin, std::string text) {
    failed_ = true;
    outcome_.error = std::move(text);
    ranks_[origin.index()].dead = true;
    now_ns_ += scenario_.faults.notice_ns;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      RankCore& core = ranks_[r].core;
      if (core.running()) core.apply(Event::task_done(), now_ns_);
      core.apply(Event::peer_failed(), now_ns_);
      const Command answer = core.apply(Event::pull(), now_ns_).front();
      outcome_.ranks[r].told_of_failure =
          answer.kind == Command::Kind::kIdle && answer.reason == IdleReason::kFailed;
    }
  }

  void finish() {
    outcome_.complete = !failed_;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const RankCore& core = ranks_[r].core;
      outcome_.ranks[r].peak = core.ledger().peak();
      outcome_.late_ranks += core.late() ? 1 : 0;
      outcome_.complete = outcome_.complete && core.complete();
    }
    if (outcome_.complete) {
      for (size_t r = 0; r < ranks_.size(); ++r) end_idle(RankId::of(r), outcome_.makespan_ns);
    }
    if (outcome_.complete || failed_) return;
    std::string text = "nothing has happened since " + std::to_string(now_ns_) + " ns:";
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].core.complete()) continue;
      text += " rank " + std::to_string(r) + " waits at";
      for (const core::WaitingTask& task : ranks_[r].core.waiting(1)) {
        text += " " + to_string(task.task) + (task.ready ? " (ready)" : "");
      }
      text += ";";
      if (text.size() > kStallTextMax) break;
    }
    if (scenario_.faults.lose_message >= 0) {
      now_ns_ += scenario_.faults.watchdog_ns;
      return fail(RankId(0), "the watchdog ended the step: " + text);
    }
    outcome_.stalled = true;
    outcome_.error = std::move(text);
  }

  static constexpr uint8_t kSent = 1;
  static constexpr uint8_t kAsked = 2;
  static constexpr size_t kStallTextMax = 2000;

  const Scenario& scenario_;
  const Observer& observer_;
  const core::StageGraph& graph_;
  std::vector<Rank> ranks_;
  Network network_;
  size_t microbatches_ = 0;
  bool waits_for_arrivals_ = false;
  std::vector<int64_t> here_ns_;     // by message: when it is really everywhere
  std::vector<uint8_t> rendezvous_;  // by message
  Agenda agenda_;
  std::vector<RankId> dirty_;
  int64_t now_ns_ = 0;
  bool failed_ = false;
  Outcome outcome_;
};

}  // namespace

Status make_plans(const std::shared_ptr<const core::StepTasks>& tasks, const core::Hint& hint,
                  const core::Policy& policy, const std::vector<core::Cap>& caps, Plans& out) {
  out.resize(static_cast<size_t>(tasks->graph().ranks()));
  for (size_t r = 0; r < out.size(); ++r) {
    const core::Cap cap = caps.empty() ? core::Cap() : caps[r];
    Status s = core::build_plan(tasks, hint, RankId::of(r), policy, cap, out[r]);
    if (!s.ok()) return s;
  }
  return {};
}

Outcome simulate(const Scenario& scenario, const Observer& observer) {
  return Simulator(scenario, observer).run();
}

}  // namespace rrfp::sim
