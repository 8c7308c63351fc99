#!/usr/bin/env python3
"""Calls between files, from the symbols of their objects: symbol_rules.py layers|circles COMPILER OBJECT… [-- OBJECT…]…

circles: no two files use each other's functions or variables, directly or through other files. layers: also, no file of hal/ uses
functions or variables of a higher layer. Sets of objects that -- separates are judged each by itself. The rules are first tried on
small examples, which the script compiles.
"""

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from layers import LAYERS, layer_of


def parts_of(path):
    """("core", "queue", "wait.c") for …/hal/CMakeFiles/gpuhal-objects.dir/core/queue/wait.c.o"""
    parts = Path(path).with_suffix("").parts
    folders = [i for i, part in enumerate(parts) if part.endswith(".dir")]
    return parts[folders[-1] + 1:] if folders else parts  # a folder of the checkout's may be named like a layer


def file_of(path):
    """hal/core/queue/wait.c for …/hal/CMakeFiles/gpuhal-objects.dir/core/queue/wait.c.o; None for objects outside the layers."""
    parts = parts_of(path)
    starts = [i for i, part in enumerate(parts[:-1]) if part in LAYERS]
    first = starts[-1] - (starts[-1] > 0 and parts[starts[-1] - 1] == "core") if starts else 0
    return "/".join(("hal",) + parts[first:]) if starts else "hal/gpuhal.c" if parts[-1] == "gpuhal.c" else None


def calls(objects, file_of):
    """Returns {file: {other file: one of its symbols}}, and whether any file has a symbol."""
    home, uses = {}, defaultdict(set)
    output = subprocess.run(["nm", "--extern-only", "--format=posix", "--print-file-name", *objects], check=True, stdout=subprocess.PIPE,
                            text=True).stdout
    for line in output.splitlines():
        path, name, kind = re.match(r"(.*): (\S+) (\S)", line).groups()
        file = file_of(path)
        if file and kind in "Uvw":
            uses[file].add(name)
        elif file:
            home[name] = file
    edges = defaultdict(dict)
    for file, names in uses.items():
        for name in sorted(names):
            if home.get(name, file) != file:
                edges[file][home[name]] = name
    return edges, bool(home)


def layer(file):
    return LAYERS.index(layer_of(file.split("/")[1:])) if "/" in file[len("hal/"):] else len(LAYERS)


def circles(edges):
    """Returns one circle for each set of files that call each other."""
    done = set()
    for start in sorted(edges):
        way = [start]
        rest = [iter(sorted(edges[start]))]
        while rest and start not in done:
            file = next(rest[-1], None)
            if file is None:
                done.add(way.pop())
                rest.pop()
            elif file in way:
                yield way[way.index(file):] + [file]
                done.update(way)
            elif file not in done:
                way.append(file)
                rest.append(iter(sorted(edges.get(file, ()))))


def circle_complaints(objects, file_of=lambda path: "/".join(parts_of(path))):
    edges, any_symbol = calls(objects, file_of)
    if not any_symbol:
        yield "nm lists nothing: built with -flto?"
    for way in circles(edges):
        yield "a circle: " + ", ".join(f"{one} uses {edges[one][other]} of {other}" for one, other in zip(way, way[1:]))


def layer_complaints(objects):
    edges, _ = calls(objects, file_of)
    for path in objects:
        if not file_of(path) and Path(path).name != "builtin_table.c.o":
            yield f"{path} lies in no layer"
    for file in sorted(edges):
        for other, name in sorted(edges[file].items()):
            if layer(other) > layer(file):
                yield f"{file} uses {name} of {other}, a higher layer"
    yield from circle_complaints(objects, file_of)


RULES = {"layers": layer_complaints, "circles": circle_complaints}
A, B, C = "os/linux/a.c", "core/base/b.c", "core/base/c.c"
D = "d.c"
EXAMPLES = (
    ("layers", {A: "int a(void) { return 1; }", B: "int a(void); int b(void) { return a(); }", C: "int b(void); int c(void) { return b(); }"}, 0),
    ("layers", {A: "int b(void); int a(void) { return b(); }", B: "int b(void) { return 1; }"}, 1),
    ("layers", {B: "int c(void); int b(void) { return c(); }", C: "int b(void); int c(void) { return b(); }"}, 1),
    ("layers", {A: "int a(void) { return 1; }", "gpuhal.c": "int b(void); int d(void) { return b(); }", B: "int b(void) { return 1; }"}, 0),
    ("layers", {B: "int d(void); int b(void) { return d(); }", "gpuhal.c": "int d(void) { return 1; }"}, 1),
    ("circles", {A: "int b(void); int a(void) { return b(); }", B: "int b(void) { return 1; }"}, 0),
    ("circles", {A: "int b(void); int a(void) { return b(); }", B: "extern int d; int b(void) { return d; }",
                 D: "int a(void); int d; int e(void) { return a(); }"}, 1),
    ("circles", {A: "int a(void) { return 1; }", D: "int d(void) { return 1; }"}, 0),
    ("circles", {A: "extern int a;", D: "extern int d;"}, 1),  # as if nm listed nothing
)


def try_on_examples(compiler):
    for rule, files, expected in EXAMPLES:
        with tempfile.TemporaryDirectory() as directory:
            objects = []
            for name, text in files.items():
                source = Path(directory) / name
                source.parent.mkdir(parents=True, exist_ok=True)
                source.write_text(text + "\n", encoding="utf-8")
                objects.append(f"{source}.o")
                subprocess.run([compiler, "-c", str(source), "-o", objects[-1]], check=True)
            found = list(RULES[rule](objects))
        if len(found) != expected:
            yield f"the rule itself is broken: {rule}: {files}: {found}"


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in RULES:
        print("usage: symbol_rules.py layers|circles COMPILER OBJECT…", file=sys.stderr)
        return 2
    rule, compiler, sets = sys.argv[1], sys.argv[2], [[]]
    for word in sys.argv[3:]:
        if word == "--":
            sets.append([])
        else:
            sets[-1].append(word)
    found = [*try_on_examples(compiler), *(complaint for objects in sets for complaint in RULES[rule](objects))]
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
