// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/checkpoint.h"

#include <charconv>
#include <filesystem>

#include "capi/cli/api.h"
#include "capi/cli/options.h"

namespace rrfp::cli {
namespace {

constexpr std::string_view kPrefix = "step-";

/// The member of an object, or null.
Json member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? Json() : *found;
}

/// Zeros that stand for what follows from other options, so that it can be compared.
void write_out_defaults(Json& model) {
  if (model.value("kv_heads", -1) == 0) model["kv_heads"] = model.value("heads", 0);
  if (model.value("hidden", -1) == 0) {
    model["hidden"] = default_hidden(model.value("dim", 0), model.value("swiglu", false));
  }
}

/// The step in the name of a checkpoint's folder, or -1.
int64_t step_of(const std::string& name) {
  int64_t step = -1;
  if (name.compare(0, kPrefix.size(), kPrefix) != 0) return -1;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  return error == std::errc() && rest == end ? step : -1;
}

}  // namespace

bool CheckpointInfo::is_bytes() const {
  const Json format = member(data, "format");
  return format.is_string() ? format == "bytes" : vocabulary() == 256;
}

int32_t CheckpointInfo::number(const char* key) const {
  const Json value = member(model, key);
  if (value.is_number_integer()) return value.get<int32_t>();
  bad_input(path + " does not say the " + key + " of its model: only those of language models do");
}

CheckpointInfo describe_checkpoint(const std::string& path) {
  CheckpointInfo info;
  info.path = path;
  info.state = Json::parse(text_of(rrfp_checkpoint_describe, path.c_str()), nullptr, false);
  const Json step = member(info.state, "step");
  if (!step.is_number_integer()) bad_input(path + ": its state.json does not say the step");
  info.step = step.get<int64_t>();
  std::error_code ignored;
  info.is_folder = !std::filesystem::exists(std::filesystem::path(path) / "state.json", ignored);

  const Json user = member(info.state, "user");
  info.data = member(user, "data");
  info.training = member(user, "training");
  info.model = member(info.state, "model");
  if (!info.model.is_object()) info.model = Json::object();
  try {
    write_out_defaults(info.model);
  } catch (const Json::exception&) {
    bad_input(path + ": its state.json describes no model");
  }
  return info;
}

int64_t newest_step(const std::string& root) {
  int64_t newest = -1;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root, ignored)) {
    newest = std::max(newest, step_of(entry.path().filename().string()));
  }
  return newest;
}

std::string checkpoint_path(const std::string& root, int64_t step) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root, ignored)) {
    if (step_of(entry.path().filename().string()) == step) return entry.path().string();
  }
  return root;
}

std::string user_json(const Json& data, const Json& training) {
  const Json user = {{"data", data}, {"training", training}};
  return user.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace rrfp::cli
