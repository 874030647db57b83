// SPDX-License-Identifier: Apache-2.0
#include "capi/src/train.h"
#include "engine/model/partition.h"
#include "engine/model/recipe.h"
#include "engine/train/checkpoint.h"

using namespace rrfp;        // NOLINT(google-build-using-namespace)
using namespace rrfp::capi;  // NOLINT(google-build-using-namespace)

static_assert(RRFP_DIMS_MAX == model::Shape::kDimsMax);
static_assert(RRFP_OP_INPUTS_MAX == model::Op::kInputsMax);
static_assert(RRFP_OP_MERGE_ROWS == static_cast<int32_t>(model::kLastOpKind) &&
              RRFP_OP_SQUARED_ERROR == static_cast<int32_t>(model::OpKind::kSquaredError) &&
              RRFP_OP_PATCHES == static_cast<int32_t>(model::OpKind::kPatches) &&
              RRFP_OP_LINEAR == static_cast<int32_t>(model::OpKind::kLinear) &&
              RRFP_OP_ATTENTION == static_cast<int32_t>(model::OpKind::kAttention));
static_assert(RRFP_INIT_UNIFORM == static_cast<int32_t>(model::Init::kUniform));

namespace {

Status read_shape(const char* name, const int64_t* extents, int32_t ndim, model::Shape& out) {
  if (ndim < 1 || ndim > RRFP_DIMS_MAX) {
    return {Code::kInvalidArgument, std::string(name) + " has " + std::to_string(ndim) +
                                        " axes; expected 1 to " + std::to_string(RRFP_DIMS_MAX)};
  }
  if (extents == nullptr) return null_argument(name);
  out = model::Shape(std::span(extents, static_cast<size_t>(ndim)));
  return {};
}

template <class Id>
Status read_ids(const char* name, const int32_t* ids, int32_t count, size_t most,
                std::vector<Id>& out) {
  if (count < 0 || static_cast<size_t>(count) > most) {
    return {Code::kInvalidArgument, std::string(name) + "_count is " + std::to_string(count) +
                                        "; expected 0 to " + std::to_string(most)};
  }
  if (ids == nullptr && count > 0) return null_argument(name);
  for (int32_t k = 0; k < count; ++k) out.push_back(Id(ids[k]));
  return {};
}

Status read_operation(const rrfp_operation& o, model::Op& out) {
  if (Status s = check_flags("rrfp_operation.flags", o.flags, RRFP_OP_CAUSAL); !s.ok()) return s;
  out.kind = static_cast<model::OpKind>(o.op);
  if (Status s = read_ids("input", o.inputs, o.input_count, model::Op::kInputsMax, out.inputs);
      !s.ok()) {
    return s;
  }
  if (Status s = read_ids("parameter", o.parameters, o.parameter_count, model::Op::kParametersMax,
                          out.parameters);
      !s.ok()) {
    return s;
  }
  out.attributes = {.causal = (o.flags & RRFP_OP_CAUSAL) != 0,
                    .axis = o.axis,
                    .heads = o.heads,
                    .kv_heads = o.kv_heads,
                    .head_dim = o.head_dim,
                    .ignore_index = o.ignore_index,
                    .probability = o.probability,
                    .epsilon = o.epsilon,
                    .base = o.base,
                    .kernel = o.kernel,
                    .stride = o.stride,
                    .padding = o.padding,
                    .shape = {}};
  if (o.op == RRFP_OP_RESHAPE) return read_shape("shape", o.shape, o.ndim, out.attributes.shape);
  return {};
}

/// Runs the body with the model's graph.
template <class Model, class Body>
rrfp_status with_graph(Model* model, rrfp_error* error, Body body) noexcept {
  return guard(error, [&]() -> Status {
    if (model == nullptr) return null_handle("model");
    return body(model->graph);
  });
}

Status check_parameter(const model::Graph& graph, int32_t parameter) {
  if (parameter >= 0 && static_cast<size_t>(parameter) < graph.parameters().size()) return {};
  return {Code::kOutOfRange,
          "parameter is " + std::to_string(parameter) + "; the model has parameters 0 to " +
              std::to_string(static_cast<int64_t>(graph.parameters().size()) - 1)};
}

}  // namespace

