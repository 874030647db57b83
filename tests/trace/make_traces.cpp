// SPDX-License-Identifier: Apache-2.0
//
// Writes the timelines that browser_test.py looks at into a folder: make_traces FOLDER
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "engine/trace/html.h"
#include "engine/trace/svg.h"
#include "engine/trace/trace_events.h"
#include "tests/trace/sample.h"

namespace rrfp::test {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

/// As JSON, and from what a reader makes of it as a page and a picture. Prints what is in it.
void write_all(const std::filesystem::path& folder, const std::string& name,
               const trace::Timeline& timeline) {
  const std::string json = trace::to_trace_events(timeline);
  trace::Timeline read;
  if (const core::Status status = trace::parse_trace_events(name, json, read); !status.ok()) {
    throw std::runtime_error(status.text());
  }
  write(folder / (name + ".json"), json);
  write(folder / (name + ".html"), trace::to_html(read));
  write(folder / (name + ".svg"), trace::to_svg(read));
  size_t tasks = 0;
  size_t idles = 0;
  size_t messages = 0;
  for (const trace::RankSpans& rank : read.ranks) {
    tasks += rank.tasks.size();
    idles += rank.idles.size();
    messages += rank.messages.size();
  }
  std::printf("%s %zu %zu %zu %zu\n", name.c_str(), read.ranks.size(), tasks, idles, messages);
}

/// Texts that would leave their place if they were not escaped.
trace::Timeline hostile_timeline() {
  trace::Timeline timeline = sample_timeline({.ranks = 2, .microbatches = 3});
  timeline.title = "</title></script><script>document.body.dataset.broken=1</script> & \"'<!--";
  timeline.stages = {{"</script><img src=x onerror=\"document.body.dataset.broken=3\">",
                      "<img src=x onerror=\"document.body.dataset.broken=4\"> &lt;"},
                     {"@STYLE@", "\xE2\x80\xA8'\"><b>\x02 \xFF"}};
  timeline.facts = {
      {"<!--<script>", "</script><img src=x onerror=\"document.body.dataset.broken=2\">"},
      {"@SCRIPT@ @DATA@", "\xE2\x80\xA8 \xFF\xFE \x01 ]]>"}};
  return timeline;
}

void write_samples(const std::filesystem::path& folder) {
  write_all(folder, "four", sample_timeline({.ranks = 4, .microbatches = 12}));
  write_all(folder, "chunks",
            sample_timeline({.ranks = 4,
                             .stages_per_rank = 2,
                             .microbatches = 16,
                             .steps = 3,
                             .split_backward = false}));
  write_all(folder, "branches", sample_timeline({.ranks = 4, .microbatches = 12, .branches = 3}));
  write_all(
      folder, "branched-chunks",
      sample_timeline({.ranks = 16, .stages_per_rank = 2, .microbatches = 64, .branches = 8}));
  write_all(folder, "many", sample_timeline({.ranks = 32, .microbatches = 96}));
  write_all(folder, "wide", sample_timeline({.ranks = 64, .microbatches = 128}));
  // More than a hundred thousand spans.
  write_all(folder, "large", sample_timeline({.ranks = 16, .microbatches = 256, .steps = 10}));
  write_all(folder, "hostile", hostile_timeline());
  write_all(folder, "empty", {});
}

}  // namespace
}  // namespace rrfp::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_traces FOLDER\n");
    return 2;
  }
  try {
    rrfp::test::write_samples(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_traces: %s\n", error.what());
    return 1;
  }
  return 0;
}
