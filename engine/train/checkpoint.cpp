// SPDX-License-Identifier: Apache-2.0
#include "engine/train/checkpoint.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "engine/train/atomic_folder.h"
#include "engine/train/files.h"
#include "engine/train/safetensors.h"
#include "engine/train/state_json.h"

namespace rrfp::train {

using core::Code;
using core::Status;

namespace {

constexpr const char* kWeightsFile = "model.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kStateFile = "state.json";
constexpr const char* kLatestFile = "latest";
constexpr std::string_view kStepPrefix = "step-";
constexpr size_t kStepDigits = 8;

std::string step_name(int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < kStepDigits) digits.insert(0, kStepDigits - digits.size(), '0');
  return std::string(kStepPrefix) + digits;
}

/// Only names that step_name() makes, so that no two stand for one step.
std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kStepPrefix.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), step);
  if (error != std::errc() || end != digits.end() || step < 0 || step_name(step) != name) {
    return std::nullopt;
  }
  return step;
}

bool has_state(const std::string& folder) {
  struct stat info {};
  return stat((folder + "/" + kStateFile).c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

/// The steps that have a checkpoint in `root`, in ascending order. Other folders are not ours, even
/// if they are named alike.
Status list_steps(const std::string& root, std::vector<int64_t>& out) {
  std::vector<int64_t> steps;
  std::error_code error;
  std::filesystem::directory_iterator at(root, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const auto step = step_of(at->path().filename().string());
    if (step && has_state(at->path().string())) steps.push_back(*step);
  }
  if (error) return io_error("read", root, error.value());
  std::sort(steps.begin(), steps.end());
  out = std::move(steps);
  return {};
}

Status write_state(const std::string& path, const StateFile& state) {
  std::string text;
  if (Status s = print_state(state, text); !s.ok()) return s;
  OutputFile file;
  if (Status s = file.create(path); !s.ok()) return s;
  if (Status s = file.write(text.data(), text.size()); !s.ok()) return s;
  FileDigest digest;
  return file.finish(digest);
}

Status read_state(const std::string& path, StateFile& out) {
  InputFile file;
  if (Status s = file.open(path); !s.ok()) return s;
  if (file.bytes() > kStateBytesMax) {
    return {Code::kBadData, "\"" + path + "\" has " + std::to_string(file.bytes()) +
                                " bytes, expected at most " + std::to_string(kStateBytesMax)};
  }
  std::string text(file.bytes(), '\0');
  if (Status s = file.read(0, text.data(), text.size()); !s.ok()) return s;
  return parse_state(path, text, out);
}

Status update_latest(const std::string& root, std::span<const int64_t> steps) {
  // Whoever went back to an earlier step still has later ones; open() would take those, too.
  return replace_file(root, kLatestFile, step_name(steps.back()) + "\n");
}

Status remove_old(const std::string& root, std::span<const int64_t> steps, int64_t saved,
                  int32_t keep) {
  if (keep == 0 || steps.size() <= static_cast<size_t>(keep)) return {};
  std::vector<std::string> names;
  for (const int64_t step : steps.first(steps.size() - static_cast<size_t>(keep))) {
    if (step != saved) names.push_back(step_name(step));
  }
  return remove_folders(root, names);
}

/// A file of a checkpoint, which must be as long as state.json says.
Status open_tensors(const std::string& path, const FileDigest& expected,
                    std::unique_ptr<const SafetensorsFile>& out) {
  InputFile file;
  if (Status s = file.open(path); !s.ok()) return s;
  // First, as it says best what is wrong with a file that was cut off.
  if (file.bytes() != expected.bytes) {
    return {Code::kBadData, "\"" + path + "\" has " + std::to_string(file.bytes()) +
                                " bytes, expected " + std::to_string(expected.bytes) +
                                " according to state.json"};
  }
  return SafetensorsFile::open(path, out);
}

Status read_tensors(const SafetensorsFile& file, const FileDigest& expected,
                    std::span<const NamedTensor> tensors) {
  if (Status s = file.check_same(tensors); !s.ok()) return s;
  FileDigest found;
  if (Status s = file.file().digest(found); !s.ok()) return s;
  if (found != expected) {
    return {Code::kBadData, "\"" + file.file().path() + "\" has the SHA-256 " + found.sha256 +
                                ", expected " + shown_name(expected.sha256) +
                                " according to state.json: its bytes have changed"};
  }
  return file.read(tensors);
}

}  // namespace

Status save_checkpoint(const std::string& root, const CheckpointState& state,
                       std::span<const NamedTensor> weights, std::span<const NamedTensor> optimizer,
                       int32_t keep) {
  if (keep < 0) {
    return {Code::kInvalidArgument,
            std::to_string(keep) + " checkpoints to keep, expected at least 1, or 0 for all"};
  }
  if (Status s = check_state(state); !s.ok()) return s;
  if (Status s = make_folders(root); !s.ok()) return s;
  remove_leftovers(root);
  std::unique_ptr<AtomicFolder> folder;
  if (Status s = AtomicFolder::begin(root, folder); !s.ok()) return s;
  const std::string path = folder->path() + "/";
  const SafetensorsMetadata metadata = {{"format", "rrfp"}};
  StateFile file{state, {}, {}};
  if (Status s = write_safetensors(path + kWeightsFile, weights, metadata, file.weights); !s.ok()) {
    return s;
  }
  if (Status s = write_safetensors(path + kOptimizerFile, optimizer, metadata, file.optimizer);
      !s.ok()) {
    return s;
  }
  if (Status s = write_state(path + kStateFile, file); !s.ok()) return s;
  if (Status s = folder->commit(step_name(state.step)); !s.ok()) return s;
  std::vector<int64_t> steps;
  if (Status s = list_steps(root, steps); !s.ok()) return s;
  if (steps.empty()) return {};  // another process has removed it
  if (Status s = update_latest(root, steps); !s.ok()) return s;
  return remove_old(root, steps, state.step, keep);
}

struct Checkpoint::Files {
  std::string path;
  StateFile state;
  std::unique_ptr<const SafetensorsFile> weights;
  std::unique_ptr<const SafetensorsFile> optimizer;
};

Checkpoint::Checkpoint() : files_(std::make_unique<Files>()) {}
Checkpoint::~Checkpoint() = default;

namespace {

/// `path` itself, or the newest checkpoint in it.
Status find_checkpoint(const std::string& path, std::string& out) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return io_error("read", path, errno);
  if (!S_ISDIR(info.st_mode)) {
    return {Code::kBadData, "not a checkpoint of rrfp: \"" + path + "\" is not a folder"};
  }
  if (has_state(path)) {
    out = path;
    return {};
  }
  std::vector<int64_t> steps;
  if (Status s = list_steps(path, steps); !s.ok()) return s;
  if (steps.empty()) {
    return {Code::kBadData, "not a checkpoint of rrfp: \"" + path +
                                "\" has neither a state.json nor a folder step-* with one"};
  }
  out = path + "/" + step_name(steps.back());
  return {};
}

}  // namespace

