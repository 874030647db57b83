# SPDX-License-Identifier: Apache-2.0
"""What the library exports is what the map lists is what the headers declare.

    exports_test.py LIBRARY ABI_VERSION
"""
import pathlib
import re
import subprocess
import sys

import header as public_header

CAPI = pathlib.Path(__file__).resolve().parents[2] / "capi"
NODE = "RRFP_0"
# The last four are for training: vector instructions, products of matrices, checksums, pictures.
NEEDED = {"libstdc++.so", "libgcc_s.so", "libc.so", "libm.so", "libhwy.so", "libopenblas.so",
          "libcrypto.so", "libpng16.so"}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library):
    """Name -> version of the defined dynamic symbols."""
    symbols = {}
    for line in output("nm", "--dynamic", "--defined-only", library).splitlines():
        kind, name = line.split()[-2:]
        if kind != "A":  # the version node itself
            symbols[name.split("@")[0]] = name.partition("@")[2]
    return symbols


def in_map():
    text = (CAPI / "librrfp.map").read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    body = re.fullmatch(rf"\s*{NODE} \{{\s*global:(.*)local:\s*\*;\s*\}};\s*", text, re.DOTALL)
    if not body:
        sys.exit(f"librrfp.map is not one node {NODE} with a list of names and `local: *`")
    return [name.strip() for name in body[1].split(";") if name.strip()]


def differences(left, left_name, right, right_name):
    for name in sorted(set(left) - set(right)):
        yield f"{name} is in {left_name} but not in {right_name}"
    for name in sorted(set(right) - set(left)):
        yield f"{name} is in {right_name} but not in {left_name}"


def main():
    library, abi_version = sys.argv[1:]
    symbols, listed = exported(library), in_map()
    declared = public_header.read().functions

    complaints = list(differences(listed, "the map", declared, "the headers"))
    complaints += differences(symbols, "the library", listed, "the map")
    complaints += [f"{name} has the version {version or 'none'}, expected @@{NODE}"
                   for name, version in symbols.items() if version != f"@{NODE}"]
    if listed != sorted(set(listed)):
        complaints.append("the map is not sorted or names something twice")

    dynamic = re.findall(r"\((\w+)\)\s+.*\[(.*)\]", output("readelf", "--dynamic", "--wide", library))
    soname = [value for tag, value in dynamic if tag == "SONAME"]
    if soname != [f"librrfp.so.{abi_version}"]:
        complaints.append(f"SONAME is {soname}, expected librrfp.so.{abi_version}")
    for tag, value in dynamic:
        if tag == "NEEDED" and re.sub(r"\.\d+$", "", value) not in NEEDED:
            complaints.append(f"needs {value}; expected only {', '.join(sorted(NEEDED))}")

    print("\n".join(complaints) or f"{len(symbols)} functions exported, listed and declared")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
