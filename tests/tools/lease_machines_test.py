#!/usr/bin/env python3
"""Tests which devices gpuhal-lease selects on recorded machines (tests/recorded). lease_machines_test.py TEST|all
PROGRAM PROBE FAKES; exit code 77 means skipped."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import together
from probe_support import check
from recorded_test import Machine, Player, give_up_rights, lacks

DEADLINE = 100
FAILED, BUSY = 125, 75
RECORDED = Path(__file__).resolve().parent.parent / "recorded"


class Played:
    """A recorded machine with a separate ledger. The test can change which processes use the machine."""

    def __init__(self, place, program, probe, fakes, name):
        machine = Machine(RECORDED / name)
        if lacks(machine):
            print("skipped:", lacks(machine))
            sys.exit(77)
        self.program, self.probe = program, probe
        self.environment = Player(program, fakes, place).environment(machine) | {"GPUHAL_LEDGER": place + "/ledger", "GPUHAL_REGISTRY": "none"}

    def change(self, *lines):
        """Appends statements of the CUDA fake to those of the machine."""
        self.environment["FAKE_CUDA"] += "\n" + "\n".join(lines)

    def start(self, *arguments):
        give_up_rights()
        return subprocess.Popen([self.program, *arguments], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def run(self, *arguments, code=0):
        process = self.start(*arguments)
        out, err = process.communicate(timeout=DEADLINE)
        check(process.returncode == code, process.returncode, out, err)
        return out, err

    def hold(self, *options):
        """Starts a command that runs until the test ends it, and waits until it has its lease. Returns the command's
        GPUHAL_DEVICES, and the command."""
        process = self.start("run", *options, "--", "sh", "-c", 'echo "$GPUHAL_DEVICES"; exec sleep 60')
        return process.stdout.readline().strip(), process

    def leased(self, *options):
        """Runs a command that ends immediately. Returns the command's devices."""
        return self.run("run", *options, "--", "sh", "-c", 'echo "$GPUHAL_DEVICES"')[0].strip()

    def status(self):
        return json.loads(self.run("status", "--json")[0])

    def probed(self):
        done = subprocess.run([self.probe, "--json"], env=self.environment, capture_output=True, timeout=DEADLINE, check=False)
        return json.loads(done.stdout)

    def named(self):
        """Returns the device's name in GPUHAL_DEVICES by its ID in the output of gpuhal-probe."""
        return {own["id"]: f"uuid={own['uuid'].removeprefix('GPU-')}" if own["uuid"] else f"pci={own['pci_address']}" for own in self.probed()["devices"]}


def end(*processes):
    for process in processes:
        process.terminate()
        process.communicate(timeout=DEADLINE)


def a_command_sees_what_was_leased_and_nothing_else_through_the_libraries_of_two_vendors(play):
    machine = play("nvidia-and-amd")
    for selector, ids in (("3", ["cuda:0", "rocm:0", "rocm:1"]), ("cuda:0", ["cuda:0"]), ("rocm:1", ["rocm:0"]), ("rocm:0,cuda:0", ["cuda:0", "rocm:0"])):
        out, err = machine.run("run", "--devices", selector, "--", machine.probe, "--json")
        seen = [one["id"] for one in json.loads(out)["devices"] if one["backend"] in ("cuda", "rocm")]
        check(seen == ids, selector, seen, err)


def partitions_of_a_gpu_that_share_its_uuid_are_leased_one_by_one(play):
    machine = play("mi300x-partitions")
    first, second = machine.start("run", "--devices", "rocm:0", "--", "sleep", "60"), machine.start("run", "--devices", "rocm:1,3", "--", "sleep", "60")
    while sum(lease["state"] == "held" for lease in machine.status()["leases"]) < 2:
        check(first.poll() is None and second.poll() is None, machine.status())
        time.sleep(0.05)
    machine.run("run", "--no-wait", "--devices", "rocm:3", "--", "true", code=BUSY)
    out, _ = machine.run("run", "--no-wait", "--devices", "rocm:5", "--", machine.probe, "--json")
    seen = [one["facts"]["partition"] for one in json.loads(out)["devices"] if one["backend"] == "rocm"]
    check(seen == ["5"], seen)
    end(first, second)


