// SPDX-License-Identifier: Apache-2.0
#include "engine/data/picture.h"

#include <fcntl.h>
#include <png.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/data/corpus_files.h"

namespace rrfp::data {

using core::Code;
using core::Status;

namespace {

constexpr size_t kChannels = 3;
/// What libpng takes; its own complaint would come when the picture is used.
constexpr uint32_t kSideMax = 1'000'000;

struct CloseFile {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};
using FilePtr = std::unique_ptr<std::FILE, CloseFile>;

Status bad_data(const std::string& path, const std::string& problem) {
  return {Code::kBadData, "\"" + path + "\" " + problem};
}

Status open_regular(const std::string& path, FilePtr& out) {
  // Otherwise the name of a pipe would wait for somebody to write to it.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return io_error("open", path, errno);
  struct stat info {};
  if (fstat(file, &info) != 0) {
    const int error = errno;
    close(file);
    return io_error("read", path, error);
  }
  if (!S_ISREG(info.st_mode)) {
    close(file);
    return {Code::kIo, "\"" + path + "\" is not a regular file"};
  }
  out.reset(fdopen(file, "rb"));
  if (out != nullptr) return {};
  const int error = errno;
  close(file);
  return io_error("open", path, error);
}

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

/// The signature and the first chunk, which has the extents.
Status check_header(const std::string& path, std::FILE* file, int64_t pixels_max) {
  constexpr uint8_t kStart[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n',
                                0,    0,   0,   13,  'I',  'H',  'D',  'R'};
  constexpr size_t kSignatureBytes = 8;
  constexpr size_t kExtents = sizeof kStart;
  uint8_t bytes[kExtents + 8] = {};
  const size_t count = std::fread(bytes, 1, sizeof bytes, file);
  if (count < sizeof bytes && std::ferror(file) != 0) return io_error("read", path, errno);
  if (count < kSignatureBytes || std::memcmp(bytes, kStart, kSignatureBytes) != 0) {
    return bad_data(path, "is not a PNG file");
  }
  if (count < sizeof bytes || std::memcmp(bytes, kStart, kExtents) != 0) {
    return bad_data(path, "is not a whole PNG file: its header is cut off or damaged");
  }
  const uint32_t width = big_endian(bytes + kExtents);
  const uint32_t height = big_endian(bytes + kExtents + 4);
  const std::string extents = std::to_string(width) + " x " + std::to_string(height) + " pixels";
  if (width == 0 || height == 0 || width > kSideMax || height > kSideMax) {
    return bad_data(
        path, "has " + extents + ", expected 1 .. " + std::to_string(kSideMax) + " on each side");
  }
  if (int64_t{width} * height > pixels_max) {
    return bad_data(path, "has " + extents + ", more than the limit of " +
                              std::to_string(pixels_max) + " pixels");
  }
  return {};
}

Status open_checked(const std::string& path, int64_t pixels_max, FilePtr& out) {
  if (Status s = open_regular(path, out); !s.ok()) return s;
  return check_header(path, out.get(), pixels_max);
}

/// 8 bits a channel, without gaps.
struct Pixels {
  int64_t width = 0;
  int64_t height = 0;
  std::unique_ptr<uint8_t[]> rgb;
};

/// Lays pixels with an alpha channel on white, and closes the gaps.
void drop_alpha(uint8_t* pixels, size_t count) {
  constexpr uint32_t kWhite = 255;
  for (size_t k = 0; k < count; ++k) {
    const uint8_t* const from = pixels + 4 * k;
    const uint32_t alpha = from[kChannels];
    for (size_t c = 0; c < kChannels; ++c) {
      const uint32_t sum = from[c] * alpha + kWhite * (kWhite - alpha);
      pixels[kChannels * k + c] = static_cast<uint8_t>((sum + kWhite / 2) / kWhite);
    }
  }
}

/// The state of libpng while it reads one file. (Its simplified interface mixes up the rows of
/// interlaced files of 16 bits in some releases.)
///
/// libpng leaves by longjmp(), so that the functions with a setjmp() have no objects to destroy and
/// change no variable between the two.
class PngReader {
 public:
  PngReader() {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  Status read(const std::string& path, std::FILE* file, int64_t pixels_max, Pixels& out) {
    if (info_ == nullptr) return {Code::kNoMemory, "out of memory"};
    if (!read_info(file)) return failure(path, file);
    out.width = png_get_image_width(png_, info_);
    out.height = png_get_image_height(png_, info_);
    // The header that was checked is the one that is read, unless the file changed meanwhile.
    if (out.width * out.height > pixels_max) return bad_data(path, "changed while it was read");
    const size_t channels = png_get_channels(png_, info_);
    assert(png_get_rowbytes(png_, info_) == static_cast<size_t>(out.width) * channels);
    const auto pixels = static_cast<size_t>(out.width * out.height);
    out.rgb = std::make_unique_for_overwrite<uint8_t[]>(pixels * channels);
    if (!read_rows(out.rgb.get(), static_cast<uint32_t>(out.height))) return failure(path, file);
    if (channels > kChannels) drop_alpha(out.rgb.get(), pixels);
    return {};
  }

 private:
  static void on_error(png_structp png, png_const_charp text) {
    auto* const self = static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(self->message_, text, sizeof self->message_ - 1);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp /*png*/, png_const_charp /*text*/) {}

  /// What stands before the pixels, and what is to be done to these: 8 bits, red, green and blue,
  /// alpha if there is any. Colors are taken as they are, without regard to notes on gamma.
  bool read_info(std::FILE* file) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_user_limits(png_, kSideMax, kSideMax);
    // Texts and the like are not kept: each may unpack to megabytes, and a file has many. 1 = none.
    png_set_chunk_cache_max(png_, 1);
    png_init_io(png_, file);
    png_read_info(png_, info_);
    png_set_expand(png_);
    png_set_scale_16(png_);
    png_set_gray_to_rgb(png_);
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool read_rows(uint8_t* pixels, uint32_t height) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    const size_t row_bytes = png_get_rowbytes(png_, info_);
    for (int pass = 0; pass < passes_; ++pass) {
      for (uint32_t y = 0; y < height; ++y) png_read_row(png_, pixels + y * row_bytes, nullptr);
    }
    png_read_end(png_, nullptr);
    return true;
  }

