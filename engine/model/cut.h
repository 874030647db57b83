// SPDX-License-Identifier: Apache-2.0
//
// A model cut into stages: runs of whole blocks. What crosses a cut becomes edges of the stage
// graph.
//
// A value that wants a gradient and is read by several later stages travels from reader to reader,
// not from its producer to each: so the parts of its gradient add up in one order, last reader
// first, which is also the order within one stage. That makes sums the same to the bit however the
// model is cut.
#pragma once

#include <span>
#include <vector>

#include "engine/model/graph.h"

namespace rrfp::model {

struct CutEdge {
  core::StageId from;
  core::StageId to;
  std::vector<ValueId> values;  // the tensors of a message, in the order of their numbers
  bool gradient = false;        // any of them wants one
};

struct CutStage {
  int32_t first_block = 0;
  int32_t last_block = 0;  // inclusive
  bool trainable = false;  // has weights that want gradients
  bool loss = false;
};

struct Cut {
  std::vector<CutStage> stages;
  std::vector<CutEdge> edges;
  std::vector<core::StageId> stage_of;  // by operation; invalid if the loss does not need it
};

/// `first_blocks` has the first block of each stage: 0 first, ascending.
/// Errors: kOutOfRange, kInvalidArgument (a stage without an operation that the loss needs).
core::Status cut_model(const Graph& graph, std::span<const int32_t> first_blocks, Cut& out);

}  // namespace rrfp::model
