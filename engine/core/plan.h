// SPDX-License-Identifier: Apache-2.0
//
// Everything about one rank's step that is known before it begins: its order, what each task waits
// for, sizes and limits. Immutable; a RankCore refers to it while the step runs.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "engine/core/admission.h"
#include "engine/core/hint.h"
#include "engine/core/step_tasks.h"

namespace rrfp::core {

enum class Order : uint8_t {
  kReady = 0,   // the hint ranks what is ready
  kStrict = 1,  // the hint is obeyed
  /// The hint is obeyed and every message is a rendezvous: a rank that has sent waits until the
  /// receiver asks for the message, which it does when the task that needs it is next in its order.
  /// This is how Megatron-LM's 1F1B communicates; a baseline.
  kPaired = 2,
};

enum class AdmissionRule : uint8_t {
  kOrdered,       // the safe rule of admission.h
  kPlainCounter,  // live + amount <= cap, as other systems count; can stall, kept as a baseline
};

struct Policy {
  Order order = Order::kReady;
  /// Weight gradients of a stage are computed in injection order.
  bool deterministic = true;
  AdmissionRule admission = AdmissionRule::kOrdered;
  /// Forward messages of one edge that are sent and whose consumer has not started. 0 = ranks x the
  /// most stages of a rank + 1, and only where the activation cap of the sender does not bound
  /// them.
  int32_t credits = 0;
  /// A ready task may be held back for an announced better one that arrives within this share of
  /// the ready task's predicted duration, in thousandths; 0 = never.
  int32_t hold_permille = 0;
  /// What a message is expected to take, for holding.
  int64_t hop_ns = 0;
  /// While the rank has more memory left than this share, in thousandths, of what 1F1B would hold,
  /// or the whole step fits, backward goes before forward before weight gradient and the hint ranks
  /// within each; 0 = the hint alone ranks.
  int32_t roomy_permille = 0;
  /// Kept free for each deeper chunk: at least this share of the cap, in thousandths, as far as the
  /// cap goes; 0 = the largest activation of the chunk; kNoReserve = nothing.
  int32_t reserve_permille = 0;
  /// Strict order in a step with planned starts (StepShape::planned_ns): a rank that must wait for
  /// its next task for this much longer than planned, or hears that another one had to, ranks what
  /// is ready from then on. 0 = strict to the end.
  int64_t late_ns = 0;
  /// Activations may go to the host's memory and come back, each at this speed; 0 = they stay.
  int64_t offload_ns_per_mib = 0;
  /// Command::ready_ns is wanted.
  bool record_ready = false;

  static constexpr int32_t kNoReserve = -1;

  [[nodiscard]] bool strict() const { return order != Order::kReady; }
  bool operator==(const Policy&) const = default;
};

/// Limits of one rank. 0 slots and 0 bytes: slots = ranks x stages of the rank.
struct Cap {
  int64_t slots = 0;  // 0 = no limit if bytes are limited
  int64_t bytes = 0;  // 0 = no limit
};

struct PlannedTask {
  MicrobatchId microbatch;
  uint16_t chunk = 0;  // index into RankPlan::chunks
  TaskKind kind = TaskKind::kForward;
};

struct ChunkPlan {
  StageId stage;
  std::vector<uint16_t> in;  // indices into RankPlan::edges
  std::vector<uint16_t> out;
  Amount reserve;  // kept free for deeper chunks, but not from the oldest microbatch
  bool loss = false;
  bool fused_only = false;
  int32_t forward_count = 0;                // microbatches that take part
  int32_t weight_count = 0;                 // microbatches with a weight gradient
  std::array<int64_t, 4> duration_ns = {};  // predicted, by TaskKind, for a microbatch of cost 1000
};

struct EdgePlan {
  static constexpr uint16_t kRemote = UINT16_MAX;

  EdgeId id;
  uint16_t from_chunk = kRemote;
  uint16_t to_chunk = kRemote;
  RankId peer;          // the rank at the other end; this rank if both ends are here
  int32_t credits = 0;  // 0 = not counted

