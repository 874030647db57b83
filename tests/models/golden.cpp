// SPDX-License-Identifier: Apache-2.0
#include "golden.h"

#include <cmath>
#include <fstream>
#include <sstream>

namespace rrfp::models {

namespace {

constexpr double kRelativeError = 1e-5;  // of a tensor, and of the loss

std::string read_line(std::istream& in) {
  std::string line;
  std::getline(in, line);
  return line;
}

template <class Number>
std::vector<Number> numbers_of(const std::string& line) {
  std::istringstream text(line);
  std::vector<Number> numbers;
  for (Number x = 0; text >> x;) numbers.push_back(x);
  return numbers;
}

/// The distance of two tensors over the length of the expected one.
double relative_error(const std::vector<float>& found, const std::vector<double>& expected) {
  double distance = 0;
  double length = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    distance += std::pow(static_cast<double>(found[i]) - expected[i], 2);
    length += expected[i] * expected[i];
  }
  return length > 0 ? std::sqrt(distance / length) : std::sqrt(distance);
}

void expect_slots(const rrfp_model* model, rrfp_trainer* trainer, rrfp_slot slot,
                  const std::map<std::string, std::vector<double>>& expected) {
  for (int32_t p = 0; p < parameter_count(model); ++p) {
    const auto of_parameter = expected.find(parameter_name(model, p));
    if (of_parameter == expected.end()) continue;  // frozen
    const auto& [name, numbers] = *of_parameter;
    ASSERT_EQ(parameter_elements(model, p), numbers.size()) << name;
    EXPECT_LE(relative_error(read(trainer, p, slot, numbers.size()), numbers), kRelativeError)
        << name << ", slot " << slot;
  }
}

}  // namespace

std::vector<Golden> read_goldens(const std::string& file) {
  std::ifstream in(RRFP_GOLDEN_DIR "/" + file);
  std::vector<Golden> goldens;
  std::string word;
  while (in >> word) {
    if (word == "model") {
      goldens.emplace_back();
      in >> goldens.back().name;
      goldens.back().settings = numbers_of<int32_t>(read_line(in));
    } else if (word == "input") {
      GoldenInput& input = goldens.back().inputs.emplace_back();
      in >> word;
      input.dtype = word == "i32" ? RRFP_I32 : RRFP_F32;
      input.shape = numbers_of<int64_t>(read_line(in));
      input.numbers = numbers_of<double>(read_line(in));  // an empty line for no numbers
    } else if (word == "loss") {
      in >> goldens.back().loss;
    } else if (word == "norm") {
      in >> goldens.back().norm;
    } else if (word == "grad" || word == "new") {
      auto& into = word == "grad" ? goldens.back().gradients : goldens.back().updated;
      in >> word >> std::ws;
      into[word] = numbers_of<double>(read_line(in));
    }
  }
  return goldens;
}

uint64_t mix(uint64_t x) {
  uint64_t z = (x + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

void set_weights(const rrfp_model* model, rrfp_trainer* trainer) {
  for (int32_t p = 0; p < parameter_count(model); ++p) {
    std::vector<float> values(parameter_elements(model, p));
    const bool is_gain = parameter_name(model, p).find("norm.weight") != std::string::npos;
    for (size_t i = 0; i < values.size(); ++i) {
      const uint64_t bits = mix(static_cast<uint64_t>(p) * 1000003 + i) >> 52;
      values[i] = (is_gain ? 1.0F : 0.0F) + 0.5F * (static_cast<float>(bits) / 2048 - 1);
    }
    write(trainer, p, values);
  }
}

BatchData batch_of(const std::vector<GoldenInput>& inputs) {
  BatchData data;
  for (const GoldenInput& input : inputs) {
    if (input.dtype == RRFP_I32) {
      data.add_i32({input.numbers.begin(), input.numbers.end()}, input.shape);
    } else {
      data.add_f32({input.numbers.begin(), input.numbers.end()}, input.shape);
    }
  }
  return data;
}

rrfp_trainer_options golden_options(int32_t stages) {
  rrfp_trainer_options options = trainer_options(stages);
  options.lr = 1e-2;
  options.epsilon = 1e-2;
  options.clip_norm = 0.5;
  return options;
}

void expect_golden(const Golden& golden, const rrfp_model* model, rrfp_trainer* trainer,
                   BatchData& data, size_t inputs) {
  rrfp_model_info info;
  rrfp_model_info_init(&info);
  ASSERT_EQ(rrfp_model_get_info(model, &info, nullptr), RRFP_OK);
  size_t trainable = 0;
  for (const auto& [name, numbers] : golden.gradients) trainable += numbers.size();
  ASSERT_EQ(info.trainable_elements, static_cast<int64_t>(trainable));
  set_weights(model, trainer);
  const rrfp_train_report report = step(trainer, data.batch(inputs, RRFP_BATCH_KEEP_GRADIENTS));
  EXPECT_NEAR(report.loss, golden.loss, kRelativeError * golden.loss);
  EXPECT_NEAR(report.gradient_norm, golden.norm, kRelativeError * golden.norm);
  expect_slots(model, trainer, RRFP_SLOT_GRADIENT, golden.gradients);
  if (golden.updated.empty()) return;
  step(trainer, data.batch(inputs));
  expect_slots(model, trainer, RRFP_SLOT_WEIGHT, golden.updated);
}

}  // namespace rrfp::models
