// SPDX-License-Identifier: Apache-2.0
//
// The tables of engine/sim/STUDY.md, as CSV:
//
//   study TABLE [--seeds N]
//
// TABLE is one of those that `study` without arguments lists. Figures are medians over seeds of
// makespan / lower bound, unless a table says otherwise.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/core/named_policies.h"
#include "engine/sim/bound.h"
#include "engine/sim/experiment.h"

namespace {

using namespace rrfp;
using core::Order;
using sim::ExperimentOptions;

constexpr const char* kPresets[] = {"uniform", "language", "multimodal", "straggler", "slow-link"};
int64_t seeds = 30;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

ExperimentOptions cell(std::string_view preset, std::string hint, Order order = Order::kReady) {
  ExperimentOptions o;
  o.preset = *sim::find_preset(preset);
  o.hint = std::move(hint);
  o.order = order;
  return o;
}

/// The ratio to the bound of each seed; stops at the first that fails.
std::vector<double> ratios(const ExperimentOptions& options, std::string& error) {
  sim::Experiment experiment;
  if (core::Status s = sim::Experiment::create(options, experiment); !s.ok()) {
    error = s.text();
    return {};
  }
  std::vector<double> out;
  for (int64_t seed = 0; seed < seeds; ++seed) {
    sim::StepResult result;
    core::Status s = experiment.run(static_cast<uint64_t>(seed), result);
    if (s.ok() && !result.outcome.complete) s = {core::Code::kBadOrder, result.outcome.error};
    if (!s.ok()) {
      error = s.text();
      return {};
    }
    out.push_back(result.ratio());
  }
  return out;
}

/// A field of the table: the median, or "-" where the way is not possible.
void print_ratio(const ExperimentOptions& options) {
  std::string error;
  const std::vector<double> values = ratios(options, error);
  if (values.empty()) {
    std::printf(",-");
    std::fprintf(stderr, "%s: %s\n", options.hint.c_str(), error.c_str());
  } else {
    std::printf(",%.3f", median(values));
  }
  std::fflush(stdout);
}

using Change = std::function<void(ExperimentOptions&)>;

void header(const char* first, std::initializer_list<const char*> rest) {
  std::printf("%s", first);
  for (const char* name : rest) std::printf(",%s", name);
  std::printf("\n");
}

void over_presets(const std::string& label, const std::string& hint, Order order,
                  const Change& change = {}) {
  std::printf("%s", label.c_str());
  for (const char* preset : kPresets) {
    ExperimentOptions o = cell(preset, hint, order);
    if (change) change(o);
    print_ratio(o);
  }
  std::printf("\n");
}

void preset_header(const char* first) {
  header(first, {"uniform", "language", "multimodal", "straggler", "slow-link"});
}

// --- The tables

void table_ways() {
  preset_header("way");
  over_presets("1f1b paired", "1f1b", Order::kPaired);
  for (const char* fixed : {"1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v"}) {
    over_presets(std::string(fixed) + " strict", fixed, Order::kStrict);
  }
  for (const double cap : {1.0, 2.0}) {
    for (const char* hint : {"bf", "bfw", "bfw-sort", "rf-1", "rf-v", "rf-m", "rf-d", "auto"}) {
      over_presets(std::string(hint) + " cap " + (cap == 1 ? "1" : "2"), hint, Order::kReady,
                   [cap](ExperimentOptions& o) { o.cap = cap; });
    }
  }
}

/// One step after another from the paired 1F1B of today to the whole.
void table_components() {
  preset_header("added");
  over_presets("paired 1F1B", "1f1b", Order::kPaired);
  over_presets("asynchronous sends", "1f1b", Order::kStrict);
  over_presets("readiness (bf)", "bf", Order::kReady);
  over_presets("split backward (bfw)", "bfw", Order::kReady);
  over_presets("tent injection (bfw-sort)", "bfw-sort", Order::kReady);
  over_presets("V placement (rf-v)", "rf-v", Order::kReady);
  over_presets("ZB-V ranks and holding (rf-m)", "rf-m", Order::kReady);
  over_presets("choice by replay (auto)", "auto", Order::kReady);
  over_presets("host offload (20 ms copies)", "auto", Order::kReady,
               [](ExperimentOptions& o) { o.offload_ms = 20; });
}

/// Readiness alone: the same layout, injection and memory as a plan on known sizes that is obeyed.
void table_readiness() {
  preset_header("order");
  for (const char* policy : {"rf-1", "rf-v", "rf-m"}) {
    const std::string name = policy;
    over_presets("plan of " + name + " obeyed", "plan:" + name, Order::kStrict);
    over_presets("plan of " + name + " as ranks", "plan:" + name, Order::kReady);
    over_presets(name, name, Order::kReady);
  }
}

void table_caps() {
  preset_header("cap");
  for (const double cap : {0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 0.0}) {
    char label[32];
    std::snprintf(label, sizeof label, cap == 0 ? "none" : "%g", cap);
    over_presets(label, "auto", Order::kReady, [cap](ExperimentOptions& o) { o.cap = cap; });
  }
}

void table_hints() {
  preset_header("hint");
  for (const char* hint :
       {"gpipe", "1f1b", "bf", "bfw", "zb-h1", "zb-h2", "interleaved", "interleaved-zb",
        "looped-bfs", "zb-v", "v-half", "v-min", "dualpipe-v"}) {
    over_presets(hint, hint, Order::kReady);
  }
}

void table_jitter() {
  header("sigma", {"zb-v strict", "rf-m", "rf-v", "rf-d", "auto"});
  for (const double sigma : {0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6}) {
    std::printf("%g", sigma);
    for (const char* hint : {"zb-v", "rf-m", "rf-v", "rf-d", "auto"}) {
      const bool strict = std::strcmp(hint, "zb-v") == 0;
      ExperimentOptions o = cell("uniform", hint, strict ? Order::kStrict : Order::kReady);
      o.preset.sigma = sigma;
      o.preset.hop_sigma = 0.5;
      print_ratio(o);
    }
    std::printf("\n");
  }
}

void table_scale() {
  header("ranks x microbatches", {"language auto", "language zb-v", "multimodal auto",
                                  "multimodal zb-v", "straggler auto", "straggler zb-v"});
  for (const int32_t p : {4, 8, 16, 32, 64}) {
    for (const int32_t each : {1, 2, 4, 8}) {
      std::printf("%dx%d", p, p * each);
      for (const char* preset : {"language", "multimodal", "straggler"}) {
        for (const char* hint : {"auto", "zb-v"}) {
          ExperimentOptions o =
              cell(preset, hint, std::strcmp(hint, "auto") == 0 ? Order::kReady : Order::kStrict);
          o.devices = p;
          o.microbatches = p * each;
          print_ratio(o);
        }
      }
      std::printf("\n");
    }
  }
}

void table_late_reports() {
  preset_header("report ms");
  for (const double ms : {0.0, 0.05, 0.2, 0.5, 2.0, 5.0}) {
    char label[32];
    std::snprintf(label, sizeof label, "%g", ms);
    over_presets(label, "rf-m", Order::kReady, [ms](ExperimentOptions& o) {
      o.runtime.report_ns = static_cast<int64_t>(ms * 1e6);
    });
  }
}

/// Dispatch cost against the length of tasks.
void table_dispatch() {
  header("dispatch us", {"1 ms tasks", "10 ms tasks", "100 ms tasks"});
  for (const int64_t us : {0, 1, 10, 100, 1000}) {
    std::printf("%lld", static_cast<long long>(us));
    for (const double base_ms : {1.0, 10.0, 100.0}) {
      ExperimentOptions o = cell("language", "rf-m");
      const double scale = base_ms / o.preset.base_ms;
      o.preset.base_ms = base_ms;
      o.preset.latency_ms *= scale;
      o.preset.serialize_ms *= scale;
      o.runtime.dispatch_ns = us * 1000;
      print_ratio(o);
    }
    std::printf("\n");
  }
}

void table_groups() {
  preset_header("group");
  for (const int32_t size : {1, 2, 4, 8}) {
    for (const auto readiness : {sim::Group::Readiness::kAll, sim::Group::Readiness::kLeader}) {
      const bool all = readiness == sim::Group::Readiness::kAll;
      if (size == 1 && !all) continue;
      for (const bool straggles : {false, true}) {
        if (size == 1 && straggles) continue;
        over_presets(std::to_string(size) +
                         (size == 1 ? ""
                          : all     ? " all"
                                    : " leader") +
                         (straggles ? " straggling" : ""),
                     "rf-m", Order::kReady, [&](ExperimentOptions& o) {
                       o.group.size = size;
                       o.group.readiness = readiness;
                       if (!straggles) return;
                       o.group.straggle_probability = 0.05;
                       o.group.straggle_ns = 5e6;
                     });
      }
    }
  }
}

void table_determinism() {
  preset_header("weight gradients");
  for (const double cap : {1.0, 2.0}) {
    for (const bool deterministic : {true, false}) {
      over_presets(
          std::string(deterministic ? "in order" : "any order") + " cap " + (cap == 1 ? "1" : "2"),
          "rf-m", Order::kReady, [=](ExperimentOptions& o) {
            o.cap = cap;
            o.deterministic = deterministic;
          });
    }
  }
}

/// The best fixed schedule that needs no more memory against auto: the median of the pairwise
/// ratios of makespans. Above 1, auto is faster.
double gain_over_fixed(const ExperimentOptions& o) {
  std::string error;
  const std::vector<double> mine = ratios(o, error);
  std::vector<double> best;
  for (const char* fixed : {"1f1b", "zb-h1", "zb-h2", "zb-v", "interleaved"}) {
    ExperimentOptions f = o;
    f.hint = fixed;
    f.order = Order::kStrict;
    sim::Experiment experiment;
    if (!sim::Experiment::create(f, experiment).ok()) continue;
    sim::StepResult result;
    bool fits = true;
    std::vector<double> theirs;
    for (int64_t seed = 0; fits && seed < seeds; ++seed) {
      fits = experiment.run(static_cast<uint64_t>(seed), result).ok() && result.outcome.complete;
      // A schedule made for equal sizes may go a little above on others.
      fits = fits && result.peak_ratio() <= o.cap * 1.05;
      theirs.push_back(result.ratio());
    }
    if (fits && (best.empty() || median(theirs) < median(best))) best = theirs;
  }
  std::vector<double> gain;
  for (size_t k = 0; k < mine.size() && k < best.size(); ++k) gain.push_back(best[k] / mine[k]);
  return median(gain);
}

void table_fixed() {
  std::printf("ranks x microbatches");
  for (const char* preset : kPresets) std::printf(",%s cap 1,%s cap 2", preset, preset);
  std::printf("\n");
  for (const int32_t p : {8, 16, 64}) {
    for (const int32_t each : {1, 2, 4, 8}) {
      std::printf("%dx%d", p, p * each);
      for (const char* preset : kPresets) {
        for (const double cap : {1.0, 2.0}) {
          ExperimentOptions o = cell(preset, "auto");
          o.devices = p;
          o.microbatches = p * each;
          o.cap = cap;
          std::printf(",%.3f", gain_over_fixed(o));
          std::fflush(stdout);
        }
      }
      std::printf("\n");
    }
  }
}

/// Time and memory of the simulator itself, in one thread.
void table_speed() {
  header("ranks x microbatches, hint", {"tasks", "seconds", "us per task"});
  const auto run = [](int32_t p, int32_t m, const char* hint, Order order) {
    ExperimentOptions o = cell("language", hint, order);
    o.devices = p;
    o.microbatches = m;
    sim::Experiment experiment;
    if (!sim::Experiment::create(o, experiment).ok()) return;
    sim::Prepared prepared;
    if (!experiment.prepare(0, prepared).ok()) return;
    const sim::Scenario scenario = experiment.scenario(prepared);
    std::vector<double> us;
    int64_t tasks = 0;
    const int repeats = p > 256 ? 1 : 7;
    for (int k = 0; k < repeats; ++k) {
      const auto begin = std::chrono::steady_clock::now();
      tasks = sim::simulate(scenario).tasks;
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      us.push_back(took.count());
    }
    std::printf("%dx%d %s,%lld,%.4f,%.3f\n", p, m, hint, static_cast<long long>(tasks),
                median(us) / 1e6, median(us) / static_cast<double>(tasks));
    std::fflush(stdout);
  };
  run(16, 64, "1f1b", Order::kStrict);
  run(16, 64, "bfw", Order::kReady);
  run(16, 64, "rf-v", Order::kReady);
  run(16, 64, "rf-m", Order::kReady);
  run(64, 256, "rf-m", Order::kReady);
  run(4096, 256, "1f1b", Order::kStrict);
  run(4096, 256, "bfw", Order::kReady);
}

const std::map<std::string, void (*)()> kTables = {
    {"ways", table_ways},
    {"components", table_components},
    {"readiness", table_readiness},
    {"caps", table_caps},
    {"hints", table_hints},
    {"jitter", table_jitter},
    {"scale", table_scale},
    {"late-reports", table_late_reports},
    {"dispatch", table_dispatch},
    {"groups", table_groups},
    {"determinism", table_determinism},
    {"fixed", table_fixed},
    {"speed", table_speed},
};

}  // namespace

int main(int count, char** values) {
  const auto table = count > 1 ? kTables.find(values[1]) : kTables.end();
  const bool good = table != kTables.end() &&
                    (count == 2 || (count == 4 && std::strcmp(values[2], "--seeds") == 0));
  if (!good) {
    std::fprintf(stderr, "study TABLE [--seeds N]; the tables are");
    for (const auto& [name, run] : kTables) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  if (count == 4) seeds = std::atoll(values[3]);
  table->second();
}