void rrfp_parameter_options_init(rrfp_parameter_options* options) {
  init(options);
}
void rrfp_operation_init(rrfp_operation* operation) {
  init(operation);
  if (operation == nullptr) return;
  const model::OpAttributes defaults;
  operation->axis = defaults.axis;
  operation->ignore_index = defaults.ignore_index;
  operation->epsilon = defaults.epsilon;
  operation->base = defaults.base;
}
void rrfp_gpt_options_init(rrfp_gpt_options* options) {
  init(options);
}
void rrfp_model_info_init(rrfp_model_info* info) {
  init(info);
}

// --- Building

rrfp_status rrfp_model_create(rrfp_model** out, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (out == nullptr) return null_argument("out");
    *out = new rrfp_model;
    return {};
  });
}

void rrfp_model_destroy(rrfp_model* model) {
  (void)guard(nullptr, [&]() -> Status {
    delete model;
    return {};
  });
}

rrfp_status rrfp_model_begin_block(rrfp_model* model, const char* name, rrfp_block_flags flags,
                                   int32_t* out_block, rrfp_error* error) {
  return with_graph(model, error, [&](model::Graph& graph) -> Status {
    if (Status s = check_flags("flags", flags, RRFP_BLOCK_RECOMPUTE); !s.ok()) return s;
    model::BlockId id;
    Status s = graph.begin_block(
        {.name = name != nullptr ? name : "", .recompute = (flags & RRFP_BLOCK_RECOMPUTE) != 0},
        id);
    if (s.ok() && out_block != nullptr) *out_block = id.value;
    return s;
  });
}

rrfp_status rrfp_model_add_input(rrfp_model* model, const char* name, rrfp_dtype dtype,
                                 int32_t ndim, const int64_t* shape, int32_t* out_value,
                                 rrfp_error* error) {
  return with_graph(model, error, [&](model::Graph& graph) -> Status {
    if (Status s = check_text("name", name); !s.ok()) return s;
    if (dtype != RRFP_F32 && dtype != RRFP_I32) {
      return {Code::kInvalidArgument,
              "dtype is " + std::to_string(dtype) + "; expected RRFP_F32 or RRFP_I32"};
    }
    model::Shape read;
    if (Status s = read_shape("shape", shape, ndim, read); !s.ok()) return s;
    model::ValueId id;
    Status s = graph.add_input(
        name, dtype == RRFP_I32 ? model::ValueType::kI32 : model::ValueType::kF32, read, id);
    if (s.ok() && out_value != nullptr) *out_value = id.value;
    return s;
  });
}

rrfp_status rrfp_model_add_parameter(rrfp_model* model, const rrfp_parameter_options* options,
                                     int32_t* out_parameter, rrfp_error* error) {
  return with_graph(model, error, [&](model::Graph& graph) -> Status {
    if (options == nullptr) return null_argument("options");
    rrfp_parameter_options o = {};
    if (Status s = load(options, "rrfp_parameter_options", o); !s.ok()) return s;
    if (Status s = check_flags("rrfp_parameter_options.flags", o.flags,
                               RRFP_PARAMETER_FROZEN | RRFP_PARAMETER_NO_DECAY);
        !s.ok()) {
      return s;
    }
    if (Status s = check_enum("init", o.init, RRFP_INIT_UNIFORM); !s.ok()) return s;
    if (Status s = check_text("name", o.name); !s.ok()) return s;
    model::Parameter parameter;
    if (Status s = read_shape("shape", o.shape, o.ndim, parameter.shape); !s.ok()) return s;
    parameter.name = o.name;
    parameter.frozen = (o.flags & RRFP_PARAMETER_FROZEN) != 0;
    parameter.decay = (o.flags & RRFP_PARAMETER_NO_DECAY) == 0;
    parameter.init = static_cast<model::Init>(o.init);
    parameter.init_value = o.init_value;
    parameter.init_scale = o.init_scale;
    model::ParameterId id;
    Status s = graph.add_parameter(std::move(parameter), id);
    if (s.ok() && out_parameter != nullptr) *out_parameter = id.value;
    return s;
  });
}

rrfp_status rrfp_model_add_operation(rrfp_model* model, const rrfp_operation* operation,
                                     int32_t* out_value, rrfp_error* error) {
  return with_graph(model, error, [&](model::Graph& graph) -> Status {
    if (operation == nullptr) return null_argument("operation");
    rrfp_operation o = {};
    rrfp_operation_init(&o);
    if (Status s = load(operation, "rrfp_operation", o); !s.ok()) return s;
    model::Op op;
    if (Status s = read_operation(o, op); !s.ok()) return s;
    model::ValueId id;
    Status s = graph.add_op(std::move(op), id);
    if (s.ok() && out_value != nullptr) *out_value = id.value;
    return s;
  });
}

