// SPDX-License-Identifier: Apache-2.0
//
// The handles of rrfp/train.h.
#pragma once

#include <rrfp/train.h>

#include <atomic>

#include "capi/src/guard.h"
#include "engine/data/corpus.h"
#include "engine/model/gpt.h"
#include "engine/train/generator.h"

struct rrfp_model {
  rrfp::model::Graph graph;
};

struct rrfp_trainer : rrfp::capi::ProcessBound {
  std::unique_ptr<rrfp::train::Trainer> trainer;
  std::atomic<bool> in_call{false};
  std::vector<rrfp::train::InputArray>
      arrays;  // of the running call; kept so that it allocates nothing
};

struct rrfp_data {
  std::shared_ptr<const rrfp::data::Corpus> corpus;
};

struct rrfp_generator {
  rrfp_trainer* trainer;
  std::unique_ptr<rrfp::train::Generator> generator;
};

namespace rrfp::capi {

/// Reads one input of a microbatch. The memory stays the caller's.
Status read_input(const rrfp_tensor& in, train::InputArray& out);

/// In model.cpp. Flags and the size of the struct are checked; numbers are when a model is built.
Status read_gpt_options(const rrfp_gpt_options* options, model::GptOptions& out);

inline Status check_text(const char* name, const char* text) {
  if (text != nullptr) return {};
  return null_argument(name);
}

inline void write_shape(const model::Shape& shape, int32_t* out_ndim, int64_t* out) {
  if (out_ndim != nullptr) *out_ndim = shape.ndim;
  if (out != nullptr) std::copy_n(shape.dims.begin(), shape.ndim, out);
}

/// Runs the body of a function that uses a trainer; one thread at a time.
template <class Body>
rrfp_status guard_trainer(rrfp_trainer* trainer, rrfp_error* error, Body body) noexcept {
  return guard(error, [&]() -> Status {
    if (!usable(trainer)) return unusable(trainer, "trainer");
    if (trainer->in_call.exchange(true, std::memory_order_acquire)) {
      return {Code::kBusy, "another thread is inside a call on this trainer"};
    }
    struct Leave {
      std::atomic<bool>& in_call;
      ~Leave() { in_call.store(false, std::memory_order_release); }
    } const leave{trainer->in_call};
    return body(*trainer->trainer);
  });
}

/// Runs the body with the generator; its trainer must not be in use.
template <class Body>
rrfp_status with_generator(rrfp_generator* generator, rrfp_error* error, Body body) noexcept {
  if (generator == nullptr) {
    return guard(error, [] { return null_handle("generator"); });
  }
  return guard_trainer(generator->trainer, error,
                       [&](train::Trainer&) { return body(*generator->generator); });
}

}  // namespace rrfp::capi
