// SPDX-License-Identifier: Apache-2.0
#include "engine/data/corpus.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/data/file_bytes.h"
#include "engine/data/permutation.h"
#include "tests/train/scratch.h"

namespace rrfp::data {
namespace {

using core::Code;
using core::Status;
using test::fails_with;
using test::ScratchFolder;
using test::write_file;

struct Sample {
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;

  friend auto operator<=>(const Sample&, const Sample&) = default;
};

Sample sample(const Corpus& corpus, Split split, uint64_t position) {
  const auto context = static_cast<size_t>(corpus.context());
  Sample out{std::vector<int32_t>(context, -1), std::vector<int32_t>(context, -1)};
  corpus.sample(split, position, out.tokens, out.targets);
  return out;
}

/// Little-endian numbers of this width.
std::string packed(const std::vector<uint32_t>& tokens, int width) {
  std::string bytes;
  for (const uint32_t token : tokens) {
    for (int k = 0; k < width; ++k) bytes += static_cast<char>(token >> (8 * k) & 255);
  }
  return bytes;
}

std::vector<uint32_t> counting(uint32_t count) {
  std::vector<uint32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 0U);
  return tokens;
}

CorpusOptions bytes_options(std::vector<std::string> paths, int32_t context,
                            double validation_share = 0) {
  CorpusOptions options;
  options.paths = std::move(paths);
  options.context = context;
  options.validation_share = validation_share;
  return options;
}

/// Token t of the stream is t, so that a token tells the window it is from.
CorpusOptions counting_options(const ScratchFolder& folder, uint32_t tokens, int32_t context,
                               double validation_share) {
  write_file(folder / "tokens", packed(counting(tokens), 4));
  CorpusOptions options = bytes_options({folder / "tokens"}, context, validation_share);
  options.format = Format::kU32;
  options.vocabulary = static_cast<int32_t>(tokens);
  return options;
}

std::shared_ptr<const Corpus> opened(const CorpusOptions& options) {
  std::shared_ptr<const Corpus> corpus;
  test::require(Corpus::open(options, corpus));
  return corpus;
}

Status failure(const CorpusOptions& options) {
  std::shared_ptr<const Corpus> corpus;
  Status status = Corpus::open(options, corpus);
  EXPECT_EQ(corpus, nullptr);
  return status;
}

std::string text_of(const Corpus& corpus) {
  std::string text;
  for (int64_t p = 0; p < corpus.window_count(Split::kTrain); ++p) {
    // A single window makes the order plain.
    for (const int32_t token : sample(corpus, Split::kTrain, static_cast<uint64_t>(p)).tokens) {
      text += static_cast<char>(token);
    }
  }
  return text;
}

/// The windows of one epoch in their order, by the number of each.
std::vector<int64_t> windows_of(const Corpus& corpus, Split split, uint64_t epoch) {
  const auto count = static_cast<uint64_t>(corpus.window_count(split));
  std::vector<int64_t> windows;
  for (uint64_t p = 0; p < count; ++p) {
    const Sample s = sample(corpus, split, epoch * count + p);
    EXPECT_EQ(s.tokens.front() % corpus.context(), 0);
    windows.push_back(s.tokens.front() / corpus.context());
    for (size_t k = 0; k < s.tokens.size(); ++k) {
      EXPECT_EQ(s.tokens[k], s.tokens.front() + static_cast<int32_t>(k));
      EXPECT_EQ(s.targets[k], s.tokens[k] + 1);
    }
  }
  return windows;
}

TEST(Corpus, TargetsAreTheTokensThatFollow) {
  const ScratchFolder folder;
  write_file(folder / "text", "abcdefg\xff");
  const auto corpus = opened(bytes_options({folder / "text"}, 7));
  EXPECT_EQ(corpus->vocabulary(), 256);
  EXPECT_EQ(corpus->context(), 7);
  EXPECT_EQ(corpus->token_count(), 8);
  EXPECT_EQ(corpus->window_count(Split::kTrain), 1);
  EXPECT_EQ(corpus->window_count(Split::kValidation), 0);
  const Sample s = sample(*corpus, Split::kTrain, 0);
  EXPECT_EQ(s.tokens, (std::vector<int32_t>{'a', 'b', 'c', 'd', 'e', 'f', 'g'}));
  EXPECT_EQ(s.targets, (std::vector<int32_t>{'b', 'c', 'd', 'e', 'f', 'g', 255}));
  EXPECT_EQ(sample(*corpus, Split::kTrain, UINT64_MAX), s);
}

TEST(Corpus, WindowCountIsOneTokenShort) {
  const ScratchFolder folder;
  for (int32_t context = 1; context <= 7; ++context) {
    for (size_t size = static_cast<size_t>(context) + 1; size < 30; ++size) {
      write_file(folder / "text", std::string(size, 'x'));
      const auto corpus = opened(bytes_options({folder / "text"}, context));
      EXPECT_EQ(corpus->window_count(Split::kTrain), (static_cast<int64_t>(size) - 1) / context);
    }
  }
}

TEST(Corpus, EveryEpochHasEveryWindowOnce) {
  const ScratchFolder folder;
  for (const uint32_t windows : {1U, 2U, 3U, 5U, 16U, 17U, 64U, 65U, 1000U}) {
    CorpusOptions options = counting_options(folder, windows * 3 + 1, 3, 0);
    std::set<std::vector<int64_t>> orders;
    for (const uint64_t seed : {0ULL, 1ULL, 0xffffffffffffffffULL}) {
      options.seed = seed;
      const auto corpus = opened(options);
      for (const uint64_t epoch : {0ULL, 1ULL, 2ULL, 1'000'000'007ULL}) {
        std::vector<int64_t> order = windows_of(*corpus, Split::kTrain, epoch);
        orders.insert(order);
        std::sort(order.begin(), order.end());
        std::vector<int64_t> all(windows);
        std::iota(all.begin(), all.end(), 0);
        ASSERT_EQ(order, all) << "seed " << seed << ", epoch " << epoch;
      }
    }
    if (windows >= 64) {
      EXPECT_EQ(orders.size(), 12U) << "each seed and epoch has its own order";
    }
  }
}

TEST(Corpus, OrderIsShuffled) {
  const ScratchFolder folder;
  const auto corpus = opened(counting_options(folder, 10'001, 1, 0));
  const auto order = windows_of(*corpus, Split::kTrain, 0);
  // Of a random order, the mean distance of neighbours is a third of the length, and the number of
  // windows that stay in place is about 1.
  double distance = 0;
  int fixed = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    fixed += order[k] == static_cast<int64_t>(k) ? 1 : 0;
    if (k > 0) distance += static_cast<double>(std::abs(order[k] - order[k - 1]));
  }
  EXPECT_NEAR(distance / 10'000, 10'000.0 / 3, 150);
  EXPECT_LT(fixed, 10);
}

TEST(Permutation, SmallSizesReachEveryOrder) {
  std::map<std::vector<uint64_t>, int> counts;
  for (uint64_t epoch = 0; epoch < 6000; ++epoch) {
    const Permutation permutation(3, 7, epoch);
    ++counts[{permutation(0), permutation(1), permutation(2)}];
  }
  ASSERT_EQ(counts.size(), 6U);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 200);
}

TEST(Permutation, LargestSizes) {
  for (const uint64_t size :
       {(uint64_t{1} << 62) - 1, uint64_t{1} << 62, (uint64_t{1} << 40) + 1}) {
    const Permutation permutation(size, 1, 2);
    std::set<uint64_t> images;
    for (uint64_t k = 0; k < 100; ++k) {
      images.insert(permutation(k));
      images.insert(permutation(size - 1 - k));
    }
    EXPECT_EQ(images.size(), 200U);
    EXPECT_LT(*images.rbegin(), size);
  }
}

TEST(Corpus, SplitsAreDisjointCompleteAndEven) {
  const ScratchFolder folder;
  for (const double share : {1e-3, 0.1, 0.25, 1.0 / 3, 0.5, 0.7, 0.9, 0.99}) {
    for (const uint32_t windows : {10U, 99U, 100U, 1000U}) {
      const auto options = counting_options(folder, windows * 2 + 1, 2, share);
      const auto expected = static_cast<int64_t>(std::floor(windows * share + 1e-6));
      if (expected == 0) {
        EXPECT_TRUE(fails_with(failure(options), Code::kBadData, {"tokens\"", "validate"}));
        continue;
      }
      const auto corpus = opened(options);
      EXPECT_EQ(corpus->window_count(Split::kValidation), expected) << share << " of " << windows;
      const auto held = windows_of(*corpus, Split::kValidation, 0);
      auto all = windows_of(*corpus, Split::kTrain, 0);
      ASSERT_TRUE(std::is_sorted(held.begin(), held.end()));
      for (size_t k = 0; k < held.size(); ++k) {
        EXPECT_NEAR(static_cast<double>(held[k] + 1), static_cast<double>(k + 1) / share, 1.001);
      }
      all.insert(all.end(), held.begin(), held.end());
      std::sort(all.begin(), all.end());
      std::vector<int64_t> each(windows);
      std::iota(each.begin(), each.end(), 0);
      ASSERT_EQ(all, each) << share << " of " << windows;
      EXPECT_EQ(windows_of(*corpus, Split::kValidation, 1), held) << "always in the same order";
    }
  }
}

TEST(Corpus, NothingLeftToTrainWith) {
  const ScratchFolder folder;
  auto options = counting_options(folder, 21, 2, 0.95);
  EXPECT_EQ(opened(options)->window_count(Split::kTrain), 1);
  options.validation_share = 1 - 1e-15;
  EXPECT_TRUE(fails_with(failure(options), Code::kBadData, {"tokens\"", "10 windows", "train"}));
}

TEST(Corpus, PositionsAreStateless) {
  const ScratchFolder folder;
  const auto options = counting_options(folder, 1001, 10, 0.1);
  const auto corpus = opened(options);
  std::vector<Sample> samples;
  for (uint64_t p = 0; p < 300; ++p) samples.push_back(sample(*corpus, Split::kTrain, p));
  const auto again = opened(options);
  std::vector<std::thread> threads;
  std::vector<int> equal(4);
  for (size_t t = 0; t < equal.size(); ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t p = 300; p-- > 0;) {
        equal[t] += sample(*again, Split::kTrain, p) == samples[p] ? 1 : 0;
        sample(*again, Split::kValidation, p);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(equal, std::vector<int>(4, 300));
}

TEST(Corpus, TokenFilesOfBothWidths) {
  const ScratchFolder folder;
  const std::vector<uint32_t> tokens = {0, 1, 255, 256, 65534, 65535, 77};
  write_file(folder / "u16", packed(tokens, 2));
  write_file(folder / "u32", packed({0, 16'777'215, 65536, 1}, 4));
  CorpusOptions options = bytes_options({folder / "u16"}, 6);
  options.format = Format::kU16;
  options.vocabulary = 65536;
  const Sample s = sample(*opened(options), Split::kTrain, 0);
  EXPECT_EQ(s.tokens, (std::vector<int32_t>{0, 1, 255, 256, 65534, 65535}));
  EXPECT_EQ(s.targets, (std::vector<int32_t>{1, 255, 256, 65534, 65535, 77}));
  options = bytes_options({folder / "u32"}, 3);
  options.format = Format::kU32;
  options.vocabulary = kVocabularyMax;
  EXPECT_EQ(sample(*opened(options), Split::kTrain, 0).targets,
            (std::vector<int32_t>{16'777'215, 65536, 1}));
}

TEST(Corpus, WindowsRunAcrossFilesLargeAndSmall) {
  const ScratchFolder folder;
  // Mapped, read, empty, a single byte, mapped.
  const size_t sizes[] = {FileBytes::kMapBytesMin + 1, 1000, 0, 1, FileBytes::kMapBytesMin};
  std::string all;
  std::vector<std::string> paths;
  for (const size_t size : sizes) {
    std::string text(size, '\0');
    for (char& c : text)
      c = static_cast<char>(mix(static_cast<uint64_t>(&c - text.data()) + all.size()));
    paths.push_back(folder / std::to_string(paths.size()));
    write_file(paths.back(), text);
    all += text;
  }
  const auto corpus = opened(bytes_options(paths, 1013, 0.5));
  ASSERT_EQ(corpus->token_count(), static_cast<int64_t>(all.size()));
  const int64_t windows = static_cast<int64_t>(all.size() - 1) / 1013;
  std::multiset<std::string> expected;
  for (int64_t w = 0; w < windows; ++w)
    expected.insert(all.substr(static_cast<size_t>(w) * 1013, 1014));
  std::multiset<std::string> found;
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    for (int64_t p = 0; p < corpus->window_count(split); ++p) {
      const Sample s = sample(*corpus, split, static_cast<uint64_t>(p));
      std::string text;
      for (const int32_t token : s.tokens) text += static_cast<char>(token);
      text += static_cast<char>(s.targets.back());
      found.insert(text);
    }
  }
  EXPECT_TRUE(found == expected);
}

TEST(Corpus, FoldersAreReadByPathAndLinksOnce) {
  namespace fs = std::filesystem;
  const ScratchFolder folder;
  fs::create_directories(folder / "top/b/deep");
  fs::create_directories(folder / "top/empty");
  write_file(folder / "top/c.txt", "3");
  write_file(folder / "top/a.txt", "1");
  write_file(folder / "top/b/deep/x", "2");
  write_file(folder / "top/.hidden", "0");
  fs::create_hard_link(folder / "top/a.txt", folder / "top/z-hard");
  fs::create_symlink(folder / "top/c.txt", folder / "top/z-soft");
  fs::create_directory_symlink(folder / "top", folder / "top/b/loop");
  ASSERT_EQ(mkfifo((folder / "top/pipe").c_str(), 0600), 0);
  write_file(folder / "last", "4");
  EXPECT_EQ(text_of(*opened(bytes_options({folder / "top", folder / "last"}, 4))), "0123");
  EXPECT_EQ(text_of(*opened(bytes_options({folder / "last", folder / "top/"}, 4))), "4012");
  // Each again, by another path: still five tokens.
  const auto twice = opened(bytes_options({folder / "top/c.txt", folder / "top", folder / "top/b",
                                           folder / "top/z-soft", folder / "last", folder / "last"},
                                          4));
  EXPECT_EQ(twice->token_count(), 5);
  EXPECT_EQ(text_of(*twice), "3012");
}

TEST(Corpus, EntropyOfSingleTokens) {
  const ScratchFolder folder;
  write_file(folder / "one", "xxxx");
  EXPECT_EQ(opened(bytes_options({folder / "one"}, 2))->unigram_entropy(), 0.0);
  write_file(folder / "four", "abcd");
  EXPECT_NEAR(opened(bytes_options({folder / "four"}, 2))->unigram_entropy(), std::log(4), 1e-14);
  write_file(folder / "uneven", "aaab");
  const double expected = -0.75 * std::log(0.75) - 0.25 * std::log(0.25);
  EXPECT_NEAR(opened(bytes_options({folder / "uneven"}, 2))->unigram_entropy(), expected, 1e-14);
}

TEST(CorpusErrors, BadTokensAreNamed) {
  const ScratchFolder folder;
  write_file(folder / "good", packed(counting(100), 2));
  write_file(folder / "bad", packed({5, 99, 100, 101}, 2));
  CorpusOptions options = bytes_options({folder / "good", folder / "bad"}, 4);
  options.format = Format::kU16;
  options.vocabulary = 100;
  EXPECT_TRUE(
      fails_with(failure(options), Code::kBadData, {"bad\"", "token 2 is 100", "vocabulary 100"}));
  write_file(folder / "bad", packed({5, 0xffffffff}, 4));
  options.format = Format::kU32;
  options.paths = {folder / "bad"};
  EXPECT_TRUE(fails_with(failure(options), Code::kBadData, {"bad\"", "token 1 is 4294967295"}));
}

TEST(CorpusErrors, Sizes) {
  const ScratchFolder folder;
  write_file(folder / "odd", "12345");
  CorpusOptions options = bytes_options({folder / "odd"}, 1);
  options.vocabulary = 65536;
  options.format = Format::kU16;
  EXPECT_TRUE(fails_with(failure(options), Code::kBadData, {"odd\"", "5 bytes", "multiple of 2"}));
  options.format = Format::kU32;
  EXPECT_TRUE(fails_with(failure(options), Code::kBadData, {"odd\"", "5 bytes", "multiple of 4"}));
  EXPECT_TRUE(fails_with(failure(bytes_options({folder / "odd"}, 5)), Code::kBadData,
                         {"odd\"", "5 tokens", "at least 6"}));
  EXPECT_TRUE(fails_with(failure(bytes_options({folder / "odd"}, INT32_MAX)), Code::kBadData,
                         {"at least 2147483648"}));
  write_file(folder / "empty", "");
  EXPECT_TRUE(fails_with(failure(bytes_options({folder / "empty"}, 1)), Code::kBadData,
                         {"empty\"", "0 tokens"}));
}

TEST(CorpusErrors, Paths) {
  const ScratchFolder folder;
  EXPECT_TRUE(fails_with(failure(bytes_options({folder / "absent"}, 1)), Code::kIo,
                         {"absent\"", "No such file"}));
  EXPECT_TRUE(fails_with(failure(bytes_options({""}, 1)), Code::kIo, {"\"\""}));
  EXPECT_TRUE(fails_with(failure(bytes_options({folder.path()}, 1)), Code::kBadData,
                         {"no file below", folder.path()}));
  EXPECT_TRUE(fails_with(failure(bytes_options({"/dev/null"}, 1)), Code::kInvalidArgument,
                         {"/dev/null", "neither a file nor a folder"}));
  std::filesystem::create_symlink(folder / "absent", folder / "dangling");
  EXPECT_TRUE(fails_with(failure(bytes_options({folder.path()}, 1)), Code::kIo, {"dangling\""}));
  EXPECT_TRUE(fails_with(failure(bytes_options({}, 1)), Code::kInvalidArgument, {"no paths"}));
}

TEST(CorpusErrors, UnreadableFilesAreNamed) {
  const ScratchFolder folder;
  write_file(folder / "secret", "text");
  std::filesystem::create_directory(folder / "closed");
  ASSERT_EQ(chmod((folder / "secret").c_str(), 0), 0);
  ASSERT_EQ(chmod((folder / "closed").c_str(), 0), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  // The superuser may read everything, so be someone else meanwhile.
  const uid_t user = geteuid();
  if (user == 0) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const Status file = failure(bytes_options({folder / "secret"}, 1));
  const Status below = failure(bytes_options({folder.path()}, 1));
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_TRUE(fails_with(file, Code::kIo, {"secret\"", "Permission denied"}));
  EXPECT_TRUE(fails_with(below, Code::kIo, {"closed\"", "Permission denied"}));
}

TEST(CorpusErrors, Options) {
  const ScratchFolder folder;
  write_file(folder / "text", "text and more");
  for (const double share : {-0.1, 1.0, 2.0, std::nan(""), HUGE_VAL}) {
    EXPECT_TRUE(fails_with(failure(bytes_options({folder / "text"}, 2, share)),
                           Code::kInvalidArgument, {"validation share"}));
  }
  for (const int32_t context : {0, -1, INT32_MIN}) {
    EXPECT_TRUE(fails_with(failure(bytes_options({folder / "text"}, context)),
                           Code::kInvalidArgument, {"context", std::to_string(context)}));
  }
  CorpusOptions options = bytes_options({folder / "text"}, 2);
  options.vocabulary = 256;
  EXPECT_EQ(opened(options)->vocabulary(), 256);
  options.vocabulary = 255;
  EXPECT_TRUE(fails_with(failure(options), Code::kInvalidArgument, {"255", "256"}));
  options.format = Format::kU16;
  for (const int32_t vocabulary : {0, -1, kVocabularyMax + 1}) {
    options.vocabulary = vocabulary;
    EXPECT_TRUE(fails_with(failure(options), Code::kInvalidArgument, {std::to_string(vocabulary)}));
  }
  options.format = static_cast<Format>(3);
  EXPECT_TRUE(fails_with(failure(options), Code::kInvalidArgument, {"format is 3"}));
}

}  // namespace
}  // namespace rrfp::data
