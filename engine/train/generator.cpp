// SPDX-License-Identifier: Apache-2.0
#include "engine/train/generator.h"

#include <algorithm>
#include <cmath>

#include "kernels/math/philox.h"

namespace rrfp::train {

using core::Code;
using core::Status;
using core::TaskKind;
using model::kNoSlot;
using model::Op;
using model::OpKind;
using model::Shape;

namespace {

/// In [0, 1): draw number `place` of the stream that the seed names.
double uniform(uint64_t seed, uint64_t place) {
  // Keeps the draws apart from dropout and initial weights with the same seed.
  constexpr uint64_t kStream = 0x67656E6572617465;
  const uint64_t key = seed ^ kStream;
  const kernels::PhiloxBlock block =
      kernels::philox({{static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32), 0, 0}},
                      static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
  return static_cast<double>(block.word[0]) / 4294967296.0;
}

Status check(const Sampling& s) {
  if (!(std::isfinite(s.temperature) && s.temperature >= 0)) {
    return {Code::kInvalidArgument, "temperature is " + std::to_string(s.temperature) +
                                        "; expected a finite number, at least 0"};
  }
  if (s.top_k < 0) {
    return {Code::kInvalidArgument,
            "top_k is " + std::to_string(s.top_k) + "; expected at least 0"};
  }
  if (!(s.top_p > 0 && s.top_p <= 1)) {
    return {Code::kInvalidArgument,
            "top_p is " + std::to_string(s.top_p) + "; expected 0 < top_p <= 1"};
  }
  return {};
}

}  // namespace

Status Generator::create(const Trainer& trainer, int32_t context, std::unique_ptr<Generator>& out) {
  constexpr int32_t kContextMax = 1 << 24;
  if (context < 1 || context > kContextMax) {
    return {Code::kInvalidArgument, "context is " + std::to_string(context) + "; expected 1 to " +
                                        std::to_string(kContextMax)};
  }
  std::unique_ptr<Generator> generator(new Generator(trainer, context));
  if (Status s = generator->prepare(); !s.ok()) return s;
  out = std::move(generator);
  return {};
}

Status Generator::prepare() {
  if (!graph_.output().valid()) {
    return {Code::kBadState, "the model has no output to draw tokens from; set one first"};
  }
  needed_ = graph_.needed_for(graph_.output());
  program_ = model::Program::for_value(graph_, graph_.output());
  const auto unusable = [](const std::string& why) {
    return Status(Code::kInvalidArgument, "the model cannot generate: " + why);
  };
  for (model::ValueId input : graph_.inputs()) {
    const int32_t slot = program_.value_slot[input.index()];
    if (slot == kNoSlot) continue;
    const model::Value& value = graph_.value(input);
    if (value.type != model::ValueType::kI32 || value.shape.ndim != 2 || tokens_slot_ != kNoSlot) {
      return unusable("expected one input on the way to the output, of token ids [batch, length]");
    }
    tokens_slot_ = slot;
  }
  const Shape& output = graph_.value(graph_.output()).shape;
  if (tokens_slot_ == kNoSlot || output.ndim != 3 || output.last() == Shape::kUnknown) {
    return unusable("expected an output [batch, length, vocabulary]; it is " + to_string(output));
  }
  vocabulary_ = output.last();
  ids_max_ = vocabulary_;
  for (const model::Instruction& i : program_.code(TaskKind::kForward)) {
    const Op& op = graph_.op(i.op);
    if (op.kind == OpKind::kEmbedding) {
      ids_max_ = std::min(ids_max_, graph_.parameter(op.parameters[0]).shape[0]);
    } else if (op.kind == OpKind::kPositions) {
      const int64_t positions = graph_.parameter(op.parameters[0]).shape[0];
      if (context_ > positions) {
        return unusable("context is " + std::to_string(context_) + "; the model has " +
                        std::to_string(positions) + " positions");
      }
    } else if (op.kind == OpKind::kAttention && !op.attributes.causal) {
      return unusable("its attention looks ahead");
    } else if (op.kind == OpKind::kMean || op.kind == OpKind::kConcat ||
               op.kind == OpKind::kReshape) {
      return unusable("it has an operation that may mix positions");
    }
  }
  bound_.kernels = &trainer_.kernels();
  bound_.graph = &graph_;
  bound_.table = &trainer_.weights().table();
  bound_.pointers.assign(program_.slots.size(), nullptr);
  bound_.caches = &caches_;
  return make_caches();
}

Status Generator::make_caches() {
  caches_.assign(graph_.ops().size(), {});
  const auto width_of = [&](const Op& op) {
    const model::OpAttributes& a = op.attributes;
    const int64_t head_dim = graph_.value(op.output).shape.last() / a.heads;
    return head_dim * (a.kv_heads != 0 ? a.kv_heads : a.heads);
  };
  int64_t floats = 0;
  for (int pass = 0; pass < 2; ++pass) {  // measure, then place
    float* at = cache_memory_.data();
    for (const model::Instruction& i : program_.code(TaskKind::kForward)) {
      const Op& op = graph_.op(i.op);
      if (op.kind != OpKind::kAttention) continue;
      const int64_t size = width_of(op) * context_;
      if (pass == 0) {
        floats += 2 * size;
      } else {
        caches_[i.op.index()] = {.keys = at, .values = at + size, .length = 0};
        at += 2 * size;
      }
    }
    if (pass == 0) cache_memory_ = model::AlignedFloats(floats);
  }
  return {};
}

Status Generator::layout_for(int64_t length, const ShapePlan*& out) {
  auto found = plans_.find(length);
  if (found == plans_.end()) {
    if (plans_.size() >= ShapePlans::kPlansMax) plans_.clear();
    ShapePlan plan;
    plan.inputs.assign(graph_.inputs().size(), Shape({1, length}));
    if (Status s = graph_.infer(plan.inputs, plan.values, &needed_); !s.ok()) return s;
    plan.layouts.push_back(make_layout(graph_, program_, plan.values, trainer_.kernels()));
    found = plans_.emplace(length, std::move(plan)).first;
  }
  out = &found->second;
  return {};
}

Status Generator::read(std::span<const int32_t> tokens) {
  const auto length = static_cast<int64_t>(tokens.size());
  const ShapePlan* plan = nullptr;
  if (Status s = layout_for(length, plan); !s.ok()) return s;
  const model::Layout& layout = plan->layouts[0];
  bound_.first_position = static_cast<int64_t>(seen_.size());
  bound_.shapes = plan->values.data();
  // What attention needs with all that is in the caches is not known to the layout.
  const int64_t scratch = layout.scratch[static_cast<size_t>(TaskKind::kForward)];
  int64_t attention = 0;
  for (const model::Instruction& i : program_.code(TaskKind::kForward)) {
    const Op& op = graph_.op(i.op);
    if (op.kind != OpKind::kAttention) continue;
    model::OpRun run = describe_run(op, plan->values, trainer_.kernels());
    run.cache = &caches_[i.op.index()];
    attention = std::max(attention, rules(op).scratch_size(run));
  }
  scratch_.reserve(scratch + attention);
  bound_.scratch = scratch_.data();
  // Slots have one type of pointer; inputs are only read.
  bound_.pointers[static_cast<size_t>(tokens_slot_)] =
      reinterpret_cast<float*>(const_cast<int32_t*>(tokens.data()));
  run_task(program_, layout, TaskKind::kForward, bound_);
  for (model::KeyValueCache& cache : caches_) cache.length += cache.keys != nullptr ? length : 0;
  const float* const output = bound_.pointers[static_cast<size_t>(program_.results.front().slot)];
  logits_.assign(output + (length - 1) * vocabulary_, output + length * vocabulary_);
  seen_.insert(seen_.end(), tokens.begin(), tokens.end());
  return {};
}

Status Generator::start(std::span<const int32_t> tokens) {
  if (tokens.empty()) {
    return {Code::kInvalidArgument, "the prompt is empty; expected at least one token"};
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < ids_max_) continue;
    return {Code::kOutOfRange, "token " + std::to_string(i) + " of the prompt is " +
                                   std::to_string(tokens[i]) + "; expected 0 to " +
                                   std::to_string(ids_max_ - 1)};
  }
  const size_t count = std::min(tokens.size(), static_cast<size_t>(context_));
  seen_.clear();
  drawn_ = 0;
  for (model::KeyValueCache& cache : caches_) cache.length = 0;
  return read(tokens.last(count));
}

