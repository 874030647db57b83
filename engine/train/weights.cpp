// SPDX-License-Identifier: Apache-2.0
#include "engine/train/weights.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <numbers>

#include "kernels/math/philox.h"

namespace rrfp::train {

using model::aligned_floats;
using model::AlignedFloats;
using model::Op;
using model::OpId;

namespace {

constexpr std::array kMomentNames = {"moment1", "moment2"};

/// FNV-1a: a number for a name that is the same everywhere.
uint64_t hash_of(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

/// Keeps the numbers of initial weights apart from those of dropout with the same seed.
constexpr uint64_t kStream = 0x696E697469616C21;

/// In (0, 1), from 32 random bits.
double unit(uint32_t word) {
  return (static_cast<double>(word) + 0.5) / 4294967296.0;
}

void fill_random(const model::Parameter& parameter, uint64_t seed, std::span<float> out) {
  const uint64_t name = hash_of(parameter.name);
  const uint64_t key = seed ^ kStream;
  const bool normal = parameter.init == model::Init::kNormal;
  for (size_t i = 0; i < out.size(); i += 2) {
    const kernels::PhiloxBlock block =
        kernels::philox({{static_cast<uint32_t>(i / 2), static_cast<uint32_t>((i / 2) >> 32),
                          static_cast<uint32_t>(name), static_cast<uint32_t>(name >> 32)}},
                        static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
    double a = 2 * unit(block.word[0]) - 1;
    double b = 2 * unit(block.word[1]) - 1;
    if (normal) {  // Box and Muller 1958
      const double radius = std::sqrt(-2 * std::log(unit(block.word[0])));
      const double angle = 2 * std::numbers::pi * unit(block.word[1]);
      a = radius * std::cos(angle);
      b = radius * std::sin(angle);
    }
    out[i] = static_cast<float>(parameter.init_value + parameter.init_scale * a);
    if (i + 1 < out.size()) {
      out[i + 1] = static_cast<float>(parameter.init_value + parameter.init_scale * b);
    }
  }
}

}  // namespace

Weights::Weights(const model::Graph& graph, const std::vector<bool>& needed, size_t moments)
    : graph_(graph), moments_(moments), entries_(graph.parameters().size()) {
  int64_t values = 0;
  for (size_t p = 0; p < entries_.size(); ++p) {
    entries_[p].elements = graph.parameters()[p].shape.elements();
    entries_[p].value_at = values;
    values += aligned_floats(entries_[p].elements);
  }
  int64_t gradients = 0;
  std::vector<int64_t> gradient_at(graph.ops().size() * Op::kParametersMax, -1);
  int64_t kept = 0;
  for (size_t o = 0; o < graph.ops().size(); ++o) {
    const Op& op = graph.ops()[o];
    for (size_t k = 0; needed[o] && k < op.parameters.size(); ++k) {
      const size_t p = op.parameters[k].index();
      if (graph.parameters()[p].frozen) continue;
      Entry& entry = entries_[p];
      gradient_at[o * Op::kParametersMax + k] = gradients;
      gradients += aligned_floats(entry.elements);
      if (entry.first_use.valid()) continue;
      entry.first_use = OpId::of(o);
      entry.moments_at = kept;
      kept += aligned_floats(entry.elements) * static_cast<int64_t>(moments);
    }
  }
  values_ = AlignedFloats(values);
  gradients_ = AlignedFloats(gradients);
  kept_ = AlignedFloats(kept);
  for (const AlignedFloats* all : {&values_, &gradients_, &kept_}) {
    std::fill_n(all->data(), all->size(), 0.0F);
  }
  table_.gradients.assign(gradient_at.size(), nullptr);
  for (size_t o = 0; o < graph.ops().size(); ++o) {
    for (size_t k = 0; k < graph.ops()[o].parameters.size(); ++k) {
      const size_t at = o * Op::kParametersMax + k;
      if (gradient_at[at] < 0) continue;
      table_.gradients[at] = gradients_.data() + gradient_at[at];
      entries_[graph.ops()[o].parameters[k].index()].gradients.push_back(table_.gradients[at]);
    }
  }
  for (const Entry& entry : entries_) table_.weights.push_back(values_.data() + entry.value_at);
}

void Weights::initialize(uint64_t seed) {
  for (size_t p = 0; p < entries_.size(); ++p) {
    const model::Parameter& parameter = graph_.parameters()[p];
    const std::span<float> out(array(p, WeightSlot::kWeight),
                               static_cast<size_t>(entries_[p].elements));
    if (parameter.init == model::Init::kConstant) {
      std::fill(out.begin(), out.end(), static_cast<float>(parameter.init_value));
    } else {
      fill_random(parameter, seed, out);
    }
  }
}

float* Weights::array(size_t p, WeightSlot slot) const {
  const Entry& entry = entries_[p];
  if (slot == WeightSlot::kWeight) return values_.data() + entry.value_at;
  if (!trained(p)) return nullptr;
  if (slot == WeightSlot::kGradient) return entry.gradients.front();
  const auto moment = static_cast<size_t>(slot) - static_cast<size_t>(WeightSlot::kMoment1);
  if (moment >= moments_) return nullptr;
  return kept_.data() + entry.moments_at +
         static_cast<int64_t>(moment) * aligned_floats(entry.elements);
}

void Weights::gather_gradient(size_t p, const kernels::Kernels& kernels) const {
  const Entry& entry = entries_[p];
  for (size_t use = 1; use < entry.gradients.size(); ++use) {
    kernels.copy(entry.elements, entry.gradients[use], entry.gradients[0], true);
    kernels.fill(entry.elements, 0.0F, entry.gradients[use]);
  }
}

void Weights::clear_gradient(size_t p, const kernels::Kernels& kernels) const {
  for (float* gradient : entries_[p].gradients) {
    kernels.fill(entries_[p].elements, 0.0F, gradient);
  }
}

int64_t Weights::bytes() const {
  return (values_.size() + gradients_.size() + kept_.size()) * static_cast<int64_t>(sizeof(float));
}

std::vector<NamedTensor> Weights::weight_tensors_in(const AlignedFloats& of) const {
  std::vector<NamedTensor> tensors;
  for (size_t p = 0; p < entries_.size(); ++p) {
    const model::Parameter& parameter = graph_.parameters()[p];
    const std::span<const int64_t> extents = parameter.shape.extents();
    tensors.push_back({.name = parameter.name,
                       .shape = {extents.begin(), extents.end()},
                       .data = of.data() + entries_[p].value_at});
  }
  return tensors;
}

std::vector<NamedTensor> Weights::moment_tensors_in(const AlignedFloats& of) const {
  assert(moments_ <= kMomentNames.size());
  std::vector<NamedTensor> tensors;
  for (size_t p = 0; p < entries_.size(); ++p) {
    if (!trained(p)) continue;
    const model::Parameter& parameter = graph_.parameters()[p];
    const std::span<const int64_t> extents = parameter.shape.extents();
    for (size_t moment = 0; moment < moments_; ++moment) {
      const int64_t at = entries_[p].moments_at +
                         static_cast<int64_t>(moment) * aligned_floats(entries_[p].elements);
      tensors.push_back({.name = std::string(kMomentNames[moment]) + "." + parameter.name,
                         .shape = {extents.begin(), extents.end()},
                         .data = of.data() + at});
    }
  }
  return tensors;
}

std::vector<NamedTensor> Weights::weight_tensors() const {
  return weight_tensors_in(values_);
}
std::vector<NamedTensor> Weights::moment_tensors() const {
  return moment_tensors_in(kept_);
}
AlignedFloats Weights::like_values() const {
  return AlignedFloats(values_.size());
}
AlignedFloats Weights::like_moments() const {
  return AlignedFloats(kept_.size());
}
void Weights::copy_values(const AlignedFloats& from) {
  std::copy_n(from.data(), from.size(), values_.data());
}
void Weights::copy_moments(const AlignedFloats& from) {
  std::copy_n(from.data(), from.size(), kept_.data());
}

}  // namespace rrfp::train
