// SPDX-License-Identifier: Apache-2.0
//
// A training run. Everything that can be wrong is found before anything is written; from then on
// the rule is that no step that was done is lost for want of a checkpoint.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "capi/cli/branches.h"
#include "capi/cli/progress.h"
#include "capi/cli/signals.h"
#include "capi/cli/train.h"
#include "capi/cli/vision.h"

namespace rrfp::cli {
namespace {

namespace fs = std::filesystem;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class TrainingRun {
 public:
  TrainingRun(const TrainOptions& options, const std::optional<CheckpointInfo>& checkpoint);
  int run();

 private:
  void make_trainer(const std::optional<CheckpointInfo>& checkpoint);
  void make_folders() const;
  void introduce();
  void steps();
  void step();
  void add_up(const rrfp_train_report& report);
  void save();
  void try_to_save();
  void save_what_is_left();
  Evaluation validate();
  [[nodiscard]] bool validates() const {
    return options_.training.eval_samples > 0 && batches_->samples(RRFP_SPLIT_VALIDATION) > 0;
  }
  [[nodiscard]] bool reads_pictures() const { return options_.vision.enabled; }

  const TrainOptions& options_;
  Output out_{STDOUT_FILENO};
  Output err_{STDERR_FILENO};
  Output& people_ = options_.output.json ? err_ : out_;
  std::unique_ptr<Batches> batches_;
  Model model_;
  Trainer trainer_;
  std::optional<BranchTimes> branches_;  // of a model that reads pictures
  std::optional<Progress> progress_;
  uint64_t position_ = 0;
  int64_t saved_step_ = -1;
  bool save_failed_ = false;  // the last attempt
  RunResult result_;
};

TrainingRun::TrainingRun(const TrainOptions& options,
                         const std::optional<CheckpointInfo>& checkpoint)
    : options_(options) {
  if (!checkpoint) {  // these checks come before reading the data
    gpt_options(options.model, 1);
    if (reads_pictures()) vision_options(options.vision);
  }
  batches_ = open_batches(options.data, options.model, options.vision, options.training.seed);
  if (checkpoint) {
    check_vocabulary(*batches_, checkpoint->vocabulary());
    model_ = create<Model>(rrfp_model_create_from_checkpoint, checkpoint->path.c_str());
  } else {
    model_ = create_model(options.model, options.vision, batches_->vocabulary());
  }
  make_trainer(checkpoint);
  make_folders();
}

void TrainingRun::make_trainer(const std::optional<CheckpointInfo>& checkpoint) {
  const TrainingOptions& training = options_.training;
  auto wanted = prepared(rrfp_trainer_options_init);
  set_training(training, wanted);
  set_log("train", wanted);
  if (!options_.output.trace.empty()) wanted.trace_steps = options_.output.trace_steps;
  PipelineParts parts;
  const auto read_sample = [&] {
    return batches_->read_typical(RRFP_SPLIT_TRAIN, training.batch, training.microbatches);
  };
  set_pipeline(options_.pipeline, model_.get(), read_sample, parts, wanted);
  trainer_ = create<Trainer>(rrfp_trainer_create, model_.get(), &wanted);
  if (reads_pictures()) branches_.emplace(trainer_.get(), model_.get());
  if (checkpoint) {
    call(rrfp_trainer_load, trainer_.get(), checkpoint->path.c_str(), rrfp_load_flags{0},
         &position_);
    result_.first_step = checkpoint->step;
    result_.step = checkpoint->step;
    std::error_code ignored;
    const std::string own = checkpoint_path(options_.output.save, checkpoint->step);
    if (fs::equivalent(own, checkpoint->path, ignored)) saved_step_ = checkpoint->step;
  }
}

/// The first write: a folder that cannot be made is better known before hours of training.
void TrainingRun::make_folders() const {
  const auto make = [](const std::string& folder, const std::string& option) {
    if (folder.empty()) return;
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) bad_input(option + ": cannot make the folder " + folder + ": " + error.message());
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
      bad_input(option + ": the folder " + folder + " cannot be written to");
    }
  };
  make(options_.output.save, "--save");
  make(fs::path(options_.output.trace).parent_path().string(), "--trace");
}

void TrainingRun::introduce() {
  auto info = prepared(rrfp_model_info_init);
  call(rrfp_model_get_info, model_.get(), &info);
  progress_->note(format("model: %d blocks, %.3g million parameters; %d stages, hint %s",
                         info.blocks, static_cast<double>(info.parameter_elements) * 1e-6,
                         options_.pipeline.stages, options_.pipeline.hint.c_str()));
  progress_->note("data: " + batches_->description());
  if (result_.first_step > 0) {
    progress_->note("resumed at step " + std::to_string(result_.first_step));
    const TrainingOptions& training = options_.training;
    if (training.decay != "none" && training.steps > training.decay_steps) {
      progress_->note(
          format("the learning rate stays at %g from step %lld on: --lr-min, --decay-steps",
                 training.lr_min, static_cast<long long>(training.decay_steps)));
    }
  }
}

void TrainingRun::add_up(const rrfp_train_report& report) {
  rrfp_train_report& sums = result_.sums;
  for (const auto field : {&rrfp_train_report::total_ns, &rrfp_train_report::busy_ns,
                           &rrfp_train_report::wait_input_ns, &rrfp_train_report::wait_memory_ns,
                           &rrfp_train_report::wait_credit_ns, &rrfp_train_report::wait_policy_ns,
                           &rrfp_train_report::other_ns}) {
    sums.*field += report.*field;
  }
  sums.state_bytes = std::max(sums.state_bytes, report.state_bytes);
  sums.tensor_bytes_peak = std::max(sums.tensor_bytes_peak, report.tensor_bytes_peak);
}

