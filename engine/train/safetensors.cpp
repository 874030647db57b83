// SPDX-License-Identifier: Apache-2.0
#include "engine/train/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <tuple>

#include "engine/train/safetensors_header.h"

namespace rrfp::train {

using core::Code;
using core::Status;

// The bytes of floats and of the header's length are copied as they are.
static_assert(std::endian::native == std::endian::little);

namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kAlignment = 64;

struct Dtype {
  const char* name;
  uint64_t bytes;
};
constexpr std::array kDtypes = std::to_array<Dtype>({
    {"BOOL", 1},
    {"U8", 1},
    {"I8", 1},
    {"F8_E5M2", 1},
    {"F8_E4M3", 1},
    {"I16", 2},
    {"U16", 2},
    {"F16", 2},
    {"BF16", 2},
    {"I32", 4},
    {"U32", 4},
    {"F32", 4},
    {"I64", 8},
    {"U64", 8},
    {"F64", 8},
});

std::string shape_text(std::span<const int64_t> shape) {
  constexpr size_t kShownMax = 8;
  std::string text = "[";
  for (const int64_t extent : shape.first(std::min(shape.size(), kShownMax))) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(extent);
  }
  return text + (shape.size() > kShownMax ? ", ...]" : "]");
}

/// The size of a tensor; false if an extent is negative or the size does not fit.
bool bytes_of(std::span<const int64_t> shape, uint64_t element_bytes, uint64_t& out) {
  // An extent of 0 makes any product 0, but a reader may multiply in any order.
  uint64_t bytes = element_bytes;
  uint64_t bytes_without_zeros = element_bytes;
  for (const int64_t extent : shape) {
    if (extent < 0) return false;
    bytes *= static_cast<uint64_t>(extent);
    if (extent == 0) continue;
    if (bytes_without_zeros > static_cast<uint64_t>(INT64_MAX) / static_cast<uint64_t>(extent)) {
      return false;
    }
    bytes_without_zeros *= static_cast<uint64_t>(extent);
  }
  out = bytes;
  return true;
}

/// As JSON; false if the text is not UTF-8.
bool append_json(const nlohmann::json& value, std::string& out) {
  try {
    out += value.dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

Status append_entry(const NamedTensor& tensor, uint64_t& offset, std::string& header) {
  const auto wrong = [&](const std::string& what) {
    return Status(Code::kInvalidArgument, "tensor " + shown_name(tensor.name) + " " + what);
  };
  if (tensor.name.empty()) return wrong("has no name");
  if (tensor.name == "__metadata__") return wrong("has a reserved name");
  uint64_t bytes = 0;
  if (tensor.shape.size() > kSafetensorsRankMax || !bytes_of(tensor.shape, sizeof(float), bytes)) {
    return wrong("has the shape " + shape_text(tensor.shape) + ", expected at most " +
                 std::to_string(kSafetensorsRankMax) +
                 " extents from 0 whose product fits 63 bits");
  }
  if (bytes > 0 && tensor.data == nullptr) return wrong("has no data");
  if (bytes > static_cast<uint64_t>(INT64_MAX) - offset) {
    return wrong("makes the file larger than 2^63 bytes");
  }
  if (header.size() > 1) header += ",";
  if (!append_json(tensor.name, header)) return wrong("has a name that is not UTF-8");
  header += R"(:{"dtype":"F32","shape":)" + nlohmann::json(tensor.shape).dump() +
            R"(,"data_offsets":[)" + std::to_string(offset) + "," + std::to_string(offset + bytes) +
            "]}";
  offset += bytes;
  return {};
}

Status header_of(std::span<const NamedTensor> tensors, const SafetensorsMetadata& metadata,
                 std::string& out) {
  std::string header = "{";
  if (!metadata.empty()) {
    header += R"("__metadata__":)";
    if (!append_json(metadata, header)) {
      return {Code::kInvalidArgument, "the metadata of a file is not UTF-8"};
    }
  }
  std::set<std::string_view> names;
  uint64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    if (Status s = append_entry(tensor, offset, header); !s.ok()) return s;
    if (!names.insert(tensor.name).second) {
      return {Code::kInvalidArgument, "tensor " + shown_name(tensor.name) + " is given twice"};
    }
  }
  header += "}";
  const size_t end = kLengthBytes + header.size();
  header.append((kAlignment - end % kAlignment) % kAlignment, ' ');
  if (header.size() > kSafetensorsHeaderMax) {
    return {Code::kInvalidArgument, std::to_string(tensors.size()) + " tensors need a header of " +
                                        std::to_string(header.size()) +
                                        " bytes, expected at most " +
                                        std::to_string(kSafetensorsHeaderMax)};
  }
  out = std::move(header);
  return {};
}

}  // namespace

