// SPDX-License-Identifier: Apache-2.0
//
// Schedules against policies in real time, on one realisation of a workload at a time:
//
//   variability [--ranks 16] [--microbatches 64] [--cap 1] [--seeds 1] [--scale 1]
//               [--presets uniform,language,...] [--dump FILE]
//
// For each preset and each way to run it: what the real host took, what the simulator says, their
// ratio, and how much faster it was than paired 1F1B. Fixed schedules keep the memory they need;
// ready ones keep --cap times that of 1F1B. --scale shortens all times. --dump writes what a peer
// needs to run the same realisation (peers/torch_pipelining.py) instead of running anything.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tests/bench/real_run.h"

namespace {

using namespace rrfp;

struct Way {
  const char* label;
  const char* hint;
  core::Order order;
};

constexpr Way kWays[] = {
    {"1f1b paired", "1f1b", core::Order::kPaired},
    {"1f1b strict", "1f1b", core::Order::kStrict},
    {"zb-h1 strict", "zb-h1", core::Order::kStrict},
    {"zb-v strict", "zb-v", core::Order::kStrict},
    {"bfw", "bfw", core::Order::kReady},
    {"rf-v", "rf-v", core::Order::kReady},
    {"rf-m", "rf-m", core::Order::kReady},
    {"rf-d", "rf-d", core::Order::kReady},
    {"auto", "auto", core::Order::kReady},
};

struct Arguments {
  int32_t ranks = 16;
  int32_t microbatches = 64;
  double cap = 1;
  int64_t seeds = 1;
  double scale = 1;
  std::string presets = "uniform,language,multimodal,straggler,slow-link";
  std::string dump;
};

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "variability: %s\n", text.c_str());
  std::exit(2);
}

Arguments parse(int count, char** values) {
  Arguments a;
  for (int k = 1; k < count; k += 2) {
    const std::string name = values[k];
    if (k + 1 == count) fail(name + " needs a value");
    const char* value = values[k + 1];
    if (name == "--ranks") {
      a.ranks = std::atoi(value);
    } else if (name == "--microbatches") {
      a.microbatches = std::atoi(value);
    } else if (name == "--cap") {
      a.cap = std::atof(value);
    } else if (name == "--seeds") {
      a.seeds = std::atoll(value);
    } else if (name == "--scale") {
      a.scale = std::atof(value);
    } else if (name == "--presets") {
      a.presets = value;
    } else if (name == "--dump") {
      a.dump = value;
    } else {
      fail("unknown option " + name);
    }
  }
  if (!(a.scale > 0)) fail("--scale is not positive");
  return a;
}

