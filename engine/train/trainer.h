// SPDX-License-Identifier: Apache-2.0
//
// Trains a model on a pipeline of ranks, which are threads that the trainer owns.
//
// A step: the caller's thread checks the batch and posts a job; every rank runs its tasks of each
// round; then all meet, agree whether the step is good, and update the weights they own. What is
// summed over ranks (the norm of the gradients) is computed by every rank from the same numbers in
// the same order, so all decide alike without a message.
//
// Threads: one caller at a time, but cancel() from any.
#pragma once

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/train/auto_choice.h"
#include "engine/train/checkpoint.h"
#include "engine/train/optimizer.h"
#include "engine/train/rank_worker.h"

namespace rrfp::train {

enum class Reduction : int32_t { kMean = 0, kSum = 1 };
/// The order in which the microbatches of a round enter the pipeline. A function of their sizes
/// alone; it is the order in which weight gradients add up, so another one rounds otherwise.
enum class Injection : int32_t {
  kTent = 0,  // by size, short ... long ... short; as given if all are of one size
  kData = 1,  // as given
};
enum class NonFinite : int32_t { kStop = 0, kSkip = 1 };

struct TrainerOptions {
  // The pipeline.
  int32_t stages = 1;
  int32_t ranks = 0;  // 0 = what the placement needs
  core::Placement placement = core::Placement::kLinear;
  std::vector<int32_t> stage_ranks;        // by stage; empty = as `placement` says
  std::vector<int32_t> first_blocks;       // by stage; empty = from estimated costs
  std::shared_ptr<const core::Hint> hint;  // null = zb-h1
  bool choose_hint = false;                // auto: hint, order and holding follow what is measured
  Injection injection = Injection::kTent;
  core::Cap cap;
  host::PipelineOptions pipeline;  // its caps are replaced by `cap`
  bool recompute = false;
  // Learning.
  OptimizerOptions optimizer;
  Reduction reduction = Reduction::kMean;
  NonFinite non_finite = NonFinite::kStop;
  double loss_scale = 0;  // 0 = off
  int64_t loss_scale_growth = 0;
  uint64_t seed = 0;
  int32_t trace_steps = 0;
  int64_t delay_us_max = 0;
};

struct TrainReport {
  bool skipped = false;
  int64_t step = 0;
  double loss = 0;         // of all losses, each reduced and multiplied by its factor
  double loss_sum = 0;     // of the first loss
  double loss_weight = 0;  // of the first loss
  double gradient_norm = 0;
  double lr = 0;
  double loss_scale = 1;
  int64_t wall_ns = 0;
  host::StepReport time;  // sums over ranks and rounds
  int64_t state_bytes = 0;
  int64_t tensor_bytes_peak = 0;
};

class Trainer {
 public:
  static core::Status create(const model::Graph& graph, const TrainerOptions& options,
                             std::unique_ptr<Trainer>& out);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  core::Status step(const Batch& batch, TrainReport& out);
  core::Status evaluate(const Batch& batch, TrainReport& out);
  void cancel();

  [[nodiscard]] const model::Graph& graph() const { return setting_.graph; }
  [[nodiscard]] const kernels::Kernels& kernels() const { return *setting_.kernels; }
  [[nodiscard]] const Weights& weights() const { return *weights_; }
  [[nodiscard]] const std::vector<int32_t>& first_blocks() const { return options_.first_blocks; }
  [[nodiscard]] int32_t rank_count() const { return setting_.stages->ranks(); }
  [[nodiscard]] int64_t steps() const { return steps_; }
  [[nodiscard]] int64_t updates() const { return updates_; }
  [[nodiscard]] uint64_t seed() const { return options_.seed; }
  /// Of the last round of the last step.
  [[nodiscard]] const host::StepReport& rank_report(int32_t rank) const {
    return ranks_[static_cast<size_t>(rank)]->report;
  }
  /// Of the last step or evaluation, reduced, without their factors; NaN for one that counted
  /// nothing.
  [[nodiscard]] std::span<const double> losses() const { return reduced_; }
  /// Of the last step or evaluation.
  [[nodiscard]] const StageWork& stage_work(int32_t stage) const {
    return work_[static_cast<size_t>(stage)];
  }
  /// That of its first block.
  [[nodiscard]] int32_t branch_of(int32_t stage) const {
    return branches_[static_cast<size_t>(blocks_of(stage).first_block)];
  }
  [[nodiscard]] int32_t rank_of(int32_t stage) const {
    return setting_.stages->stage(core::StageId(stage)).rank.value;
  }
  [[nodiscard]] const model::CutStage& blocks_of(int32_t stage) const {
    return setting_.cut.stages[static_cast<size_t>(stage)];
  }
  [[nodiscard]] std::string weights_sha256() const;
  core::Status write_trace(const std::string& path) const;
  /// auto: the hint of the last step, and why; else the hint's name and nothing.
  [[nodiscard]] std::string hint_name() const;
  [[nodiscard]] std::string hint_why() const;

