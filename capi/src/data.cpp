// SPDX-License-Identifier: Apache-2.0
//
// Data, and generating from what has been trained on it.
#include "capi/src/train.h"

using namespace rrfp;        // NOLINT(google-build-using-namespace)
using namespace rrfp::capi;  // NOLINT(google-build-using-namespace)

static_assert(RRFP_DATA_U32 == static_cast<int32_t>(data::Format::kU32));
static_assert(RRFP_SPLIT_VALIDATION == static_cast<int32_t>(data::Split::kValidation));

void rrfp_data_options_init(rrfp_data_options* options) {
  init(options);
  if (options != nullptr) options->validation_share = data::CorpusOptions().validation_share;
}
void rrfp_data_info_init(rrfp_data_info* info) {
  init(info);
}
void rrfp_sampling_init(rrfp_sampling* sampling) {
  init(sampling);
  if (sampling == nullptr) return;
  const train::Sampling defaults;
  sampling->temperature = defaults.temperature;
  sampling->top_p = defaults.top_p;
}

// --- Data

rrfp_status rrfp_data_open(const rrfp_data_options* options, rrfp_data** out, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (options == nullptr) return null_argument("options");
    if (out == nullptr) return null_argument("out");
    rrfp_data_options o = {};
    rrfp_data_options_init(&o);
    if (Status s = load(options, "rrfp_data_options", o); !s.ok()) return s;
    if (Status s = check_enum("format", o.format, RRFP_DATA_U32); !s.ok()) return s;
    if (Status s = check_reserved("rrfp_data_options", o.reserved); !s.ok()) return s;
    if (o.path_count < 1) {
      return {Code::kInvalidArgument,
              "path_count is " + std::to_string(o.path_count) + "; expected at least 1"};
    }
    if (o.paths == nullptr) return null_argument("rrfp_data_options.paths");
    data::CorpusOptions read;
    for (int32_t k = 0; k < o.path_count; ++k) {
      if (o.paths[k] == nullptr) {
        return null_argument(("rrfp_data_options.paths[" + std::to_string(k) + "]").c_str());
      }
      read.paths.emplace_back(o.paths[k]);
    }
    read.format = static_cast<data::Format>(o.format);
    read.vocabulary = o.vocabulary;
    read.context = o.context;
    read.validation_share = o.validation_share;
    read.seed = o.seed;
    auto handle = std::make_unique<rrfp_data>();
    Status s = data::Corpus::open(read, handle->corpus);
    if (s.ok()) *out = handle.release();
    return s;
  });
}

void rrfp_data_destroy(rrfp_data* data) {
  (void)guard(nullptr, [&]() -> Status {
    delete data;
    return {};
  });
}

rrfp_status rrfp_data_get_info(const rrfp_data* data, rrfp_data_info* out, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (data == nullptr) return null_handle("data");
    if (out == nullptr) return null_argument("out");
    if (Status s = check_size(out, "rrfp_data_info"); !s.ok()) return s;
    rrfp_data_info info = {};
    info.vocabulary = data->corpus->vocabulary();
    info.tokens = data->corpus->token_count();
    info.train_windows = data->corpus->window_count(data::Split::kTrain);
    info.validation_windows = data->corpus->window_count(data::Split::kValidation);
    info.unigram_entropy = data->corpus->unigram_entropy();
    store(info, out);
    return {};
  });
}

rrfp_status rrfp_data_read(const rrfp_data* data, rrfp_split split, uint64_t position,
                           int32_t samples, int32_t* tokens, int32_t* targets, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (data == nullptr) return null_handle("data");
    if (tokens == nullptr) return null_argument("tokens");
    if (targets == nullptr) return null_argument("targets");
    if (Status s = check_enum("split", split, RRFP_SPLIT_VALIDATION); !s.ok()) return s;
    if (samples < 0) {
      return {Code::kInvalidArgument, "samples is " + std::to_string(samples) + "; it is negative"};
    }
    const auto from = static_cast<data::Split>(split);
    if (data->corpus->window_count(from) == 0) {
      return {Code::kBadState, "there are no samples in this split; give it a share of the data"};
    }
    const auto context = static_cast<size_t>(data->corpus->context());
    for (int32_t k = 0; k < samples; ++k) {
      const size_t at = static_cast<size_t>(k) * context;
      data->corpus->sample(from, position + static_cast<uint64_t>(k), {tokens + at, context},
                           {targets + at, context});
    }
    return {};
  });
}

// --- Generating

rrfp_status rrfp_generator_create(rrfp_trainer* trainer, int32_t context, rrfp_generator** out,
                                  rrfp_error* error) {
  return guard_trainer(trainer, error, [&](train::Trainer& t) -> Status {
    if (out == nullptr) return null_argument("out");
    auto handle = std::make_unique<rrfp_generator>();
    handle->trainer = trainer;
    Status s = train::Generator::create(t, context, handle->generator);
    if (s.ok()) *out = handle.release();
    return s;
  });
}

void rrfp_generator_destroy(rrfp_generator* generator) {
  (void)guard(nullptr, [&]() -> Status {
    delete generator;
    return {};
  });
}

rrfp_status rrfp_generator_start(rrfp_generator* generator, const int32_t* tokens, size_t count,
                                 rrfp_error* error) {
  return with_generator(generator, error, [&](train::Generator& g) -> Status {
    if (tokens == nullptr && count > 0) return null_argument("tokens");
    return g.start({tokens, count});
  });
}

rrfp_status rrfp_generator_next(rrfp_generator* generator, const rrfp_sampling* sampling,
                                int32_t* out_token, rrfp_error* error) {
  return with_generator(generator, error, [&](train::Generator& g) -> Status {
    if (out_token == nullptr) return null_argument("out_token");
    rrfp_sampling o = {};
    rrfp_sampling_init(&o);
    if (sampling != nullptr) {
      if (Status s = load(sampling, "rrfp_sampling", o); !s.ok()) return s;
    }
    return g.next(
        {.temperature = o.temperature, .top_k = o.top_k, .top_p = o.top_p, .seed = o.seed},
        *out_token);
  });
}

rrfp_status rrfp_generator_logits(rrfp_generator* generator, float* logits, size_t count,
                                  rrfp_error* error) {
  return with_generator(generator, error, [&](train::Generator& g) -> Status {
    if (logits == nullptr) return null_argument("logits");
    if (g.logits().empty()) return {Code::kBadState, "nothing has been read; call start first"};
    if (count != g.logits().size()) {
      return {Code::kInvalidArgument, "count is " + std::to_string(count) +
                                          "; the vocabulary has " +
                                          std::to_string(g.logits().size()) + " tokens"};
    }
    std::copy(g.logits().begin(), g.logits().end(), logits);
    return {};
  });
}
