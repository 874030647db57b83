// SPDX-License-Identifier: Apache-2.0
//
// How the table for CPUs is put together. Each file of vectorised kernels is compiled once per
// instruction set and exports one function, which enters that file's kernels, for the best
// instruction set, in the table: the choice is made once per process and not on every call.
#pragma once

#include "kernels/kernels.h"

namespace rrfp::kernels::cpu {

void enter_elementwise(Kernels& table);
void enter_dropout(Kernels& table);
void enter_rows(Kernels& table);
void enter_patches(Kernels& table);
void enter_norms(Kernels& table);
void enter_attention(Kernels& table);
void enter_losses(Kernels& table);
void enter_optimizers(Kernels& table);

/// The table for the instruction set that Highway has chosen at this moment. Tests make it choose
/// each one in turn; everybody else calls cpu_kernels().
[[nodiscard]] Kernels make_table();

}  // namespace rrfp::kernels::cpu
