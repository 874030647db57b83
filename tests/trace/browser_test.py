#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at the pages and pictures of timelines in a browser.

    browser_test.py MAKE_TRACES [FOLDER]

MAKE_TRACES writes the timelines and says what is in them. With FOLDER all files, also screenshots,
stay there. The exit status is 77, with the reason, only if there is no Chromium.
"""
import html
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

SKIPPED = 77
SECONDS_MAX = 120
# Added to a copy of a page: what a reader does, and what the page then says, as an attribute.
PROBE = """<script>
(async () => {
  const said = [];
  const note = () => said.push({ ...document.body.dataset });
  // Without a screen, frames come when they like.
  requestAnimationFrame = (go) => setTimeout(go, 0);
  const frame = () => new Promise((go) => setTimeout(go, 10));
  const plot = document.getElementById("plot");
  const box = plot.getBoundingClientRect();
  const mouse = (type, x, y, more) => plot.dispatchEvent(new (type === "wheel" ? WheelEvent : PointerEvent)(
    type, { bubbles: true, cancelable: true, clientX: box.left + x, clientY: box.top + y, ...more }));
  const key = async (name) => {
    dispatchEvent(new KeyboardEvent("keydown", { key: name, cancelable: true }));
    await frame();
    note();
  };
  try {
    note();                                                       // 0: as it opens
    mouse("pointermove", 72, 46); note();                        // 1: the first rank's first spans
    mouse("wheel", 700, 60, { deltaY: -400 }); await frame(); note();  // 2: nearer
    mouse("pointerdown", 700, 60, { button: 0 });
    mouse("pointermove", 500, 60); mouse("pointerup", 500, 60);
    await frame(); note();                                        // 3: moved
    await key("0");                                               // 4: reset
    await key("m");                                               // 5: messages
    await key("m");
    document.querySelector('#legend button[data-look="forward"]')?.click();
    await frame(); note();                                        // 7: without forwards
    await key("+");
    await key("ArrowLeft");
  } catch (error) {
    document.body.dataset.error = `probe: ${error}`;
  }
  document.body.dataset.said = JSON.stringify(said);
})();
</script>
"""


def find_browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    return None


def data_of(dom):
    """The data attributes of the page's body, by name."""
    attributes = re.search(r"<body([^>]*)>", dom)[1]
    return {name: html.unescape(value)
            for name, value in re.findall(r'data-([\w-]+)="([^"]*)"', attributes)}


