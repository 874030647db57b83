// SPDX-License-Identifier: Apache-2.0
#include "engine/sim/network.h"

#include <algorithm>

#include "engine/sim/random.h"

namespace rrfp::sim {

Network::Network(const Links& links, const core::StageGraph& graph) : links_(links) {
  std::map<std::pair<int32_t, int32_t>, size_t> known;
  for (int32_t e = 0; e < graph.edge_count(); ++e) {
    const core::Edge& edge = graph.edge(core::EdgeId(e));
    const int32_t from = graph.stage(edge.from).rank.value;
    const int32_t to = graph.stage(edge.to).rank.value;
    for (const auto& ends : {std::pair(from, to), std::pair(to, from)}) {
      const auto [at, is_new] = known.emplace(ends, all_.size());
      if (is_new) {
        all_.emplace_back().key = int64_t{ends.first} * graph.ranks() + ends.second;
      }
      link_of_.push_back(at->second);
    }
  }
}

int64_t Network::send(core::EdgeId edge, core::Direction direction, core::MicrobatchId microbatch,
                      int64_t now_ns) {
  Link& link = all_[link_of_[2 * edge.index() + static_cast<size_t>(direction)]];
  const double factor = links_.factor ? links_.factor(edge, direction, microbatch) : 1;
  const int64_t begin_ns = std::max(now_ns, link.free_ns);
  const double slowdown = is_slow(link, begin_ns) ? links_.episode_factor : 1;
  link.free_ns = begin_ns + static_cast<int64_t>(links_.serialize_ns * factor * slowdown);
  return link.free_ns + static_cast<int64_t>(links_.latency_ns * factor);
}

bool Network::is_slow(Link& link, int64_t now_ns) const {
  if (links_.episode_share <= 0) return false;
  const double quick_ns = links_.episode_ns * (1 - links_.episode_share) / links_.episode_share;
  const Key key(links_.seed, Draw::kEpisode, {link.key});
  if (link.phases == 0) link.slow = key.uniform(0) >= links_.episode_share;  // flipped below
  while (link.phases == 0 || link.phase_end_ns <= now_ns) {
    link.slow = !link.slow;
    const double mean_ns = link.slow ? links_.episode_ns : quick_ns;
    link.phase_end_ns += static_cast<int64_t>(mean_ns * key.exponential(++link.phases));
  }
  return link.slow;
}

}  // namespace rrfp::sim
