// SPDX-License-Identifier: Apache-2.0
#include "engine/core/plan.h"

#include <algorithm>
#include <cassert>

#include "engine/core/named_policies.h"

namespace rrfp::core {

size_t RankPlan::find_edge(EdgeId id) const {
  const auto at = std::lower_bound(edges.begin(), edges.end(), id,
                                   [](const EdgePlan& e, EdgeId value) { return e.id < value; });
  return at != edges.end() && at->id == id ? static_cast<size_t>(at - edges.begin()) : edges.size();
}

size_t RankPlan::find_chunk(StageId stage) const {
  const auto at = std::find_if(chunks.begin(), chunks.end(),
                               [&](const ChunkPlan& c) { return c.stage == stage; });
  return static_cast<size_t>(at - chunks.begin());
}

namespace {

class PlanBuilder {
 public:
  PlanBuilder(std::shared_ptr<const StepTasks> tasks, RankId rank, const Policy& policy)
      : tasks_(*tasks), graph_(tasks->graph()) {
    plan_->rank = rank;
    plan_->policy = policy;
    plan_->tasks = std::move(tasks);
  }

  Status build(const Hint& hint, const Cap& cap, std::shared_ptr<const RankPlan>& out) {
    if (Status s = check_limits(); !s.ok()) return s;
    set_ranking(hint);
    add_edges();
    add_chunks();
    if (Status s = add_cells(); !s.ok()) return s;
    if (Status s = add_order(hint); !s.ok()) return s;
    if (Status s = set_cap(cap); !s.ok()) return s;
    set_room();
    set_reserves();
    set_offload();
    set_credits();
    if (Status s = check_late(); !s.ok()) return s;
    out = std::move(plan_);
    return {};
  }

 private:
  // Indices of chunks and edges of one rank are 16 bits wide.
  static constexpr size_t kLocalMax = UINT16_MAX - 1;
  // Positions in the order are 32 bits wide, and a pair has up to three tasks.
  static constexpr size_t kPairsMax = UINT32_MAX / 4;

  /// A hint that is a policy says how it ranks, where the caller has no own wish. Strict order
  /// holds nothing back and ranks nothing.
  void set_ranking(const Hint& hint) {
    Policy& policy = plan_->policy;
    if (policy.strict() && policy.late_ns == 0) {
      policy.hold_permille = 0;
      policy.offload_ns_per_mib = 0;
      return;
    }
    if (hint.policy() == nullptr) return;
    const Policy& wanted = hint.policy()->policy;
    if (policy.hold_permille == 0) policy.hold_permille = wanted.hold_permille;
    if (policy.roomy_permille == 0) policy.roomy_permille = wanted.roomy_permille;
    if (policy.reserve_permille == 0) policy.reserve_permille = wanted.reserve_permille;
  }

  [[nodiscard]] Status check_limits() const {
    size_t edges = 0;
    for (StageId s : graph_.chunks(plan_->rank)) {
      edges += graph_.in_edges(s).size() + graph_.out_edges(s).size();
    }
    const size_t chunks = graph_.chunks(plan_->rank).size();
    if (chunks * static_cast<size_t>(tasks_.microbatches()) > kPairsMax) {
      return {Code::kOutOfRange, "rank " + std::to_string(plan_->rank.value) + " has " +
                                     std::to_string(chunks) + " stages and the step " +
                                     std::to_string(tasks_.microbatches()) +
                                     " microbatches; at most " + std::to_string(kPairsMax) +
                                     " pairs of them fit one rank"};
    }
    if (chunks <= kLocalMax && edges <= kLocalMax) return {};
    return {Code::kOutOfRange, "rank " + std::to_string(plan_->rank.value) + " has " +
                                   std::to_string(chunks) + " stages with " +
                                   std::to_string(edges) + " edges; at most " +
                                   std::to_string(kLocalMax) + " of each fit one rank"};
  }

  void add_edges() {
    std::vector<EdgeId> ids;
    for (StageId s : graph_.chunks(plan_->rank)) {
      for (EdgeId e : graph_.in_edges(s)) ids.push_back(e);
      for (EdgeId e : graph_.out_edges(s)) ids.push_back(e);
    }
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    for (EdgeId id : ids) {
      EdgePlan& edge = plan_->edges.emplace_back();
      edge.id = id;
      const RankId from = graph_.stage(graph_.edge(id).from).rank;
      const RankId to = graph_.stage(graph_.edge(id).to).rank;
      edge.peer = from == plan_->rank ? to : from;
    }
  }

