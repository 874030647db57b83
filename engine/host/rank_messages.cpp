// SPDX-License-Identifier: Apache-2.0
//
// What a rank sends and receives.
#include <algorithm>
#include <cstring>

#include "engine/host/pipeline.h"
#include "engine/host/rank_host.h"

namespace rrfp::host {

using comm::Message;
using core::Code;
using core::Status;

// --- Sending

void RankHost::send(core::RankId to, Message message) {
  message.from = rank_;
  message.sequence = sequence_;
  // Messages of one pair keep their order, so nothing overtakes what already waits for room.
  if (outbox_.empty() && transport_.try_send(to, message)) {
    ++report_.messages_sent;
  } else {
    outbox_.push_back({to, message});
  }
}

void RankHost::flush_outbox() {
  if (outbox_.empty()) return;
  std::fill(full_.begin(), full_.end(), false);
  std::erase_if(outbox_, [&](const Queued& queued) {
    if (full_[queued.to.index()]) return false;
    if (transport_.try_send(queued.to, queued.message)) {
      ++report_.messages_sent;
      return true;
    }
    full_[queued.to.index()] = true;
    return false;
  });
}

/// All tasks are done, so every input has been sent and nobody needs our credits or announcements
/// any more; a receiver that has ended the step would not even make room for them.
void RankHost::drop_hints() {
  std::erase_if(outbox_, [](const Queued& queued) {
    return queued.message.kind == Message::Kind::kCredit ||
           queued.message.kind == Message::Kind::kAnnounce;
  });
}

comm::StepHeader RankHost::make_header(const StepRequest& request) const {
  uint64_t digest = 0xcbf29ce484222325ULL;
  const auto add = [&](uint64_t value) { digest = (digest ^ value) * 0x100000001b3ULL; };
  add(request.hint->digest());
  add(request.shape.skip.size());
  for (uint8_t skip : request.shape.skip) add(skip);
  for (int64_t bytes : request.shape.activation_bytes) add(static_cast<uint64_t>(bytes));
  comm::StepHeader header;
  header.step = request.step;
  header.digest = digest;
  header.microbatches = request.shape.microbatches;
  header.mode = static_cast<uint8_t>(request.shape.mode);
  header.order = static_cast<uint8_t>(request.policy.order);
  const std::string_view name = request.hint->name();
  std::copy_n(name.begin(), std::min(name.size(), header.hint.size()), header.hint.begin());
  return header;
}

void RankHost::send_headers() {
  for (core::RankId peer : peers_) {
    Message message;
    message.kind = Message::Kind::kHeader;
    message.header = header_;
    send(peer, message);
  }
}

// --- Receiving

Status RankHost::drain() {
  Message message;
  while (transport_.poll(message)) {
    if (delayed(message)) continue;
    if (Status s = handle(message); !s.ok()) return s;
  }
  while (take_due(message)) {
    if (Status s = handle(message); !s.ok()) return s;
  }
  return {};
}

Status RankHost::handle(const Message& message) {
  if (message.sequence > sequence_) {  // the sender is a step ahead
    early_.push_back(message);
    return {};
  }
  if (message.sequence < sequence_) {
    // Credits and announcements of a step may outlive it; nobody needs them then.
    if (message.kind != Message::Kind::kData) return {};
    discard(message.data.payload);
    return {Code::kInternal, "data of a step that has ended arrived from rank " +
                                 std::to_string(message.from.value)};
  }
  switch (message.kind) {
    case Message::Kind::kHeader: return check_header(message);
    case Message::Kind::kCredit: return feed(core::Event::credit(message.edge));
    case Message::Kind::kAnnounce:
      return feed(core::Event::announce(message.edge, message.direction, message.microbatch,
                                        message.duration_ns));
    case Message::Kind::kReceive:
      return feed(core::Event::receiving(message.edge, message.direction, message.microbatch));
    case Message::Kind::kData: break;
  }
  Status s =
      feed(core::Event::message(message.edge, message.direction, message.microbatch, message.late));
  if (!s.ok()) {
    discard(message.data.payload);
    return s;
  }
  inbox_[slot(plan_->find_edge(message.edge), message.direction, message.microbatch)] =
      message.data.payload;
  if (tracing_) trace_message(message);
  return {};
}

/// On an emulated link a message that has come must not be seen before its time.
bool RankHost::delayed(const Message& message) {
  // Those of a later step are kept elsewhere until it begins.
  if (pipeline_.options().links.arrival_ns == nullptr || message.kind != Message::Kind::kData ||
      message.sequence > sequence_ || message.data.due_ns <= comm::now_ns()) {
    return false;
  }
  delayed_.push_back(message);
  std::push_heap(delayed_.begin(), delayed_.end(), due_later);
  return true;
}

void RankHost::stamp(Message& message) const {
  const LinkModel& links = pipeline_.options().links;
  message.data.sent_ns = 0;
  message.data.due_ns = 0;
  if (!tracing_ && links.arrival_ns == nullptr) return;
  message.data.sent_ns = comm::now_ns();
  if (links.arrival_ns == nullptr) return;
  message.data.due_ns = links.arrival_ns(links.user, message.edge, message.direction,
                                         message.microbatch, message.data.sent_ns);
}

bool RankHost::due_later(const Message& a, const Message& b) {
  return a.data.due_ns > b.data.due_ns;
}

bool RankHost::take_due(Message& out) {
  if (delayed_.empty() || delayed_.front().data.due_ns > comm::now_ns()) return false;
  std::pop_heap(delayed_.begin(), delayed_.end(), due_later);
  out = delayed_.back();
  delayed_.pop_back();
  return true;
}

Status RankHost::feed(const core::Event& event) {
  const bool timed = event.kind == core::Event::Kind::kAnnounce || tracing_;
  core_.apply(event, timed ? comm::now_ns() : 0);
  return core_.fault();
}

Status RankHost::replay_early() {
  std::vector<Message> early;
  early.swap(early_);  // handling a message may keep it once more
  Status status;
  size_t next = 0;
  for (; status.ok() && next < early.size(); ++next) {
    if (!delayed(early[next])) status = handle(early[next]);
  }
  early.erase(early.begin(), early.begin() + static_cast<std::ptrdiff_t>(next));
  early.insert(early.begin(), early_.begin(), early_.end());
  early_.swap(early);  // also keeps the memory, so that steps allocate nothing
  return status;
}

Status RankHost::check_header(const Message& message) {
  std::erase(awaited_, message.from);
  const comm::StepHeader& theirs = message.header;
  if (theirs == header_) return {};
  const auto mismatch = [&](const char* what, const std::string& their_value,
                            const std::string& our_value) {
    return Status(Code::kHeaderMismatch, "rank " + std::to_string(message.from.value) +
                                             " began a step with " + what + " " + their_value +
                                             ", rank " + std::to_string(rank_.value) + " with " +
                                             our_value)
        .at(message.from);
  };
  const auto number = [&](const char* what, int64_t their_value, int64_t our_value) {
    return mismatch(what, std::to_string(their_value), std::to_string(our_value));
  };
  if (theirs.step != header_.step) return number("step number", theirs.step, header_.step);
  if (theirs.microbatches != header_.microbatches) {
    return number("microbatches", theirs.microbatches, header_.microbatches);
  }
  if (theirs.mode != header_.mode) {
    const auto word = [](uint8_t mode) {
      return static_cast<core::StepMode>(mode) == core::StepMode::kTrain ? "train" : "forward";
    };
    return mismatch("mode", word(theirs.mode), word(header_.mode));
  }
  if (theirs.order != header_.order) {
    const auto word = [](uint8_t order) {
      constexpr const char* kWords[] = {"ready", "strict", "paired"};
      return order < std::size(kWords) ? kWords[order] : "unknown";
    };
    return mismatch("order", word(theirs.order), word(header_.order));
  }
  const auto name = [](const comm::StepHeader& header) {
    return std::string(header.hint.data(), strnlen(header.hint.data(), header.hint.size()));
  };
  if (name(theirs) != name(header_)) return mismatch("hint", name(theirs), name(header_));
  return mismatch("another hint, skip mask or activation sizes (digest",
                  std::to_string(theirs.digest) + ")", std::to_string(header_.digest));
}

}  // namespace rrfp::host
