// SPDX-License-Identifier: Apache-2.0
//
// Token sequences for language models, read from files: text as bytes, or pre-tokenised binary
// files. A corpus is one stream of tokens, cut into windows of `context` tokens; window i predicts
// tokens 1 .. context of its own start, so it reads one token past its end.
//
// Everything is a function of the options and a position: the samples of a run do not depend on
// stages, ranks or timing, and a run that resumes at a position sees what it would have seen.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/core/status.h"
#include "engine/data/split.h"

namespace rrfp::data {

enum class Format : uint8_t {
  kBytes,  // any file; a token is a byte, the vocabulary is 256
  kU16,    // little-endian token ids without a header
  kU32,
};

/// Bounds the table of token counts that open() makes.
constexpr int32_t kVocabularyMax = 1 << 24;

struct CorpusOptions {
  Format format = Format::kBytes;
  /// Files, and folders, which stand for the files below them. Read in the order given, files of a
  /// folder in the order of their paths. A file that is reached twice (links) counts once; what
  /// is neither a file nor a folder is passed over below a folder and an error in this list.
  std::vector<std::string> paths;
  /// Token formats: ids are 0 .. vocabulary - 1, at most kVocabularyMax. Bytes: 0 or 256.
  int32_t vocabulary = 0;
  int32_t context = 0;  // tokens of a sample
  /// Share of the windows that validate, spread evenly over the stream; 0 <= share < 1. Rounded up
  /// to a multiple of 2^-32, so that a tenth of ten windows is one.
  double validation_share = 0.1;
  uint64_t seed = 0;  // of the order of the training windows
};

class TokenStream;

class Corpus {
 public:
  /// Errors name the file and, where there is one, the position: kIo (missing, unreadable),
  /// kBadData (no data at all, fewer tokens than one window or none left to train or to validate
  /// with although a share was asked for, a file whose size is no multiple of a token, a token
  /// outside of the vocabulary), kInvalidArgument. Large files are mapped, not read: they must not
  /// be truncated while the corpus is in use.
  static core::Status open(const CorpusOptions& options, std::shared_ptr<const Corpus>& out);

  [[nodiscard]] int32_t vocabulary() const { return vocabulary_; }
  [[nodiscard]] int32_t context() const { return context_; }
  [[nodiscard]] int64_t token_count() const;
  [[nodiscard]] int64_t window_count(Split split) const;
  /// Of the distribution of single tokens in the whole stream, in nats per token: what a model
  /// reaches that knows nothing but how frequent each token is.
  [[nodiscard]] double unigram_entropy() const { return unigram_entropy_; }

  /// Writes `context` tokens and the tokens that follow each of them. Training: position p is
  /// sample p of an endless run through the windows, each epoch in another order (a keyed
  /// permutation, so that no list of windows is held). Validation: window p mod window_count, which
  /// must not be 0. Both spans have `context` elements and do not overlap.
  /// Allocates nothing. Any thread.
  void sample(Split split, uint64_t position, std::span<int32_t> tokens,
              std::span<int32_t> targets) const;

  ~Corpus();
  Corpus(const Corpus&) = delete;
  Corpus& operator=(const Corpus&) = delete;

 private:
  Corpus();

  std::unique_ptr<const TokenStream> stream_;
  int32_t vocabulary_ = 0;
  int32_t context_ = 0;
  double unigram_entropy_ = 0;
  SplitOrder order_;
};

}  // namespace rrfp::data
