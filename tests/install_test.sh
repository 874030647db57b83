#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a packager and a user do: install, look at what is there, compile programs far from the
# source tree with nothing but pkg-config, run them.
#
#   install_test.sh SOURCE_DIR BUILD_DIR
set -euo pipefail

source_dir=$1
build_dir=$2
# The environment of the caller must neither help nor hinder.
unset DESTDIR MALLOC_PERTURB_ LD_LIBRARY_PATH PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR LIBRARY_PATH CPATH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  printf 'install_test: %s\n' "$*" >&2
  exit 1
}

# The value of #define NAME in version.h
version_of() {
  sed -n "s/^#define RRFP_$1 //p" "$source_dir/capi/include/rrfp/version.h"
}
abi=$(version_of ABI_VERSION)
version=$(version_of VERSION_MAJOR).$(version_of VERSION_MINOR).$(version_of VERSION_PATCH)

# Compares the files below a prefix, except the Python package, with the list of what we install.
check_files() {
  local prefix=$1 libdir=$2
  local found expected
  found=$(cd "$prefix" && find . ! -type d ! -path '*/python3*/*-packages/rrfp/*' | sed 's|^\./||' |
    LC_ALL=C sort)
  expected=$(printf '%s\n' bin/rrfp include/rrfp/{multimodal,rrfp,simulate,train,version}.h \
    "$libdir/librrfp.so"{,".$abi",".$version"} "$libdir/pkgconfig/rrfp.pc" | LC_ALL=C sort)
  diff <(echo "$expected") <(echo "$found") || fail "files below $prefix: < expected, > found"
  [ "$(readlink "$prefix/$libdir/librrfp.so")" = "librrfp.so.$abi" ] || fail "librrfp.so is no link"
  [ "$(readlink "$prefix/$libdir/librrfp.so.$abi")" = "librrfp.so.$version" ] ||
    fail "librrfp.so.$abi is no link to librrfp.so.$version"
  local binary
  for binary in "$libdir/librrfp.so" bin/rrfp; do
    if readelf --dynamic "$prefix/$binary" | grep -E 'RPATH|RUNPATH'; then
      fail "the installed $binary has a run path"
    fi
  done
  if grep -v '^prefix=' "$prefix/$libdir/pkgconfig/rrfp.pc" | grep -e "$source_dir" -e "$build_dir"; then
    fail "rrfp.pc points into the source or the build tree"
  fi
}

build_option() {
  meson introspect "$build_dir" --buildoptions |
    python3 -c 'import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == sys.argv[1]))' "$1"
}

echo "staged install of $build_dir"
meson install -C "$build_dir" --no-rebuild --quiet --destdir "$work/stage"
prefix=$(build_option prefix)
outside=$(find "$work/stage" ! -type d ! -path "$work/stage$prefix/*")
[ -z "$outside" ] || fail "installed outside of $prefix: $outside"
prefix=$work/stage$prefix
libdir=$(build_option libdir)
check_files "$prefix" "$libdir"

echo "programs outside of the tree"
mkdir "$work/program"
programs=(toy_chain train_gpt custom_hint own_stage_code simulation vision_language)
for program in "${programs[@]}"; do
  cp "$source_dir"/examples/[0-9]*_"$program"/main.c "$work/program/$program.c"
done
cd "$work/program"
export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/stage
export LD_LIBRARY_PATH=$prefix/$libdir
[ "$(pkg-config --modversion rrfp)" = "$version" ] || fail "pkg-config does not know version $version"
read -ra flags < <(pkg-config --cflags --libs rrfp)
for program in "${programs[@]}"; do
  "${CC:-cc}" -std=c99 -Wall -Wextra -Werror "$program.c" "${flags[@]}" -lm -o "$program"
done
for program in "${programs[@]/#/./}" "$prefix/bin/rrfp"; do
  # Not a pipe: grep -q may leave before ldd has written everything.
  libraries=$(ldd "$program")
  grep -q "librrfp.so.$abi => $prefix/$libdir/" <<<"$libraries" ||
    fail "$program runs with another library: $libraries"
done

echo "toy_chain"

