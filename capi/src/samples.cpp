// SPDX-License-Identifier: Apache-2.0
//
// Samples of pictures and text.
#include "capi/src/samples.h"

#include "engine/data/picture.h"

using namespace rrfp;        // NOLINT(google-build-using-namespace)
using namespace rrfp::capi;  // NOLINT(google-build-using-namespace)

static_assert(RRFP_TOKEN_IMAGE == data::kTokenPicture);
static_assert(RRFP_TOKEN_END == data::kTokenEnd);
static_assert(RRFP_SAMPLES_VOCABULARY == data::kTokenEnd + 1);
static_assert(RRFP_GROUPING_COST == static_cast<int32_t>(data::Grouping::kCost));
static_assert(RRFP_SPLIT_VALIDATION == static_cast<int32_t>(data::Split::kValidation));

void rrfp_samples_options_init(rrfp_samples_options* options) {
  init(options);
  if (options == nullptr) return;
  const data::SamplesOptions defaults;
  options->validation_share = defaults.validation_share;
  options->pixels_max = defaults.pixels_max;
}
void rrfp_samples_info_init(rrfp_samples_info* info) {
  init(info);
}

rrfp_status rrfp_samples_open(const rrfp_samples_options* options, rrfp_samples** out,
                              rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (options == nullptr) return null_argument("options");
    if (out == nullptr) return null_argument("out");
    rrfp_samples_options o = {};
    rrfp_samples_options_init(&o);
    if (Status s = load(options, "rrfp_samples_options", o); !s.ok()) return s;
    if (Status s = check_enum("grouping", o.grouping, RRFP_GROUPING_COST); !s.ok()) return s;
    if (o.path == nullptr) return null_argument("rrfp_samples_options.path");
    data::SamplesOptions read;
    read.path = o.path;
    read.grouping = static_cast<data::Grouping>(o.grouping);
    read.image_size = o.image_size;
    read.image_tokens = o.image_tokens;
    read.context = o.context;
    read.ahead = o.ahead;
    read.validation_share = o.validation_share;
    read.image_cost = o.image_cost;
    read.seed = o.seed;
    if (o.pixels_max != 0) read.pixels_max = o.pixels_max;
    auto handle = std::make_unique<rrfp_samples>();
    Status s = data::Samples::open(read, handle->samples);
    if (s.ok()) *out = handle.release();
    return s;
  });
}

void rrfp_samples_destroy(rrfp_samples* samples) {
  if (!usable(samples)) return;
  (void)guard(nullptr, [&]() -> Status {
    delete samples;
    return {};
  });
}

rrfp_status rrfp_samples_get_info(const rrfp_samples* samples, rrfp_samples_info* out,
                                  rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(samples)) return unusable(samples, "samples");
    if (out == nullptr) return null_argument("out");
    if (Status s = check_size(out, "rrfp_samples_info"); !s.ok()) return s;
    const data::Samples& s = *samples->samples;
    rrfp_samples_info info = {};
    info.train_samples = static_cast<int64_t>(s.count(data::Split::kTrain));
    info.validation_samples = static_cast<int64_t>(s.count(data::Split::kValidation));
    info.images = s.manifest().pictures();
    info.images_max = s.manifest().pictures_max();
    info.tokens = s.manifest().tokens();
    store(info, out);
    return {};
  });
}

namespace {

template <class Value>
rrfp_tensor tensor_of(std::vector<Value>& values, rrfp_dtype dtype,
                      std::initializer_list<int64_t> shape) {
  // Tensors without elements, too, have an address.
  if (values.capacity() == 0) values.reserve(1);
  rrfp_tensor tensor = {};
  tensor.data = values.data();
  tensor.dtype = dtype;
  tensor.device_type = RRFP_DEVICE_CPU;
  tensor.ndim = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), tensor.shape);
  return tensor;
}

/// Views of the microbatches.
void write_batch(rrfp_samples& samples, rrfp_batch* out) {
  samples.inputs.clear();
  const int64_t side = samples.samples->image_size();
  for (data::Microbatch& m : samples.microbatches) {
    const auto tokens = static_cast<int64_t>(m.tokens.size());
    for (auto* values : {&m.tokens, &m.targets, &m.segments, &m.positions, &m.sources}) {
      samples.inputs.push_back(tensor_of(*values, RRFP_I32, {1, tokens}));
    }
    samples.inputs.push_back(tensor_of(m.images, RRFP_F32, {m.image_count, side, side, 3}));
  }
  // The rest is the caller's.
  out->microbatches = static_cast<int32_t>(samples.microbatches.size());
  out->rounds = 0;
  out->inputs = samples.inputs.data();
}

/// Runs the body of a function that reads a batch; one thread at a time.
template <class Body>
rrfp_status read_batch(rrfp_samples* samples, rrfp_split split, rrfp_batch* out_batch,
                       rrfp_error* error, Body body) noexcept {
  return guard(error, [&]() -> Status {
    if (!usable(samples)) return unusable(samples, "samples");
    if (out_batch == nullptr) return null_argument("out_batch");
    if (Status s = check_size(out_batch, "rrfp_batch"); !s.ok()) return s;
    if (Status s = check_enum("split", split, RRFP_SPLIT_VALIDATION); !s.ok()) return s;
    if (samples->in_call.exchange(true, std::memory_order_acquire)) {
      return {Code::kBusy, "another thread is inside a call on these samples"};
    }
    struct Leave {
      std::atomic<bool>& in_call;
      ~Leave() { in_call.store(false, std::memory_order_release); }
    } const leave{samples->in_call};
    if (Status s = body(*samples->samples, static_cast<data::Split>(split)); !s.ok()) return s;
    write_batch(*samples, out_batch);
    return {};
  });
}

}  // namespace

rrfp_status rrfp_samples_read(rrfp_samples* samples, rrfp_split split, uint64_t position,
                              int32_t count, int32_t microbatches, rrfp_batch* out_batch,
                              rrfp_error* error) {
  return read_batch(samples, split, out_batch, error, [&](data::Samples& s, data::Split from) {
    return s.read(from, position, count, microbatches, samples->microbatches);
  });
}

rrfp_status rrfp_samples_read_at(rrfp_samples* samples, rrfp_split split, const uint64_t* positions,
                                 int32_t count, int32_t microbatches, rrfp_batch* out_batch,
                                 rrfp_error* error) {
  return read_batch(samples, split, out_batch, error,
                    [&](data::Samples& s, data::Split from) -> Status {
                      if (positions == nullptr) return null_argument("positions");
                      if (count < 1) {
                        return {Code::kInvalidArgument,
                                "count is " + std::to_string(count) + ", expected at least 1"};
                      }
                      return s.read_at(from, {positions, static_cast<size_t>(count)}, microbatches,
                                       samples->microbatches);
                    });
}

rrfp_status rrfp_picture_read(const char* path, int32_t image_size, int64_t pixels_max,
                              float* pixels, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (path == nullptr) return null_argument("path");
    if (pixels == nullptr) return null_argument("pixels");
    if (image_size < 1 || image_size > data::kImageSizeMax) {
      return {Code::kInvalidArgument, "image_size is " + std::to_string(image_size) +
                                          ", expected 1 .. " + std::to_string(data::kImageSizeMax)};
    }
    if (pixels_max < 0) {
      return {Code::kInvalidArgument,
              "pixels_max is " + std::to_string(pixels_max) + "; it is negative"};
    }
    const auto side = static_cast<size_t>(image_size);
    return data::read_picture(path, image_size,
                              pixels_max == 0 ? data::kPixelsMaxDefault : pixels_max,
                              {pixels, side * side * 3});
  });
}
