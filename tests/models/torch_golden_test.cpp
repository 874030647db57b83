// SPDX-License-Identifier: Apache-2.0
//
// The built-in language model against PyTorch: the same weights and tokens in, the same loss,
// gradients and weights after a step out. tests/golden/make_gpt_golden.py made the values.
#include "golden.h"

namespace rrfp::models {
namespace {

constexpr int32_t kVocabulary = 12;
constexpr int64_t kBatch = 2;
constexpr int64_t kLength = 7;

/// One microbatch per sequence.
BatchData make_data() {
  std::vector<int32_t> ids;
  for (uint64_t i = 0; i < 2 * kBatch * kLength; ++i) {
    ids.push_back(static_cast<int32_t>(mix(777000 + i) % kVocabulary));
  }
  ids[kBatch * kLength + 3] = -100;
  BatchData data;
  for (int64_t b = 0; b < kBatch; ++b) {
    const auto tokens = ids.begin() + b * kLength;
    const auto targets = tokens + kBatch * kLength;
    data.add_i32({tokens, tokens + kLength}, {1, kLength});
    data.add_i32({targets, targets + kLength}, {1, kLength});
  }
  return data;
}

TEST(Torch, AgreesOnLossGradientsAndUpdate) {
  const std::vector<Golden> goldens = read_goldens("gpt.txt");
  ASSERT_EQ(goldens.size(), 4U);
  for (const Golden& golden : goldens) {
    SCOPED_TRACE(golden.name);
    rrfp_gpt_options gpt;
    rrfp_gpt_options_init(&gpt);
    gpt.flags = static_cast<rrfp_gpt_flags>(golden.settings.at(0));
    gpt.vocabulary = kVocabulary;
    gpt.context = 8;
    gpt.layers = 2;
    gpt.dim = 8;
    gpt.heads = 2;
    gpt.kv_heads = golden.settings.at(1);
    const ModelPtr model = make_gpt(gpt);
    for (int32_t stages : {1, 4}) {
      const TrainerPtr trainer = make_trainer(model.get(), golden_options(stages));
      BatchData data = make_data();
      expect_golden(golden, model.get(), trainer.get(), data, 2);
    }
  }
}

}  // namespace
}  // namespace rrfp::models
