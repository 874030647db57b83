// SPDX-License-Identifier: Apache-2.0
//
// What nearly every file of the command includes and takes seconds to read: compiled once. It needs
// no guard: both headers have theirs, and compilers warn about `once` in a header that is compiled
// itself.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
