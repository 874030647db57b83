// SPDX-License-Identifier: Apache-2.0
//
// Generators through the C API.
#pragma once

#include "harness.h"

namespace rrfp::models {

GeneratorPtr make_generator(rrfp_trainer* trainer, int32_t context);
void start(const GeneratorPtr& generator, const std::vector<int32_t>& tokens);
rrfp_sampling sampling_of(double temperature, int32_t top_k = 0, double top_p = 1,
                          uint64_t seed = 0);
int32_t next(const GeneratorPtr& generator, const rrfp_sampling& sampling);
std::vector<int32_t> next(const GeneratorPtr& generator, const rrfp_sampling& sampling, int count);
std::vector<float> logits_of(const GeneratorPtr& generator, size_t vocabulary);
int32_t argmax(const std::vector<float>& logits);

/// Fresh weights give logits that hardly differ; these do.
TrainerPtr make_lively_trainer(const ModelPtr& model, int32_t stages = 1);
void expect_near(const std::vector<float>& found, const std::vector<float>& expected,
                 const std::string& where);

}  // namespace rrfp::models
