// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "capi/cli/api.h"
#include "capi/cli/hints.h"

namespace rrfp::cli {
namespace {

/// The words that would give an option this value on the command line.
std::vector<std::string> words_of(const Json& value) {
  if (!value.is_array()) return {value.is_string() ? value.get<std::string>() : value.dump()};
  std::vector<std::string> words;
  for (const Json& each : value) words.push_back(each.get<std::string>());
  return words;
}

bool is_same_kind(const Json& a, const Json& b) {
  return a.is_number() ? b.is_number() : a.type() == b.type();
}

}  // namespace

std::string Settings::key_of(const std::string& name) {
  std::string key = name.substr(name.find_first_not_of('-'));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

Json Settings::values() const {
  Json values = Json::object();
  for (const Item& item : items_) {
    Json value = item.get();
    if (value.is_number() && value < 0) continue;
    values[item.key] = std::move(value);
  }
  return values;
}

void Settings::take_defaults(const Json& kept) {
  if (!kept.is_object()) return;
  for (const Item& item : items_) {
    const auto found = kept.find(item.key);
    if (found == kept.end() || item.option->count() > 0) continue;
    check(item, *found);
    item.set(*found);
  }
}

/// Through the checks of the option itself, which stays one that was not given.
void Settings::check(const Item& item, const Json& kept) {
  constexpr size_t kShown = 100;
  const std::string text = "the checkpoint has " + item.key + " = " +
                           kept.dump(-1, ' ', true).substr(0, kShown) + ", which is no value of ";
  if (!is_same_kind(item.get(), kept)) bad_input(text + item.option->get_name());
  try {
    for (std::string& word : words_of(kept)) item.option->add_result(std::move(word));
    item.option->run_callback();
  } catch (const CLI::Error& error) {
    bad_input(text + error.what());
  } catch (const Json::exception&) {
    bad_input(text + item.option->get_name());
  }
  item.option->clear();
}

void Settings::refuse_contradictions(const Json& kept) const {
  for (const Item& item : items_) {
    const auto found = kept.find(item.key);
    if (found == kept.end() || item.option->count() == 0 || item.get() == *found) continue;
    bad_input(item.option->get_name() + " " + item.get().dump() +
              " contradicts the checkpoint, which has " + found->dump());
  }
}

bool Settings::is_given(const std::string& name) const {
  const auto has_name = [&name](const Item& item) { return item.option->get_name() == name; };
  const auto found = std::find_if(items_.begin(), items_.end(), has_name);
  return found != items_.end() && found->option->count() > 0;
}

std::string Settings::first_given(const std::string& but) const {
  for (const Item& item : items_) {
    const std::string name = item.option->get_name();
    if (name != but && item.option->count() > 0) return name;
  }
  return {};
}

CLI::Option* choice(CLI::Option* option, const std::vector<std::string>& words) {
  std::string type;
  for (const std::string& word : words) type += (type.empty() ? "" : "|") + word;
  return option->type_name(type)->check(CLI::IsMember(words).description(""));
}

CLI::Validator real(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        double value = 0;
        const bool fits = CLI::detail::lexical_cast(text, value) && std::isfinite(value) &&
                          value >= low && value <= high;
        if (fits) return std::string();
        if (high == std::numeric_limits<double>::max()) {
          return format("%.100s is not a number from %g on", text.c_str(), low);
        }
        return format("%.100s is not a number from %g to %g", text.c_str(), low, high);
      },
      "");
}

CLI::Validator at_least(int64_t low) {
  return CLI::Validator(
      [low](std::string& text) {
        int64_t value = 0;
        const bool fits = CLI::detail::lexical_cast(text, value) && value >= low;
        return fits ? std::string()
                    : format("%.100s is not a whole number from %lld on", text.c_str(),
                             static_cast<long long>(low));
      },
      "");
}

CLI::Validator between(int64_t low, int64_t high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        int64_t value = 0;
        const bool fits = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
        return fits ? std::string()
                    : format("%.100s is not a whole number from %lld to %lld", text.c_str(),
                             static_cast<long long>(low), static_cast<long long>(high));
      },
      "");
}

void add_model_options(Settings& settings, ModelOptions& options) {
  settings.add("--layers", options.layers, "transformer blocks")
      ->type_name("N")
      ->check(at_least(1));
  settings.add("--dim", options.dim, "width of the model")->type_name("N")->check(at_least(1));
  settings.add("--heads", options.heads, "attention heads")->type_name("N")->check(at_least(1));
  settings.add("--kv-heads", options.kv_heads, "heads of keys and values")
      ->type_name("N")
      ->default_str("HEADS")
      ->check(at_least(1));
  settings.add("--context", options.context, "tokens of a sample, and the longest sequence")
      ->type_name("N")
      ->check(at_least(1));
  settings.add("--hidden", options.hidden, "width of the feed-forward layers")
      ->type_name("N")
      ->default_str("4 DIM; with --swiglu 8/3 DIM")
      ->check(at_least(1));
  settings.add("--dropout", options.dropout, "share of elements dropped in training")
      ->type_name("X")
      ->check(real(0, 1));
  settings.add_flag("--tied", options.tied, "the embedding is also the output layer");
  settings.add_flag("--rotary", options.rotary, "rotary instead of learned positions");
  settings.add_flag("--rms-norm", options.rms_norm, "RMS norm instead of layer norm");
  settings.add_flag("--swiglu", options.swiglu, "SwiGLU instead of GELU");
}

