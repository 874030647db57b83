// SPDX-License-Identifier: Apache-2.0
//
// The public headers in strict C++20, with all their constants expanded and all their structs used,
// and with the warnings on that their users may have on.
#include <rrfp/multimodal.h>
#include <rrfp/rrfp.h>
#include <rrfp/simulate.h>
#include <rrfp/train.h>

#include <concepts>
#include <type_traits>

#include "tests/abi/public_names.h"

namespace {

#define INTEGER(name) static_assert(std::integral<name> && sizeof(name) == 4);
RRFP_PUBLIC_INTEGERS(INTEGER)
#undef INTEGER

#define STRUCT(name) \
  static_assert(std::is_standard_layout_v<name> && std::is_trivially_copyable_v<name>);
#define FIELD(name, field) static_assert(sizeof(name::field) > 0);
RRFP_PUBLIC_STRUCTS(STRUCT, FIELD)
#undef STRUCT
#undef FIELD

constexpr long long kConstants[] = {
#define CONSTANT(name) name,
    RRFP_PUBLIC_CONSTANTS(CONSTANT)
#undef CONSTANT
};

}  // namespace

int main() {
  for (const long long constant : kConstants) {
    const char* name = rrfp_status_name(static_cast<rrfp_status>(constant));
    if (name == nullptr || *name == '\0') return 1;
  }
  rrfp_hint* hint = nullptr;
  rrfp_error error = {};
  if (rrfp_hint_create("no such hint", &hint, &error) != RRFP_ERR_UNKNOWN_NAME) return 2;
  if (error.status != RRFP_ERR_UNKNOWN_NAME || hint != nullptr) return 3;
  if (rrfp_hint_create("1f1b", &hint, nullptr) != RRFP_OK) return 4;
  rrfp_hint_destroy(hint);
  rrfp_model* model = nullptr;
  if (rrfp_model_create_from_checkpoint("no such folder", &model, &error) != RRFP_ERR_IO) return 5;
  if (error.status != RRFP_ERR_IO || model != nullptr) return 6;
  return 0;
}
