// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/pipeline.h"

#include <algorithm>

#include "capi/cli/hints.h"
#include "capi/cli/output.h"

namespace rrfp::cli {
namespace {

/// `auto` decides on hint, order and holding, which therefore must not be given.
void set_hint(const PipelineOptions& options, PipelineParts& parts, rrfp_trainer_options& out) {
  if (options.hint == "auto") {
    if (!options.order.empty()) {
      bad_input("--order " + options.order + " does not go with --hint auto, which chooses it");
    }
    if (options.hold >= 0) {
      bad_input("--hold " + std::to_string(options.hold) +
                " does not go with --hint auto, which chooses it");
    }
    out.flags |= RRFP_TRAINER_AUTO;
    return;
  }
  parts.hint = load_hint("--hint " + options.hint, options.hint);
  out.hint = parts.hint.get();
  out.order = order_of(options.order);
  out.hold_permille = std::max(0, options.hold);
}

rrfp_wake wake_of(const std::string& name) {
  if (name == "spin") return RRFP_WAKE_SPIN;
  return name == "park" ? RRFP_WAKE_PARK : RRFP_WAKE_YIELD;
}

rrfp_data_format format_of(const std::string& name) {
  if (name == "u16") return RRFP_DATA_U16;
  return name == "u32" ? RRFP_DATA_U32 : RRFP_DATA_BYTES;
}

void print_log(void* command, rrfp_log_level level, const char* text) {
  if (level >= RRFP_LOG_WARNING) complain(static_cast<const char*>(command), text);
}

}  // namespace

void set_pipeline(const PipelineOptions& options, const rrfp_model* model,
                  std::span<const rrfp_tensor> sample, PipelineParts& parts,
                  rrfp_trainer_options& out) {
  set_hint(options, parts, out);
  if (options.recompute) out.flags |= RRFP_TRAINER_RECOMPUTE;
  out.stages = options.stages;
  out.ranks = options.ranks;
  out.placement = placement_of(options.placement);
  out.wake = wake_of(options.wake);
  out.cap_slots = options.cap;
  out.cap_bytes = options.cap_bytes;
  out.delay_us_max = options.delay_us;
  if (options.partition != "measured") return;

  auto info = prepared(rrfp_model_info_init);
  call(rrfp_model_get_info, model, &info);
  // No stage number is too large for the library, but an array of that size may be.
  if (options.stages > info.blocks) return;
  std::vector<int64_t> costs(static_cast<size_t>(info.blocks));
  parts.first_blocks.resize(static_cast<size_t>(options.stages));
  call(rrfp_model_measure, model, sample.data(), costs.data());
  call(rrfp_model_partition, model, options.stages, costs.data(), parts.first_blocks.data());
  out.first_blocks = parts.first_blocks.data();
}

void set_log(const char* command, rrfp_trainer_options& out) {
  out.log = print_log;
  out.log_user_data = const_cast<char*>(command);
}

rrfp_gpt_options gpt_options(const ModelOptions& options, int32_t vocabulary) {
  const int32_t kv_heads = options.kv_heads > 0 ? options.kv_heads : options.heads;
  if (options.dim % options.heads != 0) {
    bad_input("--dim " + std::to_string(options.dim) + " is not divisible by --heads " +
              std::to_string(options.heads));
  }
  if (options.heads % kv_heads != 0) {
    bad_input("--heads " + std::to_string(options.heads) + " is not divisible by --kv-heads " +
              std::to_string(kv_heads));
  }
  auto out = prepared(rrfp_gpt_options_init);
  if (options.tied) out.flags |= RRFP_GPT_TIED;
  if (options.rotary) out.flags |= RRFP_GPT_ROTARY;
  if (options.rms_norm) out.flags |= RRFP_GPT_RMS_NORM;
  if (options.swiglu) out.flags |= RRFP_GPT_SWIGLU;
  out.vocabulary = vocabulary;
  out.context = options.context;
  out.layers = options.layers;
  out.dim = options.dim;
  out.heads = options.heads;
  out.kv_heads = kv_heads;
  out.hidden = options.hidden;
  out.dropout = options.dropout;
  return out;
}

Data open_data(const DataOptions& options, int32_t context, uint64_t seed) {
  if (options.paths.empty()) bad_input("--data is missing: files or folders with text");
  if (options.format == "bytes" && options.vocabulary > 0 && options.vocabulary != 256) {
    bad_input("--vocabulary " + std::to_string(options.vocabulary) +
              " does not fit --format bytes, whose vocabulary is 256");
  }
  if (options.format != "bytes" && options.vocabulary < 0) {
    bad_input("--format " + options.format + " needs --vocabulary, the number of token ids");
  }
  std::vector<const char*> paths;
  for (const std::string& path : options.paths) paths.push_back(path.c_str());
  auto wanted = prepared(rrfp_data_options_init);
  wanted.format = format_of(options.format);
  wanted.paths = paths.data();
  wanted.path_count = static_cast<int32_t>(paths.size());
  wanted.vocabulary = options.format == "bytes" ? 0 : options.vocabulary;
  wanted.context = context;
  wanted.validation_share = options.validation;
  wanted.seed = seed;
  return create<Data>(rrfp_data_open, &wanted);
}

rrfp_data_info info_of(const rrfp_data* data) {
  auto info = prepared(rrfp_data_info_init);
  call(rrfp_data_get_info, data, &info);
  return info;
}

}  // namespace rrfp::cli