def within_a_lease_the_other_gpus_are_not_given(play):
    for name, count, selector in (("h100-8", 8, "2"), ("nvidia-and-amd", 3, "cuda:0"), ("nvidia-and-amd", 3, "rocm:0"), ("intel-arc-and-integrated", 2, "1")):
        machine = play(name)
        out, _ = machine.run("run", "--devices", selector, "--", machine.probe)
        given = 2 if selector == "2" else 1
        rest = f"{count - given} more of this host {'is' if count - given == 1 else 'are'} not given to this lease 1"
        check(f"{given} GPU{'s' if given > 1 else ''} ready; {rest}" in out and "next:" not in out, name, out)


def a_discrete_gpu_is_leased_before_the_integrated_one(play):
    machine = play("intel-arc-and-integrated")
    arc, uhd = (machine.named()[name] for name in ("vulkan:0", "vulkan:1"))
    check(machine.leased() == arc, machine.leased(), arc)
    first, one = machine.hold("--slots=all")
    second, other = machine.hold("--slots=all")
    check([first, second] == [arc, uhd], first, second)
    end(one, other)


def the_gpu_of_the_preferred_backend_is_leased_before_one_with_more_memory(play):
    machine = play("laptop-hybrid-asleep")
    names = machine.named()
    check(machine.leased() == names["cuda:0"], machine.leased(), names)
    out, _ = machine.run("run", "--", "sh", "-c", 'echo "$CUDA_VISIBLE_DEVICES"')
    check(out.startswith("GPU-"), out)


def default_of(document):
    chosen = next(device for device in document["devices"] if device["id"] == document["chosen"]["id"])
    return chosen["name"], chosen["uuid"], chosen["pci_address"]


def what_is_leased_is_the_default_device_of_the_probe(play):
    played = 0
    for name in ("amd-discrete", "arm-board", "docker-one-of-8", "h100-8-one-gone", "laptop-without-nvidia-driver", "mi300x-partitions", "mig-on-one-of-8",
                 "nvidia-and-amd", "nvidia-mig", "nvidia-two-different", "wsl"):
        if lacks(Machine(RECORDED / name)):
            continue
        machine = play(name)
        inner = json.loads(machine.run("run", "--no-wait", "--", "sh", "-c", f"{machine.probe} --json || true")[0])
        check(default_of(inner) == default_of(machine.probed()), name, default_of(inner), default_of(machine.probed()))
        table = machine.run("status")[0]
        check(all(len(line) <= 80 for line in table.splitlines()), name, table)
        played += 1
    check(played > 0, "no machine could be played")


def of_equal_gpus_those_that_strangers_use_are_leased_last(play):
    machine = play("h100-8")
    names = machine.named()
    got = [machine.hold("--slots=all") for _ in range(8)]
    order = [name for device, _ in got for name, own in names.items() if own == device and name.startswith("cuda:")]
    check(order == [f"cuda:{i}" for i in (0, 1, 4, 5, 6, 7, 3, 2)], order)
    end(*[process for _, process in got])


def a_stranger_that_computes_without_much_memory_is_avoided_too(play):
    machine = play("h100-8")
    machine.change("value 0 utilization 100")
    check(machine.leased("--slots=all") == machine.named()["cuda:1"], machine.leased("--slots=all"))


def what_strangers_use_is_read_anew_for_every_decision_and_in_status(play):
    machine = play("h100-8")
    machine.run("run", "--devices=cuda:2", "--memory=1GiB", "--", "true")
    machine.change("used 2 1M", "value 2 utilization 0", "used 4 50G")
    others = {device["id"]: device["bytes_foreign"] for device in machine.status()["devices"]}
    check(others["cuda:2"] < 1 << 30 and others["cuda:4"] >= 50 << 30 and len(others) == 8, others)
    machine.change(*(f"used {i} {20 - i}G" for i in range(8) if i != 2))
    check(machine.leased("--slots=all") == machine.named()["cuda:2"], "not the one that is free now")


def a_lost_gpu_is_never_leased_and_the_status_says_so(play):
    machine = play("gpu-lost-values")
    for arguments in ((), ("--devices=cuda:0",), ("--no-wait",)):
        _, err = machine.run("run", *arguments, "--", "true", code=FAILED)
        check("cuda:0 is lost" in err, err)
    check([device["left_out"] for device in machine.status()["devices"]] == ["lost"], machine.status())
    check("lost" in machine.run("status")[0], machine.run("status")[0])


def a_gpu_that_needs_a_reset_is_never_leased_and_the_status_says_so(play):
    machine = play("reset-required")
    for arguments in ((), ("--devices=cuda:0",)):
        _, err = machine.run("run", *arguments, "--", "true", code=FAILED)
        check("cuda:0 needs a reset" in err, err)
    check([device["left_out"] for device in machine.status()["devices"]] == ["reset_needed"], machine.status())


