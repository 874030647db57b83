// SPDX-License-Identifier: Apache-2.0
//
// The end of a training run, for people and for programs.
#include <array>

#include "capi/cli/hints.h"
#include "capi/cli/train.h"

namespace rrfp::cli {
namespace {

struct TimeShare {
  const char* key;
  const char* name;
  int64_t ns;
};

std::array<TimeShare, 6> time_shares(const rrfp_train_report& sums) {
  return {{{"computing", "computing", sums.busy_ns},
           {"input", "waiting for input", sums.wait_input_ns},
           {"memory", "held back by memory", sums.wait_memory_ns},
           {"credit", "waiting for credit", sums.wait_credit_ns},
           {"policy", "held by policy", sums.wait_policy_ns},
           {"engine", "engine", sums.other_ns}}};
}

double idle_share(const rrfp_train_report& sums) {
  return share(sums.total_ns - sums.busy_ns, sums.total_ns);
}

double per_second(int64_t count, const RunResult& result) {
  return result.seconds > 0 ? static_cast<double>(count) / result.seconds : 0;
}

double mebibytes(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

std::string row(const char* name, const std::string& value) {
  return format("%-22s", name) + value + "\n";
}

/// What is known of a run that made steps.
std::string speed_text(const RunResult& result, bool reads_pictures) {
  const rrfp_train_report& sums = result.sums;
  std::string text =
      row("tokens per second", format("%.0f", per_second(result.amount.tokens, result)));
  if (reads_pictures) {
    text += row("images per second", format("%.0f", per_second(result.amount.images, result)));
  }
  text += row("idle", format("%.1f %%", 100 * idle_share(sums)));
  text += "time of the ranks\n";
  for (const TimeShare& each : time_shares(sums)) {
    text += row((std::string("  ") + each.name).c_str(),
                format("%5.1f %%", 100 * share(each.ns, sums.total_ns)));
  }
  std::string branches;
  for (const auto& [branch, part] : result.branches) {
    branches += (branches.empty() ? "" : ", ") + branch + format(" %.0f %%", 100 * part);
  }
  if (!branches.empty()) text += row("computing for", branches);
  text += row("peak memory",
              format("%.1f MiB: weights and optimizer %.1f, activations and messages %.1f",
                     mebibytes(sums.state_bytes + sums.tensor_bytes_peak),
                     mebibytes(sums.state_bytes), mebibytes(sums.tensor_bytes_peak)));
  return text;
}

template <class T>
Json json_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

}  // namespace

Json summary_json(const RunResult& result, const TrainOptions& options, const Batches& batches) {
  Json times = Json::object();
  for (const TimeShare& each : time_shares(result.sums)) {
    times[each.key] = share(each.ns, result.sums.total_ns);
  }
  Json json = {{"summary", true},
               {"steps", result.step},
               {"hint", chosen_hint(result.hint)},
               {"hint_why", is_choice(result.hint) ? Json(result.hint) : Json()},
               {"loss", json_or_null(result.loss)},
               {"val_loss", result.evaluation ? Json(result.evaluation->loss) : Json()},
               {"unigram_entropy", json_or_null(batches.unigram_entropy())},
               {"tokens_per_s", per_second(result.amount.tokens, result)},
               {"idle_share", idle_share(result.sums)},
               {"time_shares", times},
               {"peak_bytes", result.sums.state_bytes + result.sums.tensor_bytes_peak},
               {"weights_sha256", result.weights_sha256},
               {"checkpoint", text_or_null(result.checkpoint)},
               {"trace", text_or_null(result.trace)}};
  if (options.vision.enabled) {
    json["images_per_s"] = per_second(result.amount.images, result);
    json["branch_shares"] = Json::object();
    for (const auto& [branch, part] : result.branches) json["branch_shares"][branch] = part;
  }
  return json;
}

std::string summary_text(const RunResult& result, const TrainOptions& options,
                         const Batches& batches) {
  std::string steps = std::to_string(result.step);
  if (result.step < options.training.steps) {
    steps += " of " + std::to_string(options.training.steps);
  }
  if (result.first_step > 0) steps += ", resumed at " + std::to_string(result.first_step);
  std::string text = row("steps", steps);
  if (result.loss) text += row("loss", format("%.4f nats per token", *result.loss));
  if (result.evaluation) {
    text += row("validation loss",
                format("%.4f nats per token, over %lld samples", result.evaluation->loss,
                       static_cast<long long>(result.evaluation->samples)));
  }
  if (const std::optional<double> entropy = batches.unigram_entropy()) {
    text += row("unigram entropy", format("%.4f nats per token", *entropy));
  }
  if (result.step > result.first_step) text += speed_text(result, options.vision.enabled);
  text += row("hint", chosen_hint(result.hint));
  if (is_choice(result.hint)) text += row("  chosen", result.hint);
  text += row("weights sha256", result.weights_sha256);
  if (!result.checkpoint.empty()) text += row("checkpoint", result.checkpoint);
  if (!result.trace.empty())
    text += row("timeline", result.trace + " (open it in ui.perfetto.dev)");
  return text;
}

}  // namespace rrfp::cli
