// SPDX-License-Identifier: Apache-2.0
#include <rrfp/simulate.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "capi/src/guard.h"
#include "engine/data/file_bytes.h"
#include "engine/sim/experiment.h"
#include "engine/sim/stress.h"
#include "engine/trace/html.h"
#include "engine/trace/svg.h"
#include "engine/trace/trace_events.h"
#include "engine/train/atomic_folder.h"

using namespace rrfp;        // NOLINT(google-build-using-namespace)
using namespace rrfp::capi;  // NOLINT(google-build-using-namespace)

struct rrfp_simulation {
  sim::Experiment experiment;
  std::optional<uint64_t> seed;  // of the last run
  std::string ran;
};

namespace {

constexpr double kNsPerMs = 1e6;

Status read_trace(const char* path, trace::Timeline& out) {
  if (path == nullptr) return null_argument("trace_path");
  data::FileBytes file;
  if (Status s = data::FileBytes::load(path, file); !s.ok()) return s;
  const auto* const text = reinterpret_cast<const char*>(file.bytes().data());
  return trace::parse_trace_events(path, {text, file.bytes().size()}, out);
}

Status read_work(const rrfp_simulation_options& o, sim::ExperimentOptions& out) {
  if ((o.preset == nullptr) == (o.trace == nullptr)) {
    return {Code::kInvalidArgument, "give either a preset or a trace, not both and not neither"};
  }
  if (o.trace != nullptr) {
    trace::Timeline timeline;
    if (Status s = read_trace(o.trace, timeline); !s.ok()) return s;
    auto traced = std::make_shared<sim::Traced>();
    if (Status s = sim::read_traced(timeline, *traced); !s.ok()) {
      return {s.code(), std::string(o.trace) + ": " + s.text()};
    }
    const auto fixed = [&](const char* name, int32_t asked, int32_t has) -> Status {
      if (asked == 0 || asked == has) return {};
      return {Code::kInvalidArgument, std::string(name) + " is " + std::to_string(asked) +
                                          ", but the trace has " + std::to_string(has)};
    };
    if (Status s = fixed("stages", o.stages, traced->graph->ranks()); !s.ok()) return s;
    if (Status s = fixed("microbatches", o.microbatches, traced->microbatches); !s.ok()) return s;
    out.traced = std::move(traced);
    return {};
  }
  const sim::Preset* preset = sim::find_preset(o.preset);
  if (preset == nullptr) {
    std::string known;
    for (const sim::Preset& p : sim::presets()) {
      known += (known.empty() ? "" : ", ") + std::string(p.name);
    }
    return {Code::kUnknownName,
            "unknown preset \"" + std::string(o.preset) + "\"; the known ones are " + known};
  }
  out.preset = *preset;
  if (o.stages != 0) out.devices = o.stages;
  if (o.microbatches != 0) out.microbatches = o.microbatches;
  return {};
}

Status read_options(const rrfp_simulation_options& o, sim::ExperimentOptions& out) {
  for (const Status& s :
       {check_flags("rrfp_simulation_options.flags", o.flags, RRFP_SIMULATION_NONDETERMINISTIC),
        check_enum("order", o.order, RRFP_ORDER_PAIRED),
        check_enum("injection", o.injection, RRFP_INJECTION_TENT),
        check_enum("readiness", o.readiness, RRFP_READINESS_LEADER)}) {
    if (!s.ok()) return s;
  }
  if (Status s = read_work(o, out); !s.ok()) return s;
  if (o.hint != nullptr) out.hint = o.hint;
  out.order = read_order(o.order);
  out.injection = static_cast<sim::Injection>(o.injection);
  out.cap = o.cap;
  out.deterministic = (o.flags & RRFP_SIMULATION_NONDETERMINISTIC) == 0;
  out.offload_ms = o.offload_ms;
  out.replicas = o.data_parallel == 0 ? 1 : o.data_parallel;
  out.group.size = o.tensor_parallel == 0 ? 1 : o.tensor_parallel;
  out.group.readiness = o.readiness == RRFP_READINESS_LEADER ? sim::Group::Readiness::kLeader
                                                             : sim::Group::Readiness::kAll;
  out.history = o.history;
  out.runtime.dispatch_ns = o.dispatch_ns;
  out.runtime.report_ns = o.report_ns;
  return {};
}

int32_t stages_of(const sim::Experiment& experiment) {
  const sim::ExperimentOptions& options = experiment.options();
  if (options.traced != nullptr) return options.traced->graph->stage_count();
  return options.devices * experiment.layout().chunks * experiment.layout().streams;
}

void write_step(const sim::Experiment& experiment, const sim::StepResult& result,
                rrfp_simulated_step* out) {
  rrfp_simulated_step filled = {};
  const sim::Outcome& outcome = result.outcome;
  filled.ranks = static_cast<int32_t>(outcome.ranks.size());
  filled.stages = stages_of(experiment);
  filled.microbatches = experiment.options().microbatches;
  filled.makespan_ns = result.makespan_ns;
  filled.bound_ns = result.bound_ns;
  filled.peak_bytes = outcome.peak_bytes();
  filled.native_bytes = result.native_bytes;
  filled.tasks = outcome.tasks;
  filled.messages = outcome.messages;
  filled.offloads = outcome.offloads;
  for (const sim::RankOutcome& rank : outcome.ranks) {
    const auto idle = [&](core::IdleReason reason) {
      return rank.idle_ns[static_cast<size_t>(reason)];
    };
    filled.busy_ns += rank.busy_ns;
    filled.wait_input_ns += idle(core::IdleReason::kInput);
    filled.wait_memory_ns += idle(core::IdleReason::kMemory);
    filled.wait_credit_ns += idle(core::IdleReason::kCredit);
    filled.wait_policy_ns += idle(core::IdleReason::kPolicy);
    filled.wait_group_ns += rank.group_ns;
  }
  store(filled, out);
}

nlohmann::ordered_json to_json(const trace::RankTotals& rank) {
  const auto idle_ms = [&](trace::IdleKind kind) {
    return static_cast<double>(rank.idle_ns[static_cast<size_t>(kind)]) / kNsPerMs;
  };
  return {{"computing_ms", static_cast<double>(rank.computing_ns) / kNsPerMs},
          {"input_ms", idle_ms(trace::IdleKind::kInput)},
          {"memory_ms", idle_ms(trace::IdleKind::kMemory)},
          {"credit_ms", idle_ms(trace::IdleKind::kCredit)},
          {"policy_ms", idle_ms(trace::IdleKind::kPolicy)},
          {"group_ms", idle_ms(trace::IdleKind::kGroup)},
          {"complete_ms", idle_ms(trace::IdleKind::kComplete)},
          {"engine_ms", static_cast<double>(rank.engine_ns) / kNsPerMs},
          {"tasks", rank.tasks}};
}

nlohmann::ordered_json to_json(const trace::BranchTotals& branch) {
  return {{"name", branch.name},
          {"computing_ms", static_cast<double>(branch.computing_ns) / kNsPerMs},
          {"share", branch.share},
          {"tasks", branch.tasks}};
}

}  // namespace

