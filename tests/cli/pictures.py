#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PNG files and manifests of tests, made without any library.

    pictures.py FOLDER    makes the folder, with a manifest and its pictures
"""
import json
import pathlib
import random
import struct
import sys
import zlib

COLOURS = {"red": (200, 30, 30), "green": (30, 180, 40), "blue": (30, 50, 210)}
SHAPES = ("square", "bar")


def png(width, height, pixel):
    """An RGB picture; pixel(x, y) is its colour."""
    rows = b"".join(b"\0" + bytes(v for x in range(width) for v in pixel(x, y))
                    for y in range(height))

    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def drawing(colour, shape, shift, size=12):
    """A coloured shape on white, moved by up to 2 pixels."""
    width, height = {"square": (7, 7), "bar": (2, 9)}[shape]

    def pixel(x, y):
        inside = 1 + shift <= x < 1 + shift + width and 1 <= y < 1 + height
        return COLOURS[colour] if inside else (255, 255, 255)
    return png(size, size, pixel)


def write_manifest(folder, samples=40):
    """Samples of no, one or more drawings and their names. Returns the path of the manifest."""
    source = random.Random(1)
    lines = []
    (folder / "pictures").mkdir()
    for number in range(samples):
        names = []
        text = ""
        for k in range(source.choice([0, 1, 1, 2, 5])):
            colour, shape = source.choice(list(COLOURS)), source.choice(SHAPES)
            name = f"pictures/{number}-{k}.png"
            (folder / name).write_bytes(drawing(colour, shape, source.randrange(3)))
            names.append(name)
            text += f"<image>{colour} {shape}\n"
        lines.append({"text": text, "images": names} if names else {"text": "red bar\n"})
    manifest = folder / "manifest.jsonl"
    write_lines(manifest, lines)
    return manifest


def write_lines(manifest, samples):
    manifest.write_text("".join(json.dumps(sample) + "\n" for sample in samples))


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    root.mkdir(parents=True)
    write_manifest(root)
