// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

#include <ostream>

namespace rrfp::models {

rrfp_error failure_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const CallFailed& failed) {
    return failed.error;
  }
  return {};
}

Builder::Builder() {
  rrfp_error error = {};
  rrfp_model* made = nullptr;
  check(rrfp_model_create(&made, &error), error);
  model.reset(made);
}

void Builder::block(const char* name, rrfp_block_flags flags) {
  rrfp_error error = {};
  check(rrfp_model_begin_block(model.get(), name, flags, nullptr, &error), error);
}

int32_t Builder::input(const char* name, rrfp_dtype dtype, std::vector<int64_t> shape) {
  rrfp_error error = {};
  int32_t value = -1;
  check(rrfp_model_add_input(model.get(), name, dtype, static_cast<int32_t>(shape.size()),
                             shape.data(), &value, &error),
        error);
  return value;
}

int32_t Builder::parameter(const std::string& name, std::vector<int64_t> shape, double scale,
                           rrfp_parameter_flags flags, double value) {
  rrfp_error error = {};
  rrfp_parameter_options options;
  rrfp_parameter_options_init(&options);
  options.name = name.c_str();
  options.shape = shape.data();
  options.ndim = static_cast<int32_t>(shape.size());
  options.init = scale > 0 ? RRFP_INIT_UNIFORM : RRFP_INIT_CONSTANT;
  options.init_scale = scale;
  options.init_value = value;
  options.flags = flags;
  int32_t parameter = -1;
  check(rrfp_model_add_parameter(model.get(), &options, &parameter, &error), error);
  return parameter;
}

int32_t Builder::op(rrfp_op kind, const std::vector<int32_t>& inputs,
                    const std::vector<int32_t>& parameters, const Extra& extra) {
  rrfp_error error = {};
  rrfp_operation operation;
  rrfp_operation_init(&operation);
  operation.op = kind;
  operation.inputs = inputs.data();
  operation.input_count = static_cast<int32_t>(inputs.size());
  operation.parameters = parameters.data();
  operation.parameter_count = static_cast<int32_t>(parameters.size());
  operation.flags = extra.flags;
  operation.axis = extra.axis;
  operation.heads = extra.heads;
  operation.kv_heads = extra.kv_heads;
  operation.head_dim = extra.head_dim;
  operation.ignore_index = extra.ignore_index;
  operation.probability = extra.probability;
  operation.epsilon = extra.epsilon;
  operation.base = extra.base;
  operation.kernel = extra.kernel;
  operation.stride = extra.stride;
  operation.padding = extra.padding;
  operation.shape = extra.shape.data();
  operation.ndim = static_cast<int32_t>(extra.shape.size());
  int32_t value = -1;
  check(rrfp_model_add_operation(model.get(), &operation, &value, &error), error);
  return value;
}

void Builder::loss(int32_t value) {
  rrfp_error error = {};
  check(rrfp_model_set_loss(model.get(), value, &error), error);
}
void Builder::output(int32_t value) {
  rrfp_error error = {};
  check(rrfp_model_set_output(model.get(), value, &error), error);
}

ModelPtr make_gpt(const rrfp_gpt_options& options) {
  rrfp_error error = {};
  rrfp_model* model = nullptr;
  check(rrfp_model_create_gpt(&options, &model, &error), error);
  return ModelPtr(model);
}

rrfp_gpt_options small_gpt(rrfp_gpt_flags flags, double dropout) {
  rrfp_gpt_options options;
  rrfp_gpt_options_init(&options);
  options.flags = flags;
  options.vocabulary = 32;
  options.context = 16;
  options.layers = 4;
  options.dim = 16;
  options.heads = 2;
  options.dropout = dropout;
  return options;
}

HintPtr make_hint(const std::string& name) {
  rrfp_error error = {};
  rrfp_hint* hint = nullptr;
  check(rrfp_hint_create(name.c_str(), &hint, &error), error);
  return HintPtr(hint);
}

rrfp_trainer_options trainer_options(int32_t stages) {
  rrfp_trainer_options options;
  rrfp_trainer_options_init(&options);
  options.stages = stages;
  options.seed = 7;
  options.watchdog_ms = 20000;
  return options;
}

TrainerPtr make_trainer(rrfp_model* model, const rrfp_trainer_options& options) {
  rrfp_error error = {};
  rrfp_trainer* trainer = nullptr;
  check(rrfp_trainer_create(model, &options, &trainer, &error), error);
  return TrainerPtr(trainer);
}

