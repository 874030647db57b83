// SPDX-License-Identifier: Apache-2.0
//
// Standard output and standard error, without the buffers and the exceptions of streams: a reader
// that went away or a full disk must not end a run before its checkpoint is written.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rrfp::cli {

/// Keeps the order of the keys, for people who read the lines.
using Json = nlohmann::ordered_json;

class Output {
 public:
  explicit Output(int descriptor) : descriptor_(descriptor) {}

  /// Writes all of it. After a failure nothing more is written and error() is set.
  void write(std::string_view text);
  /// One JSON object as one line. Texts that are not UTF-8 are mended, numbers that are not finite
  /// become null.
  void write_json(const Json& object);

  /// 0, or the errno of the failure.
  [[nodiscard]] int error() const { return error_; }
  /// Throws Failure if something could not be written.
  void check() const;
  [[nodiscard]] bool is_terminal() const;
  /// Columns of the terminal, at most 80.
  [[nodiscard]] int columns() const;

 private:
  int descriptor_;
  int error_ = 0;
};

/// Makes bytes of a model or a file harmless for a terminal: control characters other than newline
/// and tab, also those that UTF-8 writes as two bytes, become question marks.
class TerminalFilter {
 public:
  char operator()(char byte) {
    const auto value = static_cast<unsigned char>(byte);
    const bool is_control = (value < 0x20 && byte != '\n' && byte != '\t') || value == 0x7f ||
                            (before_ == 0xc2 && value >= 0x80 && value < 0xa0);
    before_ = value;
    return is_control ? '?' : byte;
  }

 private:
  unsigned char before_ = 0;
};

/// part / whole, 0 of nothing.
double share(int64_t part, int64_t whole);

/// printf into a string, for short texts only.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

/// A whole text.
std::string printable(std::string text);

/// Prints "rrfp COMMAND: TEXT" on standard error.
void complain(std::string_view command, std::string_view text);

}  // namespace rrfp::cli
