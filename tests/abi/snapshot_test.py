# SPDX-License-Identifier: Apache-2.0
"""Compares the layout of the public types, the constants and the prototypes with the snapshot.

    snapshot_test.py PROGRAM            compares; PROGRAM is the built layout.c
    snapshot_test.py --update PROGRAM   writes the snapshot
"""
import difflib
import pathlib
import re
import subprocess
import sys

import header as public_header

HERE = pathlib.Path(__file__).resolve().parent
SNAPSHOT = HERE / "layout_x86_64.txt"
RELEASE = ["RRFP_VERSION_MAJOR", "RRFP_VERSION_MINOR", "RRFP_VERSION_PATCH"]


def missing_names(header):
    """What the headers have and public_names.h has not, or the other way round."""
    text = (HERE / "public_names.h").read_text(encoding="utf-8")
    fields = [f"{s}, {f}" for s, names in header.structs.items() for f in names]
    wanted = {
        "INTEGER": header.integers,
        "STRUCT": list(header.structs),
        "FIELD": fields,
        "CONSTANT": [c for c in header.constants if c not in RELEASE],
    }
    complaints = []
    for macro, names in wanted.items():
        listed = re.findall(rf"^  {macro}\(([^)]*)\)", text, re.MULTILINE)
        complaints += [f"{macro}({n}) is missing" for n in names if n not in listed]
        complaints += [f"{macro}({n}) is not in a header" for n in listed if n not in names]
        complaints += [f"{macro}({n}) stands twice" for n in set(listed) if listed.count(n) > 1]
    return complaints


def main():
    update = sys.argv[1] == "--update"
    program = sys.argv[-1]
    header = public_header.read()
    complaints = missing_names(header)
    if complaints:
        print("tests/abi/public_names.h does not list what the headers declare:")
        print("\n".join("  " + c for c in complaints))
        return 1

    result = subprocess.run([program], check=True, capture_output=True, text=True)
    lines = result.stdout.splitlines()
    lines += [f"{d};" for d in [*header.callbacks.values(), *header.functions.values()]]
    if update:
        SNAPSHOT.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return 0
    snapshot = SNAPSHOT.read_text(encoding="utf-8").splitlines() if SNAPSHOT.exists() else []
    difference = list(difflib.unified_diff(snapshot, lines, "snapshot", "headers", "", "", 0, ""))
    if not difference:
        print(f"{len(lines)} sizes, offsets, values and prototypes are those of the snapshot")
        return 0
    print("\n".join(difference))
    print("\nA line that went away or changed breaks programs built before; see capi/ABI.md. A line")
    print("that came is an addition. If it is meant to be so:")
    print(f"  python3 tests/abi/{pathlib.Path(__file__).name} --update {program}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
