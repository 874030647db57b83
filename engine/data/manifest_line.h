// SPDX-License-Identifier: Apache-2.0
//
// One line of a manifest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rrfp::data {

struct ManifestLine {
  std::string text;
  std::vector<std::string> pictures;
};

/// Reads a JSON object in UTF-8, however deep. The result is empty, or what is wrong with the line,
/// in printable ASCII and to be read after its place. Whether the two fields fit each other is for
/// the caller to say; the memory that it takes is that of the fields, not of what else is there.
std::string parse_manifest_line(std::string_view line, ManifestLine& out);

}  // namespace rrfp::data