  void add_chunks() {
    for (StageId s : graph_.chunks(plan_->rank)) {
      const Stage& stage = graph_.stage(s);
      const auto index = static_cast<uint16_t>(plan_->chunks.size());
      ChunkPlan& chunk = plan_->chunks.emplace_back();
      chunk.stage = s;
      chunk.loss = stage.loss;
      chunk.fused_only = stage.fused_only;
      const auto [forward_ns, input_gradient_ns, weight_gradient_ns] = tasks_.stage_ns(s);
      chunk.duration_ns = {forward_ns, input_gradient_ns + weight_gradient_ns, input_gradient_ns,
                           weight_gradient_ns};
      for (EdgeId e : graph_.in_edges(s)) {
        const size_t at = plan_->find_edge(e);
        plan_->edges[at].to_chunk = index;
        chunk.in.push_back(static_cast<uint16_t>(at));
      }
      for (EdgeId e : graph_.out_edges(s)) {
        const size_t at = plan_->find_edge(e);
        plan_->edges[at].from_chunk = index;
        chunk.out.push_back(static_cast<uint16_t>(at));
      }
    }
  }

  Status add_cells() {
    int64_t bytes_of_all = 0;
    const int32_t m = tasks_.microbatches();
    plan_->cells.resize(plan_->chunks.size() * static_cast<size_t>(m));
    plan_->needs.resize(static_cast<size_t>(m));
    for (size_t c = 0; c < plan_->chunks.size(); ++c) {
      ChunkPlan& chunk = plan_->chunks[c];
      for (int32_t k = 0; k < m; ++k) {
        const MicrobatchId i(k);
        if (!tasks_.takes_part(chunk.stage, i)) continue;
        CellPlan& cell = plan_->cells[plan_->cell_index(c, i)];
        cell.backward = tasks_.backward(chunk.stage, i);
        cell.weight = tasks_.weight(chunk.stage, i);
        cell.held_bytes = tasks_.held_bytes(chunk.stage, i);
        cell.cost_permille = tasks_.cost_permille(chunk.stage, i);
        for (uint16_t e : chunk.in) {
          if (tasks_.active(plan_->edges[e].id, i)) ++cell.forward_inputs;
        }
        for (uint16_t e : chunk.out) {
          if (tasks_.returns(plan_->edges[e].id, i)) ++cell.gradient_inputs;
        }
        ++chunk.forward_count;
        chunk.weight_count += cell.weight ? 1 : 0;
        plan_->needs[i.index()] += plan_->held(cell);
        bytes_of_all += plan_->held(cell).bytes;
        if (bytes_of_all > Ledger::kUnlimited) {
          return {Code::kOutOfRange, "the activations of rank " +
                                         std::to_string(plan_->rank.value) +
                                         " in this step add up to more than " +
                                         std::to_string(Ledger::kUnlimited) + " bytes"};
        }
        plan_->work_count += 1 + (cell.backward ? 1 : 0) + (cell.weight ? 1 : 0);
      }
    }
    return {};
  }

  Status add_order(const Hint& hint) {
    std::vector<Task> order;
    if (Status s = hint.order(tasks_, plan_->rank, order); !s.ok()) return s;
    plan_->order.reserve(order.size());
    for (const Task& task : order) {
      const size_t c = plan_->find_chunk(task.stage);
      CellPlan& cell = plan_->cells[plan_->cell_index(c, task.microbatch)];
      PlannedTask planned = {task.microbatch, static_cast<uint16_t>(c), task.kind};
      const auto at = static_cast<uint32_t>(plan_->order.size());
      switch (task.kind) {
        case TaskKind::kForward: cell.forward_at = at; break;
        case TaskKind::kWeightGradient:
          if (plan_->chunks[c].fused_only) continue;  // done by its B
          cell.weight_at = at;
          break;
        case TaskKind::kInputGradient:
          if (plan_->chunks[c].fused_only) planned.kind = TaskKind::kBackward;
          [[fallthrough]];
        case TaskKind::kBackward:
          cell.backward_at = at;
          if (planned.kind == TaskKind::kBackward && cell.weight) cell.weight_at = at;
          break;
      }
      plan_->order.push_back(planned);
      if (plan_->policy.late_ns > 0 && !tasks_.shape().planned_ns.empty()) {
        plan_->planned_ns.push_back(tasks_.planned_ns(task));
      }
    }
    return {};
  }

