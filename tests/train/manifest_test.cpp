// SPDX-License-Identifier: Apache-2.0
#include "engine/data/manifest.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "tests/train/png_files.h"
#include "tests/train/scratch.h"

namespace rrfp::data {
namespace {

using core::Code;
using core::Status;
using test::fails_with;
using test::ScratchFolder;
using test::write_file;
using Texts = std::initializer_list<std::string_view>;

class Manifests : public ::testing::Test {
 protected:
  Manifests() {
    std::filesystem::create_directory(folder_ / "deep");
    write_file(folder_ / "red.png", test::encode(test::plain(2, 2, {255, 0, 0})));
    write_file(folder_ / "deep/wide.png", test::encode(test::plain(9, 1, {0, 0, 0})));
    options_ = {.path = folder_ / "m.jsonl", .image_tokens = 4, .context = 100, .pixels_max = 9};
  }

  Status open(std::string_view text) {
    write_file(options_.path, text);
    manifest_ = {};
    return Manifest::open(options_, manifest_);
  }
  /// What the second line does wrong.
  ::testing::AssertionResult refused(const std::string& line, Texts parts,
                                     Code code = Code::kBadData) {
    for (const std::string end : {"", "\n", "\r\n", "\n{\"text\": \"more\"}\n"}) {
      const Status status = open("{\"text\": \"good\"}\n" + line + end);
      auto result = fails_with(status, code, {"m.jsonl\", line 2: "});
      if (result) result = fails_with(status, code, parts);
      if (!result) return result << "\nthe line: " << line.substr(0, 200);
      if (manifest_.size() != 0) return ::testing::AssertionFailure() << "something was kept";
    }
    return ::testing::AssertionSuccess();
  }
  ManifestSample sample(size_t k) {
    ManifestSample out;
    manifest_.read(k, out);
    return out;
  }

