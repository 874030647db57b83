// SPDX-License-Identifier: Apache-2.0
//
// The built-in language model against PyTorch: the same weights and tokens in, the same loss,
// gradients and weights after a step out. tests/golden/make_gpt_golden.py made the values.
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "harness.h"

namespace rrfp::models {
namespace {

constexpr int32_t kVocabulary = 12;
constexpr int64_t kBatch = 2;
constexpr int64_t kLength = 7;
constexpr double kRelativeError = 1e-5;  // of a tensor, and of the loss

struct Golden {
  std::string name;
  rrfp_gpt_flags flags = 0;
  int32_t kv_heads = 0;
  double loss = 0;
  double norm = 0;
  std::map<std::string, std::vector<double>> gradients;
  std::map<std::string, std::vector<double>> updated;
};

std::vector<double> read_numbers(std::istream& in) {
  std::string line;
  std::getline(in >> std::ws, line);
  std::istringstream text(line);
  std::vector<double> numbers;
  for (double x = 0; text >> x;) numbers.push_back(x);
  return numbers;
}

std::vector<Golden> read_goldens() {
  std::ifstream in(RRFP_GOLDEN_DIR "/gpt.txt");
  std::vector<Golden> goldens;
  std::string word;
  while (in >> word) {
    if (word == "model") {
      goldens.emplace_back();
      in >> goldens.back().name >> goldens.back().flags >> goldens.back().kv_heads;
    } else if (word == "loss") {
      in >> goldens.back().loss;
    } else if (word == "norm") {
      in >> goldens.back().norm;
    } else if (word == "grad" || word == "new") {
      std::string parameter;
      in >> parameter;
      auto& into = word == "grad" ? goldens.back().gradients : goldens.back().updated;
      into[parameter] = read_numbers(in);
    }
  }
  return goldens;
}

// The formula of the script.
uint64_t mix(uint64_t x) {
  uint64_t z = (x + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

bool is_gain(const std::string& name) {
  return name.find("norm.weight") != std::string::npos;
}

void set_weights(const rrfp_model* model, rrfp_trainer* trainer) {
  for (int32_t p = 0; p < parameter_count(model); ++p) {
    std::vector<float> values(parameter_elements(model, p));
    const float center = is_gain(parameter_name(model, p)) ? 1.0F : 0.0F;
    for (size_t i = 0; i < values.size(); ++i) {
      const uint64_t bits = mix(static_cast<uint64_t>(p) * 1000003 + i) >> 52;
      values[i] = center + 0.5F * (static_cast<float>(bits) / 2048 - 1);
    }
    write(trainer, p, values);
  }
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

TEST(Torch, AgreesOnLossGradientsAndUpdate) {
  const std::vector<Golden> goldens = read_goldens();
  ASSERT_EQ(goldens.size(), 4U);
  for (const Golden& golden : goldens) {
    SCOPED_TRACE(golden.name);
    rrfp_gpt_options gpt;
    rrfp_gpt_options_init(&gpt);
    gpt.flags = golden.flags;
    gpt.vocabulary = kVocabulary;
    gpt.context = 8;
    gpt.layers = 2;
    gpt.dim = 8;
    gpt.heads = 2;
    gpt.kv_heads = golden.kv_heads;
    const ModelPtr model = make_gpt(gpt);
    for (int32_t stages : {1, 4}) {
      rrfp_trainer_options options = trainer_options(stages);
      options.lr = 1e-2;
      options.epsilon = 1e-2;
      options.clip_norm = 0.5;
      const TrainerPtr trainer = make_trainer(model.get(), options);
      set_weights(model.get(), trainer.get());
      std::vector<int32_t> ids;
      for (uint64_t i = 0; i < 2 * kBatch * kLength; ++i) {
        ids.push_back(static_cast<int32_t>(mix(777000 + i) % kVocabulary));
      }
      ids[kBatch * kLength + 3] = -100;
      BatchData data;  // one microbatch per sequence
      for (int64_t b = 0; b < kBatch; ++b) {
        const auto tokens = ids.begin() + b * kLength;
        const auto targets = tokens + kBatch * kLength;
        data.add_i32({tokens, tokens + kLength}, {1, kLength});
        data.add_i32({targets, targets + kLength}, {1, kLength});
      }
      rrfp_train_report report = step(trainer.get(), data.batch(2, RRFP_BATCH_KEEP_GRADIENTS));
      EXPECT_NEAR(report.loss, golden.loss, kRelativeError * golden.loss);
      EXPECT_NEAR(report.gradient_norm, golden.norm, kRelativeError * golden.norm);
      ASSERT_EQ(static_cast<size_t>(parameter_count(model.get())), golden.gradients.size());
      for (int32_t p = 0; p < parameter_count(model.get()); ++p) {
        const std::string name = parameter_name(model.get(), p);
        const std::vector<double>& expected = golden.gradients.at(name);
        const std::vector<float> found =
            read(trainer.get(), p, RRFP_SLOT_GRADIENT, expected.size());
        EXPECT_LE(relative_error(found, expected), kRelativeError) << name;
      }
      report = step(trainer.get(), data.batch(2));
      for (int32_t p = 0; p < parameter_count(model.get()); ++p) {
        const std::string name = parameter_name(model.get(), p);
        const std::vector<double>& expected = golden.updated.at(name);
        EXPECT_LE(
            relative_error(read(trainer.get(), p, RRFP_SLOT_WEIGHT, expected.size()), expected),
            kRelativeError)
            << name;
      }
    }
  }
}

}  // namespace
}  // namespace rrfp::models
