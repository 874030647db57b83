// SPDX-License-Identifier: Apache-2.0
#include "engine/train/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/train/scratch.h"
#include "tests/train/tensors.h"

namespace rrfp::train {
namespace {

using core::Code;
using core::Status;
using test::fails_with;
using test::ScratchFolder;
using test::Tensors;

/// A file with this header and this many bytes of data.
std::string raw(const std::string& header, size_t data_bytes) {
  std::string bytes(8, '\0');
  for (size_t k = 0; k < 8; ++k) bytes[k] = static_cast<char>(header.size() >> (8 * k) & 255);
  return bytes + header + std::string(data_bytes, '\1');
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
         offsets + "}";
}

class Safetensors : public ::testing::Test {
 protected:
  Status open_bytes(const std::string& bytes) {
    test::write_file(path_, bytes);
    file_.reset();
    Status status = SafetensorsFile::open(path_, file_);
    EXPECT_EQ(status.ok(), file_ != nullptr);
    return status;
  }
  /// The file is refused, with its name and these parts.
  ::testing::AssertionResult refused(const std::string& bytes,
                                     std::initializer_list<std::string_view> parts) {
    const Status status = open_bytes(bytes);
    if (auto named = fails_with(status, Code::kBadData, {path_}); !named) return named;
    return fails_with(status, Code::kBadData, parts);
  }
  FileDigest write(const Tensors& tensors, const SafetensorsMetadata& metadata = {}) {
    FileDigest digest;
    test::require(write_safetensors(path_, tensors.list(), metadata, digest));
    return digest;
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_ / "x.safetensors";
  std::unique_ptr<const SafetensorsFile> file_;
};

TEST_F(Safetensors, WhatIsWrittenIsRead) {
  Tensors written;
  Tensors read;
  for (Tensors* const tensors : {&written, &read}) {
    tensors->add("w.2", {3, 5});
    tensors->add("a \"quoted\" \xc3\xa9 name\n", {7});
    tensors->add("scalar", {});
    tensors->add("nothing", {4, 0, 2});
    tensors->add("last", {1, 1, 2});
  }
  written.fill(1);
  // Whatever the bits: they are not numbers to this code.
  written.values(1) = {0.0F,
                       -0.0F,
                       INFINITY,
                       -INFINITY,
                       std::bit_cast<float>(0x7fc12345U),
                       std::numeric_limits<float>::denorm_min(),
                       0.1F};
  const FileDigest digest = write(written, {{"format", "test"}, {"b", ""}});
  ASSERT_TRUE(SafetensorsFile::open(path_, file_).ok());
  ASSERT_TRUE(file_->read(read.list()).ok());
  EXPECT_TRUE(read.same_as(written));
  EXPECT_EQ(file_->metadata(), (SafetensorsMetadata{{"format", "test"}, {"b", ""}}));
  FileDigest again;
  ASSERT_TRUE(file_->file().digest(again).ok());
  EXPECT_EQ(again, digest);
  EXPECT_EQ(digest.bytes, test::read_file(path_).size());
  ASSERT_NE(file_->find("scalar"), nullptr);
  EXPECT_EQ(file_->find("scalar")->shape, std::vector<int64_t>());
  EXPECT_EQ(file_->find("sc"), nullptr);
}

// Byte by byte, so that other programs can rely on it.
TEST_F(Safetensors, FormatOnDisk) {
  Tensors tensors;
  tensors.add("w", {2});
  tensors.add("b", {1});
  tensors.values(0) = {1.0F, -2.0F};
  tensors.values(1) = {0.5F};
  write(tensors, {{"k", "v"}});
  std::string header =
      R"({"__metadata__":{"k":"v"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})";
  header.resize(192 - 8, ' ');
  const std::string data("\0\0\x80\x3f\0\0\0\xc0\0\0\0\x3f", 12);
  EXPECT_EQ(test::read_file(path_), raw(header, 0) + data);
}

TEST_F(Safetensors, DataIsAligned) {
  for (size_t length = 1; length < 140; ++length) {
    Tensors tensors;
    tensors.add(std::string(length, 'n'), {1});
    std::filesystem::remove(path_);
    write(tensors);
    EXPECT_EQ(test::read_file(path_).size() % 64, 4U) << length;
  }
}

TEST_F(Safetensors, EmptyFile) {
  write(Tensors());
  ASSERT_TRUE(SafetensorsFile::open(path_, file_).ok());
  EXPECT_TRUE(file_->entries().empty());
  EXPECT_TRUE(file_->read({}).ok());
}

TEST_F(Safetensors, FilesOfOthersAreRead) {
  // Data in another order than the header, blanks, escapes, no padding.
  const std::string header = "{ " + entry("b\\u0041", "F32", "[1, 2]", "[ 4,12]") + ",\n" +
                             entry("e", "U8", "[0]", "[4,4]") + "," +
                             entry("a", "BF16", "[2]", "[0,4]") + "}  ";
  ASSERT_TRUE(open_bytes(raw(header, 12)).ok());
  ASSERT_EQ(file_->entries().size(), 3U);
  EXPECT_EQ(file_->entries()[0].name, "a");
  EXPECT_EQ(file_->entries()[1].name, "e");
  EXPECT_EQ(file_->entries()[2].name, "bA");
  Tensors wanted;
  wanted.add("bA", {1, 2});
  wanted.add("a", {2});
  EXPECT_TRUE(
      fails_with(file_->read(wanted.list()), Code::kBadData, {path_, "\"a\"", "BF16", "F32"}));
}

TEST_F(Safetensors, MismatchIsFoundBeforeAnythingIsRead) {
  Tensors tensors;
  tensors.add("a", {2, 3});
  tensors.add("b", {4});
  tensors.fill(1);
  write(tensors);
  ASSERT_TRUE(SafetensorsFile::open(path_, file_).ok());
  const auto fails = [&](const std::vector<std::pair<std::string, std::vector<int64_t>>>& wanted,
                         std::initializer_list<std::string_view> parts) {
    Tensors read;
    Tensors untouched;
    for (const auto& [name, shape] : wanted) {
      read.add(name, shape);
      untouched.add(name, shape);
    }
    const auto result = fails_with(file_->read(read.list()), Code::kBadData, parts);
    EXPECT_TRUE(read.same_as(untouched));
    return result;
  };
  EXPECT_TRUE(fails({{"a", {2, 3}}, {"b", {4}}, {"c", {1}}}, {path_, "\"c\"", "missing"}));
  EXPECT_TRUE(fails({{"a", {2, 3}}}, {path_, "\"b\"", "not expected"}));
  EXPECT_TRUE(fails({{"a", {2, 3}}, {"b", {2, 2}}}, {path_, "\"b\"", "[4]", "[2, 2]"}));
  EXPECT_TRUE(fails({}, {path_, "\"a\"", "not expected"}));
  std::vector<NamedTensor> wanted = tensors.list();
  wanted.push_back(wanted[0]);
  EXPECT_TRUE(fails_with(file_->read(wanted), Code::kInvalidArgument, {"\"a\"", "twice"}));
  wanted = tensors.list();
  wanted[1].data = nullptr;
  EXPECT_TRUE(fails_with(file_->read(wanted), Code::kInvalidArgument, {"\"b\"", "no memory"}));
}

TEST_F(Safetensors, HeaderLengths) {
  EXPECT_TRUE(refused("", {"0 bytes", "8 bytes"}));
  EXPECT_TRUE(refused("1234567", {"7 bytes"}));
  EXPECT_TRUE(refused(std::string(8, '\0'), {"begin with {"}));
  EXPECT_TRUE(refused(std::string(8, '\xff') + "{}", {"18446744073709551615", "at most 2"}));
  EXPECT_TRUE(refused(raw("{}", 0).substr(0, 9), {"length is 2", "at most 1"}));
  // Longer than the bound in a file that is long enough (and mostly a hole).
  std::string start(8, '\0');
  for (size_t k = 0; k < 8; ++k) start[k] = static_cast<char>(100'000'001ULL >> (8 * k) & 255);
  test::write_file(path_, start + "{}");
  std::filesystem::resize_file(path_, 100'000'100);
  EXPECT_TRUE(fails_with(SafetensorsFile::open(path_, file_), Code::kBadData,
                         {path_, "100000001", "at most 100000000"}));
}

TEST_F(Safetensors, HeadersThatAreNoHeaders) {
  EXPECT_TRUE(refused(raw("", 0), {"begin with {"}));
  EXPECT_TRUE(refused(raw(" {}", 0), {"begin with {"}));
  EXPECT_TRUE(refused(raw("{", 0), {"JSON", "at byte"}));
  EXPECT_TRUE(refused(raw("{}x", 0), {"JSON", "at byte 3"}));
  EXPECT_TRUE(refused(raw("{\"a\xff\":1}", 0), {"UTF-8", "at byte"}));
  EXPECT_TRUE(refused(raw("{\"a\xc3\":1}", 0), {"UTF-8", "at byte"}));
  EXPECT_TRUE(refused(raw("{\"\\ud800\":1}", 0), {"UTF-8", "at byte"}));
  EXPECT_TRUE(refused(raw(std::string("{\"a\0\":1}", 8), 0), {"JSON", "at byte"}));
  EXPECT_TRUE(refused(raw(R"({"a":1})", 0), {"\"a\"", "a number", "an object"}));
  EXPECT_TRUE(refused(raw(R"({"a":null})", 0), {"\"a\"", "null"}));
  EXPECT_TRUE(refused(raw(R"({"a":[]})", 0), {"\"a\"", "an array"}));
  EXPECT_TRUE(refused(raw(R"({"a":{}})", 0), {"\"a\"", "no dtype"}));
  EXPECT_TRUE(refused(raw(R"({"a":{"shape":[]}})", 0), {"\"a\"", "no dtype"}));
  EXPECT_TRUE(refused(raw(R"({"a":{"dtype":"F32","x":[]}})", 0), {"\"a\"", "unknown", "\"x\""}));
  EXPECT_TRUE(refused(raw(R"({"a":{"dtype":"F32","dtype":"F32"}})", 0), {"\"a\"", "dtype twice"}));
  EXPECT_TRUE(refused(raw(R"({"a":{"dtype":["F32"]}})", 0), {"\"a\"", "an array as dtype"}));
  EXPECT_TRUE(refused(raw(R"({"a":{"shape":"x"}})", 0), {"\"a\"", "a text as shape"}));
  EXPECT_TRUE(refused(raw(R"({"a":{"shape":{"x":1}}})", 0), {"\"a\"", "an object as shape"}));
  EXPECT_TRUE(refused(raw(R"({"__metadata__":[]})", 0), {"__metadata__", "an array"}));
  EXPECT_TRUE(refused(raw(R"({"__metadata__":{"a":1}})", 0), {"\"a\"", "a number", "a text"}));
  EXPECT_TRUE(refused(raw(R"({"__metadata__":{"a":{}}})", 0), {"\"a\"", "an object", "a text"}));
  EXPECT_TRUE(refused(raw(R"({"__metadata__":{"a":"","a":""}})", 0), {"\"a\"", "twice"}));
  EXPECT_TRUE(refused(raw(R"({"__metadata__":{},"__metadata__":{}})", 0), {"stands twice"}));
}

TEST_F(Safetensors, DeepNesting) {
  const std::string deep(1'000'000, '[');
  EXPECT_TRUE(refused(raw("{\"a\":" + deep, 0), {"\"a\"", "an array"}));
  EXPECT_TRUE(refused(raw(R"({"a":{"shape":)" + deep, 0), {"\"a\"", "an array in shape"}));
  std::string objects;
  for (int k = 0; k < 100'000; ++k) objects += "{\"a\":";
  EXPECT_TRUE(refused(raw(objects, 0), {"\"a\"", "unknown"}));
}

TEST_F(Safetensors, PlacesAndSizes) {
  const auto one = [](const std::string& shape, const std::string& offsets, size_t data_bytes,
                      const std::string& dtype = "F32") {
    return raw("{" + entry("t", dtype, shape, offsets) + "}", data_bytes);
  };
  ASSERT_TRUE(open_bytes(one("[2]", "[0,8]", 8)).ok());
  EXPECT_TRUE(refused(one("[2]", "[0,8]", 7), {"\"t\"", "0, 8", "up to 7"}));
  EXPECT_TRUE(refused(one("[2]", "[0,8]", 9), {"end at byte 8", "9"}));
  EXPECT_TRUE(refused(one("[2]", "[4,12]", 12), {"\"t\"", "begins at byte 4", "expected 0"}));
  EXPECT_TRUE(refused(one("[2]", "[0,4]", 4), {"\"t\"", "expected 8 bytes", "F32 [2]"}));
  EXPECT_TRUE(refused(one("[2]", "[8,0]", 8), {"\"t\"", "8, 0"}));
  EXPECT_TRUE(refused(one("[2]", "[0,18446744073709551615]", 8), {"\"t\"", "up to 8"}));
  EXPECT_TRUE(refused(one("[2]", "[0,18446744073709551616]", 8), {"\"t\"", "data_offsets"}));
  EXPECT_TRUE(refused(one("[2]", "[0]", 8), {"\"t\"", "1 data_offsets"}));
  EXPECT_TRUE(refused(one("[2]", "[0,8,8]", 8), {"\"t\"", "3 data_offsets"}));
  EXPECT_TRUE(refused(one("[2]", "[0,-8]", 8), {"\"t\"", "the number -8"}));
  EXPECT_TRUE(refused(one("[2.0]", "[0,8]", 8), {"\"t\"", "\"2.0\" in shape"}));
  EXPECT_TRUE(refused(one("[1e0]", "[0,4]", 4), {"\"t\"", "in shape"}));
  EXPECT_TRUE(refused(one("[true]", "[0,4]", 4), {"\"t\"", "a truth value in shape"}));
  EXPECT_TRUE(refused(one("[2]", "[0,8]", 8, "F31"), {"\"t\"", "unknown dtype \"F31\""}));
  EXPECT_TRUE(refused(one("[2]", "[0,8]", 8, "f32"), {"\"t\"", "unknown dtype"}));
  EXPECT_TRUE(refused(one("[2]", "[0,8]", 8, "F16"), {"\"t\"", "4 bytes for F16"}));
  // Products that overflow, also with a 0 that would hide it.
  for (const char* shape :
       {"[9223372036854775807]", "[4294967296,4294967296]", "[2305843009213693952]",
        "[0,4294967296,4294967296]", "[4294967296,4294967296,0]", "[4611686018427387904,4]"}) {
    EXPECT_TRUE(refused(one(shape, "[0,0]", 0), {"\"t\"", "does not fit"})) << shape;
  }
  EXPECT_TRUE(refused(one("[9223372036854775808]", "[0,0]", 0), {"\"t\"", "9223372036854775808"}));
  std::string ones = "[1";
  for (int k = 1; k < 33; ++k) ones += ",1";
  EXPECT_TRUE(refused(one(ones + "]", "[0,4]", 4), {"\"t\"", "more than 32"}));
}

TEST_F(Safetensors, TensorsTogether) {
  const auto two = [](const std::string& first, const std::string& second, size_t data_bytes) {
    return raw("{" + entry("a", "F32", "[2]", first) + "," + entry("b", "F32", "[1]", second) + "}",
               data_bytes);
  };
  ASSERT_TRUE(open_bytes(two("[4,12]", "[0,4]", 12)).ok());
  EXPECT_TRUE(refused(two("[0,8]", "[4,8]", 8), {"\"b\"", "overlap"}));
  EXPECT_TRUE(refused(two("[0,8]", "[0,4]", 8), {"\"a\"", "overlap"}));
  EXPECT_TRUE(refused(two("[0,8]", "[12,16]", 16), {"\"b\"", "belong to none"}));
  EXPECT_TRUE(refused(two("[0,8]", "[8,12]", 13), {"end at byte 12", "13"}));
  EXPECT_TRUE(refused(
      raw("{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("a", "F32", "[1]", "[4,8]") + "}",
          8),
      {"\"a\"", "twice"}));
  EXPECT_TRUE(refused(
      raw("{" + entry("a", "U8", "[2]", "[0,2]") + "," + entry("b", "F32", "[1]", "[2,6]") + "}",
          6),
      {"\"b\"", "multiple of 4"}));
  // An empty tensor within another one.
  EXPECT_TRUE(refused(
      raw("{" + entry("a", "F32", "[2]", "[0,8]") + "," + entry("b", "F32", "[0]", "[4,4]") + "}",
          8),
      {"\"b\"", "overlap"}));
}

TEST_F(Safetensors, NamesInErrorsAreShortAndPrintable) {
  std::string name = "\\u0007\\u001b\xc3\xa9";
  name += std::string(10'000, 'n');
  const Status status = open_bytes(raw("{\"" + name + "\":1}", 0));
  EXPECT_TRUE(fails_with(status, Code::kBadData, {"tensor \"????nnn"}));
  EXPECT_LT(status.text().size(), 300U);
}

TEST_F(Safetensors, Truncation) {
  Tensors tensors;
  tensors.add("weight", {3, 3});
  tensors.fill(3);
  write(tensors);
  const std::string bytes = test::read_file(path_);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_TRUE(refused(bytes.substr(0, length), {})) << length;
  }
  // Cut after it was opened.
  ASSERT_TRUE(open_bytes(bytes).ok());
  std::filesystem::resize_file(path_, bytes.size() - 1);
  EXPECT_TRUE(fails_with(file_->read(tensors.list()), Code::kBadData,
                         {path_, "ends at byte", "\"weight\""}));
}

TEST_F(Safetensors, FilesThatAreNone) {
  EXPECT_TRUE(fails_with(SafetensorsFile::open(folder_ / "absent", file_), Code::kIo,
                         {"absent\"", "No such file"}));
  EXPECT_TRUE(fails_with(SafetensorsFile::open(folder_.path(), file_), Code::kBadData,
                         {folder_.path(), "not a regular file"}));
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(fails_with(SafetensorsFile::open(folder_ / "pipe", file_), Code::kBadData,
                         {"pipe\"", "not a regular file"}));
}

TEST_F(Safetensors, WhatCannotBeWritten) {
  float value = 1;
  FileDigest digest;
  const auto fails = [&](const std::vector<NamedTensor>& tensors,
                         std::initializer_list<std::string_view> parts) {
    const Status status = write_safetensors(path_, tensors, {}, digest);
    EXPECT_FALSE(std::filesystem::exists(path_)) << "is checked first";
    return fails_with(status, Code::kInvalidArgument, parts);
  };
  EXPECT_TRUE(fails({{"", {1}, &value}}, {"no name"}));
  EXPECT_TRUE(fails({{"__metadata__", {1}, &value}}, {"__metadata__", "reserved"}));
  EXPECT_TRUE(fails({{"a\xff", {1}, &value}}, {"\"a?\"", "UTF-8"}));
  EXPECT_TRUE(fails({{"a", {1}, &value}, {"a", {1}, &value}}, {"\"a\"", "twice"}));
  EXPECT_TRUE(fails({{"a", {1}, nullptr}}, {"\"a\"", "no data"}));
  EXPECT_TRUE(fails({{"a", {-1}, &value}}, {"\"a\"", "[-1]"}));
  EXPECT_TRUE(fails({{"a", {INT64_MAX, 0}, &value}}, {"\"a\"", "63 bits"}));
  EXPECT_TRUE(fails({{"a", std::vector<int64_t>(33, 1), &value}}, {"\"a\"", "at most 32"}));
  constexpr int64_t kHalf = int64_t{1} << 60;
  EXPECT_TRUE(fails({{"a", {kHalf}, &value}, {"b", {kHalf}, &value}}, {"\"b\"", "2^63"}));
  const std::vector<NamedTensor> good = {{"a", {1}, &value}};
  EXPECT_TRUE(fails_with(write_safetensors(path_, good, {{"k", "\xff"}}, digest),
                         Code::kInvalidArgument, {"metadata", "UTF-8"}));
  EXPECT_TRUE(fails_with(write_safetensors(folder_ / "absent/x", good, {}, digest), Code::kIo,
                         {"absent/x\"", "No such file"}));
  write(Tensors());
  EXPECT_TRUE(
      fails_with(write_safetensors(path_, good, {}, digest), Code::kIo, {path_, "File exists"}));
}

}  // namespace
}  // namespace rrfp::train
