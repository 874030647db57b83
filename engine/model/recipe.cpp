// SPDX-License-Identifier: Apache-2.0
#include "engine/model/recipe.h"

#include <concepts>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace rrfp::model {

using core::Code;
using core::Status;

namespace {

constexpr const char* kGpt = "gpt";
constexpr const char* kVisionLanguage = "vision_language";

// Every field is named once, so that what is written is what is read. `Options` may be const.
template <class Options, class Use>
requires std::same_as<std::remove_const_t<Options>, GptOptions>
void for_each_field(Options& o, Use use) {
  use("vocabulary", o.vocabulary);
  use("context", o.context);
  use("layers", o.layers);
  use("dim", o.dim);
  use("heads", o.heads);
  use("kv_heads", o.kv_heads);
  use("hidden", o.hidden);
  use("dropout", o.dropout);
  use("tied", o.tied);
  use("rotary", o.rotary);
  use("rms_norm", o.rms_norm);
  use("swiglu", o.swiglu);
}

template <class Options, class Use>
requires std::same_as<std::remove_const_t<Options>, VisionOptions>
void for_each_field(Options& o, Use use) {
  use("image_size", o.image_size);
  use("patch", o.patch);
  use("layers", o.layers);
  use("dim", o.dim);
  use("heads", o.heads);
  use("hidden", o.hidden);
  use("frozen", o.frozen);
  use("conv_stem", o.conv_stem);
}

template <class Options>
void write(const Options& options, nlohmann::ordered_json& json) {
  for_each_field(options, [&](const char* name, const auto& value) { json[name] = value; });
}

template <class Options>
void read(const nlohmann::json& json, Options& options) {
  for_each_field(options, [&](const char* name, auto& value) { json.at(name).get_to(value); });
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
