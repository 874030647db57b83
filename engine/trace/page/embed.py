# SPDX-License-Identifier: Apache-2.0
"""Makes a C++ source of texts: embed.py OUTPUT NAME=FILE[,FILE...]...

Each NAME becomes rrfp::trace::NAME, declared in engine/trace/page_text.h; several files are joined.
"""
import pathlib
import sys

DELIMITER = "rrfp_text"
PIECE_BYTES = 16000  # of one literal: compilers need not take more than 65536


def literal(text):
    if f"){DELIMITER}\"" in text:
        sys.exit(f"embed.py: a text has the mark )" + DELIMITER)
    pieces = [text[at:at + PIECE_BYTES] for at in range(0, len(text), PIECE_BYTES)] or [""]
    return "\n".join(f'R"{DELIMITER}({piece}){DELIMITER}"' for piece in pieces)


def main():
    output, *arguments = sys.argv[1:]
    lines = ['#include "engine/trace/page_text.h"', "", "namespace rrfp::trace {", ""]
    for argument in arguments:
        name, _, files = argument.partition("=")
        text = "\n".join(pathlib.Path(f).read_text(encoding="utf-8") for f in files.split(","))
        lines += [f"const std::string_view {name} =", literal(text) + ";", ""]
    lines += ["}  // namespace rrfp::trace", ""]
    pathlib.Path(output).write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
