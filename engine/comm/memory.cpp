// SPDX-License-Identifier: Apache-2.0
#include "engine/comm/memory.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <memory>
#include <new>

namespace rrfp::comm {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr size_t kSmallest = 64;

/// Four sizes per power of two, so that at most a fifth is wasted and sizes that change from step
/// to step still meet again.
size_t capacity_for(size_t bytes) {
  if (bytes <= kSmallest) return kSmallest;
  const size_t step = std::bit_floor(bytes - 1) / 4;
  assert(step > 0);  // bytes - 1 >= kSmallest
  return (bytes + step - 1) / step * step;
}

}  // namespace

const char* name(DType dtype) {
  constexpr std::array<const char*, kDTypeCount> kNames = {"none", "f32", "f64", "f16", "bf16",
                                                           "i8",   "i16", "i32", "i64", "u8",
                                                           "u16",  "u32", "u64", "bool"};
  const auto index = static_cast<size_t>(dtype);
  return index < kNames.size() ? kNames[index] : "unknown";
}

int64_t size_of(DType dtype) {
  constexpr std::array<int64_t, kDTypeCount> kSizes = {0, 4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1};
  return kSizes[static_cast<size_t>(dtype)];
}

int64_t Tensor::element_count() const {
  int64_t count = 1;
  for (int32_t d = 0; d < ndim; ++d) count *= shape[static_cast<size_t>(d)];
  return count;
}

size_t Tensor::byte_size() const {
  return static_cast<size_t>(element_count() * size_of(dtype));
}

bool Tensor::same_shape(const Tensor& other) const {
  return ndim == other.ndim && std::equal(shape.begin(), shape.begin() + ndim, other.shape.begin());
}

void Tensor::set_contiguous_strides() {
  strides = {};
  if (element_count() == 0) return;  // nothing to step over, and extents may be of any size
  int64_t stride = 1;
  for (int32_t d = ndim; d-- > 0;) {
    strides[static_cast<size_t>(d)] = stride;
    stride *= shape[static_cast<size_t>(d)];
  }
}

void Buffer::drop() {
  if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) home->return_buffer(this);
}

void Payload::drop() {
  for (Tensor& tensor : tensors) {
    if (tensor.buffer != nullptr) tensor.buffer->drop();
  }
  tensors.clear();
  opaque = nullptr;
  home->return_payload(this);
}

void MemoryPool::close() {
  orphan();
  unreference();
}

void MemoryPool::orphan() {
  collect();
  // What is pushed before its giver can see the flag is freed here, what is pushed later by its
  // giver.
  orphaned_.store(true);
  free_returned();
}

/// Frees what has been given up without touching what belongs to the owner.
void MemoryPool::free_returned() noexcept {
  for (Buffer* buffer = returned_buffers_.take_all(); buffer != nullptr;) {
    const Buffer* const taken = buffer;
    buffer = buffer->next;
    live_bytes_.fetch_sub(taken->bytes, std::memory_order_relaxed);
    if (taken->capacity > 0) ::operator delete(taken->data, kAlignment);
    const Buffer::ReleaseFn release = taken->capacity > 0 ? nullptr : taken->release;
    void* const user = taken->user;
    delete taken;
    if (release != nullptr) release(user);
  }
  for (Payload* payload = returned_payloads_.take_all(); payload != nullptr;) {
    const Payload* const taken = payload;
    payload = payload->next;
    delete taken;
  }
}

MemoryPool::~MemoryPool() {
  collect();
  for (auto& [capacity, size_class] : classes_) {
    while (Buffer* const buffer = size_class.free.pop()) {
      ::operator delete(buffer->data, kAlignment);
      delete buffer;
    }
  }
  while (Buffer* const shell = shells_.pop()) delete shell;
  while (Payload* const payload = payloads_.pop()) delete payload;
}

void MemoryPool::unreference() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void MemoryPool::return_buffer(Buffer* buffer) {
  returned_buffers_.push(buffer);
  if (orphaned_.load()) free_returned();
  unreference();
}

void MemoryPool::return_payload(Payload* payload) {
  returned_payloads_.push(payload);
  if (orphaned_.load()) free_returned();
  unreference();
}

void MemoryPool::count_live(size_t bytes) {
  const size_t live = live_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  peak_bytes_ = std::max(peak_bytes_, live);
}

Buffer* MemoryPool::allocate(size_t bytes) {
  const size_t capacity = capacity_for(bytes);
  SizeClass& size_class = classes_[capacity];
  Buffer* buffer = size_class.free.pop();
  if (buffer == nullptr) {
    auto made = std::make_unique<Buffer>();
    made->data = ::operator new(capacity, kAlignment, std::nothrow);
    if (made->data == nullptr) return nullptr;
    made->capacity = capacity;
    made->home = this;
    buffer = made.release();
  }
  size_class.unused_min = std::min(size_class.unused_min, size_class.free.count);
  buffer->references.store(1, std::memory_order_relaxed);
  buffer->bytes = bytes;
  references_.fetch_add(1, std::memory_order_relaxed);
  count_live(bytes);
  return buffer;
}

Buffer* MemoryPool::wrap(void* data, size_t bytes, Buffer::ReleaseFn release, void* user) {
  Buffer* buffer = shells_.pop();
  if (buffer == nullptr) {
    buffer = new Buffer;
    buffer->home = this;
  }
  buffer->references.store(1, std::memory_order_relaxed);
  buffer->data = data;
  buffer->bytes = bytes;
  buffer->release = release;
  buffer->user = user;
  references_.fetch_add(1, std::memory_order_relaxed);
  count_live(bytes);
  return buffer;
}

Payload* MemoryPool::allocate_payload() {
  Payload* payload = payloads_.pop();
  if (payload == nullptr) {
    payload = new Payload;
    payload->home = this;
  }
  references_.fetch_add(1, std::memory_order_relaxed);
  return payload;
}

void MemoryPool::take_back(Buffer* buffer) noexcept {
  live_bytes_.fetch_sub(buffer->bytes, std::memory_order_relaxed);
  if (buffer->capacity > 0) {
    classes_.find(buffer->capacity)->second.free.push(buffer);
    return;
  }
  // The shell is reusable before the caller's code runs, which might make another.
  const Buffer::ReleaseFn release = buffer->release;
  void* const user = buffer->user;
  shells_.push(buffer);
  if (release != nullptr) release(user);
}

void MemoryPool::collect() noexcept {
  for (Buffer* buffer = returned_buffers_.take_all(); buffer != nullptr;) {
    Buffer* const next = buffer->next;
    take_back(buffer);
    buffer = next;
  }
  for (Payload* payload = returned_payloads_.take_all(); payload != nullptr;) {
    Payload* const next = payload->next;
    payloads_.push(payload);
    payload = next;
  }
}

void MemoryPool::trim() {
  collect();
  for (auto& [capacity, size_class] : classes_) {
    // How many are needed at once varies with the timing of messages: where some were, half of the
    // others stay, or they would be freed and made again for ever. Sizes that are not used any more
    // go at once.
    const size_t unused = size_class.unused_min;
    const size_t freed = unused == size_class.free.count ? unused : unused / 2;
    for (size_t k = 0; k < freed; ++k) {
      const Buffer* const buffer = size_class.free.pop();
      ::operator delete(buffer->data, kAlignment);
      delete buffer;
    }
    size_class.unused_min = size_class.free.count;
  }
}

size_t MemoryPool::cached_bytes() const {
  size_t bytes = 0;
  for (const auto& [capacity, size_class] : classes_) bytes += capacity * size_class.free.count;
  return bytes;
}

}  // namespace rrfp::comm
