// SPDX-License-Identifier: Apache-2.0
//
// What the tests of wrong calls have at hand.
#pragma once

#include <string>

#include "harness.h"
#include "tests/cases/misuse.h"
#include "tests/train/scratch.h"

namespace rrfp::models {

constexpr rrfp_status kInvalid = RRFP_ERR_INVALID_ARGUMENT;
constexpr rrfp_status kRange = RRFP_ERR_OUT_OF_RANGE;
constexpr rrfp_status kMismatch = RRFP_ERR_TENSOR_MISMATCH;

/// A trainer of a GPT on two ranks, a generator that reads it, and a text of 101 tokens.
struct Ready {
  ModelPtr model = make_gpt(small_gpt());
  TrainerPtr trainer = make_trainer(model.get(), trainer_options(2));
  GeneratorPtr generator;
  test::ScratchFolder folder;
  std::string text = folder / "text";
  const char* path = text.c_str();
  rrfp_data_options data_options = {};
  DataPtr data;
  Ready() {
    rrfp_error error = {};
    rrfp_generator* made = nullptr;
    check(rrfp_generator_create(trainer.get(), 16, &made, &error), error);
    generator.reset(made);
    test::write_file(text, std::string(100, 'a') + "b");
    rrfp_data_options_init(&data_options);
    data_options.paths = &path;
    data_options.path_count = 1;
    data_options.context = 8;
    rrfp_data* opened = nullptr;
    check(rrfp_data_open(&data_options, &opened, &error), error);
    data.reset(opened);
  }
};

}  // namespace rrfp::models
