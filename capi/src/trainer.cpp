// SPDX-License-Identifier: Apache-2.0
#include "capi/src/train.h"
#include "engine/model/partition.h"
#include "engine/train/files.h"

using namespace rrfp;        // NOLINT(google-build-using-namespace)
using namespace rrfp::capi;  // NOLINT(google-build-using-namespace)

static_assert(RRFP_OPTIMIZER_SGD == static_cast<int32_t>(train::OptimizerKind::kSgd));
static_assert(RRFP_DECAY_LINEAR == static_cast<int32_t>(train::Decay::kLinear));
static_assert(RRFP_REDUCTION_SUM == static_cast<int32_t>(train::Reduction::kSum));
static_assert(RRFP_NON_FINITE_SKIP == static_cast<int32_t>(train::NonFinite::kSkip));
static_assert(RRFP_SLOT_MOMENT2 == static_cast<int32_t>(train::WeightSlot::kMoment2));

namespace {

Status read_pipeline(const rrfp_trainer_options& o, train::TrainerOptions& out) {
  rrfp_pipeline_options pipeline = {};
  rrfp_pipeline_options_init(&pipeline);
  if ((o.flags & RRFP_TRAINER_NONDETERMINISTIC) != 0) {
    pipeline.flags |= RRFP_PIPELINE_NONDETERMINISTIC;
  }
  pipeline.order = o.order;
  pipeline.wake = o.wake;
  pipeline.hold_permille = o.hold_permille;
  pipeline.cap_slots = o.cap_slots;
  pipeline.cap_bytes = o.cap_bytes;
  pipeline.watchdog_ms = o.watchdog_ms;
  pipeline.log = o.log;
  pipeline.log_user_data = o.log_user_data;
  // One rank's caps stand for all; their number is not known yet.
  if (Status s = read_pipeline_options(pipeline, 1, out.pipeline); !s.ok()) return s;
  out.cap = out.pipeline.caps[0];
  return {};
}

Status read_options(const rrfp_trainer_options& o, train::TrainerOptions& out) {
  constexpr rrfp_trainer_flags kKnown =
      RRFP_TRAINER_NONDETERMINISTIC | RRFP_TRAINER_RECOMPUTE | RRFP_TRAINER_AUTO;
  for (const Status& s : {check_flags("rrfp_trainer_options.flags", o.flags, kKnown),
                          check_enum("injection", o.injection, RRFP_INJECTION_TENT),
                          check_enum("placement", o.placement, RRFP_PLACEMENT_V),
                          check_enum("optimizer", o.optimizer, RRFP_OPTIMIZER_SGD),
                          check_enum("decay", o.decay, RRFP_DECAY_LINEAR),
                          check_enum("reduction", o.reduction, RRFP_REDUCTION_SUM),
                          check_enum("non_finite", o.non_finite, RRFP_NON_FINITE_SKIP)}) {
    if (!s.ok()) return s;
  }
  if (Status s = read_pipeline(o, out); !s.ok()) return s;
  out.stages = o.stages == 0 ? 1 : o.stages;
  out.ranks = o.ranks;
  out.placement = static_cast<core::Placement>(o.placement);
  if (o.first_blocks != nullptr && out.stages > 0) {
    out.first_blocks.assign(o.first_blocks, o.first_blocks + out.stages);
  }
  if (o.stage_ranks != nullptr && out.stages > 0) {
    out.stage_ranks.assign(o.stage_ranks, o.stage_ranks + out.stages);
  }
  if (o.hint != nullptr) out.hint = o.hint->hint;
  out.choose_hint = (o.flags & RRFP_TRAINER_AUTO) != 0;
  if (out.choose_hint &&
      (o.hint != nullptr || o.order != RRFP_ORDER_DEFAULT || o.hold_permille != 0)) {
    return {Code::kInvalidArgument,
            "RRFP_TRAINER_AUTO chooses hint, order and holding; they must not be set"};
  }
  out.injection =
      o.injection == RRFP_INJECTION_DATA ? train::Injection::kData : train::Injection::kTent;
  out.recompute = (o.flags & RRFP_TRAINER_RECOMPUTE) != 0;
  out.optimizer = {.kind = static_cast<train::OptimizerKind>(o.optimizer),
                   .decay = static_cast<train::Decay>(o.decay),
                   .lr = o.lr,
                   .lr_min = o.lr_min,
                   .warmup_steps = o.warmup_steps,
                   .decay_steps = o.decay_steps,
                   .beta1 = o.beta1,
                   .beta2 = o.beta2,
                   .epsilon = o.epsilon,
                   .weight_decay = o.weight_decay,
                   .momentum = o.momentum,
                   .clip_norm = o.clip_norm};
  out.reduction = static_cast<train::Reduction>(o.reduction);
  out.non_finite = static_cast<train::NonFinite>(o.non_finite);
  out.loss_scale = o.loss_scale;
  out.loss_scale_growth = o.loss_scale_growth;
  out.seed = o.seed;
  out.trace_steps = o.trace_steps;
  out.delay_us_max = o.delay_us_max;
  return {};
}

/// `arrays` is where the inputs go; `out` refers to it.
Status read_batch(const rrfp_batch* batch, size_t inputs, std::vector<train::InputArray>& arrays,
                  train::Batch& out) {
  if (batch == nullptr) return null_argument("batch");
  rrfp_batch b = {};
  if (Status s = load(batch, "rrfp_batch", b); !s.ok()) return s;
  if (Status s = check_flags("rrfp_batch.flags", b.flags, RRFP_BATCH_KEEP_GRADIENTS); !s.ok()) {
    return s;
  }
  if (b.microbatches < 1 || b.microbatches > core::StepTasks::kMicrobatchesMax) {
    return {Code::kInvalidArgument, "microbatches is " + std::to_string(b.microbatches) +
                                        "; expected 1 to " +
                                        std::to_string(core::StepTasks::kMicrobatchesMax)};
  }
  if (b.inputs == nullptr && inputs > 0) return null_argument("rrfp_batch.inputs");
  const size_t count = static_cast<size_t>(b.microbatches) * inputs;
  arrays.resize(count);
  for (size_t k = 0; k < count; ++k) {
    if (Status s = read_input(b.inputs[k], arrays[k]); !s.ok()) {
      return {s.code(), "input " + std::to_string(k % inputs) + " of microbatch " +
                            std::to_string(k / inputs) + ": " + s.text()};
    }
  }
  out.microbatches = b.microbatches;
  out.rounds = b.rounds == 0 ? 1 : b.rounds;
  out.keep_gradients = (b.flags & RRFP_BATCH_KEEP_GRADIENTS) != 0;
  if (b.random_step < 0 || b.random_step > UINT32_MAX) {
    return {Code::kInvalidArgument, "random_step is " + std::to_string(b.random_step) +
                                        "; expected 0 to " + std::to_string(UINT32_MAX)};
  }
  out.random_step = b.random_step;
  out.inputs = arrays;
  out.loss_factors = {b.loss_factors,
                      b.loss_factors != nullptr ? static_cast<size_t>(b.microbatches) : 0};
  return {};
}

void write_report(const train::TrainReport& in, rrfp_train_report* out) {
  rrfp_train_report report = {};
  report.flags = in.skipped ? RRFP_TRAIN_SKIPPED : 0;
  report.step = in.step;
  report.loss = in.loss;
  report.loss_sum = in.loss_sum;
  report.loss_weight = in.loss_weight;
  report.gradient_norm = in.gradient_norm;
  report.lr = in.lr;
  report.loss_scale = in.loss_scale;
  report.wall_ns = in.wall_ns;
  report.total_ns = in.time.total_ns;
  report.busy_ns = in.time.busy_ns;
  report.wait_input_ns = in.time.wait_input_ns;
  report.wait_memory_ns = in.time.wait_memory_ns;
  report.wait_credit_ns = in.time.wait_credit_ns;
  report.wait_policy_ns = in.time.wait_policy_ns;
  report.other_ns = in.time.other_ns;
  report.state_bytes = in.state_bytes;
  report.tensor_bytes_peak = in.tensor_bytes_peak;
  store(report, out);
}

Status find_array(const train::Trainer& trainer, int32_t parameter, rrfp_slot slot, size_t count,
                  float*& out) {
  const train::Weights& weights = trainer.weights();
  if (parameter < 0 || static_cast<size_t>(parameter) >= weights.count()) {
    return {Code::kOutOfRange, "parameter is " + std::to_string(parameter) +
                                   "; the model has parameters 0 to " +
                                   std::to_string(static_cast<int64_t>(weights.count()) - 1)};
  }
  if (Status s = check_enum("slot", slot, RRFP_SLOT_MOMENT2); !s.ok()) return s;
  const auto p = static_cast<size_t>(parameter);
  const std::string& name = trainer.graph().parameters()[p].name;
  const auto elements = static_cast<size_t>(weights.elements(p));
  if (count != elements) {
    return {Code::kInvalidArgument, "count is " + std::to_string(count) + "; parameter " + name +
                                        " has " + std::to_string(elements) + " elements"};
  }
  out = weights.array(p, static_cast<train::WeightSlot>(slot));
  if (out != nullptr) return {};
  return {Code::kBadState, "parameter " + name + " has no array of slot " + std::to_string(slot) +
                               ": it is frozen, or the loss does not depend on it, or the "
                               "optimizer keeps none"};
}

}  // namespace

