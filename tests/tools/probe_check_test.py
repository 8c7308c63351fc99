#!/usr/bin/env python3
"""Tests gpuhal-probe --check healthy, and the page about replacing other programs. See probe_support.py."""

import csv
import json
import os
import re
import shlex
import signal
import subprocess
import tempfile

from probe_support import DEADLINE, check, fake_cuda, main, on_recorded, validator

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/instead-of.md")
NO_RESET = "fail nvmlDeviceGetTemperature 1+ 16; fail nvmlDeviceGetPowerUsage 1+ 16"


def expect(result, code, line, *shown):
    check(result.code == code and re.fullmatch(f"{line}\n", result.out) and not result.err, *shown, result)


def a_line_and_a_status_say_whether_the_gpus_are_healthy(probe):
    def run(machine, *options):
        return probe.run("--check", "healthy", *options, "--backends", "cuda", **fake_cuda(machine))
    expect(run("devices 8"), 0, "healthy: 8 GPUs ready")
    expect(run("devices 8", "--expect", "8"), 0, "healthy: 8 GPUs ready")
    expect(run("devices 7", "--expect", "8"), 4, "not healthy: 7 GPUs ready, 8 expected")
    expect(on_recorded("exclusive-taken")("--check", "healthy", "--expect", "8"), 0, "healthy: 6 of 8 GPUs ready; note: .*")
    expect(on_recorded("mig-empty-on-one")("--check", "healthy", "--expect", "8"), 4, "not healthy: 7 of 8 GPUs ready, 8 expected; .*MIG is on.*")
    expect(run(f"devices 2; {NO_RESET}"), 4, r"not healthy: 0 of 2 GPUs ready; cuda:0, cuda:1: the GPU needs a reset, as its driver reports")
    expect(run(f"devices 2; {NO_RESET}", "--expect", "2"), 4, "not healthy: 0 of 2 GPUs ready, 2 expected; cuda:0, .*")
    warning = "cuda:0: 3 memory errors could not be corrected; and 1 more: gpuhal-probe"
    ill = "devices 1; value 0 ecc_uncorrected 3; value 0 throttle 64"
    expect(run(ill), 0, f"healthy: 1 GPU ready; warning: {warning}")
    expect(run(ill, "--strict"), 4, f"not healthy: 1 GPU ready; {warning}")
    expect(run("devices 3", "--verify"), 0, "healthy: 3 GPUs ready")
    expect(probe.run("--check=healthy", "--backends", "cpu", GPUHAL_SYSTEM_ROOT="/nowhere"), 3, "no GPU")
    expect(probe.run("--check=healthy", "--backends", "cpu", "--expect", "2", GPUHAL_SYSTEM_ROOT="/nowhere"), 4, "not healthy: no GPU, 2 expected")


def recorded_machines_are_judged_as_by_their_screens(probe):
    for name, code, line in (("h100-8", 0, "healthy: 8 GPUs ready"), ("amd-discrete", 0, "healthy: 1 GPU ready"),
                             ("h100-8-one-gone", 4, r"not healthy: 7 of 8 GPUs ready; NVIDIA H100 80GB HBM3 at 0000:df:00.0: it was on the bus on .*"),
                             ("reset-required", 4, "not healthy: .*needs a reset.*"), ("gpu-lost-values", 4, "not healthy: .* is lost.*"),
                             ("secure-boot", 4, "not healthy: 0 of 1 GPU ready; .*Secure Boot.*"), ("server-plain", 3, "no GPU.*"),
                             ("docker-one-of-8", 0, "healthy: 1 GPU ready; 7 more of this host are not given to this container"),
                             ("vgpu-host-vfs", 3, "0 of 1 GPU ready: .*virtual machines.*"),
                             ("mig-on-one-of-8", 0, "healthy: 1 of 8 GPUs ready; note: .*CUDA gives a program either a part of a divided GPU.*"),
                             ("ecc-uncorrected", 0, "healthy: .*; warning: .*could not be corrected.*")):
        expect(on_recorded(name)("--check", "healthy"), code, line, name)


