#!/usr/bin/env python3
"""Checks that the committed SPIR-V is that of the source: regenerate_test.py SHADER.comp HEADER.h NAME. Exits with 77
(skipped) if glslangValidator is missing."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


ANNOTATIONS = (71, 72)  # OpDecorate, OpMemberDecorate; their order has no meaning and differs between compilers
NON_WRITABLE = 24  # of a variable: newer compilers write it even if the members have it


def means_something(instruction):
    return instruction[0] != 3 << 16 | ANNOTATIONS[0] or instruction[2] != NON_WRITABLE


def module(path):
    """Returns the magic number and version, then the instructions, with sorted annotations at the end."""
    words = [int(word, 16) for word in re.findall(r"\b0x[0-9a-f]{8}\b", path.read_text(encoding="utf-8"))]
    parts, annotations, at = [words[:2], words[3:5]], [], 5  # words[2] is the generator and its version
    while at < len(words):
        end = at + max(1, words[at] >> 16)
        (annotations if words[at] & 0xFFFF in ANNOTATIONS else parts).append(words[at:end])
        at = end
    return parts + sorted(filter(means_something, annotations))


def main():
    source, committed, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    if not shutil.which("glslangValidator"):
        print("skipped: glslangValidator is not installed (Debian: glslang-tools)")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        made = Path(directory) / committed.name
        subprocess.run(["glslangValidator", "-V", "--vn", name, "-o", made, source], check=True, stdout=subprocess.DEVNULL)
        if module(committed)[0][:1] != [0x07230203] or module(made) != module(committed):
            print(f"{committed} is not what {source} gives; run glslangValidator -V --vn {name} -o {committed.name} {source.name}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
