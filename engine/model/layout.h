// SPDX-License-Identifier: Apache-2.0
//
// Memory of a stage for one microbatch whose shapes are known: how many numbers each slot has and
// where it lies. There are three regions:
//
//   saved    from F to the end of the backward pass
//   kept     from I to the end of W
//   scratch  during one task; slots whose lives do not meet share memory
#pragma once

#include <memory>
#include <vector>

#include "engine/model/program.h"

namespace rrfp::model {

enum class Region : uint8_t { kNone, kSaved, kKept, kScratch, kExternal };

struct Place {
  Region region = Region::kNone;
  int64_t offset = 0;  // floats
};

struct Layout {
  std::vector<int64_t> sizes;                 // by slot, floats
  std::array<std::vector<Place>, 4> places;   // by task kind and slot
  int64_t saved = 0;                          // floats
  int64_t kept = 0;                           // floats; when I and W are apart
  std::array<int64_t, 4> scratch = {};        // floats, by task kind
  std::array<int64_t, 4> op_scratch_at = {};  // where in it operations have theirs
};

/// `shapes` by value, all known.
[[nodiscard]] Layout make_layout(const Graph& graph, const Program& program,
                                 std::span<const Shape> shapes, const kernels::Kernels& kernels);

}  // namespace rrfp::model
