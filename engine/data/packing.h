// SPDX-License-Identifier: Apache-2.0
//
// Samples as microbatches: how they are grouped, and the sequence that a group is packed into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace rrfp::data {

constexpr int32_t kTokenPicture = 256;
constexpr int32_t kTokenEnd = 257;
constexpr int32_t kNothingToPredict = -100;

enum class Grouping : uint8_t { kCount, kCost };

/// Groups 0 .. samples - 1: each in one of `groups` groups, none of them empty, the samples of a
/// group in their order; 1 <= groups <= samples. Groups of neighbours, whose numbers differ by at
/// most one.
std::vector<std::vector<size_t>> group_by_count(size_t samples, size_t groups);
/// The same, so that the sums of costs are near each other: the dearest sample first, each to the
/// group that costs the least so far ("longest processing time first"); of equal ones the first.
/// Costs are greater than 0.
std::vector<std::vector<size_t>> group_by_cost(std::span<const double> costs, size_t groups);

/// One packed sequence. All vectors but `images` have an element for each token.
struct Microbatch {
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;    // kNothingToPredict before a picture and at an end
  std::vector<int32_t> segments;   // of the sample in the sequence
  std::vector<int32_t> positions;  // in the sample
  std::vector<int32_t> sources;    // -1, or the row of the pictures that comes here
  std::vector<float> images;
  int64_t image_count = 0;

  /// Keeps memory.
  void clear();
  /// Adds the tokens of a sample, whose text has marks (manifest.h), and counts its pictures.
  void append(std::string_view text, int32_t image_tokens);

 private:
  void append_token(int32_t token, int32_t source);

  int32_t segment_count_ = 0;
  int32_t position_ = 0;
};

}  // namespace rrfp::data