Status capi::read_input(const rrfp_tensor& in, train::InputArray& out) {
  if (in.ndim < 1 || in.ndim > RRFP_DIMS_MAX) {
    return {Code::kTensorMismatch, "ndim is " + std::to_string(in.ndim) + "; expected 1 to " +
                                       std::to_string(RRFP_DIMS_MAX)};
  }
  if (in.dtype != RRFP_F32 && in.dtype != RRFP_I32) {
    return {Code::kTensorMismatch,
            "dtype is " + std::to_string(in.dtype) + "; expected RRFP_F32 or RRFP_I32"};
  }
  if (in.buffer != nullptr || (in.device_type != 0 && in.device_type != RRFP_DEVICE_CPU)) {
    return {Code::kTensorMismatch, "expected memory of the caller on the CPU, without a buffer"};
  }
  int64_t elements = 1;
  for (int32_t d = 0; d < in.ndim; ++d) {
    // 0 counts as 1 in the bound: products of the other extents are computed, too.
    const int64_t factor = std::max<int64_t>(in.shape[d], 1);
    if (in.shape[d] < 0 || elements > model::Shape::kElementsMax / factor) {
      return {Code::kTensorMismatch, "extent " + std::to_string(d) + " is " +
                                         std::to_string(in.shape[d]) +
                                         "; expected at least 0, and not too large"};
    }
    elements *= factor;
  }
  // Of no elements, none has a wrong place.
  const bool empty = std::find(in.shape, in.shape + in.ndim, 0) != in.shape + in.ndim;
  const bool strided = !empty && std::any_of(in.strides, in.strides + in.ndim,
                                             [](int64_t stride) { return stride != 0; });
  int64_t expected = 1;
  for (int32_t d = in.ndim; strided && d-- > 0;) {
    if (in.shape[d] != 1 && in.strides[d] != expected) {
      return {Code::kTensorMismatch, "stride " + std::to_string(d) + " is " +
                                         std::to_string(in.strides[d]) +
                                         "; expected the contiguous " + std::to_string(expected)};
    }
    expected *= in.shape[d];
  }
  out.shape = model::Shape(std::span(in.shape, static_cast<size_t>(in.ndim)));
  out.type = in.dtype == RRFP_I32 ? model::ValueType::kI32 : model::ValueType::kF32;
  out.data = in.data;
  return {};
}

