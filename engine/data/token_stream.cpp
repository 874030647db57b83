// SPDX-License-Identifier: Apache-2.0
#include "engine/data/token_stream.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace rrfp::data {

using core::Code;
using core::Status;

namespace {

size_t width_of(Format format) {
  switch (format) {
    case Format::kBytes: return 1;
    case Format::kU16: return 2;
    case Format::kU32: return 4;
  }
  return 1;
}

/// A little-endian number, whatever the alignment and the machine.
template <size_t Width>
uint32_t load(const uint8_t* at) {
  uint32_t value = 0;
  for (size_t k = 0; k < Width; ++k) value |= static_cast<uint32_t>(at[k]) << (8 * k);
  return value;
}

template <size_t Width>
void widen(const uint8_t* from, std::span<int32_t> out) {
  for (size_t k = 0; k < out.size(); ++k) {
    out[k] = static_cast<int32_t>(load<Width>(from + k * Width));
  }
}

}  // namespace

Status TokenStream::open(Format format, std::span<const std::string> files, int32_t vocabulary,
                         std::unique_ptr<const TokenStream>& out) {
  std::unique_ptr<TokenStream> stream(new TokenStream(format));
  stream->counts_.resize(static_cast<size_t>(vocabulary));
  for (const std::string& path : files) {
    if (Status s = stream->add_file(path, static_cast<uint32_t>(vocabulary)); !s.ok()) return s;
  }
  out = std::move(stream);
  return {};
}

Status TokenStream::add_file(const std::string& path, uint32_t vocabulary) {
  FileBytes file;
  if (Status s = FileBytes::load(path, file); !s.ok()) return s;
  const auto bytes = file.bytes();
  const size_t width = width_of(format_);
  if (bytes.empty()) return {};
  if (bytes.size() % width != 0) {
    return {Code::kBadData, "\"" + path + "\" has " + std::to_string(bytes.size()) +
                                " bytes, expected a multiple of " + std::to_string(width) +
                                ", the size of a token"};
  }
  Status status;
  switch (format_) {
    case Format::kBytes: status = count_tokens<1>(path, bytes, vocabulary); break;
    case Format::kU16: status = count_tokens<2>(path, bytes, vocabulary); break;
    case Format::kU32: status = count_tokens<4>(path, bytes, vocabulary); break;
  }
  if (!status.ok()) return status;
  const auto count = static_cast<int64_t>(bytes.size() / width);
  pieces_.push_back({size_, std::move(file)});
  size_ += count;
  return {};
}

template <size_t Width>
Status TokenStream::count_tokens(const std::string& path, std::span<const uint8_t> bytes,
                                 uint32_t vocabulary) {
  for (size_t at = 0; at < bytes.size(); at += Width) {
    const uint32_t token = load<Width>(bytes.data() + at);
    if (token >= vocabulary) {
      return {Code::kBadData, "\"" + path + "\": token " + std::to_string(at / Width) + " is " +
                                  std::to_string(token) + ", expected less than the vocabulary " +
                                  std::to_string(vocabulary)};
    }
    ++counts_[token];
  }
  return {};
}

double TokenStream::unigram_entropy() const {
  const auto total = static_cast<double>(size_);
  double entropy = 0;
  for (const uint64_t count : counts_) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / total;
    entropy -= share * std::log(share);
  }
  // The logarithm of 1 is 0, but -0 would look odd in a report.
  return std::max(entropy, 0.0);
}

void TokenStream::read(int64_t first, std::span<int32_t> out) const {
  assert(first >= 0 && first + static_cast<int64_t>(out.size()) <= size_);
  if (out.empty()) return;
  const size_t width = width_of(format_);
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), first,
                                [](int64_t at, const Piece& p) { return at < p.first; }) -
               1;
  for (; !out.empty(); ++piece) {
    const auto bytes =
        piece->file.bytes().subspan(static_cast<size_t>(first - piece->first) * width);
    const size_t count = std::min(out.size(), bytes.size() / width);
    switch (format_) {
      case Format::kBytes: widen<1>(bytes.data(), out.first(count)); break;
      case Format::kU16: widen<2>(bytes.data(), out.first(count)); break;
      case Format::kU32: widen<4>(bytes.data(), out.first(count)); break;
    }
    out = out.subspan(count);
    first += static_cast<int64_t>(count);
  }
}

}  // namespace rrfp::data
