/* SPDX-License-Identifier: Apache-2.0
 *
 * The version of rrfp. The build reads these lines, so they stand here and nowhere else.
 */
#ifndef RRFP_VERSION_H
#define RRFP_VERSION_H

#define RRFP_VERSION_MAJOR 0
#define RRFP_VERSION_MINOR 1
#define RRFP_VERSION_PATCH 0

/* Grows by one with every incompatible change of the ABI; it is the number in the SONAME. */
#define RRFP_ABI_VERSION 0

#endif /* RRFP_VERSION_H */
