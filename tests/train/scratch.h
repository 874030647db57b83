// SPDX-License-Identifier: Apache-2.0
//
// What the tests of files share: a folder that goes when the test ends, whole files as strings, and
// a check of error texts.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/core/status.h"

namespace rrfp::test {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "rrfp-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(std::string_view name) const {
    return path_ + "/" + std::string(name);
  }

 private:
  std::string path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::string& path, std::string_view bytes) {
  // Some file systems flush a file that is replaced by truncation, a new one they do not.
  std::filesystem::remove(path);
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

/// For steps that a test takes for granted: GoogleTest reports the exception as a failure.
inline void require(const core::Status& status) {
  if (!status.ok()) throw std::runtime_error("unexpected error: " + status.text());
}

/// The status is an error of this code, and its text has all these parts.
inline ::testing::AssertionResult fails_with(const core::Status& status, core::Code code,
                                             std::initializer_list<std::string_view> parts) {
  if (status.code() != code) {
    return ::testing::AssertionFailure()
           << "code " << static_cast<int>(status.code()) << " instead of " << static_cast<int>(code)
           << ", text \"" << status.text() << "\"";
  }
  for (const std::string_view part : parts) {
    if (status.text().find(part) != std::string::npos) continue;
    return ::testing::AssertionFailure()
           << "the text \"" << status.text() << "\" does not have \"" << part << "\"";
  }
  return ::testing::AssertionSuccess();
}

}  // namespace rrfp::test
