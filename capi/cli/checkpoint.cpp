// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/checkpoint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "capi/cli/api.h"

namespace rrfp::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kPrefix = "step-";

/// The member of an object, or null.
Json member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? Json() : *found;
}

bool has_state(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "state.json", ignored);
}

/// The width of the feed-forward layers, or 0 if the model has none.
int64_t hidden_of(const std::string& path) {
  const auto model = create<Model>(rrfp_model_create_from_checkpoint, path.c_str());
  auto info = prepared(rrfp_model_info_init);
  call(rrfp_model_get_info, model.get(), &info);
  for (int32_t i = 0; i < info.parameters; ++i) {
    if (text_of(rrfp_model_parameter_name, model.get(), i) != "layers.0.ffn.up.weight") continue;
    int32_t ndim = 0;
    std::array<int64_t, RRFP_DIMS_MAX> shape{};
    call(rrfp_model_parameter_shape, model.get(), i, &ndim, shape.data());
    return shape[0];
  }
  return 0;
}

/// Zeros that stand for what follows from other options, so that it can be compared.
void write_out_defaults(const std::string& path, Json& model) {
  if (model.value("kv_heads", -1) == 0) model["kv_heads"] = model.value("heads", 0);
  if (model.value("hidden", -1) == 0) model["hidden"] = hidden_of(path);
}

/// What the options of --vision would be for a model. A recipe of one that reads pictures has those
/// of both parts in objects of their own.
Json vision_of(const Json& recipe) {
  const Json encoder = member(recipe, "vision");
  Json options = {{"vision", encoder.is_object()}};
  if (!encoder.is_object()) return options;
  constexpr std::array<std::array<const char*, 2>, 8> kNames = {{{"image_size", "image_size"},
                                                                 {"patch", "patch"},
                                                                 {"layers", "vision_layers"},
                                                                 {"dim", "vision_dim"},
                                                                 {"heads", "vision_heads"},
                                                                 {"hidden", "vision_hidden"},
                                                                 {"conv_stem", "conv_stem"},
                                                                 {"frozen", "freeze_vision"}}};
  for (const auto& [theirs, ours] : kNames) options[ours] = member(encoder, theirs);
  if (options["vision_hidden"] == 0) {
    options["vision_hidden"] = 4 * options.value("vision_dim", int64_t{0});
  }
  return options;
}

std::string name_of(int64_t step) {
  return format("step-%08lld", static_cast<long long>(step));
}

/// The step in the name of a checkpoint's folder, or -1.
int64_t step_of(const std::string& name) {
  int64_t step = -1;
  if (name.compare(0, kPrefix.size(), kPrefix) != 0) return -1;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  return name_of(step) == name ? step : -1;
}

}  // namespace

bool CheckpointInfo::reads_pictures() const {
  return member(vision, "vision") == true;
}

bool CheckpointInfo::is_bytes() const {
  if (reads_pictures()) return true;
  const Json format = member(data, "format");
  return format.is_string() ? format == "bytes" : vocabulary() == 256;
}

VisionOptions CheckpointInfo::vision_options() const {
  VisionOptions options;
  CLI::App nobody;  // gives these options: the values have the checks of the train command
  Settings settings(nobody, "");
  add_vision_options(settings, options);
  settings.take_defaults(vision);
  return options;
}

int64_t CheckpointInfo::pixels_max() const {
  const Json value = member(data, "pixels_max");
  return value.is_number_integer() ? std::max(int64_t{0}, value.get<int64_t>()) : 0;
}

int32_t CheckpointInfo::number(const char* key) const {
  const Json value = member(model, key);
  if (value.is_number_integer()) return value.get<int32_t>();
  bad_input(path + " does not say the " + key + " of its model: only those of language models do");
}

CheckpointInfo describe_checkpoint(const std::string& path) {
  CheckpointInfo info;
  info.path = path;
  info.is_folder = !has_state(path);
  if (const int64_t newest = info.is_folder ? newest_step(path) : -1; newest >= 0) {
    info.path = checkpoint_path(path, newest);
  }
  info.state = Json::parse(text_of(rrfp_checkpoint_describe, info.path.c_str()), nullptr, false);
  const Json step = member(info.state, "step");
  if (!step.is_number_integer()) bad_input(path + ": its state.json does not say the step");
  info.step = step.get<int64_t>();

  const Json user = member(info.state, "user");
  info.data = member(user, "data");
  info.training = member(user, "training");
  info.model = member(info.state, "model");
  if (!info.model.is_object()) info.model = Json::object();
  try {
    info.vision = vision_of(info.model);
    if (info.reads_pictures()) info.model = member(info.model, "language");
    write_out_defaults(info.path, info.model);
  } catch (const Json::exception&) {
    bad_input(path + ": its state.json describes no model");
  }
  return info;
}

int64_t newest_step(const std::string& root) {
  int64_t newest = -1;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root, ignored)) {
    const int64_t step = step_of(entry.path().filename().string());
    if (step > newest && has_state(entry.path())) newest = step;
  }
  return newest;
}

std::string checkpoint_path(const std::string& root, int64_t step) {
  return (fs::path(root) / name_of(step)).string();
}

std::string user_json(const Json& data, const Json& training) {
  const Json user = {{"data", data}, {"training", training}};
  return user.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace rrfp::cli
