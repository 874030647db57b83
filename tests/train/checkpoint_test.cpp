// SPDX-License-Identifier: Apache-2.0
//
// What stands in a checkpoint, which one is opened, and what is said about a damaged one.
#include "engine/train/checkpoint.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/train/sha256.h"
#include "tests/train/checkpoints.h"

namespace rrfp::train {
namespace {

namespace fs = std::filesystem;
using core::Code;
using core::Status;
using test::fails_with;
using test::Model;
using test::names_in;
using test::read_file;
using test::reads_right;
using test::save;
using test::ScratchFolder;
using test::write_file;
using Names = std::set<std::string>;

constexpr const char* kFiles[] = {"model.safetensors", "optimizer.safetensors", "state.json"};

Status open_status(const std::string& path) {
  std::shared_ptr<const Checkpoint> checkpoint;
  Status status = Checkpoint::open(path, checkpoint);
  EXPECT_EQ(status.ok(), checkpoint != nullptr);
  return status;
}

std::shared_ptr<const Checkpoint> opened(const std::string& path) {
  std::shared_ptr<const Checkpoint> checkpoint;
  test::require(Checkpoint::open(path, checkpoint));
  return checkpoint;
}

TEST(Checkpoint, LayoutOnDisk) {
  const ScratchFolder folder;
  const std::string root = folder / "new/and/nested/";
  ASSERT_TRUE(save(root, 300, 7).ok());
  EXPECT_EQ(names_in(root), (Names{"latest", "step-00000300"}));
  EXPECT_EQ(read_file(root + "latest"), "step-00000300\n");
  EXPECT_EQ(names_in(root + "step-00000300"), Names(std::begin(kFiles), std::end(kFiles)));
  const auto state = nlohmann::json::parse(read_file(root + "step-00000300/state.json"));
  EXPECT_EQ(state["format"], "rrfp-checkpoint");
  EXPECT_EQ(state["version"], 1);
  EXPECT_EQ(state["step"], 300);
  EXPECT_EQ(state["seed"], 0xfedcba9876543210ULL);
  EXPECT_EQ(state["model"]["layers"], 2);
  EXPECT_FALSE(state.contains("user"));
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string bytes = read_file(root + "step-00000300/" + name);
    Sha256 sha256;
    sha256.update(bytes.data(), bytes.size());
    EXPECT_EQ(state["files"][name]["bytes"], bytes.size());
    EXPECT_EQ(state["files"][name]["sha256"], sha256.hex());
  }
  EXPECT_EQ(opened(root)->weight_names(), (std::vector<std::string>{"embed", "head.bias"}));
}

TEST(Checkpoint, NumbersSurviveExactly) {
  const ScratchFolder folder;
  CheckpointState state;
  for (const double scale :
       {0.1, 1.0 / 3, 65536.0, -0.0, 5e-324, 1.7976931348623157e308, 2.2250738585072011e-308,
        std::nextafter(1.0, 2.0), 9007199254740993.0, 123456789012345680.0}) {
    state.loss_scale = scale;
    ASSERT_TRUE(save_checkpoint(folder.path(), state, {}, {}, 0).ok());
    const double read = opened(folder.path())->state().loss_scale;
    EXPECT_EQ(std::bit_cast<uint64_t>(read), std::bit_cast<uint64_t>(scale)) << scale;
  }
  state.step = INT64_MAX;
  state.good_steps = INT64_MAX - 1;
  state.updates = INT64_MAX - 2;
  for (const uint64_t value :
       {UINT64_MAX, UINT64_MAX - 1, uint64_t{1} << 63, (uint64_t{1} << 53) + 1}) {
    state.seed = value;
    state.position = value - 1;
    ASSERT_TRUE(save_checkpoint(folder.path(), state, {}, {}, 0).ok());
    const auto checkpoint = opened(folder.path());
    EXPECT_EQ(checkpoint->state().seed, value);
    EXPECT_EQ(checkpoint->state().position, value - 1);
    EXPECT_EQ(checkpoint->state().step, INT64_MAX);
    EXPECT_EQ(checkpoint->state().good_steps, INT64_MAX - 1);
    EXPECT_EQ(checkpoint->state().updates, INT64_MAX - 2);
  }
}

TEST(Checkpoint, ObjectsOfTheCaller) {
  const ScratchFolder folder;
  std::string deep = "1";
  for (int k = 0; k < 100; ++k) deep = "{\"a\":" + deep + "}";
  for (const std::string& text : {std::string(), std::string("{}"),
                                  std::string(R"({"a":[1,-2,0.5,null,true],"b":{"":"é\n"}})"),
                                  std::string(R"({"big":18446744073709551615})"), deep}) {
    CheckpointState state;
    state.optimizer = "sgd";
    state.model = text;
    state.user = text;
    ASSERT_TRUE(save_checkpoint(folder.path(), state, {}, {}, 0).ok());
    const auto checkpoint = opened(folder.path());
    EXPECT_EQ(checkpoint->state().model, text);
    EXPECT_EQ(checkpoint->state().user, text);
    EXPECT_EQ(checkpoint->state().optimizer, "sgd");
  }
}

TEST(Checkpoint, WhatCannotBeStored) {
  const ScratchFolder folder;
  const std::string root = folder / "root";
  const auto fails = [&](auto change, std::initializer_list<std::string_view> parts) {
    CheckpointState state;
    change(state);
    const Status status = save_checkpoint(root, state, {}, {}, 0);
    EXPECT_FALSE(fs::exists(root)) << "nothing is begun";
    return fails_with(status, Code::kInvalidArgument, parts);
  };
  using S = CheckpointState;
  EXPECT_TRUE(fails([](S& s) { s.step = -1; }, {"step", "-1"}));
  EXPECT_TRUE(fails([](S& s) { s.good_steps = -2; }, {"good_steps", "-2"}));
  EXPECT_TRUE(fails([](S& s) { s.updates = -3; }, {"updates", "-3"}));
  EXPECT_TRUE(fails([](S& s) { s.loss_scale = NAN; }, {"loss_scale", "nan"}));
  EXPECT_TRUE(fails([](S& s) { s.loss_scale = INFINITY; }, {"loss_scale", "inf"}));
  EXPECT_TRUE(fails([](S& s) { s.optimizer = "a\xff"; }, {"optimizer", "\"a?\""}));
  EXPECT_TRUE(fails([](S& s) { s.model = "{"; }, {"model", "JSON", "byte 2"}));
  EXPECT_TRUE(fails([](S& s) { s.user = "[1]"; }, {"user", "not a JSON object"}));
  EXPECT_TRUE(fails([](S& s) { s.user = "{\"a\":\"\xff\"}"; }, {"user", "UTF-8"}));
  EXPECT_TRUE(fails([](S& s) { s.user = "{\"a\":1e999}"; }, {"user", "no double"}));
  EXPECT_TRUE(
      fails([](S& s) { s.user = R"({"x":{"a":1,"b":2,"a":3}})"; }, {"user", "\"a\" twice"}));
  EXPECT_TRUE(fails([](S& s) { s.model = "{\"a\":" + std::string(1'000'000, '['); }, {"model"}));
  const auto deeper = [](S& s) {
    s.model = "{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}";
  };
  EXPECT_TRUE(fails(deeper, {"model", "deeper than 100"}));
  EXPECT_TRUE(fails_with(save_checkpoint(root, {}, {}, {}, -1), Code::kInvalidArgument, {"-1"}));
  // These are found when the attempt is under way, and it is cleared away.
  CheckpointState large;
  large.user = "{\"a\":\"" + std::string(17 << 20, 'x') + "\"}";
  EXPECT_TRUE(fails_with(save_checkpoint(root, large, {}, {}, 0), Code::kInvalidArgument,
                         {"at most 16777216"}));
  EXPECT_EQ(names_in(root), Names());
  const std::vector<NamedTensor> bad = {{"w", {2}, nullptr}};
  EXPECT_TRUE(fails_with(save_checkpoint(root, {}, bad, {}, 0), Code::kInvalidArgument, {"\"w\""}));
  EXPECT_TRUE(fails_with(save_checkpoint(root, {}, {}, bad, 0), Code::kInvalidArgument, {"\"w\""}));
  EXPECT_EQ(names_in(root), Names());
}

TEST(Checkpoint, NewestStepIsOpened) {
  const ScratchFolder folder;
  for (const int64_t step : {5, 100, 20}) ASSERT_TRUE(save(folder.path(), step, 1).ok());
  EXPECT_EQ(opened(folder.path())->path(), folder / "step-00000100");
  EXPECT_EQ(read_file(folder / "latest"), "step-00000100\n");
  EXPECT_TRUE(reads_right(folder / "step-00000020", 20));
  // By number, not by name.
  for (const int64_t step : {99'999'999, 100'000'000}) {
    ASSERT_TRUE(save(folder.path(), step, 2).ok());
  }
  EXPECT_EQ(opened(folder.path())->path(), folder / "step-100000000");
  // "latest" is for people.
  fs::remove(folder / "latest");
  EXPECT_TRUE(reads_right(folder.path(), 100'000'000));
}

TEST(Checkpoint, OtherFoldersAreNotTakenForCheckpoints) {
  const ScratchFolder folder;
  ASSERT_TRUE(save(folder.path(), 7, 1).ok());
  const Names others = {
      "step-00000200",  "step-0300",      "step-00000400.bak",         "step--0000500",
      "step-000000600", "xstep-00000700", "step-99999999999999999999", ".tmp-1-0123456789abcdef",
      "step-"};
  for (const std::string& name : others) {
    fs::copy(folder / "step-00000007", folder / name);
  }
  fs::remove(folder / "step-00000200/state.json");
  write_file(folder / "step-00000800", "a file");
  EXPECT_TRUE(reads_right(folder.path(), 7));
  ASSERT_TRUE(save(folder.path(), 8, 1, 1).ok());
  Names left = others;
  left.erase(".tmp-1-0123456789abcdef");
  left.insert({"latest", "step-00000008", "step-00000800"});
  EXPECT_EQ(names_in(folder.path()), left);
}

TEST(Checkpoint, OldOnesAreRemoved) {
  const ScratchFolder folder;
  for (int64_t step = 1; step <= 5; ++step) ASSERT_TRUE(save(folder.path(), step, 1).ok());
  EXPECT_EQ(names_in(folder.path()).size(), 6U) << "0 keeps all";
  ASSERT_TRUE(save(folder.path(), 6, 1, 3).ok());
  EXPECT_EQ(names_in(folder.path()),
            (Names{"latest", "step-00000004", "step-00000005", "step-00000006"}));
  // Whoever goes back keeps what was just written.
  ASSERT_TRUE(save(folder.path(), 2, 1, 1).ok());
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step-00000002", "step-00000006"}));
  ASSERT_TRUE(save(folder.path(), 7, 1, 1).ok());
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step-00000007"}));
}

TEST(Checkpoint, SameStepIsReplaced) {
  const ScratchFolder folder;
  uint32_t key = 0;
  for (const uint32_t wanted : {3U, 4U, 5U}) {
    ASSERT_TRUE(save(folder.path(), 9, wanted, 1).ok());
    ASSERT_TRUE(reads_right(folder.path(), 9, &key));
    EXPECT_EQ(key, wanted);
    EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step-00000009"}));
  }
}

TEST(Checkpoint, CanBeReadAfterItIsRemoved) {
  const ScratchFolder folder;
  ASSERT_TRUE(save(folder.path(), 1, 3).ok());
  const auto checkpoint = opened(folder.path());
  ASSERT_TRUE(save(folder.path(), 2, 4, 1).ok());
  ASSERT_FALSE(fs::exists(checkpoint->path()));
  Model read;
  Model wanted;
  wanted.fill(3);
  ASSERT_TRUE(checkpoint->read_weights(read.weights.list()).ok());
  EXPECT_TRUE(read.weights.same_as(wanted.weights));
}

TEST(CheckpointDamage, WhatIsNoCheckpoint) {
  const ScratchFolder folder;
  EXPECT_TRUE(fails_with(open_status(folder / "absent"), Code::kIo, {"absent\"", "No such file"}));
  EXPECT_TRUE(fails_with(open_status(folder.path()), Code::kBadData,
                         {"not a checkpoint of rrfp", folder.path()}));
  write_file(folder / "file", "x");
  EXPECT_TRUE(fails_with(open_status(folder / "file"), Code::kBadData,
                         {"not a checkpoint of rrfp", "file\""}));
  for (const char* text :
       {"", "x", "[]", "{}", R"({"format":"other"})", R"({"format":1})", "\xff"}) {
    write_file(folder / "state.json", text);
    EXPECT_TRUE(fails_with(open_status(folder.path()), Code::kBadData,
                           {"not a checkpoint of rrfp", "state.json\""}))
        << text;
  }
  write_file(folder / "state.json", R"({"format":"rrfp-checkpoint","version":2})");
  EXPECT_TRUE(fails_with(open_status(folder.path()), Code::kBadData,
                         {"state.json\"", "version", "\"2\"", "expected 1"}));
  write_file(folder / "state.json", std::string((16 << 20) + 1, ' '));
  EXPECT_TRUE(fails_with(open_status(folder.path()), Code::kBadData, {"state.json\"", "16777216"}));
  EXPECT_TRUE(fails_with(save(folder / "file", 1, 1), Code::kIo, {"file\"", "Not a directory"}));
  EXPECT_TRUE(fails_with(save(folder / "file/x", 1, 1), Code::kIo, {"file/x\""}));
}

TEST(CheckpointDamage, FieldsOfTheState) {
  const ScratchFolder folder;
  ASSERT_TRUE(save(folder.path(), 1, 1).ok());
  const std::string path = folder / "step-00000001/state.json";
  const auto good = nlohmann::json::parse(read_file(path));
  const auto with = [&](const char* pointer, const nlohmann::json& value) {
    auto state = good;
    state[nlohmann::json::json_pointer(pointer)] = value;
    write_file(path, state.dump());
    return open_status(folder.path());
  };
  ASSERT_TRUE(with("/unknown", 1).ok()) << "later versions may add fields";
  for (const char* name :
       {"step", "position", "seed", "loss_scale", "good_steps", "updates", "optimizer", "files"}) {
    EXPECT_TRUE(fails_with(with((std::string("/") + name).c_str(), nullptr), Code::kBadData,
                           {path, name, "wrong value"}));
    auto state = good;
    state.erase(name);
    write_file(path, state.dump());
    EXPECT_TRUE(fails_with(open_status(folder.path()), Code::kBadData, {path, name, "missing"}));
  }
  EXPECT_TRUE(fails_with(with("/step", -1), Code::kBadData, {path, "step", "from 0"}));
  EXPECT_TRUE(fails_with(with("/step", 1.5), Code::kBadData, {path, "step"}));
  EXPECT_TRUE(fails_with(with("/step", uint64_t{1} << 63), Code::kBadData, {path, "step"}));
  EXPECT_TRUE(fails_with(with("/model", "x"), Code::kBadData, {path, "model", "an object"}));
  EXPECT_TRUE(fails_with(with("/files/model.safetensors", 1), Code::kBadData,
                         {path, "files.model.safetensors"}));
  EXPECT_TRUE(fails_with(with("/files/optimizer.safetensors/bytes", "x"), Code::kBadData,
                         {path, "files.optimizer.safetensors.bytes"}));
  EXPECT_TRUE(fails_with(with("/files/model.safetensors/sha256", 1), Code::kBadData,
                         {path, "files.model.safetensors.sha256"}));
  std::string twice = good.dump();
  twice.insert(1, "\"seed\":1,");
  write_file(path, twice);
  EXPECT_TRUE(fails_with(open_status(folder.path()), Code::kBadData, {path, "\"seed\" twice"}));
}

TEST(CheckpointDamage, FilesCutOffOrMissing) {
  const ScratchFolder folder;
  ASSERT_TRUE(save(folder.path(), 1, 1).ok());
  for (const std::string name : kFiles) {
    const std::string path = folder / ("step-00000001/" + name);
    const std::string bytes = read_file(path);
    // The last byte of state.json is a newline, which nobody would miss.
    for (const size_t length : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{64},
                                bytes.size() / 2, bytes.size() - 3, bytes.size() - 2}) {
      write_file(path, bytes.substr(0, length));
      EXPECT_TRUE(fails_with(open_status(folder.path()), Code::kBadData, {path})) << length;
    }
    write_file(path, bytes + "x");
    EXPECT_TRUE(fails_with(open_status(folder.path()), Code::kBadData, {path}));
    fs::remove(path);
    EXPECT_TRUE(fails_with(open_status(folder / "step-00000001"),
                           name == "state.json" ? Code::kBadData : Code::kIo, {"step-00000001"}));
    write_file(path, bytes);
    ASSERT_TRUE(reads_right(folder.path(), 1));
  }
}

