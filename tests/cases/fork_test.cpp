// SPDX-License-Identifier: Apache-2.0
//
// The child of a fork has none of its parent's threads. What it inherits says so instead of waiting
// for them; what it makes itself works.
#include <rrfp/train.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string_view>

#include "handles.h"

namespace rrfp::cases {
namespace {

/// Runs `body` in a child, which has 10 s; expects it to return true.
void expect_in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);
    bool good = false;
    try {
      good = body();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "in the child: %s\n", e.what());
    }
    _exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

bool is_refused(rrfp_status status, const rrfp_error& error, std::string_view handle) {
  const std::string_view text(error.text);
  const bool good = status == RRFP_ERR_FORKED && text.find(handle) == 0 &&
                    text.find("before fork()") != std::string_view::npos;
  if (!good) std::fprintf(stderr, "status %d, text %s\n", status, error.text);
  return good;
}

TEST(Fork, InheritedRanksAndPipelinesAreRefused) {
  Handles handles;
  handles.begin_all();
  ASSERT_EQ(handles.next(0), RRFP_OK);
  expect_in_child([&] {
    rrfp_error error = {};
    rrfp_rank* const rank = handles.ranks[0].get();
    rrfp_pipeline* const pipeline = handles.pipeline.get();
    return is_refused(rrfp_rank_done(rank, handles.task.ticket, nullptr, &error), error, "rank") &&
           is_refused(handles.next(0, -1, &error), error, "rank") &&
           is_refused(rrfp_rank_end_step(rank, nullptr, &error), error, "rank") &&
           is_refused(rrfp_rank_wake(rank, &error), error, "rank") &&
           is_refused(rrfp_pipeline_cancel(pipeline, nullptr, &error), error, "pipeline") &&
           is_refused(rrfp_pipeline_reset(pipeline, &error), error, "pipeline") &&
           is_refused(rrfp_pipeline_report(pipeline, nullptr, 0, nullptr, &error), error,
                      "pipeline");
  });
  // The parent goes on.
  handles.finish(0);
  handles.run_all();
}

TEST(Fork, InheritedHandlesCanBeDestroyed) {
  Handles handles;
  handles.begin_all();
  expect_in_child([&] {
    for (RankPtr& rank : handles.ranks) rank.reset();
    handles.pipeline.reset();
    handles.graph.reset();
    handles.hint.reset();
    return true;
  });
  handles.run_all();
}

TEST(Fork, TheChildMakesItsOwn) {
  const Handles handles;
  expect_in_child([] {
    Handles own;
    own.begin_all();
    own.run_all();
    return !testing::Test::HasFailure();
  });
}

TEST(Fork, TrainersAreRefused) {
  rrfp_error error = {};
  rrfp_gpt_options options;
  rrfp_gpt_options_init(&options);
  options.vocabulary = 8;
  options.context = 4;
  options.layers = 1;
  options.dim = 8;
  options.heads = 2;
  rrfp_model* model = nullptr;
  check(rrfp_model_create_gpt(&options, &model, &error), error);
  rrfp_trainer* trainer = nullptr;
  check(rrfp_trainer_create(model, nullptr, &trainer, &error), error);
  rrfp_generator* generator = nullptr;
  check(rrfp_generator_create(trainer, 4, &generator, &error), error);
  expect_in_child([&] {
    rrfp_trainer_info info;
    rrfp_trainer_info_init(&info);
    rrfp_batch batch;
    rrfp_batch_init(&batch);
    const int32_t token = 1;
    const bool good =
        is_refused(rrfp_trainer_step(trainer, &batch, nullptr, &error), error, "trainer") &&
        is_refused(rrfp_trainer_get_info(trainer, &info, &error), error, "trainer") &&
        is_refused(rrfp_trainer_cancel(trainer, &error), error, "trainer") &&
        is_refused(rrfp_generator_start(generator, &token, 1, &error), error, "trainer");
    rrfp_generator_destroy(generator);
    rrfp_trainer_destroy(trainer);
    // A model has no threads: it goes with the child.
    rrfp_model_info model_info;
    rrfp_model_info_init(&model_info);
    return good && rrfp_model_get_info(model, &model_info, nullptr) == RRFP_OK;
  });
  rrfp_generator_destroy(generator);
  rrfp_trainer_destroy(trainer);
  rrfp_model_destroy(model);
}

}  // namespace
}  // namespace rrfp::cases
