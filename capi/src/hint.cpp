// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <vector>

#include "capi/src/guard.h"
#include "engine/core/plan.h"
#include "engine/core/schedule_text.h"

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

Status training_tasks(const rrfp_graph* graph, int32_t microbatches,
                      std::shared_ptr<const core::StepTasks>& out) {
  std::shared_ptr<const core::StageGraph> sealed;
  if (Status s = seal(graph, sealed); !s.ok()) return s;
  core::StepShape shape;
  shape.microbatches = microbatches;
  return core::StepTasks::create(std::move(sealed), std::move(shape), out);
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

rrfp_status rrfp_hint_to_text(const rrfp_hint* hint, const rrfp_graph* graph, int32_t microbatches,
                              char* buffer, size_t capacity, size_t* out_size, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (hint == nullptr) return null_handle("hint");
    std::shared_ptr<const core::StepTasks> tasks;
    if (Status s = training_tasks(graph, microbatches, tasks); !s.ok()) return s;
    std::vector<std::vector<core::Task>> rows(static_cast<size_t>(tasks->graph().ranks()));
    for (size_t r = 0; r < rows.size(); ++r) {
      if (Status s = hint->hint->order(*tasks, core::RankId::of(r), rows[r]); !s.ok()) return s;
    }
    return put_text(core::print_schedule_text(rows), buffer, capacity, out_size);
  });
}

rrfp_status rrfp_hint_check(const rrfp_hint* hint, const rrfp_graph* graph, int32_t microbatches,
                            rrfp_order order, rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (hint == nullptr) return null_handle("hint");
    if (Status s = check_enum("order", order, RRFP_ORDER_STRICT); !s.ok()) return s;
    std::shared_ptr<const core::StepTasks> tasks;
    if (Status s = training_tasks(graph, microbatches, tasks); !s.ok()) return s;
    if (order == RRFP_ORDER_STRICT) return core::check_strict(tasks, *hint->hint, {}, {});
    std::vector<core::Task> list;
    for (int32_t r = 0; r < tasks->graph().ranks(); ++r) {
      if (Status s = hint->hint->order(*tasks, core::RankId(r), list); !s.ok()) return s;
    }
    return {};
  });
}
