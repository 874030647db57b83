// SPDX-License-Identifier: Apache-2.0
#include "engine/data/decode_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/splitmix.h"
#include "tests/train/scratch.h"

namespace rrfp::data {
namespace {

using core::Code;
using core::Status;
using test::fails_with;

constexpr size_t kSize = 16;  // numbers of most samples
constexpr size_t kBytes = kSize * sizeof(float);

/// A sample is its position again and again. What is decoded is counted.
class Decoding : public ::testing::Test {
 protected:
  std::unique_ptr<DecodeAhead> make(size_t samples_max, size_t bytes_max = 1 << 20) {
    DecodeAhead::Work work;
    work.size = [](Split /*split*/, uint64_t position) { return size_of(position); };
    work.decode = [this](Split split, uint64_t position, std::span<float> out) {
      return decode(split, position, out);
    };
    return std::make_unique<DecodeAhead>(std::move(work), samples_max, bytes_max);
  }

  static size_t size_of(uint64_t position) { return position % 10 == 9 ? 0 : kSize; }
  static float number(Split split, uint64_t position) {
    return static_cast<float>(position % 1000) + (split == Split::kTrain ? 0.0F : 0.5F);
  }

  Status decode(Split split, uint64_t position, std::span<float> out) {
    EXPECT_EQ(out.size(), size_of(position));
    ++decoded_;
    if (slow_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (position == throws_at_) throw std::runtime_error("thrown");
    if (position == bad_at_) return {Code::kBadData, "sample " + std::to_string(position)};
    for (float& x : out) x = number(split, position);
    return {};
  }

  static Status read(DecodeAhead& ahead, Split split, uint64_t position, uint64_t count) {
    ahead.seek(split, position);
    for (uint64_t p = position; p != position + count; ++p) {
      std::vector<float> out(size_of(p), -1.0F);
      if (Status s = ahead.read(p, out); !s.ok()) return s;
      EXPECT_EQ(out, std::vector<float>(size_of(p), number(split, p)));
    }
    return {};
  }

  void wait_for_decoded(int count) {
    while (decoded_ < count) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

  std::atomic<int> decoded_{0};
  std::atomic<bool> slow_{false};
  std::atomic<uint64_t> throws_at_{UINT64_MAX - 1000};
  std::atomic<uint64_t> bad_at_{UINT64_MAX - 1000};
};

TEST_F(Decoding, EachSampleOfARunIsDecodedOnce) {
  const auto ahead = make(8);
  for (uint64_t p = 0; p < 300; p += 3) test::require(read(*ahead, Split::kTrain, p, 3));
  // The 300 and up to 8 more.
  wait_for_decoded(308);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(decoded_, 308);
  EXPECT_EQ(ahead->stats().samples_peak, 8U);
}

TEST_F(Decoding, WhatIsReadyIsUsed) {
  const auto ahead = make(8);
  test::require(read(*ahead, Split::kTrain, 0, 1));
  wait_for_decoded(9);
  // The last of them may not have been put in its place yet.
  test::require(read(*ahead, Split::kTrain, 1, 8));
  EXPECT_GE(ahead->stats().used, 8U);
}

TEST_F(Decoding, MemoryIsBounded) {
  for (const size_t bytes_max : {size_t{0}, kBytes, 3 * kBytes + 1}) {
    const auto ahead = make(100, bytes_max);
    for (uint64_t p = 10; p < 60; p += 5) {
      test::require(read(*ahead, Split::kTrain, p, 5));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    EXPECT_LE(ahead->stats().bytes_peak, std::max(bytes_max, kBytes)) << "one, however large";
    EXPECT_GE(ahead->stats().bytes_peak, std::max(bytes_max, kBytes) / kBytes * kBytes);
  }
  const auto ahead = make(1);
  decoded_ = 0;
  test::require(read(*ahead, Split::kTrain, 0, 50));
  wait_for_decoded(51);
  EXPECT_EQ(ahead->stats().samples_peak, 1U);
}

TEST_F(Decoding, ReadersJumpAround) {
  test::Splitmix random(5);
  for (const size_t samples_max : {size_t{1}, size_t{4}, size_t{50}}) {
    const auto ahead = make(samples_max, 20 * kBytes);
    uint64_t position = UINT64_MAX - 200;  // positions wrap
    for (int k = 0; k < 2000; ++k) {
      const auto count = static_cast<uint64_t>(random.between(1, 6));
      const Split split = random.percent(90) ? Split::kTrain : Split::kValidation;
      test::require(read(*ahead, split, position, count));
      position += count;
      if (random.percent(20)) position += static_cast<uint64_t>(random.between(0, 40));
      if (random.percent(20)) position -= static_cast<uint64_t>(random.between(0, 40));
    }
    EXPECT_LE(ahead->stats().bytes_peak, 21 * kBytes) << "one may be left of an old plan";
    EXPECT_LE(ahead->stats().samples_peak, samples_max);
  }
}

TEST_F(Decoding, ErrorsComeWhenTheSampleIsRead) {
  const auto ahead = make(20);
  bad_at_ = 7;
  throws_at_ = 12;
  test::require(read(*ahead, Split::kTrain, 0, 3));
  wait_for_decoded(23);
  test::require(read(*ahead, Split::kTrain, 3, 4));
  EXPECT_TRUE(fails_with(read(*ahead, Split::kTrain, 7, 1), Code::kBadData, {"sample 7"}));
  EXPECT_TRUE(fails_with(read(*ahead, Split::kTrain, 6, 2), Code::kBadData, {"sample 7"}));
  test::require(read(*ahead, Split::kTrain, 8, 4));
  // An exception stays one in the thread of the reader, and is a status from the other.
  bad_at_ = UINT64_MAX - 1000;
  throws_at_ = UINT64_MAX - 1000;
  test::require(read(*ahead, Split::kTrain, 6, 2));
}

TEST_F(Decoding, ExceptionsOfTheThreadAreStatuses) {
  const auto ahead = make(20);
  throws_at_ = 5;
  test::require(read(*ahead, Split::kTrain, 0, 1));
  wait_for_decoded(21);
  EXPECT_TRUE(fails_with(read(*ahead, Split::kTrain, 1, 9), Code::kInternal, {"thrown"}));
}

TEST_F(Decoding, EndsWhileItDecodes) {
  slow_ = true;
  for (int k = 0; k < 30; ++k) {
    const auto ahead = make(1000);
    if (k % 3 != 0) test::require(read(*ahead, Split::kTrain, 0, static_cast<uint64_t>(k % 3)));
  }
  EXPECT_LT(decoded_, 30 * 10) << "it does not go on to the end of its plan";
}

}  // namespace
}  // namespace rrfp::data