void rrfp_trainer_options_init(rrfp_trainer_options* options) {
  init(options);
  if (options == nullptr) return;
  const train::OptimizerOptions defaults;
  options->lr = defaults.lr;
  options->beta1 = defaults.beta1;
  options->beta2 = defaults.beta2;
  options->epsilon = defaults.epsilon;
  options->weight_decay = defaults.weight_decay;
}
void rrfp_batch_init(rrfp_batch* batch) {
  init(batch);
}
void rrfp_train_report_init(rrfp_train_report* report) {
  init(report);
}
void rrfp_save_options_init(rrfp_save_options* options) {
  init(options);
}

// --- Lifetime and steps

rrfp_status rrfp_trainer_create(const rrfp_model* model, const rrfp_trainer_options* options,
                                rrfp_trainer** out, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (model == nullptr) return null_handle("model");
    if (out == nullptr) return null_argument("out");
    rrfp_trainer_options o = {};
    rrfp_trainer_options_init(&o);
    if (options != nullptr) {
      if (Status s = load(options, "rrfp_trainer_options", o); !s.ok()) return s;
    }
    train::TrainerOptions read;
    if (Status s = read_options(o, read); !s.ok()) return s;
    auto handle = std::make_unique<rrfp_trainer>();
    Status s = train::Trainer::create(model->graph, read, handle->trainer);
    if (s.ok()) *out = handle.release();
    return s;
  });
}