  /// The caller has changed a gradient; the next step must begin with none.
  void gradients_changed() { gradients_kept_ = true; }

  core::Status save(const std::string& root, uint64_t position, const std::string& user_json,
                    int32_t keep) const;
  core::Status load(const std::string& path, bool weights_only, uint64_t& position);

 private:
  struct Rank {
    host::RankHost* host = nullptr;
    std::optional<RankWorker> worker;
    host::StepReport report;  // of the last round
    host::StepReport sums;    // over the rounds of the job
    core::Status status;      // of the job
    std::thread thread;
  };
  /// What the ranks are to do; written by the caller's thread before the job is posted.
  struct Job {
    std::vector<Round> rounds;
    size_t round_count = 0;
    bool training = false;
    bool update = false;
    double lr = 0;
  };
  /// What the ranks agree on at the end of a step. All compute the same.
  struct Verdict {
    double norm = 0;
    bool finite = true;
    double gradient_scale = 1;
  };

  explicit Trainer(TrainerOptions options) : options_(std::move(options)) {}

  // trainer.cpp
  core::Status prepare(const model::Graph& graph);
  core::Status make_stages();
  core::Status start_ranks();
  core::Status check_batch(const Batch& batch);
  core::Status weigh_losses(const Batch& batch);
  void fill_job(const Batch& batch, bool training);
  void order_microbatches(int32_t rounds);
  void observe_round();
  core::Status run_job();
  core::Status recover();
  void reduce_losses();
  void fill_report(TrainReport& out, int64_t begin_ns) const;
  [[nodiscard]] CheckpointState state(uint64_t position, const std::string& user_json) const;

  // rank_loop.cpp: on the threads of the ranks
  void rank_loop(size_t rank);
  void run_rounds(Rank& rank);
  void finish_step(size_t rank);
  [[nodiscard]] Verdict judge() const;

  TrainerOptions options_;
  Setting setting_;
  std::optional<Weights> weights_;
  std::optional<InputChecks> checks_;
  std::optional<ShapePlans> shape_plans_;
  std::shared_ptr<host::Pipeline> pipeline_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<size_t> owner_;  // by parameter: the rank that updates it

  // Of the running step, by microbatch.
  std::vector<std::shared_ptr<const ShapePlan>> plans_;
  std::vector<int32_t> injection_;  // round by round: the microbatch of the batch that goes in k-th
  std::vector<double> sizes_;       // of a round
  std::optional<AutoChoice> choice_;
  std::vector<int32_t> branches_;    // by block
  std::string proposal_;             // which layout would be better, for choice_
  sim::Durations durations_;         // of the last round; for choice_
  std::vector<float> loss_factors_;  // [microbatch][loss]
  std::vector<double> losses_;       // [microbatch][loss]: sums of elements
  std::vector<StageWork> work_;      // by stage
  std::vector<double> weight_sums_;  // by loss
  std::vector<double> loss_sums_;    // by loss
  std::vector<double> reduced_;      // by loss
  double step_scale_ = 1;            // of the loss
  std::vector<double> squares_;      // by parameter: of the gradient
  Job job_;
  Verdict verdict_;

  // Training state.
  int64_t steps_ = 0;
  int64_t updates_ = 0;
  int64_t rounds_run_ = 0;
  double loss_scale_ = 1;
  int64_t good_steps_ = 0;
  bool gradients_kept_ = false;

  std::mutex mutex_;  // of the three below
  std::condition_variable changed_;
  int64_t jobs_posted_ = 0;
  size_t ranks_done_ = 0;
  bool stop_ = false;
  std::optional<std::barrier<>> meeting_;
  std::atomic<bool> failed_{false};
};

}  // namespace rrfp::train
