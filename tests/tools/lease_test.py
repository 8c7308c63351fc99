#!/usr/bin/env python3
"""Tests gpuhal-lease as users run it, with the fake CUDA driver and the CPU. lease_test.py TEST|all PROGRAM FAKES
SCHEMA; exit code 77 means skipped."""

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

    def start(self, *arguments, before=None, **settings):
        """`before` is called in the new process before the program starts."""
        return subprocess.Popen([self.program, *arguments], env=self.environment | settings, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=before)

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

    def hold(self, *options, **settings):
        """Starts a command that runs until the test ends it, and waits until it has its lease."""
        process = self.start("run", *options, "--", "sh", "-c", "echo ready; exec sleep 60", **settings)
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
    check(own == ",".join(uuid.replace("GPU-", "uuid=") + "@1073741824B" for uuid in uuids), out)
    check(int(number) >= 1 and hip == "-1" and rocr == "unset", out)
    check(tool.status()["leases"] == [], tool.status())
    out, _ = tool.run("run", "--devices", "cpu", "--", "sh", "-c", 'echo "${CUDA_VISIBLE_DEVICES-unset}|$GPUHAL_DEVICES"', CUDA_VISIBLE_DEVICES="0")
    check(out == "|cpu:0\n", out)  # no GPU is leased, so the program sees no GPU


