// SPDX-License-Identifier: Apache-2.0
//
// Links between ranks on the virtual clock.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/core/graph.h"
#include "engine/sim/scenario.h"

namespace rrfp::sim {

class Network {
 public:
  Network(const Links& links, const core::StageGraph& graph);

  /// Hands a message over at `now_ns`; returns when it arrives.
  int64_t send(core::EdgeId edge, core::Direction direction, core::MicrobatchId microbatch,
               int64_t now_ns);

 private:
  /// A link is slow between the ends of its odd and even phases, which alternate from time 0 on.
  struct Link {
    int64_t key = 0;
    int64_t free_ns = 0;
    bool slow = false;
    int64_t phase_end_ns = 0;
    uint64_t phases = 0;
  };

  [[nodiscard]] bool is_slow(Link& link, int64_t now_ns) const;

  const Links& links_;
  std::vector<Link> all_;
  std::vector<size_t> link_of_;  // by edge and direction
};

}  // namespace rrfp::sim
