// SPDX-License-Identifier: Apache-2.0
//
// Saving that is broken off: killed at any moment, by a full disk, by another process that saves
// below the same folder.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "engine/train/atomic_folder.h"
#include "tests/support/splitmix.h"
#include "tests/train/checkpoints.h"

namespace rrfp::train {
namespace {

namespace fs = std::filesystem;
using core::Code;
using core::Status;
using test::fails_with;
using test::Model;
using test::names_in;
using test::reads_right;
using test::save;
using test::ScratchFolder;
using test::write_file;
using Names = std::set<std::string>;

constexpr int kKills = 40;

/// Long enough for a few saves, however slow this machine and this build are.
int64_t delay_max_us() {
  const ScratchFolder folder;
  constexpr int kSaves = 4;
  const auto start = std::chrono::steady_clock::now();
  for (int k = 1; k <= kSaves; ++k) (void)save(folder / "root", k, 1, 1);
  const auto time = std::chrono::steady_clock::now() - start;
  constexpr int64_t kLeastUs = 25'000;
  return std::max(kLeastUs, std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

/// Calls attempt(k) for k = first, first + 1, ... in a child process until it is killed after a
/// random time. Returns the last k whose attempt is known to have ended, or first - 1.
template <class Attempt>
uint32_t run_and_kill(test::Splitmix& random, uint32_t first, Attempt attempt) {
  static const int64_t delay_max = delay_max_us();
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    for (uint32_t k = first;; ++k) {
      if (!attempt(k).ok()) _exit(1);
      if (write(ends[1], &k, sizeof(k)) != sizeof(k)) _exit(2);
    }
  }
  close(ends[1]);
  usleep(static_cast<useconds_t>(random.between(0, delay_max)));
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended with an error: " << status;
  uint32_t last = first - 1;
  for (uint32_t k = 0; read(ends[0], &k, sizeof(k)) == sizeof(k);) last = k;
  close(ends[0]);
  return last;
}

/// Every folder that is named like a checkpoint is one. Returns their steps, in ascending order.
std::vector<int64_t> check_all(const std::string& root) {
  std::vector<int64_t> steps;
  if (!fs::exists(root)) return steps;
  for (const std::string& name : names_in(root)) {
    if (!name.starts_with("step-")) continue;
    steps.push_back(std::stoll(name.substr(5)));
    EXPECT_TRUE(reads_right(root + "/" + name, steps.back()));
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

int leftovers(const std::string& root) {
  int count = 0;
  if (!fs::exists(root)) return 0;
  for (const std::string& name : names_in(root)) count += name.starts_with(".tmp-") ? 1 : 0;
  return count;
}

TEST(CheckpointCrash, KilledWhileSavingStepAfterStep) {
  const ScratchFolder folder;
  const std::string root = folder / "root";
  test::Splitmix random(1);
  constexpr int32_t kKeep = 3;
  int64_t finished = 0;
  int interrupted = 0;
  for (int k = 0; k < kKills; ++k) {
    const auto last = static_cast<int64_t>(
        run_and_kill(random, static_cast<uint32_t>(finished + 1),
                     [&](uint32_t step) { return save(root, step, step * 7, kKeep); }));
    interrupted += leftovers(root) > 0 ? 1 : 0;
    EXPECT_LE(leftovers(root), 4) << "earlier ones have been removed";
    const auto steps = check_all(root);
    if (steps.empty()) {
      EXPECT_EQ(last, 0) << "finished ones got lost";
      continue;
    }
    // The one that was under way may have got its name already.
    const int64_t newest = steps.back();
    EXPECT_TRUE(newest == last || newest == last + 1) << newest << " after " << last;
    EXPECT_TRUE(reads_right(root, newest));
    for (int64_t step = newest; step > std::max<int64_t>(newest - kKeep, 0); --step) {
      EXPECT_TRUE(std::binary_search(steps.begin(), steps.end(), step))
          << "step " << step << " got lost, the newest is " << newest;
    }
    finished = newest;
    if (HasFailure()) return;
  }
  EXPECT_GT(finished, kKills / 4) << "the delays are too short for this machine";
  EXPECT_GT(interrupted, kKills / 8) << "few were killed while they wrote";
  ASSERT_TRUE(save(root, finished + 1, 1, kKeep).ok());
  EXPECT_EQ(leftovers(root), 0);
  EXPECT_EQ(names_in(root).size(), size_t{kKeep} + 1);
}

TEST(CheckpointCrash, KilledWhileReplacingOneStep) {
  const ScratchFolder folder;
  const std::string& root = folder.path();
  test::Splitmix random(2);
  uint32_t finished = 0;
  for (int k = 0; k < kKills; ++k) {
    const uint32_t last =
        run_and_kill(random, finished + 1, [&](uint32_t key) { return save(root, 5, key, 1); });
    const auto steps = check_all(root);
    if (last == 0 && steps.empty()) continue;
    ASSERT_EQ(steps, std::vector<int64_t>{5});
    uint32_t key = 0;
    ASSERT_TRUE(reads_right(root, 5, &key));
    ASSERT_TRUE(key == last || key == last + 1) << key << " after " << last;
    finished = key;
  }
  ASSERT_TRUE(save(root, 5, finished + 1, 1).ok());
  EXPECT_EQ(names_in(root), (Names{"latest", "step-00000005"}));
}

/// No file may become larger, as if the disk were full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(CheckpointCrash, DiskFull) {
  const ScratchFolder folder;
  const std::string& root = folder.path();
  ASSERT_TRUE(save(root, 1, 1).ok());
  const Names before = names_in(root);
  Model model;
  auto state = test::state_of(2, 2);
  state.user = "{\"a\":\"" + std::string(10'000, 'x') + "\"}";
  model.optimizer.add("v.large", {1000});
  // The files have 284, about 5000 and about 11000 bytes.
  const std::pair<rlim_t, std::string> cases[] = {
      {0, "model.safetensors"},   {1, "model.safetensors"},        {100, "model.safetensors"},
      {283, "model.safetensors"}, {1000, "optimizer.safetensors"}, {4500, "optimizer.safetensors"},
      {8000, "state.json"},       {10'500, "state.json"}};
  for (const int64_t step : {2, 1}) {
    state.step = step;
    for (const auto& [bytes, name] : cases) {
      Status status;
      {
        const FileSizeLimit limit(bytes);
        status = save_checkpoint(root, state, model.weights.list(), model.optimizer.list(), 1);
      }
      EXPECT_TRUE(fails_with(status, Code::kIo, {root + "/.tmp-", name, "File too large"}))
          << bytes;
      EXPECT_EQ(names_in(root), before) << "the attempt is cleared away";
      EXPECT_TRUE(reads_right(root, 1));
    }
  }
  EXPECT_TRUE(save_checkpoint(root, state, model.weights.list(), model.optimizer.list(), 1).ok());
}

TEST(CheckpointCrash, LeftoversOfTheDeadOnly) {
  const ScratchFolder folder;
  const std::string& root = folder.path();
  const Names foreign = {".tmp-12-0123456789ABCDEF", ".tmp-12-0123456789abcde",
                         ".tmp--0123456789abcdef",   ".tmp-12-0123456789abcdef0",
                         ".tmp-x-0123456789abcdef",  ".tmp",
                         "tmp-12-0123456789abcdef"};
  for (const std::string& name : foreign) fs::create_directory(folder / name);
  fs::create_directories(folder / ".tmp-12-0123456789abcdef/below");
  write_file(folder / ".tmp-12-0123456789abcdef/below/file", "x");
  write_file(folder / ".tmp-1234567-aaaaaaaaaaaaaaaa", "x");
  fs::create_symlink(folder / "tmp-12-0123456789abcdef", folder / ".tmp-1-bbbbbbbbbbbbbbbb");
  std::unique_ptr<AtomicFolder> alive;
  ASSERT_TRUE(AtomicFolder::begin(root, alive).ok());
  write_file(alive->path() + "/state.json", "x");
  const std::string name_alive = fs::path(alive->path()).filename();

  ASSERT_TRUE(save(root, 1, 1).ok());
  Names expected = foreign;
  // A link with such a name is not ours.
  expected.insert({"latest", "step-00000001", ".tmp-1-bbbbbbbbbbbbbbbb", name_alive});
  EXPECT_EQ(names_in(root), expected);
  ASSERT_TRUE(alive->commit("step-00000002").ok());
  alive.reset();
  expected.erase(name_alive);
  expected.insert("step-00000002");
  EXPECT_EQ(names_in(root), expected);
}

TEST(AtomicFolder, GoesUnlessItIsCommitted) {
  const ScratchFolder folder;
  std::unique_ptr<AtomicFolder> attempt;
  ASSERT_TRUE(AtomicFolder::begin(folder.path(), attempt).ok());
  write_file(attempt->path() + "/file", "x");
  attempt.reset();
  EXPECT_EQ(names_in(folder.path()), Names());
  EXPECT_TRUE(fails_with(AtomicFolder::begin(folder / "absent", attempt), Code::kIo,
                         {"absent/.tmp-", "No such file"}));
}

TEST(AtomicFolder, DoesNotReplaceAFile) {
  const ScratchFolder folder;
  write_file(folder / "name", "x");
  std::unique_ptr<AtomicFolder> attempt;
  ASSERT_TRUE(AtomicFolder::begin(folder.path(), attempt).ok());
  EXPECT_TRUE(fails_with(attempt->commit("name"), Code::kIo, {"name\"", "Not a directory"}));
  attempt.reset();
  EXPECT_EQ(names_in(folder.path()), Names{"name"});
}

TEST(CheckpointCrash, ManyAtOnceBelowOneFolder) {
  const ScratchFolder folder;
  const std::string root = folder / "a/b";
  constexpr int kThreads = 4;
  constexpr int kSaves = 10;
  std::vector<std::string> errors(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < kSaves && errors[static_cast<size_t>(t)].empty(); ++k) {
        const int32_t step = 1 + k * kThreads + t;
        // Two of them write each step twice, and all remove old ones.
        errors[static_cast<size_t>(t)] =
            save(root, t < 2 ? step : step - 2, static_cast<uint32_t>(step), 3).text();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_GE(check_all(root).size(), 3U);
  EXPECT_TRUE(reads_right(root, 38));
  ASSERT_TRUE(save(root, 41, 41, 3).ok());
  EXPECT_EQ(leftovers(root), 0);
  EXPECT_EQ(check_all(root).size(), 3U);
}

}  // namespace
}  // namespace rrfp::train
