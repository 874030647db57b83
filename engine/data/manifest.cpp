// SPDX-License-Identifier: Apache-2.0
#include "engine/data/manifest.h"

#include <algorithm>
#include <cassert>

#include "engine/data/file_bytes.h"
#include "engine/data/manifest_line.h"
#include "engine/data/picture.h"

namespace rrfp::data {

using core::Code;
using core::Status;

namespace {

constexpr std::string_view kSpace = " \t\n\r\v\f";

std::string counted(size_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

/// What is wrong with the fields of a line as such, or nothing.
std::string problem_of(const ManifestLine& line) {
  size_t marks = 0;
  bool has_text = false;
  for (size_t at = 0; at < line.text.size();) {
    if (line.text.compare(at, kPictureMark.size(), kPictureMark) == 0) {
      ++marks;
      at += kPictureMark.size();
    } else {
      has_text = has_text || kSpace.find(line.text[at]) == std::string_view::npos;
      ++at;
    }
  }
  if (!has_text) {
    return "has an empty \"text\", expected more than spaces and marks of pictures";
  }
  if (marks != line.pictures.size()) {
    return "has " + counted(marks, "mark") + " <image> in its text and " +
           counted(line.pictures.size(), "picture") + " in \"images\"";
  }
  for (const std::string& path : line.pictures) {
    if (path.empty()) return "has an empty path among its \"images\"";
    if (path.find('\0') != std::string::npos) {
      return "has a path with a zero byte among its \"images\"";
    }
    if (path.size() > kPicturePathBytesMax) {
      return "has a path of " + std::to_string(path.size()) +
             " bytes among its \"images\", expected at most " +
             std::to_string(kPicturePathBytesMax);
    }
  }
  return "";
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(kSpace) == std::string_view::npos;
}

/// Takes the first line off the text.
std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

Status Manifest::open(const ManifestOptions& options, Manifest& out) {
  FileBytes file;
  if (Status s = FileBytes::load(options.path, file); !s.ok()) return s;
  Manifest manifest;
  manifest.path_ = options.path;
  manifest.folder_ = options.path.substr(0, options.path.rfind('/') + 1);
  std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  while (!is_blank(text)) {
    if (Status s = manifest.add_line(options, next_line(text)); !s.ok()) {
      return {s.code(), manifest.where(manifest.size()) + s.text()};
    }
  }
  if (manifest.entries_.empty()) {
    return {Code::kBadData, "\"" + options.path + "\" has no samples"};
  }
  manifest.bytes_.shrink_to_fit();
  manifest.entries_.shrink_to_fit();
  out = std::move(manifest);
  return {};
}

std::string Manifest::where(size_t sample) const {
  return "\"" + path_ + "\", line " + std::to_string(sample + 1) + ": ";
}

std::string Manifest::full_path(std::string_view path) const {
  return path.starts_with('/') ? std::string(path) : folder_ + std::string(path);
}

Status Manifest::add_line(const ManifestOptions& options, std::string_view line) {
  const auto wrong = [](const std::string& text) { return Status(Code::kBadData, text); };
  if (is_blank(line)) return wrong("the line is empty, and samples follow");
  if (line.size() > kManifestLineBytesMax) {
    return wrong("the line has " + std::to_string(line.size()) + " bytes, expected at most " +
                 std::to_string(kManifestLineBytesMax));
  }
  ManifestLine read;
  if (std::string problem = parse_manifest_line(line, read); !problem.empty()) {
    return wrong("the line " + problem);
  }
  if (std::string problem = problem_of(read); !problem.empty()) return wrong("the line " + problem);
  const size_t pictures = read.pictures.size();
  const size_t bytes = read.text.size() - pictures * kPictureMark.size();
  // At most 16 Mi marks of less than 2^31 tokens each.
  const size_t tokens = bytes + pictures * static_cast<size_t>(options.image_tokens) + 1;
  if (tokens > static_cast<size_t>(options.context)) {
    return wrong("the sample has " + std::to_string(tokens) + " tokens (" + counted(bytes, "byte") +
                 " of text, " + counted(pictures, "picture") + " of " +
                 std::to_string(options.image_tokens) + ", the end), more than the context of " +
                 std::to_string(options.context));
  }
  Entry entry;
  entry.begin = bytes_.size();
  entry.text_bytes = static_cast<uint32_t>(read.text.size());
  entry.pictures = static_cast<int32_t>(pictures);
  entry.tokens = static_cast<int32_t>(tokens);
  bytes_ += read.text;
  for (const std::string& path : read.pictures) {
    if (Status s = check_picture(full_path(path), options.pixels_max); !s.ok()) return s;
    bytes_ += path;
    bytes_ += '\0';
  }
  entries_.push_back(entry);
  pictures_ += entry.pictures;
  pictures_max_ = std::max<int64_t>(pictures_max_, entry.pictures);
  tokens_ += entry.tokens;
  return {};
}

void Manifest::read(size_t sample, ManifestSample& out) const {
  assert(sample < entries_.size());
  const Entry& entry = entries_[sample];
  const std::string_view bytes(bytes_);
  out.text = bytes.substr(entry.begin, entry.text_bytes);
  out.pictures.clear();
  size_t at = entry.begin + entry.text_bytes;
  for (int32_t k = 0; k < entry.pictures; ++k) {
    const size_t end = bytes.find('\0', at);
    out.pictures.push_back(full_path(bytes.substr(at, end - at)));
    at = end + 1;
  }
}

}  // namespace rrfp::data
