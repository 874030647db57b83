// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/files.h"

#include <fcntl.h>
#include <rrfp/simulate.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "capi/cli/api.h"
#include "capi/cli/output.h"

namespace rrfp::cli {
namespace {

namespace fs = std::filesystem;

std::string reason(int error) {
  return std::generic_category().message(error);
}

/// A folder that nobody else knows, gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    const fs::path root = fs::temp_directory_path(error);
    if (error) bad_input("there is no folder for temporary files: " + error.message());
    path_ = (root / "rrfp-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) {
      bad_input("cannot make a folder in " + root.string() + ": " + reason(errno));
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string file(const char* name) const {
    return (fs::path(path_) / name).string();
  }

 private:
  std::string path_;
};

}  // namespace

std::string read_file(const std::string& label, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) bad_input(label + ": the file cannot be read");
  return text;
}

void write_file(const std::string& label, const std::string& path, std::string_view text) {
  const std::string draft = path + ".tmp-" + std::to_string(::getpid());
  const int descriptor = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) bad_input(label + ": cannot make the file: " + reason(errno));
  Output out(descriptor);
  out.write(text);
  int error = out.error();
  if (error == 0 && ::fsync(descriptor) != 0) error = errno;
  if (::close(descriptor) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(draft.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(draft.c_str());
  bad_input(label + ": cannot write the file: " + reason(error));
}

void check_output_path(const std::string& option, const std::string& path) {
  if (path.empty()) return;
  const std::string label = option + " " + path;
  std::error_code error;
  if (fs::is_directory(path, error)) bad_input(label + " is a folder, expected the name of a file");
  const std::string parent = fs::path(path).parent_path().string();
  const std::string folder = parent.empty() ? "." : parent;
  if (!fs::is_directory(folder, error)) bad_input(label + ": there is no folder " + folder);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    bad_input(label + ": the folder " + folder + " cannot be written to");
  }
}

std::string through_file(const std::function<void(const std::string& path)>& write) {
  const TemporaryFolder folder;
  const std::string path = folder.file("file");
  write(path);
  return read_file(path, path);
}

void draw_svg(const std::function<void(const std::string& trace_path)>& write_trace,
              const std::string& svg_path) {
  const TemporaryFolder folder;
  const std::string trace = folder.file("timeline.json");
  write_trace(trace);
  call(rrfp_trace_draw, trace.c_str(), rrfp_picture{RRFP_PICTURE_SVG}, svg_path.c_str());
}

}  // namespace rrfp::cli