  [[nodiscard]] bool local() const { return from_chunk != kRemote && to_chunk != kRemote; }
};

/// One (chunk, microbatch).
struct CellPlan {
  static constexpr uint32_t kNoTask = UINT32_MAX;

  uint32_t forward_at = kNoTask;   // positions in RankPlan::order
  uint32_t backward_at = kNoTask;  // of B or I
  uint32_t weight_at = kNoTask;    // of W; equal to backward_at where the order has B
  uint16_t forward_inputs = 0;     // messages that F waits for
  uint16_t gradient_inputs = 0;    // messages that B or I waits for, besides its own F
  bool backward = false;
  bool weight = false;
  int32_t cost_permille = 1000;
  int64_t held_bytes = 0;
};

struct RankPlan {
  RankId rank;
  Policy policy;
  std::shared_ptr<const StepTasks> tasks;
  std::vector<ChunkPlan> chunks;  // in topological order, the deepest last
  std::vector<EdgePlan> edges;    // sorted by id
  std::vector<PlannedTask> order;
  std::vector<CellPlan> cells;  // [chunk][microbatch]
  std::vector<Amount> needs;    // by microbatch: all that its forwards hold here
  Amount cap;
  bool fits = false;   // all activations of the step together stay within the cap
  Amount roomy_above;  // Policy::roomy_permille: the rank is roomy with more than this left
  std::vector<int64_t> planned_ns;  // by position, from the beginning of the step; for late_ns only
  bool offload = false;             // it is worth it
  int64_t stage_ns = 0;             // predicted: all tasks of a mean microbatch on this rank
  int64_t mean_bytes = 0;           // mean activation of one chunk and microbatch
  /// Tasks to do; a B counts as two where it has a weight half, for it may run as I and W.
  int64_t work_count = 0;

  [[nodiscard]] int32_t microbatches() const { return tasks->microbatches(); }
  [[nodiscard]] size_t cell_index(size_t chunk, MicrobatchId i) const {
    return chunk * static_cast<size_t>(microbatches()) + i.index();
  }
  [[nodiscard]] const CellPlan& cell(size_t chunk, MicrobatchId i) const {
    return cells[cell_index(chunk, i)];
  }
  [[nodiscard]] Amount held(const CellPlan& cell) const {
    return cell.backward ? Amount{1, cell.held_bytes} : Amount{};
  }
  /// Predicted; 0 = unknown.
  [[nodiscard]] int64_t duration_ns(size_t chunk, MicrobatchId i, TaskKind kind) const {
    return chunks[chunk].duration_ns[static_cast<size_t>(kind)] / 1000 *
           cell(chunk, i).cost_permille;
  }
  /// What it takes to copy so much to the host or back.
  [[nodiscard]] int64_t copy_ns(int64_t bytes) const {
    return (bytes >> 10) * policy.offload_ns_per_mib >> 10;
  }
  /// Index into `edges`, or edges.size().
  [[nodiscard]] size_t find_edge(EdgeId id) const;
  /// Index into `chunks`, or chunks.size().
  [[nodiscard]] size_t find_chunk(StageId stage) const;
};

/// What a rank without a cap may hold: as much as 1F1B, a slot for each of its stages and each
/// rank.
[[nodiscard]] Cap default_cap(const RankPlan& plan);

/// Fails if the hint does not fit the step or the cap is below the minimum.
Status build_plan(std::shared_ptr<const StepTasks> tasks, const Hint& hint, RankId rank,
                  const Policy& policy, const Cap& cap, std::shared_ptr<const RankPlan>& out);

/// For strict order: replays the plan over all ranks and fails if it cannot progress or if the
/// plan's own peak exceeds an explicit cap. `caps`: by rank.
Status check_strict(const std::shared_ptr<const StepTasks>& tasks, const Hint& hint,
                    const Policy& policy, std::span<const Cap> caps);

}  // namespace rrfp::core
