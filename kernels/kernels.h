// SPDX-License-Identifier: Apache-2.0
//
// One table of operations per device. The model computes through it and knows no device; the table
// knows no stage, no graph and no memory: every buffer, scratch included, comes from the caller.
//
// Conventions
//   Numbers     f32, row-major and contiguous unless a stride says otherwise; token ids are i32.
//   Buffers     Inputs and outputs do not overlap, except where an operation says so.
//   accumulate  y += result instead of y = result, for gradients that meet in one buffer.
//   Threads     Every function computes on the calling thread and may be called from any number of
//               threads at once.
//   Memory      No function allocates.
//   Bits        The result depends on the arguments alone: not on the thread, the address (buffers
//               are aligned to 64 bytes) or on what was computed before.
//   Checks      Arguments have been checked; ids are in range. Extents may be zero.
#pragma once

#include <cstdint>

namespace rrfp::kernels {

/// C = op(A) op(B) + beta C, with op(A) m x k, op(B) k x n, C m x n.
struct GemmShape {
  bool transpose_a = false;  // A is stored k x m
  bool transpose_b = false;  // B is stored n x k
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t lda = 0;  // elements from one stored row to the next
  int64_t ldb = 0;
  int64_t ldc = 0;
};

/// Scaled dot-product attention over `batch` sequences. Row t of sequence b starts at
/// x + (b * length + t) * stride; head h of that row at + h * head_dim. `heads` is a multiple of
/// `kv_heads`: query head h reads key and value head h / (heads / kv_heads).
struct AttentionShape {
  int64_t batch = 0;
  int64_t q_length = 0;
  int64_t kv_length = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t q_stride = 0;
  int64_t k_stride = 0;
  int64_t v_stride = 0;
  int64_t y_stride = 0;
  /// Query row t sees keys 0 .. t + kv_length - q_length (needs kv_length >= q_length); else all.
  bool causal = false;
  /// Null, or batch x length (q_length == kv_length): samples packed into a sequence, each a run of
  /// equal numbers. A query sees the keys of its own run only, to the bit as if that were alone.
  const int32_t* segments = nullptr;
};

/// Rotates the first `heads` heads of each row of `width` numbers by its position and copies the
/// rest. Pairs are (j, j + head_dim / 2), the angle of pair j at position t is
/// t * base^(-2 j / head_dim) (Su et al. 2021, RoFormer, in the layout of GPT-NeoX and Llama).
struct RotaryShape {
  int64_t rows = 0;    // rows r = b * length + t
  int64_t length = 0;  // positions of a sequence
  int64_t width = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;        // even
  int64_t first_position = 0;  // of row 0 of each sequence
  double base = 10000.0;
  bool inverse = false;                // rotates back: the gradient
  const int32_t* positions = nullptr;  // one per row, instead of those that follow first_position
};

/// Squares of `kernel` pixels a side, `stride` apart, of pictures with their channels last and
/// `padding` pixels of 0 around them.
struct PatchShape {
  int64_t pictures = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t kernel = 0;
  int64_t stride = 0;
  int64_t padding = 0;

  /// Patches along `extent` pixels, with padding no fewer than those of the kernel.
  [[nodiscard]] int64_t along(int64_t extent) const {
    return (extent + 2 * padding - kernel) / stride + 1;
  }
};

/// What the random numbers of one dropout are a function of, besides the element's index.
struct RandomKey {
  uint64_t seed = 0;
  uint32_t step = 0;
  uint32_t operation = 0;
  uint32_t microbatch = 0;
};

struct AdamWStep {
  float lr = 0;
  double beta1 = 0;
  double beta2 = 0;
  float epsilon = 0;
  float weight_decay = 0;
  float gradient_scale = 1;  // applied to the gradient first
  float correction1 = 1;     // 1 / (1 - beta1^t)
  float correction2 = 1;     // 1 / (1 - beta2^t)
};

struct SgdStep {
  float lr = 0;
  float momentum = 0;
  float weight_decay = 0;
  float gradient_scale = 1;
};

struct Kernels {
  const char* name;

  // --- Products
  void (*gemm)(const GemmShape& shape, const float* a, const float* b, float beta, float* c);