Status write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                         const SafetensorsMetadata& metadata, FileDigest& digest) {
  std::string header;
  if (Status s = header_of(tensors, metadata, header); !s.ok()) return s;
  const uint64_t length = header.size();
  OutputFile file;
  if (Status s = file.create(path); !s.ok()) return s;
  if (Status s = file.write(&length, kLengthBytes); !s.ok()) return s;
  if (Status s = file.write(header.data(), header.size()); !s.ok()) return s;
  for (const NamedTensor& tensor : tensors) {
    uint64_t bytes = 0;
    bytes_of(tensor.shape, sizeof(float), bytes);
    if (Status s = file.write(tensor.data, bytes); !s.ok()) return s;
  }
  return file.finish(digest);
}

Status SafetensorsFile::error(const std::string& what) const {
  return {Code::kBadData, "\"" + file_.path() + "\": " + what};
}

Status SafetensorsFile::error(std::string_view tensor, const std::string& what) const {
  return error("tensor " + shown_name(tensor) + " " + what);
}

Status SafetensorsFile::open(const std::string& path, std::unique_ptr<const SafetensorsFile>& out) {
  std::unique_ptr<SafetensorsFile> file(new SafetensorsFile());
  if (Status s = file->file_.open(path); !s.ok()) return s;
  if (Status s = file->read_header(); !s.ok()) return s;
  if (Status s = file->check_entries(); !s.ok()) return s;
  out = std::move(file);
  return {};
}

Status SafetensorsFile::read_header() {
  if (file_.bytes() < kLengthBytes) {
    return error(std::to_string(file_.bytes()) +
                 " bytes, expected at least the 8 bytes of a header length");
  }
  uint64_t length = 0;
  if (Status s = file_.read(0, &length, kLengthBytes); !s.ok()) return s;
  const uint64_t length_max = std::min(kSafetensorsHeaderMax, file_.bytes() - kLengthBytes);
  if (length > length_max) {
    return error("the header length is " + std::to_string(length) + ", expected at most " +
                 std::to_string(length_max) + " in a file of " + std::to_string(file_.bytes()) +
                 " bytes");
  }
  std::string header(length, '\0');
  if (Status s = file_.read(kLengthBytes, header.data(), length); !s.ok()) return s;
  // The format says so; a file that is something else is recognized early.
  if (!header.starts_with('{')) return error("the header does not begin with {");
  data_begin_ = kLengthBytes + length;
  const std::string problem = parse_safetensors_header(header, entries_, metadata_);
  return problem.empty() ? Status() : error(problem);
}

Status SafetensorsFile::check_entries() {
  const uint64_t data_bytes = file_.bytes() - data_begin_;
  for (const SafetensorsEntry& entry : entries_) {
    if (Status s = check_size(entry); !s.ok()) return s;
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              // Empty tensors stand before the one that begins where they are.
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  uint64_t end = 0;
  for (const SafetensorsEntry& entry : entries_) {
    if (entry.begin != end) {
      return error(entry.name,
                   "begins at byte " + std::to_string(entry.begin) + " of the data, expected " +
                       std::to_string(end) + ": " +
                       (entry.begin < end ? "tensors overlap" : "bytes belong to none"));
    }
    end = entry.end;
  }
  if (end != data_bytes) {
    return error("the tensors end at byte " + std::to_string(end) +
                 " of the data, expected its size " + std::to_string(data_bytes));
  }
  by_name_.resize(entries_.size());
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [&](size_t a, size_t b) { return entries_[a].name < entries_[b].name; });
  const auto twice = std::adjacent_find(by_name_.begin(), by_name_.end(), [&](size_t a, size_t b) {
    return entries_[a].name == entries_[b].name;
  });
  return twice == by_name_.end() ? Status() : error(entries_[*twice].name, "stands twice in it");
}

