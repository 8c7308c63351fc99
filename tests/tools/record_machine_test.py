#!/usr/bin/env python3
"""Tests tools/record-machine.sh on recorded machines and on this machine.

record_machine_test.py TEST|all RECORDER RECORDED_MACHINES PROGRAM"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import together
from machine_tree import Tree

# These are not compared: files whose text is replaced, files that only the tree's author added, and users and their
# processes, because the recorder does not record them.
REPLACED = re.compile(r"/etc/passwd|/proc/\d+/.*|/sys/class/kfd/kfd/proc/.*|/proc/(sys/kernel/(hostname|random/boot_id)|self/cgroup|cpuinfo|device-tree/.*)|.*/unique_id|/dev/kvm|"
                      r"/sys/class/drm/card\d+|.*/(card\d+|axi:gpu)(/.*)?|.*/(of_node|subsystem).*|.*_(label|max)|/usr/.*|/sys/bus/.*/drivers.*")
UUID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|unique_id \d+")


def check(condition, *shown):
    if not condition:
        raise AssertionError("\n".join(str(one) for one in shown))


def record(recorder, place, root=None):
    done = subprocess.run(["sh", recorder, f"{place}/machine", *([root] if root else [])], capture_output=True, text=True, check=False)
    check(done.returncode == 0 and done.stderr.startswith("recorded: ") and done.stderr.count("\n") == 1, done)
    return Tree(place).read("machine")


def without_numbers(what):
    return UUID.sub(b"ID", what) if isinstance(what, bytes) else what


def keep_two_gpus(tree):
    """Removes all but two of several equal devices."""
    addresses = sorted({match.group() for match in map(re.compile(r"(?<=/devices/)\w{4}:\w\w:\w\w\.\w$").search, tree.things) if match})
    tree.things = {path: what for path, what in tree.things.items() if not any(one in f"{path} {what}" for one in addresses[2:])}


def a_recording_of_a_recorded_machine_is_that_machine_again(recorder, folder):
    for name in ("amd-discrete", "h100-8", "intel-arc-and-integrated", "laptop-hybrid-asleep", "mi300x-partitions", "nvidia-mig"):
        with tempfile.TemporaryDirectory() as place:
            tree = Tree(folder).read(name)
            keep_two_gpus(tree)
            tree.write(place + "/root")
            again = record(recorder, place, place + "/root")
            wrong = [f"{path}: {tree.things.get(path)} became {again.things.get(path)}" for path in sorted(tree.things)
                     if tree.things[path] is not None and not REPLACED.fullmatch(path)
                     and without_numbers(tree.things[path]) != without_numbers(again.things.get(path))]
            check(not wrong, name, *wrong)


def of_a_tegra_the_gpu_and_its_thermal_zone_are_recorded(recorder, folder):
    with tempfile.TemporaryDirectory() as place:
        Tree(folder).read("jetson-orin").write(place + "/root")
        things, gpu = record(recorder, place, place + "/root").things, "/sys/devices/platform/bus@0/17000000.gpu"
        found = [things.get(path) for path in (f"{gpu}/load", f"{gpu}/devfreq/17000000.gpu/cur_freq", f"{gpu}/driver", "/sys/class/thermal/thermal_zone1/type",
                                               "/sys/bus/platform/drivers/gk20a/17000000.gpu")]
        check(found == [b"237\n", b"930750000\n", ("->", "/sys/bus/platform/drivers/gk20a"), b"gpu-thermal\n", ("->", gpu)], found)


def a_recording_has_no_names_and_numbers_that_identify_the_machine(recorder, folder):
    with tempfile.TemporaryDirectory() as place:
        tree = Tree(folder).read("amd-discrete")
        private = ("hideaway", "4f6d2a10-aaaa-4bbb-8ccc-123456789abc", "GPU-5e6d2a10-aaaa-4bbb-8ccc-123456789abc", "f6e1d0c0b0a09080", "10000000abcdef")
        device = tree.things["/sys/bus/pci/devices/0000:03:00.0"][1]
        tree.things |= {"/proc/sys/kernel/hostname": b"hideaway\n", f"{device}/serial_number": b"10000000abcdef\n",
                        "/proc/sys/kernel/random/boot_id": private[1].encode(), "/proc/driver/nvidia/version": private[2].encode() * 2,
                        "/proc/cpuinfo": b"processor : 0\nSerial : 10000000abcdef\n", "/proc/self/cgroup": b"0::/user.slice/hideaway\n"}
        tree.write(place + "/root")
        record(recorder, place, place + "/root")
        text = Path(place, "machine/tree").read_text(encoding="utf-8")
        check(not [word for word in private if word in text], text)
        check("version = GPU-00000000-0000-4000-8000-000000000001GPU-00000000-0000-4000-8000-000000000001" in text, text)


def of_a_sleeping_gpu_nothing_is_read_that_wakes_it(recorder, folder):
    with tempfile.TemporaryDirectory() as place:
        tree = Tree(folder).read("amd-discrete")
        device = tree.things["/sys/bus/pci/devices/0000:03:00.0"][1]
        tree.things[f"{device}/power/runtime_status"] = b"suspended\n"
        tree.write(place + "/root")
        again = record(recorder, place, place + "/root")
        kept = {path[len(device) + 1:] for path in again.things if path.startswith(device + "/")}
        check("power/runtime_status" in kept and "hwmon/hwmon2/name" in kept, kept)
        check(not [name for name in kept if re.search("_input|mem_info|config|percent|link_|unique", name)], kept)


def a_recording_of_this_machine_plays(recorder, folder):
    """Checks that gpuhal-probe lists the same hardware with and without the file."""
    program, listed = sys.argv[4], []
    with tempfile.TemporaryDirectory() as place:
        record(recorder, place).write(place + "/root")
        for root in ({}, {"GPUHAL_SYSTEM_ROOT": place + "/root"}):
            settings = {"GPUHAL_REGISTRY": "none", "GPUHAL_BACKENDS": "cpu"} | root
            done = subprocess.run([program, "--json"], env=os.environ | settings, capture_output=True, text=True, check=False)
            check(done.returncode in (0, 4), done)
            listed.append(re.findall(r'"(?:pci_address|total_bytes|memory_total_bytes)": [^,\n]*', done.stdout))
        check(listed[0] and listed[0] == listed[1], *listed)


def a_folder_that_has_a_tree_is_left_alone(recorder, folder):
    path = Path(folder, "wsl/tree")
    before = path.read_bytes()
    done = subprocess.run(["sh", recorder, str(path.parent)], capture_output=True, check=False)
    check(done.returncode == 2 and path.read_bytes() == before, done)


if __name__ == "__main__":
    sys.exit(together.run(globals(), "recorder, folder", sys.argv[1], lambda test: test(*sys.argv[2:4])))
