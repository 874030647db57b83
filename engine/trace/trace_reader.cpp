// SPDX-License-Identifier: Apache-2.0
//
// The reader of trace event files. An event is taken in and forgotten as soon as the parser has
// seen its end, so that a large file costs little more than what it says.
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/trace/trace_events.h"

namespace rrfp::trace {

using core::Code;
using core::Status;

namespace {

using Json = nlohmann::json;
using ParseEvent = Json::parse_event_t;

constexpr int kDepthMax = 32;
constexpr int64_t kIdMax = INT32_MAX;
constexpr double kNsPerUs = 1000.0;

/// Leaves the parser; caught below.
struct Damage {
  std::string text;
};

/// A text out of the file, fit for an error text: short, and printable ASCII only.
std::string shown(std::string_view text) {
  constexpr size_t kShownMax = 60;
  std::string out = "\"";
  for (const char c : text.substr(0, kShownMax)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > kShownMax ? "...\"" : "\"");
}

std::string shown_value(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  return value.is_string() ? shown(value.get_ref<const std::string&>()) : value.dump();
}

/// The fields of one object; complains about those that are missing or wrong.
class Fields {
 public:
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  [[nodiscard]] const Json* find(const char* name) const {
    const auto at = object_.find(name);
    return at == object_.end() ? nullptr : &*at;
  }
  [[nodiscard]] std::string text(const char* name) const {
    const Json* const value = find(name);
    return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
  }
  [[nodiscard]] std::string required_text(const char* name) const {
    const Json* const value = find(name);
    if (value == nullptr || !value->is_string()) complain(name, value, "a text");
    const auto& text = value->get_ref<const std::string&>();
    if (text.size() > kTraceTextBytesMax) {
      throw Damage{where_ + name + " has " + std::to_string(text.size()) +
                   " bytes, expected at most " + std::to_string(kTraceTextBytesMax)};
    }
    return text;
  }
  [[nodiscard]] int64_t whole(const char* name, int64_t max) const {
    const Json* const value = find(name);
    if (value == nullptr || !value->is_number_unsigned() ||
        value->get<uint64_t>() > static_cast<uint64_t>(max)) {
      complain(name, value, "a whole number from 0 to " + std::to_string(max));
    }
    return value->get<int64_t>();
  }
  /// An id that may be absent.
  template <class Id>
  [[nodiscard]] Id id(const char* name) const {
    return find(name) == nullptr ? Id() : Id::of(whole(name, kIdMax));
  }
  [[nodiscard]] int64_t time_ns(const char* name) const {
    constexpr auto kMaxUs = static_cast<double>(kTraceTimeMaxNs) / kNsPerUs;
    const Json* const value = find(name);
    if (value == nullptr || !value->is_number() || !(value->get<double>() >= 0) ||
        !(value->get<double>() <= kMaxUs)) {
      complain(name, value, "microseconds from 0 to " + std::to_string(std::llround(kMaxUs)));
    }
    return std::llround(value->get<double>() * kNsPerUs);
  }
  [[nodiscard]] int64_t optional_time_ns(const char* name) const {
    return find(name) == nullptr ? kUnknownTime : time_ns(name);
  }
  [[nodiscard]] Fields inner(const char* name) const {
    const Json* const value = find(name);
    if (value == nullptr || !value->is_object()) complain(name, value, "an object");
    return {*value, where_ + name + "."};
  }
  [[noreturn]] void complain(const char* name, const Json* value,
                             const std::string& expected) const {
    throw Damage{where_ + name + (value == nullptr ? " is missing" : " is " + shown_value(*value)) +
                 ", expected " + expected};
  }

 private:
  const Json& object_;
  std::string where_;
};

class Reader {
 public:
  /// Throws Damage, and what the parser throws.
  Timeline read(std::string_view text) {
    const auto watch = [this](int depth, ParseEvent event, Json& parsed) {
      return see(depth, event, parsed);
    };
    const Json rest = Json::parse(text.begin(), text.end(), watch);
    if (!saw_events_) throw Damage{"has no array \"traceEvents\""};
    if (rest.is_object()) read_head(rest);
    if (!headed_ && !saw_own_event_) throw Damage{"has no event of rrfp"};
    return std::move(timeline_);
  }

