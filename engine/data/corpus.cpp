// SPDX-License-Identifier: Apache-2.0
//
// Which window is sample p. Windows are numbered by their place in the stream. Of the first i
// windows, floor(i * share) validate, so they are spread evenly, and both kinds can be counted and
// found with a division; in integers, so that every machine finds the same ones.
#include "engine/data/corpus.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "engine/data/corpus_files.h"
#include "engine/data/permutation.h"
#include "engine/data/token_stream.h"

namespace rrfp::data {

using core::Code;
using core::Status;

namespace {

__extension__ using Uint128 = unsigned __int128;

constexpr int32_t kByteVocabulary = 256;
constexpr uint64_t kOne = uint64_t{1} << 32;  // a share of 1

/// floor(a * b / divisor)
uint64_t scaled(uint64_t a, uint64_t b, uint64_t divisor) {
  return static_cast<uint64_t>(static_cast<Uint128>(a) * b / divisor);
}

Status check_options(const CorpusOptions& options) {
  const auto wrong = [](const std::string& text) { return Status(Code::kInvalidArgument, text); };
  if (options.format > Format::kU32) {
    return wrong("the corpus format is " + std::to_string(static_cast<int>(options.format)) +
                 ", expected 0 (bytes), 1 (u16) or 2 (u32)");
  }
  if (options.context < 1) {
    return wrong("the context is " + std::to_string(options.context) +
                 " tokens, expected at least 1");
  }
  // Written so that it refuses NaN, too.
  if (!(options.validation_share >= 0 && options.validation_share < 1)) {
    return wrong("the validation share is " + std::to_string(options.validation_share) +
                 ", expected at least 0 and less than 1");
  }
  if (options.paths.empty()) return wrong("the corpus has no paths, expected at least one");
  const int32_t vocabulary = options.vocabulary;
  if (options.format == Format::kBytes) {
    if (vocabulary == 0 || vocabulary == kByteVocabulary) return {};
    return wrong("the vocabulary is " + std::to_string(vocabulary) +
                 ", expected 256 (or 0) as the tokens are bytes");
  }
  if (vocabulary >= 1 && vocabulary <= kVocabularyMax) return {};
  return wrong("the vocabulary is " + std::to_string(vocabulary) + ", expected 1 .. " +
               std::to_string(kVocabularyMax));
}

/// For errors that concern all files.
std::string names_of(const std::vector<std::string>& paths) {
  const std::string first = "\"" + paths.front() + "\"";
  return paths.size() == 1 ? first
                           : first + " and " + std::to_string(paths.size() - 1) + " more path" +
                                 (paths.size() == 2 ? "" : "s");
}

}  // namespace

Corpus::Corpus() = default;
Corpus::~Corpus() = default;

Status Corpus::open(const CorpusOptions& options, std::shared_ptr<const Corpus>& out) {
  if (Status s = check_options(options); !s.ok()) return s;
  std::vector<std::string> files;
  if (Status s = list_files(options.paths, files); !s.ok()) return s;
  if (files.empty()) {
    return {Code::kBadData, "there is no file below " + names_of(options.paths)};
  }
  std::shared_ptr<Corpus> corpus(new Corpus());
  corpus->vocabulary_ = options.format == Format::kBytes ? kByteVocabulary : options.vocabulary;
  corpus->context_ = options.context;
  corpus->seed_ = options.seed;
  if (Status s = TokenStream::open(options.format, files, corpus->vocabulary_, corpus->stream_);
      !s.ok()) {
    return s;
  }
  if (corpus->token_count() <= options.context) {
    return {Code::kBadData,
            names_of(options.paths) + ": " + std::to_string(files.size()) +
                (files.size() == 1 ? " file" : " files") + " with " +
                std::to_string(corpus->token_count()) + " tokens, expected at least " +
                std::to_string(int64_t{options.context} + 1) + ": a context and one more"};
  }
  corpus->unigram_entropy_ = corpus->stream_->unigram_entropy();
  if (Status s = corpus->set_windows(options.validation_share); !s.ok()) {
    return {s.code(), names_of(options.paths) + ": " + s.text()};
  }
  out = std::move(corpus);
  return {};
}

Status Corpus::set_windows(double validation_share) {
  const auto windows = static_cast<uint64_t>((token_count() - 1) / context_);
  // Rounded up: 0.7 is stored as a little less, and yet 0.7 of 10 windows should be 7.
  validation_share_ =
      static_cast<uint64_t>(std::ceil(validation_share * static_cast<double>(kOne)));
  validation_windows_ = scaled(windows, validation_share_, kOne);
  training_windows_ = windows - validation_windows_;
  if (training_windows_ > 0 && (validation_windows_ > 0 || validation_share == 0)) return {};
  const std::string without = training_windows_ == 0 ? "train" : "validate";
  return {Code::kBadData, "a validation share of " + std::to_string(validation_share) + " of " +
                              std::to_string(windows) + " windows of " + std::to_string(context_) +
                              " tokens leaves none to " + without + " with"};
}

int64_t Corpus::token_count() const {
  return stream_->size();
}

int64_t Corpus::window_count(Split split) const {
  return static_cast<int64_t>(split == Split::kTrain ? training_windows_ : validation_windows_);
}

uint64_t Corpus::validation_window(uint64_t index) const {
  // The smallest i with floor((i + 1) * share) = index + 1: i + 1 is (index + 1) / share, rounded
  // up.
  const auto numerator = static_cast<Uint128>(index + 1) * kOne + validation_share_ - 1;
  return static_cast<uint64_t>(numerator / validation_share_) - 1;
}

uint64_t Corpus::training_window(uint64_t index) const {
  // Of the first i windows, i - floor(i * share) = ceil(i * (1 - share)) train. The smallest i for
  // which ceil((i + 1) * (1 - share)) exceeds index is index / (1 - share), rounded down.
  return scaled(index, kOne, kOne - validation_share_);
}

void Corpus::sample(Split split, uint64_t position, std::span<int32_t> tokens,
                    std::span<int32_t> targets) const {
  assert(tokens.size() == static_cast<size_t>(context_) && targets.size() == tokens.size());
  uint64_t window = 0;
  if (split == Split::kTrain) {
    const Permutation order(training_windows_, seed_, position / training_windows_);
    window = training_window(order(position % training_windows_));
  } else {
    assert(validation_windows_ > 0);
    window = validation_window(position % validation_windows_);
  }
  const auto first = static_cast<int64_t>(window) * context_;
  stream_->read(first, tokens);
  std::copy(tokens.begin() + 1, tokens.end(), targets.begin());
  stream_->read(first + context_, targets.last(1));
}

}  // namespace rrfp::data
