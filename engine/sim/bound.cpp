// SPDX-License-Identifier: Apache-2.0
#include "engine/sim/bound.h"

#include <algorithm>
#include <queue>
#include <vector>

#include "engine/sim/layout.h"

namespace rrfp::sim {
namespace {

struct Job {
  int64_t release_ns = 0;
  int64_t duration_ns = 0;
  int64_t tail_ns = 0;
};

/// Runs, at every moment, the released job with the longest tail.
int64_t jackson(std::vector<Job>& jobs) {
  std::sort(jobs.begin(), jobs.end(),
            [](const Job& a, const Job& b) { return a.release_ns < b.release_ns; });
  const auto shorter_tail = [](const Job& a, const Job& b) { return a.tail_ns < b.tail_ns; };
  std::priority_queue<Job, std::vector<Job>, decltype(shorter_tail)> ready(shorter_tail);
  int64_t now_ns = 0;
  int64_t bound_ns = 0;
  for (size_t next = 0; next < jobs.size() || !ready.empty();) {
    if (ready.empty()) now_ns = std::max(now_ns, jobs[next].release_ns);
    while (next < jobs.size() && jobs[next].release_ns <= now_ns) ready.push(jobs[next++]);
    Job job = ready.top();
    ready.pop();
    int64_t run_ns = job.duration_ns;
    if (next < jobs.size()) run_ns = std::min(run_ns, jobs[next].release_ns - now_ns);
    now_ns += run_ns;
    job.duration_ns -= run_ns;
    if (job.duration_ns > 0) {
      ready.push(job);
    } else {
      bound_ns = std::max(bound_ns, now_ns + job.tail_ns);
    }
  }
  return bound_ns;
}

}  // namespace

int64_t lower_bound_ns(const Realization& step) {
  const Layout layout = {core::Placement::kV, 2};
  const int32_t stages = layout.stages(step);
  std::vector<std::vector<Job>> jobs(static_cast<size_t>(step.devices()));
  std::vector<int64_t> forward(static_cast<size_t>(stages));
  std::vector<int64_t> backward(forward.size());
  std::vector<int64_t> weight(forward.size());
  for (int32_t m = 0; m < step.microbatches(); ++m) {
    for (int32_t s = 0; s < stages; ++s) {
      const auto at = static_cast<size_t>(s);
      forward[at] = duration_ns(step, layout, s, core::TaskKind::kForward, m);
      backward[at] = duration_ns(step, layout, s, core::TaskKind::kInputGradient, m);
      weight[at] = duration_ns(step, layout, s, core::TaskKind::kWeightGradient, m);
    }
    const auto hop = [&](int32_t s, core::Direction direction) {
      return layout.device(step, s) == layout.device(step, s + 1)
                 ? 0
                 : hop_ns(step, layout, s, direction, m);
    };
    // Backwards from the end of the microbatch: what follows I of stage s at least.
    std::vector<int64_t> tail(forward.size());
    for (int32_t s = 0; s < stages; ++s) {
      const auto at = static_cast<size_t>(s);
      tail[at] = weight[at];
      if (s > 0) {
        tail[at] = std::max(
            tail[at], hop(s - 1, core::Direction::kBackward) + backward[at - 1] + tail[at - 1]);
      }
    }
    int64_t head_ns = 0;
    std::vector<int64_t> forward_head(forward.size());
    for (int32_t s = 0; s < stages; ++s) {
      forward_head[static_cast<size_t>(s)] = head_ns;
      head_ns += forward[static_cast<size_t>(s)];
      if (s + 1 < stages) head_ns += hop(s, core::Direction::kForward);
    }
    int64_t forward_tail_ns = 0;  // from the end of F of stage s to the start of I of stage s
    for (int32_t s = stages; s-- > 0;) {
      const auto at = static_cast<size_t>(s);
      auto& mine = jobs[static_cast<size_t>(layout.device(step, s))];
      mine.push_back({forward_head[at], forward[at], forward_tail_ns + backward[at] + tail[at]});
      mine.push_back({head_ns, backward[at], tail[at]});
      mine.push_back({head_ns + backward[at], weight[at], 0});
      head_ns += backward[at];
      if (s == 0) continue;
      head_ns += hop(s - 1, core::Direction::kBackward);
      forward_tail_ns += forward[at] + backward[at] + hop(s - 1, core::Direction::kForward) +
                         hop(s - 1, core::Direction::kBackward);
    }
  }
  int64_t bound_ns = 0;
  for (auto& of_device : jobs) bound_ns = std::max(bound_ns, jackson(of_device));
  return bound_ns;
}

}  // namespace rrfp::sim
