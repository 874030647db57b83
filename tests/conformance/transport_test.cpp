// SPDX-License-Identifier: Apache-2.0
//
// What every transport must do. A new transport joins by adding a factory to the list at the end.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/comm/clock.h"
#include "engine/comm/inproc/domain.h"

namespace rrfp::comm {
namespace {

using core::Code;
using core::Direction;
using core::EdgeId;
using core::MicrobatchId;
using core::RankId;
using core::Status;

constexpr int64_t kMs = 1'000'000;

/// All ranks of one transport, as the tests see them.
class Group {
 public:
  virtual ~Group() = default;
  virtual Transport& rank(int32_t r) = 0;
  virtual void reset() = 0;
};

struct Factory {
  std::string name;
  std::function<std::unique_ptr<Group>(int32_t ranks, uint32_t capacity)> make;
};

void PrintTo(const Factory& factory, std::ostream* out) {
  *out << factory.name;
}

Message credit(int32_t from, int32_t edge, int32_t microbatch) {
  Message message;
  message.kind = Message::Kind::kCredit;
  message.from = RankId(from);
  message.edge = EdgeId(edge);
  message.microbatch = MicrobatchId(microbatch);
  return message;
}

/// Waits for one message, at most ten seconds.
bool receive(Transport& transport, Message& out) {
  const int64_t deadline_ns = now_ns() + 10'000 * kMs;
  while (!transport.poll(out)) {
    if (transport.failed() || now_ns() > deadline_ns) return false;
    transport.wait(deadline_ns);
  }
  return true;
}

class TransportTest : public testing::TestWithParam<Factory> {
 protected:
  std::unique_ptr<Group> make(int32_t ranks, uint32_t capacity = 64) {
    return GetParam().make(ranks, capacity);
  }
};

TEST_P(TransportTest, CarriesEveryFieldOfAMessage) {
  const auto group = make(2);
  Message sent = credit(0, 7, 9);
  sent.kind = Message::Kind::kAnnounce;
  sent.direction = Direction::kBackward;
  sent.sequence = 5;
  sent.duration_ns = 12345;
  ASSERT_TRUE(group->rank(0).try_send(RankId(1), sent));
  Message got;
  ASSERT_TRUE(receive(group->rank(1), got));
  EXPECT_EQ(got.kind, Message::Kind::kAnnounce);
  EXPECT_EQ(got.direction, Direction::kBackward);
  EXPECT_EQ(got.from, RankId(0));
  EXPECT_EQ(got.edge, EdgeId(7));
  EXPECT_EQ(got.microbatch, MicrobatchId(9));
  EXPECT_EQ(got.sequence, 5u);
  EXPECT_EQ(got.duration_ns, 12345);
  EXPECT_FALSE(group->rank(1).poll(got)) << "one message was sent";
  EXPECT_FALSE(group->rank(0).poll(got)) << "and none to the sender";
}

TEST_P(TransportTest, CarriesAHeader) {
  const auto group = make(2);
  Message sent;
  sent.kind = Message::Kind::kHeader;
  sent.from = RankId(1);
  sent.header = {.step = -3,
                 .digest = 0xfedcba9876543210,
                 .microbatches = 8,
                 .mode = 1,
                 .order = 2,
                 .hint = {'z', 'b'}};
  ASSERT_TRUE(group->rank(1).try_send(RankId(0), sent));
  Message got;
  ASSERT_TRUE(receive(group->rank(0), got));
  EXPECT_EQ(got.header, sent.header);
}

TEST_P(TransportTest, HandsTensorsOver) {
  const auto group = make(2);
  MemoryPool* pool = MemoryPool::create();
  Payload* payload = pool->allocate_payload();
  Tensor tensor;
  tensor.dtype = DType::kF32;
  tensor.ndim = 1;
  tensor.shape = {4};
  tensor.buffer = pool->allocate(16);
  tensor.data = tensor.buffer->data;
  for (int k = 0; k < 4; ++k) static_cast<float*>(tensor.data)[k] = static_cast<float>(k) + 0.5f;
  payload->tensors.push_back(tensor);
  payload->opaque = pool;
  Message sent = credit(0, 0, 0);
  sent.kind = Message::Kind::kData;
  sent.data = {payload, 0, 0};
  ASSERT_TRUE(group->rank(0).try_send(RankId(1), sent));
  Message got;
  ASSERT_TRUE(receive(group->rank(1), got));
  ASSERT_EQ(got.data.payload->tensors.size(), 1u);
  EXPECT_EQ(got.data.payload->tensors[0].shape[0], 4);
  EXPECT_EQ(static_cast<float*>(got.data.payload->tensors[0].data)[3], 3.5f);
  EXPECT_EQ(got.data.payload->opaque, pool);
  got.data.payload->drop();
  pool->collect();
  EXPECT_EQ(pool->live_bytes(), 0u);
  pool->close();
}

TEST_P(TransportTest, KeepsTheOrderOfAPair) {
  constexpr int32_t kSenders = 3;
  constexpr int32_t kMessages = 20'000;
  const auto group = make(kSenders + 1);
  std::vector<std::thread> senders;
  for (int32_t s = 1; s <= kSenders; ++s) {
    senders.emplace_back([&group, s] {
      for (int32_t k = 0; k < kMessages; ++k) {
        while (!group->rank(s).try_send(RankId(0), credit(s, s, k))) std::this_thread::yield();
      }
    });
  }
  std::vector<int32_t> next(kSenders + 1, 0);
  for (int32_t k = 0; k < kSenders * kMessages; ++k) {
    Message got;
    if (!receive(group->rank(0), got)) {
      ADD_FAILURE() << "message " << k << " did not come";
      break;
    }
    int32_t& expected = next[got.from.index()];
    EXPECT_EQ(got.microbatch.value, expected) << "from rank " << got.from.value;
    expected = got.microbatch.value + 1;
  }
  for (std::thread& sender : senders) sender.join();
}

TEST_P(TransportTest, PingPongBetweenSleepers) {
  constexpr int32_t kRounds = 2'000;
  const auto group = make(2);
  std::thread other([&group] {
    for (int32_t k = 0; k < kRounds; ++k) {
      Message got;
      if (!receive(group->rank(1), got)) return;
      while (!group->rank(1).try_send(RankId(0), got)) std::this_thread::yield();
    }
  });
  int32_t rounds = 0;
  for (; rounds < kRounds; ++rounds) {
    Message got;
    ASSERT_TRUE(group->rank(0).try_send(RankId(1), credit(0, 0, rounds)));
    if (!receive(group->rank(0), got) || got.microbatch.value != rounds) break;
  }
  EXPECT_EQ(rounds, kRounds);
  if (rounds < kRounds) group->rank(0).raise({Code::kCancelled, "the test has failed"});
  other.join();
}

TEST_P(TransportTest, IsBoundedAndNeverBlocksASender) {
  constexpr uint32_t kCapacity = 8;
  const auto group = make(2, kCapacity);
  uint32_t sent = 0;
  while (sent < 1'000'000 && group->rank(0).try_send(RankId(1), credit(0, 0, 0))) ++sent;
  EXPECT_GE(sent, kCapacity);
  ASSERT_LT(sent, 1'000'000u) << "a mailbox that nobody empties must fill up";
  Message got;
  ASSERT_TRUE(group->rank(1).poll(got));
  EXPECT_TRUE(group->rank(0).try_send(RankId(1), credit(0, 0, 1))) << "one place is free again";
  EXPECT_FALSE(group->rank(0).try_send(RankId(1), credit(0, 0, 2)));
}

TEST_P(TransportTest, WaitEndsAtItsDeadline) {
  const auto group = make(2);
  const int64_t begin_ns = now_ns();
  group->rank(0).wait(begin_ns + 20 * kMs);
  const int64_t waited_ns = now_ns() - begin_ns;
  EXPECT_GE(waited_ns, 20 * kMs);
  EXPECT_LT(waited_ns, 5'000 * kMs);
  group->rank(0).wait(begin_ns);  // already past
}

TEST_P(TransportTest, WaitSeesAMessageThatIsAlreadyThere) {
  const auto group = make(2);
  ASSERT_TRUE(group->rank(1).try_send(RankId(0), credit(1, 0, 0)));
  const int64_t begin_ns = now_ns();
  group->rank(0).wait(begin_ns + 10'000 * kMs);
  EXPECT_LT(now_ns() - begin_ns, 5'000 * kMs);
}

TEST_P(TransportTest, WakeEndsTheCurrentOrTheNextWait) {
  const auto group = make(2);
  const int64_t begin_ns = now_ns();
  group->rank(0).wake();
  group->rank(0).wait(begin_ns + 10'000 * kMs);
  std::thread waker([&group] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    group->rank(0).wake();
  });
  group->rank(0).wait(begin_ns + 10'000 * kMs);
  EXPECT_LT(now_ns() - begin_ns, 5'000 * kMs);
  EXPECT_GE(now_ns() - begin_ns, 10 * kMs) << "the first wake must not end two waits";
  waker.join();
}

TEST_P(TransportTest, AFailureReachesEveryRankAndTheFirstOneCounts) {
  constexpr int32_t kRanks = 4;
  const auto group = make(kRanks);
  std::atomic<int32_t> left{0};
  std::vector<std::thread> waiting;
  for (int32_t r = 0; r < kRanks; ++r) {
    waiting.emplace_back([&group, &left, r] {
      Message got;
      EXPECT_FALSE(receive(group->rank(r), got));
      ++left;
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(group->rank(3).failed());
  const int64_t begin_ns = now_ns();
  group->rank(2).raise(Status(Code::kStageFailed, "first").at(RankId(2)).with_user_code(77));
  group->rank(1).raise({Code::kCancelled, "second"});
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(left.load(), kRanks);
  EXPECT_LT(now_ns() - begin_ns, 2'000 * kMs);
  for (int32_t r = 0; r < kRanks; ++r) {
    EXPECT_TRUE(group->rank(r).failed());
    const Status failure = group->rank(r).failure();
    EXPECT_EQ(failure.code(), Code::kStageFailed);
    EXPECT_EQ(failure.text(), "first");
    EXPECT_EQ(failure.rank(), RankId(2));
    EXPECT_EQ(failure.user_code(), 77);
  }
  group->reset();
  EXPECT_FALSE(group->rank(0).failed());
  EXPECT_TRUE(group->rank(0).failure().ok());
}

TEST_P(TransportTest, ResetDropsWhatIsOnItsWay) {
  const auto group = make(2);
  MemoryPool* pool = MemoryPool::create();
  Message sent = credit(0, 0, 0);
  sent.kind = Message::Kind::kData;
  sent.data = {pool->allocate_payload(), 0, 0};
  Tensor tensor;
  tensor.buffer = pool->allocate(100);
  sent.data.payload->tensors.push_back(tensor);
  ASSERT_TRUE(group->rank(0).try_send(RankId(1), sent));
  group->reset();
  Message got;
  EXPECT_FALSE(group->rank(1).poll(got));
  pool->collect();
  EXPECT_EQ(pool->live_bytes(), 0u);
  pool->close();
}

class InprocGroup final : public Group {
 public:
  InprocGroup(int32_t ranks, uint32_t capacity, WakePolicy policy)
      : domain_(ranks, capacity, policy) {}
  Transport& rank(int32_t r) override { return domain_.endpoint(RankId(r)); }
  void reset() override { domain_.reset(); }

 private:
  InprocDomain domain_;
};

Factory inproc(const char* name, WakePolicy policy) {
  return {name, [policy](int32_t ranks, uint32_t capacity) {
            return std::make_unique<InprocGroup>(ranks, capacity, policy);
          }};
}

INSTANTIATE_TEST_SUITE_P(Inproc, TransportTest,
                         testing::Values(inproc("yield", WakePolicy::kYield),
                                         inproc("spin", WakePolicy::kSpin),
                                         inproc("park", WakePolicy::kPark)),
                         [](const auto& given) { return given.param.name; });

}  // namespace
}  // namespace rrfp::comm
