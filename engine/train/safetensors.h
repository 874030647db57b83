// SPDX-License-Identifier: Apache-2.0
//
// The safetensors format (https://github.com/huggingface/safetensors): the length of a header in
// eight bytes, the header as JSON, padded with spaces, and then the data of the tensors without
// gaps. Only f32 is written, and only f32 can be read; a file may have others.
//
// The reader trusts nothing: whatever the bytes, it reads within the file and its memory is bounded
// by the header, which is at most kSafetensorsHeaderMax long.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/status.h"
#include "engine/train/files.h"
#include "engine/train/named_tensor.h"

namespace rrfp::train {

constexpr uint64_t kSafetensorsHeaderMax = 100'000'000;
constexpr size_t kSafetensorsRankMax = 32;

/// Free text of a file, by name.
using SafetensorsMetadata = std::map<std::string, std::string>;

/// Writes a new file, flushed to the disk, with the tensors in the order given. The first byte of
/// data is at a multiple of 64.
/// Errors: kIo; kInvalidArgument names the tensor whose name is empty, reserved, given twice or not
/// UTF-8, that has no data, or whose shape is no shape.
core::Status write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                               const SafetensorsMetadata& metadata, FileDigest& digest);

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // one that the format knows, "F32" among them
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // bytes, from the start of the data
  uint64_t end = 0;
};

class SafetensorsFile {
 public:
  /// Checks the header: every tensor has its right place, no byte belongs to two or to none.
  /// Errors: kIo; kBadData names the file, and the tensor where one is wrong.
  static core::Status open(const std::string& path, std::unique_ptr<const SafetensorsFile>& out);

  [[nodiscard]] const InputFile& file() const { return file_; }
  /// In the order of their data.
  [[nodiscard]] std::span<const SafetensorsEntry> entries() const { return entries_; }
  [[nodiscard]] const SafetensorsMetadata& metadata() const { return metadata_; }
  /// Null if the file has no such tensor.
  [[nodiscard]] const SafetensorsEntry* find(std::string_view name) const;

  /// The file has exactly these tensors, with these shapes, as F32. Else kBadData, which names the
  /// first one that differs; kInvalidArgument if one is wanted twice or has no memory.
  [[nodiscard]] core::Status check_same(std::span<const NamedTensor> tensors) const;
  /// Fills them all. Nothing is written unless check_same() holds; kIo and kBadData (the file has
  /// been cut since it was opened) can come after some are.
  [[nodiscard]] core::Status read(std::span<const NamedTensor> tensors) const;

  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

 private:
  SafetensorsFile() = default;
  core::Status read_header();
  core::Status check_entries();
  [[nodiscard]] core::Status check_size(const SafetensorsEntry& entry) const;
  [[nodiscard]] core::Status check_wanted(const NamedTensor& tensor) const;
  [[nodiscard]] core::Status error(const std::string& what) const;
  [[nodiscard]] core::Status error(std::string_view tensor, const std::string& what) const;

  InputFile file_;
  uint64_t data_begin_ = 0;  // from the start of the file
  std::vector<SafetensorsEntry> entries_;
  std::vector<size_t> by_name_;  // indices of entries_, sorted by name
  SafetensorsMetadata metadata_;
};

}  // namespace rrfp::train
