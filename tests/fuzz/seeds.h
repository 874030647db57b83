// SPDX-License-Identifier: Apache-2.0
//
// Runs a mutation test over seeds, and prints the command that replays the one that fails, also
// when it crashes.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>

// Present with AddressSanitizer only; it does not end in a signal.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace rrfp::fuzz {

inline std::string replay_command;  // of the input that is being read

inline void print_replay() {
  if (write(STDERR_FILENO, replay_command.data(), replay_command.size()) < 0) return;
}

inline void on_signal(int number) {
  print_replay();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

/// Calls run(seed) for the seeds that the environment asks for (RRFP_FUZZ_SEED, RRFP_FUZZ_RUNS), or
/// `runs_default` of them. `program` is the path of the test below the build directory.
template <class Run>
void for_each_seed(const std::string& program, uint64_t runs_default, Run run) {
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(print_replay);
  } else {
    for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE}) std::signal(number, on_signal);
  }
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  const char* const only = std::getenv("RRFP_FUZZ_SEED");
  const char* const runs = std::getenv("RRFP_FUZZ_RUNS");
  const uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 0;
  const uint64_t count = only != nullptr   ? 1
                         : runs != nullptr ? std::strtoull(runs, nullptr, 10)
                                           : runs_default;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    replay_command = "replay: RRFP_FUZZ_SEED=" + std::to_string(seed) + " " + program +
                     " --gtest_filter=" + test->test_suite_name() + "." + test->name() + "\n";
    SCOPED_TRACE(replay_command);
    run(seed);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace rrfp::fuzz
