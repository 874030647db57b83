// SPDX-License-Identifier: Apache-2.0
//
// Models and trainers through the C API, as tests like them: handles that destroy themselves,
// errors that throw, arrays as vectors.
#pragma once

#include <gtest/gtest.h>
#include <rrfp/train.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace rrfp::models {

struct Destroy {
  void operator()(rrfp_model* m) const { rrfp_model_destroy(m); }
  void operator()(rrfp_trainer* t) const { rrfp_trainer_destroy(t); }
  void operator()(rrfp_hint* h) const { rrfp_hint_destroy(h); }
  void operator()(rrfp_generator* g) const { rrfp_generator_destroy(g); }
  void operator()(rrfp_data* d) const { rrfp_data_destroy(d); }
};
using ModelPtr = std::unique_ptr<rrfp_model, Destroy>;
using TrainerPtr = std::unique_ptr<rrfp_trainer, Destroy>;
using HintPtr = std::unique_ptr<rrfp_hint, Destroy>;
using DataPtr = std::unique_ptr<rrfp_data, Destroy>;
using GeneratorPtr = std::unique_ptr<rrfp_generator, Destroy>;

struct CallFailed : std::runtime_error {
  explicit CallFailed(const rrfp_error& e)
      : std::runtime_error(std::string(rrfp_status_name(e.status)) + ": " + e.text), error(e) {}
  rrfp_error error;
};
inline void check(rrfp_status status, const rrfp_error& error) {
  if (status < 0) throw CallFailed(error);
}
/// The status and text of the error that `body` throws.
rrfp_error failure_of(const std::function<void()>& body);

/// Builds a model. Values and parameters are the numbers of the C API.
class Builder {
 public:
  Builder();

  void block(const char* name = nullptr, rrfp_block_flags flags = 0);
  int32_t input(const char* name, rrfp_dtype dtype, std::vector<int64_t> shape);
  int32_t parameter(const std::string& name, std::vector<int64_t> shape, double scale = 0.5,
                    rrfp_parameter_flags flags = 0, double value = 0);
  struct Extra {
    rrfp_op_flags flags = 0;
    int32_t axis = -1;
    int32_t heads = 0;
    int32_t kv_heads = 0;
    int32_t head_dim = 0;
    int32_t ignore_index = -100;
    double probability = 0;
    std::vector<int64_t> shape = {};
    double epsilon = 1e-5;
    double base = 10000;
    int32_t kernel = 0;
    int32_t stride = 0;
    int32_t padding = 0;
  };
  int32_t op(rrfp_op kind, const std::vector<int32_t>& inputs,
             const std::vector<int32_t>& parameters = {}) {
    return op(kind, inputs, parameters, Extra());
  }
  int32_t op(rrfp_op kind, const std::vector<int32_t>& inputs,
             const std::vector<int32_t>& parameters, const Extra& extra);
  void loss(int32_t value);
  void output(int32_t value);

  ModelPtr model;
};

ModelPtr make_gpt(const rrfp_gpt_options& options);
/// A small GPT: vocabulary 32, context 16, 4 layers, dim 16, 2 heads.
rrfp_gpt_options small_gpt(rrfp_gpt_flags flags = 0, double dropout = 0);
HintPtr make_hint(const std::string& name);
rrfp_trainer_options trainer_options(int32_t stages = 1);
TrainerPtr make_trainer(rrfp_model* model, const rrfp_trainer_options& options);

/// The arrays of a batch and the tensors that refer to them.
class BatchData {
 public:
  void add_i32(std::vector<int32_t> data, std::vector<int64_t> shape);
  void add_f32(std::vector<float> data, std::vector<int64_t> shape);
  /// `inputs` = tensors of each microbatch.
  [[nodiscard]] rrfp_batch batch(size_t inputs, rrfp_batch_flags flags = 0, int32_t rounds = 0);

 private:
  void add(void* data, rrfp_dtype dtype, const std::vector<int64_t>& shape);
  std::vector<std::unique_ptr<std::vector<int32_t>>> ints_;
  std::vector<std::unique_ptr<std::vector<float>>> floats_;
  std::vector<rrfp_tensor> tensors_;
};

/// Tokens and targets drawn from a seed: microbatches of `samples` sequences of `length`.
BatchData random_tokens(int32_t microbatches, int64_t samples, int64_t length, int32_t vocabulary,
                        uint64_t seed);

rrfp_train_report step(rrfp_trainer* trainer, const rrfp_batch& batch);
rrfp_train_report evaluate(rrfp_trainer* trainer, const rrfp_batch& batch);
std::vector<float> read(rrfp_trainer* trainer, int32_t parameter, rrfp_slot slot, size_t count);
void write(rrfp_trainer* trainer, int32_t parameter, const std::vector<float>& data);
std::string weights_sha256(rrfp_trainer* trainer);
std::string described_hint(rrfp_trainer* trainer);
size_t parameter_elements(const rrfp_model* model, int32_t parameter);
int32_t parameter_count(const rrfp_model* model);
std::string parameter_name(const rrfp_model* model, int32_t parameter);

/// What must come out the same whatever the pipeline: losses and final weights.
struct Outcome {
  std::vector<double> losses;
  std::vector<double> norms;
  std::string sha256;
  bool operator==(const Outcome&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Outcome& outcome);

/// Numbers in [-1, 1) that are the same on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  float number() { return static_cast<float>(next() >> 40) / 8388608.0F - 1.0F; }
  int32_t below(int32_t limit) {
    return static_cast<int32_t>(next() % static_cast<uint64_t>(limit));
  }

 private:
  uint64_t state_;
};

}  // namespace rrfp::models
