// SPDX-License-Identifier: Apache-2.0
#include "toy_chain.h"

#include <numeric>

namespace rrfp::cases {
namespace {

std::vector<std::vector<float>> one_each(const std::vector<float>& samples) {
  std::vector<std::vector<float>> out;
  for (float x : samples) out.push_back({x});
  return out;
}

testing::AssertionResult equal(const std::string& what, double got, double expected) {
  if (got == expected) return testing::AssertionSuccess();
  return testing::AssertionFailure() << what << " is " << got << "; expected " << expected;
}

}  // namespace

ToyChain::ToyChain(std::vector<float> weights, std::vector<std::vector<float>> samples)
    : w(std::move(weights)),
      x(std::move(samples)),
      flags(w.size(), 0),
      activation_bytes(w.size(), 0) {
  clear();
}

ToyChain::ToyChain(std::vector<float> weights, const std::vector<float>& samples)
    : ToyChain(std::move(weights), one_each(samples)) {}

ToyChain ToyChain::t1() {
  ToyChain chain({2, 3, 5, 7}, std::vector<float>{1, 2, 3, 4});
  chain.seed = 0.25f;
  return chain;
}

void ToyChain::build(ToyPipeline& toy) {
  for (int32_t s = 0; s < stages(); ++s) {
    const auto at = static_cast<size_t>(s);
    const uint32_t loss = s == stages() - 1 ? RRFP_STAGE_LOSS : 0;
    toy.add_stage(code(s), flags[at] | loss, -1, activation_bytes[at]);
    if (s > 0) toy.add_edge(s - 1, s);
  }
}

void ToyChain::build(ToyPipeline& toy, rrfp_placement placement) {
  build(toy);
  toy.place(placement);
}

void ToyChain::feed(std::vector<std::vector<float>> samples) {
  x = std::move(samples);
  clear();
}

void ToyChain::clear() {
  losses.assign(x.size(), 0);
  dw.assign(w.size(), 0);
  dx.clear();
  for (const auto& samples : x) dx.emplace_back(samples.size(), 0.0f);
  samples_seen.assign(w.size(), std::vector<int64_t>(x.size(), -1));
}

/// What arrived from the next stage, or what the loss starts with.
std::vector<float> ToyChain::gradient(const TaskContext& context) const {
  const int32_t s = context.task.stage;
  if (s == stages() - 1) {
    return std::vector<float>(x[static_cast<size_t>(context.task.microbatch)].size(), seed);
  }
  const auto values = context.floats(s);
  return {values.begin(), values.end()};
}

StageCode ToyChain::code(int32_t s) {
  const auto at = static_cast<size_t>(s);
  const auto input = [this, s](const TaskContext& context) {
    return s > 0 ? context.floats(s - 1)
                 : std::span<const float>(x[static_cast<size_t>(context.task.microbatch)]);
  };
  StageCode code;
  code.forward = [this, at, s, input](TaskContext& context) {
    const auto i = static_cast<size_t>(context.task.microbatch);
    const auto in = input(context);
    samples_seen[at][i] = static_cast<int64_t>(in.size());
    if (s == stages() - 1) {
      for (float value : in) losses[i] += w[at] * value;
      return;
    }
    rrfp_tensor out = context.alloc(RRFP_F32, {static_cast<int64_t>(in.size())});
    out.flags = RRFP_TENSOR_WANTS_GRADIENT;
    for (size_t k = 0; k < in.size(); ++k) static_cast<float*>(out.data)[k] = w[at] * in[k];
    context.put(s, out);
  };
  code.input_gradient = [this, at, s](TaskContext& context) {
    std::vector<float> out = gradient(context);
    for (float& value : out) value *= w[at];
    if (s == 0) {
      dx[static_cast<size_t>(context.task.microbatch)] = out;
      return;
    }
    rrfp_tensor tensor = {};  // memory of ours, to be copied
    tensor.data = out.data();
    tensor.dtype = RRFP_F32;
    tensor.ndim = 1;
    tensor.shape[0] = static_cast<int64_t>(out.size());
    context.put(s - 1, tensor);
  };
  code.weight_gradient = [this, at, input](TaskContext& context) {
    const std::vector<float> g = gradient(context);
    const auto in = input(context);
    for (size_t k = 0; k < in.size(); ++k) dw[at] += in[k] * g[k];
  };
  return code;
}

float ToyChain::loss_sum() const {
  return std::accumulate(losses.begin(), losses.end(), 0.0f);
}

testing::AssertionResult ToyChain::right_losses() const {
  double product = 1;
  for (float value : w) product *= value;
  for (size_t i = 0; i < x.size(); ++i) {
    const double sum = std::accumulate(x[i].begin(), x[i].end(), 0.0);
    auto result = equal("the loss of microbatch " + std::to_string(i), losses[i], product * sum);
    if (!result) return result;
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult ToyChain::right(int times) const {
  double product = 1;
  for (float value : w) product *= value;
  double sum = 0;
  for (const auto& samples : x) sum = std::accumulate(samples.begin(), samples.end(), sum);
  if (times == 1) {  // losses add up over steps, and so would have to be fed apart
    if (auto result = right_losses(); !result) return result;
  }
  for (size_t s = 0; s < w.size(); ++s) {
    const bool frozen = (flags[s] & RRFP_STAGE_FROZEN) != 0;
    const double expected = frozen ? 0 : sum * seed * times * product / w[s];
    auto result = equal("dw" + std::to_string(s), dw[s], expected);
    if (!result) return result;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    for (float value : dx[i]) {
      auto result = equal("dx of microbatch " + std::to_string(i), value, product * seed);
      if (!result) return result;
    }
  }
  return testing::AssertionSuccess();
}

namespace {

testing::AssertionResult adds_up(const rrfp_step_report& r) {
  const int64_t parts[] = {r.busy_ns,        r.wait_input_ns,  r.wait_memory_ns,
                           r.wait_credit_ns, r.wait_policy_ns, r.other_ns};
  int64_t sum = 0;
  for (int64_t part : parts) {
    if (part < 0) return testing::AssertionFailure() << "a share of the time is " << part << " ns";
    sum += part;
  }
  return equal("the sum of all shares of the time", static_cast<double>(sum),
               static_cast<double>(r.total_ns));
}

}  // namespace

testing::AssertionResult done(const StepResult& result) {
  if (!result.ok()) return testing::AssertionFailure() << result.text();
  for (const RankResult& rank : result.ranks) {
    if (auto right = adds_up(rank.report); !right) return right;
    const auto tasks = static_cast<double>(rank.tasks.size());
    auto right = equal("tasks reported", static_cast<double>(rank.report.tasks), tasks);
    if (!right) return right;
  }
  if (result.seconds() < kDeadlineSeconds) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "the step took " << result.seconds() << " s";
}

}  // namespace rrfp::cases