std::vector<sim::Preset> presets(const Arguments& a) {
  std::vector<sim::Preset> out;
  for (size_t begin = 0; begin <= a.presets.size();) {
    const size_t end = std::min(a.presets.find(',', begin), a.presets.size());
    const std::string name = a.presets.substr(begin, end - begin);
    const sim::Preset* found = sim::find_preset(name);
    if (found == nullptr) fail("unknown preset " + name);
    out.push_back(*found);
    for (double* ms : {&out.back().base_ms, &out.back().latency_ms, &out.back().serialize_ms,
                       &out.back().episode_ms}) {
      *ms *= a.scale;
    }
    begin = end + 1;
  }
  return out;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void run(const Arguments& a, const sim::Preset& preset) {
  std::printf("%s: %d ranks, %d microbatches, cap %g, %g ms tasks, medians of %lld\n",
              std::string(preset.name).c_str(), a.ranks, a.microbatches, a.cap, preset.base_ms,
              static_cast<long long>(a.seeds));
  std::printf("  %-14s %10s %10s %8s %8s %8s %8s\n", "", "real ms", "sim ms", "real/sim", "speedup",
              "memory", "oversl.");
  std::vector<double> paired;
  for (const Way& way : kWays) {
    sim::ExperimentOptions options;
    options.preset = preset;
    options.devices = a.ranks;
    options.microbatches = a.microbatches;
    options.hint = way.hint;
    options.order = way.order;
    options.cap = a.cap;
    sim::Experiment experiment;
    if (core::Status s = sim::Experiment::create(options, experiment); !s.ok()) fail(s.text());
    std::vector<double> real_ms, sim_ms, ratio, speedup, memory, overslept;
    std::string chosen;
    for (int64_t seed = 0; seed < a.seeds; ++seed) {
      sim::Prepared prepared;
      if (core::Status s = experiment.prepare(static_cast<uint64_t>(seed), prepared); !s.ok()) {
        fail(s.text());
      }
      bench::RealRun real;
      if (core::Status s = bench::run_real(experiment, prepared, false, real); !s.ok()) {
        fail(s.text());
      }
      const sim::Outcome outcome = sim::simulate(experiment.scenario(prepared));
      real_ms.push_back(static_cast<double>(real.makespan_ns) / 1e6);
      sim_ms.push_back(static_cast<double>(outcome.makespan_ns) / 1e6);
      ratio.push_back(real_ms.back() / sim_ms.back());
      memory.push_back(static_cast<double>(real.peak_bytes) /
                       static_cast<double>(sim::native_bytes(*prepared.step)));
      overslept.push_back(static_cast<double>(real.overslept_ns) / 1e6);
      if (&way == &kWays[0]) paired.push_back(real_ms.back());
      speedup.push_back(paired[static_cast<size_t>(seed)] / real_ms.back());
      if (prepared.candidate.name != way.hint) chosen = prepared.candidate.name;
    }
    std::printf("  %-14s %10.1f %10.1f %8.3f %7.2fx %7.2fx %5.2f ms%s%s\n", way.label,
                median(real_ms), median(sim_ms), median(ratio), median(speedup), median(memory),
                median(overslept), chosen.empty() ? "" : "  ran ", chosen.c_str());
    std::fflush(stdout);
  }
}

/// Durations of the chunks of each layout, in the order of the data, as JSON.
void dump(const Arguments& a, const sim::Preset& preset) {
  const sim::Realization step(preset, a.ranks, a.microbatches, 0);
  std::ofstream out(a.dump);
  out << "{\"preset\": \"" << preset.name << "\", \"ranks\": " << a.ranks
      << ", \"microbatches\": " << a.microbatches << ", \"time_scale\": 1"
      << ", \"message_bytes\": 1024, \"layouts\": {";
  const std::pair<const char*, sim::Layout> layouts[] = {{"linear", {core::Placement::kLinear, 1}},
                                                         {"loop", {core::Placement::kLoop, 2}},
                                                         {"v", {core::Placement::kV, 2}}};
  const std::pair<const char*, core::TaskKind> kinds[] = {
      {"forward_ms", core::TaskKind::kForward},
      {"input_gradient_ms", core::TaskKind::kInputGradient},
      {"weight_gradient_ms", core::TaskKind::kWeightGradient}};
  for (const auto& [name, layout] : layouts) {
    out << (name == layouts[0].first ? "" : ",") << "\n\"" << name << "\": {\"placement\": \""
        << name << "\", \"chunks\": " << layout.chunks;
    for (const auto& [key, kind] : kinds) {
      out << ",\n\"" << key << "\": [";
      for (int32_t s = 0; s < layout.chunks * a.ranks; ++s) {
        out << (s == 0 ? "[" : ",\n[");
        for (int32_t m = 0; m < a.microbatches; ++m) {
          out << (m == 0 ? "" : ",")
              << static_cast<double>(sim::duration_ns(step, layout, s, kind, m)) / 1e6;
        }
        out << "]";
      }
      out << "]";
    }
    out << "}";
  }
  out << "}}\n";
  out.close();
  if (!out) fail("cannot write " + a.dump);
}

}  // namespace

int main(int count, char** values) {
  const Arguments a = parse(count, values);
  for (const sim::Preset& preset : presets(a)) {
    if (a.dump.empty()) {
      run(a, preset);
    } else {
      dump(a, preset);
    }
  }
}
