#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/raw.jl, the raw layer of RRFP.jl, from the public C headers.

    generate.py            writes src/raw.jl
    generate.py --check    fails if src/raw.jl is not what would be written

It knows the few forms of declaration that the headers have and fails on any other, so nothing can
be overlooked. What becomes of them:

  integer typedefs, constants   Julia constants of the same names
  structs with `struct_size`    mutable structs of the same layout, made by their _init function, so
                                that `options.lr = 0.1` works; passed as Ref, which makes a pointer
  other structs                 immutable structs, for arrays of them
  handles                       empty types, so that a Ptr to one is not mistaken for another
  functions                     Julia functions of the same names around a ccall
  const char *                  Cstring, which refuses zero bytes inside; before a length Ptr
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "capi/include/rrfp"
OUTPUT = HERE / "src/raw.jl"
HEADERS = ("version.h", "rrfp.h", "train.h", "simulate.h", "multimodal.h")

BASE = {
    "int8_t": "Int8", "uint8_t": "UInt8", "int16_t": "Int16", "uint16_t": "UInt16",
    "int32_t": "Int32", "uint32_t": "UInt32", "int64_t": "Int64", "uint64_t": "UInt64",
    "size_t": "Csize_t", "float": "Cfloat", "double": "Cdouble", "bool": "Bool", "char": "UInt8",
    "void": "Cvoid",
}
# Structs without an _init function that a caller makes one of, not arrays of.
MUTABLE = {"rrfp_error"}

PREAMBLE = '''# SPDX-License-Identifier: Apache-2.0
#
# Made by generate.py from the headers in capi/include/rrfp; do not edit. The headers say what each
# function does. The names are those of C, and nothing here checks anything.
module Raw

"""
The name that the loader knows the library by. RRFP.jl opens the file that RRFP_LIBRARY names first;
the loader then finds that one under this name.
"""
const soname = "librrfp.so.{abi}"
'''


def declarations(text):
    """Splits at the semicolons that stand outside braces."""
    depth, start = 0, 0
    for k, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        if c == ";" and depth == 0:
            yield " ".join(text[start:k].split())
            start = k + 1
    if text[start:].strip():
        raise ValueError(f"not a declaration: {text[start:].strip()[:80]}")