def pixels(path):
    """The rows of a PNG as lists of (r, g, b)."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", path
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and colour in (2, 6), (depth, colour)
        if kind == b"IDAT":
            packed += body
        at += 12 + length
    size = 3 if colour == 2 else 4
    raw, before, rows = zlib.decompress(packed), bytearray(width * size), []
    for y in range(height):
        begin = y * (width * size + 1)
        method, line = raw[begin], bytearray(raw[begin + 1:begin + 1 + width * size])
        for x in range(width * size):
            left = line[x - size] if x >= size else 0
            corner = before[x - size] if x >= size else 0
            up = before[x]
            if method == 1:
                line[x] = (line[x] + left) & 255
            elif method == 2:
                line[x] = (line[x] + up) & 255
            elif method == 3:
                line[x] = (line[x] + (left + up) // 2) & 255
            elif method == 4:
                guess = left + up - corner
                nearest = min((left, up, corner), key=lambda v: abs(guess - v))
                line[x] = (line[x] + nearest) & 255
        rows.append([tuple(line[x:x + 3]) for x in range(0, width * size, size)])
        before = line
    return rows


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        result = subprocess.run([make_traces, folder], stdout=subprocess.PIPE, text=True, check=True)
        names = ("ranks", "tasks", "idles", "messages")
        cls.made = {name: dict(zip(names, map(int, counts))) for name, *counts in
                    (line.split() for line in result.stdout.splitlines())}

    def browse(self, address, *options, width=1400, height=800):
        """What the browser prints; nothing may be said on its console."""
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--hide-scrollbars", f"--window-size={width},{height}", "--enable-logging=stderr",
                   f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=4000",
                   "--force-device-scale-factor=1", *options, address]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                timeout=SECONDS_MAX, check=False)
        self.assertEqual(result.returncode, 0, result.stderr[-2000:])
        said = [line for line in result.stderr.splitlines() if ":CONSOLE" in line]
        self.assertEqual(said, [])
        return result.stdout

    def dom(self, name):
        return self.browse((folder / f"{name}.html").as_uri(), "--dump-dom")

    def picture(self, file, *options, width=700, height=400):
        path = folder / f"{file}{''.join(options)}.png"
        self.browse((folder / file).as_uri(), *options, f"--screenshot={path}", width=width,
                    height=height)
        rows = pixels(path)
        self.assertEqual((len(rows[0]), len(rows)), (width, height))
        return rows

    def probed(self, name):
        """The states of the page while a reader uses it."""
        text = (folder / f"{name}.html").read_text(encoding="utf-8")
        path = folder / f"{name}-probed.html"
        path.write_text(text.replace("</body>", PROBE + "</body>"), encoding="utf-8")
        data = data_of(self.browse(path.as_uri(), "--dump-dom"))
        self.assertNotIn("error", data)
        self.assertIn("said", data, "the page did not come to the end of the probe")
        return json.loads(data["said"])

    def check_page(self, name):
        dom, made = self.dom(name), self.made[name]
        data = data_of(dom)
        self.assertNotIn("error", data)
        self.assertNotIn("broken", data)
        spans = made["tasks"] + made["idles"]
        self.assertEqual(int(data["spans"]), spans)
        self.assertEqual(int(data["drawn"]), spans)
        self.assertEqual(int(data["rows"]), made["ranks"])
        table = re.search(r'<table id="totals">.*?<tbody>(.*?)</tbody>', dom, re.DOTALL)[1]
        self.assertEqual(table.count("<tr>"), made["ranks"])
        return dom

    def test_every_page_draws_all_of_it(self):
        for name in self.made:
            with self.subTest(name):
                self.check_page(name)

    def test_texts_stay_texts(self):
        dom = self.check_page("hostile")
        self.assertIn("&lt;/title&gt;&lt;/script&gt;", re.search("<title>(.*?)</title>", dom)[1])
        self.assertNotIn("<img", dom)
        self.assertIn("@SCRIPT@ @DATA@", dom)

    def test_branches_are_told_apart(self):
        for name, count in (("branches", 3), ("branched-chunks", 8), ("hostile", 2)):
            with self.subTest(name):
                dom = self.check_page(name)
                self.assertEqual(data_of(dom).get("branches"), str(count))
                legend = re.search(r'<div id="branch-legend"[^>]*>(.*?)</div>', dom, re.DOTALL)[1]
                self.assertEqual(legend.count("<button"), count)
        said = self.probed("branches")
        self.assertRegex(said[1]["hover"], r"stage\s+0\s+blocks\s+branch0.layers.0 .. "
                         r"branch0.layers.1\s+branch\s+A branch0.embedding")
        for name in ("four", "chunks"):
            self.assertNotIn("branches", data_of(self.dom(name)))

    def test_a_reader_can_use_it(self):
        for name in ("four", "many", "chunks", "branches"):
            with self.subTest(name):
                self.check_use(self.probed(name), self.made[name])

    def check_use(self, said, made):
        def view(state):
            return tuple(map(float, state["view"].split(",")))
        opened, hovered, near, moved, reset, messages, plain, hidden, zoomed, left = said
        spans = made["tasks"] + made["idles"]
        self.assertRegex(hovered["hover"], r"forward[\s\S]*rank\s+0[\s\S]*stage\s+0[\s\S]*"
                         r"microbatch[\s\S]*ready[\s\S]*start[\s\S]*end[\s\S]*waited")
        self.assertGreater(int(hovered["hoverMessages"]), 0)
        self.assertLess(int(near["drawn"]), spans)
        self.assertLess(view(near)[1] - view(near)[0], view(opened)[1] - view(opened)[0])
        self.assertGreater(view(moved)[0], view(near)[0])
        self.assertAlmostEqual(view(moved)[1] - view(moved)[0], view(near)[1] - view(near)[0], delta=2)
        self.assertEqual((view(reset), reset["drawn"]), (view(opened), opened["drawn"]))
        self.assertEqual(int(messages["messages"]), made["messages"])
        self.assertEqual(int(plain["messages"]), 0)
        self.assertTrue(made["tasks"] / 5 < spans - int(hidden["drawn"]) < made["tasks"])
        self.assertGreater(view(zoomed)[0], 0)
        self.assertLess(view(left)[0], view(zoomed)[0])

    def test_pages_look_like_timelines(self):
        light = self.picture("four.html")
        self.assertGreater(self.coloured(light), 0.1)
        self.assertGreater(min(light[4][350]), 240)
        dark = self.picture("four.html", "--blink-settings=preferredColorScheme=0")
        self.assertGreater(self.coloured(dark), 0.1)
        self.assertLess(max(dark[4][350]), 60)

    def test_pictures_look_like_timelines(self):
        for name in ("four", "wide", "large"):
            with self.subTest(name):
                self.assertLess((folder / f"{name}.svg").stat().st_size, 3 << 20)
                # The upper left part of it.
                self.assertGreater(self.coloured(self.picture(f"{name}.svg", height=260)), 0.2)

    def coloured(self, rows):
        """The part of the picture that is neither white, black nor grey."""
        sample = [pixel for row in rows[::4] for pixel in row[::4]]
        return sum(max(p) - min(p) > 60 for p in sample) / len(sample)

    def test_a_broken_page_is_noticed(self):
        text = (folder / "four.html").read_text(encoding="utf-8")
        broken = folder / "broken.html"
        broken.write_text(text.replace("fillHead();", "fillHead(); nowhere();"), encoding="utf-8")
        with self.assertRaises(AssertionError):
            self.browse(broken.as_uri(), "--dump-dom")


if __name__ == "__main__":
    make_traces = os.path.abspath(sys.argv[1])
    browser = find_browser()
    if browser is None:
        print("skipped: there is no chromium; apt-get install --no-install-recommends chromium")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="rrfp-trace-") as scratch:
        folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else scratch).absolute()
        unittest.main(argv=sys.argv[:1], verbosity=2)
