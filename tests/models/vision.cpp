// SPDX-License-Identifier: Apache-2.0
#include "vision.h"

#include <cctype>
#include <map>

namespace rrfp::models {

namespace {

constexpr int32_t kImageToken = 31;  // of small_gpt(); any would do
constexpr int32_t kIgnored = -100;
constexpr size_t kPixels = size_t{8} * 8 * 3;

std::vector<float> picture(char digit) {
  Random random(static_cast<uint64_t>(digit));
  std::vector<float> pixels(kPixels);
  for (float& pixel : pixels) pixel = random.number();
  return pixels;
}

}  // namespace

ModelPtr make_vision_language(const rrfp_gpt_options& language, const rrfp_vision_options& vision) {
  rrfp_error error = {};
  rrfp_model* model = nullptr;
  check(rrfp_model_create_vision_language(&language, &vision, &model, &error), error);
  return ModelPtr(model);
}

rrfp_vision_options small_vision(rrfp_vision_flags flags) {
  rrfp_vision_options options;
  rrfp_vision_options_init(&options);
  options.flags = flags;
  options.image_size = 8;
  options.patch = 4;
  options.layers = 2;
  options.dim = 8;
  options.heads = 2;
  return options;
}

ModelPtr small_vision_language(rrfp_gpt_flags flags, rrfp_vision_flags vision_flags,
                               double dropout) {
  return make_vision_language(small_gpt(flags, dropout), small_vision(vision_flags));
}

void Packed::add_to(BatchData& data) const {
  for (const std::vector<int32_t>* ids : {&tokens, &targets, &segments, &positions, &sources}) {
    data.add_i32(*ids, {1, length()});
  }
  data.add_f32(images, {pictures, 8, 8, 3});
}

Packed pack(const std::vector<std::string>& samples) {
  Packed out;
  std::map<char, int64_t> number;  // of a picture in the microbatch
  for (size_t s = 0; s < samples.size(); ++s) {
    const size_t begin = out.tokens.size();
    for (const char c : samples[s]) {
      const bool is_picture = std::isdigit(static_cast<unsigned char>(c)) != 0;
      if (is_picture && number.emplace(c, out.pictures).second) {
        const std::vector<float> pixels = picture(c);
        out.images.insert(out.images.end(), pixels.begin(), pixels.end());
        ++out.pictures;
      }
      for (int64_t p = 0; p < (is_picture ? kPictureRows : 1); ++p) {
        out.tokens.push_back(is_picture ? kImageToken : static_cast<unsigned char>(c) - 'a');
        out.sources.push_back(is_picture ? static_cast<int32_t>(number[c] * kPictureRows + p) : -1);
        out.positions.push_back(static_cast<int32_t>(out.tokens.size() - 1 - begin));
        out.segments.push_back(static_cast<int32_t>(s));
      }
    }
    for (size_t t = begin; t < out.tokens.size(); ++t) {
      const bool text_follows = t + 1 < out.tokens.size() && out.sources[t + 1] < 0;
      out.targets.push_back(text_follows ? out.tokens[t + 1] : kIgnored);
    }
  }
  return out;
}

void start(const GeneratorPtr& generator, const Packed& prompt) {
  rrfp_error error = {};
  BatchData data;
  prompt.add_to(data);
  check(
      rrfp_generator_start_inputs(generator.get(), data.batch(RRFP_SAMPLES_INPUTS).inputs, &error),
      error);
}

std::vector<int32_t> tokens_of(const std::string& text) {
  return pack({text}).tokens;
}

}  // namespace rrfp::models
