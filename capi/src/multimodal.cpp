// SPDX-License-Identifier: Apache-2.0
//
// The vision-language model, and captions.
#include <rrfp/multimodal.h>

#include "capi/src/train.h"
#include "engine/model/vision_language.h"

using namespace rrfp;        // NOLINT(google-build-using-namespace)
using namespace rrfp::capi;  // NOLINT(google-build-using-namespace)

static_assert(RRFP_SAMPLES_INPUTS == model::kVisionLanguageInputs);

void rrfp_vision_options_init(rrfp_vision_options* options) {
  init(options);
}

rrfp_status rrfp_model_create_vision_language(const rrfp_gpt_options* language,
                                              const rrfp_vision_options* vision, rrfp_model** out,
                                              rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (language == nullptr) return null_argument("language");
    if (vision == nullptr) return null_argument("vision");
    if (out == nullptr) return null_argument("out");
    model::GptOptions text;
    if (Status s = read_gpt_options(language, text); !s.ok()) return s;
    rrfp_vision_options o = {};
    if (Status s = load(vision, "rrfp_vision_options", o); !s.ok()) return s;
    constexpr rrfp_vision_flags kKnown = RRFP_VISION_FROZEN | RRFP_VISION_CONV_STEM;
    if (Status s = check_flags("rrfp_vision_options.flags", o.flags, kKnown); !s.ok()) return s;
    auto handle = std::make_unique<rrfp_model>();
    Status s = build_vision_language(text,
                                     {.image_size = o.image_size,
                                      .patch = o.patch,
                                      .layers = o.layers,
                                      .dim = o.dim,
                                      .heads = o.heads,
                                      .hidden = o.hidden,
                                      .frozen = (o.flags & RRFP_VISION_FROZEN) != 0,
                                      .conv_stem = (o.flags & RRFP_VISION_CONV_STEM) != 0},
                                     handle->graph);
    if (s.ok()) *out = handle.release();
    return s;
  });
}

rrfp_status rrfp_generator_start_inputs(rrfp_generator* generator, const rrfp_tensor* inputs,
                                        rrfp_error* error) {
  return with_generator(generator, error, [&](train::Generator& g) -> Status {
    if (inputs == nullptr) return null_argument("inputs");
    std::array<train::InputArray, model::kVisionLanguageInputs> arrays;
    for (size_t k = 0; k < arrays.size(); ++k) {
      if (k == model::kTargets) continue;  // may be anything
      if (Status s = read_input(inputs[k], arrays[k]); !s.ok()) {
        return {s.code(), "input " + std::to_string(k) + ": " + s.text()};
      }
    }
    return g.start_inputs(arrays);
  });
}
