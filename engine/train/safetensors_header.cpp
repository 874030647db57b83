// SPDX-License-Identifier: Apache-2.0
//
// A state machine over the events of the JSON parser. No tree of the header is built: it would need
// many times the memory of the text and would keep only the last of two equal names.
#include "engine/train/safetensors_header.h"

#include <cstdint>
#include <nlohmann/json.hpp>

namespace rrfp::train {

namespace {

using Json = nlohmann::json;

class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  HeaderReader(std::vector<SafetensorsEntry>& entries, SafetensorsMetadata& metadata)
      : entries_(entries), metadata_(metadata) {}

  [[nodiscard]] const std::string& problem() const { return problem_; }

  bool start_object(size_t /*size*/) override {
    switch (place_) {
      case Place::kStart: place_ = Place::kNames; return true;
      case Place::kMetadataStart: place_ = Place::kMetadata; return true;
      case Place::kTensorStart: place_ = Place::kTensor; return true;
      default: return unexpected("an object");
    }
  }

  bool key(string_t& name) override {
    switch (place_) {
      case Place::kNames: return start_entry(name);
      case Place::kTensor: return start_field(name);
      default: metadata_key_ = name; return true;  // kMetadata: no other place is in an object
    }
  }

  bool end_object() override {
    if (place_ == Place::kNames) {
      place_ = Place::kEnd;
      return true;
    }
    if (place_ == Place::kTensor) {
      for (size_t field = 0; field < kFields; ++field) {
        if (!seen_[field]) return fail(tensor() + " has no " + kFieldNames[field]);
      }
      entries_.back().begin = offsets_[0];
      entries_.back().end = offsets_[1];
    }
    place_ = Place::kNames;
    return true;
  }

  bool start_array(size_t /*size*/) override {
    if (place_ != Place::kField || field_ == kDtype) return unexpected("an array");
    place_ = Place::kArray;
    return true;
  }

  bool end_array() override {
    if (field_ == kOffsets && offset_count_ != 2) {
      return fail(tensor() + " has " + std::to_string(offset_count_) + " data_offsets, expected 2");
    }
    place_ = Place::kTensor;
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      if (metadata_.emplace(metadata_key_, value).second) return true;
      return fail("the name " + shown_name(metadata_key_) + " stands twice in __metadata__");
    }
    if (place_ != Place::kField || field_ != kDtype) return unexpected("a text");
    entries_.back().dtype = value;
    place_ = Place::kTensor;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kArray) return unexpected("a number");
    if (field_ == kOffsets) {
      if (offset_count_ < 2) offsets_[offset_count_] = value;
      ++offset_count_;
      return true;
    }
    auto& shape = entries_.back().shape;
    if (shape.size() == kSafetensorsRankMax) {
      return fail(tensor() + " has more than " + std::to_string(kSafetensorsRankMax) +
                  " dimensions");
    }
    if (value > INT64_MAX) {
      return fail(tensor() + " has the extent " + std::to_string(value) + ", expected at most " +
                  std::to_string(INT64_MAX));
    }
    shape.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool /*value*/) override { return unexpected("a truth value"); }
  bool number_integer(number_integer_t value) override {
    return unexpected("the number " + std::to_string(value));
  }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    return unexpected("the number " + shown_name(text));
  }
  bool binary(binary_t& /*value*/) override { return unexpected("bytes"); }

  bool parse_error(size_t position, const std::string& /*token*/,
                   const Json::exception& /*error*/) override {
    // The parser's own text may repeat what stands in the file, whatever that is.
    return fail("the header is not JSON in UTF-8 at byte " + std::to_string(position));
  }

 private:
  enum class Place : uint8_t {
    kStart,          // before the header
    kNames,          // between two tensors
    kMetadataStart,  // after "__metadata__":
    kMetadata,
    kTensorStart,  // after the name of a tensor
    kTensor,       // between two of its fields
    kField,        // after the name of a field
    kArray,        // in a shape, or in data_offsets
    kEnd,
  };
  enum Field : uint8_t { kDtype, kShape, kOffsets };
  static constexpr size_t kFields = 3;
  static constexpr const char* kFieldNames[kFields] = {"dtype", "shape", "data_offsets"};

  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  [[nodiscard]] std::string tensor() const { return "tensor " + shown_name(entries_.back().name); }

  bool unexpected(const std::string& found) {
    switch (place_) {
      case Place::kStart: return fail("the header is " + found + ", expected an object");
      case Place::kMetadataStart: return fail("__metadata__ is " + found + ", expected an object");
      case Place::kMetadata:
        return fail(shown_name(metadata_key_) + " in __metadata__ is " + found +
                    ", expected a text");
      case Place::kTensorStart: return fail(tensor() + " is " + found + ", expected an object");
      case Place::kField:
        return fail(tensor() + " has " + found + " as " + kFieldNames[field_] + ", expected " +
                    (field_ == kDtype ? "a text" : "an array of numbers"));
      case Place::kArray:
        return fail(tensor() + " has " + found + " in " + kFieldNames[field_] +
                    ", expected whole numbers from 0");
      default: return fail("unexpected " + found);
    }
  }

  bool start_entry(const std::string& name) {
    if (name == "__metadata__") {
      if (has_metadata_) return fail("__metadata__ stands twice in the header");
      has_metadata_ = true;
      place_ = Place::kMetadataStart;
      return true;
    }
    entries_.emplace_back().name = name;
    for (bool& seen : seen_) seen = false;
    offset_count_ = 0;
    place_ = Place::kTensorStart;
    return true;
  }

  bool start_field(const std::string& name) {
    for (size_t field = 0; field < kFields; ++field) {
      if (name != kFieldNames[field]) continue;
      if (seen_[field]) return fail(tensor() + " has its " + name + " twice");
      seen_[field] = true;
      field_ = static_cast<Field>(field);
      place_ = Place::kField;
      return true;
    }
    return fail(tensor() + " has an unknown field " + shown_name(name));
  }

  std::vector<SafetensorsEntry>& entries_;
  SafetensorsMetadata& metadata_;
  std::string problem_;
  Place place_ = Place::kStart;
  bool has_metadata_ = false;
  std::string metadata_key_;
  Field field_ = kDtype;
  bool seen_[kFields] = {};
  uint64_t offsets_[2] = {};
  size_t offset_count_ = 0;
};

}  // namespace

std::string parse_safetensors_header(std::string_view header,
                                     std::vector<SafetensorsEntry>& entries,
                                     SafetensorsMetadata& metadata) {
  HeaderReader reader(entries, metadata);
  Json::sax_parse(header.begin(), header.end(), &reader);
  return reader.problem();
}

}  // namespace rrfp::train