Status SafetensorsFile::check_size(const SafetensorsEntry& entry) const {
  const auto* const dtype = std::find_if(kDtypes.begin(), kDtypes.end(),
                                         [&](const Dtype& d) { return entry.dtype == d.name; });
  if (dtype == kDtypes.end()) {
    return error(entry.name, "has the unknown dtype " + shown_name(entry.dtype));
  }
  uint64_t bytes = 0;
  if (!bytes_of(entry.shape, dtype->bytes, bytes)) {
    return error(entry.name,
                 "has the shape " + shape_text(entry.shape) + ", whose size does not fit 63 bits");
  }
  const uint64_t data_bytes = file_.bytes() - data_begin_;
  const std::string place = "has the data_offsets " + std::to_string(entry.begin) + ", " +
                            std::to_string(entry.end) + ", expected ";
  if (entry.begin > entry.end || entry.end > data_bytes) {
    return error(entry.name, place + "two that ascend up to " + std::to_string(data_bytes));
  }
  if (entry.begin % dtype->bytes != 0) {
    return error(entry.name, place + "a multiple of " + std::to_string(dtype->bytes) +
                                 " as the first, as it is " + entry.dtype);
  }
  if (entry.end - entry.begin != bytes) {
    return error(entry.name, place + std::to_string(bytes) + " bytes for " + entry.dtype + " " +
                                 shape_text(entry.shape));
  }
  return {};
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto at =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [&](size_t k, std::string_view value) { return entries_[k].name < value; });
  return at != by_name_.end() && entries_[*at].name == name ? &entries_[*at] : nullptr;
}

Status SafetensorsFile::check_wanted(const NamedTensor& tensor) const {
  const SafetensorsEntry* const entry = find(tensor.name);
  if (entry == nullptr) return error(tensor.name, "is missing");
  if (entry->dtype != "F32") {
    return error(tensor.name, "is " + entry->dtype + ", expected F32");
  }
  if (entry->shape != tensor.shape) {
    return error(tensor.name, "has the shape " + shape_text(entry->shape) + ", expected " +
                                  shape_text(tensor.shape));
  }
  if (tensor.data == nullptr && entry->begin != entry->end) {
    return {Code::kInvalidArgument, "no memory is given for tensor " + shown_name(tensor.name)};
  }
  return {};
}

Status SafetensorsFile::check_same(std::span<const NamedTensor> tensors) const {
  std::set<std::string_view> names;
  for (const NamedTensor& tensor : tensors) {
    if (Status s = check_wanted(tensor); !s.ok()) return s;
    if (!names.insert(tensor.name).second) {
      return {Code::kInvalidArgument, "tensor " + shown_name(tensor.name) + " is wanted twice"};
    }
  }
  for (const SafetensorsEntry& entry : entries_) {
    if (!names.contains(entry.name)) return error(entry.name, "is not expected in it");
  }
  return {};
}

Status SafetensorsFile::read(std::span<const NamedTensor> tensors) const {
  if (Status s = check_same(tensors); !s.ok()) return s;
  for (const NamedTensor& tensor : tensors) {
    const SafetensorsEntry& entry = *find(tensor.name);
    if (Status s = file_.read(data_begin_ + entry.begin, tensor.data, entry.end - entry.begin);
        !s.ok()) {
      return {s.code(), s.text() + ", in tensor " + shown_name(tensor.name)};
    }
  }
  return {};
}

}  // namespace rrfp::train
