// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/signals.h"

#include <array>
#include <csignal>

namespace rrfp::cli {
namespace {

constexpr std::array<int, 2> kStopSignals = {SIGINT, SIGTERM};
volatile std::sig_atomic_t noted_signal = 0;

extern "C" void note_signal(int number) {
  noted_signal = number;
  for (const int stop : kStopSignals) std::signal(stop, SIG_DFL);
}

}  // namespace

void ignore_write_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void catch_stop_signals() {
  for (const int number : kStopSignals) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    // The other one must not interrupt the handler while it restores the defaults.
    for (const int other : kStopSignals) ::sigaddset(&action.sa_mask, other);
    ::sigaction(number, &action, nullptr);
  }
}

int stop_signal() {
  return noted_signal;
}

}  // namespace rrfp::cli
