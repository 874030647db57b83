// SPDX-License-Identifier: Apache-2.0
#include "engine/model/layout.h"

#include <algorithm>
#include <limits>

#include "engine/model/aligned.h"
#include "engine/model/execute.h"

namespace rrfp::model {

using core::TaskKind;

namespace {

struct Life {
  int32_t slot = 0;
  size_t first = 0;  // instructions, inclusive
  size_t last = 0;
  int64_t size = 0;
  int64_t offset = 0;
};

/// Places what lives at overlapping times apart: largest first, each at the lowest place that is
/// free. Returns the floats needed.
int64_t pack(std::vector<Life>& lives) {
  std::stable_sort(lives.begin(), lives.end(),
                   [](const Life& a, const Life& b) { return a.size > b.size; });
  int64_t needed = 0;
  std::vector<const Life*> meeting;
  for (size_t k = 0; k < lives.size(); ++k) {
    Life& life = lives[k];
    meeting.clear();
    for (size_t j = 0; j < k; ++j) {
      if (lives[j].first <= life.last && life.first <= lives[j].last) meeting.push_back(&lives[j]);
    }
    std::sort(meeting.begin(), meeting.end(),
              [](const Life* a, const Life* b) { return a->offset < b->offset; });
    int64_t at = 0;
    for (const Life* other : meeting) {
      if (other->offset >= at + life.size) break;
      at = std::max(at, other->offset + other->size);
    }
    life.offset = at;
    needed = std::max(needed, at + life.size);
  }
  return needed;
}

class Planner {
 public:
  Planner(const Program& program, Layout& layout) : program_(program), layout_(layout) {
    for (std::vector<Place>& places : layout.places) places.resize(program.slots.size());
  }

  void place_external() {
    for (size_t s = 0; s < program_.slots.size(); ++s) {
      if (program_.slots[s].kind != SlotKind::kOwn) set_everywhere(s, {Region::kExternal, 0});
    }
  }
  void place_saved() {
    for (size_t s = 0; s < program_.slots.size(); ++s) {
      if (!is_own(s) || !program_.kept[s]) continue;
      set_everywhere(s, {Region::kSaved, layout_.saved});
      layout_.saved += layout_.sizes[s];
    }
  }
  /// What W reads and no earlier task than I has written.
  void place_kept() {
    const auto place = [&](int32_t slot) {
      const auto s = static_cast<size_t>(slot);
      if (!is_own(s) || program_.kept[s] || at(TaskKind::kWeightGradient, s).region != kUnplaced) {
        return;
      }
      const Place where = {Region::kKept, layout_.kept};
      at(TaskKind::kInputGradient, s) = at(TaskKind::kWeightGradient, s) = where;
      layout_.kept += layout_.sizes[s];
    };
    for (const Instruction& i : program_.code(TaskKind::kWeightGradient)) {
      i.visit(place, [](int32_t) {});
    }
  }
  void place_scratch(TaskKind kind) {
    constexpr size_t kNever = std::numeric_limits<size_t>::max();
    const std::vector<Instruction>& code = program_.code(kind);
    std::vector<Life> lives(program_.slots.size());
    for (Life& life : lives) life.first = kNever;
    for (size_t t = 0; t < code.size(); ++t) {
      const auto use = [&](int32_t slot) {
        Life& life = lives[static_cast<size_t>(slot)];
        life.first = std::min(life.first, t);
        life.last = t;
      };
      code[t].visit(use, use);
    }
    for (const Program::Result& result : program_.results) {
      if (kind != TaskKind::kForward) break;
      lives[static_cast<size_t>(result.slot)].last = code.size();
    }
    for (size_t s = 0; s < lives.size(); ++s) {
      lives[s].slot = static_cast<int32_t>(s);
      lives[s].size = layout_.sizes[s];
    }
    std::erase_if(lives, [&](const Life& life) {
      return life.first == kNever || at(kind, static_cast<size_t>(life.slot)).region != kUnplaced;
    });
    layout_.scratch[static_cast<size_t>(kind)] = pack(lives);
    for (const Life& life : lives) {
      at(kind, static_cast<size_t>(life.slot)) = {Region::kScratch, life.offset};
    }
  }

 private:
  static constexpr Region kUnplaced = Region::kNone;

  [[nodiscard]] bool is_own(size_t s) const { return program_.slots[s].kind == SlotKind::kOwn; }
  Place& at(TaskKind kind, size_t slot) { return layout_.places[static_cast<size_t>(kind)][slot]; }
  void set_everywhere(size_t slot, const Place& place) {
    for (std::vector<Place>& places : layout_.places) places[slot] = place;
  }

  const Program& program_;
  Layout& layout_;
};

void size_slots(const Graph& graph, const Program& program, std::span<const Shape> shapes,
                const kernels::Kernels& kernels, Layout& layout) {
  layout.sizes.assign(program.slots.size(), 0);
  for (size_t s = 0; s < program.slots.size(); ++s) {
    const Slot& slot = program.slots[s];
    if (slot.value.valid()) {
      layout.sizes[s] = aligned_floats(shapes[slot.value.index()].elements());
    } else {
      const OpRun run = describe_run(graph.op(slot.stats_of), shapes, kernels);
      layout.sizes[s] = aligned_floats(rules(*run.op).stats_size(run));
    }
  }
}

}  // namespace

Layout make_layout(const Graph& graph, const Program& program, std::span<const Shape> shapes,
                   const kernels::Kernels& kernels) {
  Layout layout;
  size_slots(graph, program, shapes, kernels, layout);
  Planner planner(program, layout);
  planner.place_external();
  planner.place_saved();
  planner.place_kept();
  for (TaskKind kind : {TaskKind::kForward, TaskKind::kBackward, TaskKind::kInputGradient,
                        TaskKind::kWeightGradient}) {
    // In B nothing outlives the task: what I would keep for W is scratch there.
    planner.place_scratch(kind);
    int64_t most = 0;
    for (const Instruction& i : program.code(kind)) {
      if (!i.op.valid()) continue;
      const OpRun run = describe_run(graph.op(i.op), shapes, kernels);
      const OpRules& its = rules(*run.op);
      if (its.scratch_size != nullptr) most = std::max(most, its.scratch_size(run));
    }
    const auto k = static_cast<size_t>(kind);
    layout.op_scratch_at[k] = layout.scratch[k];
    layout.scratch[k] += aligned_floats(most);
  }
  return layout;
}

}  // namespace rrfp::model
