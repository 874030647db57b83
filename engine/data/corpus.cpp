// SPDX-License-Identifier: Apache-2.0
//
// Which tokens are sample p. Windows are numbered by their place in the stream.
#include "engine/data/corpus.h"

#include <algorithm>
#include <cassert>

#include "engine/data/corpus_files.h"
#include "engine/data/token_stream.h"

namespace rrfp::data {

using core::Code;
using core::Status;

namespace {

constexpr int32_t kByteVocabulary = 256;

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
  if (Status s = check_validation_share(options.validation_share); !s.ok()) return s;
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
  const auto windows = static_cast<uint64_t>((corpus->token_count() - 1) / options.context);
  if (Status s =
          SplitOrder::make(windows, "windows of " + std::to_string(options.context) + " tokens",
                           options.validation_share, options.seed, corpus->order_);
      !s.ok()) {
    return {s.code(), names_of(options.paths) + ": " + s.text()};
  }
  out = std::move(corpus);
  return {};
}

int64_t Corpus::token_count() const {
  return stream_->size();
}

int64_t Corpus::window_count(Split split) const {
  return static_cast<int64_t>(order_.count(split));
}

void Corpus::sample(Split split, uint64_t position, std::span<int32_t> tokens,
                    std::span<int32_t> targets) const {
  assert(tokens.size() == static_cast<size_t>(context_) && targets.size() == tokens.size());
  const auto first = static_cast<int64_t>(order_.item(split, position)) * context_;
  stream_->read(first, tokens);
  std::copy(tokens.begin() + 1, tokens.end(), targets.begin());
  stream_->read(first + context_, targets.last(1));
}

}  // namespace rrfp::data