  // --- Elementwise
  void (*fill)(int64_t n, float value, float* y);
  void (*copy)(int64_t n, const float* x, float* y, bool accumulate);
  /// rows x cols blocks of wider matrices.
  void (*copy_block)(int64_t rows, int64_t cols, const float* x, int64_t ldx, float* y, int64_t ldy,
                     bool accumulate);
  void (*add)(int64_t n, const float* a, const float* b, float* y);
  /// y (+)= a b
  void (*multiply)(int64_t n, const float* a, const float* b, float* y, bool accumulate);
  /// The tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks, Gimpel 2016).
  void (*gelu)(int64_t n, const float* x, float* y);
  void (*gelu_gradient)(int64_t n, const float* x, const float* dy, float* dx, bool accumulate);
  /// x sigmoid(x)
  void (*silu)(int64_t n, const float* x, float* y);
  void (*silu_gradient)(int64_t n, const float* x, const float* dy, float* dx, bool accumulate);
  /// silu(gate) up (Shazeer 2020). A gradient pointer may be null.
  void (*swiglu)(int64_t n, const float* gate, const float* up, float* y);
  void (*swiglu_gradient)(int64_t n, const float* gate, const float* up, const float* dy,
                          float* dgate, bool accumulate_gate, float* dup, bool accumulate_up);
  /// y (+)= x / (1 - p) where the element is kept, else 0 (kept with probability 1 - p). Forward
  /// and gradient are the same function: the mask is computed again from the key, not stored.
  void (*dropout)(int64_t n, float p, const RandomKey& key, const float* x, float* y,
                  bool accumulate);

  // --- Rows
  /// Each row of y = bias.
  void (*broadcast_rows)(int64_t rows, int64_t cols, const float* bias, float* y);
  /// y[c] += sum over rows of x[r][c], in the order of the rows.
  void (*sum_rows)(int64_t rows, int64_t cols, const float* x, float* y);
  /// y[r] = x[r] + table[first + r mod length]: learned positions.
  void (*add_positions)(int64_t rows, int64_t cols, int64_t length, int64_t first, const float* x,
                        const float* table, float* y);
  /// dtable[r mod length] += dy[r], in the order of the rows.
  void (*positions_gradient)(int64_t rows, int64_t cols, int64_t length, const float* dy,
                             float* dtable);
  /// y[r] = table[ids[r]]
  void (*gather_rows)(int64_t rows, int64_t cols, const int32_t* ids, const float* table, float* y);
  /// dtable[ids[r]] += dy[r], in the order of the rows.
  void (*scatter_add_rows)(int64_t rows, int64_t cols, const int32_t* ids, const float* dy,
                           float* dtable);
  /// y[r] = sources[r] < 0 ? x[r] : table[sources[r]]
  void (*merge_rows)(int64_t rows, int64_t cols, const float* x, const float* table,
                     const int32_t* sources, float* y);
  /// dx[r] (+)= dy[r] where sources[r] < 0, else 0: none of it comes from there.
  void (*merge_rows_gradient)(int64_t rows, int64_t cols, const int32_t* sources, const float* dy,
                              float* dx, bool accumulate);
  /// dtable, table_rows x cols, (+)= the rows of dy that came from each row, in their order.
  void (*merge_rows_table_gradient)(int64_t rows, int64_t cols, const int32_t* sources,
                                    const float* dy, int64_t table_rows, float* dtable,
                                    bool accumulate);
  void (*rotary)(const RotaryShape& shape, const float* x, float* y, bool accumulate);
  /// x is outer x extent x inner; y, outer x inner, is the mean over `extent`.
  void (*mean)(int64_t outer, int64_t extent, int64_t inner, const float* x, float* y);
  void (*mean_gradient)(int64_t outer, int64_t extent, int64_t inner, const float* dy, float* dx,
                        bool accumulate);

  // --- Pictures, as pictures x height x width x channels
  /// A row of y, kernel x kernel x channels, per patch; those of a picture from left to right, from
  /// top to bottom (im2col: Chellapilla, Puri, Simard 2006).
  void (*patches)(const PatchShape& shape, const float* x, float* y);
  /// dx (+)= what the patches that a pixel is in have for it, in their order (col2im).
  void (*patches_gradient)(const PatchShape& shape, const float* dy, float* dx, bool accumulate);

