// SPDX-License-Identifier: Apache-2.0
//
// Why OpenBLAS. Measured on one core of an AMD EPYC with AVX2 (OpenBLAS 0.3.21, oneDNN 2.6.3), on
// the products of a small GPT (1024 rows; 256, 768 and 1024 columns) and their gradients:
//
//                     plain and B transposed   A transposed (weight gradients)   mallocs per call
//   cblas_sgemm            77-93 GFLOP/s               81-89 GFLOP/s                    0
//   dnnl_sgemm             72-93 GFLOP/s               37-73 GFLOP/s                    1
//
// A product with a single row or column is the exception: cblas_sgemm packs the matrix, which is
// then used once (5.6 GFLOP/s), where cblas_sgemv reads it in place (28 GFLOP/s).
#include "kernels/cpu/gemm.h"

#include <cblas.h>

namespace rrfp::kernels::cpu {
namespace {

blasint to_blas(int64_t extent) {
  return static_cast<blasint>(extent);
}

/// What sgemm does to C before it adds the product. Not left to sgemv, which returns before it when
/// the sum is empty, and which in some versions turns 0 times NaN into NaN.
void scale(const GemmShape& shape, float beta, float* c) {
  if (beta == 1) return;
  for (int64_t i = 0; i < shape.m; ++i) {
    float* const row = c + i * shape.ldc;
    for (int64_t j = 0; j < shape.n; ++j) row[j] = beta == 0 ? 0 : beta * row[j];
  }
}

/// y += op(M) x, where M is stored rows x cols.
void gemv(bool transpose, int64_t rows, int64_t cols, const float* matrix, int64_t stride,
          const float* x, int64_t x_stride, float* y, int64_t y_stride) {
  cblas_sgemv(CblasRowMajor, transpose ? CblasTrans : CblasNoTrans, to_blas(rows), to_blas(cols), 1,
              matrix, to_blas(stride), x, to_blas(x_stride), 1, y, to_blas(y_stride));
}

}  // namespace

void gemm(const GemmShape& shape, const float* a, const float* b, float beta, float* c) {
  const auto& [transpose_a, transpose_b, m, n, k, lda, ldb, ldc] = shape;
  if (m == 0 || n == 0) return;
  if (k == 0) return scale(shape, beta, c);
  if (n == 1) {
    scale(shape, beta, c);
    return gemv(transpose_a, transpose_a ? k : m, transpose_a ? m : k, a, lda, b,
                transpose_b ? 1 : ldb, c, ldc);
  }
  if (m == 1) {
    scale(shape, beta, c);
    return gemv(!transpose_b, transpose_b ? n : k, transpose_b ? k : n, b, ldb, a,
                transpose_a ? lda : 1, c, 1);
  }
  cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
              transpose_b ? CblasTrans : CblasNoTrans, to_blas(m), to_blas(n), to_blas(k), 1, a,
              to_blas(lda), b, to_blas(ldb), beta, c, to_blas(ldc));
}

void use_one_blas_thread() {
  // Each rank of a pipeline is a thread or a process of its own and has its core: BLAS threads
  // would compete with the other ranks, and how a sum is split would depend on their number.
  // OpenBLAS knows only one setting for the whole process, the application's own calls included.
  openblas_set_num_threads(1);
}

}  // namespace rrfp::kernels::cpu
