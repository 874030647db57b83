#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes src/bindings.rs from the public headers.
#
#   generate.sh [--check] [INCLUDE]
#
#   --check   change nothing; fail, with the differences, if the file is not what would be made
#   INCLUDE   folder of rrfp/rrfp.h; default: capi/include of this repository
#
# Needs the programs bindgen (Debian: bindgen; written with 0.60) and rustfmt. $BINDGEN names
# another.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
check=false
if [ "${1:-}" = --check ]; then
  check=true
  shift
fi
include=${1:-$here/../../../capi/include}
out=$here/src/bindings.rs
new=$(mktemp)
trap 'rm -f "$new"' EXIT

# No C enum stands in the headers; should one come, `newtype` is the style in which a value that
# this header does not know is not undefined behaviour. Constants are signed as statuses and enums
# are. Layout tests are kept: `cargo test` compares every size and offset with what clang found.
{
  echo '/* SPDX-License-Identifier: Apache-2.0 */'
  "${BINDGEN:-bindgen}" "$here/wrapper.h" \
    --allowlist-function 'rrfp_.*' --allowlist-type 'rrfp_.*' --allowlist-var 'RRFP_.*' \
    --default-enum-style newtype --default-macro-constant-type signed --size_t-is-usize \
    --no-rustfmt-bindings --disable-header-comment \
    -- -I"$include"
} >"$new"
rustfmt --edition 2021 --config max_width=100 "$new"

if $check; then
  if ! diff -u "$out" "$new"; then
    echo "$out is not what the headers give; run bindings/rust/rrfp-sys/generate.sh" >&2
    exit 1
  fi
else
  cp "$new" "$out"
fi
