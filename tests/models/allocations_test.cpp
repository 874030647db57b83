// SPDX-License-Identifier: Apache-2.0
//
// A step like the one before it allocates nothing, on any thread and in any library: malloc itself
// is counted.
#include <atomic>
#include <cerrno>
#include <cstddef>

#include "harness.h"

namespace {

std::atomic<int64_t> g_allocations{0};

void count() {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// glibc's own allocator, under its other names.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  count();
  return __libc_malloc(size);
}
void* calloc(size_t number, size_t size) {
  count();
  return __libc_calloc(number, size);
}
void* realloc(void* memory, size_t size) {
  count();
  return __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  count();
  *out = __libc_memalign(alignment, size);
  return *out != nullptr ? 0 : ENOMEM;
}
}

namespace rrfp::models {
namespace {

TEST(Hook, SeesAllocations) {
  const int64_t before = g_allocations.load();
  std::vector<int> memory(1000);
  EXPECT_EQ(memory[999], 0);
  void* aligned = nullptr;
  ASSERT_EQ(posix_memalign(&aligned, 64, 100), 0);
  free(aligned);
  EXPECT_GE(g_allocations.load(), before + 2);
}

/// Counts the allocations of steps, 30 at a time.
class Steps {
 public:
  Steps(const rrfp_trainer_options& options, int32_t rounds)
      : model_(make_gpt(small_gpt(RRFP_GPT_TIED, 0.1))),
        trainer_(make_trainer(model_.get(), options)),
        data_(random_tokens(8, 2, 16, 32, 1)),
        batch_(data_.batch(2, 0, rounds)) {
    rrfp_train_report_init(&report_);
    allocations();  // fills caches and pools
  }
  int64_t allocations() {
    const int64_t before = g_allocations.load();
    for (int s = 0; s < 30; ++s) {
      check(rrfp_trainer_step(trainer_.get(), &batch_, &report_, &error_), error_);
    }
    return g_allocations.load() - before;
  }

 private:
  rrfp_error error_ = {};
  rrfp_train_report report_ = {};
  ModelPtr model_;
  TrainerPtr trainer_;
  BatchData data_;
  rrfp_batch batch_;
};

// How many messages wait at once depends on the timing, so with several ranks pools may grow for a
// while, up to what the caps allow. Then they must stay: 150 steps in a row, in which memory that
// is not used is given back twice, allocate nothing.
constexpr int kQuietWindows = 5;

bool settles(Steps& steps, int windows) {
  int quiet = 0;
  for (int k = 0; k < windows && quiet < kQuietWindows; ++k) {
    quiet = steps.allocations() == 0 ? quiet + 1 : 0;
  }
  return quiet == kQuietWindows;
}

TEST(SteadyState, AllocatesNothing) {
  for (int32_t stages : {1, 2, 4}) {
    for (rrfp_order order : {RRFP_ORDER_READY, RRFP_ORDER_STRICT}) {
      for (int32_t rounds : {1, 2}) {
        for (const char* hint : {"1f1b", "zb-h1"}) {
          const HintPtr owner = make_hint(hint);
          rrfp_trainer_options options = trainer_options(stages);
          options.hint = owner.get();
          options.order = order;
          options.trace_steps = 2;
          Steps steps(options, rounds);
          EXPECT_TRUE(settles(steps, stages == 1 ? kQuietWindows : 60))
              << stages << " stages, " << hint << ", order " << order << ", rounds " << rounds;
        }
      }
    }
  }
}

}  // namespace
}  // namespace rrfp::models
