#!/usr/bin/env python3
"""Compares the output of gpuhal-probe on a recorded machine with the files in its folder, tests/recorded/NAME.

    recorded_test.py FOLDER|all PROGRAM FAKES [--write | --shell]     77: skipped (a dependency is missing)

The folder contains `tree` (the machine's files below /sys, /proc, /dev and /etc), `machine` (its drivers and settings),
and the expected output. All runs use the same registry, in the order of the screens and formats. Before the first run
the registry is empty, or has the contents that the section `earlier` left. --write rewrites the expected files; --shell
opens a shell in the machine's environment. `all` stands for every folder, each in a child process."""

import ctypes
import difflib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import together
from machine_tree import Tree

DEADLINE = 60
WIDTHS = (80, 120, 200)
# for the other machines only the default screen and JSON are kept
IN_ALL_FORMATS = ("docker-one-of-8", "nvidia-and-amd", "nvidia-mig")
RUNS = (("probe.json", "--format=json"), ("probe.csv", "--format=csv"), ("gres.conf", "--format=gres"), ("metrics.txt", "--format=openmetrics"))
NOWHERE = "/nowhere"  # path of a library that the machine lacks
LIBRARIES = {"cuda": (("GPUHAL_CUDA_LIBRARY", "cuda/libcuda.so.1"),),
             "nvml": (("GPUHAL_NVML_LIBRARY", "cuda/libnvidia-ml.so.1"),),
             "hip": (("GPUHAL_HIP_LIBRARY", "rocm/libamdhip64.so.6"),),
             "amd-smi": (("GPUHAL_AMD_SMI_LIBRARY", "rocm/libamd_smi.so"),),
             "rocm-smi": (("GPUHAL_ROCM_SMI_LIBRARY", "rocm/librocm_smi64.so.1"),),
             "vulkan": (("GPUHAL_VULKAN_LIBRARY", None),),
             "opencl": (("GPUHAL_OPENCL_LIBRARY", None),)}
DRASTIC = re.compile(r"\breboot\b|--shutdown\b|--gpu-reset\b|\bsed -i\b|\btee /|\bmokutil --import\b|\bprime-select\b|\brestart (…|nvidia-fabric)|delete pod\b")
WORDS_WIDTH = 67  # width of the text between commands, which is narrowest in --explain
CAPABILITIES = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH: dropped, so that file modes also deny access to root


class Machine:
    """Parses the file `machine`: sections in brackets, and lines."""

    def __init__(self, folder):
        self.folder, self.sections, section = Path(folder), {}, None
        for line in (self.folder / "machine").read_text(encoding="utf-8").splitlines():
            if re.fullmatch(r"\[[a-z-]+\]", line):
                section = self.sections.setdefault(line[1:-1], [])
            elif line.strip() and not line.startswith("#"):
                section.append(line)
        unknown = set(self.sections) - {"source", "like", "libraries", "environment", "cuda", "hip", "vulkan", "options", "earlier"}
        if unknown or not self.sections.get("source"):
            raise ValueError(f"{folder}/machine: {'no [source]' if not unknown else f'no such section: {unknown}'}")
        for other in self.lines("like"):
            for name, lines in Machine(self.folder.parent / other).sections.items():
                if name not in ("source", "options", "earlier"):
                    self.sections.setdefault(name, lines)

    def lines(self, section):
        return self.sections.get(section, [])

    def environment(self, fakes):
        wanted = self.lines("libraries")
        found = {}
        for library, variables in LIBRARIES.items():
            for name, file in variables:
                there = os.path.join(fakes, file) if library in wanted and file else NOWHERE + "/" + name.split("_")[1].lower() + ".so"
                if library not in wanted or file:
                    found[name] = there
        if "vulkan" in wanted:
            manifest = os.path.join(fakes, "gpuhal_fake_vulkan.json")
            found |= {"VK_DRIVER_FILES": manifest, "VK_ICD_FILENAMES": manifest, "NODEVICE_SELECT": "1", "VK_LOADER_LAYERS_DISABLE": "all",
                      "GPUHAL_FAKE_VULKAN": ";".join(self.lines("vulkan"))}
        found |= {"FAKE_CUDA": "\n".join(self.lines("cuda")), "FAKE_HIP": "\n".join(self.lines("hip"))}
        return found | dict(line.split("=", 1) for line in self.lines("environment"))


