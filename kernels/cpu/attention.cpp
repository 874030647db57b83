// SPDX-License-Identifier: Apache-2.0
//
// Attention in tiles of queries and keys: the products of tiles by tile_product-inl.h, what lies
// between them here (Dao et al. 2022, FlashAttention; Dao 2023, FlashAttention-2).
//
// The masked part of a tile never enters an exponential: a row has a number of visible keys, which
// stand before the others, and the rest of its row in the tile is set to zero. Tiles in which no
// row sees a key are left out.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/simd.h"
#include "kernels/cpu/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/tile_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rrfp::kernels::cpu {
namespace HWY_NAMESPACE {

// Tiles of 64 queries by 128 keys. Fewer rows would leave out more of the masked triangle, but use
// what is copied for a product less often.
constexpr int64_t kQueries = 64;
constexpr int64_t kKeys = 128;

// Rows of a product that are computed together: those of a masked tile up to what the last of them
// sees, so that little of the masked triangle is computed. A multiple of the six of panel_rows.
constexpr int64_t kBlock = 24;

// Rows that lie side by side in scratch are an odd number of cache lines apart: at a power of two,
// a column of them would compete for a few places of the first cache.
constexpr int64_t kLine = 16;
constexpr int64_t kScoreRow = kKeys + kLine;

HWY_INLINE int64_t packed_row(const AttentionShape& shape) {
  return (shape.head_dim + kPanelMax - 1) / kPanelMax * kPanelMax + kLine;
}

/// Scratch for one head of one sequence.
struct Scratch {
  float* scores;     // kQueries rows
  float* gradients;  // of the scores, kQueries rows
  float* keys;       // kKeys rows, as those of the model
  float* values;
  float* keys_turned;  // head_dim rows, one number per key
  float* values_turned;
  float* queries;  // kQueries rows
  float* dy;
  float* sums;  // one number per query of the sequence
  float* end;

  Scratch(const AttentionShape& shape, float* memory) : end(memory) {
    const int64_t row = packed_row(shape);
    scores = take(kQueries * kScoreRow);
    gradients = take(kQueries * kScoreRow);
    keys = take(kKeys * row);
    values = take(kKeys * row);
    keys_turned = take(shape.head_dim * kScoreRow);
    values_turned = take(shape.head_dim * kScoreRow);
    queries = take(kQueries * row);
    dy = take(kQueries * row);
    sums = take(shape.q_length);
  }
  float* take(int64_t size) {
    float* const start = end;
    end += size;
    return start;
  }
};

int64_t attention_scratch(const AttentionShape& shape) {
  const int64_t row = packed_row(shape);
  return 2 * kQueries * kScoreRow + 2 * (kKeys + kQueries) * row + 2 * shape.head_dim * kScoreRow +
         shape.q_length;
}

/// A tile of scores: queries `q` .. q + rows - 1, keys `k` .. k + cols - 1.
struct Tile {
  int64_t q;
  int64_t rows;
  int64_t k;
  int64_t cols;
  int64_t limit;  // query q sees the keys before this one, query q + 1 one more, if causal
  bool causal;

