// SPDX-License-Identifier: Apache-2.0
//
// Attention against a plain f64 softmax(q k^T / sqrt(d)) v, and its gradient against the f64
// formulas, which are themselves held against finite differences.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/kernels/harness.h"

namespace rrfp::kernels::testing {
namespace {

RRFP_KERNELS_SUITE(AttentionTest);

constexpr double kBound = 5e-6;
constexpr double kTerms = 0.1;  // the differences dp - dot may cancel to nothing

/// One case. q, k and v lie side by side in rows of one matrix if packed (which needs equal
/// lengths), else each in a matrix with unused columns at the end.
struct Case {
  int64_t batch, q_length, kv_length, heads, kv_heads, head_dim;
  bool causal;
  bool packed = false;
  std::vector<int32_t> segments = {};  // of all sequences, one after the other
};

struct Data {
  AttentionShape shape;
  Numbers q, k, v, dy;
  std::vector<int32_t> segments;
  int64_t k_at = 0;  // where k and v start, if packed in q
  int64_t v_at = 0;
};

Data make_data(const Case& c, double scale) {
  Data data;
  const int64_t q_width = c.heads * c.head_dim;
  const int64_t kv_width = c.kv_heads * c.head_dim;
  data.shape = {c.batch,     c.q_length,   c.kv_length,  c.heads,     c.kv_heads, c.head_dim,
                q_width + 1, kv_width + 2, kv_width + 3, q_width + 4, c.causal};
  if (c.packed) {
    data.k_at = q_width;
    data.v_at = q_width + kv_width;
    data.shape.q_stride = data.shape.k_stride = data.shape.v_stride = q_width + 2 * kv_width;
  }
  data.q = numbers(c.batch * c.q_length * data.shape.q_stride, 1, scale);
  data.k = c.packed ? data.q : numbers(c.batch * c.kv_length * data.shape.k_stride, 2, scale);
  data.v = c.packed ? data.q : numbers(c.batch * c.kv_length * data.shape.v_stride, 3);
  data.dy = numbers(c.batch * c.q_length * data.shape.y_stride, 4);
  data.segments = c.segments;
  return data;
}

struct Reference {
  Numbers y, lse, dq, dk, dv;
};

/// The keys that query t of sequence b sees, from the first up to, not including, the second.
std::pair<int64_t, int64_t> visible(const Data& data, int64_t b, int64_t t) {
  const AttentionShape& s = data.shape;
  int64_t first = 0;
  int64_t end = s.causal ? t + s.kv_length - s.q_length + 1 : s.kv_length;
  if (data.segments.empty()) return {first, end};
  const auto segment = [&](int64_t j) {
    return data.segments[static_cast<size_t>(b * s.q_length + j)];
  };
  while (segment(first) != segment(t)) ++first;
  while (segment(end - 1) != segment(t)) --end;
  return {first, end};
}

/// Everything in f64, one query of one head at a time. Columns that belong to no head stay 0.
Reference reference(const Data& data, bool with_gradient = true) {
  const AttentionShape& s = data.shape;
  Reference r;
  r.y.assign(data.dy.size(), 0);
  r.lse.assign(static_cast<size_t>(s.batch * s.heads * s.q_length), 0);
  r.dq.assign(data.q.size(), 0);
  r.dk.assign(data.k.size(), 0);
  r.dv.assign(data.v.size(), 0);
  const double scale = 1 / std::sqrt(static_cast<double>(s.head_dim));
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t t = 0; t < s.q_length; ++t) {
        const int64_t head = h * s.head_dim;
        const int64_t kv_head = h / (s.heads / s.kv_heads) * s.head_dim;
        const double* const q =
            &data.q[static_cast<size_t>((b * s.q_length + t) * s.q_stride + head)];
        const auto y_at = static_cast<size_t>((b * s.q_length + t) * s.y_stride + head);
        const auto k_at = [&](int64_t j) {
          return static_cast<size_t>(data.k_at + (b * s.kv_length + j) * s.k_stride + kv_head);
        };
        const auto v_at = [&](int64_t j) {
          return static_cast<size_t>(data.v_at + (b * s.kv_length + j) * s.v_stride + kv_head);
        };
        const auto [first, seen] = visible(data, b, t);
        Numbers p(static_cast<size_t>(seen - first));
        for (int64_t j = first; j < seen; ++j) {
          double& score = p[static_cast<size_t>(j - first)];
          for (int64_t d = 0; d < s.head_dim; ++d)
            score += q[d] * data.k[k_at(j) + static_cast<size_t>(d)];
          score *= scale;
        }
        const double greatest = *std::max_element(p.begin(), p.end());
        double total = 0;
        for (const double score : p) total += std::exp(score - greatest);
        const double lse = greatest + std::log(total);
        r.lse[static_cast<size_t>((b * s.heads + h) * s.q_length + t)] = lse;
        double dot = 0;
        for (int64_t j = first; j < seen; ++j) {
          double& prob = p[static_cast<size_t>(j - first)];
          prob = std::exp(prob - lse);
          for (size_t d = 0; d < static_cast<size_t>(s.head_dim); ++d) {
            r.y[y_at + d] += prob * data.v[v_at(j) + d];
            dot += prob * data.v[v_at(j) + d] * data.dy[y_at + d];
          }
        }
        if (!with_gradient) continue;
        for (int64_t j = first; j < seen; ++j) {
          const double prob = p[static_cast<size_t>(j - first)];
          double dp = 0;
          for (size_t d = 0; d < static_cast<size_t>(s.head_dim); ++d) {
            dp += data.dy[y_at + d] * data.v[v_at(j) + d];
          }
          const double ds = prob * (dp - dot) * scale;
          for (size_t d = 0; d < static_cast<size_t>(s.head_dim); ++d) {
            r.dq[static_cast<size_t>((b * s.q_length + t) * s.q_stride + head) + d] +=
                ds * data.k[k_at(j) + d];
            r.dk[k_at(j) + d] += ds * q[d];
            r.dv[v_at(j) + d] += prob * data.dy[y_at + d];
          }
        }
      }
    }
  }
  return r;
}

