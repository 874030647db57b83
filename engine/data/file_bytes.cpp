// SPDX-License-Identifier: Apache-2.0
#include "engine/data/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "engine/data/corpus_files.h"

namespace rrfp::data {

using core::Code;
using core::Status;

Status FileBytes::load(const std::string& path, FileBytes& out) {
  // Otherwise the name of a pipe would wait for somebody to write to it.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return io_error("open", path, errno);
  FileBytes loaded;
  Status status = loaded.load_open(path, file);
  close(file);  // the mapping stays
  if (status.ok()) out = std::move(loaded);
  return status;
}

FileBytes::~FileBytes() {
  if (mapping_ != nullptr) munmap(mapping_, size_);
}

Status FileBytes::load_open(const std::string& path, int file) {
  struct stat info {};
  if (fstat(file, &info) != 0) return io_error("read", path, errno);
  if (!S_ISREG(info.st_mode)) return {Code::kIo, "\"" + path + "\" is not a regular file"};
  const auto size = static_cast<size_t>(info.st_size);
  if (size < kMapBytesMin) {
    buffer_ = std::make_unique<uint8_t[]>(size);
    data_ = buffer_.get();
    size_ = size;
    return read_all(path, file);
  }
  void* const mapping = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  if (mapping == MAP_FAILED) return io_error("map", path, errno);
  mapping_ = mapping;
  data_ = static_cast<const uint8_t*>(mapping);
  size_ = size;
  return {};
}

Status FileBytes::read_all(const std::string& path, int file) {
  for (size_t done = 0; done < size_;) {
    const ssize_t count = read(file, buffer_.get() + done, size_ - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error("read", path, errno);
    if (count == 0) {
      return {Code::kIo, "\"" + path + "\" ends after " + std::to_string(done) +
                             " bytes, expected " + std::to_string(size_) +
                             ": it changed while it was read"};
    }
    done += static_cast<size_t>(count);
  }
  return {};
}

}  // namespace rrfp::data
