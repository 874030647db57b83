// SPDX-License-Identifier: Apache-2.0
//
// What a model writes behind the pictures of validation samples, beside what is there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capi/cli/batches.h"
#include "capi/cli/output.h"

namespace rrfp::cli {

struct Caption {
  std::string there;
  std::string written;
};

/// Right ones among all: captions, and words, each at its place.
struct Score {
  int64_t captions = 0;
  int64_t exact = 0;
  int64_t words = 0;
  int64_t right_words = 0;

  void add(const std::string& there, const std::string& written);
  [[nodiscard]] double exact_share() const;
  [[nodiscard]] double word_share() const;
};

struct CaptionReport {
  std::vector<Caption> captions;
  Score model;
  Score unseen;  // of the model, for captions that no training sample has
  /// Guessing without a look at the pictures: the most frequent caption of the training samples,
  /// and at each place the most frequent word.
  std::string guess;
  std::string word_guess;
  Score guessed;
};

/// Captions are the text behind a picture up to the next one or the end. The model writes that of
/// the last picture of up to `count` validation samples, evenly spread over all, always taking the
/// most likely token.
CaptionReport caption(rrfp_trainer* trainer, Batches& batches, int32_t context, int64_t count);

Json captions_json(const CaptionReport& report);
std::string captions_text(const CaptionReport& report);

}  // namespace rrfp::cli