def a_gpu_that_needs_a_reset_and_hangs_is_never_leased_and_keeps_no_command_waiting(play):
    machine = play("reset-required")
    machine.environment["FAKE_CUDA"] = "hang nvml* 10\nfail nvmlDevice* 1+ 16\n" + machine.environment["FAKE_CUDA"]
    begin = time.monotonic()
    check([device["left_out"] for device in machine.status()["devices"]] == ["reset_needed"], machine.status())
    _, err = machine.run("run", "--", "true", code=FAILED)
    check("cuda:0 needs a reset" in err and time.monotonic() - begin < 40, err, time.monotonic() - begin)


def a_gpu_whose_compute_mode_keeps_programs_out_is_never_leased(play):
    machine = play("prohibited")
    for arguments in ((), ("--devices=cuda:0",)):
        _, err = machine.run("run", *arguments, "--", "true", code=FAILED)
        check("compute mode" in err, err)
    check([device["left_out"] for device in machine.status()["devices"]] == ["prohibited"], machine.status())
    check("prohibited by its compute mode" in " ".join(machine.run("status")[0].split()), machine.run("status"))


def a_gpu_that_one_process_has_alone_is_leased_once_that_has_ended(play):
    machine = play("exclusive")
    check(machine.leased("--no-wait"), "one that is exclusive and free is leased")
    machine.change("process 0 1 1G draws")
    check(machine.leased("--no-wait"), "what draws takes nothing")
    machine.change("devices 1", "mode 0 exclusive", "process 0 1 1G")
    for arguments in ((), ("--devices=cuda:0",), ("--share",)):
        _, err = machine.run("run", "--no-wait", *arguments, "--", "true", code=BUSY)
        check("leased or in use" in err, err)
        _, err = machine.run("run", "--timeout=1", *arguments, "--", "true", code=124)
        check("was not granted in time" in err, err)
    check([device["left_out"] for device in machine.status()["devices"]] == ["taken"], machine.status())
    check("not leased: it is exclusive, and another process has it" in machine.run("status")[0], machine.run("status")[0])
    machine.change("devices 2", "mode * exclusive", "process 0 1 1G")
    check(machine.leased("--no-wait") == machine.named()["cuda:1"], machine.named())
    _, err = machine.run("run", "--no-wait", "--devices=2", "--", "true", code=BUSY)
    check("leased or in use" in err, err)
    _, err = machine.run("run", "--no-wait", "--devices=cuda:0", "--", "true", code=BUSY)
    check("cuda:0 is exclusive, and another process has it" in err, err)
    _, err = machine.run("run", "--timeout=1", "--devices=cuda:0", "--", "true", code=124)
    check("cuda:0 is exclusive, and another process has it" in err, err)


def a_lesser_gpu_is_no_equal_of_the_best_one_if_another_lesser_one_is_left_out(play):
    machine = play("h100-8")
    machine.change("devices 3", "memory 0 80G", "memory 1 40G", "memory 2 40G", "mode 1 prohibited", "used 0 8G")
    check(machine.leased() == machine.named()["cuda:0"], machine.leased(), machine.named())


def the_gpus_beside_a_sick_one_are_leased(play):
    machine = play("h100-8")
    machine.change("fail nvmlDeviceGetUtilizationRates 1+ 16")  # on all devices
    _, err = machine.run("run", "--", "true", code=FAILED)
    check("1 GPU is requested, but 0 can be leased: cuda:0 needs a reset" in err, err)
    for lines in (("value 0 memory_repair 1",), ("value 0 link_replays 3",), ("value 0 fabric 3", "value 0 fabric_status 999"), ("value 0 ecc_uncorrected 3",)):
        machine = play("h100-8")
        machine.change(*lines)
        check(machine.leased("--slots=all") == machine.named()["cuda:1"], lines, "the one with a warning came before its equals")
    _, process = machine.hold("--slots=all", "--devices=7")
    check(machine.leased("--slots=all") == machine.named()["cuda:0"], "a warning keeps no GPU from being leased")
    end(process)


def main(test):
    program, probe, fakes = sys.argv[2:]
    if not os.path.exists(os.path.join(fakes, "cuda", "libcuda.so.1")):
        print("skipped: the fake CUDA driver was not built")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="gpuhal-lease-") as folder:
        def play(name):
            return Played(tempfile.mkdtemp(dir=folder), program, probe, fakes, name)
        test(play)


if __name__ == "__main__":
    sys.exit(together.run(globals(), "play", sys.argv[1], main))
