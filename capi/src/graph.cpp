// SPDX-License-Identifier: Apache-2.0
#include "capi/src/guard.h"

using namespace rrfp;        // NOLINT(google-build-using-namespace)
using namespace rrfp::capi;  // NOLINT(google-build-using-namespace)

void rrfp_stage_options_init(rrfp_stage_options* options) {
  init(options);
  if (options != nullptr) options->rank = -1;
}

rrfp_status rrfp_graph_create(int32_t ranks, rrfp_graph** out, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (out == nullptr) return null_argument("out");
    if (ranks < 1 || ranks > core::StageGraph::kRanksMax) {
      return {Code::kInvalidArgument, "ranks is " + std::to_string(ranks) + "; expected 1 to " +
                                          std::to_string(core::StageGraph::kRanksMax)};
    }
    *out = new rrfp_graph(ranks);
    return {};
  });
}

void rrfp_graph_destroy(rrfp_graph* graph) {
  delete graph;
}

rrfp_status rrfp_graph_add_stage(rrfp_graph* graph, const rrfp_stage_options* options,
                                 int32_t* out_stage, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (graph == nullptr) return null_handle("graph");
    rrfp_stage_options o = {};
    rrfp_stage_options_init(&o);
    if (options != nullptr) {
      if (Status s = load(options, "rrfp_stage_options", o); !s.ok()) return s;
    }
    constexpr uint32_t kKnown =
        RRFP_STAGE_LOSS | RRFP_STAGE_FROZEN | RRFP_STAGE_INPUT_GRADIENT | RRFP_STAGE_FUSED_ONLY;
    if (Status s = check_flags("rrfp_stage_options.flags", o.flags, kKnown); !s.ok()) return s;
    if (Status s = check_reserved("rrfp_stage_options", o.reserved); !s.ok()) return s;
    if (o.rank < -1) return graph->graph.check_rank(core::RankId(o.rank));
    core::Stage stage;
    stage.rank = core::RankId(o.rank);
    stage.loss = (o.flags & RRFP_STAGE_LOSS) != 0;
    stage.frozen = (o.flags & RRFP_STAGE_FROZEN) != 0;
    stage.input_gradient = (o.flags & RRFP_STAGE_INPUT_GRADIENT) != 0;
    stage.fused_only = (o.flags & RRFP_STAGE_FUSED_ONLY) != 0;
    stage.activation_bytes = o.activation_bytes;
    stage.forward_ns = o.forward_ns;
    stage.input_gradient_ns = o.input_gradient_ns;
    stage.weight_gradient_ns = o.weight_gradient_ns;
    core::StageId id;
    if (Status s = graph->graph.add_stage(stage, id); !s.ok()) return s;
    if (out_stage != nullptr) *out_stage = id.value;
    return {};
  });
}

rrfp_status rrfp_graph_add_edge(rrfp_graph* graph, int32_t from, int32_t to, rrfp_edge_flags flags,
                                int32_t* out_edge, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (graph == nullptr) return null_handle("graph");
    if (Status s = check_flags("edge flags", flags, RRFP_EDGE_NO_GRADIENT); !s.ok()) return s;
    core::EdgeId id;
    const core::Edge edge = {core::StageId(from), core::StageId(to),
                             (flags & RRFP_EDGE_NO_GRADIENT) == 0};
    graph->specs.reserve(static_cast<size_t>(graph->graph.edge_count()) + 1);
    if (Status s = graph->graph.add_edge(edge, id); !s.ok()) return s;
    graph->specs.emplace_back();
    if (out_edge != nullptr) *out_edge = id.value;
    return {};
  });
}

rrfp_status rrfp_graph_declare_tensor(rrfp_graph* graph, int32_t edge, int32_t dtype, int32_t ndim,
                                      const int64_t* shape, uint32_t flags, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (graph == nullptr) return null_handle("graph");
    const int32_t edges = graph->graph.edge_count();
    if (edge < 0 || edge >= edges) {
      return {Code::kOutOfRange, "edge " + std::to_string(edge) +
                                     " does not exist; the graph has " + std::to_string(edges) +
                                     " edges, numbered from 0"};
    }
    if (dtype < RRFP_F32 || dtype >= comm::kDTypeCount) {
      return {Code::kInvalidArgument, "dtype is " + std::to_string(dtype) + "; expected 1 to " +
                                          std::to_string(comm::kDTypeCount - 1)};
    }
    if (ndim < 0 || ndim > RRFP_DIMS_MAX) {
      return {Code::kInvalidArgument, "ndim is " + std::to_string(ndim) + "; expected 0 to " +
                                          std::to_string(RRFP_DIMS_MAX)};
    }
    if (ndim > 0 && shape == nullptr) return null_argument("shape");
    if (Status s = check_flags("tensor flags", flags, RRFP_TENSOR_WANTS_GRADIENT); !s.ok()) {
      return s;
    }
    host::TensorSpec spec;
    spec.dtype = static_cast<comm::DType>(dtype);
    spec.wants_gradient = (flags & RRFP_TENSOR_WANTS_GRADIENT) != 0;
    for (int32_t d = 0; d < ndim; ++d) {
      if (shape[d] < host::TensorSpec::kAnyExtent) {
        return {Code::kInvalidArgument, "extent " + std::to_string(d) + " of the shape is " +
                                            std::to_string(shape[d]) +
                                            "; expected 0 or more, or -1 for any"};
      }
      spec.shape.push_back(shape[d]);
    }
    if (spec.wants_gradient && !comm::is_float(spec.dtype)) {
      return {Code::kInvalidArgument, std::string("a tensor of dtype ") + comm::name(spec.dtype) +
                                          " cannot want a gradient; only floating-point ones can"};
    }
    if (spec.wants_gradient && !graph->graph.edge(core::EdgeId(edge)).gradient) {
      return {Code::kInvalidArgument, "edge " + std::to_string(edge) +
                                          " carries no gradients, so its tensors cannot want one"};
    }
    graph->specs[static_cast<size_t>(edge)].push_back(std::move(spec));
    return {};
  });
}

rrfp_status rrfp_graph_place(rrfp_graph* graph, rrfp_placement placement, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (graph == nullptr) return null_handle("graph");
    if (Status s = check_enum("placement", placement, RRFP_PLACEMENT_V); !s.ok()) return s;
    return graph->graph.place(static_cast<core::Placement>(placement));
  });
}

rrfp_status rrfp_graph_place_stage(rrfp_graph* graph, int32_t stage, int32_t rank,
                                   rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (graph == nullptr) return null_handle("graph");
    return graph->graph.place(core::StageId(stage), core::RankId(rank));
  });
}

rrfp_status rrfp_graph_place_by_hint(rrfp_graph* graph, const rrfp_hint* hint, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (graph == nullptr) return null_handle("graph");
    if (hint == nullptr) return null_handle("hint");
    core::StageGraph placed = graph->graph;
    for (int32_t s = 0; s < placed.stage_count(); ++s) {
      const core::RankId rank = hint->hint->rank_of(core::StageId(s));
      if (!rank.valid()) {
        return {Code::kUnplacedStage, "the hint \"" + std::string(hint->hint->name()) +
                                          "\" lists stage " + std::to_string(s) + " on no rank"};
      }
      if (Status status = placed.place(core::StageId(s), rank); !status.ok()) return status;
    }
    graph->graph = std::move(placed);
    return {};
  });
}

rrfp_status rrfp_graph_check(const rrfp_graph* graph, rrfp_error* error) {
  return guard(error, [&] {
    std::shared_ptr<const core::StageGraph> sealed;
    return seal(graph, sealed);
  });
}
