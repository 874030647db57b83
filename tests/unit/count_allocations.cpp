// SPDX-License-Identifier: Apache-2.0
//
// All replaceable forms for the default alignment are replaced: with a sanitizer the forms that
// stay would not call these, and memory would be freed by another form than the one it came from.
#include "tests/unit/count_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> count = 0;

void* counted(size_t size) noexcept {
  ++count;
  return std::malloc(size == 0 ? 1 : size);
}

void* counted_or_throw(size_t size) {
  void* const memory = counted(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

int64_t rrfp::core::fixtures::allocation_count() {
  return count;
}

void* operator new(size_t size) {
  return counted_or_throw(size);
}
void* operator new[](size_t size) {
  return counted_or_throw(size);
}
void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return counted(size);
}
void* operator new[](size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return counted(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept {
  std::free(memory);
}
