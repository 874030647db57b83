// SPDX-License-Identifier: Apache-2.0
#include "engine/data/samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "tests/train/sample_files.h"

namespace rrfp::data {
namespace {

using core::Code;
using core::Status;
using test::fails_with;
using test::SampleFiles;
using test::Splitmix;

constexpr int kSize = 3;
constexpr int kRows = 2;  // of a picture

SamplesOptions options_of(const SampleFiles& files) {
  SamplesOptions o;
  o.path = files.manifest;
  o.image_size = kSize;
  o.image_tokens = kRows;
  o.context = 64;
  o.seed = 5;
  return o;
}

std::unique_ptr<Samples> opened(const SamplesOptions& options) {
  std::unique_ptr<Samples> samples;
  test::require(Samples::open(options, samples));
  return samples;
}

/// The numbers of the samples in a sequence, each checked against what its text and colors say.
std::vector<int> samples_in(const Microbatch& m) {
  std::vector<int> out;
  EXPECT_EQ(m.images.size(), static_cast<size_t>(m.image_count) * kSize * kSize * 3);
  size_t image = 0;
  for (size_t at = 0; at < m.tokens.size(); ++at) {
    int number = 0;
    EXPECT_EQ(m.positions[at], 0);
    for (; m.tokens[at] >= '0' && m.tokens[at] <= '9'; ++at)
      number = 10 * number + m.tokens[at] - '0';
    for (; m.tokens[at] == 'x'; ++at) {
    }
    for (int picture = 0; picture < number % 3; ++picture, at += kRows, ++image) {
      EXPECT_EQ(m.tokens[at], kTokenPicture);
      EXPECT_EQ(m.sources[at], static_cast<int32_t>(image) * kRows);
      const test::Rgb color = SampleFiles::color_of(number, picture);
      for (size_t k = 0; k < kSize * kSize * 3; ++k) {
        const double expected = (color[k % 3] / 255.0 - 0.5) / 0.5;
        EXPECT_NEAR(m.images[image * kSize * kSize * 3 + k], expected, 1e-6);
      }
    }
    EXPECT_EQ(m.tokens[at], kTokenEnd);
    EXPECT_EQ(m.segments[at], static_cast<int32_t>(out.size()));
    out.push_back(number);
  }
  EXPECT_EQ(static_cast<int64_t>(image), m.image_count);
  return out;
}

std::vector<int> read(Samples& samples, Split split, uint64_t position, int32_t count,
                      int32_t microbatches) {
  std::vector<Microbatch> batch;
  test::require(samples.read(split, position, count, microbatches, batch));
  EXPECT_EQ(batch.size(), static_cast<size_t>(microbatches));
  std::vector<int> out;
  for (const Microbatch& m : batch) {
    const auto found = samples_in(m);
    EXPECT_FALSE(found.empty());
    out.insert(out.end(), found.begin(), found.end());
  }
  return out;
}

bool same(const std::vector<Microbatch>& a, const std::vector<Microbatch>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const Microbatch& x, const Microbatch& y) {
        return x.tokens == y.tokens && x.targets == y.targets && x.segments == y.segments &&
               x.positions == y.positions && x.sources == y.sources && x.images == y.images &&
               x.image_count == y.image_count;
      });
}