# 2 * 3 * 5 * 7 = 210 times the mean of 1, 2, 3, 4; its derivatives.
numbers='loss 525
dw0 262.5
dw1 175
dw2 105
dw3 75
dx0 52.5
dx1 52.5
dx2 52.5
dx3 52.5'
for hint in gpipe 1f1b bf bfw zb-h1 ''; do
  echo "  ${hint:-without a hint}"
  output=$(timeout 60 ./toy_chain ${hint:+"$hint"}) || fail "hint '$hint': exit status $?"
  diff <(echo "$numbers") <(grep -E '^(loss|dw|dx)' <<<"$output") || fail "hint '$hint': wrong numbers"
  # F, and B or its two halves, for each of four microbatches.
  [ "$(grep -cE '^rank [0-3]: ([89]|1[0-2]) tasks, at most [1-4] activations held$' <<<"$output")" = 4 ] ||
    fail "hint '$hint': $output"
done

status=0
output=$(timeout 60 ./toy_chain no-such-hint 2>&1) || status=$?
[ "$status" = 2 ] || fail "an unknown hint: exit status $status, expected 2"
grep -q 'no-such-hint' <<<"$output" || fail "an unknown hint is not named: $output"

echo "train_gpt"
for _ in {1..200}; do
  echo "The quick brown fox jumps over the lazy dog."
done >text
output=$(timeout 120 ./train_gpt text 30) || fail "train_gpt: exit status $?"
loss=$(sed -n 's/^validation loss //p' <<<"$output")
# Guessing among 256 bytes costs 5.55 nats, among the 30 that occur in the text 3.4.
awk -v loss="$loss" 'BEGIN { exit !(loss > 0 && loss < 3.3) }' ||
  fail "train_gpt has learned nothing: $output"
status=0
output=$(timeout 60 ./train_gpt no-such-file 2>&1) || status=$?
[ "$status" != 0 ] || fail "train_gpt: a file that is not there: exit status 0"
grep -q 'no-such-file' <<<"$output" || fail "train_gpt: the missing file is not named: $output"

echo "custom_hint"
output=$(timeout 60 ./custom_hint "$source_dir/examples/03_custom_hint/hint.csv") ||
  fail "custom_hint: exit status $?"
# 2 * 2 * 2 times the sum of 1, 2, 3, 4, in both orders; the third rank is a row of 1F1B.
[ "$(grep -c 'sum of losses 80$' <<<"$output")" = 2 ] || fail "custom_hint: wrong numbers: $output"
obeyed=$(sed -n '/^obeyed/,$p' <<<"$output" | grep -o ' 2[FB][0-3]' | tr -d '\n')
[ "$obeyed" = ' 2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3' ] || fail "custom_hint: not obeyed: $output"
status=0
output=$(timeout 60 ./custom_hint /dev/null 2>&1) || status=$?
[ "$status" = 1 ] || fail "custom_hint: an empty file: exit status $status, expected 1"

echo "own_stage_code"
output=$(timeout 60 ./own_stage_code 300) || fail "own_stage_code: exit status $?"
awk '/^step 1:/ { first = $NF } { last = $NF } END { exit !(last > 0 && last < first / 20) }' <<<"$output" ||
  fail "own_stage_code has learned nothing: $output"

echo "simulation"
output=$(timeout 60 ./simulation language) || fail "simulation: exit status $?"
# Obeyed 1F1B is the slowest way but one, what has been chosen the fastest.
awk '/1F1B, obeyed  / { fixed = $(NF - 1) } /chosen/ { chosen = $(NF - 1) }
     END { exit !(chosen > 0 && chosen < fixed / 1.5) }' <<<"$output" || fail "simulation: $output"
status=0
output=$(timeout 60 ./simulation no-such-preset 2>&1) || status=$?
[ "$status" = 2 ] || fail "simulation: an unknown preset: exit status $status, expected 2"

echo "vision_language"
output=$(timeout 120 ./vision_language 100) || fail "vision_language: exit status $?"
[ "$(grep -c '^picture of \([a-d]\): \1$' <<<"$output")" = 4 ] ||
  fail "vision_language does not know its pictures: $output"
# The encoder has no part in a microbatch without pictures.
grep -q '^stage 0 .* 3 microbatches$' <<<"$output" || fail "vision_language: $output"
grep -q '^stage 3 .* 4 microbatches$' <<<"$output" || fail "vision_language: $output"

echo "rrfp"
output=$(timeout 60 "$prefix/bin/rrfp" --version) || fail "rrfp --version: exit status $?"
grep -qF "$version" <<<"$output" || fail "rrfp --version says $output, expected $version"
echo "all as expected"
