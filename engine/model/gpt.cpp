// SPDX-License-Identifier: Apache-2.0
#include "engine/model/gpt.h"

#include "engine/model/recipe.h"

namespace rrfp::model {

using core::Code;
using core::Status;

Status check_range(const std::string& name, int32_t value, int32_t least, int32_t most) {
  if (value >= least && value <= most) return {};
  return {Code::kInvalidArgument, name + " is " + std::to_string(value) + "; expected " +
                                      std::to_string(least) + " to " + std::to_string(most)};
}

Status check(const GptOptions& o) {
  if (Status s = check_range("vocabulary", o.vocabulary); !s.ok()) return s;
  if (Status s = check_range("context", o.context); !s.ok()) return s;
  if (Status s = check_range("layers", o.layers, 1, kLayersMax); !s.ok()) return s;
  if (Status s = check_range("dim", o.dim); !s.ok()) return s;
  if (Status s = check_range("heads", o.heads); !s.ok()) return s;
  if (o.dim % o.heads != 0) {
    return {Code::kInvalidArgument,
            "dim is " + std::to_string(o.dim) +
                "; it is not divisible by heads = " + std::to_string(o.heads)};
  }
  if (o.kv_heads < 0 || (o.kv_heads > 0 && o.heads % o.kv_heads != 0)) {
    return {Code::kInvalidArgument,
            "kv_heads is " + std::to_string(o.kv_heads) +
                "; expected a divisor of heads = " + std::to_string(o.heads) + ", or 0"};
  }
  if (o.rotary && (o.dim / o.heads) % 2 != 0) {
    return {Code::kInvalidArgument, "dim / heads is " + std::to_string(o.dim / o.heads) +
                                        "; rotary positions need an even number"};
  }
  if (o.hidden != 0) {
    if (Status s = check_range("hidden", o.hidden); !s.ok()) return s;
  }
  if (!(o.dropout >= 0 && o.dropout < 1)) {
    return {Code::kInvalidArgument,
            "dropout is " + std::to_string(o.dropout) + "; expected 0 <= dropout < 1"};
  }
  return {};
}

LayerStack stack_of(const GptOptions& o) {
  return {.layers = o.layers,
          .dim = o.dim,
          .heads = o.heads,
          .kv_heads = o.kv_heads,
          .hidden = o.hidden,
          .dropout = o.dropout,
          .causal = true,
          .rotary = o.rotary,
          .rms_norm = o.rms_norm,
          .swiglu = o.swiglu};
}

Status build_gpt(const GptOptions& o, Graph& out) {
  if (Status s = check(o); !s.ok()) return s;
  Graph graph;
  TransformerBuilder b(graph);
  const Shape any = {Shape::kUnknown, Shape::kUnknown};
  const ValueId tokens = b.input("tokens", ValueType::kI32, any);
  const ValueId targets = b.input("targets", ValueType::kI32, any);
  b.begin_block("embedding");
  const ParameterId table = b.weight("embedding.weight", {o.vocabulary, o.dim});
  ValueId x = b.add({.kind = OpKind::kEmbedding, .inputs = {tokens}, .parameters = {table}});
  if (!o.rotary) {
    const ParameterId positions = b.weight("positions.weight", {o.context, o.dim});
    x = b.add({.kind = OpKind::kPositions, .inputs = {x}, .parameters = {positions}});
  }
  x = b.dropout(x, o.dropout);
  const LayerStack stack = stack_of(o);
  for (int32_t k = 0; b.status().ok() && k < o.layers; ++k) {
    const std::string name = "layers." + std::to_string(k);
    b.begin_block(name);
    x = b.layer(stack, x, name);
  }
  b.head(stack, x, targets, o.vocabulary, o.tied ? table : ParameterId());
  if (!b.status().ok()) return b.status();
  graph.recipe = recipe_of(o);
  out = std::move(graph);
  return {};
}

}  // namespace rrfp::model