  Status set_cap(const Cap& cap) {
    const RankId rank = plan_->rank;
    plan_->cap = {cap.slots, cap.bytes};
    if (plan_->policy.strict() && plan_->policy.late_ns == 0) {
      // A strict plan carries its own peak, which check_strict holds against the caps.
      plan_->cap = {Ledger::kUnlimited, Ledger::kUnlimited};
      return {};
    }
    if (cap.slots == 0 && cap.bytes == 0) plan_->cap.slots = default_cap(*plan_).slots;
    if (plan_->cap.slots == 0) plan_->cap.slots = Ledger::kUnlimited;
    if (plan_->cap.bytes == 0) plan_->cap.bytes = Ledger::kUnlimited;
    Amount least;
    for (const Amount& need : plan_->needs) least = Amount::max(least, need);
    const auto too_small = [&](const char* unit, int64_t have, int64_t want) {
      return Status{Code::kCapTooSmall, "the cap of rank " + std::to_string(rank.value) + " is " +
                                            std::to_string(have) + " " + unit +
                                            "; the minimum is " + std::to_string(want) +
                                            ", one microbatch through its " +
                                            std::to_string(plan_->chunks.size()) + " stages"};
    };
    if (plan_->cap.slots < least.slots) {
      return too_small("slots", plan_->cap.slots, least.slots);
    }
    if (plan_->cap.bytes < least.bytes) {
      return too_small("bytes", plan_->cap.bytes, least.bytes);
    }
    return {};
  }

  void set_room() {
    Amount all;
    for (const Amount& need : plan_->needs) all += need;
    plan_->fits = all.within(plan_->cap);
    // 1F1B holds about one microbatch for each rank.
    const auto share_of_1f1b = [&](int64_t sum) {
      const int64_t mean =
          std::min(sum / tasks_.microbatches(), Ledger::kUnlimited / graph_.ranks());
      return mean * graph_.ranks() / 1000 * plan_->policy.roomy_permille;
    };
    plan_->roomy_above = {
        (all.slots * graph_.ranks() * plan_->policy.roomy_permille) / tasks_.microbatches() / 1000,
        share_of_1f1b(all.bytes)};
    plan_->mean_bytes = all.bytes / std::max<int64_t>(all.slots, 1);
    for (size_t c = 0; c < plan_->chunks.size(); ++c) {
      for (int32_t k = 0; k < tasks_.microbatches(); ++k) {
        const CellPlan& cell = plan_->cell(c, MicrobatchId(k));
        if (cell.forward_at == CellPlan::kNoTask) continue;
        plan_->stage_ns += plan_->duration_ns(c, MicrobatchId(k), TaskKind::kForward);
        if (cell.backward) {
          plan_->stage_ns += plan_->duration_ns(c, MicrobatchId(k), TaskKind::kBackward);
        }
      }
    }
    plan_->stage_ns /= tasks_.microbatches();
  }

  void set_reserves() {
    const int32_t permille = plan_->policy.reserve_permille;
    std::vector<Amount> largest(plan_->chunks.size());
    Amount largest_of_all;
    for (size_t c = 0; c < largest.size(); ++c) {
      for (int32_t k = 0; k < tasks_.microbatches(); ++k) {
        largest[c] = Amount::max(largest[c], plan_->held(plan_->cell(c, MicrobatchId(k))));
      }
      largest_of_all = Amount::max(largest_of_all, largest[c]);
    }
    Amount deeper;
    for (size_t c = plan_->chunks.size(); c-- > 0;) {
      plan_->chunks[c].reserve = deeper;
      if (permille == 0) {
        deeper += largest[c];
      } else if (permille > 0) {
        deeper += {share_of_cap(largest_of_all.slots, plan_->cap.slots),
                   share_of_cap(largest_of_all.bytes, plan_->cap.bytes)};
      }
    }
  }

  /// The largest activation, or the policy's share of the cap if there is more room than that.
  [[nodiscard]] int64_t share_of_cap(int64_t largest, int64_t cap) const {
    if (cap == Ledger::kUnlimited) return 0;
    const auto chunks = static_cast<int64_t>(plan_->chunks.size());
    return std::max(largest, std::min(cap / 1000 * plan_->policy.reserve_permille +
                                          cap % 1000 * plan_->policy.reserve_permille / 1000,
                                      cap - chunks * largest));
  }

  /// Offloading pays if a copy is short beside the computing that it hides behind, and if there is
  /// room to bring something back (study: engine/sim/STUDY.md).
  void set_offload() {
    if (plan_->policy.offload_ns_per_mib == 0 || plan_->fits) return;
    Amount largest;
    for (const CellPlan& cell : plan_->cells) largest = Amount::max(largest, plan_->held(cell));
    const auto chunks = static_cast<int64_t>(plan_->chunks.size());
    plan_->offload = plan_->copy_ns(plan_->mean_bytes * chunks) <= plan_->stage_ns / 4 * 3 &&
                     plan_->cap.bytes >= (chunks + 1) * largest.bytes;
  }