void add_vision_options(Settings& settings, VisionOptions& options) {
  settings.add_flag(
      "--vision", options.enabled,
      "the model also reads pictures; --data is a manifest: a JSON object a line, "
      "with \"text\", where \"<image>\" marks each picture, and \"images\", the paths "
      "of PNG files");
  settings.add("--image-size", options.image_size, "pixels a side that pictures are resized to")
      ->type_name("N")
      ->check(at_least(1));
  settings.add("--patch", options.patch, "pixels a side of what becomes one row")
      ->type_name("N")
      ->check(at_least(1));
  settings.add("--vision-layers", options.layers, "transformer blocks of the encoder")
      ->type_name("N")
      ->check(at_least(1));
  settings.add("--vision-dim", options.dim, "width of the encoder")
      ->type_name("N")
      ->check(at_least(1));
  settings.add("--vision-heads", options.heads, "attention heads of the encoder")
      ->type_name("N")
      ->check(at_least(1));
  settings.add("--vision-hidden", options.hidden, "width of its feed-forward layers")
      ->type_name("N")
      ->default_str("4 VISION-DIM")
      ->check(at_least(1));
  settings.add_flag("--conv-stem", options.conv_stem,
                    "convolutions instead of one linear layer make the rows");
  settings.add_flag("--freeze-vision", options.frozen,
                    "the encoder is not trained, what fits its rows to the language model is");
}

void add_data_options(Settings& settings, DataOptions& options) {
  settings
      .add("--data", options.paths,
           "files, and folders with all files below them; a manifest for models that read pictures")
      ->type_name("PATH")
      ->default_str("")
      ->expected(1, -1);
  choice(settings.add("--format", options.format,
                      "what the files hold: bytes (any file), or token ids of 16 or 32 bits"),
         {"bytes", "u16", "u32"});
  settings.add("--vocabulary", options.vocabulary, "number of token ids; u16 and u32 only")
      ->type_name("N")
      ->default_str("")
      ->check(at_least(1));
  settings.add("--validation", options.validation, "share of the samples kept for validation")
      ->type_name("SHARE")
      ->check(real(0, 1));
  choice(settings.add("--grouping", options.grouping,
                      "how samples with pictures become microbatches: count: as many in each; "
                      "cost: so that all take about as long"),
         {"count", "cost"});
  settings
      .add("--pixels-max", options.pixels_max,
           "most pixels, width x height, of a picture that is read")
      ->type_name("N")
      ->check(at_least(1));
}

void add_pipeline_options(CLI::App& app, PipelineOptions& options) {
  const std::string group = "Pipeline (changes speed and memory, not results)";
  const auto add = [&app, &group](const char* name, auto& value, const char* help,
                                  const char* type) {
    return app.add_option(name, value, help)->capture_default_str()->type_name(type)->group(group);
  };
  const std::string hints = joined(known_hints());
  add("--stages", options.stages, "pipeline stages", "N")->check(at_least(1));
  add("--ranks", options.ranks, "threads that the stages are placed on", "N")
      ->default_str("STAGES; for loop and v half of it")
      ->check(at_least(1));
  choice(add("--placement", options.placement,
             "which rank has which stage; balanced: so that all have about as much to do, no stage "
             "with blocks of both the encoder and the language model",
             ""),
         {"linear", "loop", "v", "balanced"})
      ->default_str("linear; for pictures and 3 stages or more balanced");
  add("--hint", options.hint,
      ("order of tasks: " + hints + ", a file of schedule text, or auto: what past steps say")
          .c_str(),
      "NAME|FILE");
  choice(add("--order", options.order,
             "ready: first ready task in the order of the hint; strict: in that order; paired: "
             "strict, with sends that wait for their receiver",
             ""),
         {"ready", "strict", "paired"})
      ->default_str("ready");
  add("--cap", options.cap, "activations that a rank may hold at once", "SLOTS")
      ->default_str("")
      ->check(at_least(1));
  add("--cap-bytes", options.cap_bytes, "the same in bytes", "BYTES")
      ->default_str("")
      ->check(at_least(1));
  add("--hold", options.hold, "how long a task may wait for a better one, in thousandths of it",
      "PERMILLE")
      ->default_str("0")
      ->check(at_least(0));
  app.add_flag("--recompute", options.recompute, "keep only what enters a block: less memory")
      ->group(group);
  choice(add("--partition", options.partition, "how the cost of blocks is known", ""),
         {"measured", "estimated"})
      ->default_str("estimated; for pictures measured");
  choice(add("--wake", options.wake, "how a rank waits", ""), {"yield", "spin", "park"});
  add("--delay-us", options.delay_us, "for tests: random delays of up to so many microseconds", "N")
      ->check(at_least(0));
}

}  // namespace rrfp::cli
