// SPDX-License-Identifier: Apache-2.0
//
// What the built-in models are made of: pre-norm transformer layers (Xiong et al. 2020), and the
// small parts around them.
#pragma once

#include <string>

#include "engine/model/graph.h"

namespace rrfp::model {

/// Layers of one kind, one above the other.
struct LayerStack {
  int32_t layers = 0;
  int32_t dim = 0;
  int32_t heads = 0;
  int32_t kv_heads = 0;  // 0 = heads
  int32_t hidden = 0;    // 0 = 4 dim, with swiglu 8/3 dim rounded up to a multiple of 8
  double dropout = 0;
  bool causal = false;
  bool rotary = false;
  bool rms_norm = false;
  bool swiglu = false;
  ValueId segments = {};   // attention stays inside of them; may be none
  ValueId positions = {};  // for rotary; none = the place in the sequence
};

/// Adds parts to a graph; the first failure sticks and later calls do nothing.
class TransformerBuilder {
 public:
  static constexpr double kDeviation = 0.02;  // of weights, at first

  explicit TransformerBuilder(Graph& graph) : graph_(graph) {}

  [[nodiscard]] const core::Status& status() const { return status_; }
  /// Of the parameters that are added from now on.
  void set_frozen(bool frozen) { frozen_ = frozen; }

  ValueId input(const std::string& name, ValueType type, const Shape& shape);
  void begin_block(const std::string& name);
  ParameterId weight(const std::string& name, const Shape& shape, double deviation = kDeviation);
  ValueId add(Op op);
  ValueId linear(ValueId x, const std::string& name, int64_t in, int64_t out,
                 double deviation = kDeviation);
  ValueId norm(ValueId x, const std::string& name, int64_t dim, bool rms);
  ValueId dropout(ValueId x, double probability);
  /// One layer, in the current block.
  ValueId layer(const LayerStack& stack, ValueId x, const std::string& name);
  /// Block "head", which ends a language model: the logits are the output, the cross-entropy of
  /// each token the loss. `table` = the output layer too, or none.
  void head(const LayerStack& stack, ValueId x, ValueId targets, int64_t vocabulary,
            ParameterId table);

 private:
  ParameterId parameter(Parameter p);
  ParameterId vector(const std::string& name, int64_t size, double value);
  ValueId join(const LayerStack& stack, ValueId x, ValueId branch);
  ValueId attention(const LayerStack& stack, ValueId x, const std::string& name);
  ValueId feed_forward(const LayerStack& stack, ValueId x, const std::string& name);

  Graph& graph_;
  bool frozen_ = false;
  core::Status status_;
};

}  // namespace rrfp::model
