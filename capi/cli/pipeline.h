// SPDX-License-Identifier: Apache-2.0
//
// From options to the objects of the library.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "capi/cli/api.h"
#include "capi/cli/options.h"

namespace rrfp::cli {

/// What trainer options point to while a trainer is made.
struct PipelineParts {
  Hint hint;
  std::vector<int32_t> first_blocks;
  std::vector<int32_t> stage_ranks;
};

/// Where none was given: linear, but balanced for a model that reads pictures if there are stages
/// enough for the encoder, the embedding of the text and the language model. Costs are measured
/// there: how many rows a picture and a text have is not known to an estimate.
void set_default_layout(PipelineOptions& options, bool reads_pictures);

/// Fills in the pipeline part of `out`.
///   read_sample   gives one microbatch, if blocks are measured
void set_pipeline(const PipelineOptions& options, const rrfp_model* model,
                  const std::function<std::span<const rrfp_tensor>()>& read_sample,
                  PipelineParts& parts, rrfp_trainer_options& out);

/// Warnings of the library go to standard error; `command` must be static memory.
void set_log(const char* command, rrfp_trainer_options& out);

/// The options as the library wants them, after the checks whose texts name this command's options.
rrfp_gpt_options gpt_options(const ModelOptions& options, int32_t vocabulary);

/// A model with fresh weights, after the same checks.
Model create_model(const ModelOptions& model, const VisionOptions& vision, int32_t vocabulary);

}  // namespace rrfp::cli
