// SPDX-License-Identifier: Apache-2.0
//
// The files that this command reads and writes itself; most are left to the library.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace rrfp::cli {

/// All of a file. `label` is what errors call it, such as "--hint order.csv".
std::string read_file(const std::string& label, const std::string& path);

/// Replaces a file at once: readers see the old text or the new one.
void write_file(const std::string& label, const std::string& path, std::string_view text);

/// Throws if a file of that name cannot be made: better known before the work than after it. An
/// empty path is an option that was not given.
void check_output_path(const std::string& option, const std::string& path);

/// What `write` puts into the file that it is given, which does not stay.
std::string through_file(const std::function<void(const std::string& path)>& write);

/// Draws a timeline that need not stay as an SVG. `write_trace` puts it into the file that it is
/// given.
void draw_svg(const std::function<void(const std::string& trace_path)>& write_trace,
              const std::string& svg_path);

}  // namespace rrfp::cli
