// SPDX-License-Identifier: Apache-2.0
#include "engine/model/vision_language.h"

#include <bit>
#include <cmath>

#include "engine/model/recipe.h"

namespace rrfp::model {

using core::Code;
using core::Status;

namespace {

constexpr int64_t kChannels = 3;

Status check(const VisionOptions& o) {
  // More would not leave numbers for the rows of several pictures.
  constexpr int32_t kSizeMax = 1 << 14;
  const auto wrong = [](const std::string& text) { return Status(Code::kInvalidArgument, text); };
  if (Status s = check_range("vision image_size", o.image_size, 1, kSizeMax); !s.ok()) return s;
  if (Status s = check_range("vision patch", o.patch, 1, kSizeMax); !s.ok()) return s;
  if (o.image_size % o.patch != 0) {
    return wrong("vision image_size is " + std::to_string(o.image_size) +
                 "; it is not divisible by patch = " + std::to_string(o.patch));
  }
  const auto patch = static_cast<uint32_t>(o.patch);
  if (o.conv_stem && (o.patch < 4 || !std::has_single_bit(patch))) {
    return wrong("vision patch is " + std::to_string(o.patch) +
                 "; convolutions need a power of two, at least 4");
  }
  if (Status s = check_range("vision layers", o.layers, 1, kLayersMax); !s.ok()) return s;
  if (Status s = check_range("vision dim", o.dim); !s.ok()) return s;
  if (Status s = check_range("vision heads", o.heads); !s.ok()) return s;
  if (o.dim % o.heads != 0) {
    return wrong("vision dim is " + std::to_string(o.dim) +
                 "; it is not divisible by heads = " + std::to_string(o.heads));
  }
  if (o.hidden != 0) return check_range("vision hidden", o.hidden);
  return {};
}

class Builder {
 public:
  Builder(const GptOptions& language, const VisionOptions& vision, Graph& graph)
      : l_(language), v_(vision), b_(graph) {}

  Status build() {
    const Shape any = {Shape::kUnknown, Shape::kUnknown};
    for (size_t k = 0; k < kImages; ++k) {
      in_[k] = b_.input(kVisionLanguageNames[k], ValueType::kI32, any);
    }
    in_[kImages] = b_.input(kVisionLanguageNames[kImages], ValueType::kF32,
                            {Shape::kUnknown, v_.image_size, v_.image_size, kChannels});
    const ValueId rows = project(encode());
    decode(rows);
    return b_.status();
  }

 private:
  ValueId patches(ValueId x, int32_t kernel, int32_t stride, int32_t padding) {
    Op op = {.kind = OpKind::kPatches, .inputs = {x}};
    op.attributes.kernel = kernel;
    op.attributes.stride = stride;
    op.attributes.padding = padding;
    return b_.add(std::move(op));
  }
  ValueId as_rows(ValueId x, int64_t width) {
    Op op = {.kind = OpKind::kReshape, .inputs = {x}};
    op.attributes.shape = {0, v_.rows(), width};  // 0: as many pictures as there are
    return b_.add(std::move(op));
  }
  // Inputs of about the size of 1 give outputs of that size: there is no norm right behind.
  static double fan_in_deviation(int64_t in) { return 1 / std::sqrt(static_cast<double>(in)); }

  ValueId linear_stem(ValueId images, const std::string& name) {
    const int64_t width = kChannels * v_.patch * v_.patch;
    const ValueId x = as_rows(patches(images, v_.patch, v_.patch, 0), width);
    return b_.linear(x, name + ".patches", width, v_.dim, fan_in_deviation(width));
  }
  // Early convolutions (Xiao et al. 2021), without their norms: each halves the sides, and all but
  // the first double the channels.
  ValueId conv_stem(ValueId x, const std::string& name) {
    const int32_t count = std::countr_zero(static_cast<uint32_t>(v_.patch));
    int64_t channels = kChannels;
    for (int32_t k = 0; k < count; ++k) {
      const int64_t next = std::max(1, v_.dim >> (count - 1 - k));
      x = patches(x, 3, 2, 1);
      x = b_.linear(x, name + ".convolutions." + std::to_string(k), 9 * channels, next,
                    std::sqrt(2.0) * fan_in_deviation(9 * channels));  // GELU halves about
      x = b_.add({.kind = OpKind::kGelu, .inputs = {x}});
      channels = next;
    }
    return b_.linear(as_rows(x, channels), name + ".out", channels, v_.dim,
                     fan_in_deviation(channels));
  }

