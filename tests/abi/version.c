/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the versions of the library that it runs with: version_test.py compares them.
 */
#include <rrfp/rrfp.h>
#include <stdio.h>

int main(void) {
  const unsigned version = rrfp_version();
  printf("%u.%u.%u %u\n", version / 1000000u, version / 1000u % 1000u, version % 1000u,
         (unsigned)rrfp_abi_version());
  return 0;
}
