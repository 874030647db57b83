// SPDX-License-Identifier: Apache-2.0
//
// Which instruction sets the kernels are compiled for; to be included before Highway. Those left
// out would cost compile time and gain little over the next lower one that stays. Those whose
// vectors have no size when compiling (SVE, RVV) are out for good: tile_product-inl.h counts on 16
// numbers at most.
#pragma once

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
