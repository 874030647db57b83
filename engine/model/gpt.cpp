// SPDX-License-Identifier: Apache-2.0
#include "engine/model/gpt.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace rrfp::model {

using core::Code;
using core::Status;

namespace {

Status check(const GptOptions& o) {
  constexpr int32_t kLayersMax = 1 << 16;  // each adds up to 14 values: fewer than Graph::kCountMax
  const auto positive = [](const char* name, int32_t value, int32_t most = 1 << 24) -> Status {
    if (value >= 1 && value <= most) return {};
    return {Code::kInvalidArgument, std::string(name) + " is " + std::to_string(value) +
                                        "; expected 1 to " + std::to_string(most)};
  };
  if (Status s = positive("vocabulary", o.vocabulary); !s.ok()) return s;
  if (Status s = positive("context", o.context); !s.ok()) return s;
  if (Status s = positive("layers", o.layers, kLayersMax); !s.ok()) return s;
  if (Status s = positive("dim", o.dim); !s.ok()) return s;
  if (Status s = positive("heads", o.heads); !s.ok()) return s;
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
    if (Status s = positive("hidden", o.hidden); !s.ok()) return s;
  }
  if (!(o.dropout >= 0 && o.dropout < 1)) {
    return {Code::kInvalidArgument,
            "dropout is " + std::to_string(o.dropout) + "; expected 0 <= dropout < 1"};
  }
  return {};
}

/// Adds parts to a graph; the first failure sticks and later calls do nothing.
class Builder {
 public:
  Builder(const GptOptions& options, Graph& graph) : o_(options), graph_(graph) {}

  Status build() {
    const ValueId tokens = input("tokens");
    const ValueId targets = input("targets");
    begin_block("embedding");
    const ParameterId table = weight("embedding.weight", {o_.vocabulary, o_.dim}, kStd);
    ValueId x = add({.kind = OpKind::kEmbedding, .inputs = {tokens}, .parameters = {table}});
    if (!o_.rotary) {
      const ParameterId positions = weight("positions.weight", {o_.context, o_.dim}, kStd);
      x = add({.kind = OpKind::kPositions, .inputs = {x}, .parameters = {positions}});
    }
    x = dropout(x);
    for (int32_t layer = 0; status_.ok() && layer < o_.layers; ++layer) {
      const std::string name = "layers." + std::to_string(layer);
      begin_block(name);
      x = join(x, attention(norm(x, name + ".attention_norm"), name + ".attention"));
      x = join(x, feed_forward(norm(x, name + ".ffn_norm"), name + ".ffn"));
    }
    begin_block("head");
    x = norm(x, "norm");
    const ParameterId head = o_.tied ? table : weight("head.weight", {o_.vocabulary, o_.dim}, kStd);
    const ValueId logits = add({.kind = OpKind::kLinear, .inputs = {x}, .parameters = {head}});
    const ValueId loss = add({.kind = OpKind::kCrossEntropy, .inputs = {logits, targets}});
    if (status_.ok()) status_ = graph_.set_output(logits);
    if (status_.ok()) status_ = graph_.set_loss(loss);
    return status_;
  }

 private:
  static constexpr double kStd = 0.02;

  ValueId input(const char* name) {
    ValueId id;
    const Shape shape = {Shape::kUnknown, Shape::kUnknown};
    if (status_.ok()) status_ = graph_.add_input(name, ValueType::kI32, shape, id);
    return id;
  }
  void begin_block(const std::string& name) {
    BlockId id;
    if (status_.ok()) status_ = graph_.begin_block({.name = name}, id);
  }
  ParameterId parameter(Parameter p) {
    ParameterId id;
    if (status_.ok()) status_ = graph_.add_parameter(std::move(p), id);
    return id;
  }
  ParameterId weight(const std::string& name, const Shape& shape, double deviation) {
    return parameter(
        {.name = name, .shape = shape, .init = Init::kNormal, .init_scale = deviation});
  }
  // Biases and gains are not decayed.
  ParameterId vector(const std::string& name, int64_t size, double value) {
    return parameter({.name = name, .shape = {size}, .decay = false, .init_value = value});
  }
  ValueId add(Op op) {
    ValueId id;
    if (status_.ok()) status_ = graph_.add_op(std::move(op), id);
    return id;
  }

