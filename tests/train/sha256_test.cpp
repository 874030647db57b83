// SPDX-License-Identifier: Apache-2.0
#include "engine/train/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace rrfp::train {
namespace {

std::string digest(std::string_view text) {
  Sha256 sha256;
  sha256.update(text.data(), text.size());
  return sha256.hex();
}

// The examples of FIPS 180-4 and of its test vectors.
TEST(Sha256, KnownDigests) {
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesMakeNoDifference) {
  const std::string text(300, 'x');
  for (size_t cut = 0; cut <= text.size(); cut += 7) {
    Sha256 sha256;
    sha256.update(text.data(), cut);
    sha256.update(nullptr, 0);
    sha256.update(text.data() + cut, text.size() - cut);
    EXPECT_EQ(sha256.hex(), digest(text)) << cut;
  }
}

}  // namespace
}  // namespace rrfp::train
