// SPDX-License-Identifier: Apache-2.0
//
// The data of a step, and what is computed from its shapes once.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/model/layout.h"

namespace rrfp::train {

/// One input of one microbatch. The memory is the caller's; f32 or i32, as the model says.
struct InputArray {
  model::Shape shape;
  model::ValueType type = model::ValueType::kF32;
  const void* data = nullptr;
};

struct Batch {
  int32_t microbatches = 0;
  int32_t rounds = 1;
  bool keep_gradients = false;
  int64_t random_step = 0;  // names the random numbers of the step; 0 = the trainer's step
  /// [microbatch][input of the model], row by row.
  std::span<const InputArray> inputs;
  /// Empty, or by microbatch: of all its losses.
  std::span<const double> loss_factors;
};

/// All that follows from the shapes of one microbatch, for every stage.
struct ShapePlan {
  std::vector<model::Shape> inputs;
  std::vector<model::Shape> values;
  std::vector<model::Layout> layouts;     // by stage
  std::vector<int64_t> activation_bytes;  // by stage: from F to the end of the backward pass
  std::vector<int64_t> stage_elements;    // by stage: of all values that it makes
  int64_t elements = 0;                   // of all values of the model: how large it is
  /// By stage: whether it takes no part, since all that it makes and all that enters it from other
  /// stages is empty. That changes no sum of finite numbers, so results do not depend on the cut.
  std::vector<bool> skips;
  bool any_skip = false;
};

/// Keeps plans by input shapes. Training repeats few of them.
class ShapePlans {
 public:
  static constexpr size_t kPlansMax = 256;

  ShapePlans(const model::Graph& graph, const model::Cut& cut,
             const std::vector<model::Program>& programs, const kernels::Kernels& kernels)
      : graph_(graph), cut_(cut), programs_(programs), kernels_(kernels) {}

  /// The plan for one microbatch; shared, since the cache forgets the oldest beyond kPlansMax.
  /// Allocates only for shapes that it does not have.
  core::Status find(std::span<const InputArray> inputs, std::shared_ptr<const ShapePlan>& out);

 private:
  core::Status make(std::span<const InputArray> inputs, std::shared_ptr<const ShapePlan>& out);
  void measure_stages(ShapePlan& plan) const;

  const model::Graph& graph_;
  const model::Cut& cut_;
  const std::vector<model::Program>& programs_;
  const kernels::Kernels& kernels_;
  std::deque<std::shared_ptr<const ShapePlan>> plans_;
};

/// Which numbers the integer inputs of a model may have, found from the operations that read them.
class InputChecks {
 public:
  /// With `needed`, by operation, only these count.
  explicit InputChecks(const model::Graph& graph, const std::vector<bool>* needed = nullptr);

  /// kTensorMismatch (type, null), kOutOfRange: names the microbatch, the input and the position.
  [[nodiscard]] core::Status check(int32_t microbatch, std::span<const InputArray> inputs,
                                   const ShapePlan& plan) const;

 private:
  struct Limit {
    enum class Kind : uint8_t {
      kTableRows,  // of a parameter
      kClasses,    // of a value, and one number more
      kValueRows,  // of a value, and -1
      kPositions,  // 0 and more
      kSegments,   // anything, in runs along the last axis
    };
    Kind kind = Kind::kTableRows;
    int32_t input = 0;
    model::ParameterId table = {};
    model::ValueId value = {};
    int32_t also = -1;  // with a value
    bool operator==(const Limit&) const = default;
  };
  /// Where the first number stands that is not allowed, and what is; -1 = all are.
  [[nodiscard]] int64_t find_bad(const Limit& limit, const InputArray& input, const ShapePlan& plan,
                                 std::string& expected) const;

  const model::Graph& graph_;
  std::vector<Limit> limits_;
};

/// How many elements of a loss of a microbatch count: all, or for a cross-entropy those whose
/// target is not ignored.
[[nodiscard]] int64_t loss_weight(const model::Graph& graph, model::ValueId loss,
                                  std::span<const InputArray> inputs, const ShapePlan& plan);

}  // namespace rrfp::train