 private:
  /// What the parser has just seen; false if it shall not be kept.
  bool see(int depth, ParseEvent event, Json& parsed) {
    if (depth > kDepthMax) {
      throw Damage{"is nested deeper than " + std::to_string(kDepthMax) + " levels"};
    }
    if (depth == 0 && event == ParseEvent::array_start) {
      events_depth_ = 0;
      saw_events_ = true;
    }
    if (depth == 1 && event == ParseEvent::key) return see_name(parsed);
    if (depth == 1 && in_events_ && events_depth_ == 1) {
      if (event == ParseEvent::array_end) in_events_ = false;
      if (event == ParseEvent::object_start || event == ParseEvent::value) {
        throw Damage{"traceEvents is not an array"};
      }
    }
    const bool inside = events_depth_ == 0 || in_events_;
    if (!inside || depth != events_depth_ + 1) return true;
    if (event == ParseEvent::array_start || event == ParseEvent::value) {
      throw Damage{"event " + std::to_string(events_) + " is not an object"};
    }
    if (event != ParseEvent::object_end) return true;
    take(parsed);
    return false;
  }

  bool see_name(const Json& name) {
    in_events_ = name == "traceEvents";
    if (in_events_ && saw_events_) throw Damage{"has the name \"traceEvents\" twice"};
    saw_events_ = saw_events_ || in_events_;
    return in_events_ || name == "otherData";
  }

  void read_head(const Json& rest) {
    const auto at = rest.find("otherData");
    if (at == rest.end() || !at->is_object()) return;
    const Fields fields(*at, "otherData.");
    if (fields.text("format") != "rrfp-trace") return;  // another tool's
    headed_ = true;
    if (const int64_t version = fields.whole("version", kIdMax); version != 1) {
      throw Damage{"the version of the trace is " + std::to_string(version) + ", expected 1"};
    }
    timeline_.title = fields.required_text("title");
    timeline_.source = fields.required_text("source");
    const auto ranks = static_cast<size_t>(fields.whole("ranks", kTraceRanksMax));
    if (timeline_.ranks.size() > ranks) {
      throw Damage{"otherData.ranks is " + std::to_string(ranks) +
                   ", but there are events of rank " + std::to_string(timeline_.ranks.size() - 1)};
    }
    timeline_.ranks.resize(ranks);
    read_pairs(fields, "facts", kTraceFactsMax, kTraceTextBytesMax,
               [&](std::string name, std::string value) {
                 timeline_.facts.emplace_back(std::move(name), std::move(value));
               });
    read_pairs(fields, "stages", kTraceStagesMax, kTraceNameBytesMax,
               [&](std::string name, std::string branch) {
                 timeline_.stages.push_back({std::move(name), std::move(branch)});
               });
  }

  /// A list of pairs of texts, which may be absent.
  template <class Add>
  static void read_pairs(const Fields& fields, const char* name, size_t pairs_max,
                         size_t text_bytes_max, Add add) {
    const Json* const pairs = fields.find(name);
    if (pairs == nullptr) return;
    if (!pairs->is_array() || pairs->size() > pairs_max) {
      fields.complain(name, pairs, "at most " + std::to_string(pairs_max) + " pairs");
    }
    const auto fits = [text_bytes_max](const Json& part) {
      return part.is_string() && part.get_ref<const std::string&>().size() <= text_bytes_max;
    };
    for (const Json& pair : *pairs) {
      if (!pair.is_array() || pair.size() != 2 || !fits(pair[0]) || !fits(pair[1])) {
        throw Damage{std::string("otherData.") + name + " has " + shown_value(pair) +
                     ", expected pairs of texts of at most " + std::to_string(text_bytes_max) +
                     " bytes"};
      }
      add(pair[0].get<std::string>(), pair[1].get<std::string>());
    }
  }

  void take(const Json& event) {
    if (events_ >= kTraceEventsMax) {
      throw Damage{"has more than " + std::to_string(kTraceEventsMax) + " events"};
    }
    const std::string where = "event " + std::to_string(events_++);
    const Fields plain(event, where + ": ");
    const std::string phase = plain.text("ph");
    const std::string category = plain.text("cat");
    const std::string name = plain.text("name");
    const Fields fields(event, where + (name.empty() ? ": " : " (" + shown(name) + "): "));
    if (phase == "s" && category == "message") take_message(fields);
    if (phase != "X") return;
    if (category == "idle") take_idle(fields);
    for (size_t k = 0; k < kSpanKinds; ++k) {
      const auto kind = static_cast<SpanKind>(k);
      if (category == name_of(kind)) take_task(kind, fields);
    }
  }

