// SPDX-License-Identifier: Apache-2.0
//
// The bytes of one file, without a copy if it is large.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "engine/core/status.h"

namespace rrfp::data {

/// Large files are mapped. Small ones are read, because the number of mappings of a process is
/// limited (65530 by default on Linux) and folders of text have more files than that.
class FileBytes {
 public:
  static constexpr size_t kMapBytesMin = 1 << 20;

  /// kIo names the file.
  static core::Status load(const std::string& path, FileBytes& out);

  FileBytes() = default;
  ~FileBytes();
  FileBytes(FileBytes&& from) noexcept { swap(from); }
  FileBytes& operator=(FileBytes&& from) noexcept {
    FileBytes(std::move(from)).swap(*this);
    return *this;
  }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  [[nodiscard]] std::span<const uint8_t> bytes() const { return {data_, size_}; }

 private:
  core::Status load_open(const std::string& path, int file);
  core::Status read_all(const std::string& path, int file);
  void swap(FileBytes& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapping_, other.mapping_);
    std::swap(buffer_, other.buffer_);
  }

  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  void* mapping_ = nullptr;            // of a large file,
  std::unique_ptr<uint8_t[]> buffer_;  // or the copy of a small one
};

}  // namespace rrfp::data