TEST(CheckpointDamage, NoFlippedByteOfTheTensorsPasses) {
  const ScratchFolder folder;
  ASSERT_TRUE(save(folder.path(), 1, 1).ok());
  const Model untouched;
  for (const std::string name : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string path = folder / ("step-00000001/" + name);
    const std::string good = read_file(path);
    for (size_t at = 0; at < good.size(); ++at) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
      write_file(path, bytes);
      std::shared_ptr<const Checkpoint> checkpoint;
      Status status = Checkpoint::open(folder.path(), checkpoint);
      if (status.ok()) {
        Model read;
        status = name[0] == 'm' ? checkpoint->read_weights(read.weights.list())
                                : checkpoint->read_optimizer(read.optimizer.list());
        ASSERT_TRUE(read.weights.same_as(untouched.weights)) << at;
        ASSERT_TRUE(read.optimizer.same_as(untouched.optimizer)) << at;
        if (at >= good.size() - 4) {
          EXPECT_TRUE(fails_with(status, Code::kBadData, {"SHA-256"}));
        }
      }
      ASSERT_TRUE(fails_with(status, Code::kBadData, {path})) << at;
    }
    write_file(path, good);
  }
}

TEST(CheckpointDamage, FlippedBytesOfTheStateDoNotCrash) {
  const ScratchFolder folder;
  ASSERT_TRUE(save(folder.path(), 1, 1).ok());
  const std::string path = folder / "step-00000001/state.json";
  const std::string good = read_file(path);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    write_file(path, bytes);
    const Status status = open_status(folder.path());
    if (!status.ok()) {
      ASSERT_TRUE(fails_with(status, Code::kBadData, {folder / "step-00000001"})) << at;
    }
  }
}