Status Generator::next(const Sampling& sampling, int32_t& token) {
  if (Status s = check(sampling); !s.ok()) return s;
  if (logits_.empty()) return {Code::kBadState, "nothing has been read; call start first"};
  const auto finite = [](float logit) { return std::isfinite(logit); };
  if (!std::all_of(logits_.begin(), logits_.end(), finite)) {
    return {Code::kNonFinite, "the model's output for the next token is not finite"};
  }
  const int32_t drawn = draw(sampling);
  if (static_cast<int32_t>(seen_.size()) == context_) {
    // Forgetting half at a time makes reading it again rare.
    const std::vector<int32_t> rest(seen_.end() - context_ / 2, seen_.end());
    seen_.clear();
    for (model::KeyValueCache& cache : caches_) cache.length = 0;
    if (!rest.empty()) {
      if (Status s = read(rest); !s.ok()) return s;
    }
  }
  if (Status s = read({&drawn, 1}); !s.ok()) return s;
  ++drawn_;
  token = drawn;
  return {};
}

int32_t Generator::draw(const Sampling& sampling) {
  ranked_.clear();
  for (size_t i = 0; i < std::min(logits_.size(), static_cast<size_t>(ids_max_)); ++i) {
    ranked_.emplace_back(logits_[i], static_cast<int32_t>(i));
  }
  // By falling logit; of equal ones the smaller id first.
  std::sort(ranked_.begin(), ranked_.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  if (sampling.temperature == 0) return ranked_.front().second;
  size_t count = ranked_.size();
  if (sampling.top_k > 0) count = std::min(count, static_cast<size_t>(sampling.top_k));
  const double most = ranked_.front().first;
  const auto weight = [&](size_t i) {
    return std::exp((static_cast<double>(ranked_[i].first) - most) / sampling.temperature);
  };
  double total = 0;
  for (size_t i = 0; i < count; ++i) total += weight(i);
  double kept = 0;
  size_t nucleus = 0;
  while (nucleus < count && (nucleus == 0 || kept < sampling.top_p * total)) {
    kept += weight(nucleus++);
  }
  double at = uniform(sampling.seed, drawn_) * kept;
  for (size_t i = 0; i < nucleus; ++i) {
    at -= weight(i);
    if (at < 0) return ranked_[i].second;
  }
  return ranked_[nucleus - 1].second;
}

}  // namespace rrfp::train
