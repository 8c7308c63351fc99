#!/usr/bin/env python3
"""Runs gpuhal-probe for the tests in the files probe_….py: FILE TEST PROGRAM ODD_PLUGINS SCHEMA. TEST may be all
(together.py). Exit code 77 means skipped."""

import copy
import fcntl
import functools
import importlib.util
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unicodedata

import recorded_test
import together

DEADLINE = 100  # seconds for one run; a whole test has slightly more
SETTINGS = ("GPUHAL_", "KUBERNETES_", "SLURM_", "FLUX_", "PBS_", "LSB_", "SGE_", "_CONDOR_", "APPTAINER_", "SINGULARITY_", "container", "POCL_DEVICES", "NO_COLOR", "COLUMNS", "TERM", "LC_", "LANG")


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Probe:
    """Runs the program. This machine's drivers start slowly, so only tests that check them use them; these tests call
    `use_drivers()`."""

    def __init__(self, program, odd, schema):
        self.program, self.odd, self.schema_path, self.drivers = program, odd, schema, False

    def use_drivers(self):
        self.drivers = True

    def environment(self, plugins, settings):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(SETTINGS)}
        kept |= {"LC_ALL": "C.UTF-8", "TERM": "xterm", "POCL_DEVICES": "pthread basic", "GPUHAL_REGISTRY": "none"}
        if not self.drivers:
            kept["GPUHAL_BACKENDS"] = "-cuda,-rocm,-vulkan,-opencl"
        if plugins:
            kept["GPUHAL_PLUGIN_PATH"] = ":".join(os.path.join(self.odd, name) for name in plugins)
        return kept | settings

    def run(self, *options, plugins=(), **settings):
        done = subprocess.run([self.program, *options], env=self.environment(plugins, settings), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=DEADLINE)
        return Result(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))

    def json(self, *options, **settings):
        result = self.run("--json", *options, **settings)
        try:
            return json.loads(result.out), result
        except json.JSONDecodeError as error:
            raise AssertionError(f"no JSON: {error}\n{result}") from None

    def on_terminal(self, *options, columns=80, plugins=(), **settings):
        """Runs the program with output and messages on one terminal, as for an interactive user."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        child = subprocess.Popen([self.program, *options], env=self.environment(plugins, settings), stdin=slave, stdout=slave,
                                 stderr=slave)
        os.close(slave)
        text, end = b"", time.monotonic() + DEADLINE
        while time.monotonic() < end:
            if select.select([master], [], [], 0.2)[0]:
                try:
                    block = os.read(master, 65536)
                except OSError:  # on Linux this means that the other side has closed the terminal
                    break
                if not block:
                    break
                text += block
        os.close(master)
        return Result(child.wait(timeout=5), text.decode("utf-8"), "")


def screen_lines(text):
    """Returns the lines that a terminal shows at the end, without colours and erased progress."""
    lines = []
    for line in text.replace("\r\n", "\n").split("\n"):
        shown = ""
        for piece in line.split("\r"):
            shown = piece[3:] if piece.startswith("\033[K") else piece or shown
        lines.append(re.sub(r"\033\[[0-9;]*m", "", shown))
    return lines


def columns_of(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def check(condition, *shown):
    if not condition:
        raise AssertionError("\n".join(str(one) for one in shown))


def by_id(document):
    return {device["id"]: device for device in document["devices"]}


def states(document):
    return {plugin["name"]: plugin["state"] for plugin in document["plugins"]}


@functools.lru_cache(maxsize=None)
def validator(schema_path):
    try:
        import jsonschema
    except ImportError:
        print("skipped: python3-jsonschema is not installed")
        sys.exit(77)
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def complaints(probe, document):
    return [f"{list(error.absolute_path)}: {error.message}" for error in validator(probe.schema_path).iter_errors(document)]


def places(value, path=()):
    """Yields the path and name of each member of every object in the document."""
    if isinstance(value, dict):
        for key in value:
            yield path, key
            yield from places(value[key], path + (key,))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, path + (index,))


def spoilings(document):
    """Yields the path, the member, a description of the change, and the function that makes the change. Unknown members
    are valid, because newer documents have more members."""
    for path, key in places(document):
        yield path, key, "removed", lambda at: at.pop(key)
        yield path, key, "of a wrong type", lambda at: at.update({key: [1.5]})


def at_path(document, path):
    return functools.reduce(lambda at, step: at[step], path, document)


def changed(document, path, change):
    """Returns a copy with a change at the path. The other entries of the document's lists are removed, because
    validating them takes time."""
    small, path = {key: [] if isinstance(value, list) else value for key, value in document.items()}, list(path)
    if len(path) > 1 and isinstance(document[path[0]], list):
        small[path[0]], path[1] = [document[path[0]][path[1]]], 0
    small = copy.deepcopy(small)
    change(at_path(small, path))
    return small


def fakes_of(vendor, library):
    """Returns the folder of a fake driver. Exits with 77 if the fake was not built."""
    folder = os.path.join(os.environ.get("PROBE_TEST_FAKES", "/nowhere"), vendor)
    if not os.path.exists(os.path.join(folder, library)):
        print(f"skipped: the fake {library} was not built")
        sys.exit(77)
    return folder


def fake_cuda(machine):
    """Returns settings for devices of the fake CUDA."""
    folder = fakes_of("cuda", "libcuda.so.1")
    return {"GPUHAL_CUDA_LIBRARY": os.path.join(folder, "libcuda.so.1"), "FAKE_CUDA": machine,
            "GPUHAL_NVML_LIBRARY": os.path.join(folder, "libnvidia-ml.so.1")}


def fake_hip(machine):
    """Returns settings for devices of the fake HIP."""
    folder = fakes_of("rocm", "libamdhip64.so.6")
    return {"GPUHAL_HIP_LIBRARY": os.path.join(folder, "libamdhip64.so.6"), "FAKE_HIP": machine,
            "GPUHAL_AMD_SMI_LIBRARY": os.path.join(folder, "libamd_smi.so"), "GPUHAL_SYSTEM_ROOT": os.path.join(folder, "system")}


def on_recorded(name, files=()):
    """Returns a function that runs the program with options on a machine of tests/recorded, after the machine's earlier
    runs. Exits with 77 if the fakes were not built. `files` maps the paths of additional files in the machine's tree to
    their contents."""
    fakes, recorded = os.environ.get("PROBE_TEST_FAKES", "/nowhere"), os.path.join(os.path.dirname(os.path.abspath(__file__)), "../recorded")
    machine = recorded_test.Machine(os.path.realpath(os.path.join(recorded, name)))
    if recorded_test.lacks(machine) or not os.path.exists(fakes):
        print("skipped: the recorded machine needs what is not here")
        sys.exit(77)
    place = tempfile.TemporaryDirectory()
    player = recorded_test.Player(sys.argv[2], fakes, place.name)
    for earlier in (recorded_test.Machine(machine.folder.parent / one) for one in machine.lines("earlier")):
        player.run(earlier, player.environment(earlier))
    environment = player.environment(machine)
    for path, text in dict(files).items():
        path = os.path.join(environment["GPUHAL_SYSTEM_ROOT"], path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def spoil(endless):
        """Replaces the machine's readable files by pipes, or by links to a device that never ends."""
        root = environment["GPUHAL_SYSTEM_ROOT"]
        for name in ("etc/os-release", "usr/lib/os-release", "proc/meminfo", "proc/cpuinfo", "proc/sys/kernel/hostname", "proc/sys/kernel/osrelease"):
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if not os.path.lexists(path):
                os.mkfifo(path)
        for folder, _, names in os.walk(root):
            for path in (os.path.join(folder, name) for name in names):
                is_link = os.path.islink(path)
                if not is_link or os.readlink(path) == "/dev/zero":
                    os.unlink(path)
                    os.symlink("/dev/zero", path) if endless else os.mkfifo(path)

    def run(*options, columns=400, of=place, spoiled=None, **settings):
        if spoiled is not None:
            spoil(spoiled)
        return Result(*player.run(machine, environment | settings, *options, columns=columns))
    run.environment = environment
    return run


