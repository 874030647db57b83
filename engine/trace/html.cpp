// SPDX-License-Identifier: Apache-2.0
#include "engine/trace/html.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/trace/markup.h"
#include "engine/trace/page_text.h"

namespace rrfp::trace {

namespace {

/// A text within JSON within a script element: none of the characters by which HTML could see
/// anything but script is left.
std::string quoted(const std::string& text) {
  using Json = nlohmann::json;
  std::string out;
  for (const char c : Json(text).dump(-1, ' ', true, Json::error_handler_t::replace)) {
    switch (c) {
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      case '&': out += "\\u0026"; break;
      default: out += c;
    }
  }
  return out;
}

/// Appends rows of numbers to a flat array.
class Rows {
 public:
  explicit Rows(std::string& out) : out_(out) {}
  void add(std::initializer_list<int64_t> numbers) {
    for (const int64_t number : numbers) {
      out_ += separator_ + std::to_string(number);
      separator_ = ",";
    }
  }

 private:
  std::string& out_;
  const char* separator_ = "";
};

template <class Span>
std::vector<Span> in_order(std::vector<Span> spans) {
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; });
  return spans;
}

/// The script reads the columns by the same order (data.js).
void append_rank(const RankSpans& rank, const RankTotals& totals, int64_t origin_ns,
                 std::string& out) {
  int64_t before_ns = origin_ns;
  out += "\n{\"tasks\":[";
  Rows tasks(out);
  for (const TaskSpan& span : in_order(rank.tasks)) {
    const int64_t wait_ns = span.ready_ns == kUnknownTime
                                ? int64_t{-1}
                                : std::max<int64_t>(0, span.begin_ns - span.ready_ns);
    tasks.add({static_cast<int64_t>(span.kind), span.stage.value, span.microbatch.value, span.step,
               wait_ns, span.begin_ns - before_ns, span.end_ns - span.begin_ns});
    before_ns = span.begin_ns;
  }
  before_ns = origin_ns;
  out += "],\n\"idles\":[";
  Rows idles(out);
  for (const IdleSpan& span : in_order(rank.idles)) {
    idles.add({static_cast<int64_t>(span.reason), span.step, span.begin_ns - before_ns,
               span.end_ns - span.begin_ns});
    before_ns = span.begin_ns;
  }
  out += "],\n\"messages\":[";
  Rows messages(out);
  for (const Message& m : rank.messages) {
    // One from before the timeline begins shows as if it had been sent then.
    const int64_t sent_ns =
        m.sent_ns == kUnknownTime ? int64_t{-1} : std::max<int64_t>(0, m.sent_ns - origin_ns);
    messages.add({static_cast<int64_t>(m.direction), m.from_stage.value, m.to_stage.value,
                  m.microbatch.value, m.from_rank.value, m.step, sent_ns,
                  std::max<int64_t>(0, m.arrived_ns - origin_ns)});
  }
  out += "],\n\"totals\":[";
  Rows sums(out);
  for (const int64_t ns : totals.task_ns) sums.add({ns});
  for (const int64_t ns : totals.idle_ns) sums.add({ns});
  sums.add({totals.engine_ns});
  out += "]}";
}

/// Of a timeline with branches to tell apart: what stages and branches are called and took.
void append_branches(const Timeline& timeline, const Totals& totals, std::string& out) {
  const auto append_totals = [&out](const TaskTotals& sums) {
    Rows row(out);
    row.add({static_cast<int64_t>(sums.tasks)});
    for (const int64_t ns : sums.task_ns) row.add({ns});
  };
  out += ",\"stages\":[";
  for (size_t s = 0; totals.branched() && s < totals.stages.size(); ++s) {
    out += (s == 0 ? "\n[" : ",\n[") + quoted(timeline.stages[s].name) + "," +
           std::to_string(totals.stages[s].branch) + ",";
    append_totals(totals.stages[s]);
    out += "]";
  }
  out += "],\"branches\":[";
  for (size_t b = 0; totals.branched() && b < totals.branches.size(); ++b) {
    const BranchTotals& branch = totals.branches[b];
    out += (b == 0 ? "\n[" : ",\n[") + quoted(branch.name) + "," +
           quoted(std::string(1, letter_of(static_cast<int32_t>(b)))) + "," +
           decimal(branch.share, 6) + ",";
    append_totals(branch);
    out += "]";
  }
  out += "]";
}

std::string data_of(const Timeline& timeline) {
  const Totals totals = summarize(timeline);
  std::string out = "{\"source\":" + quoted(timeline.source) + ",\"facts\":[";
  const char* separator = "";
  for (const auto& [name, value] : timeline.facts) {
    out += separator + ("[" + quoted(name)) + "," + quoted(value) + "]";
    separator = ",";
  }
  out += "],\"kinds\":[";
  for (size_t k = 0; k < kSpanKinds; ++k) {
    out += (k == 0 ? "" : ",") + quoted(name_of(static_cast<SpanKind>(k)));
  }
  out += "],\"reasons\":[";
  for (size_t k = 0; k < kIdleKinds; ++k) {
    const auto kind = static_cast<IdleKind>(k);
    out += (k == 0 ? "[" : ",[") + quoted(name_of(kind)) + "," + quoted(text_of(kind)) + "]";
  }
  out += "],\"engine\":" + quoted(kEngineText) +
         ",\"makespan\":" + std::to_string(totals.makespan_ns()) +
         ",\"idleShare\":" + decimal(totals.idle_share, 6);
  append_branches(timeline, totals, out);
  out += ",\"ranks\":[";
  for (size_t r = 0; r < timeline.ranks.size(); ++r) {
    if (r > 0) out += ",";
    append_rank(timeline.ranks[r], totals.ranks[r], totals.begin_ns, out);
  }
  return out + "]}";
}

}  // namespace

std::string to_html(const Timeline& timeline) {
  const std::string title = timeline.title.empty() ? "Timeline" : escaped(timeline.title);
  const std::string data = data_of(timeline);
  const std::pair<std::string_view, std::string_view> parts[] = {
      {"@TITLE@", title}, {"@STYLE@", kPageStyle}, {"@DATA@", data}, {"@SCRIPT@", kPageScript}};
  std::string out;
  // What has been put in is not looked at again: it may have such marks itself.
  std::string_view rest = kPageTemplate;
  while (!rest.empty()) {
    size_t at = rest.size();
    std::string_view mark;
    std::string_view text;
    for (const auto& [name, value] : parts) {
      if (const size_t found = rest.find(name); found < at) {
        at = found;
        mark = name;
        text = value;
      }
    }
    out.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + mark.size());
  }
  return out;
}

}  // namespace rrfp::trace
