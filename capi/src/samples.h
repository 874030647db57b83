// SPDX-License-Identifier: Apache-2.0
//
// The handle of samples from a manifest.
#pragma once

#include <rrfp/multimodal.h>

#include <atomic>
#include <memory>
#include <vector>

#include "capi/src/guard.h"
#include "engine/data/samples.h"

struct rrfp_samples : rrfp::capi::ProcessBound {
  std::unique_ptr<rrfp::data::Samples> samples;
  std::atomic<bool> in_call{false};
  // Of the last batch that was read.
  std::vector<rrfp::data::Microbatch> microbatches;
  std::vector<rrfp_tensor> inputs;
};
