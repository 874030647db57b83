/* SPDX-License-Identifier: Apache-2.0
 *
 * What generate.sh turns into src/bindings.rs: all public headers.
 */
#include <rrfp/rrfp.h>
#include <rrfp/simulate.h>
#include <rrfp/train.h>

#include <rrfp/multimodal.h>
