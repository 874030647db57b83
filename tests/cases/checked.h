// SPDX-License-Identifier: Apache-2.0
//
// The C API as tests like it: handles that destroy themselves, errors that throw, text as strings.
#pragma once

#include <rrfp/rrfp.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rrfp::cases {

struct Destroy {
  void operator()(rrfp_graph* graph) const { rrfp_graph_destroy(graph); }
  void operator()(rrfp_hint* hint) const { rrfp_hint_destroy(hint); }
  void operator()(rrfp_pipeline* pipeline) const { rrfp_pipeline_destroy(pipeline); }
  void operator()(rrfp_rank* rank) const { rrfp_rank_destroy(rank); }
};
using GraphPtr = std::unique_ptr<rrfp_graph, Destroy>;
using HintPtr = std::unique_ptr<rrfp_hint, Destroy>;
using PipelinePtr = std::unique_ptr<rrfp_pipeline, Destroy>;
using RankPtr = std::unique_ptr<rrfp_rank, Destroy>;

/// A call returned an error.
struct CallFailed : std::runtime_error {
  explicit CallFailed(const rrfp_error& e)
      : std::runtime_error(std::string(rrfp_status_name(e.status)) + ": " + e.text), error(e) {}
  rrfp_error error;
};

/// Thrown by stage code: the task failed.
struct StageFailed : std::runtime_error {
  StageFailed(int32_t user_code, const std::string& text)
      : std::runtime_error(text), code(user_code) {}
  int32_t code;
};

/// Throws CallFailed if `status` is an error.
void check(rrfp_status status, const rrfp_error& error);

HintPtr make_hint(const char* name);
HintPtr make_text_hint(std::string_view text);
/// Priorities drawn from a seed, for a step of training; every other backward is whole, the others
/// are cut in two.
HintPtr make_random_hint(int32_t stages, int32_t microbatches, uint64_t seed);
PipelinePtr make_pipeline(rrfp_graph* graph, const rrfp_pipeline_options* options = nullptr);
RankPtr make_rank(rrfp_pipeline* pipeline, int32_t rank);
std::string report_text(rrfp_pipeline* pipeline);
/// As in schedule text, such as 3F4.
std::string task_text(const rrfp_task& task);

/// A splitmix64 sequence.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  /// 0 .. limit - 1
  int32_t below(int32_t limit) {
    return static_cast<int32_t>(next() % static_cast<uint64_t>(limit));
  }

 private:
  uint64_t state_;
};

}  // namespace rrfp::cases
