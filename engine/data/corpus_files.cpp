// SPDX-License-Identifier: Apache-2.0
#include "engine/data/corpus_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

namespace rrfp::data {

using core::Code;
using core::Status;

Status io_error(const std::string& verb, const std::string& path, int error) {
  return {Code::kIo,
          "cannot " + verb + " \"" + path + "\": " + std::generic_category().message(error)};
}

namespace {

using Identity = std::pair<dev_t, ino_t>;

struct Found {
  std::string path;
  Identity identity;
};

class FileLister {
 public:
  explicit FileLister(std::vector<std::string>& files) : files_(files) {}

  Status add(const std::string& path) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) return io_error("read", path, errno);
    if (S_ISREG(info.st_mode)) {
      add_file({path, {info.st_dev, info.st_ino}});
      return {};
    }
    if (S_ISDIR(info.st_mode)) return add_folder({path, {info.st_dev, info.st_ino}});
    return {Code::kInvalidArgument, "\"" + path + "\" is neither a file nor a folder"};
  }

 private:
  void add_file(Found&& file) {
    if (seen_.insert(file.identity).second) files_.push_back(std::move(file.path));
  }

  Status add_folder(Found&& top) {
    std::vector<Found> files;
    std::vector<Found> folders;
    folders.push_back(std::move(top));
    while (!folders.empty()) {
      const Found folder = std::move(folders.back());
      folders.pop_back();
      if (!seen_.insert(folder.identity).second) continue;
      if (Status s = look_into(folder.path, files, folders); !s.ok()) return s;
    }
    std::sort(files.begin(), files.end(),
              [](const Found& a, const Found& b) { return a.path < b.path; });
    for (Found& file : files) add_file(std::move(file));
    return {};
  }

  static Status look_into(const std::string& folder, std::vector<Found>& files,
                          std::vector<Found>& folders) {
    std::vector<std::string> paths;
    std::error_code error;
    std::filesystem::directory_iterator at(folder, error);
    for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
      paths.push_back(at->path().string());
    }
    if (error) return io_error("read", folder, error.value());
    // The first path of a folder that has several must not depend on the order on the disk. The
    // last one on the stack is looked into first.
    std::sort(paths.begin(), paths.end(), std::greater<>());
    for (const std::string& path : paths) {
      struct stat info {};
      if (stat(path.c_str(), &info) != 0) return io_error("read", path, errno);
      const Identity identity(info.st_dev, info.st_ino);
      if (S_ISREG(info.st_mode)) files.push_back({path, identity});
      if (S_ISDIR(info.st_mode)) folders.push_back({path, identity});
    }
    return {};
  }

  std::vector<std::string>& files_;
  std::set<Identity> seen_;
};

}  // namespace

Status list_files(std::span<const std::string> paths, std::vector<std::string>& out) {
  std::vector<std::string> files;
  FileLister lister(files);
  for (const std::string& path : paths) {
    if (Status s = lister.add(path); !s.ok()) return s;
  }
  out = std::move(files);
  return {};
}

}  // namespace rrfp::data