void TrainingRun::step() {
  const TrainingOptions& training = options_.training;
  const auto start = std::chrono::steady_clock::now();
  rrfp_batch& batch =
      batches_->read(RRFP_SPLIT_TRAIN, position_, training.batch, training.microbatches);
  batch.rounds = training.accumulate;
  auto report = prepared(rrfp_train_report_init);
  call(rrfp_trainer_step, trainer_.get(), &batch, &report);
  position_ += static_cast<uint64_t>(training.batch);
  result_.step = report.step;
  result_.loss = report.loss;
  add_up(report);
  if (branches_) branches_->add();

  StepFigures figures;
  figures.step = report.step;
  figures.loss = report.loss;
  figures.seconds = seconds_since(start);
  result_.seconds += figures.seconds;
  const Amount amount = batches_->amount();
  result_.amount.tokens += amount.tokens;
  result_.amount.images += amount.images;
  figures.tokens_per_s = static_cast<double>(amount.tokens) / figures.seconds;
  if (reads_pictures()) {
    figures.images_per_s = static_cast<double>(amount.images) / figures.seconds;
  }
  if (report.total_ns > 0) {
    figures.idle_share =
        1 - static_cast<double>(report.busy_ns) / static_cast<double>(report.total_ns);
  }
  figures.skipped = (report.flags & RRFP_TRAIN_SKIPPED) != 0;
  progress_->step(figures);

  Json line = {{"step", figures.step},
               {"loss", figures.loss},
               {"tokens_per_s", figures.tokens_per_s},
               {"idle_share", figures.idle_share}};
  if (figures.images_per_s) line["images_per_s"] = *figures.images_per_s;
  if (figures.skipped) line["skipped"] = true;
  const int64_t every = options_.output.eval_every;
  if (every > 0 && report.step % every == 0 && report.step < training.steps && validates()) {
    const Evaluation evaluation = validate();
    line["val_loss"] = evaluation.loss;
    progress_->note(format("step %lld  validation loss %.4f", static_cast<long long>(report.step),
                           evaluation.loss));
  }
  if (options_.output.json) out_.write_json(line);
}

Evaluation TrainingRun::validate() {
  return evaluate(trainer_.get(), *batches_, RRFP_SPLIT_VALIDATION, options_.training.eval_samples,
                  evaluation_cut(options_.training));
}

void TrainingRun::save() {
  if (options_.output.save.empty()) return;
  if (saved_step_ != result_.step) {
    auto wanted = prepared(rrfp_save_options_init);
    wanted.root = options_.output.save.c_str();
    wanted.keep = options_.output.keep;
    wanted.position = position_;
    wanted.user_json = options_.kept_json.c_str();
    call(rrfp_trainer_save, trainer_.get(), &wanted);
    saved_step_ = result_.step;
  }
  result_.checkpoint = checkpoint_path(options_.output.save, result_.step);
}

/// Without ending the run: the disk may have room again by the next attempt.
void TrainingRun::try_to_save() {
  try {
    save();
    save_failed_ = false;
  } catch (const Failure& failure) {
    progress_->finish();
    complain("train", "step " + std::to_string(result_.step) + " is not saved: " + failure.what());
    save_failed_ = true;
  }
}

/// After a failure, whose own text matters more than that of a second one.
void TrainingRun::save_what_is_left() {
  if (options_.output.save.empty() || result_.step == result_.first_step) return;
  try {
    save();
    complain("train", "saved step " + std::to_string(result_.step) + " in " + result_.checkpoint);
  } catch (const Failure& failure) {
    complain("train", failure.what());
  }
}

void TrainingRun::steps() {
  const int64_t every = options_.output.save_every;
  while (result_.step < options_.training.steps && stop_signal() == 0 && out_.error() == 0) {
    try {
      step();
    } catch (const Failure&) {
      progress_->finish();
      save_what_is_left();
      throw;
    }
    if (every > 0 && result_.step % every == 0) try_to_save();
  }
  progress_->finish();
}

int TrainingRun::run() {
  progress_.emplace(people_, options_.output.quiet, result_.first_step, options_.training.steps);
  introduce();
  catch_stop_signals();
  steps();
  try_to_save();
  out_.check();
  // Before the evaluation, which is no step of the training.
  if (!options_.output.trace.empty() && result_.step > result_.first_step) {
    call(rrfp_trainer_write_trace, trainer_.get(), options_.output.trace.c_str());
    result_.trace = options_.output.trace;
  }
  if (branches_) result_.branches = branches_->shares();
  result_.hint = options_.pipeline.hint;
  if (result_.hint == "auto") result_.hint = text_of(rrfp_trainer_describe_hint, trainer_.get());
  if (validates()) result_.evaluation = validate();
  result_.weights_sha256 = text_of(rrfp_trainer_weights_sha256, trainer_.get());
  people_.write(summary_text(result_, options_, *batches_));
  if (options_.output.json) out_.write_json(summary_json(result_, options_, *batches_));
  out_.check();
  if (save_failed_) return kExitBadInput;
  return stop_signal() == 0 ? 0 : kExitSignal + stop_signal();
}

}  // namespace

int run_training(const TrainOptions& options, const std::optional<CheckpointInfo>& checkpoint) {
  return TrainingRun(options, checkpoint).run();
}

}  // namespace rrfp::cli