  [[nodiscard]] int64_t visible(int64_t row) const {
    return causal ? std::clamp(limit + row - k, int64_t{0}, cols) : cols;
  }
  /// Keys of a row up to which a product may read its scores: they are 0 where not visible.
  [[nodiscard]] int64_t extent(int64_t row) const {
    return std::min(visible(row) + kBlock - 1, cols);
  }
  /// The first row that sees a key of the tile.
  [[nodiscard]] int64_t first_row(int64_t key) const {
    return causal ? std::clamp(key + k - limit + 1, int64_t{0}, rows) : 0;
  }
};

/// Calls body(tile) for the tiles of the keys from k on, in the order of the queries.
template <class Body>
HWY_INLINE void for_each_tile(const AttentionShape& shape, int64_t k, const Body& body) {
  for (int64_t q = 0; q < shape.q_length; q += kQueries) {
    const int64_t rows = std::min(kQueries, shape.q_length - q);
    const int64_t limit = q + shape.kv_length - shape.q_length + 1;
    const int64_t end = shape.causal ? limit + rows - 1 : shape.kv_length;
    if (k >= end) continue;
    body(Tile{q, rows, k, std::min(kKeys, end - k), limit, shape.causal});
  }
}

HWY_INLINE float score_scale(const AttentionShape& shape) {
  return 1 / std::sqrt(static_cast<float>(shape.head_dim));
}

/// scores = scale x y^T, of queries by keys, with y turned.
void from_dimensions(const AttentionShape& shape, const Tile& tile, float scale, const float* x,
                     int64_t x_stride, const float* y_turned, float* scores) {
  for (int64_t r = 0; r < tile.rows; r += kBlock) {
    const int64_t rows = std::min(kBlock, tile.rows - r);
    multiply_tile({rows, tile.visible(r + rows - 1), shape.head_dim, x_stride, 1, kScoreRow,
                   kScoreRow, scale, false},
                  x + (tile.q + r) * x_stride, y_turned, scores + r * kScoreRow);
  }
}

/// out (+)= scale scores x: rows of queries from packed rows of keys.
void from_keys(const AttentionShape& shape, const Tile& tile, float scale, const float* scores,
               const float* x, bool accumulate, float* out, int64_t out_stride) {
  for (int64_t r = 0; r < tile.rows; r += kBlock) {
    const int64_t rows = std::min(kBlock, tile.rows - r);
    multiply_tile({rows, shape.head_dim, tile.visible(r + rows - 1), kScoreRow, 1,
                   packed_row(shape), out_stride, scale, accumulate},
                  scores + r * kScoreRow, x, out + (tile.q + r) * out_stride);
  }
}

/// out += scale scores^T x: rows of keys from packed rows of queries.
void from_queries(const AttentionShape& shape, const Tile& tile, float scale, const float* scores,
                  const float* x, float* out, int64_t out_stride) {
  for (int64_t c = 0; c < tile.cols; c += kBlock) {
    const int64_t first = tile.first_row(c);
    multiply_tile({std::min(kBlock, tile.cols - c), shape.head_dim, tile.rows - first, 1, kScoreRow,
                   packed_row(shape), out_stride, scale, true},
                  scores + first * kScoreRow + c, x + first * packed_row(shape),
                  out + (tile.k + c) * out_stride);
  }
}

HWY_INLINE void clear(float* x, int64_t begin, int64_t end) {
  for_each_part(end - begin,
                [&](int64_t i, auto part) HWY_ATTR { part.store(zero(), x + begin + i); });
}

HWY_INLINE void multiply_row(int64_t n, float factor, float* x) {
  for_each_part(n, [&](int64_t i, auto part)
                       HWY_ATTR { part.store(hn::Mul(part.load(x + i), set(factor)), x + i); });
}

void clear_rows(int64_t rows, int64_t cols, float* x, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r) clear(x + r * stride, 0, cols);
}

/// Replaces scores by exp(score - greatest), with the greatest of the row so far, and scales what
/// earlier tiles left in y and `sum` by how much that one has grown.
void exponentials(const AttentionShape& shape, const Tile& tile, float* scores, float* y,
                  float* greatest, float* sum) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    float* const row = scores + r * kScoreRow;
    const int64_t visible = tile.visible(r);
    if (visible > 0) {
      const float top = max_of(visible, row);
      const V peak = set(tile.k == 0 ? top : std::max(top, greatest[r]));
      const float total = sum_parts(visible, [&](int64_t c, auto part) HWY_ATTR {
        const V e = exponential(hn::Sub(part.load(row + c), peak));
        part.store(e, row + c);
        return e;
      });
      if (tile.k == 0) {
        sum[r] = total;
      } else {
        const float shrink = std::exp(greatest[r] - hn::GetLane(peak));
        sum[r] = sum[r] * shrink + total;
        if (shrink != 1) multiply_row(shape.head_dim, shrink, y + (tile.q + r) * shape.y_stride);
      }
      greatest[r] = hn::GetLane(peak);
    }
    clear(row, visible, tile.extent(r));
  }
}

/// One head of one sequence. Until the last tile of a row is done, its lse is the greatest score.
void attend(const AttentionShape& shape, const float* q, const float* k, const float* v, float* y,
            float* lse, const Scratch& scratch) {
  if (shape.kv_length == 0) {
    clear_rows(shape.q_length, shape.head_dim, y, shape.y_stride);
    std::fill_n(lse, shape.q_length, -std::numeric_limits<float>::infinity());
    return;
  }
  for (int64_t first = 0; first < shape.kv_length; first += kKeys) {
    const int64_t keys = std::min(kKeys, shape.kv_length - first);
    pack_transposed(keys, shape.head_dim, k + first * shape.k_stride, shape.k_stride,
                    scratch.keys_turned, kScoreRow);
    pack(keys, shape.head_dim, v + first * shape.v_stride, shape.v_stride, scratch.values,
         packed_row(shape));
    for_each_tile(shape, first, [&](const Tile& tile) {
      from_dimensions(shape, tile, score_scale(shape), q, shape.q_stride, scratch.keys_turned,
                      scratch.scores);
      exponentials(shape, tile, scratch.scores, y, lse + tile.q, scratch.sums + tile.q);
      from_keys(shape, tile, 1, scratch.scores, scratch.values, tile.k != 0, y, shape.y_stride);
    });
  }
  for (int64_t t = 0; t < shape.q_length; ++t) {
    multiply_row(shape.head_dim, 1 / scratch.sums[t], y + t * shape.y_stride);
    lse[t] += std::log(scratch.sums[t]);
  }
}

