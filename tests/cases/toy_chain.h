// SPDX-License-Identifier: Apache-2.0
//
// The toy chain T(w; x) of CASES.md: stage s multiplies by w[s], the loss of a sample is what the
// last stage gives. A microbatch carries any number of samples. All values of the cases are exact
// in f32, so results are compared with ==.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "toy_pipeline.h"

namespace rrfp::cases {

class ToyChain {
 public:
  /// Weights by stage, samples by microbatch.
  ToyChain(std::vector<float> weights, std::vector<std::vector<float>> samples);
  /// One sample per microbatch.
  ToyChain(std::vector<float> weights, const std::vector<float>& samples);
  /// w = (2,3,5,7), x = (1,2,3,4), mean: loss 525, dw = 262.5, 175, 105, 75, dx = 52.5.
  static ToyChain t1();

  std::vector<float> w;
  std::vector<std::vector<float>> x;
  /// The gradient of the step's loss with respect to each sample's: 1 for the sum, 1/m for the
  /// mean.
  float seed = 1;
  std::vector<rrfp_stage_flags> flags;  // by stage, RRFP_STAGE_LOSS apart; 0 at first
  std::vector<int64_t> activation_bytes;

  // Results, since the last clear().
  std::vector<float> losses;  // by microbatch: the sum over its samples
  std::vector<float> dw;
  std::vector<std::vector<float>> dx;
  std::vector<std::vector<int64_t>> samples_seen;  // by stage and microbatch

  [[nodiscard]] int32_t stages() const { return static_cast<int32_t>(w.size()); }
  [[nodiscard]] int32_t microbatches() const { return static_cast<int32_t>(x.size()); }

  /// Adds the stages and, from stage s to s + 1, edge s. The chain must outlive the runs.
  void build(ToyPipeline& toy);
  void build(ToyPipeline& toy, rrfp_placement placement);
  /// Other samples for the next step.
  void feed(std::vector<std::vector<float>> samples);
  /// Sets results to zero and makes room for those of the microbatches.
  void clear();
  [[nodiscard]] float loss_sum() const;
  /// Whether the results since clear() are those of `times` steps, in closed form.
  [[nodiscard]] testing::AssertionResult right(int times = 1) const;
  /// The same for a step in forward mode.
  [[nodiscard]] testing::AssertionResult right_losses() const;

 private:
  [[nodiscard]] StageCode code(int32_t s);
  [[nodiscard]] std::vector<float> gradient(const TaskContext& context) const;
};

/// Whether every rank got through the step, in time, with a report that adds up.
testing::AssertionResult done(const StepResult& result);

/// A chain on ranks of its own, for tests that run one or a few steps of T.
struct ChainPipeline {
  ChainPipeline(ToyChain c, int32_t ranks, rrfp_placement placement)
      : chain(std::move(c)), toy(ranks) {
    chain.build(toy, placement);
  }
  /// One stage per rank.
  explicit ChainPipeline(ToyChain c) : ChainPipeline(c, c.stages(), RRFP_PLACEMENT_LINEAR) {}

  /// A step over the samples of the chain.
  [[nodiscard]] Step step(const HintPtr& hint) const {
    Step s;
    s.hint = hint.get();
    s.microbatches = chain.microbatches();
    return s;
  }
  /// Runs a step on cleared results.
  StepResult run(const Step& s) {
    chain.clear();
    return toy.run(s);
  }
  StepResult run(const HintPtr& hint) { return run(step(hint)); }

  ToyChain chain;
  ToyPipeline toy;
};

}  // namespace rrfp::cases