class Generator:
    def __init__(self):
        self.constants = {}
        self.integers = {}
        self.handles = []
        self.callbacks = set()
        self.structs = {}  # name -> [(field, type)]
        self.functions = {}  # name -> (return type, [(parameter, type)])

    def read(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL).replace("\\\n", " ")
        text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif", "", text, flags=re.DOTALL | re.MULTILINE)
        for name, value in re.findall(r"^#define (\w+)(.*)$", text, re.MULTILINE):
            self.constant(name, value.strip())
        text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
        for declaration in declarations(text):
            self.declaration(declaration)

    def constant(self, name, value):
        if not value or name == "RRFP_API":
            return
        if not re.fullmatch(r"\(?-?\d+u?\)?", value):
            raise ValueError(f"a constant that is not a number: {name} {value}")
        number = int(value.strip("()").rstrip("u"))
        self.constants[name] = f"{'UInt32' if 'u' in value else 'Int32'}({number})"

    def declaration(self, text):
        if match := re.fullmatch(r"typedef (u?int\d+_t) (rrfp_\w+)", text):
            self.integers[match[2]] = BASE[match[1]]
        elif match := re.fullmatch(r"typedef struct (rrfp_\w+) \{(.*)\} \1", text):
            fields = [f.strip() for f in match[2].split(";") if f.strip()]
            self.structs[match[1]] = [self.variable(f) for f in fields]
        elif match := re.fullmatch(r"typedef struct (rrfp_\w+) \1|struct (\w+)", text):
            self.handles.append(match[1] or match[2])
        elif match := re.fullmatch(r"typedef [^()]*\(\*(rrfp_\w+)\)\([^()]*\)", text):
            self.callbacks.add(match[1])
        elif match := re.fullmatch(r"RRFP_API ([^()]*?)\b(rrfp_\w+)\(([^()]+)\)", text):
            parameters = [] if match[3] == "void" else match[3].split(",")
            self.functions[match[2]] = (self.type(match[1], parameter=True),
                                        [self.variable(p, parameter=True) for p in parameters])
        else:
            raise ValueError(f"an unknown form of declaration: {text}")

    def variable(self, text, parameter=False):
        match = re.fullmatch(r"(.*?)(\w+)\s*(?:\[(\w+)\])?", text.strip())
        result = self.type(match[1], parameter)
        if match[3]:
            count = int(match[3]) if match[3].isdigit() else self.number(match[3])
            result = f"NTuple{{{count}, {result}}}"
        return match[2], result

    def number(self, constant):
        return int(re.search(r"\((-?\d+)\)", self.constants[constant])[1])

    def type(self, text, parameter):
        """The Julia type of `const char *`, `struct x **` and the like."""
        stars = text.count("*")
        words = [w for w in text.replace("*", " ").split() if w not in ("const", "struct")]
        if len(words) != 1:
            raise ValueError(f"an unknown form of type: {text}")
        name = words[0]
        if name in self.callbacks:
            return "Ptr{Cvoid}"
        if name == "char" and stars == 1 and "const" in text and parameter:
            return "Cstring"
        if name in self.structs and self.is_mutable(name) and stars == 1:
            return f"Ref{{{name}}}" if parameter else f"Ptr{{{name}}}"
        if name not in BASE and not any(name in c for c in
                                        (self.integers, self.structs, self.handles)):
            raise ValueError(f"an unknown type: {text}")
        result = BASE.get(name, name)
        for _ in range(stars):
            result = f"Ptr{{{result}}}"
        return result

    def is_mutable(self, struct):
        return struct in MUTABLE or self.structs[struct][0][0] == "struct_size"

    def write(self):
        abi = self.number("RRFP_ABI_VERSION")
        out = [PREAMBLE.replace("{abi}", str(abi))]
        out += [f"const {name} = {value}" for name, value in self.constants.items()]
        out += [""] + [f"const {name} = {value}" for name, value in self.integers.items()]
        out += [""] + [f"mutable struct {name} end" for name in self.handles] + [""]
        for name, fields in self.structs.items():
            out.append(f"{'mutable ' if self.is_mutable(name) else ''}struct {name}")
            out += [f"    {field}::{type}" for field, type in fields]
            if name + "_init" in self.functions:
                out.append(f"    {name}() = (value = new(); {name}_init(value); value)")
            elif self.is_mutable(name):
                out.append(f"    {name}() = new()")
            out += ["end", ""]
        for name, (result, parameters) in self.functions.items():
            out += self.function(name, result, parameters)
        return "\n".join(out) + "\nend # module\n"

    @staticmethod
    def function(name, result, parameters):
        names = [n for n, _ in parameters]
        types = [t for _, t in parameters]
        for k in range(len(parameters) - 1):  # a text with a length may hold anything
            if types[k] == "Cstring" and names[k + 1] == "length":
                types[k] = "Ptr{UInt8}"
        listed = "(" + "".join(t + ", " for t in types).rstrip() + ")"
        values = "".join(", " + n for n in names)
        call = f"ccall((:{name}, soname), {result}, {listed}{values})"
        head = f"{name}({', '.join(names)}) ="
        lines = f"{head} {call}" if len(head) + len(call) < 99 else f"{head}\n    {call}"
        return [_wrap(line) for line in lines.split("\n")]


def _wrap(line):
    """Breaks a line of more than 100 columns after commas."""
    if len(line) <= 100:
        return line
    cut = line.rfind(", ", 0, 100)
    return line[:cut + 1] + "\n" + _wrap(" " * 10 + line[cut + 2:])


def main():
    generator = Generator()
    for header in HEADERS:
        generator.read((INCLUDE / header).read_text(encoding="utf-8"))
    text = generator.write()
    if sys.argv[1:] == ["--check"]:
        if text != OUTPUT.read_text(encoding="utf-8"):
            print("bindings/julia/src/raw.jl does not fit the headers; run generate.py there")
            return 1
        print(f"src/raw.jl fits the headers: {len(generator.functions)} functions, "
              f"{len(generator.structs)} structs, {len(generator.constants)} constants")
        return 0
    OUTPUT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
