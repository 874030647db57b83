// SPDX-License-Identifier: Apache-2.0
#include "engine/train/generator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

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

Status unusable(const std::string& why) {
  return {Code::kInvalidArgument, "the model cannot generate: " + why};
}
Status empty_prompt() {
  return {Code::kInvalidArgument, "the prompt is empty; expected at least one token"};
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
  is_cached_.assign(graph_.ops().size(), false);
  program_ = model::Program::for_value(graph_, graph_.output());
  if (Status s = find_inputs(); !s.ok()) return s;
  if (Status s = check_operations(); !s.ok()) return s;
  bound_.kernels = &trainer_.kernels();
  bound_.graph = &graph_;
  bound_.table = &trainer_.weights().table();
  bound_.pointers.assign(program_.slots.size(), nullptr);
  bound_.caches = &caches_;
  make_caches();
  return {};
}

Status Generator::find_inputs() {
  std::vector<size_t> read;
  for (size_t k = 0; k < graph_.inputs().size(); ++k) {
    if (program_.value_slot[graph_.inputs()[k].index()] != kNoSlot) read.push_back(k);
  }
  with_pictures_ = read.size() > 1 && model::has_vision_language_inputs(graph_);
  const auto is_of_ids = [&](size_t input) {
    const model::Value& value = graph_.value(graph_.inputs()[input]);
    return value.type == model::ValueType::kI32 && value.shape.ndim == 2;
  };
  if (with_pictures_) {
    tokens_input_ = model::kTokens;
  } else if (read.size() == 1 && is_of_ids(read.front())) {
    tokens_input_ = read.front();
  } else {
    return unusable(
        "expected one input on the way to the output, of token ids [batch, length], or those of "
        "the vision-language model");
  }
  const Shape& output = graph_.value(graph_.output()).shape;
  if (output.ndim != 3 || output.last() == Shape::kUnknown) {
    return unusable("expected an output [batch, length, vocabulary]; it is " + to_string(output));
  }
  vocabulary_ = output.last();
  return {};
}

/// Looks at what is computed of tokens: there, a place may know only of those before it. What is
/// computed of pictures alone comes with the prompt and stays.
Status Generator::check_operations() {
  ids_max_ = vocabulary_;
  positions_max_ = std::numeric_limits<int32_t>::max();
  std::vector<bool> of_tokens(graph_.values().size(), false);
  for (const model::ValueId input : graph_.inputs()) {
    of_tokens[input.index()] = graph_.value(input).type == model::ValueType::kI32;
  }
  for (const model::Instruction& i : program_.code(TaskKind::kForward)) {
    const Op& op = graph_.op(i.op);
    const auto is_of_tokens = [&](model::ValueId v) { return of_tokens[v.index()]; };
    if (std::none_of(op.inputs.begin(), op.inputs.end(), is_of_tokens)) continue;
    of_tokens[op.output.index()] = true;
    if (with_pictures_ && !reads_as_expected(op)) {
      return unusable(describe(graph_, op) +
                      " does not read the inputs of the vision-language model as that one does: "
                      "embeddings \"tokens\" or \"positions\", rotary \"positions\", attention "
                      "\"segments\", merge_rows \"sources\"");
    }
    if (op.kind == OpKind::kEmbedding) {
      const int64_t rows = graph_.parameter(op.parameters[0]).shape[0];
      const bool tokens = op.inputs[0] == graph_.inputs()[tokens_input_];
      if (tokens) ids_max_ = std::min(ids_max_, rows);
      if (with_pictures_ && op.inputs[0] == graph_.inputs()[model::kPositions]) {
        positions_max_ = std::min(positions_max_, rows);
      }
    } else if (op.kind == OpKind::kPositions) {
      positions_max_ = std::min(positions_max_, graph_.parameter(op.parameters[0]).shape[0]);
    } else if (op.kind == OpKind::kAttention) {
      if (!op.attributes.causal) return unusable("its attention looks ahead");
      is_cached_[i.op.index()] = true;
    } else if (op.kind == OpKind::kMean || op.kind == OpKind::kConcat ||
               op.kind == OpKind::kReshape || op.kind == OpKind::kPatches ||
               (op.kind == OpKind::kMergeRows && is_of_tokens(op.inputs[1]))) {
      return unusable("it has an operation that may mix positions");
    }
  }
  if (context_ <= positions_max_) return {};
  return unusable("context is " + std::to_string(context_) + "; the model has " +
                  std::to_string(positions_max_) + " positions");
}

/// The text behind a prompt continues its last segment, and only that one is kept: an operation
/// that took the ids for something else, or the place in the sequence for that in the segment,
/// would go on wrongly or read what is not there.
bool Generator::reads_as_expected(const Op& op) const {
  std::vector<int32_t> expected;
  switch (op.kind) {
    case OpKind::kEmbedding: expected = {model::kTokens, model::kPositions}; break;
    case OpKind::kRotary: expected = {model::kPositions}; break;
    case OpKind::kAttention: expected = {model::kSegments}; break;
    case OpKind::kMergeRows: expected = {model::kSources}; break;
    case OpKind::kPositions: return false;
    default: break;
  }
  bool found = expected.empty();
  for (const model::ValueId each : op.inputs) {
    const model::Value& value = graph_.value(each);
    if (value.type != model::ValueType::kI32) continue;
    if (std::find(expected.begin(), expected.end(), value.input) == expected.end()) return false;
    found = true;
  }
  return found;
}

