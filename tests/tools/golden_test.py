#!/usr/bin/env python3
"""Compares the wording of gpuhal-probe's output for the commands below with gpuhal-probe.golden.

    golden_test.py PROGRAM ODD_PLUGINS GOLDEN [--write]     --write: as cmake --build build/default --target golden

Only this test checks the wording; other tests check exit codes, states and documents. Capitalized words in the file
stand for parts that differ between machines and runs. They also stand for the grammar of selectors and the hint after
an error, because these texts are long."""

import difflib
import os
import re
import sys
from pathlib import Path

from probe_support import Probe
from registry_test import Place, everything, link, plugin, registry_text

WIDE = {"COLUMNS": "400"}
INTERFACES = ("twin_a", "twin_b", "longname")


class Script:
    def __init__(self, program, odd):
        self.probe, self.odd, self.text = Probe(program, odd, None), odd, ""
        self.build = os.path.dirname(os.path.dirname(os.path.abspath(program)))

    def neutral(self, text, place):
        for path, word in ((place and place.folder.name, "FOLDER"), (os.path.abspath(self.odd), "ODD"), (self.build, "BUILD")):
            text = text.replace(path, word) if path else text
        for pattern, word in ((r"(cpu:0 +)\S.* / .*", r"\1PROCESSOR"),
                              (r"(?m)^\S+(: (?:no|\d).* GPU.*)  Linux \S+$", r"HOST\1  KERNEL"),
                              (r"\d+\.\d ms", "TIME"), (r"; expected auto, gpu, .*", "; GRAMMAR"),
                              (r" -> 2\n(.*\n)! Try `gpuhal-probe --help' or .*\n", r" -> 2, HINT\n\1"),
                              (r"(?:cuda|rocm|vulkan|opencl): not used, excluded.*\n", "")):
            text = re.sub(pattern, word, text)
        return text

    def title(self, text):
        self.text += f"\n==== {text}\n"

    def run(self, *options, place=None, plugins=(), only="", **settings):
        """`only` selects lines of the output. It is used if another command in the file already contains the other
        lines."""
        result = self.probe.run(*options, plugins=plugins, **(place.settings() if place else {}) | settings)
        shown = " ".join([f"{name}={value}" for name, value in settings.items() if name != "COLUMNS"] + ["gpuhal-probe", *map(repr_of, options)])
        # The width of a column depends on the CPU's name.
        printed = "".join(re.sub(r"(\S) {2,}", r"\1  ", line) + "\n" for line in result.out.splitlines() if re.search(only, line))
        said = "".join(f"! {line}\n" for line in result.err.splitlines())
        self.text += self.neutral(f"$ {shown} -> {result.code}\n{printed}{said}", place)


def repr_of(option):
    return option if re.fullmatch(r"[\w./:=,-]+", option) else f"'{option}'"


def show_the_record(script):
    script.title("a record")
    script.run("--registry", place=Place(everything()), COLUMNS="100")
    script.title("results of plugins that are not valid any more")
    with_files = Place(registry_text())
    there, folder = os.path.join(with_files.path, "there.so"), with_files.path
    Path(there).write_text("x", encoding="utf-8")
    keys = (f"file 1-2-3-4-5 {there}", f"file absent {there}", f"file 1-2-3-4-5 {there}.no", f"folder 1-2-3-4-5-6 {folder}", "boot 0",
            "variable NO_SUCH_SETTING=1", "variable POCL_DEVICES", "something else")
    with_files.write(registry_text(*(plugin(f"p{i}", key=(key,)) for i, key in enumerate(keys)),
                                   plugin("failing", state=4, stage=7, reason="it failed"),
                                   plugin("chatty", state=11, stage=5, output=("\u00e9" * 500, "short"))))
    script.run("--registry", "--all", place=with_files, only="^plugin|valid|printed|short", **WIDE)
    script.title("records that say little or nothing")
    script.run("--registry", place=Place(), **WIDE)
    script.run("--registry")
    script.run("--registry", GPUHAL_REGISTRY="", HOME="", XDG_STATE_HOME="")
    script.run("--registry", GPUHAL_REGISTRY="relative")
    script.run("--registry", place=Place(registry_text(link(1, 2, reason="bad", verified=0)).replace("bad", "worse")), **WIDE)
    script.run("--registry", place=Place("rubbish\n"), **WIDE)
    script.run("--registry", place=Place(registry_text(version=2)), **WIDE)


def change_the_record(script):
    script.title("changing a record")
    place, whole = Place(everything()), everything()
    file = place.beside("export")
    for options in (("--export", file), ("--export", file), ("--export", place.beside("no/such/folder")), ("--forget", "crashing"),
                    ("--forget", "crashing"), ("--forget", "all"), ("--import", file), ("--import", place.beside("nowhere"))):
        script.run(*options, place=place, **WIDE)
    for text in (whole[:-30], "", "hello\n", registry_text(version=2), "x" * (2 << 20)):
        Path(file).write_text(text, encoding="utf-8")
        script.run("--import", file, place=place, **WIDE)
    for options in (("--forget", "all"), ("--export", "/nowhere/export"), ("--diff",)):
        script.run(*options)
        script.run(*options, place=Place(registry_text(version=2)), **WIDE)


def make_mistakes(script):
    script.title("mistakes on the command line")
    for options in ("--registry --diff", "--forget x --import y", "--registry --verify", "--registry --retry all", "--forget x --json",
                    "--diff --device cpu", "--export x --links", "--forget a --forget b", "--export a --export b", "--retry a --retry b",
                    "--import", "--accept", "--import -", "--nonsense", "stray", "--json stray", "--device", "--json=yes", "-x",
                    "--device cpu --device cpu", "--timeout soon", "--timeout -1", "--timeout nan", "--device size=3",
                    "--backends cpu,-opencl", "--device cuda:", "--device cuda:x", "--device :0", "--device cuda:0:1", "--device uuid=zz",
                    "--device pci=c1:0", "--device nosuch,cpu:", "--device ,", "--device config.devices", "--device nosuch:9",
                    "--device !cpu:0,1", "--device cpu:0@2", "--device cpu,!cpu", "--device most_free,", "--backends warp", "--retry cpu,nonesuch"):
        script.run(*options.split())
    for option in ("--forget", "--retry", "--device"):
        script.run(option, "")
    for settings in ({"GPUHAL_DEVICES": "cuda:"}, {"GPUHAL_DEVICES": "nosuch:9"}, {"GPUHAL_BACKENDS": "warp"}, {"GPUHAL_ISOLATION": "maybe"}):
        script.run(**settings)


def list_devices(script):
    script.title("listing devices")
    script.run("--all", "--verify", plugins=INTERFACES, **WIDE)
    script.run("--explain", plugins=("twin_a", "twin_b", "refused", "crashing"), **WIDE)
    script.run("--verify", plugins=("wrong", "dying"), **WIDE)
    script.run("--links", "--all", plugins=("own_numbers",), **WIDE)
    script.run(GPUHAL_OPTIONS="cpu.devices=none")


def main():
    script = Script(*sys.argv[1:3])
    for part in (show_the_record, change_the_record, make_mistakes, list_devices):
        part(script)
    golden = Path(sys.argv[3])
    if "--write" in sys.argv:
        golden.write_text(script.text, encoding="utf-8")
        return 0
    difference = list(difflib.unified_diff(golden.read_text(encoding="utf-8").splitlines(), script.text.splitlines(), "golden", "printed", lineterm=""))
    print("\n".join(difference))
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
