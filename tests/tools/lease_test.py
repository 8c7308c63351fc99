#!/usr/bin/env python3
"""gpuhal-lease from its users' view, over the fake CUDA driver and the CPU. lease_test.py TEST|all PROGRAM FAKES SCHEMA; 77 means skipped."""

import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import time

import together
from probe_support import check, read_schema, validator

DEADLINE = 100
BUSY, TIMEOUT, FAILED = 75, 124, 125


class Tool:
    def __init__(self, program, fakes, schema, folder):
        self.program, self.schema = program, schema
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("GPUHAL_", "CUDA_", "HIP_", "ROCR_"))}
        cuda = os.path.join(fakes, "cuda")
        self.environment = kept | {
            "GPUHAL_REGISTRY": "none", "GPUHAL_BACKENDS": "cuda", "GPUHAL_LEDGER": os.path.join(folder, "ledger"), "FAKE_CUDA": "devices 3; memory * 4G",
            "GPUHAL_CUDA_LIBRARY": os.path.join(cuda, "libcuda.so.1"), "GPUHAL_NVML_LIBRARY": os.path.join(cuda, "libnvidia-ml.so.1")}

    def start(self, *arguments, **settings):
        return subprocess.Popen([self.program, *arguments], env=self.environment | settings, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *arguments, code=0, **settings):
        process = self.start(*arguments, **settings)
        out, err = process.communicate(timeout=DEADLINE)
        check(process.returncode == code, process.returncode, out, err)
        return out, err

    def document(self, *arguments, **settings):
        document = json.loads(self.run(*arguments, **settings)[0])
        wrong = [f"{list(error.absolute_path)}: {error.message}" for error in validator(self.schema).iter_errors(document)]
        check(not wrong, document, *wrong)
        return document

    def status(self):
        return self.document("status", "--json")

    def error(self, *arguments, **settings):
        return self.document(*arguments, "--json", **settings)["error"]

    def hold(self, *options):
        """A command that runs until it is ended, once it has its lease."""
        process = self.start("run", *options, "--", "sh", "-c", "echo ready; exec sleep 60")
        check(process.stdout.readline() == "ready\n", process)
        return process


def end(process):
    process.terminate()
    process.communicate(timeout=DEADLINE)
    return process.returncode


def a_command_gets_its_devices_by_uuid_and_its_exit_status_is_passed_on(tool):
    script = 'echo "$CUDA_VISIBLE_DEVICES|$GPUHAL_DEVICES|$GPUHAL_LEASE|$HIP_VISIBLE_DEVICES|${ROCR_VISIBLE_DEVICES-unset}"; exit 7'
    out, _ = tool.run("run", "--devices", "2", "--memory", "1GiB", "--", "sh", "-c", script, code=7, HIP_VISIBLE_DEVICES="1")
    cuda, own, number, hip, rocr = out.strip().split("|")
    uuids = cuda.split(",")
    check(len(uuids) == 2 and len(set(uuids)) == 2 and all(uuid.startswith("GPU-") and len(uuid) == 40 for uuid in uuids), out)
    check(own == ",".join(uuid.replace("GPU-", "uuid=") for uuid in uuids), out)
    check(int(number) >= 1 and hip == "" and rocr == "unset", out)
    check(tool.status()["leases"] == [], tool.status())
    out, _ = tool.run("run", "--devices", "cpu", "--", "sh", "-c", 'echo "${CUDA_VISIBLE_DEVICES-unset}|$GPUHAL_DEVICES"', CUDA_VISIBLE_DEVICES="0")
    check(out == "|cpu:0\n", out)  # no GPU is leased, so none is seen


def the_exit_status_is_passed_on_where_the_tools_parent_ignores_its_children(tool):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # which a program that is started keeps
    process = tool.start("run", "--", "sh", "-c", "exit 7")
    signal.signal(signal.SIGCHLD, before)
    _, err = process.communicate(timeout=DEADLINE)
    check(process.returncode == 7, process.returncode, err)


def a_command_that_a_signal_ends_is_reported_as_shells_do(tool):
    tool.run("run", "--", "sh", "-c", "kill -KILL $$", code=128 + signal.SIGKILL)
    tool.run("run", "--", "/nonexistent/program", code=127)
    tool.run("run", "--", "/", code=126)


