#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the quickstarts share; they source it in the root of the repository. Not a program.

# Installs what is missing, with apt.
install_packages() {
  local missing=() package as_root=()
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      missing+=("$package")
  done
  [ ${#missing[@]} != 0 ] || return 0
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  echo "Installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# Shows the output of a command only if it fails.
quietly() {
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    rm -f "$log"
    echo "${0##*/}: this failed: $*" >&2
    exit 1
  fi
  rm -f "$log"
}

# Builds rrfp and sets `rrfp` to the command: prepare PACKAGE... These packages are needed, too.
prepare() {
  quietly install_packages build-essential meson ninja-build pkg-config libopenblas-dev libhwy-dev \
    libcli11-dev nlohmann-json3-dev libssl-dev "$@"
  local build=build-quickstart
  echo "Building in $build"
  [ -f "$build/build.ninja" ] || quietly meson setup "$build" --buildtype=release -Dtests=false
  quietly ninja -C "$build"
  # shellcheck disable=SC2034 # the quickstarts use it
  rrfp=$build/capi/cli/rrfp
}

# A name that nothing has yet: this one, or it and -2, -3 ..
free_name() {
  local name=$1 n
  for ((n = 2; ; ++n)); do
    [ -e "$name" ] || break
    name=$1-$n
  done
  echo "$name"
}