rrfp_status rrfp_model_set_loss(rrfp_model* model, int32_t value, rrfp_error* error) {
  return with_graph(model, error,
                    [&](model::Graph& graph) { return graph.set_loss(model::ValueId(value)); });
}

rrfp_status rrfp_model_add_loss(rrfp_model* model, int32_t value, double factor,
                                rrfp_error* error) {
  return with_graph(model, error, [&](model::Graph& graph) {
    return graph.add_loss({.value = model::ValueId(value), .factor = factor});
  });
}

rrfp_status rrfp_model_set_output(rrfp_model* model, int32_t value, rrfp_error* error) {
  return with_graph(model, error,
                    [&](model::Graph& graph) { return graph.set_output(model::ValueId(value)); });
}

Status capi::read_gpt_options(const rrfp_gpt_options* options, model::GptOptions& out) {
  rrfp_gpt_options o = {};
  if (Status s = load(options, "rrfp_gpt_options", o); !s.ok()) return s;
  constexpr rrfp_gpt_flags kKnown =
      RRFP_GPT_TIED | RRFP_GPT_ROTARY | RRFP_GPT_RMS_NORM | RRFP_GPT_SWIGLU;
  if (Status s = check_flags("rrfp_gpt_options.flags", o.flags, kKnown); !s.ok()) return s;
  if (Status s = check_reserved("rrfp_gpt_options", o.reserved); !s.ok()) return s;
  out = {.vocabulary = o.vocabulary,
         .context = o.context,
         .layers = o.layers,
         .dim = o.dim,
         .heads = o.heads,
         .kv_heads = o.kv_heads,
         .hidden = o.hidden,
         .dropout = o.dropout,
         .tied = (o.flags & RRFP_GPT_TIED) != 0,
         .rotary = (o.flags & RRFP_GPT_ROTARY) != 0,
         .rms_norm = (o.flags & RRFP_GPT_RMS_NORM) != 0,
         .swiglu = (o.flags & RRFP_GPT_SWIGLU) != 0};
  return {};
}

rrfp_status rrfp_model_create_gpt(const rrfp_gpt_options* options, rrfp_model** out,
                                  rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (options == nullptr) return null_argument("options");
    if (out == nullptr) return null_argument("out");
    model::GptOptions o;
    if (Status s = read_gpt_options(options, o); !s.ok()) return s;
    auto handle = std::make_unique<rrfp_model>();
    Status s = build_gpt(o, handle->graph);
    if (s.ok()) *out = handle.release();
    return s;
  });
}

rrfp_status rrfp_model_create_from_checkpoint(const char* path, rrfp_model** out,
                                              rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (Status s = check_text("path", path); !s.ok()) return s;
    if (out == nullptr) return null_argument("out");
    std::shared_ptr<const train::Checkpoint> checkpoint;
    if (Status s = train::Checkpoint::open(path, checkpoint); !s.ok()) return s;
    auto handle = std::make_unique<rrfp_model>();
    Status s =
        model::build_from_recipe(checkpoint->state().model, checkpoint->path(), handle->graph);
    if (s.ok()) *out = handle.release();
    return s;
  });
}

// --- Looking

rrfp_status rrfp_model_get_info(const rrfp_model* model, rrfp_model_info* out, rrfp_error* error) {
  return with_graph(model, error, [&](const model::Graph& graph) -> Status {
    if (out == nullptr) return null_argument("out");
    if (Status s = check_size(out, "rrfp_model_info"); !s.ok()) return s;
    rrfp_model_info info = {};
    info.inputs = static_cast<int32_t>(graph.inputs().size());
    info.values = static_cast<int32_t>(graph.values().size());
    info.parameters = static_cast<int32_t>(graph.parameters().size());
    info.blocks = static_cast<int32_t>(graph.blocks().size());
    info.losses = static_cast<int32_t>(graph.losses().size());
    for (const model::Parameter& parameter : graph.parameters()) {
      info.parameter_elements += parameter.shape.elements();
      if (!parameter.frozen) info.trainable_elements += parameter.shape.elements();
    }
    store(info, out);
    return {};
  });
}

rrfp_status rrfp_model_value_shape(const rrfp_model* model, int32_t value, int32_t* out_ndim,
                                   int64_t* shape, rrfp_error* error) {
  return with_graph(model, error, [&](const model::Graph& graph) -> Status {
    if (value < 0 || static_cast<size_t>(value) >= graph.values().size()) {
      return {Code::kOutOfRange,
              "value is " + std::to_string(value) + "; the model has values 0 to " +
                  std::to_string(static_cast<int64_t>(graph.values().size()) - 1)};
    }
    write_shape(graph.value(model::ValueId(value)).shape, out_ndim, shape);
    return {};
  });
}

