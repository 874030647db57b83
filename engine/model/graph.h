// SPDX-License-Identifier: Apache-2.0
//
// A model: inputs, parameters and operations in the order in which they compute, grouped in blocks.
// It knows nothing of stages, devices or memory.
#pragma once

#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/core/ids.h"
#include "engine/core/status.h"
#include "engine/model/shape.h"

namespace rrfp::model {

using ValueId = core::Id<struct ValueTag>;
using ParameterId = core::Id<struct ParameterTag>;
using OpId = core::Id<struct OpTag>;
using BlockId = core::Id<struct BlockTag>;

enum class ValueType : uint8_t { kF32, kI32 };

/// The values are part of the C ABI.
enum class OpKind : int32_t {
  kLinear = 1,
  kEmbedding = 2,
  kPositions = 3,
  kRotary = 4,
  kLayerNorm = 5,
  kRmsNorm = 6,
  kGelu = 7,
  kSilu = 8,
  kSwiglu = 9,
  kAttention = 10,
  kDropout = 11,
  kAdd = 12,
  kMul = 13,
  kConcat = 14,
  kReshape = 15,
  kMean = 16,
  kCrossEntropy = 17,
  kSquaredError = 18,
  kPatches = 19,
  kMergeRows = 20,
};
constexpr OpKind kLastOpKind = OpKind::kMergeRows;

/// What an operation can be told, beside its inputs and parameters.
struct OpAttributes {
  bool causal = false;
  int32_t axis = -1;
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t ignore_index = -100;
  double probability = 0;
  double epsilon = 1e-5;
  double base = 10000;
  int32_t kernel = 0;
  int32_t stride = 0;
  int32_t padding = 0;
  Shape shape;
};

struct Op {
  static constexpr size_t kInputsMax = 16;
  static constexpr size_t kParametersMax = 2;

  OpKind kind = OpKind::kAdd;
  std::vector<ValueId> inputs = {};
  std::vector<ParameterId> parameters = {};
  OpAttributes attributes = {};
  ValueId output = {};
  BlockId block = {};
};

struct Value {
  ValueType type = ValueType::kF32;
  Shape shape;                  // extents may be unknown
  OpId producer;                // invalid for an input of the model
  std::string name;             // inputs only
  int32_t input = -1;           // inputs only: its number among them
  bool wants_gradient = false;  // a trainable parameter lies before it
};

/// A value whose elements are losses, and what its reduced sum counts in the whole.
struct Loss {
  ValueId value;
  double factor = 1;
};

enum class Init : int32_t { kConstant = 0, kNormal = 1, kUniform = 2 };

struct Parameter {
  std::string name;
  Shape shape;
  bool frozen = false;
  bool decay = true;
  Init init = Init::kConstant;
  double init_value = 0;
  double init_scale = 0;
};

struct Block {
  std::string name;
  bool recompute = false;
};

class Graph {
 public:
  static constexpr int32_t kCountMax = 1 << 20;  // of values, parameters, blocks
  static constexpr size_t kLossesMax = 64;

  core::Status begin_block(Block block, BlockId& out);
  core::Status add_input(std::string name, ValueType type, const Shape& shape, ValueId& out);
  core::Status add_parameter(Parameter parameter, ParameterId& out);
  core::Status add_op(Op op, ValueId& out);
  /// The first loss.
  core::Status set_loss(ValueId value);
  /// One more.
  core::Status add_loss(const Loss& loss);
  core::Status set_output(ValueId value);

  [[nodiscard]] std::span<const Value> values() const { return values_; }
  [[nodiscard]] std::span<const Parameter> parameters() const { return parameters_; }
  [[nodiscard]] std::span<const Op> ops() const { return ops_; }
  [[nodiscard]] std::span<const Block> blocks() const { return blocks_; }
  [[nodiscard]] std::span<const ValueId> inputs() const { return inputs_; }
  [[nodiscard]] const Value& value(ValueId id) const { return values_[id.index()]; }
  [[nodiscard]] const Parameter& parameter(ParameterId id) const { return parameters_[id.index()]; }
  [[nodiscard]] const Op& op(OpId id) const { return ops_[id.index()]; }
  /// The first one is that of set_loss().
  [[nodiscard]] std::span<const Loss> losses() const { return losses_; }
  [[nodiscard]] ValueId output() const { return output_; }

  /// The inputs of a model that is given these shapes, and all that follows from them, by value.
  /// Errors: kTensorMismatch names the input or the operation.
  /// With `needed`, by operation, only these are looked at, and inputs that none of them reads may
  /// have any shape.
  core::Status infer(std::span<const Shape> input_shapes, std::vector<Shape>& out,
                     const std::vector<bool>* needed = nullptr) const;
  /// Operations that `target` depends on, by operation.
  [[nodiscard]] std::vector<bool> needed_for(ValueId target) const;
  /// Operations that any loss depends on.
  [[nodiscard]] std::vector<bool> needed_for_losses() const;

  /// How to build the model again, as a JSON object; empty if it was built by hand.
  std::string recipe;

 private:
  [[nodiscard]] core::Status check_value(const char* what, ValueId id) const;
  [[nodiscard]] core::Status check_loss(ValueId value) const;
  void add_needed(std::vector<bool>& needed) const;

  std::vector<Value> values_;
  std::vector<Parameter> parameters_;
  std::unordered_set<std::string> parameter_names_;
  std::vector<Op> ops_;
  std::vector<Block> blocks_;
  std::vector<ValueId> inputs_;
  std::vector<Loss> losses_;
  ValueId output_;
};

/// For error texts: the number, kind and block of an operation.
[[nodiscard]] std::string describe(const Graph& graph, const Op& op);
/// Whether files can hold the name: UTF-8, and not what safetensors reserves.
[[nodiscard]] bool is_storable_name(const std::string& name);
/// The whole model as a JSON object, for people.
[[nodiscard]] std::string describe(const Graph& graph);

}  // namespace rrfp::model
