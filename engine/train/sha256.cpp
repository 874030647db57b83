// SPDX-License-Identifier: Apache-2.0
#include "engine/train/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>

namespace rrfp::train {

namespace {

// OpenSSL fails here only without memory or when it is built or configured without SHA-256: nothing
// that a caller could mend.
void require(int result) {
  if (result != 1) throw std::runtime_error("OpenSSL cannot compute SHA-256");
}

}  // namespace

struct Sha256::State {
  struct Free {
    void operator()(EVP_MD_CTX* digest) const { EVP_MD_CTX_free(digest); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  require(state_->context != nullptr ? 1 : 0);
  require(EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;

void Sha256::update(const void* data, size_t bytes) {
  require(EVP_DigestUpdate(state_->context.get(), data, bytes));
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  require(EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size));
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned int k = 0; k < size; ++k) {
    text += kDigits[digest.at(k) >> 4];
    text += kDigits[digest.at(k) & 15];
  }
  return text;
}

}  // namespace rrfp::train