  [[nodiscard]] Status failure(const std::string& path, std::FILE* file) const {
    if (std::ferror(file) != 0) return io_error("read", path, errno);
    std::string reason;
    for (const char* c = message_; *c != '\0'; ++c) reason += *c >= ' ' && *c <= '~' ? *c : '?';
    return bad_data(path, "is damaged or cut off: " + reason);
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 0;
  char message_[200] = {};
};

/// In units of 1 / (pixels of the square's side), the square's pixel k covers k * extent ..
/// (k + 1) * extent of a picture's side with `extent` pixels, and the picture's pixel x covers
/// x * size .. (x + 1) * size. Calls body(x, length of the overlap); the lengths add up to
/// `extent`.
template <class Body>
void for_each_covered(int64_t k, int64_t extent, int64_t size, Body body) {
  const int64_t begin = k * extent;
  const int64_t end = begin + extent;
  for (int64_t x = begin / size; x * size < end; ++x) {
    body(x, std::min(end, (x + 1) * size) - std::max(begin, x * size));
  }
}

void resize(const Pixels& in, int64_t size, std::span<float> out) {
  const auto row_values = static_cast<size_t>(in.width) * kChannels;
  static_assert(uint64_t{255} * kSideMax <= UINT32_MAX);
  std::vector<uint32_t> columns(row_values);  // sums over the rows that a row of the square covers
  const double area = 255.0 * static_cast<double>(in.width) * static_cast<double>(in.height);
  float* to = out.data();
  for (int64_t row = 0; row < size; ++row) {
    std::fill(columns.begin(), columns.end(), 0);
    for_each_covered(row, in.height, size, [&](int64_t y, int64_t length) {
      const uint8_t* const from = in.rgb.get() + static_cast<size_t>(y) * row_values;
      const auto weight = static_cast<uint32_t>(length);
      for (size_t k = 0; k < row_values; ++k) columns[k] += weight * from[k];
    });
    for (int64_t column = 0; column < size; ++column) {
      uint64_t sums[kChannels] = {};
      for_each_covered(column, in.width, size, [&](int64_t x, int64_t length) {
        const uint32_t* const from = columns.data() + static_cast<size_t>(x) * kChannels;
        for (size_t c = 0; c < kChannels; ++c) sums[c] += static_cast<uint64_t>(length) * from[c];
      });
      for (const uint64_t sum : sums) {
        // (sum / area - 0.5) / 0.5
        *to++ = static_cast<float>(2.0 * static_cast<double>(sum) / area - 1.0);
      }
    }
  }
}

}  // namespace

Status check_picture(const std::string& path, int64_t pixels_max) {
  FilePtr file;
  return open_checked(path, pixels_max, file);
}

Status read_picture(const std::string& path, int32_t image_size, int64_t pixels_max,
                    std::span<float> out) {
  assert(image_size >= 1 && image_size <= kImageSizeMax);
  assert(out.size() == static_cast<size_t>(image_size) * static_cast<size_t>(image_size) * 3);
  FilePtr file;
  if (Status s = open_checked(path, pixels_max, file); !s.ok()) return s;
  std::rewind(file.get());
  Pixels pixels;
  if (Status s = PngReader().read(path, file.get(), pixels_max, pixels); !s.ok()) return s;
  resize(pixels, image_size, out);
  return {};
}

}  // namespace rrfp::data
