# SPDX-License-Identifier: Apache-2.0
"""Compares the C interface with that of the last release, as abidiff sees it.

    abidiff_test.py COMPILER...            compares; exit status 1 if a program may break
    abidiff_test.py --update COMPILER...   a release: writes the interface down

What is compared is a library that has every function of the headers with an empty body: exports_test.py
sees to it that the true library exports the same, and the engine's own types, which no program
depends on, stay out of it.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import header as public_header

BASELINE = pathlib.Path(__file__).resolve().parent / "last_release.abi"
INCOMPATIBLE = 4 | 8  # bits of abidiff's exit status: a change, one that breaks programs


def surface(header):
    """The headers' functions with bodies."""
    lines = [f'#include "rrfp/{path.name}"' for path in public_header.PUBLIC]
    for declaration in header.functions.values():
        result = "" if declaration.startswith("void ") else "return 0; "
        lines.append(f"{declaration} {{ {result}}}")
    return "\n".join(lines) + "\n"


def compile_surface(compiler, include, folder, text):
    """The library, with the debug information that abidiff reads."""
    source, library = folder / "surface.c", folder / "librrfp.so"
    source.write_text(text, encoding="utf-8")
    subprocess.run([*compiler, "-std=c99", "-g", "-shared", "-fPIC", "-w", f"-I{include}",
                    f"-ffile-prefix-map={folder}=.", source, "-o", library], check=True)
    return library


def differs(library):
    """What abidiff says if a program of the last release may break."""
    done = subprocess.run(["abidiff", "--no-added-syms", BASELINE, library],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode & ~INCOMPATIBLE:
        sys.exit(f"abidiff cannot compare: exit status {done.returncode}\n{done.stdout}")
    return done.stdout if done.returncode else None


def changed(text, include, folder):
    """The headers with a field put in front of the last one of rrfp_tensor."""
    copy = folder / "include"
    shutil.copytree(include, copy)
    path = copy / "rrfp/rrfp.h"
    old = path.read_text(encoding="utf-8")
    new = re.sub(r"(  uint32_t reserved; /\* 0 \*/\n\} rrfp_tensor;)", r"  int64_t extra;\n\1", old)
    assert new != old
    path.write_text(new, encoding="utf-8")
    return copy, text


def main():
    """Compares, and makes sure that a change would be seen."""
    compiler = [a for a in sys.argv[1:] if a != "--update"]  # such as `ccache cc`
    if not compiler:
        sys.exit(__doc__)
    include = public_header.INCLUDE.parent
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text = surface(public_header.read())
        library = compile_surface(compiler, include, folder, text)
        if "--update" in sys.argv:
            subprocess.run(["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs",
                            "--out-file", BASELINE, library], check=True)
            return
        if said := differs(library):
            sys.exit(f"programs of the last release may break:\n{said}")
        other, text = changed(text, include, folder)
        if not differs(compile_surface(compiler, other, folder, text)):
            sys.exit("a struct that has changed is not noticed")


if __name__ == "__main__":
    main()
