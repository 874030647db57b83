// SPDX-License-Identifier: Apache-2.0
//
// rrfp: trains, evaluates and samples language models, simulates pipelines, and converts and draws
// schedules and timelines, over the C API of the library, of which it is a client like any other.
//
// Exit codes: 0 fine, 2 bad input or files, also if the last checkpoint could not be written, 1
// anything else; 130 and 143 after SIGINT and SIGTERM.
#include <CLI/CLI.hpp>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "capi/cli/api.h"
#include "capi/cli/commands.h"
#include "capi/cli/help.h"
#include "capi/cli/output.h"
#include "capi/cli/signals.h"

namespace rrfp::cli {
namespace {

std::string version_text() {
  const uint32_t version = rrfp_version();
  return format("rrfp %u.%u.%u", version / 1000000, version / 1000 % 1000, version % 1000);
}

std::string command_of(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? std::string() : chosen.front()->get_name();
}

int guarded(int count, const char* const* arguments) {
  CLI::App app("Pipeline-parallel training by readiness.", "rrfp");
  app.set_version_flag("--version", version_text);
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  Run run;
  add_train(app, run);
  add_eval(app, run);
  add_generate(app, run);
  add_info(app, run);
  add_simulate(app, run);
  add_hint(app, run);
  add_trace(app, run);
  try {
    app.parse(count, arguments);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    const std::string command = command_of(app);
    const std::vector<std::string> unknown = app.remaining();
    complain(command, command.empty() && !unknown.empty() ? unknown.front() + " is no command"
                                                          : error.what());
    complain(command, "see rrfp " + command + (command.empty() ? "" : " ") + "--help");
    return kExitBadInput;
  }
  try {
    return run();
  } catch (const Failure& failure) {
    complain(command_of(app), failure.what());
    return failure.exit_code();
  } catch (const std::exception& error) {
    complain(command_of(app), error.what());
    return kExitFailed;
  }
}

}  // namespace
}  // namespace rrfp::cli

int main(int count, char** arguments) {
  rrfp::cli::ignore_write_signals();
  try {
    return rrfp::cli::guarded(count, arguments);
  } catch (const std::exception& error) {
    rrfp::cli::complain("", error.what());
    return rrfp::cli::kExitFailed;
  } catch (...) {
    return rrfp::cli::kExitFailed;
  }
}
