// SPDX-License-Identifier: Apache-2.0
//
// A state machine over the events of the JSON parser: no tree is built of what nobody looks at.
#include "engine/data/manifest_line.h"

#include <cstdint>
#include <nlohmann/json.hpp>

namespace rrfp::data {

namespace {

using Json = nlohmann::json;

class LineReader final : public nlohmann::json_sax<Json> {
 public:
  explicit LineReader(ManifestLine& line) : line_(line) {}

  [[nodiscard]] const std::string& problem() const { return problem_; }

  /// After the whole line.
  bool finish() { return saw_text_ || fail("has no \"text\""); }

  bool start_object(size_t /*size*/) override {
    if (depth_ > 0 && !value("an object")) return false;
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(size_t /*size*/) override {
    // The array of pictures is the only one that is looked into.
    if (depth_ == 1 && field_ == Field::kPictures) {
      in_pictures_ = true;
    } else if (!value("an array")) {
      return false;
    }
    ++depth_;
    return true;
  }
  bool end_array() override {
    if (--depth_ == 1) in_pictures_ = false;
    return true;
  }

  bool key(string_t& name) override {
    if (depth_ > 1) return true;
    field_ = name == "text" ? Field::kText : name == "images" ? Field::kPictures : Field::kOther;
    bool& saw = field_ == Field::kText ? saw_text_ : saw_pictures_;
    if (field_ == Field::kOther || !saw) {
      saw = saw || field_ != Field::kOther;
      return true;
    }
    return fail("has \"" + name + "\" twice");
  }

  bool string(string_t& text) override {
    if (depth_ == 1 && field_ == Field::kText) {
      line_.text = std::move(text);
      return true;
    }
    if (in_pictures_ && depth_ == 2) {
      line_.pictures.push_back(std::move(text));
      return true;
    }
    return value("a text");
  }
  bool null() override { return value("null"); }
  bool boolean(bool /*value*/) override { return value("a truth value"); }
  bool number_integer(number_integer_t /*value*/) override { return value("a number"); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return value("a number"); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override {
    return value("a number");
  }
  bool binary(binary_t& /*value*/) override { return value("bytes"); }

  bool parse_error(size_t position, const std::string& /*token*/,
                   const Json::exception& error) override {
    constexpr int kNumberOverflow = 406;
    const std::string at = " at byte " + std::to_string(position);
    if (error.id == kNumberOverflow) return fail("has a number out of range" + at);
    return fail("is not JSON in UTF-8" + at + short_reason(error));
  }

 private:
  enum class Field : uint8_t { kOther, kText, kPictures };

  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  /// A value where none is wanted but for those that were dealt with.
  bool value(const char* found) {
    if (depth_ == 0) return fail(std::string("is ") + found + ", expected an object");
    if (depth_ == 1 && field_ == Field::kText) {
      return fail(std::string("has ") + found + " as \"text\", expected a text");
    }
    if (depth_ == 1 && field_ == Field::kPictures) {
      return fail(std::string("has ") + found + " as \"images\", expected an array of texts");
    }
    if (depth_ == 2 && in_pictures_) {
      return fail(std::string("has ") + found + " among its \"images\", expected texts");
    }
    return true;
  }

  /// The middle of the parser's text: before it stand numbers of the library, behind it parts of
  /// the file, whatever they are.
  static std::string short_reason(const Json::exception& error) {
    const std::string_view text = error.what();
    const size_t before = text.find(" - ");
    if (before == std::string_view::npos) return "";
    const std::string_view rest = text.substr(before + 3);
    std::string reason;
    for (const char c : rest.substr(0, rest.find(';'))) {
      reason += c >= ' ' && c <= '~' ? c : '?';
    }
    return reason.empty() ? "" : ": " + reason;
  }

  ManifestLine& line_;
  std::string problem_;
  size_t depth_ = 0;
  Field field_ = Field::kOther;  // of the name that came last in the outermost object
  bool saw_text_ = false;
  bool saw_pictures_ = false;
  bool in_pictures_ = false;
};

}  // namespace

std::string parse_manifest_line(std::string_view line, ManifestLine& out) {
  out.text.clear();
  out.pictures.clear();
  LineReader reader(out);
  if (Json::sax_parse(line.begin(), line.end(), &reader) && reader.finish()) return "";
  return reader.problem();
}

}  // namespace rrfp::data
