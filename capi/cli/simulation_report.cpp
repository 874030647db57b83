// SPDX-License-Identifier: Apache-2.0
//
// What rrfp simulate says, for people and for programs.
#include <algorithm>
#include <array>

#include "capi/cli/hints.h"
#include "capi/cli/simulate.h"

namespace rrfp::cli {
namespace {

constexpr double kNsPerMs = 1e6;

struct Wait {
  const char* name;
  int64_t rrfp_simulated_step::*ns;
};
const std::array<Wait, 5> kWaits = {{{"input", &rrfp_simulated_step::wait_input_ns},
                                     {"memory", &rrfp_simulated_step::wait_memory_ns},
                                     {"credit", &rrfp_simulated_step::wait_credit_ns},
                                     {"policy", &rrfp_simulated_step::wait_policy_ns},
                                     {"group", &rrfp_simulated_step::wait_group_ns}}};

/// Of the time of all ranks.
double share(const rrfp_simulated_step& step, int64_t ns) {
  const double whole = static_cast<double>(step.makespan_ns) * step.ranks;
  return whole > 0 ? static_cast<double>(ns) / whole : 0;
}

/// Whether what runs differs from what was asked for.
bool chooses(const SimulateOptions& options) {
  return options.hint == "auto" || options.hint == "rf-d";
}

struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

/// Of one figure over the seeds; nothing if a seed lacks it, or if there is none.
template <class Figure>
std::optional<Spread> spread_of(const std::vector<SeedResult>& results, Figure figure) {
  std::vector<double> values;
  for (const SeedResult& result : results) {
    const std::optional<double> value = figure(result);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  const bool is_odd = values.size() % 2 == 1;
  return Spread{is_odd ? values[half] : (values[half - 1] + values[half]) / 2, values.front(),
                values.back()};
}

struct Spreads {
  std::optional<Spread> makespan_ms;
  std::optional<Spread> ratio_to_bound;
  std::optional<Spread> peak_ratio;
};

Spreads spreads_of(const std::vector<SeedResult>& results) {
  return {spread_of(results, [](const SeedResult& r) { return std::optional(r.makespan_ms()); }),
          spread_of(results, [](const SeedResult& r) { return r.ratio_to_bound(); }),
          spread_of(results, [](const SeedResult& r) { return std::optional(r.peak_ratio()); })};
}

Json to_json(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  return {{"median", spread->median}, {"min", spread->min}, {"max", spread->max}};
}

/// What ran, and in how many seeds, most often first.
std::vector<std::pair<std::string, int64_t>> chosen_counts(const std::vector<SeedResult>& results) {
  std::vector<std::pair<std::string, int64_t>> counts;
  for (const SeedResult& result : results) {
    const std::string name = chosen_hint(result.ran);
    const auto found = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& count) { return count.first == name; });
    if (found == counts.end()) {
      counts.emplace_back(name, 1);
    } else {
      ++found->second;
    }
  }
  std::stable_sort(counts.begin(), counts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return counts;
}

std::string ratio_cell(const std::optional<double>& ratio) {
  return ratio ? format("%8.3f", *ratio) : format("%8s", "-");
}

std::string figures(const std::string& name, double makespan_ms, const std::optional<double>& ratio,
                    double peak) {
  return format("%6s %12.3f", name.c_str(), makespan_ms) + ratio_cell(ratio) +
         format("%8.2f", peak);
}

std::string spread_row(const char* name, const Spreads& spreads, double Spread::*which) {
  const auto& ratio = spreads.ratio_to_bound;
  return figures(name, spreads.makespan_ms.value().*which,
                 ratio ? std::optional(*ratio.*which) : std::nullopt,
                 spreads.peak_ratio.value().*which) +
         "\n";
}

}  // namespace

double SeedResult::makespan_ms() const {
  return static_cast<double>(step.makespan_ns) / kNsPerMs;
}

std::optional<double> SeedResult::ratio_to_bound() const {
  if (step.bound_ns <= 0) return std::nullopt;
  return static_cast<double>(step.makespan_ns) / static_cast<double>(step.bound_ns);
}

double SeedResult::peak_ratio() const {
  if (step.native_bytes <= 0) return 0;
  return static_cast<double>(step.peak_bytes) / static_cast<double>(step.native_bytes);
}

std::string seeds_head(const SimulateOptions& options, const SeedResult& first) {
  const std::string work =
      options.measured.empty() ? options.preset : "measured " + options.measured;
  std::string text = work + format(": %d stages, %d microbatches; hint ", first.step.ranks,
                                   first.step.microbatches);
  text += options.hint;
  if (!chooses(options)) text += ", order " + options.order;
  if (options.order != "ready") {
    text += ", with the memory that it needs\n";
  } else {
    text += options.cap > 0 ? format(", memory %g times that of 1F1B\n", options.cap)
                            : std::string(", no limit of memory\n");
  }
  text += format("%6s %12s%8s%8s%8s", "", "ms", "/ bound", "/ 1F1B", "busy %");
  for (const Wait& wait : kWaits) text += format("%7s", wait.name);
  return text + (chooses(options) ? "  ran\n" : "\n");
}

std::string seed_row(const SimulateOptions& options, const SeedResult& result) {
  std::string text = figures(std::to_string(result.seed), result.makespan_ms(),
                             result.ratio_to_bound(), result.peak_ratio());
  text += format("%8.1f", 100 * share(result.step, result.step.busy_ns));
  for (const Wait& wait : kWaits) {
    text += format("%7.1f", 100 * share(result.step, result.step.*wait.ns));
  }
  return text + (chooses(options) ? "  " + chosen_hint(result.ran) : "") + "\n";
}

std::string seeds_summary(const SimulateOptions& options, const std::vector<SeedResult>& results) {
  if (results.empty()) return "no seed was simulated\n";
  const Spreads spreads = spreads_of(results);
  std::string text = spread_row("median", spreads, &Spread::median) +
                     spread_row("min", spreads, &Spread::min) +
                     spread_row("max", spreads, &Spread::max);
  if (static_cast<int64_t>(results.size()) < options.seeds) {
    text += format("stopped after %zu of %lld seeds\n", results.size(),
                   static_cast<long long>(options.seeds));
  }
  if (!chooses(options)) return text;
  std::string counts;
  for (const auto& [name, count] : chosen_counts(results)) {
    counts += (counts.empty() ? "" : ", ") + name + " in " + std::to_string(count);
  }
  const SeedResult& last = results.back();
  return text + "chosen: " + counts + "\nseed " + std::to_string(last.seed) + ": " + last.ran +
         "\n";
}

Json seed_json(const SeedResult& result) {
  const rrfp_simulated_step& step = result.step;
  Json waits = Json::object();
  for (const Wait& wait : kWaits) waits[wait.name] = share(step, step.*wait.ns);
  const auto ratio = result.ratio_to_bound();
  return {{"seed", result.seed},
          {"makespan_ms", result.makespan_ms()},
          {"ratio_to_bound", ratio ? Json(*ratio) : Json()},
          {"peak_ratio", result.peak_ratio()},
          {"busy_share", share(step, step.busy_ns)},
          {"wait_shares", std::move(waits)},
          {"tasks", step.tasks},
          {"messages", step.messages},
          {"offloads", step.offloads},
          {"ran", chosen_hint(result.ran)},
          {"why", is_choice(result.ran) ? Json(result.ran) : Json()}};
}

Json seeds_summary_json(const SimulateOptions& options, const std::vector<SeedResult>& results) {
  const bool is_measured = !options.measured.empty();
  const Spreads spreads = spreads_of(results);
  Json chosen = Json::object();
  for (const auto& [name, count] : chosen_counts(results)) chosen[name] = count;
  const int32_t stages = results.empty() ? options.stages : results.front().step.ranks;
  const int32_t microbatches =
      results.empty() ? options.microbatches : results.front().step.microbatches;
  return {{"summary", true},
          {"preset", is_measured ? Json() : Json(options.preset)},
          {"measured", is_measured ? Json(options.measured) : Json()},
          {"stages", stages},
          {"microbatches", microbatches},
          {"hint", options.hint},
          {"order", options.order},
          {"cap", options.cap},
          {"seeds", results.size()},
          {"first_seed", options.first_seed},
          {"makespan_ms", to_json(spreads.makespan_ms)},
          {"ratio_to_bound", to_json(spreads.ratio_to_bound)},
          {"peak_ratio", to_json(spreads.peak_ratio)},
          {"chosen", std::move(chosen)}};
}

std::string stress_text(const rrfp_stress_report& report) {
  const auto row = [](const char* name, int64_t count) {
    return format("%-16s%10lld\n", name, static_cast<long long>(count));
  };
  std::string text =
      row("cases", report.cases) + row("faults", report.faults) + row("refused", report.refused) +
      row("stalls", report.stalls) + row("cap violations", report.cap_violations) +
      row("task errors", report.task_errors) + row("failure errors", report.failure_errors);
  if (report.bad_case[0] == '\0') return text;
  const std::string seed = std::to_string(report.bad_seed);
  return text + "first bad case, seed " + seed + ": " + &report.bad_case[0] +
         "\nto see it again: rrfp simulate --stress 1 --first-seed " + seed + "\n";
}

Json stress_json(const rrfp_stress_report& report) {
  Json bad;
  if (report.bad_case[0] != '\0') {
    bad = {{"seed", report.bad_seed}, {"case", &report.bad_case[0]}};
  }
  return {{"cases", report.cases},
          {"faults", report.faults},
          {"refused", report.refused},
          {"stalls", report.stalls},
          {"cap_violations", report.cap_violations},
          {"task_errors", report.task_errors},
          {"failure_errors", report.failure_errors},
          {"first_bad", std::move(bad)}};
}

}  // namespace rrfp::cli
