// SPDX-License-Identifier: Apache-2.0
#include "engine/train/atomic_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace rrfp::train {

using core::Status;

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = ".tmp-";
constexpr size_t kHexDigits = 16;
constexpr int kAttemptsMax = 100;

Status temporary_path(const std::string& root, std::string& out) {
  uint64_t number = 0;
  // Eight bytes come whole, and a signal does not interrupt them.
  if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
    return io_error("draw a random name in", root, errno);
  }
  std::array<char, kHexDigits + 1> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(number));
  out = root + "/" + std::string(kPrefix) + std::to_string(getpid()) + "-" + digits.data();
  return {};
}

bool is_temporary(std::string_view name) {
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  const size_t pid_digits = std::min(name.find_first_not_of("0123456789"), name.size());
  if (pid_digits == 0 || name.size() != pid_digits + 1 + kHexDigits) return false;
  return name[pid_digits] == '-' &&
         name.find_first_not_of("0123456789abcdef", pid_digits + 1) == std::string_view::npos;
}

/// Whether `path` still stands for what is open.
bool is_at(const FileDescriptor& file, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return fstat(file.get(), &opened) == 0 && lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

Status remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  // Another process may be clearing away the same folder.
  if (!error || error == std::errc::no_such_file_or_directory) return {};
  return io_error("remove", path, error.value());
}

}  // namespace

Status make_folders(const std::string& path) {
  std::vector<std::string> missing;  // innermost first
  std::string at = path;
  while (at.size() > 1 && at.back() == '/') at.pop_back();
  struct stat info {};
  while (stat(at.c_str(), &info) != 0) {
    if (errno != ENOENT || at == parent_of(at)) return io_error("make the folder", at, errno);
    missing.push_back(at);
    at = parent_of(at);
  }
  if (!S_ISDIR(info.st_mode)) return io_error("make the folder", path, ENOTDIR);
  for (; !missing.empty(); missing.pop_back()) {
    const std::string& folder = missing.back();
    // Another process may be faster.
    if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
      return io_error("make the folder", folder, errno);
    }
    if (Status s = sync_folder(parent_of(folder)); !s.ok()) return s;
  }
  return {};
}

void remove_leftovers(const std::string& root) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(root, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    if (is_temporary(at->path().filename().string())) found.push_back(at->path().string());
  }
  for (const std::string& path : found) {
    const FileDescriptor lock(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (lock.get() < 0 || flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
    // It may have got its final name before the lock was taken; then there is nothing here.
    if (is_at(lock, path)) fs::remove_all(path, error);
  }
}

Status replace_file(const std::string& root, const std::string& name, std::string_view text) {
  std::unique_ptr<AtomicFolder> folder;  // removes the file again if something fails
  if (Status s = AtomicFolder::begin(root, folder); !s.ok()) return s;
  const std::string path = folder->path() + "/" + name;
  OutputFile file;
  if (Status s = file.create(path); !s.ok()) return s;
  if (Status s = file.write(text.data(), text.size()); !s.ok()) return s;
  FileDigest digest;
  if (Status s = file.finish(digest); !s.ok()) return s;
  const std::string target = root + "/" + name;
  if (rename(path.c_str(), target.c_str()) != 0) {
    return io_error("rename \"" + path + "\" to", target, errno);
  }
  return sync_folder(root);
}

Status replace_file(const std::string& path, std::string_view text) {
  const std::filesystem::path file(path);
  if (!file.has_filename()) {
    return {core::Code::kInvalidArgument, "path is \"" + path + "\"; expected the name of a file"};
  }
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  return replace_file(folder, file.filename().string(), text);
}

Status remove_folders(const std::string& root, const std::vector<std::string>& names) {
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    std::string path;
    if (Status s = temporary_path(root, path); !s.ok()) return s;
    const std::string from = fs::path(root) / name;
    if (rename(from.c_str(), path.c_str()) == 0) {
      paths.push_back(path);
    } else if (errno != ENOENT) {  // else another process has removed it
      return io_error("rename \"" + from + "\" to", path, errno);
    }
  }
  if (paths.empty()) return {};
  // A power failure must not bring back a name of which files are already gone.
  if (Status s = sync_folder(root); !s.ok()) return s;
  for (const std::string& path : paths) {
    if (Status s = remove_tree(path); !s.ok()) return s;
  }
  return {};
}

Status AtomicFolder::begin(const std::string& root, std::unique_ptr<AtomicFolder>& out) {
  std::unique_ptr<AtomicFolder> folder(new AtomicFolder());
  folder->root_ = root;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    bool made = false;
    if (Status s = folder->make_locked(made); !s.ok()) return s;
    if (!made) continue;
    out = std::move(folder);
    return {};
  }
  return io_error("make a folder in", root, EEXIST);
}

/// Between the making and the lock, another process may take the folder for a leftover. Then it is
/// left to that one, and `made` stays false.
Status AtomicFolder::make_locked(bool& made) {
  std::string path;
  if (Status s = temporary_path(root_, path); !s.ok()) return s;
  if (mkdir(path.c_str(), 0777) != 0) {
    return errno == EEXIST ? Status() : io_error("make the folder", path, errno);
  }
  FileDescriptor lock(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.get() < 0 && errno == ENOENT) return {};
  if (lock.get() < 0) return io_error("open", path, errno);
  // A file system without locks on folders is used by one process at a time, or it is not safe.
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return {};
  if (!is_at(lock, path)) return {};
  path_ = path;
  lock_ = std::move(lock);
  made = true;
  return {};
}

AtomicFolder::~AtomicFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

Status AtomicFolder::commit(const std::string& name) {
  if (Status s = sync_folder(path_); !s.ok()) return s;
  const std::string target = root_ + "/" + name;
  // A folder replaces nothing but an empty folder.
  if (rename(path_.c_str(), target.c_str()) == 0) {
    path_.clear();
    return sync_folder(root_);
  }
  if (errno != ENOTEMPTY && errno != EEXIST) {
    return io_error("rename \"" + path_ + "\" to", target, errno);
  }
  if (renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) != 0) {
    return io_error("exchange \"" + path_ + "\" with", target, errno);
  }
  // Now the old one has the temporary name. It goes only once the exchange is on the disk.
  if (Status s = sync_folder(root_); !s.ok()) {
    path_.clear();
    return s;
  }
  const std::string old = std::move(path_);
  path_.clear();
  return remove_tree(old);
}

}  // namespace rrfp::train