def rows_of(result):
    """Returns the mark and the ID in each line of the table that is about a device. Skips lines about processes."""
    table = re.split(r"^  ID +USER ", result.out, maxsplit=1, flags=re.M)[0]
    return [(line[0], line[2:].split()[0]) for line in table.splitlines() if re.match("[*+! ] [a-z][a-z0-9_]*:[0-9]+ ", line)]


def is_a_path(line):
    """Returns whether the line contains only a path after its label. Long paths are not wrapped, so that users can copy
    them."""
    return re.fullmatch(r" +(?:[a-z]+ +)?/\S+", line)


def machine_with(*devices):
    """Creates a folder for GPUHAL_SYSTEM_ROOT. On the machine's PCI bus are these display controllers, each given as
    (address, vendor, device, kernel driver)."""
    root = tempfile.TemporaryDirectory()
    for address, vendor, device, driver in devices:
        folder = os.path.join(root.name, "sys/devices/pci0000:00", address)
        os.makedirs(folder)
        for name, text in (("class", "0x030000"), ("vendor", vendor), ("device", device), ("numa_node", "0"), ("local_cpulist", "0-3")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text + "\n")
        bus = os.path.join(root.name, "sys/bus/pci/devices")
        os.makedirs(bus, exist_ok=True)
        os.symlink(os.path.join("../../../devices/pci0000:00", address), os.path.join(bus, address))
        if driver:
            os.makedirs(os.path.join(root.name, "sys/bus/pci/drivers", driver), exist_ok=True)
            os.symlink(os.path.join("../../../bus/pci/drivers", driver), os.path.join(folder, "driver"))
    return root


def read_schema():
    """Called once before the tests of a file. The last argument is a path."""
    if importlib.util.find_spec("jsonschema"):
        validator(sys.argv[-1])


def main(tests):
    first = {"first": read_schema} if {"complaints", "validator"} & tests.keys() else {}
    sys.exit(together.run(tests, "probe", sys.argv[1], lambda test: test(Probe(*sys.argv[2:5])), **first))
