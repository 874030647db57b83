// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 of a stream of bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace rrfp::train {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(const void* data, size_t bytes);
  /// 64 hexadecimal digits. Ends the stream.
  [[nodiscard]] std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rrfp::train
