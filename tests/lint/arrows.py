# SPDX-License-Identifier: Apache-2.0
"""Which part may use which: the arrows of the design, checked on every #include.

Also what the scheduler must not know: clocks, threads, randomness, hash order, input and output,
floating-point numbers.
"""
import re

# For each folder, longest match first: what it may include in quotes, and what of <rrfp/...>.
# A folder of engine/ without a line here is an error, so that a new part must say what it uses.
NO_API = ()
API = ("rrfp/",)
# The sources of an extension module, which are generated and compiled in a folder of their own.
BESIDE = ("callbacks.h", "dlpack.h", "handle.h", "step.h", "task_io.h", "tensor.h")
RULES = {
    "capi/include": ((), ("rrfp/version.h", "rrfp/rrfp.h", "rrfp/train.h")),
    "capi/src": (("capi/", "engine/"), API),
    "capi/cli": (("capi/cli/",), API),
    "engine/core": (("engine/core/",), NO_API),
    "engine/comm": (("engine/core/ids.h", "engine/core/status.h", "engine/comm/"), NO_API),
    "engine/host": (("engine/core/", "engine/comm/", "engine/host/", "engine/trace/timeline.h"),
                    NO_API),
    "engine/sim": (("engine/core/", "engine/sim/", "engine/trace/timeline.h"), NO_API),
    "engine/model": (("engine/core/", "engine/model/", "kernels/"), NO_API),
    "engine/data": (("engine/core/", "engine/data/"), NO_API),
    "engine/trace": (("engine/core/", "engine/trace/"), NO_API),
    "engine/train": (("engine/core/", "engine/comm/", "engine/host/", "engine/model/",
                      "engine/sim/", "engine/trace/", "engine/train/", "kernels/"), NO_API),
    "engine": ((), NO_API),
    "capi": ((), API),
    "kernels": (("kernels/",), NO_API),
    "bindings": (("bindings/", *BESIDE), API),
    "examples": (("examples/",), API),
}
SYSTEM_OF_PUBLIC_HEADERS = {"stdint.h", "stddef.h", "stdbool.h"}
NOT_IN_CORE = {
    "atomic", "barrier", "chrono", "cmath", "complex", "condition_variable", "coroutine", "ctime",
    "filesystem", "fstream", "future", "iostream", "istream", "latch", "mutex", "ostream", "random",
    "semaphore", "shared_mutex", "stop_token", "syncstream", "thread", "unordered_map",
    "unordered_set",
}
TOKENS = re.compile(r"""
    (?P<comment> //[^\n]* | /\*.*?\*/ )
  | (?P<text> "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
""", re.VERBOSE | re.DOTALL)
INCLUDE = re.compile(r"""^[ \t]*\#[ \t]*include[ \t]*(?:<([^>]+)>|"([^"]+)")""", re.MULTILINE)


def without(text, *kinds):
    """Blanks comments, and strings if asked, and keeps the lines where they are."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0]) if match.lastgroup in kinds else match[0]
    # Digit separators look like the quotes of characters.
    return TOKENS.sub(blank, re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "_", text))


def check_file(path, text):
    """Yields (line, complaint) for the text of one file."""
    folder = next((f for f in RULES if path.startswith(f + "/")), None)
    if folder is None:
        return
    if folder == "engine":
        yield 1, "is in a part of engine/ without a rule in tests/lint/arrows.py"
        return
    quoted, public = RULES[folder]
    code = without(text, "comment")
    for match in INCLUDE.finditer(code):
        line = code.count("\n", 0, match.start()) + 1
        system, own = match.groups()
        if own is not None and not own.startswith(quoted):
            yield line, f'{folder} must not include "{own}"'
        elif system is not None and (complaint := check_system(folder, system, public)):
            yield line, complaint
    if folder == "engine/core":
        code = without(text, "comment", "text")
        for match in re.finditer(r"\b(float|double)\b", code):
            yield code.count("\n", 0, match.start()) + 1, f"the scheduler must not use {match[1]}"


def check_system(folder, name, public):
    """What is wrong with #include <name>, if anything."""
    if name.startswith("rrfp/"):
        return None if name.startswith(public) else f"{folder} must not include <{name}>"
    if folder == "capi/include" and name not in SYSTEM_OF_PUBLIC_HEADERS:
        return f"a public header must not include <{name}>"
    if folder == "engine/core" and not re.fullmatch("[a-z_]+", name):
        return f"the scheduler must not include <{name}>: only the C++ standard library"
    if folder == "engine/core" and name in NOT_IN_CORE:
        return f"the scheduler must not include <{name}>"
    return None