int64_t Generator::cache_width(const Op& op) const {
  const model::OpAttributes& a = op.attributes;
  const int64_t head_dim = graph_.value(op.output).shape.last() / a.heads;
  return head_dim * (a.kv_heads != 0 ? a.kv_heads : a.heads);
}

void Generator::make_caches() {
  caches_.assign(graph_.ops().size(), {});
  int64_t floats = 0;
  for (int pass = 0; pass < 2; ++pass) {  // measure, then place
    float* at = cache_memory_.data();
    for (size_t o = 0; o < caches_.size(); ++o) {
      if (!is_cached_[o]) continue;
      const int64_t size = cache_width(graph_.ops()[o]) * context_;
      if (pass == 0) {
        floats += 2 * size;
      } else {
        caches_[o] = {.keys = at, .values = at + size, .length = 0};
        at += 2 * size;
      }
    }
    if (pass == 0) cache_memory_ = model::AlignedFloats(floats);
  }
}

void Generator::forget() {
  for (model::KeyValueCache& cache : caches_) cache.length = 0;
  seen_.clear();
  logits_.clear();
  seen_pictures_ = false;
  segment_ = 0;
  position_ = 0;
}

Status Generator::plan_for(const Arrays& inputs, const ShapePlan*& out) {
  std::vector<int64_t> key;
  for (const InputArray& input : inputs) {
    key.push_back(input.shape.ndim);
    key.insert(key.end(), input.shape.extents().begin(), input.shape.extents().end());
  }
  auto found = plans_.find(key);
  if (found == plans_.end()) {
    if (plans_.size() >= ShapePlans::kPlansMax) plans_.clear();
    ShapePlan plan;
    for (const InputArray& input : inputs) plan.inputs.push_back(input.shape);
    if (Status s = graph_.infer(plan.inputs, plan.values, &needed_); !s.ok()) return s;
    plan.layouts.push_back(make_layout(graph_, program_, plan.values, trainer_.kernels()));
    found = plans_.emplace(std::move(key), std::move(plan)).first;
  }
  out = &found->second;
  return {};
}

void Generator::reserve_scratch(const ShapePlan& plan) {
  // What attention needs with all that is in the caches is not known to the layout.
  const int64_t scratch = plan.layouts[0].scratch[static_cast<size_t>(TaskKind::kForward)];
  int64_t attention = 0;
  for (size_t o = 0; o < caches_.size(); ++o) {
    if (!is_cached_[o]) continue;
    const Op& op = graph_.ops()[o];
    model::OpRun run = describe_run(op, plan.values, trainer_.kernels());
    run.cache = &caches_[o];
    attention = std::max(attention, rules(op).scratch_size(run));
  }
  scratch_.reserve(scratch + attention);
  bound_.scratch = scratch_.data();
}

void Generator::read(const Arrays& inputs, const ShapePlan& plan) {
  const InputArray& tokens = inputs[tokens_input_];
  const int64_t length = tokens.shape.last();
  bound_.first_position = static_cast<int64_t>(seen_.size());
  bound_.shapes = plan.values.data();
  reserve_scratch(plan);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const int32_t slot = program_.value_slot[graph_.inputs()[k].index()];
    if (slot == kNoSlot) continue;
    // Slots have one type of pointer; inputs are only read.
    bound_.pointers[static_cast<size_t>(slot)] =
        static_cast<float*>(const_cast<void*>(inputs[k].data));
  }
  run_task(program_, plan.layouts[0], TaskKind::kForward, bound_);
  for (size_t o = 0; o < caches_.size(); ++o) caches_[o].length += is_cached_[o] ? length : 0;
  const float* const output = bound_.pointers[static_cast<size_t>(program_.results.front().slot)];
  logits_.assign(output + (length - 1) * vocabulary_, output + length * vocabulary_);
  const auto* const ids = static_cast<const int32_t*>(tokens.data);
  seen_.insert(seen_.end(), ids, ids + length);
}

Status Generator::read_text(std::span<const int32_t> tokens) {
  Arrays inputs(graph_.inputs().size());
  const Shape shape = {1, static_cast<int64_t>(tokens.size())};
  const auto set = [&](size_t k, std::span<const int32_t> data) {
    inputs[k] = {.shape = shape, .type = model::ValueType::kI32, .data = data.data()};
  };
  set(tokens_input_, tokens);
  std::vector<int32_t> segments;
  std::vector<int32_t> positions;
  std::vector<int32_t> sources;
  if (with_pictures_) {
    segments.assign(tokens.size(), segment_);
    sources.assign(tokens.size(), -1);
    positions.resize(tokens.size());
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(position_));
    set(model::kSegments, segments);
    set(model::kPositions, positions);
    set(model::kSources, sources);
    inputs[model::kImages].shape = graph_.value(graph_.inputs()[model::kImages]).shape;
    // No pictures, which may have any size.
    for (int32_t d = 0; d < inputs[model::kImages].shape.ndim; ++d) {
      int64_t& extent = inputs[model::kImages].shape[d];
      if (d == 0 || extent == Shape::kUnknown) extent = 0;
    }
  }
  const ShapePlan* plan = nullptr;
  if (Status s = plan_for(inputs, plan); !s.ok()) return s;
  read(inputs, *plan);
  position_ += shape.last();
  return {};
}

