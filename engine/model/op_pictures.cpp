// SPDX-License-Identifier: Apache-2.0
//
// What pictures need to get into a sequence: patches of pixels, and rows that take the places of
// others.
#include <algorithm>

#include "engine/model/infer.h"

namespace rrfp::model {

using core::Status;

namespace {

// --- Patches

/// Patches along `extent` pixels; 0 if it is shorter than one, with its padding.
int64_t patches_along(const OpAttributes& a, int64_t extent) {
  if (extent == Shape::kUnknown) return Shape::kUnknown;
  const int64_t rest = extent + 2 * int64_t{a.padding} - a.kernel;
  return rest < 0 ? 0 : rest / a.stride + 1;
}

Status infer_patches(const Graph& graph, const Op& op, std::span<const Shape> in, Shape& out) {
  if (Status s = check_operands(graph, op, 1, 0, 0); !s.ok()) return s;
  const OpAttributes& a = op.attributes;
  if (a.kernel < 1 || a.stride < 1 || a.padding < 0) {
    return mismatch(graph, op,
                    "kernel is " + std::to_string(a.kernel) + ", stride " +
                        std::to_string(a.stride) + ", padding " + std::to_string(a.padding) +
                        "; expected kernel >= 1, stride >= 1, padding >= 0");
  }
  if (in[0].ndim != 4) {
    return mismatch(
        graph, op,
        "input 0 has shape " + to_string(in[0]) + "; expected [pictures, height, width, channels]");
  }
  const int64_t square = int64_t{a.kernel} * a.kernel;
  const int64_t channels = in[0].last();
  if (square > Shape::kElementsMax / std::max<int64_t>(channels, 1)) {
    return mismatch(graph, op, "kernel is " + std::to_string(a.kernel) + "; a patch is too large");
  }
  out = {in[0][0], patches_along(a, in[0][1]), patches_along(a, in[0][2]),
         channels == Shape::kUnknown ? Shape::kUnknown : square * channels};
  // Where there are no pictures, they may have any size.
  if (in[0][0] != 0 && (out[1] == 0 || out[2] == 0)) {
    return mismatch(graph, op,
                    "input 0 has shape " + to_string(in[0]) + "; with a padding of " +
                        std::to_string(a.padding) + " expected at least " +
                        std::to_string(a.kernel) + " pixels, as the kernel has");
  }
  return {};
}

kernels::PatchShape patch_shape(const OpRun& run) {
  const Shape& x = *run.in_shape[0];
  return {.pictures = x[0],
          .height = x[1],
          .width = x[2],
          .channels = x[3],
          .kernel = run.op->attributes.kernel,
          .stride = run.op->attributes.stride,
          .padding = run.op->attributes.padding};
}

void patches_forward(const OpRun& run) {
  run.k->patches(patch_shape(run), run.in[0], run.out);
}
void patches_input_gradient(const OpRun& run) {
  run.k->patches_gradient(patch_shape(run), run.out_gradient, run.in_gradient[0],
                          run.accumulate[0]);
}

// --- Rows in the place of others

Status infer_merge_rows(const Graph& graph, const Op& op, std::span<const Shape> in, Shape& out) {
  if (Status s = check_operands(graph, op, 3, 0, 0, 4); !s.ok()) return s;
  if (Status s = check_rank(graph, op, in.first(1), 2); !s.ok()) return s;
  if (!may_equal(in[0].last(), in[1].last())) {
    return mismatch(graph, op,
                    "input 1 has shape " + to_string(in[1]) + "; expected a last extent of " +
                        std::to_string(in[0].last()) + ", as that of input 0");
  }
  out = in[0];
  out[out.ndim - 1] = known_of(in[0].last(), in[1].last());
  return match_rows(graph, op, in, 2, out);
}

void merge_rows_forward(const OpRun& run) {
  run.k->merge_rows(run.out_shape->rows(), run.out_shape->last(), run.in[0], run.in[1], run.ids(2),
                    run.out);
}

// In this order: one value may be both, and then its second gradient is added to the first.
void merge_rows_input_gradient(const OpRun& run) {
  const int64_t rows = run.out_shape->rows();
  const int64_t cols = run.out_shape->last();
  if (run.in_gradient[0] != nullptr) {
    run.k->merge_rows_gradient(rows, cols, run.ids(2), run.out_gradient, run.in_gradient[0],
                               run.accumulate[0]);
  }
  if (run.in_gradient[1] != nullptr) {
    run.k->merge_rows_table_gradient(rows, cols, run.ids(2), run.out_gradient,
                                     run.in_shape[1]->rows(), run.in_gradient[1],
                                     run.accumulate[1]);
  }
}

}  // namespace

const OpRules rules_of::kPatches = {.name = "patches",
                                    .infer = infer_patches,
                                    .stats_size = nullptr,
                                    .scratch_size = nullptr,
                                    .forward = patches_forward,
                                    .input_gradient = patches_input_gradient,
                                    .weight_gradient = nullptr,
                                    .input_gradient_reads = {},
                                    .weight_gradient_reads = {}};

const OpRules rules_of::kMergeRows = {.name = "merge_rows",
                                      .infer = infer_merge_rows,
                                      .stats_size = nullptr,
                                      .scratch_size = nullptr,
                                      .forward = merge_rows_forward,
                                      .input_gradient = merge_rows_input_gradient,
                                      .weight_gradient = nullptr,
                                      .input_gradient_reads = {.inputs = 4},
                                      .weight_gradient_reads = {}};

}  // namespace rrfp::model
