// SPDX-License-Identifier: Apache-2.0
//
// Files with every error checked, also those that the disk reports late: a write is good only once
// finish() is. Errors are kIo and name the file and the reason.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "engine/core/status.h"
#include "engine/train/sha256.h"

namespace rrfp::train {

/// "cannot <verb> "<path>": <reason>"; `error` is an errno.
core::Status io_error(std::string_view verb, const std::string& path, int error);
/// A name out of a file, fit for an error text: short, and printable ASCII only.
std::string shown_name(std::string_view name);

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int value) : value_(value) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& from) noexcept : value_(std::exchange(from.value_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& from) noexcept {
    std::swap(value_, from.value_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  [[nodiscard]] int get() const { return value_; }
  /// What close(2) returns; 0 if nothing was open.
  int reset();

 private:
  int value_ = -1;
};

/// What stands in a file: enough to notice that it changed.
struct FileDigest {
  uint64_t bytes = 0;
  std::string sha256;

  friend bool operator==(const FileDigest&, const FileDigest&) = default;
};

/// A new file. It is left as it is if finish() is not reached.
class OutputFile {
 public:
  /// Fails if the file exists.
  core::Status create(const std::string& path);
  core::Status write(const void* data, size_t bytes);
  /// Flushes it to the disk and closes it.
  core::Status finish(FileDigest& digest);

 private:
  std::string path_;
  FileDescriptor file_;
  Sha256 sha256_;
  uint64_t bytes_ = 0;
};

/// Stays readable after its folder has been renamed or removed. Any thread may read.
class InputFile {
 public:
  core::Status open(const std::string& path);
  [[nodiscard]] const std::string& path() const { return path_; }
  /// When it was opened.
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  /// Fails with kBadData where the file ends early.
  [[nodiscard]] core::Status read(uint64_t offset, void* data, size_t bytes) const;
  /// Reads all of it.
  [[nodiscard]] core::Status digest(FileDigest& out) const;

 private:
  std::string path_;
  FileDescriptor file_;
  uint64_t bytes_ = 0;
};

/// The names in a folder survive a power failure from here on.
core::Status sync_folder(const std::string& path);

}  // namespace rrfp::train
