// SPDX-License-Identifier: Apache-2.0
//
// A timeline as one picture that needs nothing else: a lane per rank, coloured by what it did.
#pragma once

#include <string>

#include "engine/trace/timeline.h"

namespace rrfp::trace {

struct SvgOptions {
  int32_t width_px = 1400;  // from 400 to 8000
  int32_t lane_px = 0;      // 0: what suits the number of ranks
};

/// Spans of less than a pixel are merged into what takes most of it, so that the size of the text
/// depends on the size of the picture, not on the length of the run.
[[nodiscard]] std::string to_svg(const Timeline& timeline, const SvgOptions& options = {});

}  // namespace rrfp::trace
