#!/usr/bin/env python3
"""The build fails if a slot of a device is missing in the checks of gpuhal-check or in the trace: slot_rules.py COMPILER
SOURCE_DIRECTORY.

Compiles the files that include the slot tables, unchanged and with a plugin.h that has an extra slot or a missing slot.
"""

import subprocess
import sys
import tempfile
from pathlib import Path


FILES = ("tools/check/checks_slots.c", "hal/core/device/trace.c")


def compiles(compiler, source, header, file):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "gpuhal").mkdir()
        (Path(folder) / "gpuhal/plugin.h").write_text(header, encoding="utf-8")
        command = [compiler, "-std=c17", "-D_GNU_SOURCE", "-fsyntax-only", "-w", f"-I{folder}", f"-I{source}/hal/include",
                   f"-I{source}/hal", f"-I{source}/hal/core", f"{source}/{file}"]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return result.returncode == 0, "slots.inc" in result.stdout


def main():
    compiler, source = sys.argv[1:]
    header = (Path(source) / "hal/include/gpuhal/plugin.h").read_text(encoding="utf-8")
    less, ends = "(GPUHAL_CALL *native_event)(", ("} gpuhal_ops;", "};\n\n/* ---- the plugin itself */")
    if any(header.count(text) != 1 for text in (less, *ends)):
        print("plugin.h has not the text that this test changes")
        return 1
    changes = {"one slot less": header.replace(less, "(GPUHAL_CALL *unknown)("), "another slot in gpuhal_ops": header.replace(ends[0], "void (*one_more)(void);\n" + ends[0]),
               "another slot in gpuhal_native_ops": header.replace(ends[1], "void (*one_more)(void);\n" + ends[1])}
    found = []
    for file in FILES:
        if compiles(compiler, source, header, file) != (True, False):
            found.append(f"{file} does not compile as it is")
        for change, text in changes.items():
            if compiles(compiler, source, text, file)[0]:
                found.append(f"{file} compiles with {change}")
    for sentence in found:
        print(sentence)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
