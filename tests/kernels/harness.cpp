// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/harness.h"

// The first decides what HWY_TARGETS is.
// clang-format off
#include "kernels/cpu/simd.h"
#include <hwy/targets.h>
// clang-format on

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "kernels/cpu/table.h"

namespace rrfp::kernels::testing {
namespace {

void* allocate_on_cpu(size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 64, bytes) != 0) std::abort();
  return memory;
}

void copy_on_cpu(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

std::vector<Device> make_devices() {
  std::vector<Device> all;
  all.push_back({"cpu", cpu_kernels(), allocate_on_cpu, std::free, copy_on_cpu});
  const int64_t supported = hwy::SupportedTargets();
  for (int64_t rest = supported; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    // For a target that the kernels are not compiled for, Highway falls back to the baseline.
    const std::string name = (target & HWY_TARGETS) == 0 ? "baseline" : hwy::TargetName(target);
    const Device device = {"cpu_" + name, cpu::make_table(), allocate_on_cpu, std::free,
                           copy_on_cpu};
    bool known = false;
    for (size_t i = 1; i < all.size(); ++i) {
      if (all[i].kernels.gelu == device.kernels.gelu) known = true;
    }
    if (!known) all.push_back(device);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return all;
}

template <class T>
std::unique_ptr<T, void (*)(void*)> allocate(const Device& device, size_t n) {
  return {static_cast<T*>(device.allocate(n * sizeof(T))), device.release};
}

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  if (!a.empty()) {
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
  }
}

}  // namespace

const std::vector<Device>& devices() {
  static const std::vector<Device> kAll = make_devices();
  return kAll;
}

Array::Array(const Device& device, const Numbers& x)
    : device_(&device), size_(x.size()), memory_(allocate<float>(device, x.size())) {
  const std::vector<float> narrow(x.begin(), x.end());
  device.copy(memory_.get(), narrow.data(), size_ * sizeof(float));
}

std::vector<float> Array::download() const {
  std::vector<float> x(size_);
  device_->copy(x.data(), memory_.get(), size_ * sizeof(float));
  return x;
}

Ids::Ids(const Device& device, const std::vector<int32_t>& ids)
    : memory_(allocate<int32_t>(device, ids.size())) {
  device.copy(memory_.get(), ids.data(), ids.size() * sizeof(int32_t));
}

Numbers numbers(int64_t n, uint64_t seed, double scale) {
  Numbers x(static_cast<size_t>(n));
  uint64_t state = seed * 0x9E3779B97F4A7C15 + 1;
  for (double& v : x) {
    state = state * 6364136223846793005 + 1442695040888963407;
    v = static_cast<float>((static_cast<double>(state >> 11) * 0x1p-52 - 1) * scale);
  }
  return x;
}

Numbers sum(const Numbers& a, const Numbers& b) {
  Numbers y = a;
  for (size_t i = 0; i < y.size(); ++i) y[i] += b[i];
  return y;
}

void expect_close(const std::vector<float>& actual, const Numbers& expected, double bound,
                  double terms) {
  ASSERT_EQ(actual.size(), expected.size());
  double squares = 0;
  for (const double v : expected) squares += v * v;
  const double mean = squares / std::max(1.0, static_cast<double>(expected.size()));
  const double typical = std::max(terms, std::sqrt(mean));
  for (size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(static_cast<double>(actual[i]) - expected[i]);
    ASSERT_LE(error, bound * (std::abs(expected[i]) + typical))
        << "element " << i << " of " << actual.size() << ": " << actual[i] << ", expected "
        << expected[i];
  }
}

void KernelsTest::expect_writes(const Numbers& expected, double bound,
                                const std::function<void(float*)>& run) const {
  const Numbers unset(expected.size(), std::numeric_limits<double>::quiet_NaN());
  const Array y = up(unset);
  run(y.data());
  expect_close(y.download(), expected, bound);
  const Array again = up(unset);
  run(again.data());
  expect_same_bits(y.download(), again.download());
}

void KernelsTest::expect_adds(const Numbers& expected, double bound,
                              const std::function<void(float*)>& run) const {
  const Numbers before = numbers(static_cast<int64_t>(expected.size()), 99);
  const Array y = up(before);
  run(y.data());
  expect_close(y.download(), sum(before, expected), bound, 0.5);
  const Array again = up(before);
  run(again.data());
  expect_same_bits(y.download(), again.download());
}

void KernelsTest::expect_puts(const Numbers& expected, double bound,
                              const std::function<void(float*, bool)>& run) const {
  expect_writes(expected, bound, [&](float* y) { run(y, false); });
  expect_adds(expected, bound, [&](float* y) { run(y, true); });
}

Numbers differences(const std::function<Numbers(const Numbers&)>& f, Numbers x, const Numbers& dy) {
  constexpr double kStep = 1e-5;
  const auto objective = [&] {
    const Numbers y = f(x);
    double total = 0;
    for (size_t i = 0; i < y.size(); ++i) total += dy[i] * y[i];
    return total;
  };
  Numbers gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + kStep;
    const double above = objective();
    x[i] = at - kStep;
    gradient[i] = (above - objective()) / (2 * kStep);
    x[i] = at;
  }
  return gradient;
}

}  // namespace rrfp::kernels::testing
