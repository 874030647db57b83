// SPDX-License-Identifier: Apache-2.0
//
// What PyTorch has computed: the files of tests/golden, and models compared with them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness.h"

namespace rrfp::models {

struct GoldenInput {
  rrfp_dtype dtype = RRFP_F32;
  std::vector<int64_t> shape;
  std::vector<double> numbers;
};

/// A model of such a file: its settings, perhaps inputs by microbatch, and what comes out.
struct Golden {
  std::string name;
  std::vector<int32_t> settings;
  std::vector<GoldenInput> inputs;
  double loss = 0;
  double norm = 0;
  std::map<std::string, std::vector<double>> gradients;
  std::map<std::string, std::vector<double>> updated;
};
std::vector<Golden> read_goldens(const std::string& file);

/// splitmix64, as in the scripts: the x-th of a stream of numbers.
uint64_t mix(uint64_t x);
/// Gives all weights the values of the scripts.
void set_weights(const rrfp_model* model, rrfp_trainer* trainer);
BatchData batch_of(const std::vector<GoldenInput>& inputs);

/// The options of the scripts' optimizer.
rrfp_trainer_options golden_options(int32_t stages);
/// Sets the weights and compares the loss, the gradients, and, if there are any, the weights after
/// a step. `inputs` = tensors of each microbatch.
void expect_golden(const Golden& golden, const rrfp_model* model, rrfp_trainer* trainer,
                   BatchData& data, size_t inputs);

}  // namespace rrfp::models