/// What a kernel leaves in columns that belong to no head is what was there.
std::vector<float> heads_only(const Numbers& shape_of, const std::vector<float>& x, int64_t stride,
                              int64_t first, int64_t width, const Numbers& before) {
  std::vector<float> y = x;
  for (size_t i = 0; i < shape_of.size(); ++i) {
    const int64_t column = static_cast<int64_t>(i) % stride;
    if (column >= first && column < first + width) continue;
    EXPECT_EQ(x[i], static_cast<float>(before[i])) << "column " << column << " is of no head";
    y[i] = 0;
  }
  return y;
}

class Runner {
 public:
  Runner(const Device& device, const Data& data)
      : device_(device),
        data_(data),
        s_(data.shape),
        q_(device, data.q),
        k_(device, data.k),
        v_(device, data.v),
        dy_(device, data.dy),
        segments_(device, data.segments),
        lse_(device, Numbers(static_cast<size_t>(s_.batch * s_.heads * s_.q_length))),
        y_before_(numbers(static_cast<int64_t>(data.dy.size()), 5)),
        y_(device, y_before_),
        scratch_(device, numbers(device.kernels.attention_scratch(data.shape), 6)) {
    if (!data.segments.empty()) s_.segments = segments_.data();
  }

  void forward() {
    device_.kernels.attention(s_, q_.data(), k_.data() + data_.k_at, v_.data() + data_.v_at,
                              y_.data(), lse_.data(), scratch_.data());
  }
  void check_forward(const Reference& r, double bound) {
    expect_close(heads_only(r.y, y_.download(), s_.y_stride, 0, s_.heads * s_.head_dim, y_before_),
                 r.y, bound);
    expect_close(lse_.download(), r.lse, bound);
  }
  void gradient(float* dq, float* dk, float* dv, bool accumulate) {
    device_.kernels.attention_gradient(s_, q_.data(), k_.data() + data_.k_at,
                                       v_.data() + data_.v_at, y_.data(), lse_.data(), dy_.data(),
                                       dq, dk, dv, accumulate, scratch_.data());
  }
  /// Each gradient alone (the others null) and all together.
  void check_gradient(const Reference& r, bool accumulate, double bound) {
    const Array dq(device_, before(r.dq));
    const Array dk(device_, before(r.dk));
    const Array dv(device_, before(r.dv));
    gradient(dq.data(), dk.data() + data_.k_at, dv.data() + data_.v_at, accumulate);
    const Array dq_alone(device_, before(r.dq));
    const Array dk_alone(device_, before(r.dk));
    const Array dv_alone(device_, before(r.dv));
    gradient(dq_alone.data(), nullptr, nullptr, accumulate);
    gradient(nullptr, dk_alone.data() + data_.k_at, nullptr, accumulate);
    gradient(nullptr, nullptr, dv_alone.data() + data_.v_at, accumulate);
    const int64_t kv_width = s_.kv_heads * s_.head_dim;
    check_one(dq, dq_alone, r.dq, s_.q_stride, 0, s_.heads * s_.head_dim, accumulate, bound);
    check_one(dk, dk_alone, r.dk, s_.k_stride, data_.k_at, kv_width, accumulate, bound);
    check_one(dv, dv_alone, r.dv, s_.v_stride, data_.v_at, kv_width, accumulate, bound);
  }