Status Checkpoint::open(const std::string& path, std::shared_ptr<const Checkpoint>& out) {
  std::shared_ptr<Checkpoint> checkpoint(new Checkpoint());
  Files& files = *checkpoint->files_;
  if (Status s = find_checkpoint(path, files.path); !s.ok()) return s;
  if (Status s = read_state(files.path + "/" + kStateFile, files.state); !s.ok()) return s;
  if (Status s = open_tensors(files.path + "/" + kWeightsFile, files.state.weights, files.weights);
      !s.ok()) {
    return s;
  }
  if (Status s =
          open_tensors(files.path + "/" + kOptimizerFile, files.state.optimizer, files.optimizer);
      !s.ok()) {
    return s;
  }
  out = std::move(checkpoint);
  return {};
}

const std::string& Checkpoint::path() const {
  return files_->path;
}

const CheckpointState& Checkpoint::state() const {
  return files_->state.state;
}

std::vector<std::string> Checkpoint::weight_names() const {
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : files_->weights->entries()) names.push_back(entry.name);
  return names;
}

Status Checkpoint::read_weights(std::span<const NamedTensor> tensors) const {
  return read_tensors(*files_->weights, files_->state.weights, tensors);
}

Status Checkpoint::read_optimizer(std::span<const NamedTensor> tensors) const {
  return read_tensors(*files_->optimizer, files_->state.optimizer, tensors);
}

}  // namespace rrfp::train