Status Generator::start(std::span<const int32_t> tokens) {
  if (tokens.empty()) return empty_prompt();
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < ids_max_) continue;
    return {Code::kOutOfRange, "token " + std::to_string(i) + " of the prompt is " +
                                   std::to_string(tokens[i]) + "; expected 0 to " +
                                   std::to_string(ids_max_ - 1)};
  }
  const size_t count = std::min(tokens.size(), static_cast<size_t>(context_));
  forget();
  drawn_ = 0;
  return read_text(tokens.last(count));
}

Status Generator::start_inputs(std::span<const InputArray> inputs) {
  if (!with_pictures_) {
    return {Code::kInvalidArgument,
            "the output does not depend on the inputs of the vision-language model; give it "
            "tokens"};
  }
  Arrays prompt(inputs.begin(), inputs.end());
  const Shape& shape = prompt[model::kTokens].shape;
  if (shape.ndim != 2 || shape[0] != 1) {
    return {Code::kTensorMismatch,
            "input \"tokens\" has shape " + to_string(shape) + "; expected one sequence, [1, ?]"};
  }
  if (shape[1] == 0) return empty_prompt();
  if (shape[1] > context_) {
    return {Code::kInvalidArgument, "the prompt has " + std::to_string(shape[1]) +
                                        " positions; the context is " + std::to_string(context_)};
  }
  prompt[model::kTargets] = prompt[model::kTokens];  // not looked at, and so not checked
  for (size_t k = 0; k < model::kImages; ++k) {
    if (prompt[k].shape == shape) continue;
    return {Code::kTensorMismatch, std::string("input \"") + model::kVisionLanguageNames[k] +
                                       "\" has shape " + to_string(prompt[k].shape) +
                                       "; expected that of the tokens, " + to_string(shape)};
  }
  const ShapePlan* plan = nullptr;
  if (Status s = plan_for(prompt, plan); !s.ok()) return s;
  if (Status s = InputChecks(graph_, &needed_).check(0, prompt, *plan); !s.ok()) return s;
  forget();
  drawn_ = 0;
  read(prompt, *plan);
  keep_last_segment(prompt);
  return {};
}

void Generator::keep_last_segment(const Arrays& prompt) {
  const auto ids = [&](size_t input) {
    return std::span(static_cast<const int32_t*>(prompt[input].data), seen_.size());
  };
  const std::span<const int32_t> segments = ids(model::kSegments);
  segment_ = segments.back();
  position_ = int64_t{ids(model::kPositions).back()} + 1;
  size_t first = segments.size() - 1;
  while (first > 0 && segments[first - 1] == segment_) --first;
  const std::span<const int32_t> sources = ids(model::kSources).subspan(first);
  seen_pictures_ = std::any_of(sources.begin(), sources.end(), [](int32_t s) { return s >= 0; });
  const auto forgotten = static_cast<int64_t>(first);
  for (size_t o = 0; o < caches_.size(); ++o) {
    if (!is_cached_[o]) continue;
    const int64_t width = cache_width(graph_.ops()[o]);
    model::KeyValueCache& cache = caches_[o];
    for (float* kept : {cache.keys, cache.values}) {
      std::copy(kept + forgotten * width, kept + cache.length * width, kept);
    }
    cache.length -= forgotten;
  }
  seen_.erase(seen_.begin(), seen_.begin() + forgotten);
}

/// Forgetting half at a time makes reading it again rare.
Status Generator::make_room() {
  const auto count = static_cast<int64_t>(seen_.size());
  if (count < context_ && position_ < positions_max_) return {};
  if (seen_pictures_) {
    return {Code::kBadState,
            "the context of " + std::to_string(std::min<int64_t>(context_, positions_max_)) +
                " positions is full, and a sequence with pictures cannot forget its beginning; "
                "start again"};
  }
  const std::vector<int32_t> rest(seen_.end() - std::min<int64_t>(count, context_ / 2),
                                  seen_.end());
  forget();
  return rest.empty() ? Status() : read_text(rest);
}

Status Generator::next(const Sampling& sampling, int32_t& token) {
  if (Status s = check(sampling); !s.ok()) return s;
  if (logits_.empty()) return {Code::kBadState, "nothing has been read; call start first"};
  const auto finite = [](float logit) { return std::isfinite(logit); };
  if (!std::all_of(logits_.begin(), logits_.end(), finite)) {
    return {Code::kNonFinite, "the model's output for the next token is not finite"};
  }
  const int32_t drawn = draw(sampling);
  if (Status s = make_room(); !s.ok()) return s;
  if (Status s = read_text({&drawn, 1}); !s.ok()) return s;
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
