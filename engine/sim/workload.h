// SPDX-License-Identifier: Apache-2.0
//
// Workloads: how large microbatches are, how long their tasks take, what the links are like. A
// preset has parameters; a seed makes of them one step, whose numbers every policy meets alike.
//
// The model is cut into `stages` (one per device) whose tasks take base x c x z: base = 10 ms for
// each of F, I and W, c the size of the microbatch as the stage sees it (known in advance), z noise
// with mean 1 (not known). A stage may be cut further into chunks, which share its noise and split
// its time evenly.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/core/ids.h"

namespace rrfp::sim {

struct Preset {
  std::string_view name;
  // Sizes of microbatches.
  double length_sigma = 0;  // of the text's length, lognormal with mean 1
  bool images = false;      // the first quarter of the stages encodes images
  double no_image = 0;      // probability that a microbatch has none
  double image_sigma = 0;   // of the images' size
  double image_tokens = 0;  // share of the text stages' work that comes from images
  // Noise of tasks.
  double sigma = 0;
  double straggle_probability = 0;
  double straggle_factor = 1;
  int32_t slow_devices = 0;
  double slow_factor = 1;
  // Links.
  double hop_sigma = 0.5;
  double latency_ms = 0.05;
  double serialize_ms = 0.4;
  double episode_share = 0;  // of the time in which a link is slow
  double episode_ms = 200;   // mean length of such a time
  double episode_factor = 1;

  double base_ms = 10;  // F = I = W of a whole stage
};

/// ideal, uniform, language, multimodal, straggler, slow-link, language-long-tail,
/// multimodal-heavy.
[[nodiscard]] std::span<const Preset> presets();
/// Null if there is none of that name.
[[nodiscard]] const Preset* find_preset(std::string_view name);

/// One step's numbers.
class Realization {
 public:
  /// With another `noise_seed`, the same sizes and slow devices meet the noise of another step.
  Realization(const Preset& preset, int32_t devices, int32_t microbatches, uint64_t seed)
      : Realization(preset, devices, microbatches, seed, seed) {}
  Realization(const Preset& preset, int32_t devices, int32_t microbatches, uint64_t seed,
              uint64_t noise_seed);

  [[nodiscard]] const Preset& preset() const { return preset_; }
  [[nodiscard]] int32_t devices() const { return devices_; }
  [[nodiscard]] int32_t microbatches() const { return static_cast<int32_t>(size_.size()); }
  [[nodiscard]] uint64_t noise_seed() const { return noise_seed_; }

  /// Relative cost of microbatch `m` on a stage of the uncut model, as it is known in advance.
  [[nodiscard]] double cost(int32_t m, int32_t stage) const {
    return preset_.images && stage < encoder_stages() ? image_[index(m)] : text_[index(m)];
  }
  /// Mean cost over all stages: the microbatch's size, which is also what it holds in memory.
  [[nodiscard]] double size(int32_t m) const { return size_[index(m)]; }
  [[nodiscard]] std::span<const double> sizes() const { return size_; }
  /// Size of what travels between stages.
  [[nodiscard]] double message_size(int32_t m) const { return text_[index(m)]; }
  /// Noise of a task: what its duration is multiplied with, the device left aside.
  [[nodiscard]] double noise(core::TaskKind kind, int32_t m, int32_t stage) const;
  [[nodiscard]] double device_factor(int32_t device) const {
    return device_factor_[static_cast<size_t>(device)];
  }
  /// The first ones, if the model has images.
  [[nodiscard]] int32_t encoder_stages() const { return devices_ / 4; }
  /// Factor of one message's transfer.
  [[nodiscard]] double hop_factor(int32_t edge, core::Direction direction, int32_t m) const;

 private:
  [[nodiscard]] static size_t index(int32_t m) { return static_cast<size_t>(m); }

  Preset preset_;
  int32_t devices_;
  uint64_t noise_seed_;
  std::vector<double> text_;
  std::vector<double> image_;
  std::vector<double> size_;
  std::vector<double> device_factor_;
};

/// Injection order by predicted size: "tent", short ... long ... short. Neighbours are of similar
/// size, and filling and draining the pipeline are short. Element k is the microbatch that goes in
/// k-th. A function of the sizes alone.
[[nodiscard]] std::vector<int32_t> tent_order(std::span<const double> sizes);

}  // namespace rrfp::sim
