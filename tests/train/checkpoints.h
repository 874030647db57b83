// SPDX-License-Identifier: Apache-2.0
//
// A small model's checkpoints: everything in one is a function of a key, so that a test can tell
// whether it reads what was written.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "engine/train/checkpoint.h"
#include "tests/train/scratch.h"
#include "tests/train/tensors.h"

namespace rrfp::test {

struct Model {
  Model() {
    weights.add("embed", {5, 4});
    weights.add("head.bias", {3});
    optimizer.add("m.embed", {5, 4});
    optimizer.add("m.head.bias", {3});
    optimizer.add("v.embed", {5, 4});
    optimizer.add("v.head.bias", {3});
  }
  void fill(uint32_t key) {
    weights.fill(key);
    optimizer.fill(~key);
  }

  Tensors weights;
  Tensors optimizer;
};

inline train::CheckpointState state_of(int64_t step, uint32_t key) {
  train::CheckpointState state;
  state.step = step;
  state.position = key;
  state.seed = 0xfedcba9876543210ULL;
  state.loss_scale = 1.0 / (key + 3.0);
  state.updates = step;
  state.optimizer = "adamw";
  state.model = R"({"layers":2})";
  return state;
}

inline core::Status save(const std::string& root, int64_t step, uint32_t key, int32_t keep = 0) {
  Model model;
  model.fill(key);
  return train::save_checkpoint(root, state_of(step, key), model.weights.list(),
                                model.optimizer.list(), keep);
}

/// It opens, and all of it is what save() wrote for its own step and position.
inline ::testing::AssertionResult reads_right(const std::string& path, int64_t step,
                                              uint32_t* key = nullptr) {
  std::shared_ptr<const train::Checkpoint> checkpoint;
  if (core::Status s = train::Checkpoint::open(path, checkpoint); !s.ok()) {
    return ::testing::AssertionFailure() << s.text();
  }
  const auto& state = checkpoint->state();
  const auto written = static_cast<uint32_t>(state.position);
  const auto expected = state_of(step, written);
  if (state.step != step || state.seed != expected.seed || state.updates != step ||
      state.loss_scale != expected.loss_scale || state.model != expected.model) {
    return ::testing::AssertionFailure() << path << " has step " << state.step << ", expected "
                                         << step << ", or other fields differ";
  }
  Model wanted;
  wanted.fill(written);
  Model read;
  if (core::Status s = checkpoint->read_weights(read.weights.list()); !s.ok()) {
    return ::testing::AssertionFailure() << s.text();
  }
  if (core::Status s = checkpoint->read_optimizer(read.optimizer.list()); !s.ok()) {
    return ::testing::AssertionFailure() << s.text();
  }
  if (!read.weights.same_as(wanted.weights) || !read.optimizer.same_as(wanted.optimizer)) {
    return ::testing::AssertionFailure() << path << " has tensors that are not of its position";
  }
  if (key != nullptr) *key = written;
  return ::testing::AssertionSuccess();
}

inline std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

}  // namespace rrfp::test
