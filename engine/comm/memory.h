// SPDX-License-Identifier: Apache-2.0
//
// Tensor memory that is handed from rank to rank without a copy.
//
// A Buffer is a counted reference to memory, either from the pool of its home rank or wrapped
// around the caller's own. A Payload is what one message carries: tensor views and the references
// that keep them alive. Both are made by their home rank and may be given up by any thread; they
// then travel home through a lock-free stack, and the home rank recycles them or calls the caller's
// release function, inside one of its own calls. So no foreign thread ever runs a caller's code,
// and pools need no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace rrfp::comm {

class MemoryPool;

/// Values as in the C ABI.
enum class DType : int32_t {
  kNone = 0,  // no tensor: a gradient that is zero
  kF32 = 1,
  kF64 = 2,
  kF16 = 3,
  kBF16 = 4,
  kI8 = 5,
  kI16 = 6,
  kI32 = 7,
  kI64 = 8,
  kU8 = 9,
  kU16 = 10,
  kU32 = 11,
  kU64 = 12,
  kBool = 13,
};
constexpr int32_t kDTypeCount = 14;

[[nodiscard]] const char* name(DType dtype);
[[nodiscard]] int64_t size_of(DType dtype);
[[nodiscard]] inline bool is_float(DType d) {
  return d >= DType::kF32 && d <= DType::kBF16;
}

struct Buffer {
  using ReleaseFn = void (*)(void* user);  // must not throw

  std::atomic<int32_t> references{1};
  MemoryPool* home = nullptr;
  void* data = nullptr;
  size_t bytes = 0;
  size_t capacity = 0;  // of pool memory; 0 = wrapped
  ReleaseFn release = nullptr;
  void* user = nullptr;
  Buffer* next = nullptr;  // in the return stack

  void retain() { references.fetch_add(1, std::memory_order_relaxed); }
  /// Gives up one reference. Any thread.
  void drop();
};

struct Tensor {
  static constexpr int32_t kDimsMax = 8;

  void* data = nullptr;
  Buffer* buffer = nullptr;
  std::array<int64_t, kDimsMax> shape = {};
  std::array<int64_t, kDimsMax> strides = {};  // in elements
  int32_t ndim = 0;
  DType dtype = DType::kNone;
  int32_t device_type = 1;  // as in DLPack: 1 = CPU
  int32_t device_id = 0;
  bool wants_gradient = false;

  [[nodiscard]] int64_t element_count() const;
  [[nodiscard]] size_t byte_size() const;
  [[nodiscard]] bool same_shape(const Tensor& other) const;
  void set_contiguous_strides();
};

struct Payload {
  std::vector<Tensor> tensors;  // each with a reference to its buffer
  void* opaque = nullptr;
  MemoryPool* home = nullptr;
  Payload* next = nullptr;

  /// Gives up the tensors and goes home. Any thread; the payload must not be touched afterwards.
  void drop();
};

/// A stack to which any thread pushes and whose owner takes everything at once.
template <class Node>
class ReturnStack {
 public:
  void push(Node* node) {
    Node* head = head_.load(std::memory_order_relaxed);
    do {
      node->next = head;
    } while (!head_.compare_exchange_weak(head, node));
  }
  [[nodiscard]] Node* take_all() {
    return head_.load() == nullptr ? nullptr : head_.exchange(nullptr);
  }

 private:
  std::atomic<Node*> head_{nullptr};
};

/// The memory of one rank. All members but those marked "any thread" belong to the rank's owner.
/// The pool lives until its owner has closed it and the last thing it gave out is back.
class MemoryPool {
 public:
  [[nodiscard]] static MemoryPool* create() { return new MemoryPool; }
  /// The owner is done with the pool, for good.
  void close();
  /// While the pool is orphaned nobody collects: whoever gives something up last frees it, and runs
  /// its release function. Owner only.
  void orphan();
  void adopt() { orphaned_.store(false); }

  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// Memory aligned to 64 bytes, with one reference; null if there is none left. Does not collect.
  [[nodiscard]] Buffer* allocate(size_t bytes);
  /// The caller's memory, with one reference; release(user) is called when it is no longer used.
  [[nodiscard]] Buffer* wrap(void* data, size_t bytes, Buffer::ReleaseFn release, void* user);
  [[nodiscard]] Payload* allocate_payload();

  /// Takes back what other ranks gave up. May call release functions of the caller.
  void collect() noexcept;
  /// Collects, and frees cached memory that has not been needed since the last trim; of sizes that
  /// are in use, half of it.
  void trim();

  /// Bytes of tensor memory made here and not yet collected, wrapped memory included. Any thread.
  [[nodiscard]] size_t live_bytes() const { return live_bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] size_t peak_bytes() const { return peak_bytes_; }
  void restart_peak() { peak_bytes_ = live_bytes(); }
  /// Bytes kept for reuse.
  [[nodiscard]] size_t cached_bytes() const;

 private:
  friend struct Buffer;
  friend struct Payload;

  /// A list through Node::next, so that taking back never allocates.
  template <class Node>
  struct FreeList {
    Node* head = nullptr;
    size_t count = 0;

    void push(Node* node) {
      node->next = head;
      head = node;
      ++count;
    }
    [[nodiscard]] Node* pop() {
      if (head == nullptr) return nullptr;
      Node* const node = head;
      head = node->next;
      --count;
      return node;
    }
  };
  struct SizeClass {
    FreeList<Buffer> free;
    size_t unused_min = 0;  // fewest free buffers since the last trim: these were never needed
  };

  MemoryPool() = default;
  ~MemoryPool();
  void return_buffer(Buffer* buffer);     // any thread
  void return_payload(Payload* payload);  // any thread
  void unreference();                     // any thread
  void free_returned() noexcept;          // any thread
  void count_live(size_t bytes);
  void take_back(Buffer* buffer) noexcept;

  std::atomic<int64_t> references_{1};  // the owner, and everything that is out
  std::atomic<bool> orphaned_{false};
  ReturnStack<Buffer> returned_buffers_;
  ReturnStack<Payload> returned_payloads_;
  std::map<size_t, SizeClass> classes_;  // by capacity
  FreeList<Buffer> shells_;              // of wrapped memory, for reuse
  FreeList<Payload> payloads_;
  std::atomic<size_t> live_bytes_{0};
  size_t peak_bytes_ = 0;
};

}  // namespace rrfp::comm
