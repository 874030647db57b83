#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the study and writes its tables and figures into engine/sim.

    tests/bench/study.py --build build [TABLE ...]

STUDY.md says where each table goes: between `<!-- table NAME -->` and `<!-- end -->`. Figures are
drawn from the same numbers. Without names all tables are made, which takes about an hour.
"""
import argparse
import csv
import io
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
STUDY = HERE.parent.parent / "engine/sim/STUDY.md"
COLOURS = ("#4269d0", "#efb118", "#ff725c", "#3ca951", "#6cc5b0", "#a463f2")
# table: (x axis, title, x by value and not by place)
FIGURES = {
    "jitter": ("sigma of the noise of tasks", "Makespan / bound, equal sizes, cap 1", True),
    "caps": ("memory, in multiples of 1F1B's", "Makespan / bound of auto", False),
    "late-reports": ("arrivals become known so many ms late", "Makespan / bound of rf-m", False),
}


def run_table(build, name, seeds):
    """The rows of a table, its header first."""
    command = [pathlib.Path(build) / "tests/bench/study", name]
    if seeds:
        command += ["--seeds", str(seeds)]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return list(csv.reader(io.StringIO(text)))


def to_markdown(rows):
    """A table of Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)


def replace_table(name, rows):
    """Puts the table where STUDY.md wants it."""
    text = STUDY.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- table {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"study.py: {STUDY} has no place for table {name}")
    text = pattern.sub(lambda m: m[1] + to_markdown(rows) + "\n" + m[2], text)
    STUDY.write_text(text, encoding="utf-8")


def draw(name, rows):
    """A line for each column of the table, as an SVG beside STUDY.md."""
    x_title, title, by_value = FIGURES[name]
    width, height, left, right, top, bottom = 720, 360, 60, 150, 40, 50
    header, body = rows[0], rows[1:]
    series = {label: [float(row[k + 1]) if row[k + 1] != "-" else None for row in body]
              for k, label in enumerate(header[1:])}
    values = [v for line in series.values() for v in line if v is not None]
    low, high = 1.0, max(values)
    xs = [float(row[0]) for row in body] if by_value else list(range(len(body)))

    def px(x):
        return left + (x - xs[0]) / (xs[-1] - xs[0]) * (width - left - right)

    def py(y):
        return height - bottom - (y - low) / (high - low) * (height - top - bottom)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             f'width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="#fff"/>',
             f'<text x="{left}" y="22" font-size="15" font-weight="600">{title}</text>',
             f'<text x="{(left + width - right) / 2}" y="{height - 10}" text-anchor="middle">'
             f'{x_title}</text>']
    for k in range(6):
        y = low + (high - low) * k / 5
        parts.append(f'<line x1="{left}" x2="{width - right}" y1="{py(y):.1f}" y2="{py(y):.1f}" '
                     'stroke="#ddd"/>'
                     f'<text x="{left - 6}" y="{py(y) + 4:.1f}" text-anchor="end">{y:.2f}</text>')
    last_label = -width
    for x, row in zip(xs, body):
        if px(x) - last_label < 32:
            continue
        last_label = px(x)
        parts.append(f'<text x="{px(x):.1f}" y="{height - bottom + 16}" text-anchor="middle">'
                     f'{row[0]}</text>')
    ends = sorted(((line[-1], label) for label, line in series.items() if line[-1] is not None))
    label_y = height
    places = {}
    for value, label in ends:  # from the lowest line up, so that labels do not overlap
        label_y = min(py(value) + 4, label_y - 14)
        places[label] = label_y
    for (label, line), colour in zip(series.items(), COLOURS):
        points = " ".join(f"{px(x):.1f},{py(v):.1f}" for x, v in zip(xs, line) if v is not None)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" '
                     'stroke-width="2"/>')
        parts.append(f'<text x="{width - right + 8}" y="{places[label]:.1f}" fill="{colour}">'
                     f'{label}</text>')
    parts.append("</svg>\n")
    (STUDY.parent / f"study-{name}.svg").write_text("\n".join(parts), encoding="utf-8")


def main():
    """Makes the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--seeds", type=int, default=0, help="0 = what the study takes")
    parser.add_argument("tables", nargs="*")
    options = parser.parse_args()
    known = re.findall(r"<!-- table (\S+) -->", STUDY.read_text(encoding="utf-8"))
    for name in options.tables or known:
        rows = run_table(options.build, name, options.seeds)
        replace_table(name, rows)
        if name in FIGURES:
            draw(name, rows)
        print(name, flush=True)


if __name__ == "__main__":
    main()
