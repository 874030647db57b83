// SPDX-License-Identifier: Apache-2.0
//
// The tokens of a list of files as one stream. They stay in the format of the files, however large;
// every token has been checked against the vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/core/status.h"
#include "engine/data/corpus.h"
#include "engine/data/file_bytes.h"

namespace rrfp::data {

class TokenStream {
 public:
  /// Errors: kIo and kBadData, which name the file and, for a bad token, its position in it.
  static core::Status open(Format format, std::span<const std::string> files, int32_t vocabulary,
                           std::unique_ptr<const TokenStream>& out);

  [[nodiscard]] int64_t size() const { return size_; }
  /// In nats per token.
  [[nodiscard]] double unigram_entropy() const;
  /// Copies the tokens first .. first + out.size() - 1, which must exist. Allocates nothing.
  void read(int64_t first, std::span<int32_t> out) const;

 private:
  struct Piece {
    int64_t first = 0;  // position of its first token in the stream
    FileBytes file;
  };

  explicit TokenStream(Format format) : format_(format) {}
  core::Status add_file(const std::string& path, uint32_t vocabulary);
  template <size_t Width>
  core::Status count_tokens(const std::string& path, std::span<const uint8_t> bytes,
                            uint32_t vocabulary);

  Format format_;
  int64_t size_ = 0;
  std::vector<Piece> pieces_;     // none of them empty
  std::vector<uint64_t> counts_;  // of each token id
};

}  // namespace rrfp::data
