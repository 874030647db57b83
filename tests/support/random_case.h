// SPDX-License-Identifier: Apache-2.0
//
// Random pipelines for stress tests: the graph, its placement, the step, the hint, the policy, caps
// and timing all follow from one seed.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/virtual_pipeline.h"

namespace rrfp::test {

enum class CaseKind : uint8_t {
  kAny,
  kTight,  // several chunks per rank, and no more room than the minimum: where counters deadlock
};

struct RandomCase {
  VirtualPipeline setup;
  // What the case contains, so that a test can show that it covers what it claims to.
  int32_t chunks_max = 0;
  bool join = false;
  bool skips = false;
  bool tight = false;  // some rank has no more room than the minimum
};

[[nodiscard]] RandomCase make_random_case(uint64_t seed, CaseKind kind = CaseKind::kAny);

/// The case in words, for the report of a failure.
[[nodiscard]] std::string describe(const RandomCase& random_case);

}  // namespace rrfp::test
