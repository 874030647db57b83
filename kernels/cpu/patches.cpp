// SPDX-License-Identifier: Apache-2.0
//
// Patches of pictures, so that a convolution is a product. With the channels last, what a patch
// has of one row of its picture is contiguous on both sides.
#include <algorithm>

#include "kernels/cpu/simd.h"
#include "kernels/cpu/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/patches.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rrfp::kernels::cpu {
namespace HWY_NAMESPACE {

/// One row of pixels of one patch, or of the padding above or below the picture.
struct PatchRow {
  int64_t patch;  // where it starts in the patches
  int64_t begin;  // the numbers of it that are in the picture, none if it is all padding
  int64_t end;
  int64_t picture;  // where the first of these is in the pictures
};

/// Calls body(row) for all rows of all patches, in the order of the patches.
template <class Body>
HWY_INLINE void for_each_row(const PatchShape& s, const Body& body) {
  const int64_t down = s.pictures == 0 ? 0 : s.along(s.height);
  const int64_t across = s.pictures == 0 ? 0 : s.along(s.width);
  int64_t patch = 0;
  for (int64_t n = 0; n < s.pictures; ++n) {
    for (int64_t i = 0; i < down; ++i) {
      for (int64_t j = 0; j < across; ++j) {
        const int64_t left = j * s.stride - s.padding;
        const int64_t begin = std::clamp(-left, int64_t{0}, s.kernel);
        const int64_t end = std::clamp(s.width - left, begin, s.kernel);
        for (int64_t k = 0; k < s.kernel; ++k, patch += s.kernel * s.channels) {
          const int64_t y = i * s.stride - s.padding + k;
          if (y < 0 || y >= s.height || begin == end) {
            body(PatchRow{patch, 0, 0, 0});
          } else {
            const int64_t pixel = (n * s.height + y) * s.width + left + begin;
            body(PatchRow{patch, begin * s.channels, end * s.channels, pixel * s.channels});
          }
        }
      }
    }
  }
}

void patches(const PatchShape& shape, const float* x, float* y) {
  const int64_t size = shape.kernel * shape.channels;
  for_each_row(shape, [&](const PatchRow& row) HWY_ATTR {
    float* const out = y + row.patch;
    std::fill_n(out, row.begin, 0.0F);
    std::copy_n(x + row.picture, row.end - row.begin, out + row.begin);
    std::fill_n(out + row.end, size - row.end, 0.0F);
  });
}

void patches_gradient(const PatchShape& shape, const float* dy, float* dx, bool accumulate) {
  if (!accumulate) {
    std::fill_n(dx, shape.pictures * shape.height * shape.width * shape.channels, 0.0F);
  }
  for_each_row(shape, [&](const PatchRow& row) HWY_ATTR {
    const float* const in = dy + row.patch + row.begin;
    float* const out = dx + row.picture;
    for_each_part(row.end - row.begin, [&](int64_t c, auto part) HWY_ATTR {
      part.put(part.load(in + c), out + c, true);
    });
  });
}

void enter_patches(Kernels& table) {
  table.patches = patches;
  table.patches_gradient = patches_gradient;
}

// NOLINTNEXTLINE(google-readability-namespace-comments): the name is a macro
}  // namespace HWY_NAMESPACE
}  // namespace rrfp::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rrfp::kernels::cpu {

HWY_EXPORT(enter_patches);
void enter_patches(Kernels& table) {
  HWY_DYNAMIC_DISPATCH(enter_patches)(table);
}

}  // namespace rrfp::kernels::cpu
#endif
