// SPDX-License-Identifier: Apache-2.0
#include "engine/sim/workload.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "engine/sim/random.h"

namespace rrfp::sim {
namespace {

constexpr double kImageMin = 0.02;
constexpr double kTextMin = 0.05;

constexpr std::array<Preset, 8> kPresets = {{
    {.name = "ideal", .hop_sigma = 0, .latency_ms = 0, .serialize_ms = 0},
    {.name = "uniform", .hop_sigma = 0},
    {.name = "language",
     .length_sigma = 0.5,
     .sigma = 0.2,
     .straggle_probability = 0.005,
     .straggle_factor = 3},
    {.name = "multimodal",
     .length_sigma = 0.3,
     .images = true,
     .no_image = 0.35,
     .image_sigma = 1.0,
     .image_tokens = 0.5,
     .sigma = 0.2,
     .straggle_probability = 0.005,
     .straggle_factor = 3},
    {.name = "straggler",
     .sigma = 0.2,
     .straggle_probability = 0.02,
     .straggle_factor = 5,
     .slow_devices = 1,
     .slow_factor = 1.2},
    {.name = "slow-link", .sigma = 0.1, .episode_share = 0.1, .episode_factor = 40},
    {.name = "language-long-tail",
     .length_sigma = 0.8,
     .sigma = 0.2,
     .straggle_probability = 0.005,
     .straggle_factor = 3},
    {.name = "multimodal-heavy",
     .length_sigma = 0.3,
     .images = true,
     .no_image = 0.5,
     .image_sigma = 1.4,
     .image_tokens = 0.5,
     .sigma = 0.3,
     .straggle_probability = 0.005,
     .straggle_factor = 3},
}};

}  // namespace

std::span<const Preset> presets() {
  return kPresets;
}

const Preset* find_preset(std::string_view name) {
  const auto found = std::find_if(kPresets.begin(), kPresets.end(),
                                  [&](const Preset& p) { return p.name == name; });
  return found == kPresets.end() ? nullptr : &*found;
}

Realization::Realization(const Preset& preset, int32_t devices, int32_t microbatches, uint64_t seed,
                         uint64_t noise_seed)
    : preset_(preset), devices_(devices), noise_seed_(noise_seed) {
  const auto count = static_cast<size_t>(microbatches);
  text_.resize(count);
  image_.assign(count, 0);
  size_.resize(count);
  for (int32_t m = 0; m < microbatches; ++m) {
    const double length = Key(seed, Draw::kSize, {m}).lognormal(preset.length_sigma);
    text_[index(m)] = length;
    size_[index(m)] = length;
    if (!preset.images) continue;
    const bool none = Key(seed, Draw::kImage, {m}).uniform() < preset.no_image;
    const double image = none ? 0
                              : Key(seed, Draw::kImageSize, {m}).lognormal(preset.image_sigma) /
                                    (1 - preset.no_image);
    text_[index(m)] =
        std::max((1 - preset.image_tokens) * length + preset.image_tokens * image, kTextMin);
    image_[index(m)] = std::max(image, kImageMin);
    const double encoder = encoder_stages();
    size_[index(m)] =
        (encoder * image_[index(m)] + (devices - encoder) * text_[index(m)]) / devices;
  }
  device_factor_.assign(static_cast<size_t>(devices), 1);
  const Key slow(seed, Draw::kSlowDevice, {});
  for (int32_t k = 0; k < std::min(preset.slow_devices, devices); ++k) {
    device_factor_[static_cast<size_t>(slow.below(devices, static_cast<uint64_t>(k)))] =
        preset.slow_factor;
  }
}

double Realization::noise(core::TaskKind kind, int32_t m, int32_t stage) const {
  if (preset_.sigma == 0 && preset_.straggle_probability == 0) return 1;
  const auto k = static_cast<int64_t>(kind);
  const double z = Key(noise_seed_, Draw::kNoise, {k, m, stage}).lognormal(preset_.sigma);
  const bool straggles =
      preset_.straggle_probability > 0 &&
      Key(noise_seed_, Draw::kStraggle, {k, m, stage}).uniform() < preset_.straggle_probability;
  return straggles ? z * preset_.straggle_factor : z;
}

double Realization::hop_factor(int32_t edge, core::Direction direction, int32_t m) const {
  const double size = message_size(m);
  if (preset_.hop_sigma == 0) return size;
  return size * Key(noise_seed_, Draw::kHop, {edge, static_cast<int64_t>(direction), m})
                    .lognormal(preset_.hop_sigma);
}

std::vector<int32_t> tent_order(std::span<const double> sizes) {
  std::vector<int32_t> by_size(sizes.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  std::stable_sort(by_size.begin(), by_size.end(), [&](int32_t a, int32_t b) {
    return sizes[static_cast<size_t>(a)] < sizes[static_cast<size_t>(b)];
  });
  if (by_size.empty() ||
      sizes[static_cast<size_t>(by_size.front())] == sizes[static_cast<size_t>(by_size.back())]) {
    return by_size;  // all alike: the order of the data
  }
  std::vector<int32_t> order;
  order.reserve(sizes.size());
  for (size_t k = 0; k < by_size.size(); k += 2) order.push_back(by_size[k]);
  for (size_t k = by_size.size() / 2 * 2; k >= 2; k -= 2) order.push_back(by_size[k - 1]);
  return order;
}

}  // namespace rrfp::sim
