// SPDX-License-Identifier: Apache-2.0
//
// Which files a list of files and folders stands for.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/core/status.h"

namespace rrfp::data {

/// kIo for `verb` ("open", "read", ...) on a file, with the system's reason for `error` (an errno).
core::Status io_error(const std::string& verb, const std::string& path, int error);

/// The regular files among and below `paths`: in the order given, those of one folder by path.
/// Links are followed; a file or folder that is reached again is passed over, so that loops end.
/// Errors: kIo names what cannot be read or is missing; kInvalidArgument a path that is neither a
/// file nor a folder.
core::Status list_files(std::span<const std::string> paths, std::vector<std::string>& out);

}  // namespace rrfp::data
