// SPDX-License-Identifier: Apache-2.0
//
// Counts forks, so that a handle knows whether it is in the process that made it (guard.h). A
// counter and not the process id, which would cost a system call in every function.
#include <pthread.h>

#include "capi/src/guard.h"

std::atomic<uint32_t> rrfp::capi::forks{0};

namespace {

// In the child, before fork() returns there.
void count_fork() {
  rrfp::capi::forks.fetch_add(1, std::memory_order_relaxed);
}

[[maybe_unused]] const int kRegistered = pthread_atfork(nullptr, nullptr, count_fork);

}  // namespace
