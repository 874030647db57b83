# SPDX-License-Identifier: Apache-2.0
"""Reads the public headers.

It knows the few forms of declaration that a header may have and fails on any other, so nothing can
be overlooked.
"""
import dataclasses
import pathlib
import re

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "capi/include/rrfp"
# In the order in which they include each other. The version is a part of rrfp.h.
PUBLIC = (INCLUDE / "version.h", INCLUDE / "rrfp.h", INCLUDE / "train.h",
          INCLUDE / "simulate.h", INCLUDE / "multimodal.h")


@dataclasses.dataclass
class Header:
    """What the headers declare, in their order."""

    integers: list[str] = dataclasses.field(default_factory=list)
    structs: dict[str, list[str]] = dataclasses.field(default_factory=dict)  # name -> fields
    handles: list[str] = dataclasses.field(default_factory=list)
    callbacks: dict[str, str] = dataclasses.field(default_factory=dict)  # name -> declaration
    functions: dict[str, str] = dataclasses.field(default_factory=dict)  # name -> declaration
    constants: list[str] = dataclasses.field(default_factory=list)


def read():
    header = Header()
    for path in PUBLIC:
        with open(path, encoding="utf-8") as file:
            _add(header, file.read())
    return header


def _add(header, text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL).replace("\\\n", " ")
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif", "", text, flags=re.DOTALL | re.MULTILINE)
    for name, arguments, value in re.findall(r"^#define (\w+)(\(?)(.*)$", text, re.MULTILINE):
        if arguments:
            raise ValueError(f"{name} is a macro with parameters, which a binding cannot use")
        if value.strip() and name != "RRFP_API":
            header.constants.append(name)
    text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    for declaration in _declarations(text):
        _add_declaration(header, declaration)


def _declarations(text):
    """Splits at the semicolons that stand outside braces."""
    depth, start = 0, 0
    for k, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        if c == ";" and depth == 0:
            yield " ".join(text[start:k].split())
            start = k + 1
    if text[start:].strip():
        raise ValueError(f"not a declaration: {text[start:].strip()[:80]}")


def _add_declaration(header, declaration):
    if match := re.fullmatch(r"typedef u?int\d+_t (rrfp_\w+)", declaration):
        header.integers.append(match[1])
    elif match := re.fullmatch(r"typedef struct (rrfp_\w+) \{(.*)\} \1", declaration):
        header.structs[match[1]] = [_field(f) for f in match[2].split(";") if f.strip()]
    elif match := re.fullmatch(r"typedef struct (rrfp_\w+) \1", declaration):
        header.handles.append(match[1])
    elif declaration == "struct DLManagedTensor":
        pass  # DLPack's, not ours
    elif match := re.fullmatch(r"typedef [^()]*\(\*(rrfp_\w+)\)\([^()]*\)", declaration):
        header.callbacks[match[1]] = declaration
    elif match := re.fullmatch(r"RRFP_API ([^()]*\b(rrfp_\w+)\([^()]+\))", declaration):
        header.functions[match[2]] = match[1]
    else:
        raise ValueError(f"a form of declaration that this test does not know: {declaration}")


def _field(declaration):
    """The name in `const int64_t *name`, `const char *const *name` or `int64_t name[COUNT]`."""
    match = re.fullmatch(r"\s*(?:const )?\w+ (?:\*const )?\*?(\w+)\s*(?:\[\w+\])?\s*",
                         declaration)
    if not match:
        raise ValueError(f"a form of field that this test does not know: {declaration}")
    return match[1]
