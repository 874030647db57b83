// SPDX-License-Identifier: Apache-2.0
#include "engine/trace/trace_events.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace rrfp::trace {

namespace {

using Json = nlohmann::json;

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Writes whole nanoseconds as microseconds.
std::string in_us(int64_t ns) {
  char text[48];
  std::snprintf(text, sizeof text, "%s%lld.%03lld", ns < 0 ? "-" : "",
                static_cast<long long>(std::abs(ns) / 1000),
                static_cast<long long>(std::abs(ns) % 1000));
  return text;
}

class Writer {
 public:
  explicit Writer(const Timeline& timeline) : timeline_(timeline) {
    find_origin();
    quote_branches();
  }

  std::string write() {
    append_head();
    for (size_t r = 0; r < timeline_.ranks.size(); ++r) append_rank(r);
    index_tasks();
    for (const RankSpans& rank : timeline_.ranks) {
      for (const Message& message : rank.messages) append_message(message);
    }
    return std::move(out_) + "\n]}\n";
  }

 private:
  /// A task, as an end of an arrow.
  struct Interval {
    size_t rank = 0;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
  };
  using TaskKey = std::tuple<int64_t, int32_t, int32_t, core::Direction>;  // step, stage, ...

  void find_origin() {
    constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
    origin_ns_ = kNone;
    const auto see = [&](int64_t ns) { origin_ns_ = std::min(origin_ns_, ns); };
    const auto see_known = [&](int64_t ns) {
      if (ns != kUnknownTime) see(ns);
    };
    for (const RankSpans& rank : timeline_.ranks) {
      for (const TaskSpan& span : rank.tasks) {
        see(span.begin_ns);
        see_known(span.ready_ns);
      }
      for (const IdleSpan& span : rank.idles) see(span.begin_ns);
      for (const Message& message : rank.messages) {
        see(message.arrived_ns);
        see_known(message.sent_ns);
      }
    }
    if (origin_ns_ == kNone) origin_ns_ = 0;
  }

  /// Only where there are several.
  void quote_branches() {
    const std::vector<StageName>& stages = timeline_.stages;
    const auto other = [&](const StageName& s) { return s.branch != stages.front().branch; };
    if (std::none_of(stages.begin(), stages.end(), other)) return;
    for (const StageName& stage : stages) {
      branches_.push_back(stage.branch.empty() ? std::string() : quoted(stage.branch));
    }
  }

  void append_head() {
    out_ = R"({"displayTimeUnit":"ms","otherData":{"format":"rrfp-trace","version":1,"title":)" +
           quoted(timeline_.title) + ",\"source\":" + quoted(timeline_.source) +
           ",\"ranks\":" + std::to_string(timeline_.ranks.size()) + ",\"facts\":[";
    const char* separator = "";
    for (const auto& [name, value] : timeline_.facts) {
      out_ += separator + ("[" + quoted(name)) + "," + quoted(value) + "]";
      separator = ",";
    }
    out_ += "]";
    if (!timeline_.stages.empty()) append_stages();
    out_ += "},\"traceEvents\":[\n";
    const std::string process = timeline_.title.empty() ? "rrfp" : "rrfp: " + timeline_.title;
    out_ += R"({"ph":"M","pid":0,"name":"process_name","args":{"name":)" + quoted(process) + "}}";
  }

  void append_stages() {
    const char* separator = ",\"stages\":[";
    for (const StageName& stage : timeline_.stages) {
      out_ += separator + ("[" + quoted(stage.name)) + "," + quoted(stage.branch) + "]";
      separator = ",";
    }
    out_ += "]";
  }

  void append_rank(size_t r) {
    const std::string tid = std::to_string(r);
    out_ += ",\n{\"ph\":\"M\",\"pid\":0,\"tid\":" + tid +
            R"(,"name":"thread_name","args":{"name":"rank )" + tid + "\"}}";
    out_ += ",\n{\"ph\":\"M\",\"pid\":0,\"tid\":" + tid +
            R"(,"name":"thread_sort_index","args":{"sort_index":)" + tid + "}}";
    for (const TaskSpan& span : timeline_.ranks[r].tasks) append_task(span, tid);
    for (const IdleSpan& span : timeline_.ranks[r].idles) append_idle(span, tid);
  }

  void append_complete(const std::string& tid, const std::string& name, const char* category,
                       int64_t begin_ns, int64_t end_ns) {
    out_ += ",\n{\"ph\":\"X\",\"pid\":0,\"tid\":" + tid + ",\"name\":\"" + name + "\",\"cat\":\"" +
            category + "\",\"ts\":" + in_us(begin_ns - origin_ns_) +
            ",\"dur\":" + in_us(end_ns - begin_ns);
  }

