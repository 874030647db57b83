// SPDX-License-Identifier: Apache-2.0
//
// rrfp train: the options, what they come to, and the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capi/cli/batches.h"
#include "capi/cli/checkpoint.h"
#include "capi/cli/options.h"
#include "capi/cli/pipeline.h"

namespace rrfp::cli {

/// Negative where the default follows from other options, until set_derived.
struct TrainingOptions {
  int32_t batch = 16;
  int32_t microbatches = 8;
  int32_t accumulate = 1;
  int64_t steps = 300;
  double lr = 1e-3;
  double lr_min = -1;
  int64_t warmup = -1;
  std::string decay = "cosine";
  int64_t decay_steps = -1;
  std::string optimizer = "adamw";
  double momentum = 0;
  double weight_decay = -1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double clip = 1;
  uint64_t seed = 1;
  std::string injection = "tent";
  std::string non_finite = "stop";
  bool nondeterministic = false;
  int64_t eval_samples = 64;
};

struct OutputOptions {
  std::string save;
  int64_t save_every = 0;
  int32_t keep = 2;
  std::string resume;
  int64_t eval_every = 0;
  std::string trace;
  int32_t trace_steps = 10;
  bool json = false;
  bool quiet = false;
};

/// All options of a run, once those of a checkpoint to resume from are known too.
struct TrainOptions {
  ModelOptions model;
  VisionOptions vision;
  DataOptions data;
  PipelineOptions pipeline;
  TrainingOptions training;
  OutputOptions output;
  std::string kept_json;  // goes into every checkpoint
};

/// How a run went.
struct RunResult {
  int64_t first_step = 0;  // steps that were done before
  int64_t step = 0;
  std::optional<double> loss;
  std::optional<Evaluation> evaluation;
  double seconds = 0;  // in steps, without evaluations and saving
  Amount amount;       // of what went through them
  std::vector<std::pair<std::string, double>>
      branches;  // their shares of computing; see branches.h
  rrfp_train_report sums = prepared(rrfp_train_report_init);  // times summed, bytes at their peak
  std::string hint;                                           // what ran, and for auto why
  std::string weights_sha256;
  std::string checkpoint;  // the newest one of this run, or empty
  std::string trace;
  int signal = 0;
};

/// Checks everything, trains, writes. Returns the exit code.
int run_training(const TrainOptions& options, const std::optional<CheckpointInfo>& checkpoint);

/// The options that say what a step is.
void add_batch_options(Settings& settings, TrainingOptions& options);
/// Throws if they do not fit together.
void check_batch(const TrainingOptions& options);
/// The optimizer and loss part of the options of the library.
void set_training(const TrainingOptions& options, rrfp_trainer_options& out);
/// How evaluation cuts samples: like one round of a step.
Cut evaluation_cut(const TrainingOptions& options);

Json summary_json(const RunResult& result, const TrainOptions& options, const Batches& batches);
std::string summary_text(const RunResult& result, const TrainOptions& options,
                         const Batches& batches);

}  // namespace rrfp::cli
