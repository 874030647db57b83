// SPDX-License-Identifier: Apache-2.0
//
// The ledger of activation memory of one rank: what each microbatch holds, what it still needs, and
// whether one more forward may start. Proofs: engine/ARCHITECTURE.md, "Progress".
//
// The state is safe when the microbatches could finish one after the other in injection order: for
// every microbatch j,
//     need(j) + sum of held(k) over k >= j  <=  cap,
// where need(j) is what the forwards of j that have not started will take. A forward of microbatch
// i changes that sum only for j < i, so it is admitted if the largest sum among j < i leaves room
// for it. A finished microbatch needs and holds nothing, so it only asks that the later ones keep
// the cap. The oldest unfinished microbatch is thus always admitted. A segment tree keeps the
// largest sum of every range: acquire, release and fits cost O(log microbatches).
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/core/ids.h"

namespace rrfp::core {

/// Activation memory, counted twice: in slots (one per forward) and in bytes.
struct Amount {
  int64_t slots = 0;
  int64_t bytes = 0;

  Amount& operator+=(const Amount& o) { return slots += o.slots, bytes += o.bytes, *this; }
  Amount& operator-=(const Amount& o) { return slots -= o.slots, bytes -= o.bytes, *this; }
  friend Amount operator+(Amount a, const Amount& b) { return a += b; }
  friend Amount operator-(Amount a, const Amount& b) { return a -= b; }
  bool operator==(const Amount&) const = default;

  [[nodiscard]] bool within(const Amount& limit) const {
    return slots <= limit.slots && bytes <= limit.bytes;
  }
  [[nodiscard]] static Amount max(const Amount& a, const Amount& b) {
    return {std::max(a.slots, b.slots), std::max(a.bytes, b.bytes)};
  }
};

class Ledger {
 public:
  /// Larger than any sum that occurs, small enough to add a few of them.
  static constexpr int64_t kUnlimited = INT64_MAX / 8;

  /// `needs`: per microbatch, what all its forwards on this rank hold together; each within `cap`.
  /// The only member that may allocate.
  void reset(std::span<const Amount> needs, const Amount& cap) {
    cap_ = cap;
    live_ = peak_ = {};
    leaves_ = std::bit_ceil(std::max<size_t>(needs.size(), 1));  // nodes_[1] is the root
    nodes_.assign(2 * leaves_, {});
    for (size_t i = 0; i < needs.size(); ++i) {
      assert(needs[i].within(cap));
      nodes_[leaves_ + i].worst = needs[i];
    }
    for (size_t n = leaves_; n-- > 1;) merge(n);
  }

  /// True if a forward of microbatch `i` that takes `amount` keeps the state safe.
  [[nodiscard]] bool fits(MicrobatchId i, const Amount& amount) const {
    // Climb from the leaf: the left siblings are the microbatches before i, nearest first, the
    // right siblings those after it.
    size_t n = leaves_ + i.index();
    Amount from_here_on = nodes_[n].held;
    Amount before = {};
    Amount worst;
    for (; n > 1; n /= 2) {
      const Node& sibling = nodes_[n ^ 1];
      if ((n & 1) == 0) {
        from_here_on += sibling.held;
      } else {
        worst = Amount::max(worst, sibling.worst + before);
        before += sibling.held;
      }
    }
    return (worst + from_here_on + amount).within(cap_);
  }

  /// A forward of microbatch `i` starts.
  void acquire(MicrobatchId i, const Amount& amount) {
    live_ += amount;
    peak_ = Amount::max(peak_, live_);
    nodes_[leaves_ + i.index()].held += amount;  // need falls by as much: `worst` stays
    climb(leaves_ + i.index());
  }

  /// The backward pass of one of its forwards is done.
  void release(MicrobatchId i, const Amount& amount) {
    live_ -= amount;
    Node& leaf = nodes_[leaves_ + i.index()];
    leaf.held -= amount;
    leaf.worst -= amount;
    assert(leaf.held.slots >= 0 && leaf.held.bytes >= 0);
    climb(leaves_ + i.index());
  }

  /// What a forward of microbatch `i` keeps has left for the host's memory: as if the forward had
  /// not started. acquire() takes it back.
  void put_away(MicrobatchId i, const Amount& amount) {
    live_ -= amount;
    nodes_[leaves_ + i.index()].held -= amount;  // need grows by as much: `worst` stays
    climb(leaves_ + i.index());
  }

  /// True if the microbatches could finish one after the other.
  [[nodiscard]] bool safe() const { return nodes_[1].worst.within(cap_); }

  [[nodiscard]] const Amount& live() const { return live_; }
  [[nodiscard]] const Amount& peak() const { return peak_; }
  [[nodiscard]] const Amount& cap() const { return cap_; }

 private:
  struct Node {
    Amount held;   // sum over the microbatches of the range
    Amount worst;  // largest need(j) + held(j) + held(later ones of the range) over j
  };

  void merge(size_t n) {
    const Node& left = nodes_[2 * n];
    const Node& right = nodes_[2 * n + 1];
    nodes_[n] = {left.held + right.held, Amount::max(right.worst, left.worst + right.held)};
  }
  void climb(size_t n) {
    while (n > 1) merge(n /= 2);
  }

  Amount cap_;
  Amount live_;
  Amount peak_;
  size_t leaves_ = 1;
  std::vector<Node> nodes_;
};

}  // namespace rrfp::core