  void append_task(const TaskSpan& span, const std::string& tid) {
    append_complete(tid, task_name(span), name_of(span.kind), span.begin_ns, span.end_ns);
    out_ += ",\"args\":{\"step\":" + std::to_string(span.step);
    if (span.stage.valid()) out_ += ",\"stage\":" + std::to_string(span.stage.value);
    if (span.stage.valid() && span.stage.index() < branches_.size() &&
        !branches_[span.stage.index()].empty()) {
      out_ += ",\"branch\":" + branches_[span.stage.index()];
    }
    if (span.microbatch.valid()) out_ += ",\"microbatch\":" + std::to_string(span.microbatch.value);
    if (span.ready_ns != kUnknownTime) out_ += ",\"ready_us\":" + in_us(span.ready_ns - origin_ns_);
    out_ += "}}";
  }

  /// The colours are names that chrome://tracing knows.
  void append_idle(const IdleSpan& span, const std::string& tid) {
    append_complete(tid, text_of(span.reason), "idle", span.begin_ns, span.end_ns);
    const bool held = span.reason == IdleKind::kMemory || span.reason == IdleKind::kCredit ||
                      span.reason == IdleKind::kPolicy;
    out_ += std::string(",\"cname\":\"") + (held ? "grey" : "white") +
            "\",\"args\":{\"step\":" + std::to_string(span.step) + ",\"reason\":\"" +
            name_of(span.reason) + "\"}}";
  }

  /// Which task sends and which takes a message: a forward the activations, and what makes the
  /// gradient of the input, alone or with the weights', the gradients.
  void index_tasks() {
    for (size_t r = 0; r < timeline_.ranks.size(); ++r) {
      for (const TaskSpan& span : timeline_.ranks[r].tasks) {
        if (span.kind == SpanKind::kUpdate || span.kind == SpanKind::kWeightGradient) continue;
        const core::Direction direction = span.kind == SpanKind::kForward
                                              ? core::Direction::kForward
                                              : core::Direction::kBackward;
        tasks_[{span.step, span.stage.value, span.microbatch.value, direction}] = {r, span.begin_ns,
                                                                                   span.end_ns};
      }
    }
  }

  [[nodiscard]] const Interval* task_of(const Message& message, core::StageId stage) const {
    const auto at =
        tasks_.find({message.step, stage.value, message.microbatch.value, message.direction});
    return at == tasks_.end() ? nullptr : &at->second;
  }

  void append_message(const Message& message) {
    const bool forward = message.direction == core::Direction::kForward;
    const Interval* const from = task_of(message, message.from_stage);
    const Interval* const to = task_of(message, message.to_stage);
    int64_t out_ns = message.sent_ns != kUnknownTime ? message.sent_ns : message.arrived_ns;
    if (from != nullptr) out_ns = from->begin_ns + (from->end_ns - from->begin_ns) / 2;
    int64_t in_ns = message.arrived_ns;
    if (to != nullptr) in_ns = to->begin_ns;
    const std::string id = std::to_string(++flows_);
    const auto append = [&](const char* ph, core::RankId rank, int64_t ns) {
      out_ += std::string(",\n{\"ph\":\"") + ph +
              "\",\"pid\":0,\"tid\":" + std::to_string(rank.value) + ",\"name\":\"" +
              (forward ? "activation" : "gradient") + R"(","cat":"message","id":)" + id +
              ",\"ts\":" + in_us(ns - origin_ns_);
    };
    const auto add = [&](const char* name, int64_t value) {
      out_ += std::string(",\"") + name + "\":" + std::to_string(value);
    };
    append("s", message.from_rank, out_ns);
    out_ += ",\"args\":{\"step\":" + std::to_string(message.step);
    if (message.from_stage.valid()) add("from_stage", message.from_stage.value);
    if (message.to_stage.valid()) add("to_stage", message.to_stage.value);
    if (message.microbatch.valid()) add("microbatch", message.microbatch.value);
    add("to_rank", message.to_rank.value);
    if (message.sent_ns != kUnknownTime) {
      out_ += ",\"sent_us\":" + in_us(message.sent_ns - origin_ns_);
    }
    out_ += ",\"arrived_us\":" + in_us(message.arrived_ns - origin_ns_) + "}}";
    append("f", message.to_rank, in_ns);
    out_ += ",\"bp\":\"e\"}";
  }

  const Timeline& timeline_;
  int64_t origin_ns_ = 0;
  std::map<TaskKey, Interval> tasks_;
  int64_t flows_ = 0;
  std::vector<std::string> branches_;  // by stage, quoted
  std::string out_;
};

}  // namespace

std::string to_trace_events(const Timeline& timeline) {
  return Writer(timeline).write();
}

}  // namespace rrfp::trace
