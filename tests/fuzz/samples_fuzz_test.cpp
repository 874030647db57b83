// SPDX-License-Identifier: Apache-2.0
//
// Mutated manifests and PNG files. Whatever the bytes, reading must either succeed, and then the
// result keeps its own rules, or fail with an error that names the file, and nothing is printed. A
// failure, also a crash, prints the seed and the command that replays it:
//   RRFP_FUZZ_SEED=<seed>   runs this one file only
//   RRFP_FUZZ_RUNS=<count>  runs that many files of each kind instead of kRunsDefault
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/manifest.h"
#include "engine/data/packing.h"
#include "engine/data/picture.h"
#include "tests/fuzz/seeds.h"
#include "tests/train/png_files.h"
#include "tests/train/scratch.h"

namespace rrfp::data {
namespace {

using core::Code;
using core::Status;
using test::Splitmix;

constexpr uint64_t kRunsDefault = 2000;

/// Calls run(seed) for many seeds.
template <class Run>
void for_each_seed(Run run) {
  fuzz::for_each_seed("tests/fuzz/samples_fuzz_test", kRunsDefault, run);
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

size_t random_place(Splitmix& random, std::string_view text) {
  return static_cast<size_t>(random.between(0, static_cast<int64_t>(text.size()) - 1));
}

std::string random_piece(Splitmix& random) {
  constexpr std::string_view kPieces[] = {"{",          "}",        "[",         "]",
                                          ",",          ":",        "\"",        "\\",
                                          "\\u0000",    "\\ud800",  "\n",        "\r\n",
                                          "null",       "true",     "1e999",     "<image>",
                                          "\"images\"", "\"text\"", "\"a.png\"", "{\"text\":\"b\"}",
                                          "\xff",       "\xc3",     "[[[[[[[[",  "\\u003cimage>"};
  if (random.percent(80)) return std::string(random.pick(kPieces));
  return std::string(static_cast<size_t>(random.between(1, 3)),
                     static_cast<char>(random.between(0, 255)));
}

void mutate(Splitmix& random, std::string& text) {
  if (text.empty()) {
    text = random_piece(random);
    return;
  }
  const size_t at = random_place(random, text);
  const auto length = static_cast<size_t>(random.between(1, 6));
  switch (random.between(0, 5)) {
    case 0: text[at] = static_cast<char>(text[at] ^ (1 << random.between(0, 7))); break;
    case 1: text.insert(at, random_piece(random)); break;
    case 2: text.erase(at, length); break;
    case 3: text.insert(at, text.substr(random_place(random, text), length)); break;
    case 4: text.replace(at, length, random_piece(random)); break;
    case 5: text.resize(at); break;
  }
}

class ManifestFuzz : public ::testing::Test {
 protected:
  ManifestFuzz() {
    for (const std::string name : {"a.png", "b.png"}) {
      test::write_file(folder_ / name, test::encode(test::plain(1, 1, {1, 2, 3})));
    }
  }

  static std::string make_valid(Splitmix& random) {
    std::string text;
    for (int64_t k = random.between(1, 4); k > 0; --k) {
      text += R"({"id": [1, {"text": 2}], "text": "one)";
      std::string images;
      for (int64_t picture = random.between(0, 2); picture > 0; --picture) {
        text += "<image> \\u00e9";
        images += images.empty() ? "\"a.png\"" : ",\"b.png\"";
      }
      text += "\", \"images\": [" + images + "]}\n";
    }
    return text;
  }

  /// True if it can be read.
  bool check(const std::string& text) {
    test::write_file(options_.path, text);
    Manifest manifest;
    const Status status = Manifest::open(options_, manifest);
    if (!status.ok()) {
      EXPECT_TRUE(status.code() == Code::kBadData || status.code() == Code::kIo) << status.text();
      EXPECT_EQ(status.text().find("\"" + options_.path + "\""), 0U) << status.text();
      // Names of pictures are shown as they are, everything else in ASCII.
      const bool about_picture = status.text().find("\": ") != std::string::npos ||
                                 status.text().find("is not a") != std::string::npos;
      EXPECT_TRUE(about_picture || is_printable(status.text())) << status.text();
      return false;
    }
    check_samples(manifest);
    return true;
  }

  void check_samples(const Manifest& manifest) {
    int64_t pictures = 0;
    int64_t tokens = 0;
    ManifestSample sample;
    Microbatch m;
    for (size_t k = 0; k < manifest.size(); ++k) {
      manifest.read(k, sample);
      m.clear();
      m.append(sample.text, options_.image_tokens);
      ASSERT_EQ(m.tokens.size(), static_cast<size_t>(manifest.tokens(k)));
      ASSERT_LE(manifest.tokens(k), options_.context);
      ASSERT_EQ(m.image_count, manifest.pictures(k));
      ASSERT_EQ(sample.pictures.size(), static_cast<size_t>(manifest.pictures(k)));
      for (const std::string& path : sample.pictures) {
        test::require(check_picture(path, options_.pixels_max));
      }
      pictures += manifest.pictures(k);
      tokens += manifest.tokens(k);
    }
    ASSERT_GT(manifest.size(), 0U);
    ASSERT_EQ(pictures, manifest.pictures());
    ASSERT_EQ(tokens, manifest.tokens());
  }

  const test::ScratchFolder folder_;
  const ManifestOptions options_ = {
      .path = folder_ / "m.jsonl", .image_tokens = 3, .context = 40, .pixels_max = 10};
};

TEST_F(ManifestFuzz, MutatedTexts) {
  int read = 0;
  for_each_seed([&](uint64_t seed) {
    Splitmix random(seed);
    std::string text = make_valid(random);
    ASSERT_TRUE(check(text));
    for (int64_t k = random.between(0, 4); k >= 0; --k) mutate(random, text);
    read += check(text) ? 1 : 0;
  });
  // Some must still be good, or only errors are tried.
  if (std::getenv("RRFP_FUZZ_SEED") == nullptr && std::getenv("RRFP_FUZZ_RUNS") == nullptr) {
    EXPECT_GT(read, static_cast<int>(kRunsDefault / 50));
  }
}

TEST_F(ManifestFuzz, RandomPieces) {
  for_each_seed([&](uint64_t seed) {
    Splitmix random(seed);
    std::string text = random.percent(50) ? "{\"text\":" : "";
    for (int64_t k = random.between(0, 60); k > 0; --k) text += random_piece(random);
    check(text);
  });
}

// --- Pictures

/// The check sum of a chunk, of its type and data.
uint32_t check_sum(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

std::string big_endian(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 255);
  return out;
}

std::string chunk(const std::string& type_and_data) {
  return big_endian(static_cast<uint32_t>(type_and_data.size()) - 4) + type_and_data +
         big_endian(check_sum(type_and_data));
}

/// Each chunk's type and data.
std::vector<std::string> chunks_of(std::string_view file) {
  std::vector<std::string> out;
  for (size_t at = 8; at + 12 <= file.size();) {
    size_t size = 0;
    for (size_t k = 0; k < 4; ++k) size = size << 8 | static_cast<uint8_t>(file[at + k]);
    out.emplace_back(file.substr(at + 4, size + 4));
    at += size + 12;
  }
  return out;
}

std::string file_of(const std::vector<std::string>& chunks) {
  std::string out = "\x89PNG\r\n\x1a\n";
  for (const std::string& c : chunks) out += chunk(c);
  return out;
}

class PictureFuzz : public ::testing::Test {
 protected:
  static std::string make_valid(Splitmix& random) {
    constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_PALETTE, PNG_COLOR_TYPE_RGB,
                              PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB_ALPHA};
    const int type = random.pick(kTypes);
    const bool few = type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_PALETTE;
    const int most = type == PNG_COLOR_TYPE_PALETTE ? 3 : 4;
    const int depth = 1 << random.between(few ? 0 : 3, most);
    const auto side = [&] { return static_cast<uint32_t>(random.between(1, 9)); };
    test::Png png = test::noise(random, side(), side(), type, depth);
    png.interlaced = random.percent(50);
    if (type == PNG_COLOR_TYPE_PALETTE && random.percent(50)) png.palette_alpha = {7, 200};
    return test::encode(png);
  }

