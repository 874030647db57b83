// SPDX-License-Identifier: Apache-2.0
//
// The vision-language model, and the operations that it needs, against PyTorch, which computes
// every sample by itself. tests/golden/make_vision_language_golden.py made the values.
#include "golden.h"
#include "vision.h"

namespace rrfp::models {
namespace {

TEST(TorchVision, AgreesOnLossGradientsAndUpdate) {
  const std::vector<Golden> goldens = read_goldens("vision_language.txt");
  ASSERT_EQ(goldens.size(), 5U);
  for (const Golden& golden : goldens) {
    SCOPED_TRACE(golden.name);
    rrfp_gpt_options language;
    rrfp_gpt_options_init(&language);
    language.flags = static_cast<rrfp_gpt_flags>(golden.settings.at(0));
    language.vocabulary = 12;
    language.context = 16;
    language.layers = 2;
    language.dim = 8;
    language.heads = 2;
    language.kv_heads = golden.settings.at(2);
    rrfp_vision_options vision;
    rrfp_vision_options_init(&vision);
    vision.flags = static_cast<rrfp_vision_flags>(golden.settings.at(1));
    vision.image_size = 8;
    vision.patch = 4;
    vision.layers = 2;
    vision.dim = 6;
    vision.heads = 3;
    const ModelPtr model = make_vision_language(language, vision);
    for (int32_t stages : {1, 2, 5, 8}) {
      const TrainerPtr trainer = make_trainer(model.get(), golden_options(stages));
      BatchData data = batch_of(goldens.front().inputs);
      expect_golden(golden, model.get(), trainer.get(), data, RRFP_SAMPLES_INPUTS);
    }
  }
}

/// The model around an operation: its inputs, and a value that is compared with the last of them.
struct Around {
  Builder b;
  std::vector<int32_t> inputs;

  explicit Around(const Golden& golden) {
    for (const GoldenInput& input : golden.inputs) {
      const std::string name = "input" + std::to_string(inputs.size());
      inputs.push_back(b.input(name.c_str(), input.dtype, input.shape));
    }
    b.block();
  }
  int32_t linear(int32_t x, const std::string& name, int64_t in, int64_t out) {
    const int32_t weight = b.parameter(name + ".weight", {out, in});
    return b.op(RRFP_OP_LINEAR, {x}, {weight, b.parameter(name + ".bias", {out})});
  }
  int32_t convolution(int32_t kernel, int32_t stride, int32_t padding) {
    const int32_t x = linear(inputs[0], "before", 3, 2);
    const int32_t squares =
        b.op(RRFP_OP_PATCHES, {x}, {}, {.kernel = kernel, .stride = stride, .padding = padding});
    return linear(squares, "square", int64_t{2} * kernel * kernel, 4);
  }
  int32_t packed(rrfp_op_flags flags, bool rotary) {
    int32_t x = linear(inputs[0], "qkv", 6, 16);
    if (rotary) {
      x = b.op(RRFP_OP_ROTARY, {x, inputs[2]}, {}, {.heads = 3, .head_dim = 4});
    }
    return b.op(RRFP_OP_ATTENTION, {x, inputs[1]}, {}, {.flags = flags, .heads = 2, .kv_heads = 1});
  }
  int32_t merge() {
    const int32_t x = linear(inputs[0], "x", 3, 4);
    return b.op(RRFP_OP_MERGE_ROWS, {x, linear(inputs[1], "rows", 5, 4), inputs[2]});
  }
  int32_t operation(const std::string& name) {
    if (name == "convolution") return convolution(3, 2, 1);
    if (name == "patches") return convolution(2, 2, 0);
    if (name == "wide_convolution") return convolution(3, 1, 2);
    if (name == "sparse") return convolution(2, 3, 0);
    if (name == "packed") return packed(RRFP_OP_CAUSAL, false);
    if (name == "packed_full") return packed(0, false);
    if (name == "packed_rotary") return packed(RRFP_OP_CAUSAL, true);
    return merge();
  }
};

TEST(TorchVision, AgreesOnOperations) {
  const std::vector<Golden> goldens = read_goldens("vision_operations.txt");
  ASSERT_EQ(goldens.size(), 8U);
  for (const Golden& golden : goldens) {
    SCOPED_TRACE(golden.name);
    Around around(golden);
    const int32_t y = around.operation(golden.name);
    around.b.loss(around.b.op(RRFP_OP_SQUARED_ERROR, {y, around.inputs.back()}));
    const TrainerPtr trainer = make_trainer(around.b.model.get(), golden_options(1));
    BatchData data = batch_of(golden.inputs);
    expect_golden(golden, around.b.model.get(), trainer.get(), data, around.inputs.size());
  }
}

}  // namespace
}  // namespace rrfp::models
