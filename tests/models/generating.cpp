// SPDX-License-Identifier: Apache-2.0
#include "generating.h"

#include <algorithm>
#include <cmath>

namespace rrfp::models {

GeneratorPtr make_generator(rrfp_trainer* trainer, int32_t context) {
  rrfp_error error = {};
  rrfp_generator* generator = nullptr;
  check(rrfp_generator_create(trainer, context, &generator, &error), error);
  return GeneratorPtr(generator);
}

void start(const GeneratorPtr& generator, const std::vector<int32_t>& tokens) {
  rrfp_error error = {};
  check(rrfp_generator_start(generator.get(), tokens.data(), tokens.size(), &error), error);
}

rrfp_sampling sampling_of(double temperature, int32_t top_k, double top_p, uint64_t seed) {
  rrfp_sampling sampling;
  rrfp_sampling_init(&sampling);
  sampling.temperature = temperature;
  sampling.top_k = top_k;
  sampling.top_p = top_p;
  sampling.seed = seed;
  return sampling;
}

int32_t next(const GeneratorPtr& generator, const rrfp_sampling& sampling) {
  rrfp_error error = {};
  int32_t token = -1;
  check(rrfp_generator_next(generator.get(), &sampling, &token, &error), error);
  return token;
}

std::vector<int32_t> next(const GeneratorPtr& generator, const rrfp_sampling& sampling, int count) {
  std::vector<int32_t> tokens;
  for (int k = 0; k < count; ++k) tokens.push_back(next(generator, sampling));
  return tokens;
}

std::vector<float> logits_of(const GeneratorPtr& generator, size_t vocabulary) {
  rrfp_error error = {};
  std::vector<float> logits(vocabulary);
  check(rrfp_generator_logits(generator.get(), logits.data(), vocabulary, &error), error);
  return logits;
}

int32_t argmax(const std::vector<float>& logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

TrainerPtr make_lively_trainer(const ModelPtr& model, int32_t stages) {
  TrainerPtr trainer = make_trainer(model.get(), trainer_options(stages));
  for (int32_t p = 0; p < parameter_count(model.get()); ++p) {
    if (parameter_name(model.get(), p).find("norm") != std::string::npos) continue;
    std::vector<float> weights =
        read(trainer.get(), p, RRFP_SLOT_WEIGHT, parameter_elements(model.get(), p));
    for (float& weight : weights) weight *= 10;
    write(trainer.get(), p, weights);
  }
  return trainer;
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected,
                 const std::string& where) {
  float most = 0;
  float difference = 0;
  for (size_t k = 0; k < expected.size(); ++k) {
    most = std::max(most, std::abs(expected[k]));
    difference = std::max(difference, std::abs(found[k] - expected[k]));
  }
  EXPECT_GT(most, 0.05F) << where << ": the test says nothing";
  EXPECT_LE(difference, 1e-5F * most) << where;
}

}  // namespace rrfp::models