  [[nodiscard]] std::vector<float> y() const { return y_.download(); }
  [[nodiscard]] std::vector<float> lse() const { return lse_.download(); }
  /// All three, added to what was there if `accumulate`.
  [[nodiscard]] std::array<std::vector<float>, 3> gradients(bool accumulate) {
    const Array dq(device_, data_.q);
    const Array dk(device_, data_.k);
    const Array dv(device_, data_.v);
    gradient(dq.data(), dk.data() + data_.k_at, dv.data() + data_.v_at, accumulate);
    return {dq.download(), dk.download(), dv.download()};
  }

 private:
  [[nodiscard]] static Numbers before(const Numbers& x) {
    return numbers(static_cast<int64_t>(x.size()), 7);
  }
  static void check_one(const Array& together, const Array& alone, const Numbers& expected,
                        int64_t stride, int64_t first, int64_t width, bool accumulate,
                        double bound) {
    const Numbers old = before(expected);
    EXPECT_EQ(together.download(), alone.download());
    Numbers all = expected;
    for (size_t i = 0; accumulate && i < all.size(); ++i) {
      const int64_t column = static_cast<int64_t>(i) % stride;
      if (column >= first && column < first + width) all[i] += old[i];
    }
    expect_close(heads_only(all, together.download(), stride, first, width, old), all, bound,
                 kTerms);
  }

  const Device& device_;
  const Data& data_;
  AttentionShape s_;
  Array q_, k_, v_, dy_;
  Ids segments_;
  Array lse_;
  Numbers y_before_;
  Array y_, scratch_;
};

void check_case(const Device& device, const Case& c, double scale = 1, double bound = kBound) {
  SCOPED_TRACE(::testing::Message()
               << "batch " << c.batch << " q " << c.q_length << " kv " << c.kv_length << " heads "
               << c.heads << "/" << c.kv_heads << " dim " << c.head_dim << " causal " << c.causal);
  const Data data = make_data(c, scale);
  const Reference r = reference(data);
  Runner runner(device, data);
  runner.forward();
  runner.check_forward(r, bound);
  runner.check_gradient(r, false, bound);
  runner.check_gradient(r, true, bound);
}

TEST_P(AttentionTest, Lengths) {
  for (const int64_t length : {1, 5, 63, 64, 65, 130}) {
    for (const bool causal : {false, true}) {
      check_case(device(), {2, length, length, 2, 2, 16, causal});
      check_case(device(), {1, length, length, 2, 2, 16, causal, true});
    }
  }
}