void rrfp_trainer_destroy(rrfp_trainer* trainer) {
  if (!usable(trainer)) return;
  (void)guard(nullptr, [&]() -> Status {
    delete trainer;
    return {};
  });
}

rrfp_status rrfp_trainer_step(rrfp_trainer* trainer, const rrfp_batch* batch,
                              rrfp_train_report* out, rrfp_error* error) {
  return guard_trainer(trainer, error, [&](train::Trainer& t) -> Status {
    if (out != nullptr) {
      if (Status s = check_size(out, "rrfp_train_report"); !s.ok()) return s;
    }
    train::Batch read;
    Status s = read_batch(batch, t.graph().inputs().size(), trainer->arrays, read);
    if (!s.ok()) return s;
    train::TrainReport report;
    s = t.step(read, report);
    if (s.ok() && out != nullptr) write_report(report, out);
    return s;
  });
}

rrfp_status rrfp_trainer_evaluate(rrfp_trainer* trainer, const rrfp_batch* batch,
                                  rrfp_train_report* out, rrfp_error* error) {
  return guard_trainer(trainer, error, [&](train::Trainer& t) -> Status {
    if (out != nullptr) {
      if (Status s = check_size(out, "rrfp_train_report"); !s.ok()) return s;
    }
    train::Batch read;
    Status s = read_batch(batch, t.graph().inputs().size(), trainer->arrays, read);
    if (!s.ok()) return s;
    if (read.rounds != 1 || read.keep_gradients) {
      return {Code::kInvalidArgument, "rounds is " + std::to_string(read.rounds) + " and flags " +
                                          std::to_string(batch->flags) +
                                          "; an evaluation has one round and no flags"};
    }
    train::TrainReport report;
    s = t.evaluate(read, report);
    if (s.ok() && out != nullptr) write_report(report, out);
    return s;
  });
}

rrfp_status rrfp_trainer_cancel(rrfp_trainer* trainer, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (!usable(trainer)) return unusable(trainer, "trainer");
    trainer->trainer->cancel();
    return {};
  });
}

// --- Looking

void rrfp_trainer_info_init(rrfp_trainer_info* info) {
  init(info);
}

