// SPDX-License-Identifier: Apache-2.0
//
// Calls that must be refused: what is looked at in each of them.
#pragma once

#include <gtest/gtest.h>
#include <rrfp/rrfp.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

namespace rrfp::cases {

/// An error that a call is to fill in.
struct Refusal {
  rrfp_error error;
  Refusal() { std::fill_n(reinterpret_cast<unsigned char*>(&error), sizeof error, 0xee); }

  /// Whether the status is the expected one and the text contains all of `parts`: the value that
  /// was wrong and what was expected.
  testing::AssertionResult is(rrfp_status got, rrfp_status expected,
                              std::initializer_list<std::string_view> parts) const {
    if (got != expected) {
      return testing::AssertionFailure()
             << "the status is " << rrfp_status_name(got) << "; expected "
             << rrfp_status_name(expected) << (got < 0 ? std::string("; ") + error.text : "");
    }
    if (error.status != expected) {
      return testing::AssertionFailure() << "the status in the error is " << error.status;
    }
    const std::string_view text(error.text);
    for (std::string_view part : parts) {
      if (text.find(part) != std::string_view::npos) continue;
      return testing::AssertionFailure() << "\"" << text << "\" does not say \"" << part << "\"";
    }
    return testing::AssertionSuccess();
  }
};

/// A versioned struct as a caller of a later version would have it.
template <class Struct>
struct Longer {
  Struct known;
  int64_t later_field;
};

}  // namespace rrfp::cases

/// Expects `call`, which reports to `refusal.error`, to be refused.
#define EXPECT_REFUSED(call, status, ...)                     \
  do {                                                        \
    ::rrfp::cases::Refusal refusal;                           \
    const rrfp_status got_status = (call);                    \
    EXPECT_TRUE(refusal.is(got_status, status, __VA_ARGS__)); \
  } while (false)
