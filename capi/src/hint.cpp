// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <vector>

#include "capi/src/guard.h"
#include "engine/core/named_policies.h"
#include "engine/core/plan.h"
#include "engine/core/schedule_lowering.h"
#include "engine/core/schedule_text.h"
#include "engine/sim/record.h"
#include "engine/trace/trace_events.h"
#include "engine/train/atomic_folder.h"

using namespace rrfp;        // NOLINT(google-build-using-namespace)
using namespace rrfp::capi;  // NOLINT(google-build-using-namespace)

namespace {

/// Checks out and sets it to the hint that `make` makes.
template <class Make>
Status make_hint(rrfp_hint** out, Make make) {
  if (out == nullptr) return null_argument("out");
  auto hint = std::make_unique<rrfp_hint>();
  if (Status s = make(hint->hint); !s.ok()) return s;
  *out = hint.release();
  return {};
}

Status read_entry(const rrfp_hint_task* tasks, size_t k, core::Task& out) {
  const rrfp_hint_task& entry = tasks[k];
  const std::string name = "tasks[" + std::to_string(k) + "].kind";
  if (Status s = check_enum(name.c_str(), entry.kind, RRFP_WEIGHT_GRADIENT); !s.ok()) return s;
  out = {core::StageId(entry.stage), core::MicrobatchId(entry.microbatch),
         static_cast<core::TaskKind>(entry.kind)};
  return {};
}

/// A training step. In one of two streams every other microbatch takes the second half of the
/// stages.
Status training_tasks(const rrfp_hint* hint, const rrfp_graph* graph, int32_t microbatches,
                      std::shared_ptr<const core::StepTasks>& out) {
  if (hint == nullptr) return null_handle("hint");
  std::shared_ptr<const core::StageGraph> sealed;
  if (Status s = seal(graph, sealed); !s.ok()) return s;
  core::StepShape shape;
  shape.microbatches = microbatches;
  const bool streams = hint->hint->source() == core::Hint::Source::kSchedule &&
                       core::layout_of(hint->hint->name()).streams == 2;
  for (int32_t s = 0; streams && s < sealed->stage_count(); ++s) {
    for (int32_t m = 0; m < microbatches; ++m) {
      shape.skip.push_back(static_cast<uint8_t>((m % 2 == 0) != (s < sealed->stage_count() / 2)));
    }
  }
  return core::StepTasks::create(std::move(sealed), std::move(shape), out);
}

/// The order of every rank.
Status orders(const rrfp_hint* hint, const rrfp_graph* graph, int32_t microbatches,
              std::vector<std::vector<core::Task>>& out) {
  if (hint == nullptr) return null_handle("hint");
  std::shared_ptr<const core::StepTasks> tasks;
  if (Status s = training_tasks(hint, graph, microbatches, tasks); !s.ok()) return s;
  out.resize(static_cast<size_t>(tasks->graph().ranks()));
  for (size_t r = 0; r < out.size(); ++r) {
    if (Status s = hint->hint->order(*tasks, core::RankId::of(r), out[r]); !s.ok()) return s;
  }
  return {};
}

}  // namespace

rrfp_status rrfp_hint_create(const char* name, rrfp_hint** out, rrfp_error* error) {
  return guard(error, [&] {
    return make_hint(out, [&](std::shared_ptr<const core::Hint>& hint) -> Status {
      if (name == nullptr) return null_argument("name");
      return core::Hint::named(name, hint);
    });
  });
}

rrfp_status rrfp_hint_create_from_tasks(int32_t ranks, const rrfp_hint_task* tasks, size_t count,
                                        rrfp_hint** out, rrfp_error* error) {
  return guard(error, [&] {
    return make_hint(out, [&](std::shared_ptr<const core::Hint>& hint) -> Status {
      if (tasks == nullptr && count > 0) return null_argument("tasks");
      if (ranks < 1 || ranks > core::StageGraph::kRanksMax) {
        return {Code::kInvalidArgument, "ranks is " + std::to_string(ranks) + "; expected 1 to " +
                                            std::to_string(core::StageGraph::kRanksMax)};
      }
      std::vector<std::vector<core::Task>> lists(static_cast<size_t>(ranks));
      for (size_t k = 0; k < count; ++k) {
        const std::string name = "tasks[" + std::to_string(k) + "].rank";
        if (Status s = check_enum(name.c_str(), tasks[k].rank, ranks - 1); !s.ok()) return s;
        auto& list = lists[static_cast<size_t>(tasks[k].rank)];
        if (Status s = read_entry(tasks, k, list.emplace_back()); !s.ok()) return s;
      }
      return core::Hint::lists(std::move(lists), hint);
    });
  });
}

rrfp_status rrfp_hint_create_from_priorities(const rrfp_hint_task* tasks, size_t count,
                                             rrfp_hint** out, rrfp_error* error) {
  return guard(error, [&] {
    return make_hint(out, [&](std::shared_ptr<const core::Hint>& hint) -> Status {
      if (tasks == nullptr && count > 0) return null_argument("tasks");
      std::vector<core::PrioritizedTask> list(count);
      for (size_t k = 0; k < count; ++k) {
        if (Status s = read_entry(tasks, k, list[k].task); !s.ok()) return s;
        list[k].priority = tasks[k].priority;
      }
      return core::Hint::priorities(std::move(list), hint);
    });
  });
}

