#!/usr/bin/env python3
"""Generates the table of plugins and code formats in docs/programs.md from the plugins' results and compares it with
the page.

    program_formats_test.py PROGRAM FAKES PAGE [--write]     --write: as cmake --build build/default --target golden

PROGRAM is program_formats; FAKES is the folder with the fakes of CUDA, HIP and OpenCL. The other plugins use
installed drivers. If the plugin's driver is missing, or the installed driver does not support the row's configuration,
the row stays unchanged."""

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

HEAD = "| plugin | takes, best first | refuses | reason |\n|---|---|---|---|\n"
# Title, selector, environment variables, and a format that the device must list (with a minus: must not list).
PLUGINS = (
    ("`cpu`", "cpu:0", {}, ""),
    ("`cuda`", "cuda:0", {"FAKE_CUDA": "devices 1", "GPUHAL_SYSTEM_ROOT": "/nowhere", "GPUHAL_CUDA_LIBRARY": "FAKES/cuda/libcuda.so.1",
                          "GPUHAL_NVML_LIBRARY": "FAKES/cuda/libnvidia-ml.so.1"}, ""),
    ("`rocm`", "rocm:0", {"FAKE_HIP": "devices 1", "GPUHAL_SYSTEM_ROOT": "FAKES/rocm/system", "GPUHAL_HIP_LIBRARY": "FAKES/rocm/libamdhip64.so.7",
                          "GPUHAL_ROCM_SMI_LIBRARY": "/nowhere", "GPUHAL_AMD_SMI_LIBRARY": "/nowhere"}, ""),
    ("`vulkan`", "vulkan:0", {}, ""),
    ("`opencl`", "opencl:0", {}, "-spirv"),
    ("`opencl`, driver with IL", "opencl:0", {"GPUHAL_OPENCL_LIBRARY": "FAKES/libgpuhal_fake_opencl.so", "GPUHAL_FAKE_OPENCL": "il"}, "spirv"),
)
ALWAYS = 3  # the first three need no installed driver


def name(format_):
    word, _, rest = format_.partition(" ")
    return f"`{word}`{' ' + rest if rest else ''}"


def ask(program, fakes, selector, variables):
    variables = {key: value.replace("FAKES", fakes) for key, value in variables.items()}
    environment = {**os.environ, "GPUHAL_REGISTRY": "none", "GPUHAL_ISOLATION": "never", "POCL_DEVICES": "basic",
                   "GPUHAL_BACKENDS": selector.partition(":")[0], **variables}
    result = subprocess.run([program, selector], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return result.stdout.splitlines() if result.returncode == 0 else None, result.stdout + result.stderr


def rows(title, selector, lines):
    formats, answers = lines[0].split(), [line.split("\t") for line in lines[1:]]
    taken = sorted((answer[0] for answer in answers if answer[1] == "taken"), key=lambda one: formats.index(one.split()[0]))
    refused = {}
    for format_, status, *sentence in answers:
        if status != "taken":
            why = sentence[0].removeprefix(f"{selector}: loading a program: ")
            why = re.sub(r"^alternative 0 \(.*?\): (?:not supported: )?|, not alternative 0 \(.*\)$", "", why)
            refused.setdefault((status, why), []).append(format_)
    result = []
    for (status, why), names in sorted(refused.items(), key=lambda one: -len(one[1])):
        beginning = f"| {title} | {', '.join(map(name, taken))} |" if not result else "| | |"
        constant = status.upper().replace(" ", "_")
        result.append(f"{beginning} {', '.join(map(name, names))} | `{constant}`: {why} |\n")
    return result


def table_of(page):
    """Returns the table, its position in the page, and its rows by plugin."""
    begin = page.index(HEAD) + len(HEAD)
    end = page.index("\n\n", begin) + 1
    old, title = {}, None
    for line in page[begin:end].splitlines(keepends=True):
        title = line.split(" | ")[0].removeprefix("| ") if line.startswith("| `") else title
        old.setdefault(title, []).append(line)
    return begin, end, old


def main():
    program, fakes, path = sys.argv[1:4]
    page = Path(path).read_text(encoding="utf-8")
    begin, end, old = table_of(page)
    new = []
    for number, (title, selector, variables, word) in enumerate(PLUGINS):
        lines, said = ask(program, fakes, selector, variables)
        there = lines and (word.lstrip("-") in lines[0].split()) != word.startswith("-") if word else lines
        if not there and number < ALWAYS:
            sys.exit(f"{selector} does not answer: {said}")
        new += rows(title, selector, lines) if there else old.get(title, [])
        print(f"{title}: {'asked' if there else 'not as the page has it: ' + said.splitlines()[0]}")
    made = page[:begin] + "".join(new) + page[end:]
    if "--write" in sys.argv:
        Path(path).write_text(made, encoding="utf-8")
    elif made != page:
        sys.stdout.writelines(difflib.unified_diff(page.splitlines(True), made.splitlines(True), path, "what the plugins answer"))
        sys.exit("the table differs: cmake --build build/default --target golden")


if __name__ == "__main__":
    main()
