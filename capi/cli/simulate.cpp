// SPDX-License-Identifier: Apache-2.0
//
// rrfp simulate: the options and their checks.
#include "capi/cli/simulate.h"

#include <algorithm>
#include <memory>

#include "capi/cli/commands.h"
#include "capi/cli/files.h"
#include "capi/cli/hints.h"
#include "capi/cli/options.h"

namespace rrfp::cli {
namespace {

constexpr double kMsMax = 1e6;
constexpr double kUsMax = 1e9;
constexpr double kCapMax = 1e6;

struct SimulateCommand {
  CLI::App* app = nullptr;
  SimulateOptions options;

  [[nodiscard]] bool given(const char* name) const { return app->get_option(name)->count() > 0; }
};

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (int32_t i = 0; rrfp_preset_name(i) != nullptr; ++i) names.emplace_back(rrfp_preset_name(i));
  return names;
}

std::vector<std::string> hint_names() {
  std::vector<std::string> names = {"auto", "rf-d"};
  names.insert(names.end(), known_hints().begin(), known_hints().end());
  return names;
}

void check_names(const SimulateCommand& command) {
  const SimulateOptions& options = command.options;
  const std::vector<std::string> presets = preset_names();
  if (std::find(presets.begin(), presets.end(), options.preset) == presets.end()) {
    bad_input("--preset " + options.preset + " is unknown; the known ones are " + joined(presets));
  }
  if (!is_hint_name(options.hint, hint_names())) {
    bad_input("--hint " + options.hint + " is unknown; the known ones are " + joined(hint_names()));
  }
}

void check_combinations(const SimulateCommand& command) {
  const SimulateOptions& options = command.options;
  const bool chooses = options.hint == "auto" || options.hint == "rf-d";
  if (chooses && options.order != "ready") {
    bad_input("--order " + options.order + " does not go with --hint " + options.hint +
              ", which chooses it");
  }
  if (command.given("--history") && options.hint != "auto") {
    bad_input("--history " + std::to_string(options.history) + " does not go with --hint " +
              options.hint + ": only auto replays past steps");
  }
  if (options.measured.empty()) return;
  for (const char* name : {"--preset", "--history"}) {
    if (command.given(name)) {
      bad_input(std::string(name) + " does not go with --measured " + options.measured +
                ", which says it");
    }
  }
  if (options.injection == "tent") {
    bad_input("--injection tent does not go with --measured " + options.measured +
              ", which does not say how large microbatches are");
  }
}

/// The cases of a stress run are random in all that the other options say.
void check_stress(const SimulateCommand& command) {
  const std::vector<std::string> allowed = {"--stress", "--first-seed", "--json"};
  for (const CLI::Option* option : command.app->get_options()) {
    const std::string name = option->get_name();
    const bool fits = std::find(allowed.begin(), allowed.end(), name) != allowed.end();
    if (option->count() > 0 && !fits) {
      bad_input(name + " does not go with --stress, which draws its cases at random");
    }
  }
}

int simulate(const SimulateCommand& command) {
  if (command.given("--stress")) {
    check_stress(command);
    return run_stress(command.options);
  }
  check_names(command);
  check_combinations(command);
  check_output_path("--trace", command.options.trace);
  check_output_path("--chart", command.options.chart);
  return run_simulation(command.options);
}

void add_work_options(CLI::App& app, SimulateOptions& options) {
  const std::string group = "Work";
  app.add_option("--preset", options.preset, "what the work is: " + joined(preset_names()))
      ->capture_default_str()
      ->type_name("NAME")
      ->group(group);
  app.add_option("--measured", options.measured,
                 "instead, the tasks of a timeline; each of its steps is one seed")
      ->type_name("TRACE")
      ->group(group);
  app.add_option("--stages", options.stages, "devices in the pipeline")
      ->default_str("16, or the trace's")
      ->type_name("N")
      ->group(group)
      ->check(at_least(1));
  app.add_option("--microbatches", options.microbatches, "of each replica")
      ->default_str("64, or the trace's")
      ->type_name("N")
      ->group(group)
      ->check(at_least(1));
  app.add_option("--seeds", options.seeds, "steps to simulate")
      ->capture_default_str()
      ->type_name("N")
      ->group(group)
      ->check(between(1, 1000000));
  app.add_option("--first-seed", options.first_seed, "the first one")
      ->capture_default_str()
      ->type_name("N")
      ->group(group)
      ->check(at_least(0));
  choice(app.add_option("--injection", options.injection,
                        "how microbatches enter: data: as they come; tent: by size, short ... long "
                        "... short; default: as the hint wants it")
             ->capture_default_str()
             ->group(group),
         {"default", "data", "tent"});
}

void add_way_options(CLI::App& app, SimulateOptions& options) {
  const std::string group = "Way to run it";
  app.add_option("--hint", options.hint,
                 "order of tasks: auto (simulates past steps and takes what is fastest), rf-d "
                 "(plans without jitter), " +
                     joined(known_hints()))
      ->capture_default_str()
      ->type_name("NAME")
      ->group(group);
  choice(app.add_option("--order", options.order,
                        "ready: first ready task in the order of the hint; strict: in that order; "
                        "paired: strict, with sends that wait for their receiver")
             ->capture_default_str()
             ->group(group),
         {"ready", "strict", "paired"});
  app.add_option(
         "--cap", options.cap,
         "memory of a device, times that of 1F1B; 0 = no limit. A strict order takes what it needs")
      ->capture_default_str()
      ->type_name("X")
      ->group(group)
      ->check(real(0, kCapMax));
  app.add_option("--history", options.history, "past steps that auto simulates")
      ->default_str("3; 8 where links have slow times")
      ->type_name("N")
      ->group(group)
      ->check(between(1, 1000));
  app.add_flag("--nondeterministic", options.nondeterministic, "weight gradients as they come")
      ->group(group);
}

void add_machine_options(CLI::App& app, SimulateOptions& options) {
  const std::string group = "Machine";
  const auto add = [&](const char* name, auto& value, const char* help, const char* type) {
    return app.add_option(name, value, help)->capture_default_str()->type_name(type)->group(group);
  };
  add("--tp", options.tensor_parallel, "ranks of each tensor-parallel group", "N")
      ->check(between(1, 1024));
  choice(add("--tp-readiness", options.readiness, "whose arrivals such a group goes by", ""),
         {"all", "leader"});
  add("--dp", options.data_parallel, "replicas; all wait for the slowest", "N")
      ->check(between(1, 4096));
  add("--offload-ms", options.offload_ms,
      "to copy the activations of a mean stage to the host; 0 = there is no host", "X")
      ->check(real(0, kMsMax));
  add("--dispatch-us", options.dispatch_us, "between a decision and the start of its task", "X")
      ->check(real(0, kUsMax));
  add("--report-us", options.report_us, "until an arrival is known", "X")->check(real(0, kUsMax));
}

void add_output_options(CLI::App& app, SimulateOptions& options) {
  const std::string group = "Output";
  app.add_flag("--json", options.json, "a JSON object for each seed, and one for all of them")
      ->group(group);
  app.add_option("--trace", options.trace, "write the timeline of the first seed")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--chart", options.chart, "draw it as an SVG")->type_name("FILE")->group(group);
  app.add_option("--stress", options.stress,
                 "instead, simulate so many random pipelines with faults, and count what must not "
                 "happen")
      ->type_name("CASES")
      ->group(group)
      ->check(at_least(1));
}

}  // namespace

void add_simulate(CLI::App& app, Run& run) {
  CLI::App* const sub =
      app.add_subcommand("simulate", "Simulate pipelines, to compare schedules and policies.");
  const auto command = std::make_shared<SimulateCommand>();
  command->app = sub;
  add_work_options(*sub, command->options);
  add_way_options(*sub, command->options);
  add_machine_options(*sub, command->options);
  add_output_options(*sub, command->options);
  sub->callback([command, &run] { run = [command] { return simulate(*command); }; });
}

}  // namespace rrfp::cli