void BatchData::add(void* data, rrfp_dtype dtype, const std::vector<int64_t>& shape) {
  rrfp_tensor tensor = {};
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.ndim = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), tensor.shape);
  tensors_.push_back(tensor);
}
void BatchData::add_i32(std::vector<int32_t> data, std::vector<int64_t> shape) {
  ints_.push_back(std::make_unique<std::vector<int32_t>>(std::move(data)));
  add(ints_.back()->data(), RRFP_I32, shape);
}
void BatchData::add_f32(std::vector<float> data, std::vector<int64_t> shape) {
  floats_.push_back(std::make_unique<std::vector<float>>(std::move(data)));
  add(floats_.back()->data(), RRFP_F32, shape);
}

rrfp_batch BatchData::batch(size_t inputs, rrfp_batch_flags flags, int32_t rounds) {
  rrfp_batch batch;
  rrfp_batch_init(&batch);
  batch.flags = flags;
  batch.microbatches = static_cast<int32_t>(tensors_.size() / inputs);
  batch.rounds = rounds;
  batch.inputs = tensors_.data();
  return batch;
}

BatchData random_tokens(int32_t microbatches, int64_t samples, int64_t length, int32_t vocabulary,
                        uint64_t seed) {
  Random random(seed);
  BatchData data;
  for (int32_t i = 0; i < microbatches; ++i) {
    for (int input = 0; input < 2; ++input) {
      std::vector<int32_t> ids(static_cast<size_t>(samples * length));
      for (int32_t& id : ids) id = random.below(vocabulary);
      data.add_i32(std::move(ids), {samples, length});
    }
  }
  return data;
}

rrfp_train_report step(rrfp_trainer* trainer, const rrfp_batch& batch) {
  rrfp_error error = {};
  rrfp_train_report report;
  rrfp_train_report_init(&report);
  check(rrfp_trainer_step(trainer, &batch, &report, &error), error);
  return report;
}

rrfp_train_report evaluate(rrfp_trainer* trainer, const rrfp_batch& batch) {
  rrfp_error error = {};
  rrfp_train_report report;
  rrfp_train_report_init(&report);
  check(rrfp_trainer_evaluate(trainer, &batch, &report, &error), error);
  return report;
}

std::vector<float> read(rrfp_trainer* trainer, int32_t parameter, rrfp_slot slot, size_t count) {
  rrfp_error error = {};
  std::vector<float> data(count);
  check(rrfp_trainer_read(trainer, parameter, slot, data.data(), count, &error), error);
  return data;
}

void write(rrfp_trainer* trainer, int32_t parameter, const std::vector<float>& data) {
  rrfp_error error = {};
  check(rrfp_trainer_write(trainer, parameter, RRFP_SLOT_WEIGHT, data.data(), data.size(), &error),
        error);
}

std::string described_hint(rrfp_trainer* trainer) {
  char text[1024] = {};
  rrfp_error error;
  EXPECT_EQ(rrfp_trainer_describe_hint(trainer, text, sizeof text, nullptr, &error), RRFP_OK)
      << error.text;
  return text;
}

std::string weights_sha256(rrfp_trainer* trainer) {
  rrfp_error error = {};
  char text[65] = {};
  check(rrfp_trainer_weights_sha256(trainer, text, sizeof text, nullptr, &error), error);
  return text;
}

size_t parameter_elements(const rrfp_model* model, int32_t parameter) {
  rrfp_error error = {};
  int32_t ndim = 0;
  int64_t shape[RRFP_DIMS_MAX] = {};
  check(rrfp_model_parameter_shape(model, parameter, &ndim, shape, &error), error);
  size_t count = 1;
  for (int32_t d = 0; d < ndim; ++d) count *= static_cast<size_t>(shape[d]);
  return count;
}

int32_t parameter_count(const rrfp_model* model) {
  rrfp_error error = {};
  rrfp_model_info info;
  rrfp_model_info_init(&info);
  check(rrfp_model_get_info(model, &info, &error), error);
  return info.parameters;
}

std::string parameter_name(const rrfp_model* model, int32_t parameter) {
  rrfp_error error = {};
  char text[256] = {};
  check(rrfp_model_parameter_name(model, parameter, text, sizeof text, nullptr, &error), error);
  return text;
}

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  out << outcome.sha256;
  for (double loss : outcome.losses) out << ' ' << loss;
  return out;
}

uint64_t Random::next() {
  uint64_t z = (state_ += 0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace rrfp::models
