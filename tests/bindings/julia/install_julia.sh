#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs Julia on a bare Debian 12, which has none: version 1.5.3 of Debian 11 runs there.
#
#   install_julia.sh [FOLDER]
#
# Prints one line: the folder to put in LD_LIBRARY_PATH for julia, and for julia only; an empty line
# if julia needs none. Julia 1.5.3 dies when an exception passes through compiled code with the
# libunwind of Debian 12, so that of Debian 11 is unpacked into FOLDER (default: below ~/.cache) and
# the system's stays. Everything else goes to standard error. Status 0, or 1 with the reason: the
# caller decides whether it can do without Julia. Needs root or sudo if julia is to be installed.
# Can be called again: it does only what is missing.
#
# The machine's apt configuration is not touched: apt works here on a copy of it in a temporary
# folder, to which the older suite is added with priority 100, below all that is installed and all
# of Debian 12. So nothing has to be undone, even if this script is killed, and no later apt command
# sees Debian 11. The mirror and its key are those that the machine uses already.
set -eu

folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/rrfp/libunwind-for-julia}
new=bookworm
old=bullseye

say() { echo "install_julia: $*" >&2; }
fail() { say "$*"; exit 1; }

# Whether julia survives an exception with this LD_LIBRARY_PATH.
works() {
  LD_LIBRARY_PATH=$1 julia --startup-file=no \
    -e 'f(x) = x > 1 ? error("no") : x; try f(2) catch; exit(0) end; exit(1)' >/dev/null 2>&1
}

# Prints the line and succeeds if there is a julia that works.
finish() {
  command -v julia >/dev/null || return 1
  if works "${LD_LIBRARY_PATH:-}"; then
    echo ""
  elif [ -e "$folder/libunwind.so.8" ] && works "$folder"; then
    echo "$folder"
  else
    return 1
  fi
}

finish && exit 0

command -v apt-get >/dev/null || fail "there is no julia, and no apt-get to install it with"
# shellcheck disable=SC1091 # a file of the machine
. /etc/os-release
[ "${VERSION_CODENAME:-}" = $new ] ||
  fail "knows how to install Julia on Debian 12 only, and this is ${PRETTY_NAME:-unknown}"
root=
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || fail "must be root, or sudo must be there"
  root="sudo -n"
fi

# What apt itself has read, whatever the form of its files: the mirror, and the file that names it.
# shellcheck disable=SC2016 # apt fills these in
found=$(apt-get indextargets --no-release-info \
  --format '$(RELEASE) $(COMPONENT) $(REPO_URI) $(SOURCESENTRY)' 'Created-By: Packages' |
  grep "^$new main " | head -n 1)
[ -n "$found" ] || fail "apt knows no source of $new main"
uri=$(echo "$found" | cut -d ' ' -f 3)
entry=$(echo "$found" | cut -d ' ' -f 4) # FILE:NUMBER
key=$(sed -n -E 's/^[Ss]igned-[Bb]y: *(\/[^ ]+).*/\1/p; s/^deb .*signed-by=(\/[^] ]+).*/\1/p' \
  "${entry%:*}" | head -n 1)

umask 022 # apt downloads as a user of its own
work=$(mktemp -d)
trap '$root rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$work"
mkdir -p "$work/sources" "$work/preferences" "$work/lists/partial" "$work/archives/partial" \
  "$work/unpacked"
list='' parts='' pins=''
eval "$(apt-config shell list Dir::Etc::SourceList/f parts Dir::Etc::SourceParts/d \
  pins Dir::Etc::PreferencesParts/d)"
if [ -e "$list" ]; then cp "$list" "$work/sources/machine.list"; fi
for file in "$parts"/*.list "$parts"/*.sources; do
  if [ -e "$file" ]; then cp "$file" "$work/sources/"; fi
done
for file in "$pins"/*; do
  if [ -f "$file" ]; then cp "$file" "$work/preferences/"; fi
done
{
  echo "Types: deb"
  echo "URIs: $uri"
  echo "Suites: $old"
  echo "Components: main"
  if [ -n "$key" ]; then echo "Signed-By: $key"; fi
} >"$work/sources/rrfp-$old.sources"
printf 'Package: *\nPin: release n=%s\nPin-Priority: 100\n' $old >"$work/preferences/rrfp-$old"

# apt-get COMMAND with the copy. Nothing of it goes to the caches of the machine.
apt_get() {
  command=$1
  shift
  $root env DEBIAN_FRONTEND=noninteractive apt-get "$command" -q -y \
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 \
    -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/sources" \
    -o Dir::Etc::PreferencesParts="$work/preferences" \
    -o Dir::State::Lists="$work/lists" -o Dir::Cache::Archives="$work/archives" \
    -o Dir::Cache::PkgCache= -o Dir::Cache::SrcPkgCache= "$@" >&2
}

say "reads the lists of packages of $new and $old"
# A list that cannot be fetched is only a warning for apt-get update.
apt_get update -o APT::Update::Error-Mode=any ||
  fail "$old cannot be read from $uri, the mirror that this machine uses"
if ! command -v julia >/dev/null; then
  apt_get install --no-install-recommends julia || fail "julia of $old cannot be installed"
fi
if [ ! -e "$folder/libunwind.so.8" ] && ! works "${LD_LIBRARY_PATH:-}"; then
  (cd "$work/archives" && apt_get download libunwind8/$old) ||
    fail "libunwind8 of $old is not there"
  dpkg -x "$work"/archives/libunwind8_*.deb "$work/unpacked"
  mkdir -p "$folder"
  cp -P "$work"/unpacked/usr/lib/*/libunwind.so.8* "$folder/"
fi
finish || fail "julia is there, but does not work"
