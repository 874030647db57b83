// SPDX-License-Identifier: Apache-2.0
//
// Pictures from PNG files of every kind, as the numbers that a model reads.
//
// A picture is decoded to 8 bits a channel, as they stand in the file: notes on gamma and profiles
// of colors are not looked at. Its transparent part lies on white, and it is stretched or shrunk to
// a square: each pixel of the square is the exact average of the area of the picture that it
// covers. The average is a ratio of whole numbers, so it does not depend on the order of a sum, the
// machine or the compiler.
//
// Errors name the file: kIo if it cannot be read, kBadData if it is no PNG file, is damaged or too
// large. Nothing is printed. Memory for the pixels is taken after the limit has been checked.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/core/status.h"

namespace rrfp::data {

constexpr int64_t kPixelsMaxDefault = int64_t{1} << 24;
/// Pixels a side of the square.
constexpr int32_t kImageSizeMax = 1 << 14;

/// Looks at the header only. Any thread.
core::Status check_picture(const std::string& path, int64_t pixels_max);

/// Decodes a file to image_size x image_size x 3 numbers, -1 (dark) .. 1, rows from top to bottom.
/// 1 <= image_size <= kImageSizeMax. Any thread.
core::Status read_picture(const std::string& path, int32_t image_size, int64_t pixels_max,
                          std::span<float> out);

}  // namespace rrfp::data
