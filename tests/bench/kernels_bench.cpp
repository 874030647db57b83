// SPDX-License-Identifier: Apache-2.0
//
// The kernels for CPUs on the sizes of a small GPT: width 256, 4 heads of 64, context 128, 8
// sequences (1024 rows). Products print FLOP/s, the other kernels elements/s and bytes/s, where a
// byte counts once for each time that an argument is read or written from outside the kernel.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "kernels/kernels.h"

namespace rrfp::kernels {
namespace {

constexpr int64_t kBatch = 8;
constexpr int64_t kContext = 128;
constexpr int64_t kRows = kBatch * kContext;
constexpr int64_t kWidth = 256;
constexpr int64_t kHeads = 4;
constexpr int64_t kClasses = 8192;

std::vector<float> numbers(int64_t n) {
  std::vector<float> x(static_cast<size_t>(n));
  uint32_t state = 1;
  for (float& v : x) {
    state = state * 1664525 + 1013904223;
    v = static_cast<float>(state >> 8) * 0x1p-23F - 1;
  }
  return x;
}

void set_flops(benchmark::State& state, double flops) {
  state.counters["FLOP/s"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

void set_floats(benchmark::State& state, int64_t elements, int64_t floats_per_element) {
  state.SetItemsProcessed(state.iterations() * elements);
  state.SetBytesProcessed(state.iterations() * elements * floats_per_element * 4);
}

void gemm(benchmark::State& state, bool transpose_a, bool transpose_b) {
  const int64_t m = state.range(0);
  const int64_t n = state.range(1);
  const int64_t k = state.range(2);
  const GemmShape shape = {transpose_a,         transpose_b,         m, n, k,
                           transpose_a ? m : k, transpose_b ? k : n, n};
  const auto a = numbers(m * k);
  const auto b = numbers(k * n);
  auto c = numbers(m * n);
  for (auto _ : state) cpu_kernels().gemm(shape, a.data(), b.data(), 0, c.data());
  set_flops(state, 2 * static_cast<double>(m * n * k));
}
// Forward, gradient of the input, gradient of the weight: x w, dy w^T, x^T dy.
BENCHMARK_CAPTURE(gemm, forward, false, false)
    ->Args({kRows, 3 * kWidth, kWidth})
    ->Args({kRows, 4 * kWidth, kWidth})
    ->Args({kRows, kWidth, 4 * kWidth})
    ->Args({1, 4 * kWidth, kWidth});
BENCHMARK_CAPTURE(gemm, input_gradient, false, true)
    ->Args({kRows, kWidth, 3 * kWidth})
    ->Args({kRows, kWidth, 4 * kWidth})
    ->Args({kRows, 4 * kWidth, kWidth})
    ->Args({1, 4 * kWidth, kWidth});
BENCHMARK_CAPTURE(gemm, weight_gradient, true, false)
    ->Args({kWidth, 3 * kWidth, kRows})
    ->Args({kWidth, 4 * kWidth, kRows})
    ->Args({4 * kWidth, kWidth, kRows});

struct Attention {
  AttentionShape shape;
  std::vector<float> qkv = numbers(kRows * 3 * kWidth);
  std::vector<float> dqkv = qkv;
  std::vector<float> y = numbers(kRows * kWidth);
  std::vector<float> dy = y;
  std::vector<float> lse = numbers(kRows * kHeads);
  std::vector<float> scratch;
  std::vector<int32_t> segments;

  /// `packed` samples of equal length to a sequence.
  explicit Attention(bool causal, int64_t packed = 1) {
    shape = {kBatch,     kContext,   kContext,   kHeads, kHeads, kWidth / kHeads,
             3 * kWidth, 3 * kWidth, 3 * kWidth, kWidth, causal};
    for (int64_t row = 0; packed > 1 && row < kRows; ++row) {
      segments.push_back(static_cast<int32_t>(row % kContext / (kContext / packed)));
    }
    if (packed > 1) shape.segments = segments.data();
    scratch.resize(static_cast<size_t>(cpu_kernels().attention_scratch(shape)));
  }
  void forward() {
    const float* const q = qkv.data();
    cpu_kernels().attention(shape, q, q + kWidth, q + 2 * kWidth, y.data(), lse.data(),
                            scratch.data());
  }
  void backward() {
    const float* const q = qkv.data();
    float* const dq = dqkv.data();
    cpu_kernels().attention_gradient(shape, q, q + kWidth, q + 2 * kWidth, y.data(), lse.data(),
                                     dy.data(), dq, dq + kWidth, dq + 2 * kWidth, false,
                                     scratch.data());
  }
  /// Of one product of all queries by all keys; those that the mask makes needless are not counted.
  [[nodiscard]] double flops() const {
    const double all = 2.0 * kBatch * kContext * kContext * kWidth;
    return shape.causal ? all / 2 : all;
  }
};

void attention_forward(benchmark::State& state) {
  Attention attention(state.range(0) != 0);
  for (auto _ : state) attention.forward();
  set_flops(state, 2 * attention.flops());
}
BENCHMARK(attention_forward)->ArgName("causal")->Arg(1)->Arg(0)->Unit(benchmark::kMicrosecond);

void attention_backward(benchmark::State& state) {
  Attention attention(state.range(0) != 0);
  attention.forward();
  for (auto _ : state) attention.backward();
  set_flops(state, 5 * attention.flops());
}
BENCHMARK(attention_backward)->ArgName("causal")->Arg(1)->Arg(0)->Unit(benchmark::kMicrosecond);

/// Forward and backward together, of two, eight and 32 samples to a sequence.
void attention_packed(benchmark::State& state) {
  const int64_t packed = state.range(0);
  Attention attention(true, packed);
  for (auto _ : state) {
    attention.forward();
    attention.backward();
  }
  set_flops(state, 7 * attention.flops() / static_cast<double>(packed));
}
BENCHMARK(attention_packed)
    ->ArgName("samples")
    ->Arg(2)
    ->Arg(8)
    ->Arg(32)
    ->Unit(benchmark::kMicrosecond);

/// y = f(x) on the hidden layer of the model: run(kernels, n, x, y).
template <class Run>
void map(benchmark::State& state, int64_t floats, const Run& run) {
  const int64_t n = kRows * 4 * kWidth;
  const auto x = numbers(n);
  auto y = x;
  for (auto _ : state) run(cpu_kernels(), n, x.data(), y.data());
  set_floats(state, n, floats);
}
void gelu(benchmark::State& state) {
  map(state, 2, [](const Kernels& k, int64_t n, const float* x, float* y) { k.gelu(n, x, y); });
}
void gelu_gradient(benchmark::State& state) {
  map(state, 3, [](const Kernels& k, int64_t n, const float* x, float* y) {
    k.gelu_gradient(n, x, x, y, false);
  });
}
void dropout(benchmark::State& state) {
  map(state, 2, [](const Kernels& k, int64_t n, const float* x, float* y) {
    k.dropout(n, 0.1F, {1, 2, 3, 4}, x, y, false);
  });
}
void rotary(benchmark::State& state) {
  map(state, 2, [](const Kernels& k, int64_t /*n*/, const float* x, float* y) {
    k.rotary({kRows, kContext, 4 * kWidth, 16, 64}, x, y, false);
  });
}
void sum_squares(benchmark::State& state) {
  map(state, 1, [](const Kernels& k, int64_t n, const float* x, float* /*y*/) {
    benchmark::DoNotOptimize(k.sum_squares(n, x));
  });
}
BENCHMARK(gelu);
BENCHMARK(gelu_gradient);
BENCHMARK(dropout);
BENCHMARK(rotary);
BENCHMARK(sum_squares);

/// Eight pictures of 112 pixels a side: squares side by side, and those of a convolution, which
/// overlap. An element is one of a patch.
void patches(benchmark::State& state) {
  const PatchShape shape = {kBatch, 112, 112, 3, state.range(0), state.range(1), state.range(2)};
  const int64_t n = kBatch * shape.along(112) * shape.along(112) * shape.kernel * shape.kernel * 3;
  auto x = numbers(kBatch * 112 * 112 * 3);
  auto y = numbers(n);
  for (auto _ : state) {
    if (state.range(3) == 0) {
      cpu_kernels().patches(shape, x.data(), y.data());
    } else {
      cpu_kernels().patches_gradient(shape, y.data(), x.data(), false);
    }
  }
  set_floats(state, n, 2);
}
BENCHMARK(patches)
    ->ArgNames({"kernel", "stride", "padding", "gradient"})
    ->Args({14, 14, 0, 0})
    ->Args({14, 14, 0, 1})
    ->Args({3, 1, 1, 0})
    ->Args({3, 1, 1, 1});

/// The forward, the gradient, the gradient of the weights, by the argument.
void layer_norm(benchmark::State& state) {
  const auto x = numbers(kRows * kWidth);
  const auto gamma = numbers(kWidth);
  auto y = x;
  auto weights = numbers(2 * kWidth);
  std::vector<float> mean(kRows);
  std::vector<float> rstd(kRows);
  const Kernels& k = cpu_kernels();
  for (auto _ : state) {
    if (state.range(0) == 0) {
      k.layer_norm(kRows, kWidth, 1e-5F, x.data(), gamma.data(), gamma.data(), y.data(),
                   mean.data(), rstd.data());
    } else if (state.range(0) == 1) {
      k.layer_norm_gradient(kRows, kWidth, x.data(), gamma.data(), mean.data(), rstd.data(),
                            x.data(), y.data(), false);
    } else {
      k.layer_norm_weights(kRows, kWidth, x.data(), mean.data(), rstd.data(), y.data(),
                           weights.data(), weights.data() + kWidth);
    }
  }
  set_floats(state, kRows * kWidth, state.range(0) == 1 ? 3 : 2);
}
BENCHMARK(layer_norm)->ArgName("part")->DenseRange(0, 2);

void cross_entropy(benchmark::State& state) {
  const int64_t rows = 128;
  const auto logits = numbers(rows * kClasses);
  auto dlogits = logits;
  const std::vector<int32_t> targets(rows, 7);
  std::vector<float> loss(rows);
  std::vector<float> lse(rows);
  const Kernels& k = cpu_kernels();
  for (auto _ : state) {
    k.cross_entropy(rows, kClasses, logits.data(), targets.data(), -1, loss.data(), lse.data());
    if (state.range(0) == 0) continue;
    k.cross_entropy_gradient(rows, kClasses, logits.data(), targets.data(), -1, lse.data(),
                             loss.data(), dlogits.data(), false);
  }
  set_floats(state, rows * kClasses, state.range(0) == 0 ? 1 : 3);
}
BENCHMARK(cross_entropy)->ArgName("gradient")->Arg(0)->Arg(1);

void adamw(benchmark::State& state) {
  const int64_t n = state.range(0);
  auto w = numbers(n);
  auto m = w;
  std::vector<float> v(w.size(), 1);
  auto gradient = w;
  // Betas of 1: the first call clears the gradient, and m and v would fade to numbers that are not
  // normal, which are slow.
  const AdamWStep step = {1e-3F, 1, 1, 1e-8F, 0.1F, 1, 2, 3};
  for (auto _ : state) {
    cpu_kernels().adamw(n, step, w.data(), m.data(), v.data(), gradient.data());
  }
  set_floats(state, n, 8);
}
BENCHMARK(adamw)->Arg(1 << 14)->Arg(1 << 18)->Arg(1 << 23);

/// What memory gives at best, to compare adamw with.
void copy(benchmark::State& state) {
  const int64_t n = state.range(0);
  const auto x = numbers(n);
  auto y = x;
  for (auto _ : state) cpu_kernels().copy(n, x.data(), y.data(), false);
  set_floats(state, n, 2);
}
BENCHMARK(copy)->Arg(1 << 14)->Arg(1 << 18)->Arg(1 << 23);

}  // namespace
}  // namespace rrfp::kernels

BENCHMARK_MAIN();
