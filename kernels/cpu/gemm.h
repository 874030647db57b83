// SPDX-License-Identifier: Apache-2.0
//
// Matrix products on the calling thread.
#pragma once

#include "kernels/kernels.h"

namespace rrfp::kernels::cpu {

/// With beta 0, C is not read: it may hold anything, NaN included.
void gemm(const GemmShape& shape, const float* a, const float* b, float beta, float* c);

/// Makes OpenBLAS compute on the calling thread, in the whole process.
void use_one_blas_thread();

}  // namespace rrfp::kernels::cpu
