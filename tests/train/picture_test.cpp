// SPDX-License-Identifier: Apache-2.0
#include "engine/data/picture.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/train/png_files.h"
#include "tests/train/scratch.h"

namespace rrfp::data {
namespace {

using core::Code;
using core::Status;
using test::encode;
using test::fails_with;
using test::Png;
using test::ScratchFolder;
using test::Splitmix;
using test::write_file;

Status read(const std::string& path, int32_t size, std::vector<float>& out,
            int64_t pixels_max = kPixelsMaxDefault) {
  out.assign(static_cast<size_t>(size) * static_cast<size_t>(size) * 3, -9.0F);
  return read_picture(path, size, pixels_max, out);
}

/// The average over the area of each pixel of the square, in float64 and straight from its meaning.
std::vector<double> reference(const Png& png, int32_t size) {
  std::vector<double> out;
  const auto overlap = [size](int32_t to, uint32_t from, uint32_t extent) {
    const double begin = static_cast<double>(to) * extent / size;
    const double end = static_cast<double>(to + 1) * extent / size;
    return std::max(0.0, std::min(end, from + 1.0) - std::max(begin, from + 0.0));
  };
  for (int32_t y = 0; y < size; ++y) {
    for (int32_t x = 0; x < size; ++x) {
      std::array<double, 3> sum{};
      double area = 0;
      for (uint32_t v = 0; v < png.height; ++v) {
        for (uint32_t u = 0; u < png.width; ++u) {
          const double weight = overlap(y, v, png.height) * overlap(x, u, png.width);
          if (weight == 0) continue;
          const test::Rgb color = test::pixel_of(png, size_t{v} * png.width + u);
          for (size_t c = 0; c < 3; ++c) sum[c] += weight * color[c];
          area += weight;
        }
      }
      for (const double s : sum) out.push_back((s / area / 255 - 0.5) / 0.5);
    }
  }
  return out;
}

class Pictures : public ::testing::Test {
 protected:
  void expect_read(const Png& png, int32_t size, const std::string& what) {
    write_file(path_, encode(png));
    test::require(check_picture(path_, kPixelsMaxDefault));
    std::vector<float> numbers;
    test::require(read(path_, size, numbers));
    const std::vector<double> expected = reference(png, size);
    ASSERT_EQ(numbers.size(), expected.size());
    for (size_t k = 0; k < numbers.size(); ++k) {
      ASSERT_NEAR(numbers[k], expected[k], 1e-6) << what << ", number " << k;
    }
  }

