#!/usr/bin/env python3
"""The committed SPIR-V is what its source gives: regenerate_test.py SHADER.comp HEADER.h NAME. Skipped (77) without glslangValidator."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def words(path):
    numbers = [int(word, 16) for word in re.findall(r"\b0x[0-9a-f]{8}\b", path.read_text(encoding="utf-8"))]
    # The third word names the program that wrote it, and its version.
    return numbers[:2] + numbers[3:]


def main():
    source, committed, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    if not shutil.which("glslangValidator"):
        print("skipped: glslangValidator is not installed (Debian: glslang-tools)")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        made = Path(directory) / committed.name
        subprocess.run(["glslangValidator", "-V", "--vn", name, "-o", made, source], check=True, stdout=subprocess.DEVNULL)
        if words(committed)[0:1] != [0x07230203] or words(made) != words(committed):
            print(f"{committed} is not what {source} gives; run glslangValidator -V --vn {name} -o {committed.name} {source.name}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
