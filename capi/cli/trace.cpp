// SPDX-License-Identifier: Apache-2.0
//
// rrfp trace: what a timeline comes to, and pictures of it.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "capi/cli/api.h"
#include "capi/cli/commands.h"
#include "capi/cli/files.h"
#include "capi/cli/output.h"

namespace rrfp::cli {
namespace {

struct TraceCommand {
  std::string file;
  std::string html;
  std::string svg;
  bool json = false;
};

/// Where the time of a rank can go; the keys of the library's summary are these and "_ms".
constexpr std::array<const char*, 8> kParts = {"computing", "input", "memory",   "credit",
                                               "policy",    "group", "complete", "engine"};

double part_ms(const Json& rank, const char* part) {
  return rank.at(std::string(part) + "_ms").get<double>();
}

std::string head(const char* unit) {
  std::string text = format("%4s", unit);
  for (const char* part : kParts) text += format("%10s", part);
  return text + "\n";
}

/// `scale` makes milliseconds into the unit of the table.
std::string row(const std::string& name, const Json& rank, double scale, int decimals) {
  std::string text = format("%4s", name.c_str());
  for (const char* part : kParts) text += format("%10.*f", decimals, part_ms(rank, part) * scale);
  return text + "\n";
}

Json mean_of(const Json& ranks) {
  Json mean = Json::object();
  for (const char* part : kParts) {
    double sum_ms = 0;
    for (const Json& rank : ranks) sum_ms += part_ms(rank, part);
    mean[std::string(part) + "_ms"] = sum_ms / static_cast<double>(ranks.size());
  }
  return mean;
}

/// Bytes by which no terminal is harmed and no line gets too long; whole characters.
std::string shown(const std::string& name) {
  constexpr size_t kShownMax = 40;
  std::string text;
  TerminalFilter filter;
  for (const char byte : name) {
    const char harmless = byte == '\n' || byte == '\t' ? '?' : filter(byte);
    // A control character of two bytes is one mark, so that the text stays UTF-8.
    const bool second = harmless != byte && (byte & 0x80) != 0;
    if (second) text.pop_back();
    text += harmless;
  }
  if (text.size() <= kShownMax) return text;
  size_t end = kShownMax - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::string branch_table(const Json& branches) {
  constexpr size_t kNameWidth = 40;
  std::string text = "\n" + format("%-40s%15s%10s%10s\n", "branch", "computing, ms", "%", "tasks");
  for (const Json& branch : branches) {
    const std::string name = shown(branch.at("name").get<std::string>());
    const auto characters = static_cast<size_t>(std::count_if(name.begin(), name.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    }));
    text += name + std::string(kNameWidth - characters, ' ') +
            format("%15.3f%10.1f%10lld\n", branch.at("computing_ms").get<double>(),
                   100 * branch.at("share").get<double>(),
                   static_cast<long long>(branch.at("tasks").get<int64_t>()));
  }
  return text;
}

std::string table(const Json& summary) {
  const double makespan_ms = summary.at("makespan_ms").get<double>();
  const Json& ranks = summary.at("ranks");
  std::string text = format("%zu ranks, %.3f ms, idle %.1f %%\n", ranks.size(), makespan_ms,
                            100 * summary.at("idle_share").get<double>());
  if (ranks.empty()) return text;
  const Json mean = mean_of(ranks);
  const double percent = makespan_ms > 0 ? 100 / makespan_ms : 0;
  const auto rows = [&](const char* unit, double scale, int decimals) {
    text += "\n" + head(unit);
    for (size_t r = 0; r < ranks.size(); ++r) {
      text += row(std::to_string(r), ranks[r], scale, decimals);
    }
    text += row("mean", mean, scale, decimals);
  };
  rows("ms", 1, 3);
  rows("%", percent, 1);
  if (summary.contains("branches")) text += branch_table(summary.at("branches"));
  return text;
}

int trace(const TraceCommand& command) {
  check_output_path("--html", command.html);
  check_output_path("--svg", command.svg);
  const auto draw = [&command](const std::string& path, rrfp_picture picture) {
    if (!path.empty()) call(rrfp_trace_draw, command.file.c_str(), picture, path.c_str());
  };
  draw(command.html, RRFP_PICTURE_HTML);
  draw(command.svg, RRFP_PICTURE_SVG);
  const bool draws = !command.html.empty() || !command.svg.empty();
  if (draws && !command.json) return 0;
  const Json summary = Json::parse(text_of(rrfp_trace_summarize, command.file.c_str()));
  Output out(STDOUT_FILENO);
  if (command.json) {
    out.write_json(summary);
  } else {
    out.write(table(summary));
  }
  out.check();
  return 0;
}

}  // namespace

void add_trace(CLI::App& app, Run& run) {
  CLI::App* const sub = app.add_subcommand(
      "trace", "Say where the time of a timeline went: of train --trace, simulate --trace.");
  const auto command = std::make_shared<TraceCommand>();
  sub->add_option("timeline", command->file, "a timeline")->type_name("FILE")->required();
  sub->add_option("--html", command->html, "instead of a table, draw it as a page")
      ->type_name("FILE");
  sub->add_option("--svg", command->svg, "instead of a table, draw it as a picture")
      ->type_name("FILE");
  sub->add_flag("--json", command->json, "the figures as one JSON object");
  sub->callback([command, &run] { run = [command] { return trace(*command); }; });
}

}  // namespace rrfp::cli