def the_document_has_the_line_the_status_the_counts_and_the_problems(probe):
    schema = validator(os.path.join(os.path.dirname(probe.schema_path), "gpuhal.health-1.schema.json"))
    for name, options in (("h100-8", ()), ("h100-8-one-gone", ("--expect", "8")), ("exclusive-taken", ("--expect", "8")), ("docker-one-of-8", ()),
                          ("server-plain", ()), ("ecc-uncorrected", ("--strict",)), ("ecc-uncorrected", ())):
        run = on_recorded(name)
        line = run("--check", "healthy", *options)
        for form in (("--json",), ("--format", "json"), ("--json=2",)):
            result = run("--check", "healthy", *options, *form)
            document = json.loads(result.out)
            check(schema.is_valid(document) and list(document) == list(schema.schema["properties"]), name, list(schema.iter_errors(document)))
            check(result.code == line.code == document["exit_status"] and document["result"] + "\n" == line.out and not result.err, name, line, result)
            check(document["healthy"] == (line.code == 0), name, document)
    ill = json.loads(on_recorded("h100-8-one-gone")("--check", "healthy", "--json", "--expect", "8").out)
    check(ill["gpus"] == {"ready": 7, "all": 8, "in_exclusive_use": 0, "not_given": 0, "expected": 8}, ill)
    check([(one["code"], one["hardware"]) for one in ill["problems"]] == [("gone", "0000:df:00.0")] and ill["problems"][0]["fix"], ill)
    check(json.loads(on_recorded("docker-one-of-8")("--check", "healthy", "--json").out)["gpus"]["not_given"] == 7)
    check(json.loads(on_recorded("exclusive-taken")("--check", "healthy", "--json").out)["gpus"]["in_exclusive_use"] > 0)


def in_a_cell_a_warning_stands_before_its_command_and_answers_behind_it(probe):
    for name, words in (("nvidia-version-mismatch", "the driver was updated, and a restart loads its module: ends all programs on this machine: sudo reboot"),
                        ("h100-8-one-off-bus", "sudo dmesg | grep -E 'NVRM|Xid'   # Xid 79: turn power off and on; if it recurs: slot, power, card"),
                        ("mig-empty-alone", "sudo nvidia-smi mig -i 0000:c1:00.0 -lgip; then, with an ID of that list: sudo nvidia-smi mig -i 0000:c1:00.0 -cgi ID -C; or, to use the whole GPU: sudo nvidia-smi -i 0000:c1:00.0 -mig 0")):
        rows = list(csv.DictReader(on_recorded(name)("--format", "csv", "--columns", "id,fix").out.splitlines()))
        check([row["fix"] for row in rows if row["fix"]] == [words], name, rows)


def the_line_is_one_whatever_a_driver_says(probe):
    settings = fake_cuda(f"devices 1; name 0 bad\x1b[31m name; {NO_RESET}")
    result = probe.run("--check", "healthy", "--backends", "cuda", COLUMNS="40", **settings)
    check(result.code == 4 and result.out.count("\n") == 1 and "\x1b" not in result.out, result)


def where_it_has_no_meaning_it_is_a_mistake(probe):
    for options in (("--check", "happy"), ("--check", ""), ("--check", "healthy", "--json=1"), ("--check", "healthy", "--format", "csv"),
                    ("--check", "healthy", "--format", "jsonl"),
                    ("--check", "healthy", "--cached"), ("--check", "healthy", "--processes"), ("--check", "healthy", "--all"),
                    ("--check", "healthy", "--explain"), ("--check", "healthy", "--every", "1"), ("--check", "healthy", "--watch"),
                    ("--check", "healthy", "--columns", "id"), ("--check", "healthy", "--registry"), ("--check", "healthy", "--report", "-")):
        result = probe.run(*options)
        check(result.code == 2 and "--check" in result.err and "GPU" not in result.out, options, result)
        check('"usage"' in result.out if "--json=1" in options else not result.out, options, result)


# ---------------------------------------------------------------------------------------------- the page

def commands_of(text):
    """Returns the commands of the last column, and the commands of the examples up to a pipe or a closing
    parenthesis."""
    rows = [re.split(r"(?<!\\) \| ", line)[-1] for line in text.splitlines() if line.startswith("| ")]
    named = [command for row in rows for command in re.findall("`(gpuhal-probe[^`]*)`", row)]
    blocks = [block.replace(" 2>&1", "") for block in re.findall("```sh\n(.*?)```", text, re.S)]
    shown = [command.strip() for block in blocks for command in re.findall(r"gpuhal-probe[^|)\n]*", block)]
    return named, shown


def every_command_on_the_page_of_other_programs_runs(probe):
    with open(PAGE, encoding="utf-8") as file:
        named, shown = commands_of(file.read())
    check(len(named) > 15 and len(shown) > 1, named, shown)
    for command in dict.fromkeys(named + shown):
        with tempfile.TemporaryDirectory() as folder:
            words = shlex.split(command)
            devices = words[words.index("--expect") + 1] if "--expect" in words else 2  # eight have 56 links to verify
            settings = fake_cuda(f"devices {devices}; memory * 1G; process 0 1 1M") | {"GPUHAL_BACKENDS": "cuda"}
            child = subprocess.Popen([probe.program, *words[1:]], env=probe.environment((), settings), cwd=folder, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if {"--watch", "--every"} & set(words):
                check(child.stdout.readline(), command)
                child.send_signal(signal.SIGTERM)
            out, said = child.communicate(timeout=DEADLINE)
            check(child.returncode == 0 and (out or "--watch" in words or "--every" in words), command, child.returncode, out, said)


if __name__ == "__main__":
    main(globals())
