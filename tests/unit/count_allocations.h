// SPDX-License-Identifier: Apache-2.0
//
// Counts what the executable that links count_allocations.cpp allocates with operator new.
#pragma once

#include <cstdint>

namespace rrfp::core::fixtures {

[[nodiscard]] int64_t allocation_count();

}  // namespace rrfp::core::fixtures