def the_exit_status_is_passed_on_where_the_tools_parent_ignores_its_children(tool):
    # programs inherit these
    process = tool.start("run", "--", "sh", "-c", "exit 7", before=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
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
    while len(tool.status()["leases"]) != 3:
        time.sleep(0.02)
    check(end(second) == 128 + signal.SIGTERM, "the signal was not passed on")
    out, err = waiting.communicate(timeout=DEADLINE)
    check(out == "mine\n" and waiting.returncode == 0, waiting)
    check(err.startswith("gpuhal-lease: waiting: ") and "gpuhal-lease status lists the leases" in err, err)
    tool.run("wait")
    check(end(first) == 128 + signal.SIGTERM, "the signal was not passed on")


def where_the_tool_is_killed_the_command_keeps_the_lease(tool):
    process = tool.start("run", "--devices", "3", "--slots", "all", "--", "sh", "-c", "echo ready $$; exec sleep 60")
    pid = int(process.stdout.readline().split()[1])
    process.kill()
    process.wait()
    tool.run("run", "--no-wait", "--", "true", code=BUSY)
    lease = tool.status()["leases"][0]
    check((lease["pid"], lease["command"], lease["processes"]) == (pid, "sleep", [{"pid": pid, "command": "sleep"}]), lease)
    os.kill(pid, signal.SIGKILL)
    tool.run("run", "--timeout", "20", "--", "true")


def a_child_in_the_background_keeps_the_lease_as_long_as_it_lives(tool):
    out, _ = tool.run("run", "--devices", "3", "--", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!; exit 3", code=3)
    lease = tool.status()["leases"][0]
    check((lease["pid"], lease["command"], len(lease["devices"])) == (int(out), "sleep", 3), lease)
    tool.run("run", "--no-wait", "--", "true", code=BUSY)
    os.kill(int(out), signal.SIGKILL)
    tool.run("run", "--timeout", "20", "--", "true")
    check(tool.status()["leases"] == [], tool.status())
    check("in the background too" in " ".join(tool.run("--help")[0].split()), "not in --help")


def a_lease_of_a_killed_command_is_free_for_one_that_waits(tool):
    process = tool.start("run", "--devices", "3", "--slots", "all", "--", "sh", "-c", "echo ready $$; exec sleep 60")
    pid = int(process.stdout.readline().split()[1])
    waiting = tool.start("run", "--", "true")
    while len(tool.status()["leases"]) != 2:
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    check(process.wait(DEADLINE) == 128 + signal.SIGKILL and waiting.wait(DEADLINE) == 0, "not free")


def machine_folder(tool, mode, group=-1):
    """Creates a folder that stands for / and contains the folder of the machine's ledger. The tool uses no other
    ledger."""
    root = os.path.join(os.path.dirname(tool.environment.pop("GPUHAL_LEDGER")), "root")
    folder = os.path.join(root, "run", "gpuhal")
    os.makedirs(folder)
    os.chown(folder, -1, group)
    os.chmod(folder, mode)
    own = os.path.join(root, "own")
    os.mkdir(own, 0o700)
    tool.environment |= {"GPUHAL_SYSTEM_ROOT": root, "XDG_RUNTIME_DIR": own}
    return folder


def the_ledger_of_the_machine_is_used_where_there_is_one_and_a_warning_printed_where_there_is_none(tool):
    folder = machine_folder(tool, 0o2770 if os.geteuid() == 0 else 0o700)
    _, err = tool.run("run", "--", "true")
    check(err == "", err)
    check((tool.status()["ledger"], tool.status()["shared"]) == (folder, True), tool.status())
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)
    for arguments in (("run", "--", "true"), ("status",)):
        _, err = tool.run(*arguments)
        check(err.startswith("gpuhal-lease: warning: leases are of this user alone") and "GPUHAL_LEDGER" in err and err.count("\n") == 1, err)
    check(not tool.status()["shared"] and tool.status()["ledger"] != folder, tool.status())
    check("GPUHAL_LEDGER" in tool.run("--help")[0] and "/run/gpuhal" in tool.run("--help")[0], "not in --help")


def a_ledger_of_the_machine_that_anyone_may_write_to_is_refused(tool):
    folder = machine_folder(tool, 0o777)
    for arguments in (["run", "--", "true"], ["status"]):
        _, err = tool.run(*arguments, code=FAILED)
        check(folder in err and "may be written to by other users" in err, err)


def users_who_may_write_to_the_ledger_of_the_machine_share_it(tool):
    if os.geteuid() != 0:
        print("skipped: only root can run a program as another user")
        sys.exit(77)
    group, user = 54321, 54322
    folder = machine_folder(tool, 0o2770, group)
    os.chmod(os.path.dirname(os.path.dirname(os.path.dirname(folder))), 0o755)
    os.mkdir(os.path.join(folder, "..", "other"), 0o700)
    os.chown(os.path.join(folder, "..", "other"), user, user)
    process = tool.hold("--devices", "3")

    def as_user(groups, *arguments):
        environment = tool.environment | {"XDG_RUNTIME_DIR": os.path.join(folder, "..", "other")}
        done = subprocess.run([tool.program, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE,
                              user=user, group=user, extra_groups=groups, check=False)
        return done.returncode, done.stderr
    code, err = as_user([group], "run", "--no-wait", "--", "true")
    check(code == BUSY and "warning" not in err, code, err)
    code, err = as_user([], "run", "--no-wait", "--", "true")
    check(code == 0 and "leases are of this user alone" in err, code, err)
    end(process)


def no_other_lease_has_a_leased_device_unless_a_share_is_asked_for(tool):
    process = tool.hold("--devices", "3")
    for arguments in ((), ("--share",), ("--memory", "1M"), ("--slots", "1")):
        tool.run("run", "--no-wait", *arguments, "--", "true", code=BUSY)
    end(process)
    for share in (("--share",), ("--memory", "1M"), ("--slots", "1")):
        process = tool.hold("--devices", "3", *share)
        for arguments in (("--share",), ("--memory", "1M"), ("--slots", "1")):
            tool.run("run", "--no-wait", *arguments, "--", "true")
        tool.run("run", "--no-wait", "--", "true", code=BUSY)
        tool.run("run", "--no-wait", "--slots", "all", "--memory", "1M", "--", "true", code=BUSY)
        end(process)
    check(tool.status()["leases"] == [], tool.status())


def certain_devices_are_leased_by_selector_and_memory_is_counted(tool):
    process = tool.hold("--devices", "cuda:1", "--memory", "512M")
    document = tool.status()
    check(len(document["leases"][0]["devices"]) == 1 and document["leases"][0]["devices"][0]["bytes"] == 512 << 20, document)
    table, _ = tool.run("status")
    check("512 MiB" in table and "held" in table and "sh" in table, table)
    row = table.splitlines()[-2].split()  # the line before the label
    check(row[1:5] == ["held", str(process.pid), pwd.getpwuid(os.getuid()).pw_name, "sleep"], table)
    holder = document["leases"][0]
    check((holder["pid"], holder["user"], holder["command"]) == (process.pid, os.getuid(), "gpuhal-lease"), document)
    end(process)
    process, waiting = tool.hold("--devices", "cuda:1", "--label", "sleep"), tool.start("run", "--devices", "cuda:1", "--", "true")
    while len(tool.status()["leases"]) != 2:
        time.sleep(0.02)
    table, _ = tool.run("status")
    check([line.split()[4] for line in table.splitlines()[-2:]] == ["sleep", "true"] and "label" not in table, "the commands, held and waiting", table)
    end(waiting)
    end(process)
    _, err = tool.run("run", "--devices", "cuda:9", "--", "true", code=FAILED)
    check(err.startswith('gpuhal-lease: --devices: no device matches "cuda:9"'), err)


def leasing_the_processor_starts_no_driver(tool):
    process = tool.hold("--devices", "cpu:0", GPUHAL_BACKENDS="cuda,cpu")
    with open(f"/proc/{process.pid}/maps", encoding="utf-8") as file:
        maps = file.read()
    check("libgpuhal.so" in maps and "gpuhal-cpu.so" not in maps and "gpuhal-cuda.so" not in maps, maps)
    end(process)
    process = tool.hold()
    with open(f"/proc/{process.pid}/maps", encoding="utf-8") as file:
        check("gpuhal-cuda.so" in file.read(), "what others use of a GPU was not read")
    end(process)


def of_each_physical_device_that_a_selector_names_one_interface_is_leased(tool):
    settings = {"GPUHAL_BACKENDS": "opencl,cpu", "POCL_DEVICES": "pthread basic"}  # without PoCL there is only the CPU
    own, lent = tool.run("run", "--json", "--devices", "auto", "--", "sh", "-c", f'echo "$GPUHAL_DEVICES"; exec {tool.program} status --json', **settings)[0].split("\n", 1)
    check(own == "cpu:0" and [device["key"] for device in json.loads(lent)["leases"][0]["devices"]] == ["cpu:0"], own, lent)
    check("one interface of each physical device" in " ".join(tool.run("--help")[0].split()), "not in --help")


def the_tables_fit_80_columns_and_name_devices_by_id(tool):
    tool.environment["FAKE_CUDA"] = "devices 8; memory * 4G; name * NVIDIA RTX PRO 6000 Blackwell Server Edition"
    held = [tool.hold("--devices", "cuda:0,cuda:1,cuda:2,cuda:4,cuda:6", "--label", "x" * 40, "--expire", "100000"), tool.hold("--devices", "3,cuda:5", "--share")]
    waiting = tool.start("run", "--devices", "8", "--priority", "-2", "--", "true")
    while len(tool.status()["leases"]) != 3:
        time.sleep(0.02)
    for table in (tool.run("status")[0], tool.run("status", CUDA_VISIBLE_DEVICES="6")[0]):
        check(all(len(line) <= 80 for line in table.splitlines()), table)
    table = tool.run("status")[0]
    check("cuda:0-2 cuda:4" in table and "cuda:3 cuda:5" in table and "any 8" in table and "priority: -2" in table, table)
    check([device["id"] for device in tool.status()["devices"]] == [f"cuda:{i}" for i in range(8)], tool.status())
    for process in (waiting, *held):
        end(process)


def a_number_of_another_pid_namespace_is_marked(tool):
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        print("skipped: no pid namespace can be made here")
        sys.exit(77)
    process = tool.hold()
    done = subprocess.run([*unshare, tool.program, "status"], env=tool.environment, capture_output=True, text=True, timeout=DEADLINE, check=True)
    check(f" #{process.pid} " in done.stdout and "another pid namespace" in done.stdout, done.stdout)
    check("#" not in tool.run("status")[0], "marked in its own namespace")
    end(process)
    inner = subprocess.Popen([*unshare, tool.program, "run", "--", "sh", "-c", "echo ready; exec sleep 60"], env=tool.environment, stdout=subprocess.PIPE, text=True)
    inner.stdout.readline()
    lease = tool.status()["leases"][0]
    with open(f"/proc/{lease['pid']}/comm", encoding="utf-8") as file:
        # the kernel reports the process's PID in this namespace
        check(file.read().strip() == lease["command"] and not lease["pid_is_foreign"], lease)
    os.kill(max(process["pid"] for process in lease["processes"]), signal.SIGKILL)
    inner.wait(DEADLINE)


def a_lease_is_released_from_outside_and_one_that_lives_only_by_force(tool):
    process = tool.hold("--devices", "3")
    number = str(tool.status()["leases"][0]["number"])
    _, err = tool.run("release", number, code=BUSY)
    check(f"lease {number} is still used by process " in err and "(sleep)" in err and "(gpuhal-lease)" in err and "--force" in err, err)
    check(tool.error("release", number, code=BUSY)["code"] == "busy" and len(tool.status()["leases"]) == 1, "released")
    tool.run("release", number, "--force")
    check(tool.status()["leases"] == [] and process.poll() is None, tool.status())
    tool.run("run", "--no-wait", "--devices", "3", "--", "true")
    check(tool.error("release", number, code=FAILED)["status"] == "not found", "found")
    end(process)


def a_request_that_is_released_fails(tool):
    process = tool.hold("--devices", "3")
    waiting = tool.start("run", "--", "true")
    while len(leases := tool.status()["leases"]) != 2:
        time.sleep(0.02)
    tool.run("release", str(leases[1]["number"]), code=BUSY)
    tool.run("release", "--force", str(leases[1]["number"]))
    _, err = waiting.communicate(timeout=DEADLINE)
    check(waiting.returncode == FAILED and "was revoked" in err, err)
    end(process)


def another_users_lease_is_released_by_root_alone(tool):
    if os.geteuid() != 0:
        print("skipped: only root can run a program as another user")
        sys.exit(77)
    group, user = 54321, 54322
    folder = tool.environment["GPUHAL_LEDGER"]
    os.mkdir(folder)
    os.chown(folder, -1, group)
    os.chmod(folder, 0o2770)
    os.chmod(os.path.dirname(folder), 0o755)
    by_user = {"user": user, "group": group, "extra_groups": []}
    process, number = tool.hold("--devices", "2"), str(tool.status()["leases"][0]["number"])
    done = subprocess.run([tool.program, "release", "--force", number], env=tool.environment, capture_output=True, text=True, timeout=DEADLINE, check=False, **by_user)
    check(done.returncode == FAILED and "is of user 0" in done.stderr and len(tool.status()["leases"]) == 1, done)
    other = subprocess.Popen([tool.program, "run", "--", "sleep", "60"], env=tool.environment, **by_user)
    while len(tool.status()["leases"]) != 2:
        time.sleep(0.02)
    tool.run("release", "--force", str(tool.status()["leases"][1]["number"]))
    check(len(tool.status()["leases"]) == 1, tool.status())
    end(process)
    end(other)


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
    check(leases[0]["label"] == "x" + "ä" * 23, leases)  # the command's name, truncated between two characters
    waiting.communicate(timeout=DEADLINE)


def an_expired_lease_is_free_while_its_command_goes_on(tool):
    process = tool.hold("--devices", "3", "--slots", "all", "--expire", "0.3")
    tool.run("run", "--timeout", "20", "--", "true")
    check(process.poll() is None, "the command has ended")
    end(process)


def a_lease_keeps_no_program_from_its_device_that_does_not_ask_for_one(tool):
    holder = tool.hold("--devices", "cuda:0", "--slots", "all")
    tool.run("run", "--no-wait", "--devices", "cuda:0", "--", "true", code=BUSY)
    probe = os.path.join(os.path.dirname(tool.program), "gpuhal-probe")
    done = subprocess.run([probe, "--device", "cuda:0", "--verify"], env=tool.environment, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=DEADLINE, check=False)
    check(done.returncode == 0, done)
    with tempfile.TemporaryDirectory() as folder:
        tool.run("run", "--no-wait", "--devices", "cuda:0", "--slots", "all", "--", "true", GPUHAL_LEDGER=os.path.join(folder, "other"))
    check(end(holder) == 128 + signal.SIGTERM, holder)


def mistakes_are_usage_errors(tool):
    for arguments in ([], ["fly"], ["run"], ["run", "--devices", "0", "--", "true"], ["run", "--devices", "", "--", "true"], ["run", "--memory", "8Q", "--", "true"],
                      ["run", "--priority", "4", "--", "true"], ["run", "--timeout", "-1", "--", "true"], ["run", "--slots", "x", "--", "true"], ["run", "--share", "--slots", "all", "--", "true"],
                      ["status", "more"], ["release"], ["release", "x"], ["release", "1", "2"], ["run", "--force", "--", "true"], ["run", "--memory", "99999999999999T", "--", "true"], ["run", "--expire", "0", "--", "true"]):
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


def a_closed_standard_output_fails_and_leaves_the_ledger_alone(tool):
    for closed in ([1], [0, 1, 2]):
        process = subprocess.run([tool.program, "status"], env=tool.environment, stderr=subprocess.PIPE, timeout=DEADLINE, check=False,
                                 preexec_fn=lambda closed=closed: [os.close(one) for one in closed])
        check(process.returncode == FAILED, closed, process)
        check(tool.status()["leases"] == [], closed)


def a_limit_that_the_driver_keeps_for_the_control_group_bounds_a_lease(tool):
    limited = {"FAKE_CUDA": "devices 2; memory * 4G; value 0 memory_limit 1073741824; value 1 memory_limit 2147483648"}
    _, err = tool.run("run", "--no-wait", "--devices", "cuda:0", "--memory", "2GiB", "--", "true", code=FAILED, **limited)
    check("(nvml) is less than the 2147483648 bytes" in err, err)
    out, _ = tool.run("run", "--no-wait", "--memory", "2GiB", "--", "sh", "-c", "echo $GPUHAL_DEVICES", **limited)
    # a library without lease support also honours this limit
    check(out.startswith("uuid=10111213-") and out.strip().endswith("@2147483648B"), out)
    tool.run("run", "--no-wait", "--devices", "2", "--memory", "2GiB", "--", "true", code=FAILED, **limited)


def every_error_is_a_document_with_json(tool):
    error = tool.error("run", "--devices", "0", code=2)
    check(error == {"code": "usage", "message": '--devices is "0"; it takes a number of GPUs from 1 to 64, or a selector', "status": None}, error)
    check(tool.error(code=2)["code"] == tool.error("fly", code=2)["code"] == "usage", "no usage")
    error = tool.error("wait", "--devices", "4", code=FAILED)
    check(error["code"] == "failed" and error["status"] == "no device" and "4 GPUs are requested, and there are 3" in error["message"], error)
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
