// SPDX-License-Identifier: Apache-2.0
#include "engine/model/recipe.h"

#include <nlohmann/json.hpp>

namespace rrfp::model {

using core::Code;
using core::Status;

namespace {

constexpr const char* kGpt = "gpt";
constexpr const char* kVisionLanguage = "vision_language";

void write(const GptOptions& o, nlohmann::ordered_json& json) {
  json["vocabulary"] = o.vocabulary;
  json["context"] = o.context;
  json["layers"] = o.layers;
  json["dim"] = o.dim;
  json["heads"] = o.heads;
  json["kv_heads"] = o.kv_heads;
  json["hidden"] = o.hidden;
  json["dropout"] = o.dropout;
  json["tied"] = o.tied;
  json["rotary"] = o.rotary;
  json["rms_norm"] = o.rms_norm;
  json["swiglu"] = o.swiglu;
}

void read(const nlohmann::json& json, GptOptions& o) {
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
}

void write(const VisionOptions& o, nlohmann::ordered_json& json) {
  json["image_size"] = o.image_size;
  json["patch"] = o.patch;
  json["layers"] = o.layers;
  json["dim"] = o.dim;
  json["heads"] = o.heads;
  json["hidden"] = o.hidden;
  json["frozen"] = o.frozen;
  json["conv_stem"] = o.conv_stem;
}

void read(const nlohmann::json& json, VisionOptions& o) {
  json.at("image_size").get_to(o.image_size);
  json.at("patch").get_to(o.patch);
  json.at("layers").get_to(o.layers);
  json.at("dim").get_to(o.dim);
  json.at("heads").get_to(o.heads);
  json.at("hidden").get_to(o.hidden);
  json.at("frozen").get_to(o.frozen);
  json.at("conv_stem").get_to(o.conv_stem);
}

}  // namespace

std::string recipe_of(const GptOptions& options) {
  nlohmann::ordered_json json = {{"kind", kGpt}};
  write(options, json);
  return json.dump();
}

std::string recipe_of(const GptOptions& language, const VisionOptions& vision) {
  nlohmann::ordered_json json = {{"kind", kVisionLanguage}};
  write(language, json["language"]);
  write(vision, json["vision"]);
  return json.dump();
}

Status build_from_recipe(std::string_view recipe, std::string_view source, Graph& out) {
  GptOptions language;
  VisionOptions vision;
  bool with_vision = false;
  try {
    const nlohmann::json json = nlohmann::json::parse(recipe);
    const std::string kind = json.at("kind");
    with_vision = kind == kVisionLanguage;
    if (!with_vision && kind != kGpt) {
      return {Code::kBadData, std::string(source) + ": the model is of kind \"" + kind +
                                  "\"; expected \"" + kGpt + "\" or \"" + kVisionLanguage + "\""};
    }
    read(with_vision ? json.at("language") : json, language);
    if (with_vision) read(json.at("vision"), vision);
  } catch (const nlohmann::json::exception& e) {
    return {Code::kBadData, std::string(source) +
                                " does not say how to build the model (it was not made by a "
                                "built-in one?): " +
                                e.what()};
  }
  Status s = with_vision ? build_vision_language(language, vision, out) : build_gpt(language, out);
  if (s.ok()) return s;
  return {Code::kBadData, std::string(source) + ": " + s.text()};
}

}  // namespace rrfp::model