rrfp_status rrfp_model_parameter_name(const rrfp_model* model, int32_t parameter, char* buffer,
                                      size_t capacity, size_t* out_size, rrfp_error* error) {
  return with_graph(model, error, [&](const model::Graph& graph) -> Status {
    if (Status s = check_parameter(graph, parameter); !s.ok()) return s;
    const std::string& name = graph.parameter(model::ParameterId(parameter)).name;
    return put_text(name, buffer, capacity, out_size);
  });
}

rrfp_status rrfp_model_parameter_shape(const rrfp_model* model, int32_t parameter,
                                       int32_t* out_ndim, int64_t* shape, rrfp_error* error) {
  return with_graph(model, error, [&](const model::Graph& graph) -> Status {
    if (Status s = check_parameter(graph, parameter); !s.ok()) return s;
    write_shape(graph.parameter(model::ParameterId(parameter)).shape, out_ndim, shape);
    return {};
  });
}

rrfp_status rrfp_model_describe(const rrfp_model* model, char* buffer, size_t capacity,
                                size_t* out_size, rrfp_error* error) {
  return with_graph(model, error, [&](const model::Graph& graph) {
    return put_text(model::describe(graph), buffer, capacity, out_size);
  });
}

// --- Cutting

rrfp_status rrfp_model_measure(const rrfp_model* model, const rrfp_tensor* inputs,
                               int64_t* block_ns, rrfp_error* error) {
  return with_graph(model, error, [&](const model::Graph& graph) -> Status {
    const size_t count = graph.inputs().size();
    if (inputs == nullptr && count > 0) return null_argument("inputs");
    if (block_ns == nullptr) return null_argument("block_ns");
    std::vector<model::Shape> shapes;
    std::vector<const float*> arrays;
    std::vector<train::InputArray> read(count);
    for (size_t k = 0; k < count; ++k) {
      if (Status s = read_input(inputs[k], read[k]); !s.ok()) {
        return {s.code(), "input " + std::to_string(k) + ": " + s.text()};
      }
      shapes.push_back(read[k].shape);
      arrays.push_back(static_cast<const float*>(read[k].data));
    }
    train::ShapePlan plan;
    if (Status s = graph.infer(shapes, plan.values); !s.ok()) return s;
    if (Status s = train::InputChecks(graph).check(0, read, plan); !s.ok()) return s;
    std::vector<int64_t> costs;
    Status s = measure_costs(graph, kernels::cpu_kernels(), shapes, arrays, costs);
    if (s.ok()) std::copy(costs.begin(), costs.end(), block_ns);
    return s;
  });
}

namespace {

/// The caller's costs, or estimated ones.
std::vector<int64_t> read_costs(const model::Graph& graph, const int64_t* block_costs) {
  if (block_costs == nullptr) return model::estimate_costs(graph);
  return {block_costs, block_costs + graph.blocks().size()};
}

}  // namespace

rrfp_status rrfp_model_partition(const rrfp_model* model, int32_t stages,
                                 const int64_t* block_costs, int32_t* first_blocks,
                                 rrfp_error* error) {
  return with_graph(model, error, [&](const model::Graph& graph) -> Status {
    if (first_blocks == nullptr) return null_argument("first_blocks");
    std::vector<int32_t> found;
    Status s = model::partition(read_costs(graph, block_costs), stages, found);
    if (s.ok()) std::copy(found.begin(), found.end(), first_blocks);
    return s;
  });
}

rrfp_status rrfp_model_place(const rrfp_model* model, int32_t stages, int32_t ranks,
                             const int64_t* block_costs, int32_t* first_blocks,
                             int32_t* stage_ranks, rrfp_error* error) {
  return with_graph(model, error, [&](const model::Graph& graph) -> Status {
    if (first_blocks == nullptr) return null_argument("first_blocks");
    if (stage_ranks == nullptr) return null_argument("stage_ranks");
    model::Placed placed;
    Status s = model::place(read_costs(graph, block_costs), model::find_branches(graph), stages,
                            ranks, placed);
    if (!s.ok()) return s;
    std::copy(placed.first_blocks.begin(), placed.first_blocks.end(), first_blocks);
    std::copy(placed.stage_ranks.begin(), placed.stage_ranks.end(), stage_ranks);
    return {};
  });
}
