// SPDX-License-Identifier: Apache-2.0
#include "checked.h"

#include <algorithm>
#include <vector>

namespace rrfp::cases {

void check(rrfp_status status, const rrfp_error& error) {
  if (status >= 0) return;
  if (error.status == status) throw CallFailed(error);
  rrfp_error own = {};
  own.status = status;
  throw CallFailed(own);
}

HintPtr make_hint(const char* name) {
  rrfp_error error = {};
  rrfp_hint* hint = nullptr;
  check(rrfp_hint_create(name, &hint, &error), error);
  return HintPtr(hint);
}

HintPtr make_text_hint(std::string_view text) {
  rrfp_error error = {};
  rrfp_hint* hint = nullptr;
  check(rrfp_hint_create_from_text(text.data(), text.size(), &hint, &error), error);
  return HintPtr(hint);
}

HintPtr make_random_hint(int32_t stages, int32_t microbatches, uint64_t seed) {
  Random random(seed);
  std::vector<rrfp_hint_task> tasks;
  const auto add = [&](int32_t stage, int32_t kind, int32_t microbatch) {
    rrfp_hint_task& task = tasks.emplace_back();
    task = {0, stage, kind, microbatch, random.below(1 << 20)};
  };
  for (int32_t s = 0; s < stages; ++s) {
    for (int32_t i = 0; i < microbatches; ++i) {
      add(s, RRFP_FORWARD, i);
      const bool whole = random.below(2) == 0;
      add(s, whole ? RRFP_BACKWARD : RRFP_INPUT_GRADIENT, i);
      if (!whole) add(s, RRFP_WEIGHT_GRADIENT, i);
    }
  }
  rrfp_error error = {};
  rrfp_hint* hint = nullptr;
  check(rrfp_hint_create_from_priorities(tasks.data(), tasks.size(), &hint, &error), error);
  return HintPtr(hint);
}

PipelinePtr make_pipeline(rrfp_graph* graph, const rrfp_pipeline_options* options) {
  rrfp_error error = {};
  rrfp_pipeline* pipeline = nullptr;
  check(rrfp_pipeline_create(graph, options, &pipeline, &error), error);
  return PipelinePtr(pipeline);
}

RankPtr make_rank(rrfp_pipeline* pipeline, int32_t rank) {
  rrfp_error error = {};
  rrfp_rank* handle = nullptr;
  check(rrfp_rank_create(pipeline, rank, &handle, &error), error);
  return RankPtr(handle);
}

std::string report_text(rrfp_pipeline* pipeline) {
  rrfp_error error = {};
  std::string text(1 << 16, '\0');
  size_t size = 0;
  check(rrfp_pipeline_report(pipeline, text.data(), text.size(), &size, &error), error);
  text.resize(std::min(size, text.size()) - 1);
  return text;
}

std::string task_text(const rrfp_task& task) {
  return std::to_string(task.stage) + "FBIW"[task.kind] + std::to_string(task.microbatch);
}

uint64_t Random::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace rrfp::cases