/// Calls body(first, part) for the runs of a sequence that attend to themselves only, each with its
/// first row and the shape of one that is alone. Not packed, the sequence is one.
template <class Body>
HWY_INLINE void for_each_run(const AttentionShape& shape, int64_t sequence, const Body& body) {
  if (shape.segments == nullptr) return body(int64_t{0}, shape);
  const int32_t* const segments = shape.segments + sequence * shape.q_length;
  AttentionShape part = shape;
  for (int64_t first = 0; first < shape.q_length; first += part.q_length) {
    int64_t end = first + 1;
    while (end < shape.q_length && segments[end] == segments[first]) ++end;
    part.q_length = part.kv_length = end - first;
    body(first, part);
  }
}

void attention(const AttentionShape& shape, const float* q, const float* k, const float* v,
               float* y, float* lse, float* scratch) {
  const int64_t group = shape.heads / std::max<int64_t>(shape.kv_heads, 1);
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      const int64_t head = h * shape.head_dim;
      const int64_t kv_head = h / group * shape.head_dim;
      for_each_run(shape, b, [&](int64_t first, const AttentionShape& part) {
        const int64_t row = b * shape.q_length + first;
        const int64_t kv_row = b * shape.kv_length + first;
        attend(part, q + row * shape.q_stride + head, k + kv_row * shape.k_stride + kv_head,
               v + kv_row * shape.v_stride + kv_head, y + row * shape.y_stride + head,
               lse + (b * shape.heads + h) * shape.q_length + first, Scratch(part, scratch));
      });
    }
  }
}

/// The arguments of the gradient, for one head of one sequence.
struct HeadGradient {
  const float* q;
  const float* k;
  const float* v;
  const float* y;
  const float* lse;
  const float* dy;
  float* dq;
  float* dk;
  float* dv;
};

/// Replaces scores by probabilities, the masked ones by 0.
void probabilities(const Tile& tile, const float* lse, float* scores) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    float* const row = scores + r * kScoreRow;
    const int64_t visible = tile.visible(r);
    const V offset = set(lse[tile.q + r]);
    for_each_part(visible, [&](int64_t c, auto part) HWY_ATTR {
      part.store(exponential(hn::Sub(part.load(row + c), offset)), row + c);
    });
    clear(row, visible, tile.extent(r));
  }
}

/// dp becomes p (dp - dot): the gradient of the scores, from that of the probabilities.
void score_gradients(const Tile& tile, const float* p, const float* dot, float* dp) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    float* const row = dp + r * kScoreRow;
    const int64_t visible = tile.visible(r);
    const V shift = set(dot[r]);
    for_each_part(visible, [&](int64_t c, auto part) HWY_ATTR {
      const V difference = hn::Sub(part.load(row + c), shift);
      part.store(hn::Mul(part.load(p + r * kScoreRow + c), difference), row + c);
    });
    clear(row, visible, tile.extent(r));
  }
}

/// The gradient of a softmax subtracts sum(p dp), which is dy y: no pass over the keys.
void dot_rows(const AttentionShape& shape, const float* y, const float* dy, float* dot) {
  for (int64_t t = 0; t < shape.q_length; ++t) {
    const int64_t row = t * shape.y_stride;
    dot[t] = sum_parts(shape.head_dim, [&](int64_t c, auto part) HWY_ATTR {
      return hn::Mul(part.load(y + row + c), part.load(dy + row + c));
    });
  }
}

/// One tile of the gradient below.
void tile_gradient(const AttentionShape& shape, const Tile& tile, const HeadGradient& h,
                   const Scratch& scratch) {
  const float scale = score_scale(shape);
  float* const p = scratch.scores;
  float* const ds = scratch.gradients;
  from_dimensions(shape, tile, scale, h.q, shape.q_stride, scratch.keys_turned, p);
  probabilities(tile, h.lse, p);
  if (h.dv != nullptr) {
    pack(tile.rows, shape.head_dim, h.dy + tile.q * shape.y_stride, shape.y_stride, scratch.dy,
         packed_row(shape));
    from_queries(shape, tile, 1, p, scratch.dy, h.dv, shape.v_stride);
  }
  if (h.dq == nullptr && h.dk == nullptr) return;
  from_dimensions(shape, tile, 1, h.dy, shape.y_stride, scratch.values_turned, ds);
  score_gradients(tile, p, scratch.sums + tile.q, ds);
  if (h.dq != nullptr) {
    from_keys(shape, tile, scale, ds, scratch.keys, true, h.dq, shape.q_stride);
  }
  if (h.dk != nullptr) {
    pack(tile.rows, shape.head_dim, h.q + tile.q * shape.q_stride, shape.q_stride, scratch.queries,
         packed_row(shape));
    from_queries(shape, tile, scale, ds, scratch.queries, h.dk, shape.k_stride);
  }
}