TEST_P(AttentionTest, HeadDimensions) {
  for (const int64_t dim : {1, 4, 7, 8, 33, 64, 80}) {
    check_case(device(), {1, 33, 33, 3, 3, dim, true, true});
  }
}

TEST_P(AttentionTest, GroupedQueries) {
  check_case(device(), {2, 67, 67, 4, 2, 8, true, true});
  check_case(device(), {2, 67, 67, 6, 2, 8, false});
  check_case(device(), {1, 5, 5, 4, 1, 12, true});
}

TEST_P(AttentionTest, MoreKeysThanQueries) {
  for (const bool causal : {false, true}) {
    for (const int64_t queries : {1, 3, 64, 100}) {
      for (const int64_t keys : {128, 129, 300}) {
        check_case(device(), {2, queries, keys, 2, 1, 8, causal});
      }
    }
  }
}

/// Numbers of segments of these lengths, which need not grow.
std::vector<int32_t> segments_of(const std::vector<int64_t>& lengths) {
  std::vector<int32_t> all;
  for (size_t i = 0; i < lengths.size(); ++i) {
    all.insert(all.end(), static_cast<size_t>(lengths[i]), 3 - static_cast<int32_t>(i));
  }
  return all;
}

TEST_P(AttentionTest, Segments) {
  for (const bool causal : {false, true}) {
    for (const bool packed : {false, true}) {
      check_case(device(), {1, 5, 5, 2, 2, 16, causal, packed, {7, 7, -1, 0, 0}});
      // The end of a sequence and the start of the next one may have the same number.
      check_case(device(), {2, 4, 4, 4, 2, 7, causal, packed, {0, 0, 0, 1, 1, 0, 0, 0}});
      check_case(device(),
                 {1, 300, 300, 2, 1, 8, causal, packed, segments_of({1, 63, 64, 130, 1, 41})});
      check_case(device(), {2, 65, 65, 2, 2, 8, causal, packed, segments_of({65, 1, 64})});
    }
  }
}

/// What is left of the data of one sequence: the rows first .. end - 1, not packed.
Data rows_of(const Data& all, int64_t sequence, int64_t first, int64_t end) {
  Data some = all;
  some.shape.batch = 1;
  some.shape.q_length = some.shape.kv_length = end - first;
  some.segments.clear();
  const auto cut = [&](const Numbers& x, int64_t stride) {
    const int64_t row = sequence * all.shape.q_length;
    return Numbers(x.begin() + (row + first) * stride, x.begin() + (row + end) * stride);
  };
  some.q = cut(all.q, all.shape.q_stride);
  some.k = cut(all.k, all.shape.k_stride);
  some.v = cut(all.v, all.shape.v_stride);
  some.dy = cut(all.dy, all.shape.y_stride);
  return some;
}

/// Whether the columns first .. first + width - 1 of the rows of `some` are those of `all` from
/// `row` on, to the bit.
void expect_same_rows(const std::vector<float>& all, const std::vector<float>& some, int64_t row,
                      int64_t stride, int64_t first, int64_t width) {
  for (size_t i = 0; i < some.size(); ++i) {
    const int64_t column = static_cast<int64_t>(i) % stride;
    if (column < first || column >= first + width) continue;
    const float other = all[i + static_cast<size_t>(row * stride)];
    ASSERT_EQ(std::bit_cast<uint32_t>(other), std::bit_cast<uint32_t>(some[i])) << "number " << i;
  }
}

