// SPDX-License-Identifier: Apache-2.0
//
// The in-process transport: ranks are threads of one process and hand over pointers.
#pragma once

#include <memory>
#include <vector>

#include "engine/comm/inproc/mailbox.h"
#include "engine/comm/transport.h"

namespace rrfp::comm {

/// All ranks of one pipeline. Outlives its endpoints' users.
class InprocDomain {
 public:
  InprocDomain(int32_t ranks, uint32_t mailbox_capacity, WakePolicy policy);
  ~InprocDomain();

  [[nodiscard]] Transport& endpoint(core::RankId rank);

  /// True if this is the failure that counts, the first one.
  bool raise(const core::Status& failure);
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] core::Status failure() const;
  /// Forgets the failure and drops every message on its way. No rank may be inside a call.
  void reset();

 private:
  class Endpoint;

  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::atomic<bool> failed_{false};
  mutable std::mutex failure_mutex_;
  core::Status failure_;
};

}  // namespace rrfp::comm