rrfp_status rrfp_hint_create_from_text(const char* text, size_t length, rrfp_hint** out,
                                       rrfp_error* error) {
  return guard(error, [&] {
    return make_hint(out, [&](std::shared_ptr<const core::Hint>& hint) -> Status {
      if (text == nullptr) return null_argument("text");
      return core::Hint::text({text, length}, hint);
    });
  });
}

void rrfp_hint_destroy(rrfp_hint* hint) {
  delete hint;
}

rrfp_status rrfp_hint_note(const rrfp_hint* hint, char* buffer, size_t capacity, size_t* out_size,
                           rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (hint == nullptr) return null_handle("hint");
    return put_text(hint->hint->note(), buffer, capacity, out_size);
  });
}

void rrfp_hint_info_init(rrfp_hint_info* info) {
  init(info);
}

rrfp_status rrfp_hint_get_info(const rrfp_hint* hint, rrfp_hint_info* out, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (hint == nullptr) return null_handle("hint");
    if (out == nullptr) return null_argument("out");
    if (Status s = check_size(out, "rrfp_hint_info"); !s.ok()) return s;
    rrfp_hint_info info = {};
    const auto lists = hint->hint->per_rank();
    info.ranks = static_cast<int32_t>(lists.size());
    for (const std::vector<core::Task>& list : lists) {
      for (const core::Task& task : list) {
        info.stages = std::max(info.stages, task.stage.value + 1);
        info.microbatches = std::max(info.microbatches, task.microbatch.value + 1);
      }
    }
    store(info, out);
    return {};
  });
}

rrfp_status rrfp_hint_to_text(const rrfp_hint* hint, const rrfp_graph* graph, int32_t microbatches,
                              char* buffer, size_t capacity, size_t* out_size, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    std::vector<std::vector<core::Task>> rows;
    if (Status s = orders(hint, graph, microbatches, rows); !s.ok()) return s;
    return put_text(core::print_schedule_text(rows), buffer, capacity, out_size);
  });
}

rrfp_status rrfp_hint_lower(const rrfp_hint* hint, const rrfp_graph* graph, int32_t microbatches,
                            rrfp_lower_flags flags, char* buffer, size_t capacity, size_t* out_size,
                            rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (Status s = check_flags("flags", flags, RRFP_LOWER_FSDP | RRFP_LOWER_REDUCE); !s.ok()) {
      return s;
    }
    std::vector<std::vector<core::Task>> rows;
    if (Status s = orders(hint, graph, microbatches, rows); !s.ok()) return s;
    const core::LoweringOptions options = {.fsdp = (flags & RRFP_LOWER_FSDP) != 0,
                                           .reduce = (flags & RRFP_LOWER_REDUCE) != 0};
    std::vector<std::vector<core::Action>> actions;
    if (Status s = core::lower_schedule(rows, options, actions); !s.ok()) return s;
    return put_text(core::print_schedule_actions(actions), buffer, capacity, out_size);
  });
}

rrfp_status rrfp_hint_layout(const char* name, int32_t* out_placement, int32_t* out_chunks,
                             int32_t* out_streams, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (name == nullptr) return null_argument("name");
    std::shared_ptr<const core::Hint> known;
    if (Status s = core::Hint::named(name, known); !s.ok()) return s;
    const core::ScheduleLayout layout = core::layout_of(name);
    if (out_placement != nullptr) *out_placement = static_cast<int32_t>(layout.placement);
    if (out_chunks != nullptr) *out_chunks = layout.chunks;
    if (out_streams != nullptr) *out_streams = layout.streams;
    return {};
  });
}

rrfp_status rrfp_hint_write_trace(const rrfp_hint* hint, const rrfp_graph* graph,
                                  int32_t microbatches, const char* path, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (hint == nullptr) return null_handle("hint");
    if (path == nullptr) return null_argument("path");
    std::shared_ptr<const core::StepTasks> tasks;
    if (Status s = training_tasks(hint, graph, microbatches, tasks); !s.ok()) return s;
    trace::Timeline timeline;
    if (Status s = sim::draw_hint(tasks, *hint->hint, timeline); !s.ok()) return s;
    return train::replace_file(path, trace::to_trace_events(timeline));
  });
}

rrfp_status rrfp_hint_check(const rrfp_hint* hint, const rrfp_graph* graph, int32_t microbatches,
                            rrfp_order order, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (hint == nullptr) return null_handle("hint");
    if (Status s = check_enum("order", order, RRFP_ORDER_PAIRED); !s.ok()) return s;
    std::shared_ptr<const core::StepTasks> tasks;
    if (Status s = training_tasks(hint, graph, microbatches, tasks); !s.ok()) return s;
    if (order == RRFP_ORDER_STRICT || order == RRFP_ORDER_PAIRED) {
      core::Policy policy;
      policy.order = read_order(order);
      return core::check_strict(tasks, *hint->hint, policy, {});
    }
    std::vector<core::Task> list;
    for (int32_t r = 0; r < tasks->graph().ranks(); ++r) {
      if (Status s = hint->hint->order(*tasks, core::RankId(r), list); !s.ok()) return s;
    }
    return {};
  });
}
