// SPDX-License-Identifier: Apache-2.0
//
// What people see while a run goes on: on a terminal one line that is redrawn in place, elsewhere
// some lines over the run.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "capi/cli/output.h"

namespace rrfp::cli {

struct StepFigures {
  int64_t step = 0;
  double loss = 0;
  double tokens_per_s = 0;
  std::optional<double> images_per_s;  // of a model that reads pictures
  double idle_share = 0;
  double seconds = 0;
  bool skipped = false;
};

class Progress {
 public:
  /// Steps first + 1 .. last are to come. With `quiet` nothing is shown.
  Progress(Output& out, bool quiet, int64_t first, int64_t last);

  void step(const StepFigures& figures);
  /// A line that stays.
  void note(const std::string& text);
  /// Ends the line that is redrawn.
  void finish();

 private:
  [[nodiscard]] std::string line(const StepFigures& figures) const;

  Output* out_;
  bool quiet_;
  bool live_;
  bool drawn_ = false;
  int64_t last_;
  int64_t every_;       // steps between two lines
  double seconds_ = 0;  // a running mean of the duration of a step
  double tokens_per_s_ = 0;
  double images_per_s_ = 0;
  double idle_share_ = 0;
  std::chrono::steady_clock::time_point drawn_at_;
};

/// Counts what is done: "case 400/10000".
class Counter {
 public:
  /// With `terminal_only` nothing is shown elsewhere: other lines say how far it is.
  Counter(Output& out, std::string what, int64_t last, bool terminal_only);

  void done(int64_t count);
  /// Takes the line away.
  void clear();

 private:
  Output* out_;
  std::string what_;
  int64_t last_;
  bool live_;
  bool silent_;
  bool drawn_ = false;
  int64_t shown_ = 0;
  std::chrono::steady_clock::time_point drawn_at_;
};

}  // namespace rrfp::cli
