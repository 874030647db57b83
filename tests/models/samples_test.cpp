// SPDX-License-Identifier: Apache-2.0
//
// Samples through the C API: what a batch looks like, and calls that must be refused.
#include <rrfp/multimodal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/cases/misuse.h"
#include "tests/train/sample_files.h"

namespace rrfp::models {
namespace {

constexpr rrfp_status kInvalid = RRFP_ERR_INVALID_ARGUMENT;

struct DestroySamples {
  void operator()(rrfp_samples* s) const { rrfp_samples_destroy(s); }
};
using SamplesPtr = std::unique_ptr<rrfp_samples, DestroySamples>;

class SamplesApi : public ::testing::Test {
 protected:
  SamplesApi() {
    rrfp_samples_options_init(&options_);
    options_.path = files_.manifest.c_str();
    options_.image_size = 3;
    options_.image_tokens = 2;
    options_.context = 64;
    rrfp_batch_init(&batch_);
  }

  SamplesPtr open() {
    rrfp_error error = {};
    rrfp_samples* out = nullptr;
    EXPECT_EQ(rrfp_samples_open(&options_, &out, &error), RRFP_OK) << error.text;
    return SamplesPtr(out);
  }

  const test::SampleFiles files_{40};
  rrfp_samples_options options_ = {};
  rrfp_batch batch_ = {};
};

std::vector<int32_t> ints(const rrfp_tensor& t) {
  const auto* const data = static_cast<const int32_t*>(t.data);
  return {data, data + t.shape[1]};
}

TEST_F(SamplesApi, InfoAndDefaults) {
  EXPECT_EQ(options_.validation_share, 0.1);
  EXPECT_EQ(options_.pixels_max, 1 << 24);
  const SamplesPtr samples = open();
  rrfp_samples_info info = {};
  rrfp_samples_info_init(&info);
  ASSERT_EQ(rrfp_samples_get_info(samples.get(), &info, nullptr), RRFP_OK);
  EXPECT_EQ(info.train_samples, 36);
  EXPECT_EQ(info.validation_samples, 4);
  EXPECT_EQ(info.images, 39);
  EXPECT_EQ(info.images_max, 2);
  int64_t tokens = 0;
  for (int k = 0; k < 40; ++k) tokens += (k < 10 ? 1 : 2) + k * 7 % 11 + k % 3 * 2 + 1;
  EXPECT_EQ(info.tokens, tokens);
  options_.pixels_max = 0;
  open();
  options_.pixels_max = 19;
  rrfp_samples* out = nullptr;
  EXPECT_REFUSED(rrfp_samples_open(&options_, &out, &refusal.error), RRFP_ERR_BAD_DATA,
                 {"samples.jsonl\", line 2: ", "1-0.png\"", "5 x 4 pixels"});
  EXPECT_EQ(out, nullptr);
}

TEST_F(SamplesApi, ABatch) {
  const SamplesPtr samples = open();
  const double factors[] = {1, 2};
  batch_.rounds = 7;
  batch_.loss_factors = factors;
  batch_.random_step = 5;
  // The validation samples are 9, 19, 29, 39.
  ASSERT_EQ(rrfp_samples_read(samples.get(), RRFP_SPLIT_VALIDATION, 1, 3, 2, &batch_, nullptr),
            RRFP_OK);
  EXPECT_EQ(batch_.microbatches, 2);
  EXPECT_EQ(batch_.rounds, 0);
  EXPECT_EQ(batch_.loss_factors, factors) << "the caller's";
  EXPECT_EQ(batch_.random_step, 5);
  const rrfp_tensor* const inputs = batch_.inputs;
  for (int32_t k = 0; k < 2 * RRFP_SAMPLES_INPUTS; ++k) {
    const bool images = k % RRFP_SAMPLES_INPUTS == 5;
    EXPECT_EQ(inputs[k].ndim, images ? 4 : 2);
    EXPECT_EQ(inputs[k].dtype, images ? RRFP_F32 : RRFP_I32);
    EXPECT_EQ(inputs[k].device_type, RRFP_DEVICE_CPU);
    EXPECT_EQ(inputs[k].buffer, nullptr);
    EXPECT_NE(inputs[k].data, nullptr);
    EXPECT_EQ(inputs[k].shape[0], images ? (k < 6 ? 3 : 0) : 1);
    if (!images) {
      EXPECT_EQ(inputs[k].shape[1], inputs[k / 6 * 6].shape[1]);
    }
  }
  // "39" and its 39 * 7 mod 11 = 9 letters, without a picture.
  EXPECT_EQ(ints(inputs[6]),
            (std::vector<int32_t>{'3', '9', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 257}));
  EXPECT_EQ(ints(inputs[10]), std::vector<int32_t>(12, -1));
  // "19" + "x", one picture; "29" + 5 letters, two.
  EXPECT_EQ(ints(inputs[0]), (std::vector<int32_t>{'1', '9', 'x', 256, 256, 257, '2', '9', 'x', 'x',
                                                   'x', 'x', 'x', 256, 256, 256, 256, 257}));
  EXPECT_EQ(ints(inputs[1]),
            (std::vector<int32_t>{'9', 'x', -100, -100, 257, -100, '9', 'x', 'x', 'x', 'x', 'x',
                                  -100, -100, -100, -100, 257, -100}));
  EXPECT_EQ(ints(inputs[4]), (std::vector<int32_t>{-1, -1, -1, 0, 1, -1, -1, -1, -1, -1, -1, -1, -1,
                                                   2, 3, 4, 5, -1}));
  const auto* const pixels = static_cast<const float*>(inputs[5].data);
  float expected[27];
  for (int k = 0; k < 3; ++k) {
    const auto name = k == 0 ? files_.name_of(19, 0) : files_.name_of(29, k - 1);
    ASSERT_EQ(rrfp_picture_read((files_.folder / name).c_str(), 3, 0, expected, nullptr), RRFP_OK);
    EXPECT_EQ(std::memcmp(pixels + 27 * k, expected, sizeof expected), 0) << k;
  }
}

TEST_F(SamplesApi, ReadAtIsTheSame) {
  const SamplesPtr samples = open();
  const SamplesPtr others = open();
  rrfp_batch at = {};
  rrfp_batch_init(&at);
  for (uint64_t p = 0; p < 100; p += 7) {
    const uint64_t positions[] = {p, p + 1, p + 2, p + 3};
    ASSERT_EQ(rrfp_samples_read(samples.get(), 0, p, 4, 2, &batch_, nullptr), RRFP_OK);
    ASSERT_EQ(rrfp_samples_read_at(others.get(), 0, positions, 4, 2, &at, nullptr), RRFP_OK);
    for (int32_t k = 0; k < 2 * RRFP_SAMPLES_INPUTS; ++k) {
      size_t count = 1;
      for (int32_t d = 0; d < batch_.inputs[k].ndim; ++d) {
        ASSERT_EQ(batch_.inputs[k].shape[d], at.inputs[k].shape[d]);
        count *= static_cast<size_t>(at.inputs[k].shape[d]);
      }
      ASSERT_EQ(std::memcmp(batch_.inputs[k].data, at.inputs[k].data, 4 * count), 0);
    }
  }
}

TEST_F(SamplesApi, NullsAndStructs) {
  const SamplesPtr samples = open();
  rrfp_samples* out = nullptr;
  rrfp_samples_info info = {};
  float pixel = 0;
  const uint64_t position = 0;
  const rrfp_status null_handle = RRFP_ERR_NULL_HANDLE;
  const rrfp_status size = RRFP_ERR_STRUCT_SIZE;
  rrfp_samples_destroy(nullptr);
  rrfp_samples_options_init(nullptr);
  rrfp_samples_info_init(nullptr);
  EXPECT_REFUSED(rrfp_samples_open(nullptr, &out, &refusal.error), kInvalid, {"options is null"});
  EXPECT_REFUSED(rrfp_samples_open(&options_, nullptr, &refusal.error), kInvalid, {"out is null"});
  EXPECT_REFUSED(rrfp_samples_get_info(nullptr, &info, &refusal.error), null_handle,
                 {"samples is null"});
  EXPECT_REFUSED(rrfp_samples_get_info(samples.get(), nullptr, &refusal.error), kInvalid,
                 {"out is null"});
  EXPECT_REFUSED(rrfp_samples_get_info(samples.get(), &info, &refusal.error), size,
                 {"rrfp_samples_info"});
  EXPECT_REFUSED(rrfp_samples_read(nullptr, 0, 0, 1, 1, &batch_, &refusal.error), null_handle,
                 {"samples is null"});
  EXPECT_REFUSED(rrfp_samples_read(samples.get(), 0, 0, 1, 1, nullptr, &refusal.error), kInvalid,
                 {"out_batch is null"});
  EXPECT_REFUSED(rrfp_samples_read_at(nullptr, 0, &position, 1, 1, &batch_, &refusal.error),
                 null_handle, {"samples is null"});
  EXPECT_REFUSED(rrfp_samples_read_at(samples.get(), 0, nullptr, 1, 1, &batch_, &refusal.error),
                 kInvalid, {"positions is null"});
  rrfp_batch unready = {};
  EXPECT_REFUSED(rrfp_samples_read(samples.get(), 0, 0, 1, 1, &unready, &refusal.error), size,
                 {"rrfp_batch"});
  EXPECT_REFUSED(rrfp_picture_read(nullptr, 1, 0, &pixel, &refusal.error), kInvalid,
                 {"path is null"});
  EXPECT_REFUSED(rrfp_picture_read("x.png", 1, 0, nullptr, &refusal.error), kInvalid,
                 {"pixels is null"});
  options_.path = nullptr;
  EXPECT_REFUSED(rrfp_samples_open(&options_, &out, &refusal.error), kInvalid, {"path is null"});
  options_.struct_size = 0;
  EXPECT_REFUSED(rrfp_samples_open(&options_, &out, &refusal.error), size,
                 {"rrfp_samples_options", "struct_size is 0"});
  EXPECT_EQ(out, nullptr);
}

TEST_F(SamplesApi, WrongArguments) {
  rrfp_samples* const samples = open().release();
  const SamplesPtr owner(samples);
  rrfp_samples* out = nullptr;
  float pixel = 0;
  const uint64_t position = 0;
  EXPECT_REFUSED(rrfp_samples_read(samples, 2, 0, 1, 1, &batch_, &refusal.error), kInvalid,
                 {"split is 2"});
  EXPECT_REFUSED(rrfp_samples_read(samples, 0, 0, 0, 1, &batch_, &refusal.error), kInvalid,
                 {"count is 0"});
  EXPECT_REFUSED(rrfp_samples_read(samples, 0, 0, 2, 3, &batch_, &refusal.error), kInvalid,
                 {"microbatches is 3", "1 .. 2"});
  EXPECT_REFUSED(rrfp_samples_read_at(samples, 0, &position, -1, 1, &batch_, &refusal.error),
                 kInvalid, {"count is -1"});
  EXPECT_REFUSED(rrfp_picture_read("x.png", 0, 0, &pixel, &refusal.error), kInvalid,
                 {"image_size is 0"});
  EXPECT_REFUSED(rrfp_picture_read("x.png", 1, -1, &pixel, &refusal.error), kInvalid,
                 {"pixels_max is -1"});
  const std::string missing = files_.folder / "none.png";
  EXPECT_REFUSED(rrfp_picture_read(missing.c_str(), 1, 0, &pixel, &refusal.error), RRFP_ERR_IO,
                 {"none.png"});
  EXPECT_REFUSED(rrfp_picture_read(files_.manifest.c_str(), 1, 0, &pixel, &refusal.error),
                 RRFP_ERR_BAD_DATA, {"samples.jsonl\" is not a PNG file"});
  options_.grouping = 2;
  EXPECT_REFUSED(rrfp_samples_open(&options_, &out, &refusal.error), kInvalid, {"grouping is 2"});
  options_.grouping = 0;
  options_.validation_share = 0;
  const SamplesPtr all = open();
  EXPECT_REFUSED(rrfp_samples_read(all.get(), 1, 0, 1, 1, &batch_, &refusal.error),
                 RRFP_ERR_BAD_STATE, {"no samples in this split"});
}

TEST_F(SamplesApi, OneThreadAtATime) {
  const SamplesPtr samples = open();
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (uint64_t p = 0; p < 100; ++p) {
        rrfp_batch batch = {};
        rrfp_batch_init(&batch);
        const rrfp_status status = rrfp_samples_read(samples.get(), 0, p, 5, 2, &batch, nullptr);
        EXPECT_TRUE(status == RRFP_OK || status == RRFP_ERR_BUSY);
        good += status == RRFP_OK ? 1 : 0;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GT(good, 0);
}

TEST_F(SamplesApi, TheChildOfAForkIsRefused) {
  const SamplesPtr samples = open();
  ASSERT_EQ(rrfp_samples_read(samples.get(), 0, 0, 1, 1, &batch_, nullptr), RRFP_OK);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);
    rrfp_error error = {};
    const rrfp_status status = rrfp_samples_read(samples.get(), 0, 0, 1, 1, &batch_, &error);
    rrfp_samples_destroy(samples.get());
    _exit(status == RRFP_ERR_FORKED && std::strstr(error.text, "before fork()") != nullptr ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace rrfp::models
