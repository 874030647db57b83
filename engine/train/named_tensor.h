// SPDX-License-Identifier: Apache-2.0
//
// A tensor with a name, as files hold them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rrfp::train {

/// f32, row-major. The memory is the caller's.
struct NamedTensor {
  std::string name;
  std::vector<int64_t> shape;
  float* data = nullptr;
};

}  // namespace rrfp::train