rrfp_status rrfp_trainer_get_info(rrfp_trainer* trainer, rrfp_trainer_info* out,
                                  rrfp_error* error) {
  return guard_trainer(trainer, error, [&](train::Trainer& t) -> Status {
    if (out == nullptr) return null_argument("out");
    if (Status s = check_size(out, "rrfp_trainer_info"); !s.ok()) return s;
    rrfp_trainer_info info = {};
    info.stages = static_cast<int32_t>(t.first_blocks().size());
    info.ranks = t.rank_count();
    info.parameters = static_cast<int32_t>(t.weights().count());
    info.steps = t.steps();
    info.updates = t.updates();
    info.seed = t.seed();
    store(info, out);
    return {};
  });
}

rrfp_status rrfp_trainer_rank_report(rrfp_trainer* trainer, int32_t rank, rrfp_step_report* out,
                                     rrfp_error* error) {
  return guard_trainer(trainer, error, [&](train::Trainer& t) -> Status {
    if (out == nullptr) return null_argument("out");
    if (Status s = check_size(out, "rrfp_step_report"); !s.ok()) return s;
    if (rank < 0 || rank >= t.rank_count()) {
      return {Code::kOutOfRange, "rank is " + std::to_string(rank) + "; expected 0 to " +
                                     std::to_string(t.rank_count() - 1)};
    }
    write_step_report(rank, t.rank_report(rank), out);
    return {};
  });
}

void rrfp_stage_report_init(rrfp_stage_report* report) {
  init(report);
}

rrfp_status rrfp_trainer_stage_report(rrfp_trainer* trainer, int32_t stage, rrfp_stage_report* out,
                                      rrfp_error* error) {
  return guard_trainer(trainer, error, [&](train::Trainer& t) -> Status {
    if (out == nullptr) return null_argument("out");
    if (Status s = check_size(out, "rrfp_stage_report"); !s.ok()) return s;
    const auto stages = static_cast<int32_t>(t.first_blocks().size());
    if (stage < 0 || stage >= stages) {
      return {Code::kOutOfRange, "stage is " + std::to_string(stage) + "; expected 0 to " +
                                     std::to_string(stages - 1)};
    }
    rrfp_stage_report report = {};
    report.rank = t.rank_of(stage);
    report.first_block = t.blocks_of(stage).first_block;
    report.last_block = t.blocks_of(stage).last_block;
    report.branch = t.branch_of(stage);
    report.microbatches = t.stage_work(stage).microbatches;
    report.busy_ns = t.stage_work(stage).busy_ns;
    store(report, out);
    return {};
  });
}

rrfp_status rrfp_trainer_first_blocks(rrfp_trainer* trainer, int32_t* first_blocks,
                                      rrfp_error* error) {
  return guard_trainer(trainer, error, [&](train::Trainer& t) -> Status {
    if (first_blocks == nullptr) return null_argument("first_blocks");
    std::copy(t.first_blocks().begin(), t.first_blocks().end(), first_blocks);
    return {};
  });
}

rrfp_status rrfp_trainer_losses(rrfp_trainer* trainer, double* losses, size_t count,
                                rrfp_error* error) {
  return guard_trainer(trainer, error, [&](train::Trainer& t) -> Status {
    if (losses == nullptr) return null_argument("losses");
    const size_t known = t.graph().losses().size();
    if (count != known) {
      return {Code::kInvalidArgument, "count is " + std::to_string(count) + "; the model has " +
                                          std::to_string(known) +
                                          (known == 1 ? " loss" : " losses")};
    }
    if (t.losses().empty()) return {Code::kBadState, "no step or evaluation has been done yet"};
    std::copy(t.losses().begin(), t.losses().end(), losses);
    return {};
  });
}

rrfp_status rrfp_trainer_read(rrfp_trainer* trainer, int32_t parameter, rrfp_slot slot, float* data,
                              size_t count, rrfp_error* error) {
  return guard_trainer(trainer, error, [&](train::Trainer& t) -> Status {
    if (data == nullptr) return null_argument("data");
    float* array = nullptr;
    if (Status s = find_array(t, parameter, slot, count, array); !s.ok()) return s;
    std::copy_n(array, count, data);
    return {};
  });
}

