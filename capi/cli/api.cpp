// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/api.h"

namespace rrfp::cli {
namespace {

int exit_code_of(rrfp_status status) {
  const bool is_argument = status <= -100 && status > -200;
  // Files that cannot be read or written are for the user to mend, too.
  return is_argument || status == RRFP_ERR_IO || status == RRFP_ERR_BAD_DATA ? kExitBadInput
                                                                             : kExitFailed;
}

}  // namespace

ApiFailure::ApiFailure(rrfp_status status, const rrfp_error& error)
    : Failure(exit_code_of(status),
              error.text[0] != '\0' ? &error.text[0] : rrfp_status_name(status)),
      status_(status) {}

void bad_input(const std::string& text) {
  throw Failure(kExitBadInput, text);
}

}  // namespace rrfp::cli
