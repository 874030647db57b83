// SPDX-License-Identifier: Apache-2.0
//
// How the trainer's steps run, chosen from how they went: `auto`. After some of the steps, what
// their tasks took is replayed by the simulator under every candidate (engine/sim/choose.h), on a
// thread of its own while the next step runs. Hint, order and holding may change between steps;
// layout and injection never do, so results are the same to the bit whatever is chosen.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/host/options.h"
#include "engine/sim/choose.h"

namespace rrfp::train {

class AutoChoice {
 public:
  /// `base`: what the choice does not touch: deterministic, admission, credits.
  AutoChoice(std::shared_ptr<const core::StageGraph> graph, std::vector<core::Cap> caps,
             const core::Policy& base);
  /// Waits for a choice that is being made.
  ~AutoChoice();
  AutoChoice(const AutoChoice&) = delete;
  AutoChoice& operator=(const AutoChoice&) = delete;

  /// Sets hint, policy and predictions of a step. Its shape has been set.
  void apply(host::StepRequest& request);
  /// What the tasks of a step took. `sizes`: [stage][microbatch], row by row, in the order of
  /// injection: how much work each is, in units of the stage.
  void observe(const core::StepShape& shape, std::vector<double> sizes,
               const sim::Durations& durations);

  /// What runs, what else could, and how long each was predicted to take.
  [[nodiscard]] const std::string& why() const { return applied().why; }
  [[nodiscard]] const std::string& name() const { return applied().name; }

 private:
  struct Measured {
    core::StepShape shape;
    std::vector<double> sizes;  // [stage][microbatch]
    sim::Durations durations;

    // Of one stage. Steps are compared by what a unit of work takes, since a branch may have much
    // to do in one and hardly anything in the next.
    [[nodiscard]] std::span<const double> row(int32_t stage) const;
    [[nodiscard]] double mean_size(int32_t stage) const;
    /// In parts of `unit`; 0 if that is 0.
    [[nodiscard]] std::vector<double> sizes_of(int32_t stage, double unit) const;
  };
  struct Decision {
    std::string name;
    std::string why;
    std::shared_ptr<const core::Hint> hint;
    core::Policy policy;
    core::StepShape shape;  // for which it was made, with predictions
  };

  static constexpr size_t kHistory = 3;
  static constexpr int64_t kEveryFirst = 3;  // chooses after each of the first steps ...
  static constexpr int64_t kEvery = 16;      // ... and after every so many

  [[nodiscard]] Decision first_decision() const;
  [[nodiscard]] const Decision& applied() const { return fits_ ? decision_ : first_; }
  [[nodiscard]] Decision decide(const std::vector<Measured>& history) const;
  [[nodiscard]] std::vector<int64_t> stage_means(const std::vector<Measured>& history) const;
  void predict(const std::vector<Measured>& history, int32_t stage,
               std::span<const int64_t> stage_ns, sim::Durations& expected,
               std::vector<sim::Replay>& replays) const;

  const std::shared_ptr<const core::StageGraph> graph_;
  const std::vector<core::Cap> caps_;
  const core::Policy base_;
  std::deque<Measured> history_;
  int64_t observed_ = 0;
  const Decision first_;  // until something is measured, and where what was chosen does not fit
  Decision decision_;
  bool fits_ = true;  // the decision, to the last step
  // The choice that is being made.
  std::thread chooser_;
  Decision next_;  // chooser_ writes it, then sets ready_
  std::atomic<bool> ready_{false};
};

}  // namespace rrfp::train
