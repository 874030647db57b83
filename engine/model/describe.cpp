// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "engine/model/op_rules.h"

namespace rrfp::model {

using Json = nlohmann::ordered_json;

namespace {

Json shape_json(const Shape& shape) {
  const std::span<const int64_t> extents = shape.extents();
  return std::vector<int64_t>(extents.begin(), extents.end());
}

template <class Id>
Json ids_json(const std::vector<Id>& ids) {
  Json list = Json::array();
  for (Id id : ids) list.push_back(id.value);
  return list;
}

/// Those that an operation of this kind looks at.
Json attributes_json(const Op& op) {
  const OpAttributes& a = op.attributes;
  switch (op.kind) {
    case OpKind::kRotary: return {{"heads", a.heads}, {"head_dim", a.head_dim}, {"base", a.base}};
    case OpKind::kLayerNorm:
    case OpKind::kRmsNorm: return {{"epsilon", a.epsilon}};
    case OpKind::kAttention:
      return {{"heads", a.heads},
              {"kv_heads", a.kv_heads != 0 ? a.kv_heads : a.heads},
              {"causal", a.causal}};
    case OpKind::kDropout: return {{"probability", a.probability}};
    case OpKind::kConcat:
    case OpKind::kMean: return {{"axis", a.axis}};
    case OpKind::kCrossEntropy: return {{"ignore_index", a.ignore_index}};
    case OpKind::kReshape: return {{"shape", shape_json(a.shape)}};
    case OpKind::kPatches:
      return {{"kernel", a.kernel}, {"stride", a.stride}, {"padding", a.padding}};
    default: return Json::object();
  }
}

}  // namespace

bool is_storable_name(const std::string& name) {
  try {
    return name != "__metadata__" && !Json(name).dump().empty();
  } catch (const Json::exception&) {
    return false;
  }
}

std::string describe(const Graph& graph) {
  Json json;
  json["recipe"] = graph.recipe.empty() ? Json() : Json::parse(graph.recipe);
  for (ValueId input : graph.inputs()) {
    const Value& value = graph.value(input);
    json["inputs"].push_back({{"name", value.name},
                              {"value", input.value},
                              {"type", value.type == ValueType::kI32 ? "i32" : "f32"},
                              {"shape", shape_json(value.shape)}});
  }
  for (const Parameter& parameter : graph.parameters()) {
    json["parameters"].push_back({{"name", parameter.name},
                                  {"shape", shape_json(parameter.shape)},
                                  {"frozen", parameter.frozen}});
  }
  for (const Block& block : graph.blocks()) {
    json["blocks"].push_back(
        {{"name", block.name}, {"recompute", block.recompute}, {"operations", Json::array()}});
  }
  for (const Op& op : graph.ops()) {
    json["blocks"][op.block.index()]["operations"].push_back(
        {{"op", rules(op).name},
         {"inputs", ids_json(op.inputs)},
         {"parameters", ids_json(op.parameters)},
         {"attributes", attributes_json(op)},
         {"value", op.output.value},
         {"shape", shape_json(graph.value(op.output).shape)}});
  }
  json["losses"] = Json::array();
  for (const Loss& loss : graph.losses()) {
    json["losses"].push_back({{"value", loss.value.value}, {"factor", loss.factor}});
  }
  json["output"] = graph.output().value;
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace rrfp::model
