// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/help.h"

#include <sstream>
#include <utility>

namespace rrfp::cli {
namespace {

constexpr size_t kTextColumn = 30;
constexpr size_t kColumns = 80;

}  // namespace

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string out = "  " + option->get_name(is_positional, !is_positional);
  const bool takes_value = option->get_items_expected_max() > 0;
  if (takes_value && !option->get_type_name().empty()) out += " " + option->get_type_name();
  if (option->get_items_expected_max() > 1) out += "...";
  size_t column = out.size();
  if (column + 2 > kTextColumn) {
    out += "\n";
    column = 0;
  }
  std::string text = option->get_description();
  if (option->get_required()) text += " (required)";
  if (takes_value && !option->get_default_str().empty()) {
    text += (text.empty() ? "(" : " (") + option->get_default_str() + ")";
  }
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (column + 1 + word.size() > kColumns) {
      out += "\n";
      column = 0;
    }
    const size_t space = column < kTextColumn ? kTextColumn - column : 1;
    out += std::string(space, ' ') + word;
    column += space + word.size();
  }
  return out + "\n";
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  return Formatter::make_usage(app, std::move(name)) + "\n";
}

std::string HelpFormatter::make_group(std::string group, bool is_positional,
                                      std::vector<const CLI::Option*> options) const {
  std::string out = group + ":\n";
  for (const CLI::Option* option : options) out += make_option(option, is_positional);
  return out;
}

}  // namespace rrfp::cli
