// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/table.h"

#include "kernels/cpu/gemm.h"

namespace rrfp::kernels {
namespace cpu {

Kernels make_table() {
  Kernels table{};
  table.name = "cpu";
  table.gemm = gemm;
  enter_elementwise(table);
  enter_dropout(table);
  enter_rows(table);
  enter_patches(table);
  enter_norms(table);
  enter_attention(table);
  enter_losses(table);
  enter_optimizers(table);
  return table;
}

}  // namespace cpu

const Kernels& cpu_kernels() {
  static const Kernels kTable = [] {
    cpu::use_one_blas_thread();
    return cpu::make_table();
  }();
  return kTable;
}

}  // namespace rrfp::kernels