  Status failure(int64_t pixels_max = kPixelsMaxDefault) {
    std::vector<float> numbers;
    Status status = read(path_, 4, numbers, pixels_max);
    const Status checked = check_picture(path_, pixels_max);
    if (checked.failed()) {
      EXPECT_EQ(checked.text(), status.text()) << "the same words at both times";
    }
    return status;
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_ / "picture.png";
  Splitmix random_{7};
};

struct Kind {
  int color_type;
  std::vector<int> depths;
};
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {{PNG_COLOR_TYPE_GRAY, {1, 2, 4, 8, 16}},
                                        {PNG_COLOR_TYPE_PALETTE, {1, 2, 4, 8}},
                                        {PNG_COLOR_TYPE_RGB, {8, 16}},
                                        {PNG_COLOR_TYPE_GRAY_ALPHA, {8, 16}},
                                        {PNG_COLOR_TYPE_RGB_ALPHA, {8, 16}}};
  return all;
}

TEST_F(Pictures, EveryKindOfFile) {
  for (const Kind& kind : kinds()) {
    for (const int depth : kind.depths) {
      for (const bool interlaced : {false, true}) {
        Png png = test::noise(random_, 9, 7, kind.color_type, depth);
        png.interlaced = interlaced;
        const std::string what = "color type " + std::to_string(kind.color_type) + ", " +
                                 std::to_string(depth) +
                                 (interlaced ? " bits, interlaced" : " bits");
        expect_read(png, 4, what);
        if (kind.color_type == PNG_COLOR_TYPE_PALETTE) {
          png.palette_alpha = {0, 128};
        } else if ((kind.color_type & PNG_COLOR_MASK_ALPHA) == 0) {
          png.transparent.emplace();
          std::copy_n(png.values.begin(), png.channels(), png.transparent->begin());
        }
        expect_read(png, 9, what + ", transparent");
      }
    }
  }
}

TEST_F(Pictures, AveragesOfAreas) {
  const std::pair<uint32_t, uint32_t> extents[] = {{1, 1},  {2, 1},   {1, 3},  {3, 2},  {5, 5},
                                                   {7, 13}, {64, 64}, {65, 3}, {1, 97}, {130, 11}};
  for (const auto& [width, height] : extents) {
    const Png png = test::noise(random_, width, height, PNG_COLOR_TYPE_RGB, 8);
    for (const int32_t size : {1, 2, 3, 5, 8, 64}) {
      expect_read(
          png, size,
          std::to_string(width) + " x " + std::to_string(height) + " to " + std::to_string(size));
    }
  }
}

TEST_F(Pictures, TheSameSizeKeepsEveryPixel) {
  const Png png = test::noise(random_, 16, 16, PNG_COLOR_TYPE_RGB, 8);
  write_file(path_, encode(png));
  std::vector<float> numbers;
  test::require(read(path_, 16, numbers));
  for (size_t k = 0; k < numbers.size(); ++k) {
    const auto exact = static_cast<float>(2.0 * png.values[k] / 255.0 - 1.0);
    ASSERT_EQ(numbers[k], exact);
  }
}

TEST_F(Pictures, BlackWhiteAndTransparent) {
  std::vector<float> numbers;
  write_file(path_, encode(test::plain(300, 200, {0, 0, 0})));
  test::require(read(path_, 7, numbers));
  EXPECT_EQ(numbers, std::vector<float>(7 * 7 * 3, -1.0F));
  write_file(path_, encode(test::plain(3, 1000, {255, 255, 255})));
  test::require(read(path_, 7, numbers));
  EXPECT_EQ(numbers, std::vector<float>(7 * 7 * 3, 1.0F));
  Png clear = test::noise(random_, 10, 10, PNG_COLOR_TYPE_RGB_ALPHA, 8);
  for (size_t k = 3; k < clear.values.size(); k += 4) clear.values[k] = 0;
  write_file(path_, encode(clear));
  test::require(read(path_, 7, numbers));
  EXPECT_EQ(numbers, std::vector<float>(7 * 7 * 3, 1.0F)) << "what cannot be seen does not matter";
}

TEST_F(Pictures, TheLimitIsCheckedBeforeMemoryIsTaken) {
  // A header that claims 10^12 pixels, in a file of which the rest is fine.
  std::string bytes = encode(test::plain(4, 4, {1, 2, 3}));
  write_file(path_, bytes);
  test::require(check_picture(path_, 16));
  std::vector<float> numbers;
  test::require(read(path_, 4, numbers, 16));
  EXPECT_TRUE(fails_with(failure(15), Code::kBadData, {"picture.png\"", "4 x 4 pixels", "15"}));
  const auto set_extents = [&](std::string_view width, std::string_view height) {
    bytes.replace(16, 4, width).replace(20, 4, height);
    write_file(path_, bytes);
  };
  const std::string_view million("\x00\x0f\x42\x40", 4);
  set_extents(million, million);
  EXPECT_TRUE(fails_with(failure(), Code::kBadData,
                         {"picture.png\"", "1000000 x 1000000 pixels", "16777216"}));
  set_extents("\xff\xff\xff\xff", million);
  EXPECT_TRUE(fails_with(failure(INT64_MAX), Code::kBadData, {"4294967295 x 1000000 pixels"}));
  set_extents(std::string_view("\0\0\0\0", 4), million);
  EXPECT_TRUE(fails_with(failure(INT64_MAX), Code::kBadData, {"0 x 1000000 pixels"}));
}

TEST_F(Pictures, TextsThatUnpackToALotTakeNoMemory) {
  Png png = test::plain(1, 1, {255, 0, 0});
  png.comment.assign(size_t{4} << 20, 'a');
  std::string file = encode(png);
  const size_t begin = file.find("zTXt") - 4;
  const std::string chunk = file.substr(begin, file.find("IDAT") - 4 - begin);
  ASSERT_LT(chunk.size(), size_t{64} << 10);
  for (int k = 1; k < 128; ++k) file.insert(begin, chunk);  // 512 MiB in all
  write_file(path_, file);
  const auto peak_kib = [] {
    rusage usage{};
    EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
  };
  std::vector<float> numbers;
  const int64_t before = peak_kib();
  ASSERT_TRUE(read(path_, 1, numbers).ok());
  EXPECT_EQ(numbers, (std::vector<float>{1, -1, -1}));
  EXPECT_LT(peak_kib() - before, 64 << 10);
}

TEST_F(Pictures, WhatIsNoPicture) {
  EXPECT_TRUE(fails_with(failure(), Code::kIo, {"cannot open", "picture.png\"", "No such file"}));
  for (const std::string_view bytes : {"", "\x89PNG", "GIF89a and more than eight bytes"}) {
    write_file(path_, bytes);
    EXPECT_TRUE(fails_with(failure(), Code::kBadData, {"picture.png\"", "is not a PNG file"}));
  }
  write_file(path_, std::string_view("\x89PNG\r\n\x1a\n and then other things in its place", 40));
  EXPECT_TRUE(fails_with(failure(), Code::kBadData, {"picture.png\"", "header", "damaged"}));
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_TRUE(fails_with(failure(), Code::kIo, {"picture.png\"", "regular file"}));
  std::filesystem::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_TRUE(fails_with(failure(), Code::kIo, {"picture.png\"", "regular file"})) << "no waiting";
}

// Also that nothing is printed, whatever libpng has to say.
TEST_F(Pictures, FilesCutOffAnywhere) {
  Png png = test::noise(random_, 6, 5, PNG_COLOR_TYPE_PALETTE, 4);
  png.palette_alpha = {9};
  png.interlaced = true;
  const std::string whole = encode(png);
  ::testing::internal::CaptureStderr();
  for (size_t size = 0; size < whole.size(); ++size) {
    write_file(path_, whole.substr(0, size));
    ASSERT_TRUE(fails_with(failure(), Code::kBadData, {"picture.png\""})) << size;
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(Pictures, FlippedBytes) {
  for (const Kind& kind : kinds()) {
    const std::string whole =
        encode(test::noise(random_, 5, 4, kind.color_type, kind.depths.front()));
    for (size_t at = 0; at < whole.size(); ++at) {
      for (const int mask : {1, 0x80, 0xff}) {
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ mask);
        write_file(path_, bytes);
        const Status status = failure();
        if (!status.ok()) {
          ASSERT_TRUE(fails_with(status, Code::kBadData, {"picture.png\""}));
        }
        // The signature, the header and its check sum.
        if (at < 33) {
          ASSERT_FALSE(status.ok()) << at;
        }
      }
    }
  }
}

}  // namespace
}  // namespace rrfp::data
