// SPDX-License-Identifier: Apache-2.0
#include "engine/trace/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

#include "engine/trace/markup.h"

namespace rrfp::trace {

namespace {

constexpr double kLeft = 66;   // names of the ranks
constexpr double kRight = 76;  // their idle shares
constexpr double kMargin = 16;
constexpr double kLineHeight = 20;
constexpr double kNarrow = 1.5;  // spans of less pixels are merged

// Colours that stay apart for those who see fewer, also by their lightness. Every second stage of a
// rank has the lighter one.
struct Look {
  const char* name;
  const char* fill;
  const char* lighter;
  bool dark;  // white numbers can be read on `fill`; on `lighter` they cannot
};
constexpr Look kTaskLooks[kSpanKinds] = {{"forward", "#2f6fc4", "#7ba7e0", true},
                                         {"backward", "#14866d", "#63b8a3", true},
                                         {"input gradient", "#e08b27", "#f0b976", false},
                                         {"weight gradient", "#8d6bc9", "#bda7e4", true},
                                         {"update", "#4b5563", "#4b5563", true}};
constexpr size_t kLooks = 2 * kSpanKinds + kIdleKinds;
// Under its tasks, a branch has a stripe. These differ in lightness first, so that four branches
// can be told apart without colours; where there is room, a letter does it for all.
struct Stripe {
  const char* fill;
  bool dark;
};
constexpr Stripe kStripes[] = {{"#111827", true},  {"#f5c518", false}, {"#c2185b", true},
                               {"#5ec8e5", false}, {"#7a4a12", true},  {"#b9e07a", false}};
constexpr size_t kStripeCount = std::size(kStripes);
constexpr double kStripeGap = 1;
constexpr double kLetter = 9;  // pixels of a stripe in which a letter has room
constexpr const char* kIdleFills[kIdleKinds] = {"#e3e6ea",      "url(#memory)", "url(#credit)",
                                                "url(#policy)", "url(#group)",  "#f3f4f6"};
constexpr size_t kFills = kLooks + kStripeCount;
constexpr size_t kNoLook = kFills;

constexpr const char* kPatterns = R"svg(<defs>
<pattern id="memory" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#f8dfe0"/><rect width="2.5" height="6" fill="#dd9a9e"/></pattern>
<pattern id="credit" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect width="6" height="6" fill="#f7edcf"/><rect width="2.5" height="6" fill="#d6b659"/></pattern>
<pattern id="policy" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" fill="#ece4f5"/><rect width="5" height="2" fill="#b9a3d6"/></pattern>
<pattern id="group" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" fill="#e4eef2"/><circle cx="2.5" cy="2.5" r="1.2" fill="#7fa5b4"/></pattern>
</defs>
)svg";

std::string fill_of(size_t look) {
  if (look < kSpanKinds) return kTaskLooks[look].fill;
  if (look < 2 * kSpanKinds) return kTaskLooks[look - kSpanKinds].lighter;
  if (look < kLooks) return kIdleFills[look - 2 * kSpanKinds];
  return kStripes[look - kLooks].fill;
}

/// Without a fraction that is zero; a tenth of a pixel is fine enough.
std::string px(double value) {
  std::string text = decimal(value, 1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

/// Of text of size 12, about: no font is at hand here.
double text_width(const std::string& text) {
  constexpr std::string_view kSlim = " .,:;!|'()[]fijlrtI1";
  double sum = 0;
  for (const char c : text) {
    if (kSlim.find(c) != std::string_view::npos) {
      sum += 4.6;
    } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {  // but for bytes that go on
      sum += c == 'm' || c == 'w' || c == '%' || c == 'M' || c == 'W' ? 11 : 7.5;
    }
  }
  return sum;
}

/// At most so many bytes; whole characters.
std::string shortened(const std::string& text, size_t bytes_max) {
  std::string clean = clean_utf8(text);
  if (clean.size() <= bytes_max) return clean;
  while (bytes_max > 0 && (static_cast<unsigned char>(clean[bytes_max]) & 0xC0) == 0x80)
    --bytes_max;
  return clean.substr(0, bytes_max) + "...";
}

/// 1, 2 or 5 times a power of ten, about a tenth of the whole.
double tick_step(double whole, double count) {
  const double rough = whole / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) return factor * power;
  }
  return 10 * power;
}

double lane_height(size_t ranks) {
  if (ranks <= 8) return 38;
  if (ranks <= 16) return 28;
  if (ranks <= 32) return 20;
  return ranks <= 64 ? 14 : 9;
}

class Drawing {
 public:
  Drawing(const Timeline& timeline, const SvgOptions& options)
      : timeline_(timeline), totals_(summarize(timeline)) {
    width_ = std::clamp(options.width_px, 400, 8000);
    const double wanted = options.lane_px;
    lane_ = wanted > 0 ? std::clamp(wanted, 4.0, 200.0) : lane_height(timeline.ranks.size());
    gap_ = lane_ >= 20 ? 4 : lane_ >= 14 ? 2 : 1;
    plot_width_ = width_ - kLeft - kRight;
    scale_ = plot_width_ / std::max(1.0, static_cast<double>(totals_.makespan_ns()));
    columns_ = static_cast<size_t>(std::ceil(plot_width_)) + 1;
    if (totals_.branched()) stripe_ = lane_ >= 36 ? kLetter + 2 : std::max(1.5, lane_ * 0.25);
  }

