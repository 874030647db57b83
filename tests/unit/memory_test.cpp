// SPDX-License-Identifier: Apache-2.0
//
// Tensor memory: reuse, references, who runs release functions, and what stays when things are
// destroyed in odd orders. Run under the address and thread sanitizers too.
#include "engine/comm/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace rrfp::comm {
namespace {

struct PoolCloser {
  void operator()(MemoryPool* pool) const { pool->close(); }
};
using PoolPtr = std::unique_ptr<MemoryPool, PoolCloser>;

PoolPtr make_pool() {
  return PoolPtr(MemoryPool::create());
}

TEST(MemoryTest, AllocatesAlignedMemoryThatCanBeWritten) {
  const PoolPtr pool = make_pool();
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{65}, size_t{1} << 20}) {
    Buffer* buffer = pool->allocate(bytes);
    ASSERT_NE(buffer, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data) % 64, 0u);
    EXPECT_EQ(buffer->bytes, bytes);
    EXPECT_GE(buffer->capacity, bytes);
    EXPECT_LE(buffer->capacity, std::max<size_t>(64, bytes + bytes / 4 + 1));
    std::memset(buffer->data, 0xab, bytes);
    buffer->drop();
  }
}

TEST(MemoryTest, RefusesWhatNoMachineHas) {
  const PoolPtr pool = make_pool();
  EXPECT_EQ(pool->allocate(size_t{1} << 60), nullptr);
  EXPECT_EQ(pool->live_bytes(), 0u);
}

TEST(MemoryTest, ReusesWhatCameBack) {
  const PoolPtr pool = make_pool();
  Buffer* first = pool->allocate(1000);
  void* const data = first->data;
  first->drop();
  EXPECT_EQ(pool->live_bytes(), 1000u) << "not collected yet";
  pool->collect();
  EXPECT_EQ(pool->live_bytes(), 0u);
  Buffer* second = pool->allocate(999);  // of the same size class
  EXPECT_EQ(second->data, data);
  EXPECT_EQ(pool->live_bytes(), 999u);
  EXPECT_EQ(pool->peak_bytes(), 1000u);
  second->drop();
}

TEST(MemoryTest, EveryReferenceCounts) {
  const PoolPtr pool = make_pool();
  Buffer* buffer = pool->allocate(10);
  buffer->retain();
  buffer->drop();
  pool->collect();
  EXPECT_EQ(pool->live_bytes(), 10u);
  buffer->drop();
  pool->collect();
  EXPECT_EQ(pool->live_bytes(), 0u);
}

TEST(MemoryTest, TrimFreesHalfOfWhatWasNeverNeededAndUnusedSizesWhole) {
  const PoolPtr pool = make_pool();
  std::vector<Buffer*> buffers;
  for (int k = 0; k < 4; ++k) buffers.push_back(pool->allocate(256));
  for (Buffer* buffer : buffers) buffer->drop();
  pool->trim();  // needed since the last one: kept
  EXPECT_EQ(pool->cached_bytes(), 4 * 256u);
  Buffer* one = pool->allocate(256);
  one->drop();
  pool->trim();  // three were never needed
  EXPECT_EQ(pool->cached_bytes(), 3 * 256u);
  pool->trim();  // none was
  EXPECT_EQ(pool->cached_bytes(), 0u);
}

struct Released {
  int count = 0;
  std::thread::id thread;
};

void note_release(void* user) {
  auto* released = static_cast<Released*>(user);
  ++released->count;
  released->thread = std::this_thread::get_id();
}

TEST(MemoryTest, WrappedMemoryIsReleasedOnceByTheHomeThread) {
  const PoolPtr pool = make_pool();
  char memory[32];
  Released released;
  Buffer* buffer = pool->wrap(memory, sizeof memory, note_release, &released);
  EXPECT_EQ(buffer->data, memory);
  EXPECT_EQ(pool->live_bytes(), sizeof memory);
  std::thread other([buffer] { buffer->drop(); });
  other.join();
  EXPECT_EQ(released.count, 0) << "the foreign thread must not run it";
  pool->collect();
  EXPECT_EQ(released.count, 1);
  EXPECT_EQ(released.thread, std::this_thread::get_id());
  pool->collect();
  EXPECT_EQ(released.count, 1);
  EXPECT_EQ(pool->live_bytes(), 0u);
}