/// Adds the gradient of one head of one sequence to dq, dk and dv.
void attend_gradient(const AttentionShape& shape, const HeadGradient& h, const Scratch& scratch) {
  dot_rows(shape, h.y, h.dy, scratch.sums);
  for (int64_t first = 0; first < shape.kv_length; first += kKeys) {
    const int64_t keys = std::min(kKeys, shape.kv_length - first);
    const float* const k = h.k + first * shape.k_stride;
    pack_transposed(keys, shape.head_dim, k, shape.k_stride, scratch.keys_turned, kScoreRow);
    pack(keys, shape.head_dim, k, shape.k_stride, scratch.keys, packed_row(shape));
    pack_transposed(keys, shape.head_dim, h.v + first * shape.v_stride, shape.v_stride,
                    scratch.values_turned, kScoreRow);
    for_each_tile(shape, first, [&](const Tile& tile) { tile_gradient(shape, tile, h, scratch); });
  }
}

HWY_INLINE float* offset_or_null(float* x, int64_t offset) {
  return x == nullptr ? nullptr : x + offset;
}

/// What starts at the row `first` of all.
HeadGradient rows_from(const AttentionShape& shape, const HeadGradient& all, int64_t first) {
  return {all.q + first * shape.q_stride,
          all.k + first * shape.k_stride,
          all.v + first * shape.v_stride,
          all.y + first * shape.y_stride,
          all.lse + first,
          all.dy + first * shape.y_stride,
          offset_or_null(all.dq, first * shape.q_stride),
          offset_or_null(all.dk, first * shape.k_stride),
          offset_or_null(all.dv, first * shape.v_stride)};
}

void attention_gradient(const AttentionShape& shape, const float* q, const float* k, const float* v,
                        const float* y, const float* lse, const float* dy, float* dq, float* dk,
                        float* dv, bool accumulate, float* scratch) {
  const int64_t group = shape.heads / std::max<int64_t>(shape.kv_heads, 1);
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      const int64_t head = h * shape.head_dim;
      const int64_t kv_head = h / group * shape.head_dim;
      const int64_t q_at = b * shape.q_length * shape.q_stride + head;
      const int64_t k_at = b * shape.kv_length * shape.k_stride + kv_head;
      const int64_t v_at = b * shape.kv_length * shape.v_stride + kv_head;
      const int64_t y_at = b * shape.q_length * shape.y_stride + head;
      const HeadGradient one = {q + q_at,
                                k + k_at,
                                v + v_at,
                                y + y_at,
                                lse + (b * shape.heads + h) * shape.q_length,
                                dy + y_at,
                                offset_or_null(dq, q_at),
                                offset_or_null(dk, k_at),
                                offset_or_null(dv, v_at)};
      if (!accumulate && one.dq != nullptr) {
        clear_rows(shape.q_length, shape.head_dim, one.dq, shape.q_stride);
      }
      // The query heads of a group meet in dk and dv: the first one clears.
      const bool clear_kv = !accumulate && h % group == 0;
      if (clear_kv && one.dk != nullptr) {
        clear_rows(shape.kv_length, shape.head_dim, one.dk, shape.k_stride);
      }
      if (clear_kv && one.dv != nullptr) {
        clear_rows(shape.kv_length, shape.head_dim, one.dv, shape.v_stride);
      }
      for_each_run(shape, b, [&](int64_t first, const AttentionShape& part) {
        attend_gradient(part, rows_from(shape, one, first), Scratch(part, scratch));
      });
    }
  }
}

void enter_attention(Kernels& table) {
  table.attention_scratch = attention_scratch;
  table.attention = attention;
  table.attention_gradient = attention_gradient;
}

// NOLINTNEXTLINE(google-readability-namespace-comments): the name is a macro
}  // namespace HWY_NAMESPACE
}  // namespace rrfp::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rrfp::kernels::cpu {

HWY_EXPORT(enter_attention);
void enter_attention(Kernels& table) {
  HWY_DYNAMIC_DISPATCH(enter_attention)(table);
}

}  // namespace rrfp::kernels::cpu
#endif
