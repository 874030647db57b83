// SPDX-License-Identifier: Apache-2.0
//
// What a stage does in each kind of task: lists of instructions over slots. A slot is one array of
// numbers for one microbatch: a value, what an operation keeps beside its value, or the gradient of
// a value. Shapes and memory come later (layout.h), so one program serves all microbatches.
//
// With recompute, what a block needs for its backward pass is computed again, into slots of its
// own, right before that pass; from there on everything is as without. What other blocks read is
// kept.
#pragma once

#include <array>
#include <vector>

#include "engine/model/cut.h"
#include "engine/model/op_rules.h"

namespace rrfp::model {

constexpr int32_t kNoSlot = -1;

enum class Action : uint8_t {
  kForward,         // of an operation; also once more, into "again" slots
  kInputGradient,   // of an operation
  kWeightGradient,  // of an operation
  kTakeGradient,    // in_gradient[0] = out_gradient: what a later stage has sent for a value
  kSeedGradient,    // in_gradient[0] = the factor of a loss
};

struct Instruction {
  Action action = Action::kForward;
  OpId op;  // invalid for kTakeGradient and kSeedGradient
  // Slots; kNoSlot where the action reads or writes nothing there.
  std::array<int32_t, Op::kInputsMax> in = {};
  std::array<int32_t, Op::kInputsMax> in_gradient = {};
  uint32_t accumulate = 0;  // by input, as bits
  int32_t out = kNoSlot;
  int32_t stats = kNoSlot;
  int32_t out_gradient = kNoSlot;
  int32_t loss = 0;  // kSeedGradient: which of the model's

  Instruction() {
    in.fill(kNoSlot);
    in_gradient.fill(kNoSlot);
  }
  /// Calls read(slot) and write(slot) for what the instruction touches; adding is writing.
  template <class Read, class Write>
  void visit(Read read, Write write) const {
    const auto touch = [](int32_t slot, auto& use) {
      if (slot != kNoSlot) use(slot);
    };
    for (int32_t slot : in) touch(slot, read);
    touch(out_gradient, read);
    for (int32_t slot : in_gradient) touch(slot, write);
    if (action == Action::kForward) {
      touch(out, write);
      touch(stats, write);
    } else {
      touch(out, read);
      touch(stats, read);
    }
  }
};

/// Where a slot's memory comes from.
enum class SlotKind : uint8_t {
  kOwn,       // the layout decides
  kIncoming,  // a tensor that a message has brought: values, gradients
  kOutgoing,  // a tensor that a message will carry away: values, gradients
  kInput,     // an input of the model
};

struct Slot {
  SlotKind kind = SlotKind::kOwn;
  ValueId value = {};  // the value, or that whose gradient this is; invalid for
  OpId stats_of = {};  // what this operation keeps
};

struct Program {
  /// Of one stage of a cut. `recompute_all` = as if every block had recompute set.
  static Program for_stage(const Graph& graph, const Cut& cut, core::StageId stage,
                           bool recompute_all);
  /// Of all that is needed for one value, forward only.
  static Program for_value(const Graph& graph, ValueId value);

  [[nodiscard]] const std::vector<Instruction>& code(core::TaskKind kind) const {
    return code_by_kind[static_cast<size_t>(kind)];
  }
  [[nodiscard]] std::vector<Instruction>& code(core::TaskKind kind) {
    return code_by_kind[static_cast<size_t>(kind)];
  }

  std::array<std::vector<Instruction>, 4> code_by_kind;
  std::vector<Slot> slots;
  std::vector<bool> kept;  // by slot: backward reads what forward has written
  /// What is read after the forward: losses of the stage, or the value asked for.
  struct Result {
    int32_t loss = 0;  // which of the model's
    int32_t slot = kNoSlot;
  };
  std::vector<Result> results;
  // Slots by value, kNoSlot where this stage has none.
  std::vector<int32_t> value_slot;
  std::vector<int32_t> gradient_slot;       // complete once all readers in this stage are done
  std::vector<int32_t> sent_gradient_slot;  // what a later stage has sent
};

}  // namespace rrfp::model