TEST_P(AttentionTest, SegmentHasTheBitsOfASequenceOfItsOwn) {
  const std::vector<int64_t> lengths = {1, 63, 64, 130, 7, 35};
  for (const bool causal : {false, true}) {
    for (const bool side_by_side : {false, true}) {
      std::vector<int32_t> segments = segments_of(lengths);
      const auto length = static_cast<int64_t>(segments.size());
      segments.insert(segments.end(), segments.begin(), segments.end());
      const Case c = {2, length, length, 4, 2, 24, causal, side_by_side, segments};
      const Data data = make_data(c, 1);
      const AttentionShape& s = data.shape;
      Runner packed(device(), data);
      packed.forward();
      int64_t first = 0;
      for (const int64_t size : lengths) {
        SCOPED_TRACE(::testing::Message() << "rows " << first << " and on, causal " << causal);
        const int64_t row = length + first;  // of the second sequence
        const Data own = rows_of(data, 1, first, first + size);
        Runner alone(device(), own);
        alone.forward();
        expect_same_rows(packed.y(), alone.y(), row, s.y_stride, 0, s.heads * s.head_dim);
        const std::vector<float> lse = alone.lse();
        for (int64_t h = 0; h < s.heads; ++h) {
          const auto at = lse.begin() + h * size;
          expect_same_rows(packed.lse(), std::vector<float>(at, at + size),
                           (s.heads + h) * length + first, 1, 0, 1);
        }
        for (const bool accumulate : {false, true}) {
          const auto all = packed.gradients(accumulate);
          const auto some = alone.gradients(accumulate);
          const int64_t kv_width = s.kv_heads * s.head_dim;
          expect_same_rows(all[0], some[0], row, s.q_stride, 0, s.heads * s.head_dim);
          expect_same_rows(all[1], some[1], row, s.k_stride, data.k_at, kv_width);
          expect_same_rows(all[2], some[2], row, s.v_stride, data.v_at, kv_width);
        }
        first += size;
      }
    }
  }
}

TEST_P(AttentionTest, EmptyExtents) {
  check_case(device(), {0, 4, 4, 2, 2, 8, true});
  // No query: the keys have no gradient, which is written all the same.
  check_case(device(), {2, 0, 5, 2, 2, 8, false});
}

TEST_P(AttentionTest, LargeScores) {
  // Scores up to 1e4. f32 holds them to about 1e-3, and so the probabilities.
  const Data data = make_data({1, 130, 130, 1, 1, 16, true}, 70);
  const Reference r = reference(data);
  EXPECT_GT(*std::max_element(r.lse.begin(), r.lse.end()), 5e3);
  check_case(device(), {1, 130, 130, 1, 1, 16, true}, 70, 5e-3);
}

TEST_P(AttentionTest, SameBitsAgain) {
  const Data data = make_data({2, 130, 130, 4, 2, 24, true, true}, 1);
  Runner a(device(), data);
  Runner b(device(), data);
  std::vector<float> results[2];
  int i = 0;
  for (Runner* runner : {&a, &b}) {
    const Array d(device(), Numbers(data.q.size()));
    runner->forward();
    runner->gradient(d.data(), d.data() + data.k_at, d.data() + data.v_at, false);
    results[i++] = d.download();
  }
  EXPECT_EQ(results[0], results[1]);
}

void check_reference(Data& data) {
  const Reference r = reference(data);
  const auto check = [&](Numbers& x, const Numbers& expected) {
    const Numbers at = x;
    const Numbers d = differences(
        [&](const Numbers& moved) {
          x = moved;
          return reference(data, false).y;
        },
        at, data.dy);
    x = at;
    for (size_t i = 0; i < d.size(); ++i) EXPECT_NEAR(d[i], expected[i], 1e-8);
  };
  check(data.q, r.dq);
  check(data.k, r.dk);
  check(data.v, r.dv);
}

TEST(AttentionReference, AgreesWithFiniteDifferences) {
  for (const bool causal : {false, true}) {
    for (const bool segments : {false, true}) {
      Data data = make_data({2, 3, segments ? 3 : 5, 4, 2, 3, causal}, 2);
      if (segments) data.segments = {1, 1, 0, 4, 5, 5};
      check_reference(data);
    }
  }
}

}  // namespace
}  // namespace rrfp::kernels::testing
