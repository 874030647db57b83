// SPDX-License-Identifier: Apache-2.0
//
// rrfp train: the options, their defaults from a checkpoint, and the checks of what they come to.
#include "capi/cli/train.h"

#include <filesystem>
#include <limits>
#include <memory>

#include "capi/cli/commands.h"
#include "capi/cli/hints.h"
#include "capi/cli/vision.h"

namespace rrfp::cli {
namespace {

namespace fs = std::filesystem;
constexpr double kMax = std::numeric_limits<double>::max();

struct TrainCommand {
  explicit TrainCommand(CLI::App& app)
      : model(app, "Model"),
        vision(app, "Pictures"),
        data(app, "Data"),
        training(app, "Training") {}

  TrainOptions options;
  Settings model;
  Settings vision;
  Settings data;
  Settings training;
};

void add_optimizer_options(Settings& settings, TrainingOptions& options) {
  settings.add("--lr", options.lr, "learning rate")->type_name("X")->check(real(0, kMax));
  settings.add("--lr-min", options.lr_min, "where the decay of the learning rate ends")
      ->type_name("X")
      ->default_str("LR / 10")
      ->check(real(0, kMax));
  settings.add("--warmup", options.warmup, "steps over which the learning rate grows")
      ->type_name("STEPS")
      ->default_str("DECAY_STEPS / 20")
      ->check(at_least(0));
  choice(settings.add("--decay", options.decay, "how the learning rate falls"),
         {"none", "cosine", "linear"});
  settings
      .add("--decay-steps", options.decay_steps,
           "the step at which --lr-min is reached; stays if a run is made longer")
      ->type_name("N")
      ->default_str("STEPS")
      ->check(at_least(1));
  choice(settings.add("--optimizer", options.optimizer, "how weights change"), {"adamw", "sgd"});
  settings.add("--momentum", options.momentum, "of SGD")->type_name("X")->check(real(0, 1));
  settings.add("--weight-decay", options.weight_decay, "pull of the weights to zero")
      ->type_name("X")
      ->default_str("0.1; 0 for sgd")
      ->check(real(0, kMax));
  settings.add("--beta1", options.beta1, "of AdamW")->type_name("X")->check(real(0, 1));
  settings.add("--beta2", options.beta2, "of AdamW")->type_name("X")->check(real(0, 1));
  settings.add("--clip", options.clip, "largest norm of all gradients; 0 = any")
      ->type_name("X")
      ->check(real(0, kMax));
  choice(
      settings.add("--non-finite", options.non_finite, "at a loss or gradient that is not finite"),
      {"stop", "skip"});
  settings.add_flag("--nondeterministic", options.nondeterministic,
                    "add gradients as they come: results differ in their last bits");
}

void add_output_options(CLI::App& app, TrainCommand& command) {
  OutputOptions& output = command.options.output;
  const std::string checkpoints = "Checkpoints and validation";
  app.add_option("--save", output.save, "folder for checkpoints, one folder each; saves at the end")
      ->type_name("DIR")
      ->group(checkpoints);
  app.add_option("--save-every", output.save_every, "and every so many steps")
      ->type_name("N")
      ->group(checkpoints)
      ->check(at_least(1));
  app.add_option("--keep", output.keep, "newest checkpoints that stay; 0 = all")
      ->capture_default_str()
      ->type_name("N")
      ->group(checkpoints)
      ->check(at_least(0));
  app.add_option("--resume", output.resume,
                 "continue from a checkpoint, or the newest one of a folder; its options are the "
                 "defaults, and a folder is also the default of --save")
      ->type_name("DIR")
      ->group(checkpoints);
  app.add_option("--eval-every", output.eval_every, "steps between validations; always at the end")
      ->type_name("N")
      ->group(checkpoints)
      ->check(at_least(1));
  command.training
      .add("--eval-samples", command.options.training.eval_samples,
           "samples of a validation, spread evenly over those kept for it; 0 = none")
      ->type_name("N")
      ->group(checkpoints)
      ->check(at_least(0));

  const std::string group = "Output";
  app.add_option("--trace", output.trace, "write a timeline of the last steps")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--trace-steps", output.trace_steps, "how many")
      ->capture_default_str()
      ->type_name("N")
      ->group(group)
      ->check(at_least(1));
  app.add_flag("--json", output.json, "standard output has JSON: a line per step and a summary")
      ->group(group);
  app.add_flag("--quiet", output.quiet, "no progress, only the summary")->group(group);
}

void check_training(const TrainingOptions& training) {
  check_batch(training);
  if (training.lr_min > training.lr) {
    bad_input(format("--lr-min %g is greater than --lr %g", training.lr_min, training.lr));
  }
}

/// A folder of checkpoints takes those of one run: newer ones of another would be taken for its
/// own.
void check_save(const OutputOptions& output, const std::optional<CheckpointInfo>& checkpoint) {
  if (output.save.empty()) {
    if (output.save_every > 0) bad_input("--save-every needs --save, the folder of checkpoints");
    return;
  }
  std::error_code error;
  if (fs::exists(output.save, error) && !fs::is_directory(output.save, error)) {
    bad_input("--save " + output.save + " is a file, expected a folder");
  }
  const int64_t newest = newest_step(output.save);
  if (newest < 0) return;
  const std::string text = "--save " + output.save + " has a checkpoint of step " +
                           std::to_string(newest) + " already: ";
  if (!checkpoint) {
    bad_input(text + "give another folder, or --resume " + output.save + " to continue that run");
  }
  const fs::path resumed = checkpoint->path;
  const bool is_same = fs::equivalent(output.save, resumed / "..", error);
  if (!is_same || newest > checkpoint->step) {
    bad_input(text + "give another folder for what follows step " +
              std::to_string(checkpoint->step) + " of " + checkpoint->path);
  }
}

void check_trace(const std::string& trace) {
  if (trace.empty()) return;
  std::error_code error;
  if (fs::is_directory(trace, error)) {
    bad_input("--trace " + trace + " is a folder, expected the name of a file");
  }
}

/// Writes out the defaults that follow from other options. They are kept: the learning rate of a
/// run must not jump when the run is made longer.
void set_derived(TrainingOptions& training) {
  if (training.lr_min < 0) training.lr_min = training.lr / 10;
  if (training.decay_steps < 0) training.decay_steps = training.steps;
  if (training.warmup < 0) training.warmup = training.decay_steps / 20;
  if (training.weight_decay < 0) training.weight_decay = training.optimizer == "sgd" ? 0 : 0.1;
}

void take_defaults(TrainCommand& command, const CheckpointInfo& checkpoint) {
  TrainOptions& options = command.options;
  command.model.refuse_contradictions(checkpoint.model);
  command.model.take_defaults(checkpoint.model);
  command.vision.refuse_contradictions(checkpoint.vision);
  command.vision.take_defaults(checkpoint.vision);
  command.data.take_defaults(checkpoint.data);
  // Dropout goes on with the seed that the trainer was made with.
  if (const auto seed = checkpoint.state.find("seed"); seed != checkpoint.state.end()) {
    const Json kept = {{"seed", *seed}};
    command.training.refuse_contradictions(kept);
    command.training.take_defaults(kept);
  }
  command.training.take_defaults(checkpoint.training);
  options.model.context = checkpoint.context();
  if (options.output.save.empty() && checkpoint.is_folder) {
    options.output.save = options.output.resume;
  }
  if (checkpoint.step > options.training.steps) {
    bad_input("the checkpoint is of step " + std::to_string(checkpoint.step) + ", beyond --steps " +
              std::to_string(options.training.steps));
  }
}

int train(TrainCommand& command) {
  TrainOptions& options = command.options;
  std::optional<CheckpointInfo> checkpoint;
  if (!options.output.resume.empty()) {
    checkpoint = describe_checkpoint(options.output.resume);
    take_defaults(command, *checkpoint);
  }
  check_kind(options.vision.enabled, command.vision, command.data);
  set_default_layout(options.pipeline, options.vision.enabled);
  set_derived(options.training);
  check_training(options.training);
  check_save(options.output, checkpoint);
  check_trace(options.output.trace);
  // The checkpoint may be resumed from elsewhere.
  for (std::string& path : options.data.paths) {
    path = fs::absolute(path).lexically_normal().string();
  }
  options.kept_json = user_json(command.data.values(), command.training.values());
  return run_training(options, checkpoint);
}

}  // namespace

void add_train(CLI::App& app, Run& run) {
  CLI::App* const sub =
      app.add_subcommand("train", "Train a language model, or one that also reads pictures.");
  const auto command = std::make_shared<TrainCommand>(*sub);
  add_data_options(command->data, command->options.data);
  add_model_options(command->model, command->options.model);
  add_vision_options(command->vision, command->options.vision);
  add_pipeline_options(*sub, command->options.pipeline);
  add_batch_options(command->training, command->options.training);
  add_optimizer_options(command->training, command->options.training);
  add_output_options(*sub, *command);
  sub->callback([command, &run] { run = [command] { return train(*command); }; });
}

void add_batch_options(Settings& settings, TrainingOptions& options) {
  settings.add("--batch", options.batch, "samples of a step")->type_name("N")->check(at_least(1));
  settings.add("--microbatches", options.microbatches, "parts that a step is cut into")
      ->type_name("N")
      ->check(at_least(1));
  settings
      .add("--accumulate", options.accumulate,
           "pipeline runs of a step, each with its share of the microbatches")
      ->type_name("ROUNDS")
      ->check(at_least(1));
  settings.add("--steps", options.steps, "steps in total, those of a resumed run included")
      ->type_name("N")
      ->check(at_least(1));
  settings
      .add("--seed", options.seed,
           "of weights, dropout and the order of the samples; a resumed run keeps it")
      ->type_name("N");
  choice(settings.add("--injection", options.injection,
                      "how microbatches enter the pipeline: tent: by size, short ... long ... "
                      "short; data: as they come. Sums round differently"),
         {"tent", "data"});
}

void check_batch(const TrainingOptions& options) {
  if (options.batch < options.microbatches) {
    bad_input("--batch " + std::to_string(options.batch) + " is less than --microbatches " +
              std::to_string(options.microbatches) + ": each needs a sample");
  }
  if (options.microbatches % options.accumulate != 0) {
    bad_input("--microbatches " + std::to_string(options.microbatches) +
              " is not divisible by --accumulate " + std::to_string(options.accumulate) +
              ": rounds have equal length");
  }
}

void set_training(const TrainingOptions& options, rrfp_trainer_options& out) {
  if (options.nondeterministic) out.flags |= RRFP_TRAINER_NONDETERMINISTIC;
  out.optimizer = options.optimizer == "sgd" ? RRFP_OPTIMIZER_SGD : RRFP_OPTIMIZER_ADAMW;
  out.decay = RRFP_DECAY_NONE;
  if (options.decay == "cosine") out.decay = RRFP_DECAY_COSINE;
  if (options.decay == "linear") out.decay = RRFP_DECAY_LINEAR;
  out.lr = options.lr;
  out.lr_min = options.lr_min;
  out.decay_steps = options.decay_steps;
  out.warmup_steps = options.warmup;
  out.beta1 = options.beta1;
  out.beta2 = options.beta2;
  out.weight_decay = options.weight_decay;
  out.momentum = options.momentum;
  out.clip_norm = options.clip;
  out.non_finite = options.non_finite == "skip" ? RRFP_NON_FINITE_SKIP : RRFP_NON_FINITE_STOP;
  out.seed = options.seed;
  out.injection = injection_of(options.injection);
}

Cut evaluation_cut(const TrainingOptions& options) {
  return {options.batch / options.accumulate, options.microbatches / options.accumulate};
}

}  // namespace rrfp::cli
