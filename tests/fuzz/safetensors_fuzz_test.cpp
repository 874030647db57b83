// SPDX-License-Identifier: Apache-2.0
//
// Mutated safetensors files. Whatever the bytes, opening must either succeed, and then every tensor
// lies within the file and no two share a byte, or fail with an error that names the file. A
// failure, also a crash, prints the seed and the command that replays it:
//   RRFP_FUZZ_SEED=<seed>   runs this one file only
//   RRFP_FUZZ_RUNS=<count>  runs that many files of each kind instead of kRunsDefault
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/train/safetensors.h"
#include "engine/train/state_json.h"
#include "tests/fuzz/seeds.h"
#include "tests/support/splitmix.h"
#include "tests/train/checkpoints.h"

namespace rrfp::train {
namespace {

using core::Code;
using core::Status;
using test::Splitmix;
using test::Tensors;

constexpr uint64_t kRunsDefault = 3000;

/// Calls run(seed) for many seeds.
template <class Run>
void for_each_seed(Run run) {
  fuzz::for_each_seed("tests/fuzz/safetensors_fuzz_test", kRunsDefault, run);
}

// --- Mutations

std::string random_piece(Splitmix& random) {
  constexpr std::string_view kPieces[] = {"{",
                                          "}",
                                          "[",
                                          "]",
                                          ",",
                                          ":",
                                          "\"",
                                          "\\",
                                          "\\u0000",
                                          "\\ud800",
                                          "0",
                                          "1",
                                          "4",
                                          "8",
                                          "-1",
                                          "1e3",
                                          "0.5",
                                          "18446744073709551615",
                                          "18446744073709551616",
                                          "9223372036854775807",
                                          "4294967296",
                                          "null",
                                          "true",
                                          " ",
                                          "\"F32\"",
                                          "\"F16\"",
                                          "\"dtype\"",
                                          "\"shape\"",
                                          "\"data_offsets\"",
                                          "\"__metadata__\"",
                                          "[0,0]",
                                          "{}",
                                          "\xff",
                                          "\xc3",
                                          "[[[[[[[["};
  if (random.percent(80)) return std::string(random.pick(kPieces));
  return std::string(static_cast<size_t>(random.between(1, 3)),
                     static_cast<char>(random.between(0, 255)));
}

/// A piece of the text from one mark of JSON to another.
std::pair<size_t, size_t> random_unit(Splitmix& random, std::string_view text) {
  const auto at = static_cast<size_t>(random.between(0, static_cast<int64_t>(text.size()) - 1));
  const size_t begin = std::min(text.find_first_of(",{[:\"", at), text.size() - 1);
  const size_t end = std::min(text.find_first_of(",}]:\"", begin + 1), text.size() - 1);
  return {begin, end + 1 - begin};
}

void mutate(Splitmix& random, std::string& text) {
  if (text.empty()) {
    text = random_piece(random);
    return;
  }
  const auto at = static_cast<size_t>(random.between(0, static_cast<int64_t>(text.size()) - 1));
  const auto [begin, length] = random_unit(random, text);
  const std::string unit = text.substr(begin, length);
  switch (random.between(0, 7)) {
    case 0: text[at] = static_cast<char>(text[at] ^ (1 << random.between(0, 7))); break;
    case 1: text[at] = random_piece(random)[0]; break;
    case 2: text.insert(at, random_piece(random)); break;
    case 3: text.erase(at, static_cast<size_t>(random.between(1, 4))); break;
    case 4: text.erase(begin, length); break;
    case 5: text.insert(begin, unit); break;
    case 6:
      text.erase(begin, length);
      text.insert(std::min(at, text.size()), unit);
      break;
    case 7: text.resize(at); break;
  }
}

// --- Files

class SafetensorsFuzz : public ::testing::Test {
 protected:
  /// One of a few, since writing one waits for the disk.
  const std::string& valid_file(Splitmix& choice) {
    const auto variant = static_cast<uint64_t>(choice.between(0, 31));
    std::string& file = valid_[variant];
    if (file.empty()) file = make_valid_file(Splitmix(variant));
    return file;
  }

  std::string make_valid_file(Splitmix random) {
    Tensors tensors;
    const int64_t count = random.between(0, 4);
    for (int64_t k = 0; k < count; ++k) {
      std::vector<int64_t> shape;
      for (int64_t rank = random.between(0, 3); rank > 0; --rank) {
        shape.push_back(random.between(random.percent(5) ? 0 : 1, 4));
      }
      tensors.add("layers." + std::to_string(k), shape);
    }
    std::filesystem::remove(path_);
    FileDigest digest;
    test::require(write_safetensors(
        path_, tensors.list(),
        random.percent(50) ? SafetensorsMetadata() : SafetensorsMetadata{{"a", "b"}}, digest));
    return test::read_file(path_);
  }

