#!/usr/bin/env python3
"""The examples of the public headers compile: header_examples.py INCLUDE_DIRECTORY COMPILER.

Each header that declares functions for applications has one example: the indented lines of its first comment. It becomes the body of a
function whose parameters are the objects that the examples take as given.
"""

import re
import subprocess
import sys
from pathlib import Path

from c_text import read

INDENT = " *      "
GIVEN = """gpuhal *gpu, gpuhal_device *device, gpuhal_device *other, gpuhal_queue *queue, gpuhal_kernel *kernel, gpuhal_buffer *buffer, gpuhal_buffer *other_buffer,
    gpuhal_store *store, void *host, uint64_t bytes, gpuhal_load_fn *load, void *model, gpuhal_sampler_fn *slow_down, void (*run_on)(gpuhal_device *device),
    const gpuhal_placement_layer *layers, const gpuhal_placement_device *devices"""
FRAME = """#include <gpuhal/gpuhal.h>
#include <gpuhal/direct.h>
#include <gpuhal/node.h>
#include <gpuhal/schedule.h>
#include <gpuhal/store.h>
#include <stdio.h>
void example(%s);
void example(%s)
{
    {
%s
    }
}
"""
# An example need not use all parameters.
FLAGS = ["-std=c17", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wno-unused-parameter", "-fsyntax-only", "-x", "c", "-"]


def example(text):
    """The indented lines of the first comment, without their indentation."""
    comment = text[:text.find("*/")].split("\n")
    return "\n".join(line[len(INDENT):] for line in comment if line.startswith(INDENT))


def complaint(code, include, compiler):
    source = FRAME % (GIVEN, GIVEN, code)
    result = subprocess.run([compiler, "-I", str(include), *FLAGS], input=source, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return result.stdout if result.returncode else ""


def main(include, compiler):
    failed, count = [], 0
    for bad in ("gpuhal_device_count();", "int a = nothing;", "gpuhal_write(queue, buffer, 0, host);"):
        if not complaint(bad, include, compiler):
            failed.append(f"the test itself is broken: it takes {bad}")
    for path in sorted(Path(include).rglob("*.h")):
        text = read(path)
        if not re.search(r"^GPUHAL_API\b", text, re.M):
            continue
        count += 1
        name, code = path.relative_to(include), example(text)
        failed += [f"{name} declares functions, and its first comment has no example"] if not code else []
        complained = complaint(code, include, compiler)
        failed += [f"the example of {name}:\n{complained}"] if complained else []
    print("\n".join(failed) or f"{count} examples")
    return bool(failed) or not count


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