TEST(CheckpointDamage, OtherTensorsAreNamed) {
  const ScratchFolder folder;
  ASSERT_TRUE(save(folder.path(), 1, 1).ok());
  const auto checkpoint = opened(folder.path());
  test::Tensors missing;
  missing.add("embed", {5, 4});
  missing.add("head.bias", {3});
  missing.add("head.weight", {3, 4});
  EXPECT_TRUE(fails_with(checkpoint->read_weights(missing.list()), Code::kBadData,
                         {"model.safetensors", "\"head.weight\"", "missing"}));
  test::Tensors shape;
  shape.add("embed", {4, 5});
  shape.add("head.bias", {3});
  EXPECT_TRUE(fails_with(checkpoint->read_weights(shape.list()), Code::kBadData,
                         {"model.safetensors", "\"embed\"", "[5, 4]", "[4, 5]"}));
  test::Tensors fewer;
  fewer.add("embed", {5, 4});
  EXPECT_TRUE(fails_with(checkpoint->read_weights(fewer.list()), Code::kBadData,
                         {"model.safetensors", "\"head.bias\"", "not expected"}));
  EXPECT_TRUE(fails_with(checkpoint->read_optimizer(fewer.list()), Code::kBadData,
                         {"optimizer.safetensors", "\"embed\"", "missing"}));
}

}  // namespace
}  // namespace rrfp::train