  std::string draw() {
    append_title();
    append_legend();
    if (totals_.branched()) append_branches();
    top_ = y_ + 12;
    append_axis();
    for (size_t r = 0; r < timeline_.ranks.size(); ++r) append_lane(r);
    for (size_t look = 0; look < kFills; ++look) {
      if (paths_[look].empty()) continue;
      body_ += "<path fill=\"" + fill_of(look) + "\" d=\"" + paths_[look] + "\"/>\n";
    }
    if (!letters_.empty()) body_ += "<g class=\"b\">\n" + letters_ + "</g>\n";
    if (!numbers_.empty()) body_ += "<g class=\"n\">\n" + numbers_ + "</g>\n";
    return head() + body_ + "</svg>\n";
  }

 private:
  /// A part of a lane that spans are drawn into, and its narrow spans: by column and look, in
  /// pixels of the column.
  struct Band {
    double y = 0;
    double task_px = 0;  // height of tasks; idle time is as high as the lane
    std::vector<float> covered;
  };

  [[nodiscard]] double bottom() const {
    return top_ + static_cast<double>(timeline_.ranks.size()) * (lane_ + gap_);
  }

  [[nodiscard]] std::string summary() const {
    return "makespan " + duration(totals_.makespan_ns()) + ", idle share " +
           decimal(totals_.idle_share * 100, 1) + " %";
  }

  [[nodiscard]] std::string title() const {
    return timeline_.title.empty()
               ? "Timeline"
               : escaped(shortened(timeline_.title, static_cast<size_t>(width_ / 11)));
  }