void rrfp_simulation_options_init(rrfp_simulation_options* options) {
  init(options);
  if (options != nullptr) options->cap = 1;
}
void rrfp_simulated_step_init(rrfp_simulated_step* step) {
  init(step);
}
void rrfp_stress_report_init(rrfp_stress_report* report) {
  init(report);
}

const char* rrfp_preset_name(int32_t index) {
  const auto presets = sim::presets();
  if (index < 0 || static_cast<size_t>(index) >= presets.size()) return nullptr;
  return presets[static_cast<size_t>(index)].name.data();  // a literal, ended by a zero
}

rrfp_status rrfp_simulation_create(const rrfp_simulation_options* options, rrfp_simulation** out,
                                   rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (options == nullptr) return null_argument("options");
    if (out == nullptr) return null_argument("out");
    rrfp_simulation_options o = {};
    rrfp_simulation_options_init(&o);
    if (Status s = load(options, "rrfp_simulation_options", o); !s.ok()) return s;
    sim::ExperimentOptions read;
    if (Status s = read_options(o, read); !s.ok()) return s;
    auto simulation = std::make_unique<rrfp_simulation>();
    if (Status s = sim::Experiment::create(read, simulation->experiment); !s.ok()) return s;
    *out = simulation.release();
    return {};
  });
}

void rrfp_simulation_destroy(rrfp_simulation* simulation) {
  delete simulation;
}