  ValueId linear(ValueId x, const std::string& name, int64_t in, int64_t out, double deviation) {
    const ParameterId w = weight(name + ".weight", {out, in}, deviation);
    const ParameterId b = vector(name + ".bias", out, 0);
    return add({.kind = OpKind::kLinear, .inputs = {x}, .parameters = {w, b}});
  }
  ValueId norm(ValueId x, const std::string& name) {
    const ParameterId gamma = vector(name + ".weight", o_.dim, 1);
    if (o_.rms_norm) return add({.kind = OpKind::kRmsNorm, .inputs = {x}, .parameters = {gamma}});
    const ParameterId beta = vector(name + ".bias", o_.dim, 0);
    return add({.kind = OpKind::kLayerNorm, .inputs = {x}, .parameters = {gamma, beta}});
  }
  ValueId dropout(ValueId x) {
    if (o_.dropout == 0) return x;
    Op op = {.kind = OpKind::kDropout, .inputs = {x}};
    op.attributes.probability = o_.dropout;
    return add(std::move(op));
  }
  ValueId join(ValueId x, ValueId branch) {
    return add({.kind = OpKind::kAdd, .inputs = {x, dropout(branch)}});
  }
  // What ends a branch starts smaller, so that the sum over layers does not grow with their number.
  [[nodiscard]] double end_deviation() const { return kStd / std::sqrt(2.0 * o_.layers); }

  ValueId attention(ValueId x, const std::string& name) {
    const int32_t head_dim = o_.dim / o_.heads;
    const int32_t kv_heads = o_.kv_heads != 0 ? o_.kv_heads : o_.heads;
    const int64_t width = int64_t{o_.heads + 2 * kv_heads} * head_dim;
    ValueId qkv = linear(x, name + ".qkv", o_.dim, width, kStd);
    if (o_.rotary) {
      Op turn = {.kind = OpKind::kRotary, .inputs = {qkv}};
      turn.attributes.heads = o_.heads + kv_heads;
      turn.attributes.head_dim = head_dim;
      qkv = add(std::move(turn));
    }
    Op op = {.kind = OpKind::kAttention, .inputs = {qkv}};
    op.attributes.heads = o_.heads;
    op.attributes.kv_heads = kv_heads;
    op.attributes.causal = true;
    return linear(add(std::move(op)), name + ".out", o_.dim, o_.dim, end_deviation());
  }
  ValueId feed_forward(ValueId x, const std::string& name) {
    if (o_.swiglu) {
      const int64_t hidden = o_.hidden != 0 ? o_.hidden : (int64_t{8} * o_.dim / 3 + 7) / 8 * 8;
      const ValueId gate = linear(x, name + ".gate", o_.dim, hidden, kStd);
      const ValueId up = linear(x, name + ".up", o_.dim, hidden, kStd);
      const ValueId y = add({.kind = OpKind::kSwiglu, .inputs = {gate, up}});
      return linear(y, name + ".down", hidden, o_.dim, end_deviation());
    }
    const int64_t hidden = o_.hidden != 0 ? o_.hidden : int64_t{4} * o_.dim;
    const ValueId up = linear(x, name + ".up", o_.dim, hidden, kStd);
    const ValueId y = add({.kind = OpKind::kGelu, .inputs = {up}});
    return linear(y, name + ".down", hidden, o_.dim, end_deviation());
  }

  const GptOptions& o_;
  Graph& graph_;
  Status status_;
};

}  // namespace

Status build_gpt(const GptOptions& options, Graph& out) {
  if (Status s = check(options); !s.ok()) return s;
  Graph graph;
  if (Status s = Builder(options, graph).build(); !s.ok()) return s;
  const nlohmann::ordered_json recipe = {
      {"kind", "gpt"},
      {"vocabulary", options.vocabulary},
      {"context", options.context},
      {"layers", options.layers},
      {"dim", options.dim},
      {"heads", options.heads},
      {"kv_heads", options.kv_heads},
      {"hidden", options.hidden},
      {"dropout", options.dropout},
      {"tied", options.tied},
      {"rotary", options.rotary},
      {"rms_norm", options.rms_norm},
      {"swiglu", options.swiglu},
  };
  graph.recipe = recipe.dump();
  out = std::move(graph);
  return {};
}

Status build_from_recipe(std::string_view recipe, std::string_view source, Graph& out) {
  GptOptions o;
  try {
    const nlohmann::json json = nlohmann::json::parse(recipe);
    const std::string kind = json.at("kind");
    if (kind != "gpt") {
      return {Code::kBadData,
              std::string(source) + ": the model is of kind \"" + kind + "\"; expected \"gpt\""};
    }
    json.at("vocabulary").get_to(o.vocabulary);
    json.at("context").get_to(o.context);
    json.at("layers").get_to(o.layers);
    json.at("dim").get_to(o.dim);
    json.at("heads").get_to(o.heads);
    json.at("kv_heads").get_to(o.kv_heads);
    json.at("hidden").get_to(o.hidden);
    json.at("dropout").get_to(o.dropout);
    json.at("tied").get_to(o.tied);
    json.at("rotary").get_to(o.rotary);
    json.at("rms_norm").get_to(o.rms_norm);
    json.at("swiglu").get_to(o.swiglu);
  } catch (const nlohmann::json::exception& e) {
    return {Code::kBadData, std::string(source) +
                                " does not say how to build the model (it was not made by the "
                                "built-in one?): " +
                                e.what()};
  }
  Status s = build_gpt(o, out);
  if (s.ok()) return s;
  return {Code::kBadData, std::string(source) + ": " + s.text()};
}

}  // namespace rrfp::model
