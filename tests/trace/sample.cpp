// SPDX-License-Identifier: Apache-2.0
#include "tests/trace/sample.h"

#include <algorithm>
#include <limits>
#include <string>

#include "tests/support/splitmix.h"

namespace rrfp::test {

namespace {

using trace::IdleKind;
using trace::SpanKind;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kForwardNs = 1'000'000;
constexpr int64_t kTransferNs = 90'000;
constexpr int64_t kOverheadNs = 4'000;

/// One step of the pipeline.
class Step {
 public:
  Step(const SampleOptions& options, int64_t number, int64_t begin_ns, trace::Timeline& out)
      : options_(options),
        number_(number),
        begin_ns_(begin_ns),
        out_(out),
        random_(options.seed * 1000 + static_cast<uint64_t>(number)),
        stages_(options.ranks * options.stages_per_rank) {
    const size_t count = index(stages_, 0);
    forward_ready_.assign(count, kNever);
    backward_ready_.assign(count, kNever);
    weights_ready_.assign(count, kNever);
    ranks_.resize(static_cast<size_t>(options.ranks));
    for (size_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].now_ns = begin_ns;
      ranks_[r].left =
          options.stages_per_rank * options.microbatches * (options.split_backward ? 3 : 2);
    }
    for (int32_t m = 0; m < options.microbatches; ++m) forward_ready_[index(0, m)] = begin_ns;
  }

