// SPDX-License-Identifier: Apache-2.0
#include "engine/train/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

namespace rrfp::train {

using core::Code;
using core::Status;

namespace {

// Linux moves at most 2 GiB at once and says so with a short count; less keeps signals responsive.
constexpr size_t kChunkBytesMax = size_t{64} << 20;
constexpr size_t kDigestChunkBytes = size_t{1} << 20;

}  // namespace

Status io_error(std::string_view verb, const std::string& path, int error) {
  return {Code::kIo, "cannot " + std::string(verb) + " \"" + path +
                         "\": " + std::generic_category().message(error)};
}

std::string shown_name(std::string_view name) {
  constexpr size_t kShownMax = 80;
  std::string text = "\"";
  for (const char c : name.substr(0, kShownMax)) text += c >= ' ' && c <= '~' ? c : '?';
  return text + (name.size() > kShownMax ? "...\"" : "\"");
}

int FileDescriptor::reset() {
  const int value = std::exchange(value_, -1);
  return value < 0 ? 0 : close(value);
}

Status OutputFile::create(const std::string& path) {
  path_ = path;
  file_ = FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  return file_.get() < 0 ? io_error("create", path, errno) : Status();
}

Status OutputFile::write(const void* data, size_t bytes) {
  const auto* const begin = static_cast<const char*>(data);
  for (size_t done = 0; done < bytes;) {
    const ssize_t count =
        ::write(file_.get(), begin + done, std::min(bytes - done, kChunkBytesMax));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error("write", path_, errno);
    sha256_.update(begin + done, static_cast<size_t>(count));
    done += static_cast<size_t>(count);
    bytes_ += static_cast<uint64_t>(count);
  }
  return {};
}

Status OutputFile::finish(FileDigest& digest) {
  if (fsync(file_.get()) != 0) return io_error("flush", path_, errno);
  if (file_.reset() != 0) return io_error("close", path_, errno);
  digest = {bytes_, sha256_.hex()};
  return {};
}

Status InputFile::open(const std::string& path) {
  // Not to wait for the other end of a pipe; what is no regular file is refused below.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return io_error("open", path, errno);
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return io_error("read", path, errno);
  if (!S_ISREG(info.st_mode)) return {Code::kBadData, "\"" + path + "\" is not a regular file"};
  path_ = path;
  file_ = std::move(file);
  bytes_ = static_cast<uint64_t>(info.st_size);
  return {};
}

Status InputFile::read(uint64_t offset, void* data, size_t bytes) const {
  auto* const begin = static_cast<char*>(data);
  for (size_t done = 0; done < bytes;) {
    const ssize_t count = pread(file_.get(), begin + done, std::min(bytes - done, kChunkBytesMax),
                                static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error("read", path_, errno);
    if (count == 0) {
      return {Code::kBadData, "\"" + path_ + "\" ends at byte " + std::to_string(offset + done) +
                                  ", expected at least " + std::to_string(offset + bytes) +
                                  " bytes"};
    }
    done += static_cast<size_t>(count);
  }
  return {};
}

Status InputFile::digest(FileDigest& out) const {
  std::vector<char> buffer(std::min<uint64_t>(bytes_, kDigestChunkBytes));
  Sha256 sha256;
  for (uint64_t at = 0; at < bytes_;) {
    const size_t count = std::min<uint64_t>(buffer.size(), bytes_ - at);
    if (Status s = read(at, buffer.data(), count); !s.ok()) return s;
    sha256.update(buffer.data(), count);
    at += count;
  }
  out = {bytes_, sha256.hex()};
  return {};
}

Status sync_folder(const std::string& path) {
  const FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return io_error("open", path, errno);
  // Some file systems cannot flush a folder, and say that the call is invalid.
  if (fsync(folder.get()) != 0 && errno != EINVAL) return io_error("flush", path, errno);
  return {};
}

}  // namespace rrfp::train