rrfp_status rrfp_simulation_run(rrfp_simulation* simulation, uint64_t seed,
                                rrfp_simulated_step* out, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (simulation == nullptr) return null_handle("simulation");
    if (out == nullptr) return null_argument("out");
    if (Status s = check_size(out, "rrfp_simulated_step"); !s.ok()) return s;
    sim::StepResult result;
    if (Status s = simulation->experiment.run(seed, result); !s.ok()) return s;
    simulation->seed = seed;
    simulation->ran = result.why.empty() ? result.chosen : result.why;
    if (!result.outcome.complete) return {Code::kBadOrder, result.outcome.error};
    write_step(simulation->experiment, result, out);
    return {};
  });
}

rrfp_status rrfp_simulation_describe(const rrfp_simulation* simulation, char* buffer,
                                     size_t capacity, size_t* out_size, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (simulation == nullptr) return null_handle("simulation");
    return put_text(simulation->ran, buffer, capacity, out_size);
  });
}

rrfp_status rrfp_simulation_write_trace(rrfp_simulation* simulation, const char* path,
                                        rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (simulation == nullptr) return null_handle("simulation");
    if (path == nullptr) return null_argument("path");
    if (!simulation->seed) return {Code::kBadState, "no step has been simulated yet"};
    trace::Timeline timeline;
    if (Status s = simulation->experiment.record(*simulation->seed, timeline); !s.ok()) return s;
    return train::replace_file(path, trace::to_trace_events(timeline));
  });
}

rrfp_status rrfp_simulation_stress(uint64_t first_seed, int64_t cases, rrfp_progress_fn progress,
                                   void* user_data, rrfp_stress_report* out, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (out == nullptr) return null_argument("out");
    if (Status s = check_size(out, "rrfp_stress_report"); !s.ok()) return s;
    if (cases < 1) {
      return {Code::kInvalidArgument,
              "cases is " + std::to_string(cases) + "; expected at least 1"};
    }
    const sim::StressReport report = sim::run_stress(first_seed, cases, [&](int64_t done) {
      return progress == nullptr || progress(user_data, done);
    });
    rrfp_stress_report filled = {};
    filled.cases = report.cases;
    filled.stalls = report.stalls;
    filled.cap_violations = report.cap_violations;
    filled.task_errors = report.wrong_tasks;
    filled.failure_errors = report.wrong_failures;
    filled.refused = report.refused + report.unobeyable;
    filled.faults = report.covered[static_cast<size_t>(sim::Cover::kRankFailure)] +
                    report.covered[static_cast<size_t>(sim::Cover::kMessageLoss)];
    filled.bad_seed = report.first_bad_seed;
    report.first_bad.copy(filled.bad_case, sizeof filled.bad_case - 1);
    store(filled, out);
    return {};
  });
}

rrfp_status rrfp_trace_draw(const char* trace_path, rrfp_picture picture, const char* out_path,
                            rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (out_path == nullptr) return null_argument("out_path");
    if (Status s = check_enum("picture", picture, RRFP_PICTURE_SVG); !s.ok()) return s;
    trace::Timeline timeline;
    if (Status s = read_trace(trace_path, timeline); !s.ok()) return s;
    return train::replace_file(
        out_path, picture == RRFP_PICTURE_SVG ? trace::to_svg(timeline) : trace::to_html(timeline));
  });
}

rrfp_status rrfp_trace_summarize(const char* trace_path, char* buffer, size_t capacity,
                                 size_t* out_size, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    trace::Timeline timeline;
    if (Status s = read_trace(trace_path, timeline); !s.ok()) return s;
    const trace::Totals totals = trace::summarize(timeline);
    nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
    for (const trace::RankTotals& rank : totals.ranks) ranks.push_back(to_json(rank));
    nlohmann::ordered_json summary = {
        {"makespan_ms", static_cast<double>(totals.makespan_ns()) / kNsPerMs},
        {"idle_share", totals.idle_share},
        {"ranks", std::move(ranks)}};
    if (totals.branched()) {
      nlohmann::ordered_json& branches = summary["branches"] = nlohmann::ordered_json::array();
      for (const trace::BranchTotals& branch : totals.branches) branches.push_back(to_json(branch));
    }
    return put_text(summary.dump(), buffer, capacity, out_size);
  });
}
