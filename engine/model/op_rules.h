// SPDX-License-Identifier: Apache-2.0
//
// What each kind of operation does: shapes, what it keeps, forward, input gradient, weight
// gradient. One table, looked up by kind. The rules know nothing of stages and memory plans; a run
// gets pointers for what it reads and writes.
//
// The input gradient and the weight gradient are apart, so that B splits into I and W everywhere.
#pragma once

#include <array>
#include <span>

#include "engine/model/graph.h"
#include "kernels/kernels.h"

namespace rrfp::model {

/// Keys and values that an attention has seen, for generating token by token.
struct KeyValueCache {
  float* keys = nullptr;  // capacity x kv_heads * head_dim
  float* values = nullptr;
  int64_t length = 0;  // positions that are in it
};

/// One execution of one operation on one microbatch.
struct OpRun {
  const kernels::Kernels* k = nullptr;
  const Op* op = nullptr;
  std::array<const Shape*, Op::kInputsMax> in_shape = {};
  std::array<const float*, Op::kInputsMax> in = {};  // i32 inputs: see ids()
  const Shape* out_shape = nullptr;
  float* out = nullptr;
  float* stats = nullptr;  // what forward keeps for backward beside values
  std::array<const float*, Op::kParametersMax> weight = {};
  std::array<float*, Op::kParametersMax> weight_gradient = {};  // added to; null = frozen
  const float* out_gradient = nullptr;
  std::array<float*, Op::kInputsMax> in_gradient = {};  // null = not wanted
  std::array<bool, Op::kInputsMax> accumulate = {};     // in_gradient has something in it already
  float* scratch = nullptr;
  kernels::RandomKey random;
  bool training = false;
  int64_t first_position = 0;      // of the sequences, when generating
  KeyValueCache* cache = nullptr;  // attention, when generating

  [[nodiscard]] const int32_t* ids(size_t input) const {
    return reinterpret_cast<const int32_t*>(in[input]);
  }
};

/// Which inputs, as bits, and what else a gradient reads.
struct Reads {
  uint32_t inputs = 0;
  bool output = false;
  bool stats = false;
};

struct OpRules {
  const char* name;
  /// Checks inputs and parameters and gives the shape of the output, as far as it is known.
  core::Status (*infer)(const Graph& graph, const Op& op, std::span<const Shape> in, Shape& out);
  /// Floats, for known shapes; null = none.
  int64_t (*stats_size)(const OpRun& run);
  int64_t (*scratch_size)(const OpRun& run);
  void (*forward)(const OpRun& run);
  /// Null if no input can have a gradient.
  void (*input_gradient)(const OpRun& run);
  /// Null if there are no parameters.
  void (*weight_gradient)(const OpRun& run);
  Reads input_gradient_reads;
  Reads weight_gradient_reads;
};

/// Null for an unknown kind.
[[nodiscard]] const OpRules* find_rules(OpKind kind);
[[nodiscard]] inline const OpRules& rules(const Op& op) {
  return *find_rules(op.kind);
}

// The parts of the table, by file.
namespace rules_of {
extern const OpRules kLinear, kEmbedding, kPositions;              // op_linear.cpp
extern const OpRules kLayerNorm, kRmsNorm;                         // op_norm.cpp
extern const OpRules kGelu, kSilu, kSwiglu, kDropout, kAdd, kMul;  // op_elementwise.cpp
extern const OpRules kRotary, kAttention;                          // op_attention.cpp
extern const OpRules kConcat, kReshape, kMean;                     // op_shape.cpp
extern const OpRules kCrossEntropy, kSquaredError;                 // op_loss.cpp
extern const OpRules kPatches, kMergeRows;                         // op_pictures.cpp
}  // namespace rules_of

}  // namespace rrfp::model
