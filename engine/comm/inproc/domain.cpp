// SPDX-License-Identifier: Apache-2.0
#include "engine/comm/inproc/domain.h"

namespace rrfp::comm {

class InprocDomain::Endpoint final : public Transport {
 public:
  Endpoint(InprocDomain& domain, uint32_t mailbox_capacity, WakePolicy policy)
      : domain_(domain), mailbox_(mailbox_capacity, policy) {}

  bool try_send(core::RankId to, const Message& message) override {
    return domain_.endpoints_[to.index()]->mailbox_.try_push(message);
  }
  bool poll(Message& out) override { return mailbox_.try_pop(out); }
  [[nodiscard]] bool quiet() const override { return mailbox_.quiet(); }
  void wait(int64_t deadline_ns) override {
    // raise() wakes after setting its flag, so a failure that comes later ends the wait too.
    if (!domain_.failed()) mailbox_.wait(deadline_ns);
  }
  void wake() override { mailbox_.wake(); }
  void raise(const core::Status& failure) override { domain_.raise(failure); }
  [[nodiscard]] bool failed() const override { return domain_.failed(); }
  [[nodiscard]] core::Status failure() const override { return domain_.failure(); }

  void drop_all() {
    Message message;
    while (mailbox_.try_pop(message)) {
      if (message.kind == Message::Kind::kData) message.data.payload->drop();
    }
  }

 private:
  InprocDomain& domain_;
  Mailbox mailbox_;
};

InprocDomain::InprocDomain(int32_t ranks, uint32_t mailbox_capacity, WakePolicy policy) {
  endpoints_.reserve(static_cast<size_t>(ranks));
  for (int32_t r = 0; r < ranks; ++r) {
    endpoints_.push_back(std::make_unique<Endpoint>(*this, mailbox_capacity, policy));
  }
}

InprocDomain::~InprocDomain() {
  reset();
}

Transport& InprocDomain::endpoint(core::RankId rank) {
  return *endpoints_[rank.index()];
}

bool InprocDomain::raise(const core::Status& failure) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (failed_.load(std::memory_order_relaxed)) return false;
    failure_ = failure;
    failed_.store(true, std::memory_order_release);
  }
  for (const auto& endpoint : endpoints_) endpoint->wake();
  return true;
}

core::Status InprocDomain::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

void InprocDomain::reset() {
  for (const auto& endpoint : endpoints_) endpoint->drop_all();
  const std::lock_guard lock(failure_mutex_);
  failure_ = {};
  failed_.store(false, std::memory_order_release);
}

}  // namespace rrfp::comm