rrfp_status rrfp_trainer_write(rrfp_trainer* trainer, int32_t parameter, rrfp_slot slot,
                               const float* data, size_t count, rrfp_error* error) {
  return guard_trainer(trainer, error, [&](train::Trainer& t) -> Status {
    if (data == nullptr) return null_argument("data");
    float* array = nullptr;
    if (Status s = find_array(t, parameter, slot, count, array); !s.ok()) return s;
    std::copy_n(data, count, array);
    if (slot == RRFP_SLOT_GRADIENT) t.gradients_changed();
    return {};
  });
}

rrfp_status rrfp_trainer_weights_sha256(rrfp_trainer* trainer, char* buffer, size_t capacity,
                                        size_t* out_size, rrfp_error* error) {
  return guard_trainer(trainer, error, [&](train::Trainer& t) {
    return put_text(t.weights_sha256(), buffer, capacity, out_size);
  });
}

rrfp_status rrfp_trainer_describe_hint(rrfp_trainer* trainer, char* buffer, size_t capacity,
                                       size_t* out_size, rrfp_error* error) {
  return guard_trainer(trainer, error, [&](train::Trainer& t) -> Status {
    const std::string why = t.hint_why();
    return put_text(why.empty() ? t.hint_name() : why, buffer, capacity, out_size);
  });
}

rrfp_status rrfp_trainer_write_trace(rrfp_trainer* trainer, const char* path, rrfp_error* error) {
  return guard_trainer(trainer, error, [&](train::Trainer& t) -> Status {
    if (path == nullptr) return null_argument("path");
    return t.write_trace(path);
  });
}

// --- Checkpoints

rrfp_status rrfp_trainer_save(rrfp_trainer* trainer, const rrfp_save_options* options,
                              rrfp_error* error) {
  return guard_trainer(trainer, error, [&](train::Trainer& t) -> Status {
    if (options == nullptr) return null_argument("options");
    rrfp_save_options o = {};
    if (Status s = load(options, "rrfp_save_options", o); !s.ok()) return s;
    if (o.root == nullptr) return null_argument("rrfp_save_options.root");
    if (o.keep < 0) {
      return {Code::kInvalidArgument, "keep is " + std::to_string(o.keep) + "; it is negative"};
    }
    return t.save(o.root, o.position, o.user_json != nullptr ? o.user_json : "", o.keep);
  });
}

rrfp_status rrfp_trainer_load(rrfp_trainer* trainer, const char* path, rrfp_load_flags flags,
                              uint64_t* out_position, rrfp_error* error) {
  return guard_trainer(trainer, error, [&](train::Trainer& t) -> Status {
    if (path == nullptr) return null_argument("path");
    if (Status s = check_flags("flags", flags, RRFP_LOAD_WEIGHTS_ONLY); !s.ok()) return s;
    uint64_t position = 0;
    Status s = t.load(path, (flags & RRFP_LOAD_WEIGHTS_ONLY) != 0, position);
    if (s.ok() && out_position != nullptr) *out_position = position;
    return s;
  });
}

rrfp_status rrfp_checkpoint_describe(const char* path, char* buffer, size_t capacity,
                                     size_t* out_size, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (path == nullptr) return null_argument("path");
    std::shared_ptr<const train::Checkpoint> checkpoint;
    if (Status s = train::Checkpoint::open(path, checkpoint); !s.ok()) return s;
    train::InputFile file;
    if (Status s = file.open(checkpoint->path() + "/state.json"); !s.ok()) return s;
    std::string text(file.bytes(), '\0');
    if (Status s = file.read(0, text.data(), text.size()); !s.ok()) return s;
    return put_text(text, buffer, capacity, out_size);
  });
}
