// SPDX-License-Identifier: Apache-2.0
//
// Who owns tensor memory: buffers live as long as somebody refers to them, and the memory of the
// caller comes back exactly once, on a thread that may expect it.
#include <array>
#include <atomic>
#include <thread>

#include "handles.h"
#include "pair.h"

namespace rrfp::cases {
namespace {

rrfp_buffer* wrap(const TaskContext& context, void* data, size_t bytes, rrfp_release_fn release,
                  void* user_data) {
  rrfp_error error = {};
  rrfp_buffer* buffer = nullptr;
  check(rrfp_rank_wrap(context.rank, context.task.ticket, data, bytes, release, user_data, &buffer,
                       &error),
        error);
  return buffer;
}

struct Released {
  std::atomic<int> times{0};
  std::thread::id thread;
  static void release(void* user_data) {
    auto* self = static_cast<Released*>(user_data);
    self->thread = std::this_thread::get_id();
    ++self->times;
  }
};

TEST(Buffers, WrappedMemoryComesBackOnceOnTheThreadOfItsRank) {
  constexpr int32_t kMicrobatches = 6;
  std::array<Released, kMicrobatches> released;
  std::array<std::array<float, 4>, kMicrobatches> memory = {};
  std::thread::id thread_of_rank_0;
  std::atomic<int> same_pointer{0};
  const auto at = [](const TaskContext& c) { return static_cast<size_t>(c.task.microbatch); };
  Pair pair(
      {[&](TaskContext& c) {
         thread_of_rank_0 = std::this_thread::get_id();
         auto& values = memory[at(c)];
         rrfp_buffer* buffer =
             wrap(c, values.data(), sizeof values, Released::release, &released[at(c)]);
         // A part of the buffer, from its second float on.
         c.put(0, view(values.data() + 1, buffer, 2, RRFP_TENSOR_WANTS_GRADIENT));
       },
       {},
       {}},
      {{},
       [&](TaskContext& c) {
         same_pointer += c.input(0).at(0).data == memory[at(c)].data() + 1 ? 1 : 0;
         c.put(0, c.alloc(RRFP_F32, {2}));
       },
       [&](TaskContext& c) { EXPECT_EQ(released[at(c)].times, 0) << "still an input of W"; }});
  const StepResult result = pair.run(kMicrobatches);
  ASSERT_TRUE(done(result));
  EXPECT_EQ(same_pointer, kMicrobatches);
  for (const Released& each : released) {
    EXPECT_EQ(each.times, 1);
    EXPECT_EQ(each.thread, thread_of_rank_0);
  }
  EXPECT_EQ(result.ranks[0].report.tensor_bytes_live, 0);
}

TEST(Buffers, WrappedMemoryThatIsNotPutComesBackToo) {
  Released released;
  std::array<float, 4> memory = {};
  Pair pair({[&](TaskContext& c) {
               (void)wrap(c, memory.data(), sizeof memory, Released::release, &released);
               (void)wrap(c, nullptr, 0, nullptr, nullptr);
               c.put_scalar(0, 1);
               EXPECT_EQ(released.times, 0) << "the running task holds it";
             },
             {},
             {}},
            {{}, [](TaskContext& c) { c.put_scalar(0, 1); }, {}});
  ASSERT_TRUE(done(pair.run()));
  EXPECT_EQ(released.times, 1);
}

TEST(Buffers, WrappedMemoryOfAFailedStepComesBack) {
  Released released;
  std::array<float, 4> memory = {};
  Pair pair({[&](TaskContext& c) {
               c.put(0, view(memory.data(),
                             wrap(c, memory.data(), sizeof memory, Released::release, &released), 4,
                             RRFP_TENSOR_WANTS_GRADIENT));
             },
             {},
             {}},
            {[](TaskContext&) { throw StageFailed(1, "after it has arrived"); }, {}, {}});
  EXPECT_FALSE(pair.run().ok());
  pair.toy.reset();
  EXPECT_EQ(released.times, 1);
}

TEST(Buffers, RetainedBuffersOutliveThePipeline) {
  std::array<rrfp_tensor, 2> kept = {};  // from the producer's and from the consumer's side
  {
    Pair pair({[&](TaskContext& c) {
                 rrfp_tensor tensor = c.alloc(RRFP_F32, {2});
                 static_cast<float*>(tensor.data)[0] = 5;
                 static_cast<float*>(tensor.data)[1] = 6;
                 tensor.flags = RRFP_TENSOR_WANTS_GRADIENT;
                 rrfp_buffer_retain(tensor.buffer);
                 kept[0] = tensor;
                 c.put(0, tensor);
               },
               {},
               {}},
              {[&](TaskContext& c) {
                 kept[1] = c.input(0).at(0);
                 rrfp_buffer_retain(kept[1].buffer);
               },
               [](TaskContext& c) { c.put(0, c.alloc(RRFP_F32, {2})); },
               {}});
    const StepResult result = pair.run();
    ASSERT_TRUE(done(result));
    EXPECT_EQ(result.ranks[0].report.tensor_bytes_live, 8) << "still referred to";
    EXPECT_EQ(kept[0].buffer, kept[1].buffer);
  }
  for (const rrfp_tensor& tensor : kept) {
    EXPECT_EQ(static_cast<float*>(tensor.data)[0], 5);
    EXPECT_EQ(static_cast<float*>(tensor.data)[1], 6);
    rrfp_buffer_release(tensor.buffer);
  }
}

TEST(Buffers, WrappedMemoryIsReleasedOneByOneWhenThePipelineIsGone) {
  std::array<Released, 2> released;
  std::array<float, 2> memory = {};
  std::array<rrfp_buffer*, 2> kept = {};
  {
    Pair pair({[&](TaskContext& c) {
                 for (size_t k = 0; k < 2; ++k) {
                   kept[k] = wrap(c, &memory[k], sizeof(float), Released::release, &released[k]);
                   rrfp_buffer_retain(kept[k]);
                 }
                 c.put_scalar(0, 1);
               },
               {},
               {}},
              {{}, [](TaskContext& c) { c.put_scalar(0, 1); }, {}});
    ASSERT_TRUE(done(pair.run()));
  }
  EXPECT_EQ(released[0].times + released[1].times, 0);
  // Each is released by whoever gives up its last reference, and does not wait for the other.
  rrfp_buffer_release(kept[0]);
  EXPECT_EQ(released[0].times, 1);
  EXPECT_EQ(released[0].thread, std::this_thread::get_id());
  EXPECT_EQ(released[1].times, 0);
  std::thread other([&] { rrfp_buffer_release(kept[1]); });
  const std::thread::id other_id = other.get_id();
  other.join();
  EXPECT_EQ(released[1].times, 1);
  EXPECT_EQ(released[1].thread, other_id);
  EXPECT_EQ(released[0].times, 1);
}

TEST(Buffers, WrappedMemoryOfADestroyedRankIsReleasedByTheLastUser) {
  // The pipeline lives on, but the rank is gone, and nobody calls into it any more.
  Released released;
  float memory = 0;
  rrfp_buffer* kept = nullptr;
  Pair pair({[&](TaskContext& c) {
               kept = wrap(c, &memory, sizeof memory, Released::release, &released);
               rrfp_buffer_retain(kept);
               c.put_scalar(0, 1);
             },
             {},
             {}},
            {{}, [](TaskContext& c) { c.put_scalar(0, 1); }, {}});
  ASSERT_TRUE(done(pair.run()));
  pair.toy.handle(0).reset();
  EXPECT_EQ(released.times, 0);
  rrfp_buffer_release(kept);
  EXPECT_EQ(released.times, 1);
  EXPECT_EQ(released.thread, std::this_thread::get_id());
}

TEST(Buffers, ARetainedBufferMayBePutAgain) {
  // Weights kept between tasks, handed out with each microbatch, even by another pipeline.
  rrfp_tensor weights = {};
  std::atomic<int> seen{0};
  const StageCode receiver = {[&](TaskContext& c) {
                                seen += c.input(0).at(0).data == weights.data ? 1 : 0;
                                EXPECT_EQ(c.scalar(0), 8);
                              },
                              [](TaskContext& c) { c.put(0, {}, nullptr); },
                              {}};
  const StageCode sender = {[&](TaskContext& c) {
                              if (weights.data == nullptr) {
                                weights = c.alloc(RRFP_F32, {1});
                                *static_cast<float*>(weights.data) = 8;
                                rrfp_buffer_retain(weights.buffer);
                              }
                              c.put(0, weights);
                            },
                            {},
                            {}};
  {
    Pair other(sender, receiver);
    {
      Pair pair(sender, receiver);
      ASSERT_TRUE(done(pair.run(3)));
      ASSERT_TRUE(done(other.run(3)));
    }
    ASSERT_TRUE(done(other.run(3)));
  }
  EXPECT_EQ(seen, 9);
  rrfp_buffer_release(weights.buffer);
}

struct CallsIn {
  ToyPipeline* toy;
  int times = 0;
  static void release(void* user_data) {
    auto* self = static_cast<CallsIn*>(user_data);
    ++self->times;
    // No lock is held, so all this neither waits nor fails.
    EXPECT_FALSE(report_text(self->toy->pipeline()).empty());
    rrfp_rank* second = nullptr;
    EXPECT_EQ(rrfp_rank_create(self->toy->pipeline(), 0, &second, nullptr), RRFP_ERR_BAD_STATE);
    self->toy->handle(1).reset();
  }
};

TEST(Buffers, AReleaseFunctionMayCallTheLibrary) {
  float memory = 0;
  rrfp_buffer* kept = nullptr;
  CallsIn calls_in = {};
  Pair pair({[&](TaskContext& c) {
               kept = wrap(c, &memory, sizeof memory, CallsIn::release, &calls_in);
               rrfp_buffer_retain(kept);
               c.put_scalar(0, 1);
             },
             {},
             {}},
            {{}, [](TaskContext& c) { c.put_scalar(0, 1); }, {}});
  calls_in.toy = &pair.toy;
  ASSERT_TRUE(done(pair.run()));
  rrfp_buffer_release(kept);
  pair.toy.handle(0).reset();  // inside this call
  EXPECT_EQ(calls_in.times, 1);
}

struct Reports {
  rrfp_pipeline* pipeline;
  int times = 0;
  static void release(void* user_data) {
    auto* self = static_cast<Reports*>(user_data);
    ++self->times;
    EXPECT_FALSE(report_text(self->pipeline).empty());
  }
};

TEST(Buffers, AReleaseFunctionOfADestroyedRankRunsWithoutALock) {
  Handles handles;
  Reports reports = {handles.pipeline.get()};
  float memory = 3;
  ASSERT_EQ(handles.begin(0, 1, RRFP_MODE_FORWARD), RRFP_OK);
  ASSERT_EQ(handles.begin(1, 1, RRFP_MODE_FORWARD), RRFP_OK);
  ASSERT_EQ(handles.next(0), RRFP_OK);
  const TaskContext context(handles.ranks[0].get(), handles.task, {});
  rrfp_buffer* const buffer = wrap(context, &memory, sizeof memory, Reports::release, &reports);
  context.put(0, view(&memory, buffer, 1));
  ASSERT_EQ(rrfp_rank_done(handles.ranks[0].get(), handles.task.ticket, nullptr, nullptr), RRFP_OK);
  ASSERT_EQ(handles.next(0), RRFP_STEP_DONE);
  ASSERT_EQ(rrfp_rank_end_step(handles.ranks[0].get(), nullptr, nullptr), RRFP_OK);
  handles.ranks[0].reset();
  ASSERT_EQ(handles.next(1), RRFP_OK);
  EXPECT_EQ(reports.times, 0);
  // The last reference goes inside this call, and nobody is left who could collect it.
  handles.finish(1);
  EXPECT_EQ(reports.times, 1);
}

}  // namespace
}  // namespace rrfp::cases