  // --- Normalisation over the last axis. mean and rstd have one number per row.
  /// y = (x - mean) rstd gamma + beta; gamma and beta may be null (Ba, Kiros, Hinton 2016).
  void (*layer_norm)(int64_t rows, int64_t cols, float epsilon, const float* x, const float* gamma,
                     const float* beta, float* y, float* mean, float* rstd);
  void (*layer_norm_gradient)(int64_t rows, int64_t cols, const float* x, const float* gamma,
                              const float* mean, const float* rstd, const float* dy, float* dx,
                              bool accumulate);
  /// dgamma and dbeta are added to; dbeta may be null.
  void (*layer_norm_weights)(int64_t rows, int64_t cols, const float* x, const float* mean,
                             const float* rstd, const float* dy, float* dgamma, float* dbeta);
  /// y = x rstd gamma with rstd = 1 / sqrt(mean(x^2) + epsilon) (Zhang, Sennrich 2019).
  void (*rms_norm)(int64_t rows, int64_t cols, float epsilon, const float* x, const float* gamma,
                   float* y, float* rstd);
  void (*rms_norm_gradient)(int64_t rows, int64_t cols, const float* x, const float* gamma,
                            const float* rstd, const float* dy, float* dx, bool accumulate);
  void (*rms_norm_weights)(int64_t rows, int64_t cols, const float* x, const float* rstd,
                           const float* dy, float* dgamma);

  // --- Attention, in tiles: no q_length x kv_length matrix in memory (Dao et al. 2022,
  // FlashAttention, algorithms 1 and 4; Dao 2023, FlashAttention-2, section 3.1).
  /// Floats of scratch that the two functions below need.
  int64_t (*attention_scratch)(const AttentionShape& shape);
  /// lse, batch x heads x q_length, gets the log of the sum of exponentials of each row.
  void (*attention)(const AttentionShape& shape, const float* q, const float* k, const float* v,
                    float* y, float* lse, float* scratch);
  /// dq, dk, dv have the strides of q, k, v. Any of them may be null.
  void (*attention_gradient)(const AttentionShape& shape, const float* q, const float* k,
                             const float* v, const float* y, const float* lse, const float* dy,
                             float* dq, float* dk, float* dv, bool accumulate, float* scratch);

  // --- Losses, one number per row or element
  /// loss[r] = logsumexp(logits[r]) - logits[r][targets[r]]; 0 where targets[r] == ignore.
  void (*cross_entropy)(int64_t rows, int64_t classes, const float* logits, const int32_t* targets,
                        int32_t ignore, float* loss, float* lse);
  void (*cross_entropy_gradient)(int64_t rows, int64_t classes, const float* logits,
                                 const int32_t* targets, int32_t ignore, const float* lse,
                                 const float* dloss, float* dlogits, bool accumulate);
  /// loss = (a - b)^2
  void (*squared_error)(int64_t n, const float* a, const float* b, float* loss);
  /// da (+)= sign 2 (a - b) dloss, with sign 1 for a and -1 for b.
  void (*squared_error_gradient)(int64_t n, const float* a, const float* b, const float* dloss,
                                 float sign, float* da, bool accumulate);

  // --- Optimizers and sums
  /// Added up in f64, in an order that depends on n alone.
  double (*sum)(int64_t n, const float* x);
  double (*sum_squares)(int64_t n, const float* x);
  /// Decoupled weight decay (Loshchilov, Hutter 2019, algorithm 2). Clears the gradient.
  void (*adamw)(int64_t n, const AdamWStep& step, float* w, float* m, float* v, float* gradient);
  /// velocity = momentum velocity + (gradient + weight_decay w); w -= lr velocity. velocity is null
  /// exactly when momentum is 0. Clears the gradient.
  void (*sgd)(int64_t n, const SgdStep& step, float* w, float* velocity, float* gradient);
};

/// The table for CPUs; vectorised for the best instruction set that this machine has.
[[nodiscard]] const Kernels& cpu_kernels();

}  // namespace rrfp::kernels
