// SPDX-License-Identifier: Apache-2.0
//
// Timelines of models with branches say which branch each stage is of, and what it took.
#include <rrfp/simulate.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "ready.h"
#include "vision.h"

namespace rrfp::models {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::pair<std::string, std::string>>;

struct Traced {
  Names stages;  // name and branch
  Json summary;
  std::vector<double> updates_ms;  // by rank
};

/// Of one step of a few samples with pictures.
Traced traced(rrfp_model* model, const std::vector<int32_t>& first_blocks, BatchData data,
              size_t inputs) {
  const test::ScratchFolder folder;
  rrfp_trainer_options options = trainer_options(static_cast<int32_t>(first_blocks.size()));
  options.first_blocks = first_blocks.data();
  options.trace_steps = 1;
  const TrainerPtr trainer = make_trainer(model, options);
  step(trainer.get(), data.batch(inputs));
  const std::string path = folder / "trace.json";
  rrfp_error error = {};
  check(rrfp_trainer_write_trace(trainer.get(), path.c_str(), &error), error);
  Traced out;
  const Json trace = Json::parse(test::read_file(path));
  for (const Json& pair : trace.at("otherData").at("stages")) {
    out.stages.emplace_back(pair.at(0), pair.at(1));
  }
  out.updates_ms.resize(first_blocks.size());
  for (const Json& event : trace.at("traceEvents")) {
    if (event.value("cat", "") != "update") continue;
    out.updates_ms.at(event.at("tid").get<size_t>()) += event.at("dur").get<double>() / 1e3;
  }
  std::string text(1 << 16, '\0');
  size_t size = 0;
  check(rrfp_trace_summarize(path.c_str(), text.data(), text.size(), &size, &error), error);
  out.summary = Json::parse(text.substr(0, size - 1));
  return out;
}

BatchData pictures() {
  BatchData data;
  for (const char* sample : {"ab0cd", "1ef2", "ghi"}) pack({sample}).add_to(data);
  return data;
}

constexpr size_t kInputs = 6;

TEST(BranchTimeline, StagesAreNamedByTheirBlocks) {
  const ModelPtr model = small_vision_language();
  const Traced t = traced(model.get(), {0, 2, 4, 5, 6}, pictures(), kInputs);
  EXPECT_EQ(t.stages, (Names{{"vision.embedding .. vision.layers.0", "vision.embedding"},
                             {"vision.layers.1 .. projector", "vision.embedding"},
                             {"embedding", "embedding"},
                             {"layers.0", "layers.0"},
                             {"layers.1 .. head", "layers.0"}}));
}

TEST(BranchTimeline, SharesOfBranchesAddUp) {
  const ModelPtr model = small_vision_language();
  const Traced t = traced(model.get(), {0, 2, 4, 5, 6}, pictures(), kInputs);
  double computing_ms = 0;
  for (const Json& rank : t.summary.at("ranks")) {
    computing_ms += rank.at("computing_ms").get<double>();
    double all_ms = 0;
    for (const auto& [key, value] : rank.items()) {
      if (key.ends_with("_ms")) all_ms += value.get<double>();
    }
    EXPECT_NEAR(all_ms, t.summary.at("makespan_ms").get<double>(), 1e-3);
  }
  const Json& branches = t.summary.at("branches");
  ASSERT_EQ(branches.size(), 3U);
  EXPECT_EQ(branches[0].at("name"), "vision.embedding");
  EXPECT_EQ(branches[1].at("name"), "embedding");
  EXPECT_EQ(branches[2].at("name"), "layers.0");
  double shares = 0;
  for (const Json& branch : branches) {
    const double share = branch.at("share");
    EXPECT_GT(share, 0);
    EXPECT_NEAR(share, branch.at("computing_ms").get<double>() / computing_ms, 1e-9);
    shares += share;
  }
  const double updates_ms = std::accumulate(t.updates_ms.begin(), t.updates_ms.end(), 0.0);
  EXPECT_GT(updates_ms, 0);
  EXPECT_NEAR(shares * computing_ms + updates_ms, computing_ms, 1e-3);
  // Two of three microbatches have pictures: forward and backward, split or not, on two stages.
  EXPECT_GE(branches[0].at("tasks"), 2 * 2 * 2);
  EXPECT_LE(branches[0].at("tasks"), 2 * 3 * 2);
  EXPECT_GE(branches[1].at("tasks"), 3 * 2);
  EXPECT_LE(branches[1].at("tasks"), 3 * 3);
  EXPECT_GE(branches[2].at("tasks"), 3 * 2 * 2);
  EXPECT_LE(branches[2].at("tasks"), 3 * 3 * 2);
}

// All microbatches have pictures, so that the language model has nothing to do before a large
// encoder has made the first of them.
TEST(BranchTimeline, ALanguageModelWaitsForInput) {
  rrfp_vision_options vision = small_vision();
  vision.layers = 8;
  vision.dim = 256;
  const ModelPtr model = make_vision_language(small_gpt(), vision);
  BatchData data;
  for (int k = 0; k < 4; ++k) pack({"ab0cd1"}).add_to(data);
  const Traced t = traced(model.get(), {0, 10, 11}, std::move(data), kInputs);
  const Json& ranks = t.summary.at("ranks");
  // The first forward is about a twelfth of all that the encoder does.
  EXPECT_GT(ranks[2].at("input_ms").get<double>(),
            0.02 * (ranks[0].at("computing_ms").get<double>() - t.updates_ms[0]));
  for (const char* reason : {"credit_ms", "policy_ms"}) {
    EXPECT_EQ(ranks[2].at(reason).get<double>(), 0) << reason;
  }
}

TEST(BranchTimeline, AStageOfTwoBranchesIsOfNeither) {
  const ModelPtr model = small_vision_language();
  const Traced t = traced(model.get(), {0, 3, 5}, pictures(), kInputs);
  EXPECT_EQ(t.stages, (Names{{"vision.embedding .. vision.layers.1", "vision.embedding"},
                             {"projector .. embedding", "vision.embedding .. embedding"},
                             {"layers.0 .. head", "layers.0"}}));
  EXPECT_EQ(t.summary.at("branches").size(), 3U);
  const Traced one = traced(model.get(), {0}, pictures(), kInputs);
  EXPECT_EQ(one.stages, (Names{{"vision.embedding .. head", "vision.embedding .. layers.0"}}));
  EXPECT_FALSE(one.summary.contains("branches"));
}

TEST(BranchTimeline, AChainHasNoneToTell) {
  const ModelPtr model = make_gpt(small_gpt());
  BatchData data = random_tokens(2, 1, 8, 32, 1);
  const Traced t = traced(model.get(), {0, 2}, std::move(data), 2);
  EXPECT_EQ(t.stages,
            (Names{{"embedding .. layers.0", "embedding"}, {"layers.1 .. head", "embedding"}}));
  EXPECT_FALSE(t.summary.contains("branches"));
}

// Two encoders by one name, another with one that is too long and has a character at the cut.
TEST(BranchTimeline, BranchesWithOneNameStayApartAndLongNamesFit) {
  Builder b;
  const std::string lengthy = std::string(499, 'x') + std::string(5000, '\xC3');
  const std::vector<std::string> names = {"encoder", "encoder", lengthy, "join"};
  std::vector<int32_t> inputs;
  for (int k = 0; k < 3; ++k) inputs.push_back(b.input("x", RRFP_F32, {-1, 1}));
  std::vector<int32_t> values;
  for (size_t k = 0; k < 3; ++k) {
    b.block(names[k].c_str());
    const int32_t w = b.parameter("w" + std::to_string(k), {1, 1});
    values.push_back(b.op(RRFP_OP_LINEAR, {inputs[k]}, {w}));
  }
  b.block("join");
  b.loss(b.op(RRFP_OP_CONCAT, values, {}, {.axis = 0}));
  BatchData data;
  for (int k = 0; k < 3; ++k) data.add_f32({1}, {1, 1});
  const Traced t = traced(b.model.get(), {0, 1, 2, 3}, std::move(data), 3);
  ASSERT_EQ(t.stages.size(), 4U);
  EXPECT_EQ(t.stages[0].second, "encoder");
  EXPECT_EQ(t.stages[1].first, "encoder");
  EXPECT_EQ(t.stages[1].second, "encoder (block 1)");
  EXPECT_TRUE(t.stages[2].second.starts_with(std::string(499, 'x')));
  EXPECT_LT(t.stages[2].second.size(), 600U);
  EXPECT_EQ(t.summary.at("branches").size(), 4U);
}

}  // namespace
}  // namespace rrfp::models
