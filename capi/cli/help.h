// SPDX-License-Identifier: Apache-2.0
//
// How --help looks: options on the left, what they do on the right, 80 columns.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace rrfp::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  // An empty line before each group, where the base class has one or two.
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
};

}  // namespace rrfp::cli
