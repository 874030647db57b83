// SPDX-License-Identifier: Apache-2.0
//
// What travels between ranks. Messages are matched by (edge, direction, microbatch), never by the
// order in which they arrive.
#pragma once

#include <array>
#include <cstdint>

#include "engine/comm/memory.h"
#include "engine/core/ids.h"

namespace rrfp::comm {

/// What the ranks of a step must agree on.
struct StepHeader {
  int64_t step = 0;
  uint64_t digest = 0;  // of hint, skip mask, sizes
  int32_t microbatches = 0;
  uint8_t mode = 0;
  uint8_t order = 0;
  std::array<char, 10> hint = {};  // name, cut and not always terminated

  bool operator==(const StepHeader&) const = default;
};

/// Small enough that a mailbox cell is one cache line.
struct Message {
  enum class Kind : uint8_t {
    kHeader,    // the sender has begun a step; first message of the step to this rank
    kData,      // (edge, direction, microbatch) with its tensors
    kCredit,    // the sender has consumed a message of `edge`
    kAnnounce,  // (edge, direction, microbatch) will follow in about duration_ns
    kReceive,   // the sender asks for (edge, direction, microbatch); paired order
  };

  Kind kind = Kind::kHeader;
  core::Direction direction = core::Direction::kForward;
  bool late = false;  // kData: the sender has given up strict order
  core::RankId from;
  core::EdgeId edge;
  core::MicrobatchId microbatch;
  uint32_t sequence = 0;  // counts the sender's steps, so that early messages can be kept
  struct Data {
    Payload* payload;  // owned by the message
    int64_t sent_ns;   // for timelines
    int64_t due_ns;    // on an emulated link: not to be seen before
  };
  union {
    StepHeader header = {};
    Data data;
    int64_t duration_ns;
  };
};

}  // namespace rrfp::comm
