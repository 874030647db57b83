// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/pipeline.h"

#include <algorithm>

#include "capi/cli/hints.h"
#include "capi/cli/output.h"
#include "capi/cli/vision.h"

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

/// Says which rank has which stage.
///   costs   of the blocks, or null
void place(const PipelineOptions& options, const rrfp_model* model, const int64_t* costs,
           PipelineParts& parts, rrfp_trainer_options& out) {
  const int32_t ranks = options.ranks > 0 ? options.ranks : options.stages;
  parts.stage_ranks.resize(static_cast<size_t>(options.stages));
  labelled("--placement balanced", [&] {
    return call(rrfp_model_place, model, options.stages, ranks, costs, parts.first_blocks.data(),
                parts.stage_ranks.data());
  });
  out.ranks = ranks;
  out.stage_ranks = parts.stage_ranks.data();
}

void print_log(void* command, rrfp_log_level level, const char* text) {
  if (level >= RRFP_LOG_WARNING) complain(static_cast<const char*>(command), text);
}

}  // namespace

void set_default_layout(PipelineOptions& options, bool reads_pictures) {
  constexpr int32_t kBranches = 3;
  if (options.placement.empty()) {
    options.placement = reads_pictures && options.stages >= kBranches ? "balanced" : "linear";
  }
  if (options.partition.empty()) options.partition = reads_pictures ? "measured" : "estimated";
}

void set_pipeline(const PipelineOptions& options, const rrfp_model* model,
                  const std::function<std::span<const rrfp_tensor>()>& read_sample,
                  PipelineParts& parts, rrfp_trainer_options& out) {
  set_hint(options, parts, out);
  if (options.recompute) out.flags |= RRFP_TRAINER_RECOMPUTE;
  out.stages = options.stages;
  out.ranks = options.ranks;
  out.wake = wake_of(options.wake);
  out.cap_slots = options.cap;
  out.cap_bytes = options.cap_bytes;
  out.delay_us_max = options.delay_us;
  const bool is_balanced = options.placement == "balanced";
  if (!is_balanced) out.placement = placement_of(options.placement);
  if (!is_balanced && options.partition != "measured") return;

  auto info = prepared(rrfp_model_info_init);
  call(rrfp_model_get_info, model, &info);
  // No stage number is too large for the library, but an array of that size may be.
  if (options.stages > info.blocks) return;
  std::vector<int64_t> costs(static_cast<size_t>(info.blocks));
  const bool is_measured = options.partition == "measured";
  if (is_measured) call(rrfp_model_measure, model, read_sample().data(), costs.data());
  parts.first_blocks.resize(static_cast<size_t>(options.stages));
  if (is_balanced) {
    place(options, model, is_measured ? costs.data() : nullptr, parts, out);
  } else {
    call(rrfp_model_partition, model, options.stages, costs.data(), parts.first_blocks.data());
  }
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

Model create_model(const ModelOptions& model, const VisionOptions& vision, int32_t vocabulary) {
  const rrfp_gpt_options language = gpt_options(model, vocabulary);
  if (!vision.enabled) return create<Model>(rrfp_model_create_gpt, &language);
  const rrfp_vision_options encoder = vision_options(vision);
  return create<Model>(rrfp_model_create_vision_language, &language, &encoder);
}

}  // namespace rrfp::cli