def what_is_leased_is_not_leased_again_before_the_command_has_ended(tool):
    first, second = tool.hold("--devices", "2", "--slots", "all"), tool.hold("--slots", "all", "--label", "night run")
    document = tool.status()
    check([one["state"] for one in document["leases"]] == ["held", "held"] and document["leases"][1]["label"] == "night run", document)
    check(len({device["key"] for lease in document["leases"] for device in lease["devices"]}) == 3, document)
    _, err = tool.run("run", "--no-wait", "--", "true", code=BUSY)
    check(err.startswith("gpuhal-lease: leases: "), err)
    out, _ = tool.run("run", "--no-wait", "--json", "--", "true", code=BUSY)
    check(len(json.loads(out)["leases"]) == 2, out)
    tool.run("run", "--timeout", "0.1", "--", "true", code=TIMEOUT)
    tool.run("wait", "--timeout", "0.1", code=TIMEOUT)
    waiting = tool.start("run", "--", "echo", "mine")
    check(end(second) == 128 + signal.SIGTERM, "the signal was not passed on")
    check(waiting.communicate(timeout=DEADLINE)[0] == "mine\n" and waiting.returncode == 0, waiting)
    tool.run("wait")
    check(end(first) == 128 + signal.SIGTERM, "the signal was not passed on")


def where_the_tool_is_killed_the_command_keeps_the_lease(tool):
    process = tool.start("run", "--devices", "3", "--slots", "all", "--", "sh", "-c", "echo ready $$; exec sleep 60")
    pid = int(process.stdout.readline().split()[1])
    process.kill()
    process.wait()
    tool.run("run", "--no-wait", "--", "true", code=BUSY)
    check(tool.status()["leases"][0]["command"] is None, "the program that asked for it has ended")
    os.kill(pid, signal.SIGKILL)
    tool.run("run", "--timeout", "20", "--", "true")


def a_lease_of_a_killed_command_is_free_for_one_that_waits(tool):
    process = tool.start("run", "--devices", "3", "--slots", "all", "--", "sh", "-c", "echo ready $$; exec sleep 60")
    pid = int(process.stdout.readline().split()[1])
    waiting = tool.start("run", "--", "true")
    while len(tool.status()["leases"]) != 2:
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    check(process.wait(DEADLINE) == 128 + signal.SIGKILL and waiting.wait(DEADLINE) == 0, "not free")


def certain_devices_are_leased_by_selector_and_memory_is_counted(tool):
    process = tool.hold("--devices", "cuda:1", "--memory", "512M")
    document = tool.status()
    check(len(document["leases"][0]["devices"]) == 1 and document["leases"][0]["devices"][0]["bytes"] == 512 << 20, document)
    table, _ = tool.run("status")
    check("512 MiB" in table and "held" in table and "sh" in table, table)
    row = table.splitlines()[-1].split()
    check(row[1:5] == ["held", str(process.pid), pwd.getpwuid(os.getuid()).pw_name, "gpuhal-lease"], table)
    holder = document["leases"][0]
    check((holder["pid"], holder["user"], holder["command"]) == (process.pid, os.getuid(), "gpuhal-lease"), document)
    end(process)
    _, err = tool.run("run", "--devices", "cuda:9", "--", "true", code=FAILED)
    check(err.startswith('gpuhal-lease: --devices: no device matches "cuda:9"'), err)


def of_each_physical_device_that_a_selector_names_one_interface_is_leased(tool):
    settings = {"GPUHAL_BACKENDS": "opencl,cpu", "POCL_DEVICES": "pthread basic"}  # without PoCL there is the CPU alone
    own, lent = tool.run("run", "--json", "--devices", "auto", "--", "sh", "-c", f'echo "$GPUHAL_DEVICES"; exec {tool.program} status --json', **settings)[0].split("\n", 1)
    check(own == "cpu:0" and [device["key"] for device in json.loads(lent)["leases"][0]["devices"]] == ["cpu:0"], own, lent)
    check("of each physical device one interface" in " ".join(tool.run("--help")[0].split()), "not in --help")


def labels_that_are_not_ascii_are_shown_as_they_are(tool):
    process = tool.hold("--label", "nächtlicher Lauf 訓練")
    check(tool.status()["leases"][0]["label"] == "nächtlicher Lauf 訓練" and "nächtlicher Lauf 訓練" in tool.run("status")[0], tool.status())
    end(process)
    tool.run("run", "--label", "ä" * 24, "--", "true", code=2)
    path = os.path.join(os.path.dirname(tool.environment["GPUHAL_LEDGER"]), "x" + "ä" * 30)
    os.symlink("/bin/cat", path)
    waiting = subprocess.Popen([tool.program, "run", "--", path], env=tool.environment, stdin=subprocess.PIPE)
    while not (leases := tool.status()["leases"]):
        time.sleep(0.02)
    check(leases[0]["label"] == "x" + "ä" * 23, leases)  # the command's name, cut between two characters
    waiting.communicate(timeout=DEADLINE)


