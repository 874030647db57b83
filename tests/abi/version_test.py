# SPDX-License-Identifier: Apache-2.0
"""The library and rrfp.pc have the version that version.h says.

    version_test.py PROGRAM PKGCONFIG_FILE   (PROGRAM is the built version.c)
"""
import pathlib
import re
import subprocess
import sys

HEADER = pathlib.Path(__file__).resolve().parents[2] / "capi/include/rrfp/version.h"


def main():
    program, pkgconfig_file = sys.argv[1:]
    numbers = dict(re.findall(r"^#define RRFP_(\w+) (\d+)$", HEADER.read_text(), re.MULTILINE))
    version = ".".join(numbers[f"VERSION_{part}"] for part in ("MAJOR", "MINOR", "PATCH"))
    expected = [version, numbers["ABI_VERSION"]]

    result = subprocess.run([program], check=True, capture_output=True, text=True)
    pkgconfig = pathlib.Path(pkgconfig_file).read_text(encoding="utf-8")
    found = re.search(r"^Version: (.*)$", pkgconfig, re.MULTILINE)[1]
    print(f"version.h {expected}, library {result.stdout.split()}, rrfp.pc {found}")
    return 0 if result.stdout.split() == expected and found == version else 1


if __name__ == "__main__":
    sys.exit(main())