TEST(Samples, EpochsArePermutationsAndSplitsAreDisjoint) {
  const SampleFiles files(50);
  const auto samples = opened(options_of(files));
  ASSERT_EQ(samples->count(Split::kTrain), 45U);
  ASSERT_EQ(samples->count(Split::kValidation), 5U);
  EXPECT_EQ(samples->manifest().pictures_max(), 2);
  const auto held = read(*samples, Split::kValidation, 0, 5, 1);
  EXPECT_EQ(held, (std::vector<int>{9, 19, 29, 39, 49})) << "spread evenly, in the file's order";
  EXPECT_EQ(read(*samples, Split::kValidation, 5'000'000'005, 2, 1), (std::vector<int>{9, 19}));
  std::set<std::vector<int>> orders;
  for (const uint64_t epoch : {0ULL, 1ULL, 2ULL, 1'000'000'007ULL}) {
    auto order = read(*samples, Split::kTrain, epoch * 45, 45, 7);
    orders.insert(order);
    order.insert(order.end(), held.begin(), held.end());
    std::sort(order.begin(), order.end());
    std::vector<int> all(50);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
  }
  EXPECT_EQ(orders.size(), 4U);
  auto options = options_of(files);
  options.seed = 6;
  EXPECT_NE(read(*opened(options), Split::kTrain, 0, 45, 1), *orders.begin());
}

TEST(Samples, ABatchIsAFunctionOfItsPosition) {
  const SampleFiles files(40);
  auto options = options_of(files);
  options.grouping = Grouping::kCost;
  const auto wanderer = opened(options);
  options.ahead = 1;
  const auto short_sighted = opened(options);
  Splitmix random(11);
  uint64_t next = 0;
  for (int k = 0; k < 200; ++k) {
    const auto split = random.percent(80) ? Split::kTrain : Split::kValidation;
    const auto count = random.between32(1, 9);
    const auto groups = random.between32(1, count);
    const uint64_t position =
        random.percent(60) ? next : static_cast<uint64_t>(random.between(0, 99));
    next = position + static_cast<uint64_t>(count);
    std::vector<Microbatch> a;
    std::vector<Microbatch> b;
    std::vector<Microbatch> c;
    test::require(wanderer->read(split, position, count, groups, a));
    test::require(short_sighted->read(split, position, count, groups, b));
    std::vector<uint64_t> positions(static_cast<size_t>(count));
    std::iota(positions.begin(), positions.end(), position);
    test::require(opened(options)->read_at(split, positions, groups, c));
    ASSERT_TRUE(same(a, b)) << k;
    ASSERT_TRUE(same(a, c)) << k;
    for (const Microbatch& m : a) samples_in(m);
  }
  EXPECT_LE(short_sighted->ahead_stats().samples_peak, 1U);
}

TEST(Samples, PositionsFromAnywhere) {
  const SampleFiles files(40);
  const auto samples = opened(options_of(files));
  const uint64_t positions[] = {UINT64_MAX, 3, 3, 0, 1ULL << 40};
  std::vector<Microbatch> batch;
  test::require(samples->read_at(Split::kTrain, positions, 1, batch));
  const auto found = samples_in(batch.front());
  ASSERT_EQ(found.size(), 5U);
  for (size_t k = 0; k < 5; ++k) {
    EXPECT_EQ(found[k], static_cast<int>(samples->item(Split::kTrain, positions[k])));
  }
  EXPECT_EQ(samples->ahead_stats().samples_peak, 0U) << "nothing is decoded ahead";
  // Positions wrap.
  EXPECT_EQ(read(*samples, Split::kTrain, UINT64_MAX, 2, 1),
            (std::vector<int>{found[0], found[3]}));
}

TEST(Samples, CostsBalance) {
  const SampleFiles files(60);
  auto options = options_of(files);
  const auto spread = [&](Grouping grouping) {
    options.grouping = grouping;
    options.image_cost = 50;
    const auto samples = opened(options);
    double worst = 0;
    for (uint64_t p = 0; p < 54; p += 18) {
      std::vector<Microbatch> batch;
      test::require(samples->read(Split::kTrain, p, 18, 4, batch));
      std::vector<double> costs;
      for (const Microbatch& m : batch) {
        costs.push_back(static_cast<double>(m.tokens.size()) +
                        50 * static_cast<double>(m.image_count));
        const auto found = samples_in(m);
        EXPECT_TRUE(grouping == Grouping::kCost || found.size() == 4 || found.size() == 5);
      }
      worst = std::max(worst, *std::max_element(costs.begin(), costs.end()) /
                                  *std::min_element(costs.begin(), costs.end()));
    }
    return worst;
  };
  EXPECT_LT(spread(Grouping::kCost), 1.15);
  EXPECT_GT(spread(Grouping::kCount), 1.15);
}

TEST(Samples, InsideAMicrobatchSamplesStayInOrder) {
  const SampleFiles files(60);
  auto options = options_of(files);
  options.grouping = Grouping::kCost;
  const auto samples = opened(options);
  std::vector<Microbatch> batch;
  test::require(samples->read(Split::kTrain, 7, 20, 3, batch));
  for (const Microbatch& m : batch) {
    uint64_t position = 7;
    for (const int number : samples_in(m)) {
      while (position < 27 && static_cast<int>(samples->item(Split::kTrain, position)) != number) {
        ++position;
      }
      EXPECT_LT(position, 27U) << number << " comes too late";
    }
  }
}

TEST(Samples, FilesThatGoAwayAreNamedAndTheRestCanBeRead) {
  const SampleFiles files(20);
  auto options = options_of(files);
  options.validation_share = 0;
  const auto samples = opened(options);
  std::filesystem::remove(files.folder / SampleFiles::name_of(5, 1));
  test::write_file(files.folder / SampleFiles::name_of(7, 0), "no picture");
  std::vector<Microbatch> batch;
  int failed = 0;
  for (uint64_t p = 0; p < 60; ++p) {
    const auto item = samples->item(Split::kTrain, p);
    const Status status = samples->read(Split::kTrain, p, 1, 1, batch);
    if (item == 5) {
      EXPECT_TRUE(fails_with(status, Code::kIo, {"samples.jsonl\", line 6: ", "5-1.png\""}));
    } else if (item == 7) {
      EXPECT_TRUE(fails_with(status, Code::kBadData, {"samples.jsonl\", line 8: ", "7-0.png\""}));
    } else {
      test::require(status);
      EXPECT_EQ(samples_in(batch.front()), std::vector<int>{static_cast<int>(item)});
    }
    failed += status.ok() ? 0 : 1;
  }
  EXPECT_EQ(failed, 6);
  EXPECT_TRUE(samples->read(Split::kTrain, 0, 20, 4, batch).failed());
  // What was mended is read again.
  test::write_file(files.folder / SampleFiles::name_of(5, 1),
                   test::encode(test::plain(5, 4, SampleFiles::color_of(5, 1))));
  test::write_file(files.folder / SampleFiles::name_of(7, 0),
                   test::encode(test::plain(5, 4, SampleFiles::color_of(7, 0))));
  // The old errors may have been kept for these samples.
  (void)samples->read(Split::kTrain, 100, 1, 1, batch);
  EXPECT_EQ(read(*samples, Split::kTrain, 0, 20, 4).size(), 20U);
}

TEST(Samples, EndWhileTheyDecode) {
  const SampleFiles files(30);
  test::write_file(files.folder / SampleFiles::name_of(2, 0),
                   test::encode(test::plain(1500, 1500, {2, 0, 0})));
  std::vector<Microbatch> batch;
  for (uint64_t k = 0; k < 40; ++k) {
    const auto samples = opened(options_of(files));
    if (k > 0) test::require(samples->read(Split::kTrain, k, 1, 1, batch));
  }
}

TEST(Samples, WithoutPictures) {
  const test::ScratchFolder folder;
  test::write_file(folder / "m", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  SamplesOptions options;
  options.path = folder / "m";
  options.image_size = options.image_tokens = 1;
  options.context = 2;
  options.validation_share = 0;
  const auto samples = opened(options);
  std::vector<Microbatch> batch;
  test::require(samples->read(Split::kTrain, 0, 2, 2, batch));
  for (const Microbatch& m : batch) {
    EXPECT_EQ(m.tokens.size(), 2U);
    EXPECT_EQ(m.image_count, 0);
  }
  EXPECT_TRUE(fails_with(samples->read(Split::kValidation, 0, 1, 1, batch), Code::kBadState,
                         {"no samples in this split"}));
  options.validation_share = 0.4;
  std::unique_ptr<Samples> none;
  EXPECT_TRUE(fails_with(Samples::open(options, none), Code::kBadData,
                         {"m\"", "2 samples", "none to validate with"}));
}

TEST(Samples, WrongArguments) {
  const SampleFiles files(20);
  const auto refused = [&](auto change, std::initializer_list<std::string_view> parts) {
    SamplesOptions options = options_of(files);
    change(options);
    std::unique_ptr<Samples> samples;
    EXPECT_TRUE(fails_with(Samples::open(options, samples), Code::kInvalidArgument, parts));
    EXPECT_EQ(samples, nullptr);
  };
  using O = SamplesOptions;
  refused([](O& o) { o.grouping = static_cast<Grouping>(2); }, {"grouping is 2"});
  refused([](O& o) { o.image_size = 0; }, {"image_size is 0, expected 1 .. 16384"});
  refused([](O& o) { o.image_size = 16385; }, {"image_size is 16385"});
  refused([](O& o) { o.image_tokens = 0; }, {"image_tokens is 0"});
  refused([](O& o) { o.context = 1; }, {"context is 1"});
  refused([](O& o) { o.ahead = -1; }, {"ahead is -1"});
  refused([](O& o) { o.ahead = kAheadMax + 1; }, {"ahead is 1048577"});
  refused([](O& o) { o.pixels_max = 0; }, {"pixels_max is 0"});
  refused([](O& o) { o.validation_share = std::nan(""); }, {"validation share is nan"});
  refused([](O& o) { o.validation_share = 1; }, {"validation share is 1"});
  refused([](O& o) { o.image_cost = -1; }, {"image_cost is -1"});
  refused([](O& o) { o.image_cost = std::nan(""); }, {"image_cost is nan"});
  refused([](O& o) { o.image_cost = HUGE_VAL; }, {"image_cost is inf"});
  const auto samples = opened(options_of(files));
  std::vector<Microbatch> batch;
  for (const auto& [count, groups, part] :
       {std::tuple(0, 1, "count is 0"), std::tuple(-7, 1, "count is -7"),
        std::tuple(3, 0, "microbatches is 0"), std::tuple(3, 4, "microbatches is 4")}) {
    EXPECT_TRUE(fails_with(samples->read(Split::kTrain, 0, count, groups, batch),
                           Code::kInvalidArgument, {part}));
  }
  EXPECT_TRUE(fails_with(samples->read_at(Split::kTrain, {}, 1, batch), Code::kInvalidArgument,
                         {"count is 0"}));
}

}  // namespace
}  // namespace rrfp::data
