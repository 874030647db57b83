// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "capi/cli/api.h"

namespace rrfp::cli {
namespace {

constexpr int kColumnsMax = 80;
constexpr size_t kFormatMax = 512;

}  // namespace

void Output::write(std::string_view text) {
  while (!text.empty() && error_ == 0) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
}

void Output::write_json(const Json& object) {
  write(object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void Output::check() const {
  if (error_ != 0) {
    throw Failure(kExitFailed, std::string("cannot write to standard output: ") +
                                   std::generic_category().message(error_));
  }
}

bool Output::is_terminal() const {
  return ::isatty(descriptor_) == 1;
}

int Output::columns() const {
  winsize size{};
  const bool known = ::ioctl(descriptor_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? std::min<int>(size.ws_col, kColumnsMax) : kColumnsMax;
}

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string format(const char* pattern, ...) {
  std::array<char, kFormatMax> buffer{};
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(buffer.data(), buffer.size(), pattern, arguments);
  va_end(arguments);
  return buffer.data();
}

std::string printable(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), TerminalFilter());
  return text;
}

void complain(std::string_view command, std::string_view text) {
  std::string line = "rrfp";
  if (!command.empty()) line.append(" ").append(command);
  Output(STDERR_FILENO).write(line.append(": ").append(text).append("\n"));
}

}  // namespace rrfp::cli