class Player:
    def __init__(self, program, fakes, place):
        self.program, self.fakes, self.place = os.path.abspath(program), os.path.abspath(fakes), place
        self.root, self.state = place + "/root", place + "/state"
        self.build = os.path.dirname(os.path.dirname(self.program))

    def environment(self, machine):
        Tree(machine.folder.parent).read(machine.folder.name).write(self.root)
        kept = {name: value for name, value in os.environ.items() if name.startswith(("ASAN_", "TSAN_", "UBSAN_", "LSAN_", "LD_LIBRARY_PATH"))}
        return kept | {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": self.place, "GPUHAL_SYSTEM_ROOT": self.root,
                       "GPUHAL_REGISTRY": self.state} | machine.environment(self.fakes)

    def run(self, machine, environment, *options, columns=80):
        give_up_rights()
        done = subprocess.run([self.program, "--color=never", *options, *" ".join(machine.lines("options")).split()],
                              env=environment | {"COLUMNS": str(columns)}, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=DEADLINE)
        return done.returncode, self.neutral(done.stdout.decode("utf-8")), self.neutral(done.stderr.decode("utf-8"))

    def neutral(self, text):
        """Replaces the parts that differ between runs and builds."""
        for path, word in ((self.root, ""), (self.place, "/STATE"), (self.build, "/BUILD")):
            text = text.replace(path, word)
        processor = rf"(?<![\w.]){platform.machine()}(?!\w)"  # the architecture of the build, on every machine
        for pattern, word in ((processor, "MACHINE"), (r'(?<="processors": )\d+', "0"),
                              (r"(\.so\.\d+)(\.\d+)+", r"\1"),
                              (r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?\b", lambda found: "".join("0" if c.isdigit() else c for c in found[0])),
                              (r"(?<![\w:.])([01]\d|2[0-3]):[0-5]\d(?![\w:.])", "00:00"), (r"\b20\d\d-\d\d-\d\d\b", "0000-00-00"),
                              (r"\b\d+\.\d ms\b", "0.0 ms"), (r'(?<="time_ms": )[\d.]+', "0")):
            text = re.sub(pattern, word, text, flags=re.M)
        return text

    def play(self, machine):
        """Returns the expected files by name, and the printed metrics."""
        for name in machine.lines("earlier"):
            earlier = Machine(machine.folder.parent / name)
            self.run(earlier, self.environment(earlier))
        environment, files, kept = self.environment(machine), {}, machine.folder.name in IN_ALL_FORMATS
        screens = "".join(self.screen(machine, environment, width) for width in (WIDTHS if kept else WIDTHS[:1]))
        for name, option in RUNS:
            code, out, _ = self.run(machine, environment, option)
            files[name] = compact(json.loads(out)) if name.endswith(".json") else out
            screens += f"$ gpuhal-probe {option} -> {code}\n"
        metrics = files["metrics.txt"]
        return (files if kept else {"probe.json": files["probe.json"]}) | {"screens.txt": screens}, metrics

    def screen(self, machine, environment, width):
        code, out, said = self.run(machine, environment, columns=width)
        return f"$ COLUMNS={width} gpuhal-probe -> {code}\n{out}{''.join(f'! {line}' for line in said.splitlines(True))}\n"


def give_up_rights():
    """Takes the capabilities from the programs that this process starts from now on. The process itself keeps them."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in CAPABILITIES if os.geteuid() == 0 else ():
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def compact(value, indent=""):
    """Formats JSON so that differences are readable. Each value that fits on one line is on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + len(indent) <= 150 or not isinstance(value, (dict, list)) or not value:
        return line if indent else line + "\n"
    deeper = indent + " "
    items = [f"{deeper}{json.dumps(key)}: {compact(one, deeper)}" for key, one in value.items()] if isinstance(value, dict) else \
            [deeper + compact(one, deeper) for one in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return f"{begin}\n" + ",\n".join(items) + f"\n{indent}{end}" + ("" if indent else "\n")


def lacks(machine):
    if Tree(machine.folder.parent).read(machine.folder.name).modes and os.geteuid() != 0:
        return "root alone can give a node to root, as the machine has it"
    if "vulkan" in machine.lines("libraries"):
        try:
            ctypes.CDLL("libvulkan.so.1")
        except OSError:
            return "the Vulkan loader is not installed"
    return None


def wrong_advice(document):
    """Checks that there is a warning in the line before each command that restarts the machine, ends other work, or
    changes the machine's files, and that a restart has a separate line. Also checks the width of all lines."""
    for fix in {one["fix"] for one in document["hardware"] + document["problems"] if one["fix"]}:
        lines = fix.split("\n")
        for before, line in zip(["", *lines], lines):
            if line.startswith("#") and len(line) > WORDS_WIDTH:
                yield f"longer than {WORDS_WIDTH}: {line}"
            elif not line.startswith("#") and DRASTIC.search(line) and not (before.startswith("#") and before.endswith(":")):
                yield f"no warning before it: {line}"
            elif not line.startswith("#") and ("   # " in line or ("reboot" in line and line != "sudo reboot")):
                yield f"not in a line of its own: {line}"


def disagreements(files, metrics):
    """Checks that the exit status, the JSON and the metrics agree about the machine, and that the screen marks
    everything that is worse than a note."""
    grades = set(re.findall(r"^gpuhal_hardware_grade{.*} ([0-3])$", metrics, re.M))
    first, screen = files["screens.txt"].split("\n$ COLUMNS")[0].split("\n", 1)
    problems = {one["grade"] for one in json.loads(files["probe.json"])["problems"]}
    broken = {"exit status": first.endswith(" -> 4"), "JSON": "problem" in problems, "metrics": "3" in grades}
    marked = {"screen": "\n! " in screen, "JSON": bool({"warning", "problem"} & problems), "metrics": bool({"2", "3"} & grades)}
    return [one for one in (broken, marked) if len(set(one.values())) > 1]


def compare(folder, files, metrics):
    wrong = False
    for one in disagreements(files, metrics):
        print("they disagree:", one)
        wrong = True
    for one in wrong_advice(json.loads(files["probe.json"])):
        print(one)
        wrong = True
    for name, text in files.items():
        path = folder / name
        expected = path.read_bytes().decode("utf-8") if path.exists() else ""
        lines = list(difflib.unified_diff(expected.splitlines(), text.splitlines(), f"expected {name}", f"printed {name}", lineterm=""))
        print("\n".join(lines[:200]), end="\n" if lines else "")
        wrong = wrong or expected != text
    return 1 if wrong else 0


def test(folder):
    program, fakes, machine = sys.argv[2], sys.argv[3], Machine(folder)
    if lacks(machine):
        print("skipped:", lacks(machine))
        return 77
    with tempfile.TemporaryDirectory(prefix="gpuhal-recorded-") as place:
        player = Player(program, fakes, place)
        if "--shell" in sys.argv:
            return subprocess.run([os.environ.get("SHELL", "sh")], env=os.environ | player.environment(machine), check=False).returncode
        files, metrics = player.play(machine)
    if "--write" in sys.argv:
        for name, text in files.items():
            (folder / name).write_bytes(text.encode("utf-8"))
        return 0
    return compare(folder, files, metrics)


def main():
    if sys.argv[1] != "all":
        return test(Path(sys.argv[1]).resolve())
    folders = [file.parent for file in sorted((Path(__file__).resolve().parents[1] / "recorded").glob("*/machine"))]
    return together.run_all({folder.name: folder for folder in folders}, test)


if __name__ == "__main__":
    sys.exit(main())
