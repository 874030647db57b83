// SPDX-License-Identifier: Apache-2.0
//
// The options that commands share, and those of a training run that are kept in its checkpoints.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "capi/cli/output.h"

namespace rrfp::cli {

/// A group of options whose values can be written to JSON and read back as defaults. The key of
/// --lr-min is lr_min.
class Settings {
 public:
  Settings(CLI::App& app, std::string group) : app_(&app), group_(std::move(group)) {}

  template <class T>
  CLI::Option* add(const std::string& name, T& value, const std::string& help) {
    return keep(name, value, app_->add_option(name, value, help)->capture_default_str());
  }
  CLI::Option* add_flag(const std::string& name, bool& value, const std::string& help) {
    return keep(name, value, app_->add_flag(name, value, help));
  }

  /// The value of each option under its key, but for negative numbers: they stand for a default
  /// that follows from other options.
  [[nodiscard]] Json values() const;
  /// Options that the user did not give get their value from `kept`, where it has one. Throws if
  /// that is no value that the user could have given.
  void take_defaults(const Json& kept);
  /// Throws if the user gave an option that differs from `kept`.
  void refuse_contradictions(const Json& kept) const;
  /// Whether the user gave an option, such as --lr-min.
  [[nodiscard]] bool is_given(const std::string& name) const;
  /// The first one that the user gave but for `but`, or an empty text.
  [[nodiscard]] std::string first_given(const std::string& but) const;

 private:
  struct Item {
    std::string key;
    CLI::Option* option;
    std::function<Json()> get;
    std::function<void(const Json&)> set;
  };

  template <class T>
  CLI::Option* keep(const std::string& name, T& value, CLI::Option* option) {
    option->group(group_);
    items_.push_back({key_of(name), option, [&value] { return Json(value); },
                      [&value](const Json& kept) { value = kept.get<T>(); }});
    return option;
  }
  static std::string key_of(const std::string& name);
  static void check(const Item& item, const Json& kept);

  CLI::App* app_;
  std::string group_;
  std::vector<Item> items_;
};

struct ModelOptions {
  int32_t layers = 4;
  int32_t dim = 128;
  int32_t heads = 4;
  int32_t kv_heads = 0;  // 0 = heads
  int32_t context = 128;
  int32_t hidden = 0;  // 0 = the library's default
  double dropout = 0;
  bool tied = false;
  bool rotary = false;
  bool rms_norm = false;
  bool swiglu = false;
};

/// The encoder of a model that reads pictures.
struct VisionOptions {
  bool enabled = false;  // --vision: the model reads pictures
  int32_t image_size = 32;
  int32_t patch = 8;
  int32_t layers = 2;
  int32_t dim = 128;
  int32_t heads = 4;
  int32_t hidden = 0;  // 0 = 4 dim
  bool conv_stem = false;
  bool frozen = false;
};

struct DataOptions {
  std::vector<std::string> paths;
  std::string format = "bytes";
  int32_t vocabulary = -1;
  double validation = 0.1;
  std::string grouping = "count";         // of samples with pictures
  int64_t pixels_max = int64_t{1} << 24;  // of a picture
};

struct PipelineOptions {
  int32_t stages = 1;
  int32_t ranks = 0;
  std::string placement;  // empty until set_default_layout
  std::string hint = "zb-h1";
  std::string order;  // empty = ready; auto decides itself
  int64_t cap = 0;
  int64_t cap_bytes = 0;
  int32_t hold = -1;  // not given
  bool recompute = false;
  std::string partition;  // empty until set_default_layout
  std::string wake = "park";
  int64_t delay_us = 0;
};

void add_model_options(Settings& settings, ModelOptions& options);
void add_vision_options(Settings& settings, VisionOptions& options);
void add_data_options(Settings& settings, DataOptions& options);
/// Not kept: a run may be continued, and a checkpoint evaluated, on any pipeline.
void add_pipeline_options(CLI::App& app, PipelineOptions& options);

/// Makes an option take one of some words, which its help lists.
CLI::Option* choice(CLI::Option* option, const std::vector<std::string>& words);
/// Accepts finite numbers from `low` to `high`.
CLI::Validator real(double low, double high);
/// Accepts whole numbers from `low` on.
CLI::Validator at_least(int64_t low);
/// Accepts whole numbers from `low` to `high`.
CLI::Validator between(int64_t low, int64_t high);

}  // namespace rrfp::cli