  /// True if it can be read.
  bool check(const std::string& bytes) {
    constexpr int64_t kPixelsMax = 1'000'000;
    test::write_file(path_, bytes);
    std::vector<float> numbers(5 * 5 * 3, -9.0F);
    const Status header = check_picture(path_, kPixelsMax);
    const Status status = read_picture(path_, 5, kPixelsMax, numbers);
    EXPECT_TRUE(header.ok() || header.text() == status.text()) << header.text();
    if (!status.ok()) {
      EXPECT_TRUE(test::fails_with(status, Code::kBadData, {path_}));
      EXPECT_TRUE(is_printable(status.text())) << status.text();
      EXPECT_LT(status.text().size(), path_.size() + 300);
      return false;
    }
    EXPECT_TRUE(std::all_of(numbers.begin(), numbers.end(),
                            [](float x) { return x >= -1.0F && x <= 1.0F; }));
    return true;
  }

  const test::ScratchFolder folder_;
  const std::string path_ = folder_ / "x.png";
};

TEST_F(PictureFuzz, MutatedBytes) {
  for_each_seed([&](uint64_t seed) {
    Splitmix random(seed);
    std::string bytes = make_valid(random);
    ASSERT_TRUE(check(bytes));
    for (int64_t k = random.between(0, 3); k >= 0; --k) mutate(random, bytes);
    check(bytes);
  });
}

// The check sums follow, so that more than these is looked at.
TEST_F(PictureFuzz, MutatedChunks) {
  int read = 0;
  for_each_seed([&](uint64_t seed) {
    Splitmix random(seed);
    std::vector<std::string> chunks = chunks_of(make_valid(random));
    ASSERT_TRUE(check(file_of(chunks)));
    constexpr std::string_view kTypes[] = {"tRNS", "gAMA", "sBIT", "iCCP", "zTXt", "bKGD", "PLTE",
                                           "acTL", "eXIf", "IDAT", "hIST", "xXXx", "XXXX", "cHRM"};
    for (int64_t k = random.between(0, 3); k >= 0; --k) {
      const size_t at =
          static_cast<size_t>(random.between(0, static_cast<int64_t>(chunks.size()) - 1));
      std::string& one = chunks[at];
      switch (random.between(0, 3)) {
        case 0: one[random_place(random, one)] = static_cast<char>(random.between(0, 255)); break;
        case 1: one.resize(std::max<size_t>(4, random_place(random, one))); break;
        case 2: std::swap(one, chunks[(at + 1) % chunks.size()]); break;
        case 3: {
          std::string data(random.pick(kTypes));
          for (int64_t n = random.between(0, 40); n > 0; --n) {
            data += static_cast<char>(random.between(0, 255));
          }
          chunks.insert(chunks.begin() + static_cast<int64_t>(at), data);
          break;
        }
      }
    }
    read += check(file_of(chunks)) ? 1 : 0;
  });
  if (std::getenv("RRFP_FUZZ_SEED") == nullptr && std::getenv("RRFP_FUZZ_RUNS") == nullptr) {
    EXPECT_GT(read, static_cast<int>(kRunsDefault / 50));
  }
}

}  // namespace
}  // namespace rrfp::data
