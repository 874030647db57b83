// SPDX-License-Identifier: Apache-2.0
//
// rrfp simulate: one seed after another, until a signal comes. A large step takes a while and
// cannot be broken off, so it is simulated on a thread that is left behind.
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <memory>

#include "capi/cli/files.h"
#include "capi/cli/hints.h"
#include "capi/cli/progress.h"
#include "capi/cli/signals.h"
#include "capi/cli/simulate.h"

namespace rrfp::cli {
namespace {

constexpr double kNsPerUs = 1e3;

Simulation make_simulation(const SimulateOptions& options) {
  auto wanted = prepared(rrfp_simulation_options_init);
  const bool is_measured = !options.measured.empty();
  wanted.preset = is_measured ? nullptr : options.preset.c_str();
  wanted.trace = is_measured ? options.measured.c_str() : nullptr;
  wanted.hint = options.hint.c_str();
  wanted.order = order_of(options.order);
  wanted.stages = options.stages;
  wanted.microbatches = options.microbatches;
  wanted.injection = injection_of(options.injection);
  wanted.cap = options.cap;
  wanted.offload_ms = options.offload_ms;
  wanted.tensor_parallel = options.tensor_parallel;
  wanted.readiness = options.readiness == "leader" ? RRFP_READINESS_LEADER : RRFP_READINESS_ALL;
  wanted.data_parallel = options.data_parallel;
  wanted.history = options.history;
  wanted.dispatch_ns = std::llround(options.dispatch_us * kNsPerUs);
  wanted.report_ns = std::llround(options.report_us * kNsPerUs);
  if (options.nondeterministic) wanted.flags |= RRFP_SIMULATION_NONDETERMINISTIC;
  const auto make = [&wanted] { return create<Simulation>(rrfp_simulation_create, &wanted); };
  return is_measured ? labelled("--measured " + options.measured, make) : make();
}

class SimulationRun {
 public:
  explicit SimulationRun(const SimulateOptions& options)
      : options_(options), counter_(err_, "seed", options.seeds, true) {}

  int run() {
    catch_stop_signals();
    if (start()) seeds();
    counter_.clear();
    if (options_.json) {
      out_.write_json(seeds_summary_json(options_, results_));
    } else {
      out_.write(seeds_summary(options_, results_));
    }
    if (is_left_behind_) std::_Exit(kExitSignal + stop_signal());
    out_.check();
    return stop_signal() == 0 ? 0 : kExitSignal + stop_signal();
  }

 private:
  /// False if a signal came first.
  bool start() {
    std::optional<std::shared_ptr<rrfp_simulation>> made =
        unless_stopped<std::shared_ptr<rrfp_simulation>>(
            [options = options_] { return make_simulation(options); });
    is_left_behind_ = !made;
    if (made) simulation_ = std::move(*made);
    return made.has_value();
  }

  void seeds() {
    for (int64_t k = 0; k < options_.seeds && stop_signal() == 0 && out_.error() == 0; ++k) {
      counter_.done(k);
      const uint64_t seed = options_.first_seed + static_cast<uint64_t>(k);
      std::optional<SeedResult> result = unless_stopped<SeedResult>(
          [simulation = simulation_, seed, label = "--hint " + options_.hint] {
            SeedResult made;
            made.seed = seed;
            labelled(label,
                     [&] { return call(rrfp_simulation_run, simulation.get(), seed, &made.step); });
            made.ran = text_of(rrfp_simulation_describe, simulation.get());
            return made;
          });
      is_left_behind_ = !result;
      if (!result) return;
      if (k == 0) draw();
      results_.push_back(std::move(*result));
      show();
    }
  }

  /// The step that has just run.
  void draw() const {
    const auto write = [this](const std::string& path) {
      call(rrfp_simulation_write_trace, simulation_.get(), path.c_str());
    };
    if (!options_.trace.empty()) write(options_.trace);
    if (!options_.chart.empty()) draw_svg(write, options_.chart);
  }

  void show() {
    counter_.clear();
    const SeedResult& result = results_.back();
    if (options_.json) return out_.write_json(seed_json(result));
    if (results_.size() == 1) out_.write(seeds_head(options_, result));
    out_.write(seed_row(options_, result));
  }

  const SimulateOptions& options_;
  Output out_{STDOUT_FILENO};
  Output err_{STDERR_FILENO};
  Counter counter_;
  std::shared_ptr<rrfp_simulation> simulation_;
  std::vector<SeedResult> results_;
  bool is_left_behind_ = false;  // a thread is still working
};

bool count_case(void* counter, int64_t done) {
  static_cast<Counter*>(counter)->done(done);
  return stop_signal() == 0;
}

}  // namespace

int run_simulation(const SimulateOptions& options) {
  return SimulationRun(options).run();
}

int run_stress(const SimulateOptions& options) {
  Output out(STDOUT_FILENO);
  Output err(STDERR_FILENO);
  Counter counter(err, "case", options.stress, false);
  catch_stop_signals();
  auto report = prepared(rrfp_stress_report_init);
  call(rrfp_simulation_stress, options.first_seed, options.stress, &count_case,
       static_cast<void*>(&counter), &report);
  counter.clear();
  if (options.json) {
    out.write_json(stress_json(report));
  } else {
    out.write(stress_text(report));
  }
  out.check();
  if (report.stalls + report.cap_violations + report.task_errors + report.failure_errors > 0) {
    return kExitFailed;
  }
  return stop_signal() == 0 ? 0 : kExitSignal + stop_signal();
}

}  // namespace rrfp::cli
