// SPDX-License-Identifier: Apache-2.0
#include "engine/core/schedule_text.h"

#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "engine/core/schedule_check.h"

namespace rrfp::core {
namespace {

constexpr std::string_view kPairEnd = ")OVERLAP_F_B";
bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Takes a decimal number without sign from the front of `text`.
std::optional<int32_t> take_number(std::string_view& text) {
  int32_t value = 0;
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

std::optional<TaskKind> kind_of(char c) {
  switch (c) {
    case 'F': return TaskKind::kForward;
    case 'B': return TaskKind::kBackward;
    case 'I': return TaskKind::kInputGradient;
    case 'W': return TaskKind::kWeightGradient;
    default: return std::nullopt;
  }
}

/// What was found, fit for an error text.
std::string quoted(std::string_view found) {
  constexpr size_t kShownMax = 40;
  std::string text = "\"";
  for (char c : found.substr(0, kShownMax)) text += c >= ' ' && c <= '~' ? c : '?';
  return text + (found.size() > kShownMax ? "...\"" : "\"");
}

using ActionRow = std::vector<ActionAt>;

class Parser {
 public:
  [[nodiscard]] bool complete() const { return !complete_.empty(); }

  Status parse(std::string_view text, std::vector<ActionRow>& rows) {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      rows.emplace_back();
      if (Status s = parse_row(trim(line), rows.back()); !s.ok()) return s;
      ++row_;
    }
    if (rows.empty()) return {Code::kSyntax, "the schedule text is empty; expected a row per rank"};
    if (complete_.empty() || empty_row_ == 0) return {};
    return {Code::kSyntax,
            "row " + std::to_string(empty_row_) + ", column " + std::to_string(empty_column_) +
                ", \"\": an empty cell does not belong in a complete schedule, and " + complete_ +
                " makes this one complete"};
  }

 private:
  Status parse_row(std::string_view line, ActionRow& out) {
    column_ = 1;
    if (line.empty()) return {};  // a rank without tasks, not an idle slot
    for (;;) {
      const size_t comma = line.find(',');
      if (Status s = parse_cell(trim(line.substr(0, comma)), out); !s.ok()) return s;
      if (comma == std::string_view::npos) return {};
      line.remove_prefix(comma + 1);
      ++column_;
    }
  }

  Status parse_cell(std::string_view cell, ActionRow& out) {
    if (cell.empty()) {
      if (empty_row_ == 0) {
        empty_row_ = row_;
        empty_column_ = column_;
      }
      return {};
    }
    if (cell.front() != '(') return parse_action(cell, cell, out);
    if (!cell.ends_with(kPairEnd)) {
      return error(cell, "a group \"(...)\" must end in \"" + std::string(kPairEnd) + "\"");
    }
    std::string_view inner = cell.substr(1, cell.size() - 1 - kPairEnd.size());
    for (;;) {
      const size_t semicolon = inner.find(';');
      if (Status s = parse_action(trim(inner.substr(0, semicolon)), cell, out); !s.ok()) return s;
      if (!out.back().action.computes()) {
        return error(cell, "only tasks belong in a group; " + to_string(out.back().action) +
                               " needs a cell of its own");
      }
      if (semicolon == std::string_view::npos) return {};
      inner.remove_prefix(semicolon + 1);
    }
  }

  Status parse_action(std::string_view text, std::string_view cell, ActionRow& out) {
    std::string_view rest = text;
    const std::optional<int32_t> stage = take_number(rest);
    if (!stage) return error(cell, "expected a stage number at " + quoted(text));
    Action action;
    action.stage = StageId(*stage);
    if (!take_type(rest, action)) {
      return error(cell, "unknown task type " + quoted(rest) +
                             "; expected F, B, I or W, or a communication action");
    }
    if (action.has_microbatch()) {
      const std::optional<int32_t> microbatch = take_number(rest);
      if (!microbatch) return error(cell, "expected a microbatch number after the task type");
      action.microbatch = MicrobatchId(*microbatch);
    }
    if (!rest.empty()) return error(cell, "unexpected " + quoted(rest) + " after the task");
    if (!action.computes() && complete_.empty()) complete_ = to_string(action);
    // A stage may be unsharded and resharded many times.
    if (action.has_microbatch() || action.type == ActionType::kReduceGradient) {
      const auto [at, first] = place_.emplace(action, std::pair(row_, column_));
      if (!first) {
        return error(cell, to_string(action) + " already stands in row " +
                               std::to_string(at->second.first) + ", column " +
                               std::to_string(at->second.second));
      }
    }
    out.push_back({action, column_});
    return {};
  }

  static bool take_type(std::string_view& rest, Action& action) {
    for (size_t k = 0; k < kActionNames.size(); ++k) {
      if (!rest.starts_with(kActionNames[k])) continue;
      rest.remove_prefix(kActionNames[k].size());
      action.type = static_cast<ActionType>(k);
      return true;
    }
    const std::optional<TaskKind> kind = rest.empty() ? std::nullopt : kind_of(rest.front());
    if (!kind) return false;
    rest.remove_prefix(1);
    action.kind = *kind;
    return true;
  }

  [[nodiscard]] Status error(std::string_view cell, const std::string& what) const {
    return {Code::kSyntax, "row " + std::to_string(row_) + ", column " + std::to_string(column_) +
                               ", " + quoted(cell) + ": " + what};
  }

  int32_t row_ = 1;
  int32_t column_ = 1;
  int32_t empty_row_ = 0;  // the first idle slot; 0 = there is none
  int32_t empty_column_ = 0;

  std::string complete_;  // the first action that is not a task; empty in a compute-only text
  std::map<Action, std::pair<int32_t, int32_t>> place_;
};

/// Older files: B is the input gradient. Returns what was assumed.
std::string modernize(std::vector<std::vector<Task>>& rows) {
  struct Count {
    int64_t b = 0, i = 0, w = 0;
  };
  std::map<StageId, Count> counts;
  for (const auto& row : rows) {
    for (const Task& task : row) {
      Count& c = counts[task.stage];
      c.b += task.kind == TaskKind::kBackward ? 1 : 0;
      c.i += task.kind == TaskKind::kInputGradient ? 1 : 0;
      c.w += task.kind == TaskKind::kWeightGradient ? 1 : 0;
    }
  }
  std::string stages;
  const auto is_old = [](const Count& c) { return c.w > 0 && c.i == 0 && c.b == c.w; };
  for (const auto& [stage, count] : counts) {
    if (is_old(count)) stages += (stages.empty() ? "" : ", ") + std::to_string(stage.value);
  }
  if (stages.empty()) return {};
  for (auto& row : rows) {
    for (Task& task : row) {
      if (task.kind == TaskKind::kBackward && is_old(counts[task.stage])) {
        task.kind = TaskKind::kInputGradient;
      }
    }
  }
  return "older schedule text: B was read as the input gradient I for stages " + stages +
         ", which have W but no I";
}

}  // namespace

Status parse_schedule_text(std::string_view text, std::vector<std::vector<Task>>& per_rank,
                           std::string& note) {
  Parser parser;
  std::vector<ActionRow> actions;
  if (Status s = parser.parse(text, actions); !s.ok()) return s;
  if (parser.complete()) {
    if (Status s = check_actions(actions); !s.ok()) return s;
  }
  std::vector<std::vector<Task>> rows(actions.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    for (const ActionAt& at : actions[row]) {
      if (at.action.computes()) rows[row].push_back(at.action.task());
    }
  }
  note = modernize(rows);
  per_rank = std::move(rows);
  return {};
}

std::string print_schedule_text(std::span<const std::vector<Task>> per_rank) {
  return print_rows(per_rank);
}

}  // namespace rrfp::core
