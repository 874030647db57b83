/* SPDX-License-Identifier: Apache-2.0
 *
 * What generate.sh turns into src/bindings.rs: all public headers.
 */
/* In the order in which they are to be declared. */
/* clang-format off */
#include <rrfp/rrfp.h>
#include <rrfp/simulate.h>
#include <rrfp/train.h>
#include <rrfp/multimodal.h>
/* clang-format on */
