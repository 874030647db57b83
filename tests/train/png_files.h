// SPDX-License-Identifier: Apache-2.0
//
// PNG files of every kind, written by libpng, and what their pixels should be.
#pragma once

#include <png.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/splitmix.h"

namespace rrfp::test {

using Rgb = std::array<uint8_t, 3>;

struct Png {
  uint32_t width = 1;
  uint32_t height = 1;
  int color_type = PNG_COLOR_TYPE_RGB;
  int depth = 8;
  bool interlaced = false;
  /// Of the channels of each pixel, or the number of its color.
  std::vector<uint16_t> values;
  std::vector<Rgb> palette;
  std::vector<uint8_t> palette_alpha;                  // of its first colors
  std::optional<std::array<uint16_t, 3>> transparent;  // a color; grey is its first number
  std::string comment;                                 // compressed; empty = none

  [[nodiscard]] size_t channels() const {
    switch (color_type) {
      case PNG_COLOR_TYPE_GRAY_ALPHA: return 2;
      case PNG_COLOR_TYPE_RGB: return 3;
      case PNG_COLOR_TYPE_RGB_ALPHA: return 4;
      default: return 1;
    }
  }
};

inline void append_bytes(png_structp png, png_bytep bytes, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))
      ->append(reinterpret_cast<const char*>(bytes), count);
}

/// The bytes of the file. A mistake of the test ends it.
inline std::string encode(const Png& in) {
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &out, append_bytes, nullptr);
  png_set_IHDR(png, info, in.width, in.height, in.depth, in.color_type,
               in.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> colors;
  for (const Rgb& c : in.palette) colors.push_back({c[0], c[1], c[2]});
  if (!colors.empty()) png_set_PLTE(png, info, colors.data(), static_cast<int>(colors.size()));
  if (!in.palette_alpha.empty()) {
    png_set_tRNS(png, info, in.palette_alpha.data(), static_cast<int>(in.palette_alpha.size()),
                 nullptr);
  }
  if (in.transparent) {
    const auto& [red, green, blue] = *in.transparent;
    const png_color_16 color = {0, red, green, blue, red};
    png_set_tRNS(png, info, nullptr, 0, &color);
  }
  if (!in.comment.empty()) {
    char key[] = "Comment";
    png_text entry = {};
    entry.compression = PNG_TEXT_COMPRESSION_zTXt;
    entry.key = key;
    entry.text = const_cast<char*>(in.comment.data());  // it is only read
    entry.text_length = in.comment.size();
    png_set_text(png, info, &entry, 1);
  }
  png_write_info(png, info);
  png_set_packing(png);
  const size_t row_values = in.width * in.channels();
  std::vector<uint8_t> bytes;
  for (const uint16_t value : in.values) {
    if (in.depth == 16) bytes.push_back(static_cast<uint8_t>(value >> 8));
    bytes.push_back(static_cast<uint8_t>(value));
  }
  std::vector<png_bytep> rows;
  const size_t row_bytes = row_values * (in.depth == 16 ? 2 : 1);
  for (size_t y = 0; y < in.height; ++y) rows.push_back(bytes.data() + y * row_bytes);
  png_write_image(png, rows.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return out;
}

/// Pixel k in 8 bits a channel, on white.
inline Rgb pixel_of(const Png& in, size_t k) {
  const size_t channels = in.channels();
  const uint16_t* const v = in.values.data() + k * channels;
  const auto in_8_bits = [&](uint16_t value) {
    return static_cast<uint32_t>(std::lround(value * 255.0 / ((1 << in.depth) - 1)));
  };
  std::array<uint32_t, 3> color{};
  uint32_t alpha = 255;
  if (in.color_type == PNG_COLOR_TYPE_PALETTE) {
    for (size_t c = 0; c < 3; ++c) color[c] = in.palette[v[0]][c];
    if (v[0] < in.palette_alpha.size()) alpha = in.palette_alpha[v[0]];
  } else {
    const bool grey = channels < 3;
    for (size_t c = 0; c < 3; ++c) color[c] = in_8_bits(v[grey ? 0 : c]);
    if (channels % 2 == 0) alpha = in_8_bits(v[channels - 1]);
    if (in.transparent) {
      bool same = true;
      for (size_t c = 0; c < channels; ++c) same = same && v[c] == (*in.transparent)[c];
      if (same) alpha = 0;
    }
  }
  Rgb out{};
  for (size_t c = 0; c < 3; ++c) {
    out[c] = static_cast<uint8_t>(std::lround((color[c] * alpha + 255.0 * (255 - alpha)) / 255.0));
  }
  return out;
}

/// One color all over.
inline Png plain(uint32_t width, uint32_t height, Rgb color) {
  Png png;
  png.width = width;
  png.height = height;
  for (size_t k = 0; k < size_t{width} * height; ++k) {
    for (const uint8_t channel : color) png.values.push_back(channel);
  }
  return png;
}

/// Random pixels. For palettes, random colors too.
inline Png noise(Splitmix& random, uint32_t width, uint32_t height, int color_type, int depth) {
  Png png;
  png.width = width;
  png.height = height;
  png.color_type = color_type;
  png.depth = depth;
  const int64_t most = (1 << depth) - 1;
  const size_t count = size_t{width} * height * png.channels();
  for (size_t k = 0; k < count; ++k) {
    png.values.push_back(static_cast<uint16_t>(random.between(0, most)));
  }
  if (color_type == PNG_COLOR_TYPE_PALETTE) {
    const auto byte = [&] { return static_cast<uint8_t>(random.between(0, 255)); };
    for (int64_t k = 0; k <= most; ++k) png.palette.push_back({byte(), byte(), byte()});
  }
  return png;
}

}  // namespace rrfp::test
