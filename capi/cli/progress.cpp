// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/progress.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace rrfp::cli {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr int64_t kLines = 25;
constexpr double kMemory = 0.9;  // of the running means
constexpr std::string_view kClearLine = "\r\x1b[K";

std::string duration(double seconds) {
  const auto whole = std::llround(std::clamp(seconds, 0.0, 1e9));
  if (whole >= 3600) {
    return format("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return format("%lld:%02lld", whole / 60, whole % 60);
}

}  // namespace

Progress::Progress(Output& out, bool quiet, int64_t first, int64_t last)
    : out_(&out),
      quiet_(quiet),
      live_(out.is_terminal()),
      last_(last),
      every_(std::max<int64_t>(1, (last - first + kLines - 1) / kLines)) {}

std::string Progress::line(const StepFigures& figures) const {
  std::string text =
      format("step %lld/%lld  loss %.4f  %.0f tokens/s", static_cast<long long>(figures.step),
             static_cast<long long>(last_), figures.loss, tokens_per_s_);
  if (figures.images_per_s) text += format("  %.0f images/s", images_per_s_);
  text += format("  idle %.1f %%", idle_share_ * 100);
  if (figures.skipped) text += "  skipped";
  if (figures.step < last_) {
    text += "  " + duration(seconds_ * static_cast<double>(last_ - figures.step)) + " left";
  }
  return text;
}

void Progress::step(const StepFigures& figures) {
  if (quiet_) return;
  const bool is_first = seconds_ == 0;
  const auto blend = [is_first](double& mean, double value) {
    mean = is_first ? value : kMemory * mean + (1 - kMemory) * value;
  };
  blend(tokens_per_s_, figures.tokens_per_s);
  blend(images_per_s_, figures.images_per_s.value_or(0));
  blend(idle_share_, figures.idle_share);
  blend(seconds_, figures.seconds);

  if (!live_) {
    if (is_first || figures.step % every_ == 0 || figures.step == last_) {
      out_->write(line(figures) + "\n");
    }
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (drawn_ && figures.step != last_ && now - drawn_at_ < kRedraw) return;
  drawn_ = true;
  drawn_at_ = now;
  // A character in the last column would make some terminals wrap.
  const auto width = static_cast<size_t>(std::max(1, out_->columns() - 1));
  out_->write(std::string(kClearLine) + line(figures).substr(0, width));
}

void Progress::note(const std::string& text) {
  if (quiet_) return;
  out_->write((live_ && drawn_ ? std::string(kClearLine) : std::string()) + text + "\n");
  drawn_ = false;
}

void Progress::finish() {
  if (live_ && drawn_) out_->write("\n");
  drawn_ = false;
}

Counter::Counter(Output& out, std::string what, int64_t last, bool terminal_only)
    : out_(&out),
      what_(std::move(what)),
      last_(last),
      live_(out.is_terminal()),
      silent_(!live_ && terminal_only) {}

void Counter::done(int64_t count) {
  if (silent_) return;
  const std::string line = what_ + " " + std::to_string(count) + "/" + std::to_string(last_);
  if (!live_) {
    if (count < last_ && count - shown_ < std::max<int64_t>(1, last_ / kLines)) return;
    shown_ = count;
    out_->write(line + "\n");
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (drawn_ && now - drawn_at_ < kRedraw) return;
  drawn_ = true;
  drawn_at_ = now;
  const auto width = static_cast<size_t>(std::max(1, out_->columns() - 1));
  out_->write(std::string(kClearLine) + line.substr(0, width));
}

void Counter::clear() {
  if (drawn_) out_->write(kClearLine);
  drawn_ = false;
}

}  // namespace rrfp::cli
