// SPDX-License-Identifier: Apache-2.0
#include "engine/train/state_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace rrfp::train {

using core::Code;
using core::Status;

namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "rrfp-checkpoint";
constexpr uint64_t kVersion = 1;

/// Empty if `text` is a JSON object that is not too deep and has no name twice (of which the parser
/// would keep one without a word); else what is wrong.
std::string parse_object(std::string_view text, int depth_max, Json& out) {
  bool too_deep = false;
  std::string twice;
  std::vector<std::set<std::string>> names;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) {
      too_deep = too_deep || depth >= depth_max;
    }
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key && !too_deep) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!names.back().insert(name).second && twice.empty()) twice = shown_name(name);
    }
    return !too_deep;  // what lies below is not kept
  };
  Json parsed;
  try {
    parsed = Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::parse_error& error) {
    return "is not JSON in UTF-8 at byte " + std::to_string(error.byte);
  } catch (const Json::out_of_range&) {
    return "has a number that no double can hold";
  }
  if (too_deep) return "is nested deeper than " + std::to_string(depth_max) + " levels";
  if (!parsed.is_object()) return "is not a JSON object";
  if (!twice.empty()) return "has the name " + twice + " twice";
  out = std::move(parsed);
  return {};
}

/// Reads the fields of one object and keeps the first complaint.
class Fields {
 public:
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  [[nodiscard]] const std::string& problem() const { return problem_; }

  const Json* find(const char* name, const char* expected, bool (*fits)(const Json&)) {
    const auto at = object_.find(name);
    if (at != object_.end() && fits(*at)) return &*at;
    if (problem_.empty()) {
      problem_ = where_ + name + (at == object_.end() ? " is missing" : " has a wrong value") +
                 ", expected " + expected;
    }
    return nullptr;
  }

  void read(const char* name, int64_t& out) {
    const auto fits = [](const Json& json) {
      return json.is_number_unsigned() && json.get<uint64_t>() <= INT64_MAX;
    };
    if (const Json* json = find(name, "a whole number from 0", fits)) out = json->get<int64_t>();
  }
  void read(const char* name, uint64_t& out) {
    const auto fits = [](const Json& json) { return json.is_number_unsigned(); };
    if (const Json* json = find(name, "a whole number from 0", fits)) out = json->get<uint64_t>();
  }
  void read(const char* name, double& out) {
    const auto fits = [](const Json& json) { return json.is_number(); };
    if (const Json* json = find(name, "a number", fits)) out = json->get<double>();
  }
  void read(const char* name, std::string& out) {
    const auto fits = [](const Json& json) { return json.is_string(); };
    if (const Json* json = find(name, "a text", fits)) out = json->get<std::string>();
  }
  /// An object that may be absent: then the text is empty.
  void read_object(const char* name, std::string& out) {
    if (!object_.contains(name)) return;
    const auto fits = [](const Json& json) { return json.is_object(); };
    if (const Json* json = find(name, "an object", fits)) out = json->dump();
  }

 private:
  const Json& object_;
  std::string where_;
  std::string problem_;
};

Json to_json(const FileDigest& digest) {
  return {{"bytes", digest.bytes}, {"sha256", digest.sha256}};
}

std::string read_digest(const Json& files, const char* name, FileDigest& out) {
  Fields fields(files, "files.");
  const auto fits = [](const Json& json) { return json.is_object(); };
  const Json* const object = fields.find(name, "an object", fits);
  if (object == nullptr) return fields.problem();
  Fields inner(*object, std::string("files.") + name + ".");
  inner.read("bytes", out.bytes);
  inner.read("sha256", out.sha256);
  return inner.problem();
}

std::string read_fields(const Json& json, StateFile& file) {
  Fields fields(json, "");
  CheckpointState& state = file.state;
  fields.read("step", state.step);
  fields.read("position", state.position);
  fields.read("seed", state.seed);
  fields.read("loss_scale", state.loss_scale);
  fields.read("good_steps", state.good_steps);
  fields.read("updates", state.updates);
  fields.read("optimizer", state.optimizer);
  fields.read_object("model", state.model);
  fields.read_object("user", state.user);
  const auto fits = [](const Json& value) { return value.is_object(); };
  const Json* const files = fields.find("files", "an object", fits);
  if (!fields.problem().empty()) return fields.problem();
  std::string problem = read_digest(*files, "model.safetensors", file.weights);
  if (problem.empty()) problem = read_digest(*files, "optimizer.safetensors", file.optimizer);
  return problem;
}

