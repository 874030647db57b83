// SPDX-License-Identifier: Apache-2.0
//
// Each command adds itself to the parser and leaves in `run` what to do when it was chosen.
// Functions in `run` return the exit code or throw Failure.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace rrfp::cli {

using Run = std::function<int()>;

void add_train(CLI::App& app, Run& run);
void add_eval(CLI::App& app, Run& run);
void add_generate(CLI::App& app, Run& run);
void add_info(CLI::App& app, Run& run);
void add_simulate(CLI::App& app, Run& run);
void add_hint(CLI::App& app, Run& run);
void add_trace(CLI::App& app, Run& run);

}  // namespace rrfp::cli