  /// Returns when the step has ended.
  int64_t run() {
    for (;;) {
      size_t next = ranks_.size();
      for (size_t r = 0; r < ranks_.size(); ++r) {
        const bool sooner = next == ranks_.size() || ranks_[r].now_ns < ranks_[next].now_ns;
        if (ranks_[r].left > 0 && sooner) next = r;
      }
      if (next == ranks_.size()) break;
      if (!run_task(next)) wait(next);
    }
    int64_t done_ns = 0;
    for (const Rank& rank : ranks_) done_ns = std::max(done_ns, rank.now_ns);
    for (size_t r = 0; r < ranks_.size(); ++r) {
      idle(r, IdleKind::kComplete, done_ns);
      idle(r, IdleKind::kGroup, done_ns + 200'000);
      add({SpanKind::kUpdate,
           {},
           {},
           number_,
           trace::kUnknownTime,
           done_ns + 200'000,
           done_ns + 700'000},
          r);
    }
    return done_ns + 700'000;
  }

 private:
  struct Rank {
    int64_t now_ns = 0;
    int32_t left = 0;
    int32_t in_flight = 0;
  };

  [[nodiscard]] size_t index(int32_t stage, int32_t microbatch) const {
    return static_cast<size_t>(stage) * static_cast<size_t>(options_.microbatches) +
           static_cast<size_t>(microbatch);
  }
  [[nodiscard]] size_t rank_of(int32_t stage) const {
    return static_cast<size_t>(stage % options_.ranks);
  }
  [[nodiscard]] int32_t cap(size_t r) const {
    return options_.stages_per_rank * options_.ranks - static_cast<int32_t>(r) + 1;
  }
  void add(const trace::TaskSpan& span, size_t r) { out_.ranks[r].tasks.push_back(span); }

  /// Runs the oldest task of those that are ready, gradients first.
  bool run_task(size_t r) {
    const Rank& rank = ranks_[r];
    for (const SpanKind kind :
         {options_.split_backward ? SpanKind::kInputGradient : SpanKind::kBackward,
          SpanKind::kForward, SpanKind::kWeightGradient}) {
      std::vector<int64_t>& ready = ready_of(kind);
      for (int32_t m = 0; m < options_.microbatches; ++m) {
        for (auto s = static_cast<int32_t>(r); s < stages_; s += options_.ranks) {
          if (ready[index(s, m)] > rank.now_ns) continue;
          // Only the first stage of a rank lets in more, so that what has begun can always end.
          const bool first = kind == SpanKind::kForward && s < options_.ranks;
          if (first && rank.in_flight >= cap(r)) continue;
          run_task(r, kind, s, m);
          return true;
        }
      }
    }
    return false;
  }

  std::vector<int64_t>& ready_of(SpanKind kind) {
    if (kind == SpanKind::kForward) return forward_ready_;
    return kind == SpanKind::kWeightGradient ? weights_ready_ : backward_ready_;
  }

  void run_task(size_t r, SpanKind kind, int32_t s, int32_t m) {
    Rank& rank = ranks_[r];
    int64_t& ready_ns = ready_of(kind)[index(s, m)];
    int64_t length_ns = kForwardNs / options_.stages_per_rank * random_.between(80, 140) / 100;
    if (kind == SpanKind::kBackward) length_ns *= 2;
    const int64_t end_ns = rank.now_ns + length_ns;
    add({kind, core::StageId(s), core::MicrobatchId(m), number_, ready_ns, rank.now_ns, end_ns}, r);
    ready_ns = kNever;
    rank.now_ns = end_ns + kOverheadNs;
    --rank.left;
    if (kind == SpanKind::kForward) {
      if (s < options_.ranks) ++rank.in_flight;
      if (s + 1 < stages_) {
        forward_ready_[index(s + 1, m)] = send(core::Direction::kForward, s, s + 1, m, end_ns);
      } else {
        backward_ready_[index(s, m)] = end_ns;
      }
    } else if (kind != SpanKind::kWeightGradient) {
      if (s < options_.ranks) --rank.in_flight;
      if (options_.split_backward) weights_ready_[index(s, m)] = end_ns;
      if (s > 0) {
        backward_ready_[index(s - 1, m)] = send(core::Direction::kBackward, s, s - 1, m, end_ns);
      }
    }
  }

  int64_t send(core::Direction direction, int32_t from, int32_t to, int32_t m, int64_t now_ns) {
    const int64_t arrived_ns = now_ns + kTransferNs * random_.between(50, 400) / 100;
    const size_t to_rank = rank_of(to);
    if (rank_of(from) == to_rank) return now_ns;
    out_.ranks[to_rank].messages.push_back(
        {direction, core::StageId(from), core::StageId(to), core::MicrobatchId(m),
         core::RankId::of(rank_of(from)), core::RankId::of(to_rank), number_, now_ns, arrived_ns});
    return arrived_ns;
  }

  /// Until something can be ready.
  void wait(size_t r) {
    const Rank& rank = ranks_[r];
    int64_t until_ns = kNever;
    bool forward = false;
    for (auto s = static_cast<int32_t>(r); s < stages_; s += options_.ranks) {
      for (int32_t m = 0; m < options_.microbatches; ++m) {
        forward = forward || forward_ready_[index(s, m)] <= rank.now_ns;
        until_ns = std::min(until_ns, backward_ready_[index(s, m)]);
        if (forward_ready_[index(s, m)] > rank.now_ns) {
          until_ns = std::min(until_ns, forward_ready_[index(s, m)]);
        }
      }
    }
    for (const Rank& other : ranks_) {
      if (other.left > 0 && other.now_ns > rank.now_ns) until_ns = std::min(until_ns, other.now_ns);
    }
    if (until_ns == kNever) until_ns = rank.now_ns + 10'000;
    const IdleKind held[] = {IdleKind::kMemory, IdleKind::kMemory, IdleKind::kCredit,
                             IdleKind::kPolicy};
    idle(r, forward ? held[(r + static_cast<size_t>(rank.left) / 4) % 4] : IdleKind::kInput,
         until_ns);
  }

  void idle(size_t r, IdleKind reason, int64_t until_ns) {
    Rank& rank = ranks_[r];
    std::vector<trace::IdleSpan>& idles = out_.ranks[r].idles;
    if (until_ns <= rank.now_ns) return;
    if (!idles.empty() && idles.back().end_ns == rank.now_ns && idles.back().reason == reason) {
      idles.back().end_ns = until_ns;
    } else {
      idles.push_back({reason, number_, rank.now_ns, until_ns});
    }
    rank.now_ns = until_ns;
  }

  const SampleOptions& options_;
  const int64_t number_;
  const int64_t begin_ns_;
  trace::Timeline& out_;
  Splitmix random_;
  const int32_t stages_;
  std::vector<int64_t> forward_ready_;  // by stage and microbatch
  std::vector<int64_t> backward_ready_;
  std::vector<int64_t> weights_ready_;
  std::vector<Rank> ranks_;
};

void name_stages(const SampleOptions& options, trace::Timeline& out) {
  const int32_t stages = options.branches > 0 ? options.ranks * options.stages_per_rank : 0;
  for (int32_t s = 0; s < stages; ++s) {
    const int32_t branch = s * options.branches / stages;
    const std::string prefix = "branch" + std::to_string(branch) + ".";
    std::string name = prefix + "layers." + std::to_string(2 * s);
    name += " .. " + prefix + "layers." + std::to_string(2 * s + 1);
    out.stages.push_back({std::move(name), prefix + "embedding"});
  }
}

}  // namespace

trace::Timeline sample_timeline(const SampleOptions& options) {
  trace::Timeline timeline;
  timeline.title = std::to_string(options.ranks) + " ranks, " +
                   std::to_string(options.microbatches) + " microbatches";
  timeline.source = "simulation";
  timeline.facts = {{"hint", "bf"},
                    {"stages", std::to_string(options.ranks * options.stages_per_rank)},
                    {"cap", "2 x ranks"},
                    {"seed", std::to_string(options.seed)}};
  name_stages(options, timeline);
  timeline.ranks.resize(static_cast<size_t>(options.ranks));
  int64_t now_ns = 0;
  for (int64_t step = 0; step < options.steps; ++step) {
    now_ns = Step(options, step + 1, now_ns, timeline).run();
  }
  return timeline;
}

}  // namespace rrfp::test