struct Wrapper {
  MemoryPool* pool;
  int left;
  char memory[8];
};

void wrap_another(void* user) {
  auto* wrapper = static_cast<Wrapper*>(user);
  if (wrapper->left-- == 0) return;
  wrapper->pool->wrap(wrapper->memory, sizeof wrapper->memory, wrap_another, wrapper)->drop();
}

TEST(MemoryTest, AReleaseFunctionMayWrapAgain) {
  const PoolPtr pool = make_pool();
  Wrapper wrapper = {pool.get(), 3, {}};
  wrap_another(&wrapper);
  for (int k = 0; k < 5; ++k) pool->collect();
  EXPECT_EQ(wrapper.left, -1);
  EXPECT_EQ(pool->live_bytes(), 0u);
}

TEST(MemoryTest, ABufferOutlivesItsPool) {
  PoolPtr pool = make_pool();
  Released released;
  char memory[8];
  Buffer* plain = pool->allocate(100);
  Buffer* wrapped = pool->wrap(memory, sizeof memory, note_release, &released);
  pool.reset();
  std::memset(plain->data, 1, 100);
  plain->drop();
  EXPECT_EQ(released.count, 0);
  wrapped->drop();  // the last one out frees the pool and runs what is due
  EXPECT_EQ(released.count, 1);
}

TEST(MemoryTest, PayloadsGoHomeWithTheirTensors) {
  const PoolPtr pool = make_pool();
  Payload* payload = pool->allocate_payload();
  Tensor tensor;
  tensor.buffer = pool->allocate(10);
  payload->tensors.push_back(tensor);
  payload->tensors.emplace_back();  // one without memory
  std::thread other([payload] { payload->drop(); });
  other.join();
  pool->collect();
  EXPECT_EQ(pool->live_bytes(), 0u);
  Payload* again = pool->allocate_payload();
  EXPECT_EQ(again, payload);
  EXPECT_TRUE(again->tensors.empty());
  EXPECT_EQ(again->opaque, nullptr);
  again->drop();
}

TEST(MemoryTest, ManyThreadsGiveUpAtOnce) {
  constexpr int kRounds = 200;
  constexpr int kBuffers = 64;
  const PoolPtr pool = make_pool();
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Buffer*> buffers;
    for (int k = 0; k < kBuffers; ++k) {
      buffers.push_back(pool->allocate(static_cast<size_t>(k) * 16));
      buffers.back()->retain();
    }
    const auto drop_all = [&buffers] {
      for (Buffer* buffer : buffers) buffer->drop();
    };
    std::thread a(drop_all);
    std::thread b(drop_all);
    a.join();
    b.join();
    pool->collect();
    ASSERT_EQ(pool->live_bytes(), 0u);
  }
}

TEST(MemoryTest, TensorSizes) {
  Tensor tensor;
  tensor.dtype = DType::kI64;
  tensor.ndim = 3;
  tensor.shape = {2, 3, 4};
  tensor.set_contiguous_strides();
  EXPECT_EQ(tensor.element_count(), 24);
  EXPECT_EQ(tensor.byte_size(), 192u);
  EXPECT_EQ(tensor.strides[0], 12);
  EXPECT_EQ(tensor.strides[1], 4);
  EXPECT_EQ(tensor.strides[2], 1);
  Tensor scalar;
  scalar.dtype = DType::kF32;
  EXPECT_EQ(scalar.byte_size(), 4u);
  EXPECT_FALSE(tensor.same_shape(scalar));
}

}  // namespace
}  // namespace rrfp::comm
