// SPDX-License-Identifier: Apache-2.0
//
// Folders that appear under their name only when they are complete, and vanish from it at once.
//
// Both pass through names of the form .tmp-<pid>-<16 hex digits>. A folder that is being written is
// locked (flock) by the process that writes it; the system drops the lock when the process ends,
// however it ends. So what has such a name and no lock is garbage, and any later attempt removes
// it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/status.h"
#include "engine/train/files.h"

namespace rrfp::train {

/// Makes the folder and those above it, if missing, so that a power failure does not lose them.
core::Status make_folders(const std::string& path);
/// Removes what broken-off attempts have left in `root`. What cannot be removed stays for the next
/// time.
void remove_leftovers(const std::string& root);
/// Replaces `root`/`name` by a file with this text, at once.
core::Status replace_file(const std::string& root, const std::string& name, std::string_view text);
/// The same for a path; its folder must exist.
core::Status replace_file(const std::string& path, std::string_view text);
/// Removes folders of `root`: at once from their names, then from the disk.
core::Status remove_folders(const std::string& root, const std::vector<std::string>& names);

class AtomicFolder {
 public:
  /// Makes an empty folder in `root`, which must exist.
  static core::Status begin(const std::string& root, std::unique_ptr<AtomicFolder>& out);
  /// Removes the folder if it has not been committed.
  ~AtomicFolder();

  /// Where to put the files, each of which must be flushed to the disk by whoever writes it.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Renames it to `root`/`name` and removes what had that name. Until the rename is on the disk,
  /// the old one is whole.
  core::Status commit(const std::string& name);

  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

 private:
  AtomicFolder() = default;
  core::Status make_locked(bool& made);

  std::string root_;
  std::string path_;     // empty once nothing is left to remove
  FileDescriptor lock_;  // an open folder
};

}  // namespace rrfp::train
