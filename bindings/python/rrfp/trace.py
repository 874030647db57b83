# SPDX-License-Identifier: Apache-2.0
"""Timelines: trace event files, which Perfetto opens, and pictures of them."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from os import PathLike, fspath
from typing import Any, Callable

from . import _raw
from ._support import text_of

__all__ = ["Trace"]

_PICTURES = {".svg": _raw.RRFP_PICTURE_SVG, ".html": _raw.RRFP_PICTURE_HTML}


class Trace:
    """A timeline in a trace event file. A notebook shows it as a picture."""

    def __init__(self, path: str | PathLike):
        self.path = fspath(path)

    @classmethod
    def written_by(cls, write: Callable[[str], object]) -> "Trace":
        """A timeline that `write(path)` writes to a temporary file, which goes away with the
        object."""
        folder = tempfile.mkdtemp(prefix="rrfp-")
        trace = cls(os.path.join(folder, "trace.json"))
        weakref.finalize(trace, shutil.rmtree, folder, ignore_errors=True)
        write(trace.path)
        return trace

    def save(self, path: str | PathLike) -> None:
        """Copies the trace event file, for https://ui.perfetto.dev."""
        shutil.copyfile(self.path, path)

    def draw(self, path: str | PathLike) -> None:
        """Draws it as a picture (.svg), or as a page with zoom and totals (.html)."""
        ending = os.path.splitext(fspath(path))[1].lower()
        if ending not in _PICTURES:
            raise ValueError(f"{fspath(path)!r} ends neither in .svg nor in .html")
        _raw.rrfp_trace_draw(self.path, _PICTURES[ending], fspath(path))

    def summary(self) -> dict[str, Any]:
        """How the time of each rank went: "makespan_ms", "idle_share", "ranks"; and if the
        model has branches, "branches"."""
        return json.loads(text_of(_raw.rrfp_trace_summarize, self.path))

    def events(self) -> list[dict[str, Any]]:
        """The events of the file."""
        with open(self.path, encoding="utf-8") as file:
            content = json.load(file)
        return content["traceEvents"] if isinstance(content, dict) else content

    def _draw_text(self, ending: str) -> str:
        with tempfile.TemporaryDirectory(prefix="rrfp-") as folder:
            path = os.path.join(folder, "trace" + ending)
            self.draw(path)
            with open(path, encoding="utf-8") as file:
                return file.read()

    def svg(self) -> str:
        """The picture as text."""
        return self._draw_text(".svg")

    def html(self) -> str:
        """The page as text."""
        return self._draw_text(".html")

    def _repr_svg_(self) -> str:
        return self.svg()
