// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C and SIGTERM: the first one asks for an orderly end, the second one ends the process.
#pragma once

namespace rrfp::cli {

/// A reader that goes away and a limit on file sizes become errors of the write instead of signals.
void ignore_write_signals();

/// From here on the first SIGINT or SIGTERM is only noted. Signals that the parent ignores (nohup)
/// stay ignored.
void catch_stop_signals();

/// The signal that came, or 0.
int stop_signal();

}  // namespace rrfp::cli
