// SPDX-License-Identifier: Apache-2.0
#include "engine/data/packing.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "engine/data/manifest.h"

namespace rrfp::data {

std::vector<std::vector<size_t>> group_by_count(size_t samples, size_t groups) {
  assert(groups >= 1 && groups <= samples);
  std::vector<std::vector<size_t>> out(groups);
  const size_t least = samples / groups;
  size_t next = 0;
  for (size_t g = 0; g < groups; ++g) {
    out[g].resize(least + (g < samples % groups ? 1 : 0));
    for (size_t& sample : out[g]) sample = next++;
  }
  return out;
}

std::vector<std::vector<size_t>> group_by_cost(std::span<const double> costs, size_t groups) {
  assert(groups >= 1 && groups <= costs.size());
  std::vector<size_t> order(costs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return costs[a] > costs[b]; });
  std::vector<std::vector<size_t>> out(groups);
  struct Load {
    double cost;
    size_t group;
  };
  // A heap with the next group in front.
  const auto is_later = [](const Load& a, const Load& b) {
    return a.cost != b.cost ? a.cost > b.cost : a.group > b.group;
  };
  std::vector<Load> loads;
  for (size_t g = 0; g < groups; ++g) loads.push_back({0, g});
  for (const size_t sample : order) {
    std::pop_heap(loads.begin(), loads.end(), is_later);
    out[loads.back().group].push_back(sample);
    loads.back().cost += costs[sample];
    std::push_heap(loads.begin(), loads.end(), is_later);
  }
  for (auto& group : out) std::sort(group.begin(), group.end());
  return out;
}

void Microbatch::clear() {
  for (auto* values : {&tokens, &targets, &segments, &positions, &sources}) values->clear();
  images.clear();
  image_count = 0;
  segment_count_ = 0;
  position_ = 0;
}

void Microbatch::append_token(int32_t token, int32_t source) {
  // What the token before should predict is known now.
  if (position_ > 0 && token != kTokenPicture) targets.back() = token;
  tokens.push_back(token);
  targets.push_back(kNothingToPredict);
  segments.push_back(segment_count_);
  positions.push_back(position_++);
  sources.push_back(source);
}

void Microbatch::append(std::string_view text, int32_t image_tokens) {
  position_ = 0;
  while (!text.empty()) {
    if (!text.starts_with(kPictureMark)) {
      append_token(static_cast<uint8_t>(text.front()), -1);
      text.remove_prefix(1);
      continue;
    }
    const auto first = static_cast<int32_t>(image_count) * image_tokens;
    for (int32_t row = 0; row < image_tokens; ++row) append_token(kTokenPicture, first + row);
    ++image_count;
    text.remove_prefix(kPictureMark.size());
  }
  append_token(kTokenEnd, -1);
  ++segment_count_;
}

}  // namespace rrfp::data