  const ScratchFolder folder_;
  ManifestOptions options_;
  Manifest manifest_;
};

TEST_F(Manifests, Samples) {
  test::require(open(R"({"text": "plain"}
{"images": ["red.png", "deep/../deep/wide.png"], "text": "<image> and <image>!"}
   {"id": {"text": 7, "images": [[{}]]}, "text": "d\u00e9j\u00e0 \ud83d\ude00\n", "images": []}  )"));
  ASSERT_EQ(manifest_.size(), 3U);
  EXPECT_EQ(sample(0).text, "plain");
  EXPECT_EQ(sample(0).pictures, std::vector<std::string>());
  EXPECT_EQ(sample(1).text, "<image> and <image>!");
  EXPECT_EQ(sample(1).pictures,
            (std::vector<std::string>{folder_ / "red.png", folder_ / "deep/../deep/wide.png"}));
  EXPECT_EQ(sample(2).text, "d\xc3\xa9j\xc3\xa0 \xf0\x9f\x98\x80\n");
  EXPECT_EQ(manifest_.tokens(0), 6);
  EXPECT_EQ(manifest_.tokens(1), 6 + 2 * 4 + 1);
  EXPECT_EQ(manifest_.tokens(), 6 + 15 + 13);
  EXPECT_EQ(manifest_.pictures(1), 2);
  EXPECT_EQ(manifest_.pictures(), 2);
  EXPECT_EQ(manifest_.pictures_max(), 2);
}

TEST_F(Manifests, PathsAreAbsoluteOrStartAtTheFolder) {
  test::require(open(R"({"text": "a<image>", "images": [")" + (folder_ / "red.png") + "\"]}\n"));
  EXPECT_EQ(sample(0).pictures.front(), folder_ / "red.png");
  // From inside of the folder, the manifest has no folder in its name.
  test::require(open(R"({"text": "a<image>", "images": ["red.png"]})"));
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  options_.path = "m.jsonl";
  Manifest inside;
  const Status status = Manifest::open(options_, inside);
  std::filesystem::current_path(before);
  test::require(status);
  ManifestSample first;
  inside.read(0, first);
  EXPECT_EQ(first.pictures.front(), "red.png");
}

TEST_F(Manifests, LinesEndInManyWays) {
  for (const std::string end : {"", "\n", "\r\n", "\n\n", "\n  \n\t\r\n", " "}) {
    test::require(open("{\"text\": \"a\"}\r\n{\"text\": \"b\"}" + end));
    EXPECT_EQ(manifest_.size(), 2U);
  }
  test::require(open("\xef\xbb\xbf{\"text\": \"after a byte order mark\"}"));
}

TEST_F(Manifests, NoSamples) {
  EXPECT_TRUE(fails_with(Manifest::open(options_, manifest_), Code::kIo,
                         {"cannot open", "m.jsonl\"", "No such file"}));
  for (const std::string_view text : {"", "\n", " \r\n\n"}) {
    EXPECT_TRUE(fails_with(open(text), Code::kBadData, {"m.jsonl\"", "no samples"}));
  }
  options_.path = folder_ / "deep";
  EXPECT_TRUE(fails_with(Manifest::open(options_, manifest_), Code::kIo, {"deep\"", "regular"}));
  options_.path = folder_ / "pipe";  // nobody writes to it
  ASSERT_EQ(mkfifo(options_.path.c_str(), 0600), 0);
  EXPECT_TRUE(fails_with(Manifest::open(options_, manifest_), Code::kIo, {"pipe\"", "regular"}));
}

TEST_F(Manifests, LinesThatAreNoObjects) {
  EXPECT_TRUE(fails_with(open("{\"text\": \"a\"}\n \n{\"text\": \"b\"}"), Code::kBadData,
                         {"m.jsonl\", line 2: ", "empty"}));
  EXPECT_TRUE(refused("nonsense", {"not JSON", "byte 2", "invalid literal"}));
  EXPECT_TRUE(refused(R"({"text": "a")", {"not JSON", "unexpected end of input"}));
  EXPECT_TRUE(refused(R"({"text": "a"}})", {"not JSON", "byte 14", "unexpected '}'"}));
  EXPECT_TRUE(refused(R"({"text": "a"} {"text": "b"})", {"not JSON"}));
  EXPECT_TRUE(refused("{\"text\": \"\x80\"}", {"not JSON in UTF-8", "ill-formed UTF-8 byte"}));
  EXPECT_TRUE(refused("{\"text\": \"\xed\xa0\x80\"}", {"ill-formed UTF-8 byte"}));
  EXPECT_TRUE(refused(R"({"text": "\ud800"})", {"not JSON", "surrogate"}));
  EXPECT_TRUE(refused("{\"text\": \"\x01\"}", {"not JSON", "control character"}));
  EXPECT_TRUE(refused(R"({"text": "a", "score": 1e999})", {"a number out of range at byte"}));
  EXPECT_TRUE(refused(R"(["text"])", {"is an array, expected an object"}));
  EXPECT_TRUE(refused(R"("text")", {"is a text, expected an object"}));
  EXPECT_TRUE(refused("17", {"is a number, expected an object"}));
  EXPECT_TRUE(refused("null", {"is null, expected an object"}));
  const std::string deep(1'000'000, '[');
  EXPECT_TRUE(refused(R"({"text": "a", "deep": )" + deep, {"not JSON"}));
  EXPECT_TRUE(refused(deep, {"is an array"}));
  EXPECT_TRUE(refused("{\"text\": \"a\"" + std::string(kManifestLineBytesMax, ' ') + "}",
                      {"at most 16777216"}));
}

TEST_F(Manifests, BadTexts) {
  EXPECT_TRUE(refused("{}", {"the line has no \"text\""}));
  EXPECT_TRUE(refused(R"({"Text": "a", "inner": {"text": "a"}})", {"has no \"text\""}));
  EXPECT_TRUE(refused(R"({"text": 1})", {"has a number as \"text\""}));
  EXPECT_TRUE(refused(R"({"text": null})", {"has null as \"text\""}));
  EXPECT_TRUE(refused(R"({"text": true})", {"has a truth value as \"text\""}));
  EXPECT_TRUE(refused(R"({"text": ["a"]})", {"has an array as \"text\""}));
  EXPECT_TRUE(refused(R"({"text": {"a": "b"}})", {"has an object as \"text\""}));
  EXPECT_TRUE(refused(R"({"text": "a", "text": "b"})", {"has \"text\" twice"}));
  for (const std::string text : {"", " ", "\\t \\n\\r"}) {
    EXPECT_TRUE(refused(R"({"text": ")" + text + "\"}", {"empty \"text\""}));
  }
  EXPECT_TRUE(refused(R"({"text": " <image><image> ", "images": ["red.png", "red.png"]})",
                      {"empty \"text\"", "marks"}));
}

TEST_F(Manifests, BadPictures) {
  const auto with = [](const std::string& images) {
    return R"({"text": "a<image>", "images": )" + images + "}";
  };
  EXPECT_TRUE(refused(with("\"red.png\""), {"has a text as \"images\", expected an array"}));
  EXPECT_TRUE(refused(with("null"), {"has null as \"images\""}));
  EXPECT_TRUE(refused(with("{}"), {"has an object as \"images\""}));
  EXPECT_TRUE(refused(with("[1]"), {"has a number among its \"images\""}));
  EXPECT_TRUE(refused(with("[[\"red.png\"]]"), {"has an array among its \"images\""}));
  EXPECT_TRUE(refused(with("[{\"path\": \"red.png\"}]"), {"has an object among its \"images\""}));
  EXPECT_TRUE(refused(with("[\"red.png\"], \"images\": []"), {"has \"images\" twice"}));
  EXPECT_TRUE(refused(with("[\"\"]"), {"empty path"}));
  EXPECT_TRUE(refused(with("[\"red.png\\u0000\"]"), {"zero byte"}));
  EXPECT_TRUE(refused(with("[\"" + std::string(5000, 'x') + "\"]"), {"5000 bytes", "4096"}));
  EXPECT_TRUE(refused(with("[]"), {"1 mark <image>", "0 pictures"}));
  EXPECT_TRUE(refused(with("[\"red.png\", \"red.png\"]"), {"1 mark <image>", "2 pictures"}));
  EXPECT_TRUE(refused(R"({"text": "<image> a <image>"})", {"2 marks <image>", "0 pictures"}));
  EXPECT_TRUE(refused(R"({"text": "a", "images": ["red.png"]})", {"0 marks", "1 picture "}));
  EXPECT_TRUE(
      refused(with("[\"blue.png\"]"), {"cannot open", "/blue.png\"", "No such file"}, Code::kIo));
  EXPECT_TRUE(refused(with("[\"deep\"]"), {"/deep\"", "not a regular file"}, Code::kIo));
  EXPECT_TRUE(refused(with("[\"m.jsonl\"]"), {"m.jsonl\" is not a PNG file"}));
  options_.pixels_max = 8;
  EXPECT_TRUE(refused(with("[\"deep/wide.png\"]"), {"wide.png\"", "9 x 1 pixels", "8 pixels"}));
}

TEST_F(Manifests, SamplesLongerThanTheContext) {
  const std::string line = R"({"text": "abc<image>d<image>", "images": ["red.png", "red.png"]})";
  options_.context = 13;
  test::require(open(line));
  EXPECT_EQ(manifest_.tokens(0), 13);
  options_.context = 12;
  EXPECT_TRUE(refused(line, {"13 tokens", "4 bytes", "2 pictures of 4", "context of 12"}));
  options_.image_tokens = INT32_MAX;
  EXPECT_TRUE(refused(line, {"4294967299 tokens"}));
}

TEST_F(Manifests, ManySamples) {
  std::string text;
  for (int k = 0; k < 100'000; ++k) text += "{\"text\": \"sample " + std::to_string(k) + "\"}\n";
  test::require(open(text));
  ASSERT_EQ(manifest_.size(), 100'000U);
  EXPECT_EQ(sample(54'321).text, "sample 54321");
  EXPECT_TRUE(
      fails_with(open(text + "{}\n"), Code::kBadData, {"m.jsonl\", line 100001: ", "no \"text\""}));
}

}  // namespace
}  // namespace rrfp::data