  /// A rank may leave a strict order at any time if what it holds would be admitted by the ledger
  /// at every point of it (engine/ARCHITECTURE.md, "Strict until late").
  [[nodiscard]] Status check_late() const {
    if (plan_->policy.late_ns == 0) return {};
    if (plan_->policy.order == Order::kPaired) {
      return {Code::kInvalidArgument, "late_ns does not go with paired order"};
    }
    if (tasks_.shape().planned_ns.empty()) {
      return {Code::kInvalidArgument, "late_ns is " + std::to_string(plan_->policy.late_ns) +
                                          ", but the step has no planned_ns to be late against"};
    }
    for (const EdgePlan& edge : plan_->edges) {
      if (edge.credits == 0) continue;
      return {Code::kInvalidArgument, "late_ns does not go with credits, which edge " +
                                          std::to_string(edge.id.value) + " has"};
    }
    Ledger ledger;
    ledger.reset(plan_->needs, plan_->cap);
    std::vector<MicrobatchId> last_weight(plan_->chunks.size());
    for (const PlannedTask& task : plan_->order) {
      const CellPlan& cell = plan_->cell(task.chunk, task.microbatch);
      if (cell.weight &&
          (task.kind == TaskKind::kBackward || task.kind == TaskKind::kWeightGradient)) {
        if (plan_->policy.deterministic && task.microbatch < last_weight[task.chunk]) {
          return {Code::kBadOrder,
                  "late_ns needs the weight gradients of a stage in the order of microbatches in "
                  "deterministic mode, but " +
                      to_string(Task{plan_->chunks[task.chunk].stage, task.microbatch, task.kind}) +
                      " comes after microbatch " + std::to_string(last_weight[task.chunk].value)};
        }
        last_weight[task.chunk] = task.microbatch;
      }
      const bool last =
          task.kind == TaskKind::kBackward ||
          task.kind == (cell.weight ? TaskKind::kWeightGradient : TaskKind::kInputGradient);
      if (task.kind == TaskKind::kForward) ledger.acquire(task.microbatch, plan_->held(cell));
      if (last) ledger.release(task.microbatch, plan_->held(cell));
      if (ledger.safe()) continue;
      return {Code::kCapTooSmall,
              "the order of rank " + std::to_string(plan_->rank.value) + " holds more after " +
                  to_string(Task{plan_->chunks[task.chunk].stage, task.microbatch, task.kind}) +
                  " than its cap of " + std::to_string(plan_->cap.slots) + " slots and " +
                  std::to_string(plan_->cap.bytes) + " bytes allows a rank that may leave it"};
    }
    return {};
  }

  void set_credits() {
    if (plan_->policy.strict() && plan_->policy.late_ns == 0) return;
    for (EdgePlan& edge : plan_->edges) {
      if (plan_->policy.credits > 0) {
        edge.credits = plan_->policy.credits;
      } else if (!bounded_by_sender(edge.id)) {
        const int64_t credits = int64_t{graph_.ranks()} * graph_.chunks_max() + 1;
        edge.credits = static_cast<int32_t>(std::min<int64_t>(credits, INT32_MAX));
      }
    }
  }

  /// True if every message of the edge stands for an activation that its sender still holds.
  [[nodiscard]] bool bounded_by_sender(EdgeId id) const {
    for (int32_t k = 0; k < tasks_.microbatches(); ++k) {
      if (tasks_.active(id, MicrobatchId(k)) && !tasks_.returns(id, MicrobatchId(k))) return false;
    }
    return true;
  }

  const StepTasks& tasks_;
  const StageGraph& graph_;
  std::shared_ptr<RankPlan> plan_ = std::make_shared<RankPlan>();
};

}  // namespace

Cap default_cap(const RankPlan& plan) {
  return {int64_t{plan.tasks->graph().ranks()} * static_cast<int64_t>(plan.chunks.size()), 0};
}

Status build_plan(std::shared_ptr<const StepTasks> tasks, const Hint& hint, RankId rank,
                  const Policy& policy, const Cap& cap, std::shared_ptr<const RankPlan>& out) {
  return PlanBuilder(std::move(tasks), rank, policy).build(hint, cap, out);
}

}  // namespace rrfp::core
