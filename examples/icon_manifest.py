#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a manifest of pictures and text from the icons of a theme: examples/quickstart-multimodal.

    icon_manifest.py THEME_FOLDER MANIFEST

An icon is a PNG file whose name says what it shows: 22x22/actions/document-open.png. Its caption is
that name as words on a line of their own. Every file is in exactly one sample, so what is held out
as samples is held out as files; but a theme draws each icon in some sizes, which are files of their
own. Samples hold 1 or 2 pictures, some many more; a fourth of all samples holds none, but sentences
about icons. The same theme always gives the same manifest.
"""
import hashlib
import json
import pathlib
import random
import sys

SIZE_MAX = 48  # larger ones take longer to decode than to learn
PICTURES = {1: 50, 2: 25, 3: 9, 4: 6, 6: 5, 8: 3, 12: 2}  # how many of 100 samples have so many
TEXT_SHARE = 0.25


def icons(folder):
    """The pictures, no two of the same contents, in an order that has nothing to do with names."""
    found = {}
    for path in sorted(folder.rglob("*.png")):
        size = path.relative_to(folder).parts[0].partition("x")[0]
        if path.is_symlink() or not size.isdigit() or int(size) > SIZE_MAX:
            continue
        found.setdefault(hashlib.sha256(path.read_bytes()).digest(), path)
    return [found[key] for key in sorted(found)]


def words(path):
    return path.stem.replace("-", " ").replace("_", " ")


def captioned(paths, source):
    """Samples with pictures, until there are no more."""
    sizes = list(PICTURES)
    while paths:
        count = min(len(paths), source.choices(sizes, PICTURES.values())[0])
        taken, paths = paths[:count], paths[count:]
        text = "".join(f"<image>{words(path)}\n" for path in taken)
        yield {"text": text, "images": [str(path.resolve()) for path in taken]}


def sentences(names, count, source):
    """Samples without pictures."""
    for _ in range(count):
        chosen = source.sample(names, source.randint(1, 4))
        yield {"text": "".join(f"{name}\n" for name in chosen)}


def main():
    folder, manifest = map(pathlib.Path, sys.argv[1:])
    paths = icons(folder)
    if not paths:
        sys.exit(f"icon_manifest.py: there are no icons in {folder}")
    source = random.Random(1)
    samples = list(captioned(paths, source))
    share = TEXT_SHARE / (1 - TEXT_SHARE)
    names = sorted({words(path) for path in paths})
    samples += sentences(names, round(len(samples) * share), source)
    source.shuffle(samples)
    with open(manifest, "w", encoding="utf-8") as file:
        for sample in samples:
            file.write(json.dumps(sample) + "\n")
    without = sum("images" not in sample for sample in samples)
    print(f"{len(paths)} pictures of {len(names)} names in {len(samples)} samples, "
          f"{without} of them without pictures")


if __name__ == "__main__":
    main()
