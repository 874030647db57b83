// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of one pipeline in this process share: the graph, the options, the transport, the
// watchdog and the report.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/comm/inproc/domain.h"
#include "engine/host/options.h"
#include "engine/host/rank_host.h"

namespace rrfp::host {

class Pipeline {
 public:
  /// `graph` must be sealed; `options.caps` has one entry per rank.
  static core::Status create(std::shared_ptr<const core::StageGraph> graph, EdgeSpecs specs,
                             PipelineOptions options, std::shared_ptr<Pipeline>& out);

  [[nodiscard]] const core::StageGraph& graph() const { return *graph_; }
  [[nodiscard]] const std::shared_ptr<const core::StageGraph>& shared_graph() const {
    return graph_;
  }
  [[nodiscard]] const PipelineOptions& options() const { return options_; }
  [[nodiscard]] const std::vector<TensorSpec>& specs(core::EdgeId edge) const {
    return specs_[edge.index()];
  }

  /// Claims a rank for a handle; each rank has at most one at a time.
  core::Status open(core::RankId rank, RankHost*& out);
  void close(RankHost& rank);

  /// Fails the current step on every rank. Any thread.
  void cancel(std::string text);
  /// Makes the pipeline usable again after a failure: forgets the step and everything on its way.
  /// Refused with kBusy while any rank is inside a call.
  core::Status reset();
  /// What the ranks have recorded. Refused with kBusy while any rank is inside a call.
  core::Status timeline(trace::Timeline& out);
  /// The report of the watchdog that ended the step, else what every rank does now. Any thread.
  [[nodiscard]] std::string report();
  void log(LogLevel level, const std::string& text) const;

  // For RankHost:
  [[nodiscard]] RankHost& rank(core::RankId id) { return *ranks_[id.index()]; }
  /// True if any handle has ever been given up.
  [[nodiscard]] bool any_gone() const { return ever_closed_.load(std::memory_order_acquire); }
  /// Ends the step if nothing has finished anywhere since `watchdog_ns` before now.
  void watch(core::RankId watcher, int64_t now_ns);
  /// When watch() is due next.
  [[nodiscard]] int64_t watch_due_ns() const;

 private:
  class Claims;

  Pipeline(std::shared_ptr<const core::StageGraph> graph, EdgeSpecs specs, PipelineOptions options);
  [[nodiscard]] int64_t last_progress_ns() const;
  [[nodiscard]] std::string describe_all(int64_t now_ns);

  const std::shared_ptr<const core::StageGraph> graph_;
  const EdgeSpecs specs_;
  const PipelineOptions options_;
  comm::InprocDomain domain_;
  std::vector<std::unique_ptr<RankHost>> ranks_;
  std::atomic<bool> ever_closed_{false};
  std::mutex report_mutex_;
  std::string watchdog_report_;
};

}  // namespace rrfp::host
