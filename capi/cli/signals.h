// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C and SIGTERM: the first one asks for an orderly end, the second one ends the process.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace rrfp::cli {

/// A reader that goes away and a limit on file sizes become errors of the write instead of signals.
void ignore_write_signals();

/// From here on the first SIGINT or SIGTERM is only noted. Signals that the parent ignores (nohup)
/// stay ignored.
void catch_stop_signals();

/// The signal that came, or 0.
int stop_signal();

/// The exit code after a signal is this and its number.
inline constexpr int kExitSignal = 128;

/// Does work that cannot be broken off on a thread of its own. If a stop signal comes first,
/// returns nothing: the thread goes on, so the process must then end by _Exit, and what `work`
/// refers to must belong to it.
template <class Result>
std::optional<Result> unless_stopped(std::function<Result()> work) {
  constexpr std::chrono::milliseconds kLook{50};
  const auto task = std::make_shared<std::packaged_task<Result()>>(std::move(work));
  std::future<Result> result = task->get_future();
  std::thread([task] { (*task)(); }).detach();
  while (result.wait_for(kLook) != std::future_status::ready) {
    if (stop_signal() != 0) return std::nullopt;
  }
  return result.get();
}

}  // namespace rrfp::cli
