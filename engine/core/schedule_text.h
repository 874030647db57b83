// SPDX-License-Identifier: Apache-2.0
//
// The schedule text of torch.distributed.pipelining: one row per rank, cells separated by commas.
// Lines end in LF or CR LF; blanks around a cell do not count. There are two flavours.
// - Compute-only: a cell is <stage><F|I|W|B><microbatch> or a pair "(0F3;3B1)OVERLAP_F_B"; an empty
//   cell is an idle slot.
// - Complete: a text with at least one of the actions of schedule_action.h. It has no idle slots.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/ids.h"
#include "engine/core/status.h"

namespace rrfp::core {

/// Reads a schedule of either flavour. Errors name row and column (both from 1, columns in cells)
/// and the cell's text. A pair becomes its two tasks in the order written. What a complete text
/// says besides its tasks is checked (schedule_check.h) and dropped: the engine communicates by
/// itself. Files of older PyTorch releases wrote B for the input gradient: a stage with W, no I and
/// as many B as W is read that way, and `note` says so.
Status parse_schedule_text(std::string_view text, std::vector<std::vector<Task>>& per_rank,
                           std::string& note);

/// One row per rank, rows ended by LF, each cell as its to_string has it.
template <class Cell>
[[nodiscard]] std::string print_rows(std::span<const std::vector<Cell>> per_rank) {
  std::string text;
  for (const auto& row : per_rank) {
    for (size_t k = 0; k < row.size(); ++k) {
      if (k > 0) text += ',';
      text += to_string(row[k]);
    }
    text += '\n';
  }
  return text;
}

/// Writes a compute-only schedule, one row per rank, rows ended by LF, without idle cells. For the
/// complete flavour see schedule_lowering.h.
[[nodiscard]] std::string print_schedule_text(std::span<const std::vector<Task>> per_rank);

}  // namespace rrfp::core