  [[nodiscard]] std::string head() const {
    const std::string size = px(width_) + " " + px(bottom() + 46);
    return R"(<svg xmlns="http://www.w3.org/2000/svg" width=")" + px(width_) + "\" height=\"" +
           px(bottom() + 46) + "\" viewBox=\"0 0 " + size +
           "\" role=\"img\" font-family=\"system-ui,'Segoe UI',Helvetica,Arial,sans-serif\" "
           "font-size=\"12\" fill=\"#1f2937\">\n<title>" +
           title() + ": " + summary() +
           "</title>\n<style>.m{fill:#6b7280}.e{text-anchor:end}.c{text-anchor:middle}"
           ".n{fill:#fff;text-anchor:middle;font-size:" +
           px(number_size()) + "px}.d{fill:#10151c}" +
           (letters_.empty() ? std::string()
                             : ".b{fill:#fff;text-anchor:middle;font-weight:700;font-size:" +
                                   px(kLetter) + "px}") +
           "</style>\n" + kPatterns + "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  }

  void append_text(double x, double y, const std::string& attributes, const std::string& text) {
    body_ +=
        "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\"" + attributes + ">" + text + "</text>\n";
  }

  void append_title() {
    constexpr double kTitleChar = 10;
    constexpr double kSummary = 330;  // pixels
    y_ = 28;
    append_text(kMargin, y_, " font-size=\"17\" font-weight=\"600\"", title());
    if (kTitleChar * static_cast<double>(timeline_.title.size()) > width_ - kSummary) {
      y_ += kLineHeight + 2;
    }
    append_text(width_ - kMargin, y_, " class=\"e\" font-size=\"14\"", summary());
    std::vector<std::string> facts;
    if (!timeline_.source.empty()) facts.push_back(timeline_.source);
    for (const auto& [name, value] : timeline_.facts) {
      facts.push_back(name);
      facts.back().append(" ").append(value);
    }
    if (facts.empty()) return;
    x_ = kMargin;
    y_ += kLineHeight;
    for (const std::string& fact : facts) {
      const std::string text = shortened(fact, static_cast<size_t>(width_ / 8));
      make_room(text_width(text));
      append_text(x_, y_, " class=\"m\"", escaped(text));
      x_ += text_width(text) + 16;
    }
  }

  /// Begins a new line if it would go over the right margin.
  void make_room(double wide) {
    if (x_ + wide <= width_ - kMargin || x_ == kMargin) return;
    x_ = kMargin;
    y_ += kLineHeight;
  }

  /// What there is in the picture, with its share of the time of all ranks.
  void append_legend() {
    std::array<double, kSpanKinds> tasks{};
    std::array<double, kIdleKinds> idles{};
    double engine = 0;
    for (const RankTotals& rank : totals_.ranks) {
      for (size_t k = 0; k < kSpanKinds; ++k) tasks[k] += static_cast<double>(rank.task_ns[k]);
      for (size_t k = 0; k < kIdleKinds; ++k) idles[k] += static_cast<double>(rank.idle_ns[k]);
      engine += static_cast<double>(rank.engine_ns);
    }
    x_ = kMargin;
    y_ += 12;
    for (size_t k = 0; k < kSpanKinds; ++k) {
      append_legend_entry(kTaskLooks[k].name, kTaskLooks[k].fill, tasks[k]);
    }
    for (size_t k = 0; k < kIdleKinds; ++k) {
      append_legend_entry(text_of(static_cast<IdleKind>(k)), kIdleFills[k], idles[k]);
    }
    append_legend_entry(kEngineText, "#fff", engine);
    y_ += kLineHeight;
  }

  void append_legend_entry(const std::string& name, const std::string& fill, double ns) {
    if (ns <= 0) return;
    const double all =
        static_cast<double>(totals_.makespan_ns()) * static_cast<double>(timeline_.ranks.size());
    const std::string text = name + " " + decimal(ns / all * 100, 1) + " %";
    const double wide = 18 + text_width(text);
    make_room(wide);
    body_ += "<rect x=\"" + px(x_) + "\" y=\"" + px(y_) +
             "\" width=\"13\" height=\"13\" rx=\"2\" stroke=\"#9ca3af\" stroke-width=\".5\" "
             "fill=\"" +
             fill + "\"/>";
    append_text(x_ + 18, y_ + 11, "", text);
    x_ += wide + 16;
  }

  /// With their shares of what was computed.
  void append_branches() {
    constexpr size_t kNameBytesMax = 60;
    x_ = kMargin;
    for (size_t b = 0; b < totals_.branches.size(); ++b) {
      const BranchTotals& branch = totals_.branches[b];
      const bool last = b + 1 == kBranchLetters;
      const size_t more = totals_.branches.size() - b;
      const std::string text = last && more > 1
                                   ? std::to_string(more) + " more branches"
                                   : shortened(branch.name, kNameBytesMax) + " " +
                                         decimal(branch.share * 100, 1) + " % of computing";
      append_swatch(static_cast<int32_t>(b), text);
      if (last) break;
    }
    y_ += kLineHeight;
  }

  void append_swatch(int32_t branch, const std::string& text) {
    const double wide = 18 + text_width(text);
    const Stripe& stripe = stripe_of(branch);
    make_room(wide);
    body_ += "<rect x=\"" + px(x_) + "\" y=\"" + px(y_) +
             "\" width=\"13\" height=\"13\" rx=\"2\" fill=\"" + stripe.fill + "\"/>";
    append_text(x_ + 6.5, y_ + 10,
                std::string(" class=\"c\" font-size=\"10\" font-weight=\"700\"") +
                    (stripe.dark ? " fill=\"#fff\"" : ""),
                std::string(1, letter_of(branch)));
    append_text(x_ + 18, y_ + 11, "", escaped(text));
    x_ += wide + 16;
  }

  static const Stripe& stripe_of(int32_t branch) {
    return kStripes[static_cast<size_t>(branch) % kStripeCount];
  }

  void append_axis() {
    const double whole_ms = static_cast<double>(totals_.makespan_ns()) / 1e6;
    const double end = bottom();
    if (whole_ms > 0) {
      const double step = tick_step(whole_ms, std::max(4.0, plot_width_ / 120));
      const int decimals = static_cast<int>(std::max(0.0, -std::floor(std::log10(step) + 1e-9)));
      std::string lines;
      for (int64_t k = 0; static_cast<double>(k) * step <= whole_ms * 1.0001; ++k) {
        const double at = static_cast<double>(k) * step;
        const double x = kLeft + at * 1e6 * scale_;
        lines += "M" + px(x) + " " + px(top_) + "V" + px(end + 4);
        append_text(x, end + 18, " class=\"m c\"", decimal(at, decimals));
      }
      body_ += "<path stroke=\"#d9dde3\" fill=\"none\" d=\"" + lines + "\"/>\n";
    }
    append_text(kLeft + plot_width_ / 2, end + 36, " class=\"m c\"", "time, ms");
    append_text(width_ - kRight + 8, top_ - 4, " class=\"m\"", "idle");
  }

  void append_lane(size_t r) {
    const double y = top_ + static_cast<double>(r) * (lane_ + gap_);
    const double size = std::min(12.0, lane_ - 1);
    const std::string font = " font-size=\"" + px(size) + "\"";
    const double baseline = y + lane_ / 2 + size * 0.36;
    append_text(kLeft - 8, baseline, " class=\"e\"" + font, "rank " + std::to_string(r));
    const auto makespan = static_cast<double>(totals_.makespan_ns());
    if (makespan > 0) {
      const double share = 1 - static_cast<double>(totals_.ranks[r].computing_ns) / makespan;
      append_text(width_ - kRight + 8, baseline, font,
                  decimal(std::max(0.0, share) * 100, 1) + " %");
    }
    body_ += "<rect x=\"" + px(kLeft) + "\" y=\"" + px(y) + "\" width=\"" + px(plot_width_) +
             "\" height=\"" + px(lane_) +
             "\" fill=\"#fff\" stroke=\"#e5e7eb\" stroke-width=\".5\"/>\n";
    append_spans(timeline_.ranks[r], y);
  }

  void append_spans(const RankSpans& rank, double y) {
    const double bar = stripe_ > 0 ? lane_ - stripe_ - kStripeGap : lane_;
    Band band = {y, bar, std::vector<float>(columns_ * kFills)};
    Band below = {y + lane_ - stripe_, stripe_, {}};
    if (stripe_ > 0) below.covered.resize(columns_ * kFills);
    std::set<int32_t> stages;
    for (const TaskSpan& span : rank.tasks) stages.insert(span.stage.value);
    stages.erase(-1);
    for (const IdleSpan& span : rank.idles) {
      place(span.begin_ns, span.end_ns, 2 * kSpanKinds + static_cast<size_t>(span.reason), band,
            lane_);
    }
    for (const TaskSpan& span : rank.tasks) {
      const auto chunk = std::distance(stages.begin(), stages.lower_bound(span.stage.value));
      const size_t shade = span.stage.valid() && chunk % 2 == 1 ? kSpanKinds : 0;
      place(span.begin_ns, span.end_ns, static_cast<size_t>(span.kind) + shade, band,
            totals_.branch_of(span.stage) == kNoBranch ? lane_ : bar);
      append_number(span, shade == 0 && kTaskLooks[static_cast<size_t>(span.kind)].dark, band);
      if (stripe_ > 0) append_stripe(span, below);
    }
    append_columns(band);
    if (stripe_ > 0) append_columns(below);
  }

  void append_stripe(const TaskSpan& span, Band& band) {
    const int32_t branch = totals_.branch_of(span.stage);
    if (branch == kNoBranch) return;
    place(span.begin_ns, span.end_ns, kLooks + static_cast<size_t>(branch) % kStripeCount, band,
          stripe_);
    const double begin = x_of(span.begin_ns);
    const double end = x_of(span.end_ns);
    if (stripe_ < kLetter || end - begin < kLetter + 2) return;
    letters_ += (stripe_of(branch).dark ? "<text x=\"" : "<text class=\"d\" x=\"") +
                px((begin + end) / 2) + "\" y=\"" + px(band.y + stripe_ / 2 + kLetter * 0.36) +
                "\">" + letter_of(branch) + "</text>\n";
  }

  [[nodiscard]] double x_of(int64_t ns) const {
    return kLeft + static_cast<double>(ns - totals_.begin_ns) * scale_;
  }

  /// Draws it, or if it is too narrow, keeps how much of which columns it covers.
  void place(int64_t begin_ns, int64_t end_ns, size_t look, Band& band, double height) {
    const double begin = x_of(begin_ns);
    const double end = x_of(end_ns);
    if (end - begin >= kNarrow) {
      // A thin gap tells two spans of the same colour apart.
      append_rect(begin, end - (is_task(look) && end - begin > 4 ? 0.6 : 0), look, band.y, height);
      return;
    }
    const auto first = static_cast<size_t>(std::max(0.0, begin - kLeft));
    for (size_t c = first; c < columns_ && kLeft + static_cast<double>(c) < end; ++c) {
      const double left = kLeft + static_cast<double>(c);
      const double part = std::min(end, left + 1) - std::max(begin, left);
      band.covered[c * kFills + look] += static_cast<float>(std::max(0.0, part));
    }
  }

  static bool is_task(size_t look) { return look < 2 * kSpanKinds || look >= kLooks; }

  void append_rect(double begin, double end, size_t look, double y, double height) {
    const std::string wide = px(end - begin);
    paths_[look] +=
        "M" + px(begin) + " " + px(y) + "h" + wide + "v" + px(height) + "h-" + wide + "z";
  }

  /// The narrow ones: of each column what covers most of it, equal neighbours together.
  void append_columns(const Band& band) {
    size_t begin = 0;
    size_t current = kNoLook;
    for (size_t c = 0; c <= columns_; ++c) {
      size_t look = kNoLook;
      if (c < columns_) {
        const float* const parts = &band.covered[c * kFills];
        const float* const most = std::max_element(parts, parts + kFills);
        float sum = 0;
        for (size_t k = 0; k < kFills; ++k) sum += parts[k];
        if (sum >= 0.5F) look = static_cast<size_t>(most - parts);
      }
      if (look == current) continue;
      if (current != kNoLook) {
        append_rect(kLeft + static_cast<double>(begin), kLeft + static_cast<double>(c), current,
                    band.y, is_task(current) ? band.task_px : lane_);
      }
      begin = c;
      current = look;
    }
  }

  [[nodiscard]] double number_size() const { return std::clamp(lane_ - stripe_ - 3, 1.0, 12.0); }

  void append_number(const TaskSpan& span, bool white, const Band& band) {
    if (!span.microbatch.valid() || band.task_px < 11) return;
    const std::string text = std::to_string(span.microbatch.value);
    const double begin = x_of(span.begin_ns);
    const double end = x_of(span.end_ns);
    if (end - begin < 5 + 7 * static_cast<double>(text.size())) return;
    numbers_ += (white ? "<text x=\"" : "<text class=\"d\" x=\"") + px((begin + end) / 2) +
                "\" y=\"" + px(band.y + band.task_px / 2 + number_size() * 0.36) + "\">" + text +
                "</text>\n";
  }

  const Timeline& timeline_;
  const Totals totals_;
  double width_ = 0;
  double lane_ = 0;
  double gap_ = 0;
  double plot_width_ = 0;
  double scale_ = 0;  // pixels in a nanosecond
  size_t columns_ = 0;
  double x_ = 0;  // where the next text goes
  double y_ = 0;
  double top_ = 0;     // of the first lane
  double stripe_ = 0;  // height; 0 where there are no branches to tell apart
  std::array<std::string, kFills> paths_;
  std::string letters_;
  std::string numbers_;
  std::string body_;
};

}  // namespace

std::string to_svg(const Timeline& timeline, const SvgOptions& options) {
  return Drawing(timeline, options).draw();
}

}  // namespace rrfp::trace