std::string identity_problem(const Json& json) {
  const auto format = json.find("format");
  if (format == json.end() || *format != kFormat) {
    return std::string("not a checkpoint of rrfp: \"format\" is not \"") + kFormat + "\"";
  }
  const auto version = json.find("version");
  if (version != json.end() && version->is_number_unsigned() && *version == kVersion) return {};
  const std::string found = version == json.end() ? "missing" : shown_name(version->dump());
  return "the version of the checkpoint is " + found + ", expected " + std::to_string(kVersion);
}

}  // namespace

Status check_state(const CheckpointState& state) {
  const auto wrong = [](const std::string& text) { return Status(Code::kInvalidArgument, text); };
  const std::pair<const char*, int64_t> counts[] = {
      {"step", state.step}, {"good_steps", state.good_steps}, {"updates", state.updates}};
  for (const auto& [name, value] : counts) {
    if (value < 0) {
      return wrong(std::string("the checkpoint's ") + name + " is " + std::to_string(value) +
                   ", expected at least 0");
    }
  }
  if (!std::isfinite(state.loss_scale)) {
    return wrong("the checkpoint's loss_scale is " + std::to_string(state.loss_scale) +
                 ", expected a finite number");
  }
  const bool plain = std::all_of(state.optimizer.begin(), state.optimizer.end(),
                                 [](char c) { return c >= ' ' && c <= '~'; });
  if (!plain) {
    return wrong("the checkpoint's optimizer is " + shown_name(state.optimizer) +
                 ", expected printable ASCII");
  }
  const std::pair<const char*, const std::string*> objects[] = {{"model", &state.model},
                                                                {"user", &state.user}};
  for (const auto& [name, text] : objects) {
    Json json;
    const std::string problem =
        text->empty() ? std::string() : parse_object(*text, kJsonDepthMax, json);
    if (!problem.empty()) return wrong(std::string("the checkpoint's ") + name + " " + problem);
  }
  return {};
}

Status print_state(const StateFile& file, std::string& out) {
  const CheckpointState& state = file.state;
  Json json = {{"format", kFormat},
               {"version", kVersion},
               {"step", state.step},
               {"position", state.position},
               {"seed", state.seed},
               {"loss_scale", state.loss_scale},
               {"good_steps", state.good_steps},
               {"updates", state.updates},
               {"optimizer", state.optimizer}};
  json["files"] = {{"model.safetensors", to_json(file.weights)},
                   {"optimizer.safetensors", to_json(file.optimizer)}};
  if (!state.model.empty()) json["model"] = Json::parse(state.model);
  if (!state.user.empty()) json["user"] = Json::parse(state.user);
  std::string text = json.dump(2) + "\n";
  if (text.size() > kStateBytesMax) {
    return {Code::kInvalidArgument, "the checkpoint's state has " + std::to_string(text.size()) +
                                        " bytes as JSON, expected at most " +
                                        std::to_string(kStateBytesMax)};
  }
  out = std::move(text);
  return {};
}

Status parse_state(const std::string& path, std::string_view text, StateFile& out) {
  const auto wrong = [&](const std::string& what) {
    return Status(Code::kBadData, "\"" + path + "\": " + what);
  };
  Json json;
  if (const std::string problem = parse_object(text, kJsonDepthMax + 1, json); !problem.empty()) {
    return wrong("not a checkpoint of rrfp: the file " + problem);
  }
  if (const std::string problem = identity_problem(json); !problem.empty()) return wrong(problem);
  StateFile file;
  if (const std::string problem = read_fields(json, file); !problem.empty()) return wrong(problem);
  out = std::move(file);
  return {};
}

}  // namespace rrfp::train
