// SPDX-License-Identifier: Apache-2.0
//
// What can be said of the pictures without a browser; browser_test.py looks at the pages in one.
#include <gtest/gtest.h>

#include <string>

#include "engine/trace/html.h"
#include "engine/trace/markup.h"
#include "engine/trace/svg.h"
#include "tests/trace/sample.h"

namespace rrfp::trace {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

Timeline with_hostile_texts() {
  Timeline timeline = test::sample_timeline({.ranks = 2, .microbatches = 2});
  timeline.title = "</title></script><script>x</script> & \"'";
  timeline.source = "<source>";
  timeline.stages = {{"<script>", "</script><source>"}, {"</svg>", "<!--<title>\"' \xFF"}};
  timeline.facts = {{"<!--", "]]> \xFF \x01"}, {"@SCRIPT@", "@DATA@"}};
  return timeline;
}

TEST(Markup, Escapes) {
  EXPECT_EQ(escaped("a<b>&\"'\x01\n"), "a&lt;b&gt;&amp;&quot;&#39;  ");
  EXPECT_EQ(escaped("\xC3\xA4\xFF\xEF\xBF\xBF"), "\xC3\xA4\xEF\xBF\xBD?");
}

TEST(Markup, Figures) {
  EXPECT_EQ(decimal(1.25, 1), "1.2");
  EXPECT_EQ(decimal(-0.5, 3), "-0.500");
  EXPECT_EQ(duration(0), "0 ns");
  EXPECT_EQ(duration(999), "999 ns");
  EXPECT_EQ(duration(1'234), "1.234 us");
  EXPECT_EQ(duration(12'345'678), "12.35 ms");
  EXPECT_EQ(duration(123'456'789'000), "123.5 s");
}

TEST(Svg, HasALanePerRankAndAnyTextIsEscaped) {
  const std::string svg = to_svg(with_hostile_texts());
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(count(svg, ">rank "), 2U);
  EXPECT_EQ(count(svg, "<script"), 0U);
  EXPECT_EQ(count(svg, "<source"), 0U);
  EXPECT_NE(svg.find("makespan"), std::string::npos);
  EXPECT_NE(svg.find("idle share"), std::string::npos);
  // Nothing is loaded.
  EXPECT_EQ(count(svg, "http"), count(svg, "http://www.w3.org/2000/svg"));
}

TEST(Svg, TellsBranchesApart) {
  const test::SampleOptions options = {.ranks = 4, .microbatches = 8, .branches = 3};
  const std::string svg = to_svg(test::sample_timeline(options));
  for (const char* const name : {"branch0.embedding", "branch1.embedding", "branch2.embedding"}) {
    EXPECT_EQ(count(svg, name), 1U);
  }
  EXPECT_EQ(count(svg, "% of computing"), 3U);
  EXPECT_GT(count(svg, ">A</text>"), 8U);
}

TEST(Svg, HasAsManyBranchesAsFit) {
  Timeline timeline = test::sample_timeline({.ranks = 4, .stages_per_rank = 10, .microbatches = 2});
  for (int s = 0; s < 40; ++s) timeline.stages.push_back({"s", "branch" + std::to_string(s)});
  for (const int32_t lane_px : {0, 4, 20, 60}) {
    const std::string svg = to_svg(timeline, {.lane_px = lane_px});
    EXPECT_EQ(count(svg, "% of computing"), 25U);
    EXPECT_EQ(count(svg, "15 more branches"), 1U);
  }
}

// Whatever the stages are called.
TEST(Pictures, OfOneBranchAreThoseOfNone) {
  const test::SampleOptions options = {.ranks = 4, .stages_per_rank = 2, .microbatches = 8};
  const Timeline plain = test::sample_timeline(options);
  Timeline named = plain;
  named.stages = {{"a", "one"}, {"b .. c", "one"}, {"d", ""}};
  EXPECT_EQ(to_svg(named), to_svg(plain));
  EXPECT_EQ(to_html(named), to_html(plain));
}

TEST(Svg, OfNothing) {
  EXPECT_TRUE(to_svg({}).ends_with("</svg>\n"));
  Timeline timeline;
  timeline.ranks.resize(3);
  timeline.ranks[1].tasks = {{SpanKind::kUpdate, {}, {}, 0, kUnknownTime, 5, 5}};
  const std::string svg = to_svg(timeline);
  EXPECT_EQ(count(svg, ">rank "), 3U);
  EXPECT_EQ(count(svg, "nan"), 0U);
  EXPECT_EQ(count(svg, "inf"), 0U);
}

TEST(Svg, StaysSmallHoweverLongTheRun) {
  const Timeline one = test::sample_timeline({.ranks = 64, .microbatches = 128});
  const Timeline eight = test::sample_timeline({.ranks = 32, .microbatches = 64, .steps = 8});
  EXPECT_LT(to_svg(one).size(), size_t{3} << 20);
  EXPECT_LT(to_svg(eight).size(), size_t{3} << 20);
}

TEST(Svg, TakesAnyOptions) {
  const Timeline timeline = test::sample_timeline({.ranks = 2, .microbatches = 2});
  for (const int32_t width : {INT32_MIN, 0, 400, INT32_MAX}) {
    for (const int32_t lane : {INT32_MIN, 0, 1, 30, INT32_MAX}) {
      const std::string svg = to_svg(timeline, {.width_px = width, .lane_px = lane});
      EXPECT_LT(svg.size(), size_t{1} << 20);
    }
  }
}

TEST(Html, NothingOfTheDataIsMarkup) {
  const std::string html = to_html(with_hostile_texts());
  const std::string plain = to_html(test::sample_timeline({.ranks = 2, .microbatches = 2}));
  for (const char* const mark : {"<script", "</script", "<!--", "<title", "\"use strict\";"}) {
    EXPECT_EQ(count(html, mark), count(plain, mark)) << mark;
  }
  EXPECT_EQ(count(html, "<source"), 0U);
  EXPECT_TRUE(html.ends_with("</html>\n"));
}

TEST(Html, LoadsNothing) {
  const std::string html = to_html(test::sample_timeline({}));
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  for (const char* const mark : {"http:", "https:", "src=", "@import", "url("}) {
    EXPECT_EQ(count(html, mark), 0U) << mark;
  }
}

}  // namespace
}  // namespace rrfp::trace