  /// True if it can be opened.
  bool check(const std::string& bytes) {
    test::write_file(path_, bytes);
    std::unique_ptr<const SafetensorsFile> file;
    const Status status = SafetensorsFile::open(path_, file);
    EXPECT_EQ(status.ok(), file != nullptr);
    if (!status.ok()) {
      EXPECT_TRUE(test::fails_with(status, Code::kBadData, {path_}));
      EXPECT_LT(status.text().size(), path_.size() + 500);
      EXPECT_TRUE(std::all_of(status.text().begin(), status.text().end(),
                              [](char c) { return c >= ' ' && c <= '~'; }));
      return false;
    }
    check_read(*file, bytes);
    return true;
  }

  void check_read(const SafetensorsFile& file, const std::string& bytes) {
    uint64_t end = 0;
    Tensors tensors;
    std::string data;
    bool all_f32 = true;
    for (const SafetensorsEntry& entry : file.entries()) {
      ASSERT_EQ(entry.begin, end);
      ASSERT_GE(entry.end, entry.begin);
      end = entry.end;
      ASSERT_EQ(file.find(entry.name), &entry);
      all_f32 = all_f32 && entry.dtype == "F32";
      // Small enough to make one of the same shape, as its bytes are in the file.
      if (all_f32) tensors.add(entry.name, entry.shape);
    }
    ASSERT_LE(end + 8, bytes.size());
    if (!all_f32) {
      ASSERT_TRUE(test::fails_with(file.read(tensors.list()), Code::kBadData, {path_}));
      return;
    }
    const Status status = file.read(tensors.list());
    ASSERT_TRUE(status.ok()) << status.text();
    for (size_t k = 0; k < tensors.list().size(); ++k) {
      const auto& values = tensors.values(k);
      data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    }
    ASSERT_TRUE(bytes.ends_with(data))
        << "the data is the end of the file, in the order of entries";
  }

  const test::ScratchFolder folder_;
  const std::string path_ = folder_ / "x.safetensors";
  std::map<uint64_t, std::string> valid_;
};

std::string with_length(const std::string& header, std::string_view data) {
  std::string bytes(8, '\0');
  for (size_t k = 0; k < 8; ++k) bytes[k] = static_cast<char>(header.size() >> (8 * k) & 255);
  return bytes + header + std::string(data);
}

TEST_F(SafetensorsFuzz, MutatedFiles) {
  for_each_seed([&](uint64_t seed) {
    Splitmix random(seed);
    std::string bytes = valid_file(random);
    ASSERT_TRUE(check(bytes));
    for (int64_t k = random.between(0, 4); k >= 0; --k) mutate(random, bytes);
    check(bytes);
  });
}

// The length follows the header, so that more of the header is looked at.
TEST_F(SafetensorsFuzz, MutatedHeaders) {
  int read = 0;
  for_each_seed([&](uint64_t seed) {
    Splitmix random(seed);
    const std::string& bytes = valid_file(random);
    const size_t header_end = bytes.find("  ") != std::string::npos ? bytes.find("  ") : 64;
    std::string header = bytes.substr(8, header_end - 8);
    const size_t data_begin = 8 + static_cast<unsigned char>(bytes[0]) +
                              256 * static_cast<size_t>(static_cast<unsigned char>(bytes[1]));
    for (int64_t k = random.between(0, 4); k >= 0; --k) mutate(random, header);
    read += check(with_length(header, std::string_view(bytes).substr(data_begin))) ? 1 : 0;
  });
  // Some must still be good, or only errors are tried.
  if (std::getenv("RRFP_FUZZ_SEED") == nullptr && std::getenv("RRFP_FUZZ_RUNS") == nullptr) {
    EXPECT_GT(read, static_cast<int>(kRunsDefault / 100));
  }
}

TEST_F(SafetensorsFuzz, RandomBytes) {
  for_each_seed([&](uint64_t seed) {
    Splitmix random(seed);
    std::string header = random.percent(50) ? "{" : "";
    for (int64_t k = random.between(0, 100); k > 0; --k) header += random_piece(random);
    check(random.percent(80) ? with_length(header, std::string(64, '\0')) : header);
  });
}

// The other decoder of a checkpoint.
TEST(StateJsonFuzz, MutatedTexts) {
  StateFile file{test::state_of(3, 4), {100, std::string(64, 'a')}, {200, std::string(64, 'b')}};
  file.state.user = R"({"a":[1,{"b":null}],"c":"d"})";
  std::string good;
  test::require(print_state(file, good));
  for_each_seed([&](uint64_t seed) {
    Splitmix random(seed);
    std::string text = good;
    for (int64_t k = random.between(0, 4); k >= 0; --k) mutate(random, text);
    StateFile read;
    const Status status = parse_state("the path", text, read);
    if (!status.ok()) {
      EXPECT_TRUE(test::fails_with(status, Code::kBadData, {"the path"}));
      EXPECT_TRUE(std::all_of(status.text().begin(), status.text().end(),
                              [](char c) { return c >= ' ' && c <= '~'; }));
      return;
    }
    // What was read can be written again, and stays what it is.
    std::string printed;
    if (!check_state(read.state).ok()) return;
    test::require(print_state(read, printed));
    StateFile again;
    test::require(parse_state("the path", printed, again));
    std::string same;
    test::require(print_state(again, same));
    EXPECT_EQ(same, printed);
  });
}

}  // namespace
}  // namespace rrfp::train
