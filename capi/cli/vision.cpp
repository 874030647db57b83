// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/vision.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "capi/cli/output.h"

namespace rrfp::cli {
namespace {

constexpr int32_t kChannels = 3;

/// Multiplications for a token in the layers of a transformer, without the attention itself.
///   products   with matrices hidden x dim in a feed-forward layer
double layers_cost(double layers, double dim, double kv_share, double hidden, double products) {
  return layers * (dim * dim * (2 + 2 * kv_share) + products * dim * hidden);
}

/// Multiplications for a picture in what makes rows of its pixels: one product, or convolutions of
/// 3 x 3 that halve the sides and double the channels, and a product.
double stem_cost(const VisionOptions& vision) {
  const double rows = image_tokens(vision);
  const double dim = vision.dim;
  if (!vision.conv_stem) return rows * vision.patch * vision.patch * kChannels * dim;
  double cost = rows * dim * dim;
  double channels = kChannels;
  for (int32_t side = vision.patch / 2; side >= 1; side /= 2) {  // of a patch, in what comes out
    const double next = std::max(1, vision.dim / side);
    cost += rows * side * side * 9 * channels * next;
    channels = next;
  }
  return cost;
}

}  // namespace

void check_kind(bool reads_pictures, const Settings& vision, const Settings& data) {
  if (!reads_pictures) {
    std::string name = vision.first_given("--vision");
    for (const char* each : {"--grouping", "--pixels-max"}) {
      if (name.empty() && data.is_given(each)) name = each;
    }
    if (!name.empty())
      bad_input(name + " is for models that read pictures, those of train --vision");
    return;
  }
  for (const char* name : {"--format", "--vocabulary"}) {
    if (data.is_given(name)) {
      bad_input(
          std::string(name) +
          " is not for models that read pictures (train --vision), whose data are a manifest");
    }
  }
}

rrfp_vision_options vision_options(const VisionOptions& options) {
  if (options.image_size % options.patch != 0) {
    bad_input("--image-size " + std::to_string(options.image_size) +
              " is not divisible by --patch " + std::to_string(options.patch));
  }
  if (options.dim % options.heads != 0) {
    bad_input("--vision-dim " + std::to_string(options.dim) +
              " is not divisible by --vision-heads " + std::to_string(options.heads));
  }
  const bool is_power = std::has_single_bit(static_cast<uint32_t>(options.patch));
  if (options.conv_stem && (!is_power || options.patch < 4)) {
    bad_input("--patch " + std::to_string(options.patch) +
              " does not go with --conv-stem, which halves pictures: expected 4, 8, 16 ..");
  }
  auto out = prepared(rrfp_vision_options_init);
  if (options.frozen) out.flags |= RRFP_VISION_FROZEN;
  if (options.conv_stem) out.flags |= RRFP_VISION_CONV_STEM;
  out.image_size = options.image_size;
  out.patch = options.patch;
  out.layers = options.layers;
  out.dim = options.dim;
  out.heads = options.heads;
  out.hidden = options.hidden;
  return out;
}

int32_t image_tokens(const VisionOptions& options) {
  const int64_t side = options.image_size / options.patch;
  constexpr int64_t kSideMax = 1 << 15;  // the square is a number of 32 bits
  if (side > kSideMax) {
    bad_input("--image-size " + std::to_string(options.image_size) + " with --patch " +
              std::to_string(options.patch) + " makes too many rows of a picture");
  }
  return static_cast<int32_t>(side * side);
}

double image_cost(const VisionOptions& vision, const ModelOptions& model) {
  const double rows = image_tokens(vision);
  const double encoder_dim = vision.dim;
  const double encoder_hidden = vision.hidden > 0 ? vision.hidden : 4 * encoder_dim;
  const double attention = 2.0 * vision.layers * rows * encoder_dim;
  const double encoder =
      stem_cost(vision) +
      rows * (attention + layers_cost(vision.layers, encoder_dim, 1, encoder_hidden, 2));
  const double dim = model.dim;
  const double projector = rows * (encoder_dim * dim + dim * dim);

  const double products = model.swiglu ? 3 : 2;
  const double hidden = model.hidden > 0 ? model.hidden : (model.swiglu ? 8.0 / 3 : 4.0) * dim;
  const double kv_share =
      model.kv_heads > 0 ? static_cast<double>(model.kv_heads) / model.heads : 1;
  const double token = layers_cost(model.layers, dim, kv_share, hidden, products) +
                       dim * static_cast<double>(RRFP_SAMPLES_VOCABULARY);
  return ((vision.frozen ? encoder / 3 : encoder) + projector) / token;
}

PicturePrompt::PicturePrompt(const std::string& text, const std::vector<std::string>& files,
                             const VisionOptions& vision, int64_t pixels_max) {
  const int32_t rows = image_tokens(vision);
  const size_t size = static_cast<size_t>(vision.image_size) *
                      static_cast<size_t>(vision.image_size) * static_cast<size_t>(kChannels);
  size_t images = 0;
  for (size_t at = 0; at < text.size();) {
    if (text.compare(at, kImageMark.size(), kImageMark) != 0) {
      tokens_.push_back(static_cast<unsigned char>(text[at]));
      sources_.push_back(-1);
      ++at;
      continue;
    }
    for (int32_t row = 0; row < rows; ++row) {
      tokens_.push_back(RRFP_TOKEN_IMAGE);
      sources_.push_back(static_cast<int32_t>(images) * rows + row);
    }
    ++images;
    at += kImageMark.size();
  }
  if (images != files.size()) {
    bad_input(format("--prompt has %zu <image>, but --image has %zu files: each needs the other",
                     images, files.size()));
  }
  pixels_.resize(images * size);
  for (size_t k = 0; k < images; ++k) {
    call(rrfp_picture_read, files[k].c_str(), vision.image_size, pixels_max,
         pixels_.data() + k * size);
  }
  set_inputs(vision, static_cast<int32_t>(images));
}

void PicturePrompt::set_inputs(const VisionOptions& vision, int32_t images) {
  const size_t length = tokens_.size();
  targets_.assign(length, -100);
  segments_.assign(length, 0);
  positions_.resize(length);
  std::iota(positions_.begin(), positions_.end(), 0);
  for (std::vector<int32_t>* each : {&tokens_, &targets_, &segments_, &positions_, &sources_}) {
    rrfp_tensor tensor{};
    tensor.data = each->data();
    tensor.dtype = RRFP_I32;
    tensor.ndim = 2;
    tensor.shape[0] = 1;
    tensor.shape[1] = static_cast<int64_t>(length);
    inputs_.push_back(tensor);
  }
  pixels_.reserve(1);  // tensors without elements, too, have an address
  rrfp_tensor pictures{};
  pictures.data = pixels_.data();
  pictures.dtype = RRFP_F32;
  pictures.ndim = 4;
  pictures.shape[0] = images;
  pictures.shape[1] = vision.image_size;
  pictures.shape[2] = vision.image_size;
  pictures.shape[3] = kChannels;
  inputs_.push_back(pictures);
}

}  // namespace rrfp::cli