  RankSpans& rank(int64_t number) {
    saw_own_event_ = true;
    const auto r = static_cast<size_t>(number);
    if (timeline_.ranks.size() <= r) timeline_.ranks.resize(r + 1);
    return timeline_.ranks[r];
  }

  int64_t duration_ns(const Fields& fields) {
    const int64_t duration = fields.time_ns("dur");
    total_ns_ += duration;
    if (total_ns_ > kTraceTotalMaxNs) {
      fields.complain("dur", fields.find("dur"), "all durations together to be less than 36 years");
    }
    return duration;
  }

  void take_task(SpanKind kind, const Fields& fields) {
    const Fields args = fields.inner("args");
    TaskSpan span;
    span.kind = kind;
    if (kind == SpanKind::kUpdate) {
      span.stage = args.id<core::StageId>("stage");
      span.microbatch = args.id<core::MicrobatchId>("microbatch");
    } else {
      span.stage = core::StageId::of(args.whole("stage", kIdMax));
      span.microbatch = core::MicrobatchId::of(args.whole("microbatch", kIdMax));
    }
    span.step = args.whole("step", INT64_MAX);
    span.ready_ns = args.optional_time_ns("ready_us");
    span.begin_ns = fields.time_ns("ts");
    span.end_ns = span.begin_ns + duration_ns(fields);
    rank(fields.whole("tid", kTraceRanksMax - 1)).tasks.push_back(span);
  }

  void take_idle(const Fields& fields) {
    const Fields args = fields.inner("args");
    const std::string reason = args.required_text("reason");
    IdleSpan span;
    std::string known;
    bool found = false;
    for (size_t k = 0; k < kIdleKinds; ++k) {
      const auto kind = static_cast<IdleKind>(k);
      if (reason == name_of(kind)) {
        span.reason = kind;
        found = true;
      }
      known += (k == 0 ? "one of " : ", ") + std::string(name_of(kind));
    }
    if (!found) args.complain("reason", args.find("reason"), known);
    span.step = args.whole("step", INT64_MAX);
    span.begin_ns = fields.time_ns("ts");
    span.end_ns = span.begin_ns + duration_ns(fields);
    rank(fields.whole("tid", kTraceRanksMax - 1)).idles.push_back(span);
  }

  void take_message(const Fields& fields) {
    const Fields args = fields.inner("args");
    Message message;
    const std::string name = fields.required_text("name");
    if (name != "activation" && name != "gradient") {
      fields.complain("name", fields.find("name"), "\"activation\" or \"gradient\"");
    }
    message.direction =
        name == "activation" ? core::Direction::kForward : core::Direction::kBackward;
    message.from_stage = args.id<core::StageId>("from_stage");
    message.to_stage = args.id<core::StageId>("to_stage");
    message.microbatch = args.id<core::MicrobatchId>("microbatch");
    const int64_t from = fields.whole("tid", kTraceRanksMax - 1);
    const int64_t to = args.whole("to_rank", kTraceRanksMax - 1);
    message.from_rank = core::RankId::of(from);
    message.to_rank = core::RankId::of(to);
    message.step = args.whole("step", INT64_MAX);
    message.sent_ns = args.optional_time_ns("sent_us");
    message.arrived_ns = args.time_ns("arrived_us");
    (void)rank(from);
    rank(to).messages.push_back(message);
  }

  Timeline timeline_;
  int64_t total_ns_ = 0;  // of all spans
  size_t events_ = 0;
  int events_depth_ = 1;  // of the array: 0 if the file is nothing but the array
  bool in_events_ = false;
  bool saw_events_ = false;
  bool saw_own_event_ = false;
  bool headed_ = false;
};

}  // namespace

Status parse_trace_events(const std::string& path, std::string_view text, Timeline& out) {
  const auto wrong = [&](const std::string& what) {
    return Status(Code::kBadData, "\"" + path + "\": not a trace of rrfp: " + what);
  };
  if (text.size() > kTraceBytesMax) {
    return wrong("the file has " + std::to_string(text.size()) + " bytes, expected at most " +
                 std::to_string(kTraceBytesMax));
  }
  try {
    out = Reader().read(text);
  } catch (const Damage& damage) {
    return wrong(damage.text);
  } catch (const Json::parse_error& error) {
    return wrong("the file is not JSON in UTF-8 at byte " + std::to_string(error.byte));
  } catch (const Json::out_of_range&) {
    return wrong("the file has a number that no double can hold");
  }
  return {};
}

}  // namespace rrfp::trace