  ValueId encode() {
    b_.set_frozen(v_.frozen);
    const std::string name = "vision.embedding";
    b_.begin_block(name);
    ValueId x = v_.conv_stem ? conv_stem(in_[kImages], name) : linear_stem(in_[kImages], name);
    const ParameterId positions = b_.weight(name + ".positions.weight", {v_.rows(), v_.dim});
    x = b_.add({.kind = OpKind::kPositions, .inputs = {x}, .parameters = {positions}});
    const LayerStack stack = {
        .layers = v_.layers, .dim = v_.dim, .heads = v_.heads, .hidden = v_.hidden};
    for (int32_t k = 0; b_.status().ok() && k < v_.layers; ++k) {
      const std::string layer = "vision.layers." + std::to_string(k);
      b_.begin_block(layer);
      x = b_.layer(stack, x, layer);
    }
    b_.set_frozen(false);
    return x;
  }

  ValueId project(ValueId x) {
    b_.begin_block("projector");
    x = b_.norm(x, "projector.norm", v_.dim, false);
    x = b_.linear(x, "projector.up", v_.dim, l_.dim);
    x = b_.add({.kind = OpKind::kGelu, .inputs = {x}});
    return b_.linear(x, "projector.out", l_.dim, l_.dim);
  }

  void decode(ValueId rows) {
    b_.begin_block("embedding");
    const auto look_up = [&](ValueId ids, ParameterId table) {
      return b_.add({.kind = OpKind::kEmbedding, .inputs = {ids}, .parameters = {table}});
    };
    const ParameterId table = b_.weight("embedding.weight", {l_.vocabulary, l_.dim});
    ValueId x = look_up(in_[kTokens], table);
    ValueId places;
    if (!l_.rotary) {
      places = look_up(in_[kPositions], b_.weight("positions.weight", {l_.context, l_.dim}));
    }
    LayerStack stack = stack_of(l_);
    stack.segments = in_[kSegments];
    stack.positions = in_[kPositions];
    for (int32_t k = 0; b_.status().ok() && k < l_.layers; ++k) {
      const std::string layer = "layers." + std::to_string(k);
      b_.begin_block(layer);
      // Not in "embedding", which need not wait for the pictures.
      if (k == 0) x = merge(x, rows, places);
      x = b_.layer(stack, x, layer);
    }
    b_.head(stack, x, in_[kTargets], l_.vocabulary, l_.tied ? table : ParameterId());
  }
  ValueId merge(ValueId x, ValueId rows, ValueId places) {
    x = b_.add({.kind = OpKind::kMergeRows, .inputs = {x, rows, in_[kSources]}});
    if (places.valid()) x = b_.add({.kind = OpKind::kAdd, .inputs = {x, places}});
    return b_.dropout(x, l_.dropout);
  }

  const GptOptions& l_;
  const VisionOptions& v_;
  TransformerBuilder b_;
  ValueId in_[kVisionLanguageInputs];
};

}  // namespace

Status build_vision_language(const GptOptions& language, const VisionOptions& vision, Graph& out) {
  if (Status s = check(language); !s.ok()) return s;
  if (Status s = check(vision); !s.ok()) return s;
  Graph graph;
  if (Status s = Builder(language, vision, graph).build(); !s.ok()) return s;
  graph.recipe = recipe_of(language, vision);
  out = std::move(graph);
  return {};
}

bool has_vision_language_inputs(const Graph& graph) {
  if (graph.inputs().size() != kVisionLanguageInputs) return false;
  for (size_t k = 0; k < kVisionLanguageInputs; ++k) {
    const Value& value = graph.value(graph.inputs()[k]);
    const bool images = k == kImages;
    if (value.name != kVisionLanguageNames[k] || value.shape.ndim != (images ? 4 : 2) ||
        value.type != (images ? ValueType::kF32 : ValueType::kI32)) {
      return false;
    }
  }
  return true;
}

}  // namespace rrfp::model
