// SPDX-License-Identifier: Apache-2.0
//
// What the conformance tests of the kernels have in common. A test is written once, against f64
// arithmetic, and runs on every device: a table of kernels with the memory that it computes in. A
// new device is one more entry of devices().
//
// Numbers of a test are f64 that are exactly f32, so that both sides start from the same ones.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace rrfp::kernels::testing {

using Numbers = std::vector<double>;

struct Device {
  std::string name;
  Kernels kernels;
  void* (*allocate)(size_t bytes);  // aligned to 64 bytes, and no longer than asked for
  void (*release)(void* memory);
  void (*copy)(void* to, const void* from, size_t bytes);  // in either direction
};

/// What a failing test prints.
inline void PrintTo(const Device& device, std::ostream* out) {  // NOLINT: GoogleTest looks for it
  *out << device.name;
}

/// Every table there is on this machine: for CPUs, one for each instruction set.
[[nodiscard]] const std::vector<Device>& devices();

/// Sizes around those of vectors and their unrolled loops.
inline constexpr int64_t kSizes[] = {0, 1, 3, 7, 8, 9, 31, 64, 65, 257};

/// f32 in the memory of a device.
class Array {
 public:
  Array(const Device& device, const Numbers& x);
  [[nodiscard]] float* data() const { return memory_.get(); }
  [[nodiscard]] std::vector<float> download() const;

 private:
  const Device* device_;
  size_t size_;
  std::unique_ptr<float, void (*)(void*)> memory_;
};

class Ids {
 public:
  Ids(const Device& device, const std::vector<int32_t>& ids);
  [[nodiscard]] int32_t* data() const { return memory_.get(); }

 private:
  std::unique_ptr<int32_t, void (*)(void*)> memory_;
};

/// Uniform in (-scale, scale), the same for the same arguments.
[[nodiscard]] Numbers numbers(int64_t n, uint64_t seed, double scale = 1);

[[nodiscard]] Numbers sum(const Numbers& a, const Numbers& b);

/// |actual - expected| <= bound (|expected| + the root mean square of all expected, or `terms` if
/// that is more: the size of what was added up, where it may cancel).
void expect_close(const std::vector<float>& actual, const Numbers& expected, double bound,
                  double terms = 0);

class KernelsTest : public ::testing::TestWithParam<Device> {
 protected:
  [[nodiscard]] const Device& device() const { return GetParam(); }
  [[nodiscard]] const Kernels& k() const { return GetParam().kernels; }
  [[nodiscard]] Array up(const Numbers& x) const { return {GetParam(), x}; }
  [[nodiscard]] Ids up(const std::vector<int32_t>& ids) const { return {GetParam(), ids}; }

  /// run(y) overwrites y, whatever is in it, with what is expected; twice with the same bits.
  void expect_writes(const Numbers& expected, double bound,
                     const std::function<void(float*)>& run) const;
  /// run(y) adds what is expected to y; twice with the same bits.
  void expect_adds(const Numbers& expected, double bound,
                   const std::function<void(float*)>& run) const;
  /// Both, by the argument `accumulate`.
  void expect_puts(const Numbers& expected, double bound,
                   const std::function<void(float*, bool)>& run) const;
};

/// The gradient of sum(dy f(x)) by central differences: f in f64, so good to about 1e-8.
[[nodiscard]] Numbers differences(const std::function<Numbers(const Numbers&)>& f, Numbers x,
                                  const Numbers& dy);

#define RRFP_KERNELS_SUITE(Name)                     \
  class Name : public KernelsTest {};                \
  INSTANTIATE_TEST_SUITE_P(                          \
      Devices, Name, ::testing::ValuesIn(devices()), \
      [](const ::testing::TestParamInfo<Device>& one) { return one.param.name; })

}  // namespace rrfp::kernels::testing
