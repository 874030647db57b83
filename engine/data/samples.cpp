// SPDX-License-Identifier: Apache-2.0
#include "engine/data/samples.h"

#include <limits>

namespace rrfp::data {

using core::Code;
using core::Status;

namespace {

Status wrong(const std::string& name, const std::string& value, const std::string& expected) {
  return {Code::kInvalidArgument, name + " is " + value + ", expected " + expected};
}

Status check_range(const std::string& name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return wrong(name, std::to_string(value), std::to_string(least) + " .. " + std::to_string(most));
}

Status check_options(const SamplesOptions& o) {
  constexpr int32_t kInt32Max = std::numeric_limits<int32_t>::max();
  if (o.grouping > Grouping::kCost) {
    return wrong("grouping", std::to_string(static_cast<int>(o.grouping)), "0 (count) or 1 (cost)");
  }
  // The least sample is a byte and the end.
  for (Status s : {check_range("image_size", o.image_size, 1, kImageSizeMax),
                   check_range("image_tokens", o.image_tokens, 1, kInt32Max),
                   check_range("context", o.context, 2, kInt32Max),
                   check_range("ahead", o.ahead, 0, kAheadMax),
                   check_range("pixels_max", o.pixels_max, 1, std::numeric_limits<int64_t>::max()),
                   check_validation_share(o.validation_share)}) {
    if (!s.ok()) return s;
  }
  // Written so that it refuses NaN, too.
  if (!(o.image_cost >= 0 && o.image_cost <= kImageCostMax)) {
    return wrong("image_cost", std::to_string(o.image_cost), "0 .. 10^12 tokens");
  }
  return {};
}

}  // namespace

/// Where the pictures of a sample go: the samples of a batch in the order of their positions.
struct Samples::Destination {
  size_t item = 0;
  Microbatch* microbatch = nullptr;
  size_t first = 0;  // float
};

Status Samples::open(const SamplesOptions& options, std::unique_ptr<Samples>& out) {
  if (Status s = check_options(options); !s.ok()) return s;
  SamplesOptions o = options;
  if (o.ahead == 0) o.ahead = kAheadDefault;
  if (o.image_cost == 0) o.image_cost = o.image_tokens;
  std::unique_ptr<Samples> samples(new Samples(o));
  const ManifestOptions read = {.path = o.path,
                                .image_tokens = o.image_tokens,
                                .context = o.context,
                                .pixels_max = o.pixels_max};
  if (Status s = Manifest::open(read, samples->manifest_); !s.ok()) return s;
  if (Status s = SplitOrder::make(samples->manifest_.size(), "samples", o.validation_share, o.seed,
                                  samples->order_);
      !s.ok()) {
    return {s.code(), "\"" + o.path + "\": " + s.text()};
  }
  const Samples* const all = samples.get();
  samples->ahead_ = std::make_unique<DecodeAhead>(
      DecodeAhead::Work{
          .size = [all](Split split,
                        uint64_t at) { return all->image_floats(all->item(split, at)); },
          .decode =
              [all](Split split, uint64_t at, std::span<float> numbers) {
                return all->decode(all->item(split, at), numbers);
              }},
      static_cast<size_t>(o.ahead), kAheadBytesMax);
  out = std::move(samples);
  return {};
}

size_t Samples::image_floats(size_t item) const {
  const auto side = static_cast<size_t>(options_.image_size);
  return static_cast<size_t>(manifest_.pictures(item)) * side * side * 3;
}

Status Samples::decode(size_t item, std::span<float> out) const {
  if (manifest_.pictures(item) == 0) return {};
  ManifestSample sample;
  manifest_.read(item, sample);
  const size_t each = out.size() / sample.pictures.size();
  for (size_t k = 0; k < sample.pictures.size(); ++k) {
    if (Status s = read_picture(sample.pictures[k], options_.image_size, options_.pixels_max,
                                out.subspan(k * each, each));
        !s.ok()) {
      return {s.code(), manifest_.where(item) + s.text()};
    }
  }
  return {};
}

std::vector<std::vector<size_t>> Samples::group(std::span<const size_t> items,
                                                size_t groups) const {
  if (options_.grouping == Grouping::kCount) return group_by_count(items.size(), groups);
  std::vector<double> costs;
  costs.reserve(items.size());
  for (const size_t item : items) {
    costs.push_back(manifest_.tokens(item) + manifest_.pictures(item) * options_.image_cost);
  }
  return group_by_cost(costs, groups);
}

Status Samples::pack(Split split, std::span<const uint64_t> positions, int32_t microbatches,
                     std::vector<Microbatch>& out, std::vector<Destination>& images) const {
  constexpr int64_t kTokensMax = std::numeric_limits<int32_t>::max();
  std::vector<size_t> items;
  items.reserve(positions.size());
  for (const uint64_t position : positions) items.push_back(item(split, position));
  images.resize(items.size());
  const auto groups = group(items, static_cast<size_t>(microbatches));
  out.resize(groups.size());
  ManifestSample sample;
  for (size_t g = 0; g < groups.size(); ++g) {
    out[g].clear();
    int64_t tokens = 0;
    for (const size_t k : groups[g]) tokens += manifest_.tokens(items[k]);
    if (tokens > kTokensMax) {
      return wrong("the length of microbatch " + std::to_string(g),
                   std::to_string(tokens) + " tokens", "at most " + std::to_string(kTokensMax));
    }
    size_t floats = 0;
    for (const size_t k : groups[g]) {
      manifest_.read(items[k], sample);
      out[g].append(sample.text, options_.image_tokens);
      images[k] = {items[k], &out[g], floats};
      floats += image_floats(items[k]);
    }
    out[g].images.resize(floats);
  }
  return {};
}

namespace {

Status check_counts(const SplitOrder& order, Split split, size_t count, int32_t microbatches) {
  if (order.count(split) == 0) {
    return {Code::kBadState, "there are no samples in this split; give it a share of the data"};
  }
  if (count < 1) return wrong("count", "0", "at least 1");
  if (microbatches < 1 || static_cast<size_t>(microbatches) > count) {
    return wrong("microbatches", std::to_string(microbatches),
                 "1 .. " + std::to_string(count) + ", the number of samples");
  }
  return {};
}

}  // namespace

Status Samples::read(Split split, uint64_t position, int32_t count, int32_t microbatches,
                     std::vector<Microbatch>& out) {
  if (count < 1) return wrong("count", std::to_string(count), "at least 1");
  if (Status s = check_counts(order_, split, static_cast<size_t>(count), microbatches); !s.ok()) {
    return s;
  }
  std::vector<uint64_t> positions(static_cast<size_t>(count));
  for (size_t k = 0; k < positions.size(); ++k) positions[k] = position + k;
  // Before the packing, which the decoding runs beside.
  const bool has_pictures = manifest_.pictures() > 0;
  if (has_pictures) ahead_->seek(split, position);
  std::vector<Destination> images;
  if (Status s = pack(split, positions, microbatches, out, images); !s.ok()) return s;
  for (size_t k = 0; has_pictures && k < images.size(); ++k) {
    const auto numbers = std::span(images[k].microbatch->images)
                             .subspan(images[k].first, image_floats(images[k].item));
    if (Status s = ahead_->read(positions[k], numbers); !s.ok()) return s;
  }
  return {};
}

Status Samples::read_at(Split split, std::span<const uint64_t> positions, int32_t microbatches,
                        std::vector<Microbatch>& out) {
  if (Status s = check_counts(order_, split, positions.size(), microbatches); !s.ok()) return s;
  std::vector<Destination> images;
  if (Status s = pack(split, positions, microbatches, out, images); !s.ok()) return s;
  for (const Destination& to : images) {
    const auto numbers = std::span(to.microbatch->images).subspan(to.first, image_floats(to.item));
    if (Status s = decode(to.item, numbers); !s.ok()) return s;
  }
  return {};
}

}  // namespace rrfp::data
