/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints sizes, offsets and values of all that the public headers name, a line each.
 */
#include <rrfp/multimodal.h>
#include <rrfp/rrfp.h>
#include <rrfp/simulate.h>
#include <rrfp/train.h>
#include <stdio.h>

#include "tests/abi/public_names.h"

int main(void) {
#define INTEGER(name) \
  printf(#name " size %zu %s\n", sizeof(name), (name)-1 < (name)1 ? "signed" : "unsigned");
  RRFP_PUBLIC_INTEGERS(INTEGER)

#define STRUCT(name) printf(#name " size %zu\n", sizeof(name));
#define FIELD(name, field)                                                 \
  printf(#name "." #field " offset %zu size %zu\n", offsetof(name, field), \
         sizeof(((name *)NULL)->field));
  RRFP_PUBLIC_STRUCTS(STRUCT, FIELD)

#define CONSTANT(name) printf(#name " = %lld\n", (long long)(name));
  RRFP_PUBLIC_CONSTANTS(CONSTANT)
  return 0;
}
