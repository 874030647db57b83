// SPDX-License-Identifier: Apache-2.0
//
// The samples of a manifest: a file of JSON lines, each an object with a text, in which "<image>"
// marks the place of every picture, and the paths of these pictures.
//
//   {"text": "<image>A red circle.", "images": ["circle.png"]}
//
// Relative paths start at the manifest's folder; absolute ones stay. Other names in an object are
// not looked at, as people keep columns of their own there. Lines without anything may stand at the
// end, not between samples: line k is sample k - 1.
//
// Kept are the texts and the paths, in one piece of memory; a text is no longer than a context.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/status.h"

namespace rrfp::data {

/// Of one line, whatever else stands in it.
constexpr size_t kManifestLineBytesMax = size_t{16} << 20;
constexpr size_t kPicturePathBytesMax = 4096;
constexpr std::string_view kPictureMark = "<image>";

struct ManifestOptions {
  std::string path;
  int32_t image_tokens = 0;  // of a picture
  int32_t context = 0;       // most tokens of a sample: bytes of text, pictures, and the end
  int64_t pixels_max = 0;    // of a picture
};

struct ManifestSample {
  std::string_view text;  // with marks; both live as long as the manifest
  std::vector<std::string> pictures;
};

class Manifest {
 public:
  /// Reads all lines, and the headers of all pictures. Errors name the file and the line: kIo
  /// (something is missing or cannot be read), kBadData.
  static core::Status open(const ManifestOptions& options, Manifest& out);

  [[nodiscard]] size_t size() const { return entries_.size(); }
  [[nodiscard]] int64_t pictures() const { return pictures_; }
  [[nodiscard]] int64_t pictures_max() const { return pictures_max_; }
  [[nodiscard]] int64_t tokens() const { return tokens_; }

  [[nodiscard]] int32_t tokens(size_t sample) const { return entries_[sample].tokens; }
  [[nodiscard]] int32_t pictures(size_t sample) const { return entries_[sample].pictures; }
  void read(size_t sample, ManifestSample& out) const;
  /// The place of a sample, for errors.
  [[nodiscard]] std::string where(size_t sample) const;

 private:
  struct Entry {
    uint64_t begin = 0;  // in bytes_: the text, then each path with a 0 behind
    uint32_t text_bytes = 0;
    int32_t pictures = 0;
    int32_t tokens = 0;
  };

  core::Status add_line(const ManifestOptions& options, std::string_view line);
  [[nodiscard]] std::string full_path(std::string_view path) const;

  std::string path_;
  std::string folder_;  // ends with a slash, or is empty
  std::string bytes_;
  std::vector<Entry> entries_;
  int64_t pictures_ = 0;
  int64_t pictures_max_ = 0;
  int64_t tokens_ = 0;
};

}  // namespace rrfp::data