def an_expired_lease_is_free_while_its_command_goes_on(tool):
    process = tool.hold("--devices", "3", "--slots", "all", "--expire", "0.3")
    tool.run("run", "--timeout", "20", "--", "true")
    check(process.poll() is None, "the command has ended")
    end(process)


def mistakes_are_usage_errors(tool):
    for arguments in ([], ["fly"], ["run"], ["run", "--devices", "0", "--", "true"], ["run", "--devices", "", "--", "true"], ["run", "--memory", "8Q", "--", "true"],
                      ["run", "--priority", "4", "--", "true"], ["run", "--timeout", "-1", "--", "true"], ["run", "--slots", "x", "--", "true"],
                      ["status", "more"], ["run", "--memory", "99999999999999T", "--", "true"], ["run", "--expire", "0", "--", "true"]):
        out, err = tool.run(*arguments, code=2)
        check(out == "" and err.startswith("gpuhal-lease: "), arguments, err)


def a_ledger_that_cannot_be_used_is_named_with_what_to_do(tool):
    folder = tool.environment["GPUHAL_LEDGER"]
    with open(folder, "w", encoding="utf-8"):
        pass
    for arguments in (["status"], ["run", "--", "true"], ["wait"]):
        _, err = tool.run(*arguments, code=FAILED)
        check(folder in err and "GPUHAL_LEDGER" in err, err)
    os.unlink(folder)
    _, err = tool.run("status", code=FAILED, GPUHAL_LEDGER="none")
    check("none" in err, err)


def every_error_is_a_document_with_json(tool):
    error = tool.error("run", "--devices", "0", code=2)
    check(error == {"code": "usage", "message": '--devices is "0"; it takes a number of GPUs from 1 to 64, or a selector', "status": None}, error)
    check(tool.error(code=2)["code"] == tool.error("fly", code=2)["code"] == "usage", "no usage")
    error = tool.error("wait", "--devices", "4", code=FAILED)
    check(error["code"] == "failed" and error["status"] == "no device" and "4 GPUs are wanted, and there are 3" in error["message"], error)
    error = tool.error("wait", "--memory", "1T", code=FAILED)
    check(error["status"] == "infeasible", error)
    error = tool.error("wait", "--devices", "cuda:9", code=FAILED)
    check(error["code"] == "failed" and "cuda:9" in error["message"], error)
    for command, code, word in (("/nonexistent/program", 127, "not_found"), ("/", 126, "not_executable")):
        error = tool.document("run", "--json", "--", command, code=code)["error"]
        check(error["code"] == word and error["message"].startswith(command + ": ") and error["status"] is None, error)
    check(tool.run("run", "--json", "--", "sh", "-c", "exit 127", code=127) == ("", ""), "the command's own status is no error")
    process = tool.hold("--devices", "3", "--slots", "all")
    for arguments, code, word, status in ((["--no-wait"], BUSY, "busy", "busy"), (["--timeout", "0.1"], TIMEOUT, "timeout", "timed out")):
        document = tool.document("wait", "--json", *arguments, code=code)
        check(document["error"]["code"] == word and document["error"]["status"] == status and document["leases"][0]["state"] == "held", document)
    end(process)
    folder = tool.environment["GPUHAL_LEDGER"]
    with open(os.path.join(folder, "ledger"), "w", encoding="utf-8") as file:
        file.write("damaged")
    for arguments in (["status"], ["wait"]):
        error = tool.error(*arguments, code=FAILED)
        check(error["code"] == "failed" and error["status"] == "file error" and folder in error["message"], error)
    check(tool.error("status", code=FAILED, GPUHAL_LEDGER="none")["status"] == "not supported", "no status")


def main(test):
    program, fakes, schema = sys.argv[2:]
    if not os.path.exists(os.path.join(fakes, "cuda", "libcuda.so.1")):
        print("skipped: the fake CUDA driver was not built")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="gpuhal-lease-") as folder:
        test(Tool(program, fakes, schema, folder))


if __name__ == "__main__":
    sys.exit(together.run(globals(), "tool", sys.argv[1], main, read_schema))
