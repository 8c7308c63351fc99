#!/usr/bin/env python3
"""Tests the list of processes that use the GPUs in gpuhal-probe's output. See probe_support.py."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import tempfile
import time

from machine_tree import Tree
from probe_support import DEADLINE, check, columns_of, complaints, fake_cuda, main, on_recorded

CONTAINER = "8d21c0ffee4ab7d0a1b2c3d4e5f60718293a4b5c6d7e8f900112233445566778"


class Processes:
    """Writes the files of processes below GPUHAL_SYSTEM_ROOT, and the user alice."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.put("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n")
        self.put("proc/1/comm", b"systemd\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def put(self, path, what):
        path = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(what)

    def add(self, pid, command, uid=1000, group=b"0::/user.slice\n"):
        self.put(f"proc/{pid}/comm", command + b"\n")
        self.put(f"proc/{pid}/status", b"Name:\tx\nUid:\t%d\t0\t0\t0\n" % uid)
        self.put(f"proc/{pid}/cgroup", group)

    def settings(self, machine):
        return fake_cuda(machine) | {"GPUHAL_SYSTEM_ROOT": self.folder.name, "GPUHAL_BACKENDS": "cuda", "COLUMNS": "80"}


def lines_of(result):
    """Returns the block of the processes: its title and the following lines."""
    lines = result.out.splitlines()
    titles = [i for i, line in enumerate(lines) if re.match(r"  ID +USER +PID +MEMORY +COMMAND", line)]
    if not titles:
        return []
    rest = lines[titles[0]:]
    return rest[:rest.index("")] if "" in rest else rest


def rows_of_csv(text):
    return list(csv.reader(io.StringIO(text)))


def many(count, devices=1):
    return f"devices {devices}; memory * 80G; " + "; ".join(f"process {i % devices} {100 + i} {i + 1}G" for i in range(count))


def those_with_most_memory_stand_below_the_table(probe):
    with Processes() as machine:
        for i in range(20):
            machine.add(100 + i, b"python3")
        for count, devices, shown, more in ((3, 1, 3, None), (4, 1, 2, 2), (20, 1, 2, 18), (11, 8, 9, 2), (10, 8, 10, None)):
            result = probe.run(**machine.settings(many(count, devices)))
            lines = lines_of(result)
            check(len(lines) <= devices + 3 and len(lines) == 1 + shown + bool(more), count, devices, result)
            check(more is None or lines[-1] == f"  and {more} more: --processes", count, devices, result)
            check(lines[1].split() == [f"cuda:{(count - 1) % devices}", "alice", str(99 + count), f"{count}.0", "GiB", "python3"], lines)
            whole = lines_of(probe.run("--processes", **machine.settings(many(count, devices))))
            check(len(whole) == count + 1 and [line.split()[2] for line in whole[1:]] == [str(99 + count - i) for i in range(count)], whole)


def a_recorded_machine_shows_user_command_and_container(probe):
    lines = lines_of(on_recorded("h100-8")())
    check(lines[1].split() == ["cuda:2", "alice", "48213", "60.0", "GiB", "python3"], lines)
    check(lines[2].split() == ["cuda:3", "root", "51277", "11.2", "GiB", "VLLM::EngineCor", CONTAINER[:12]], lines)


def what_takes_a_walk_over_all_processes_is_left_to_the_option(probe):
    run = on_recorded("amd-discrete")
    check(lines_of(run())[1:] == ["  rocm:0  bob   6120  512.0 MiB  python3", "  and processes that draw, or use Vulkan or OpenCL: --processes"], run())
    check(lines_of(run("--processes"))[1:] == ["  rocm:0  bob   6120  512.0 MiB  python3"], run("--processes"))
    with tempfile.TemporaryDirectory() as root:
        Tree(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../recorded")).read("amd-discrete").write(root)
        process = os.path.join(root, "proc/7001")
        for name, text in (("comm", "glxgears\n"), ("status", "Name:\tglxgears\nUid:\t1000\t1000\n"), ("fdinfo/3", "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\n"
                            "drm-client-id:\t12\ndrm-memory-vram:\t262144 KiB\n")):
            os.makedirs(os.path.dirname(os.path.join(process, name)), exist_ok=True)
            with open(os.path.join(process, name), "w", encoding="utf-8") as file:
                file.write(text)
        os.mkdir(os.path.join(process, "fd"))
        os.symlink("/dev/dri/renderD129", os.path.join(process, "fd/3"))
        both = ["  rocm:0  bob   6120  512.0 MiB  python3", "  rocm:0  bob   7001  256.0 MiB  glxgears"]
        check(lines_of(run(GPUHAL_SYSTEM_ROOT=root))[1] == both[0] and "glxgears" not in run(GPUHAL_SYSTEM_ROOT=root).out, run(GPUHAL_SYSTEM_ROOT=root))
        check(lines_of(run("--processes", GPUHAL_SYSTEM_ROOT=root))[1:] == both, run("--processes", GPUHAL_SYSTEM_ROOT=root))
        table = rows_of_csv(run("--format", "csv", "--columns", "id,processes", GPUHAL_SYSTEM_ROOT=root).out)
        check(["rocm:0", "2"] in table, table)


def what_is_not_known_is_shown_so_and_a_foreign_pid_is_marked(probe):
    with Processes() as machine:
        machine.add(7, b"python3", uid=1234)
        settings = machine.settings("devices 1; memory 0 80G; process 0 4711 2G; process 0 7 -1; process 0 0 1G draws")
        *lines, legend, rest = [line.split() for line in lines_of(probe.run("--processes", **settings))[1:]]
        check(legend[:5] == "# = the pid of".split() and rest, legend)
        check(lines == [["cuda:0", "-", "#4711", "2.0", "GiB", "-"], ["cuda:0", "-", "-", "1.0", "GiB", "-"],
                        ["cuda:0", "1234", "7", "-", "python3"]], lines)
        document, result = probe.json(**settings)
        check(not complaints(probe, document), complaints(probe, document), result)
        strange, hidden, known = next(one for one in document["devices"] if one["id"] == "cuda:0")["processes"]
        check((strange["pid"], strange["foreign_namespace"], strange["user"], strange["uid"], strange["command"], strange["container"]) ==
              (4711, True, None, None, None, None), strange)
        check((hidden["pid"], hidden["memory_bytes"], hidden["types"]) == (None, 1 << 30, ["graphics"]), hidden)
        check((known["pid"], known["uid"], known["user"], known["memory_bytes"], known["types"]) == (7, 1234, "1234", None, ["compute"]), known)


def a_container_is_found_in_every_form_of_its_control_group(probe):
    with Processes() as machine:
        groups = (f"0::/system.slice/docker-{CONTAINER}.scope", f"12:memory:/docker/{CONTAINER}\n11:cpu:/docker/{CONTAINER}",
                  f"0::/kubepods.slice/kubepods-pod6a5f4f3e_5c41.slice/cri-containerd-{CONTAINER}.scope",
                  f"0::/docker/{CONTAINER[::-1]}/kubepods/burstable/pod6a5f4f3e-5c41/{CONTAINER}",
                  f"0::/machine.slice/libpod-{CONTAINER}.scope/container")
        others = ("0::/", "0::/user.slice/user-1000.slice", f"0::/x/{CONTAINER}a", f"0::/x/{CONTAINER[1:]}", "", "\x1b[31m")
        for i, group in enumerate(groups + others):
            machine.add(100 + i, b"python3", group=group.encode() + b"\n")
        document, result = probe.json(**machine.settings(many(len(groups + others))))
        found = {one["pid"]: one["container"] for one in document["devices"][0]["processes"]}
        check(found == {100 + i: CONTAINER if i < len(groups) else None for i in range(len(groups + others))}, found, result)


def no_name_of_a_process_reaches_the_terminal_as_it_is(probe):
    with Processes() as machine:
        machine.put("etc/passwd", b"e\x1b[31mvil\xff:x:1000:1000::/:\n")
        machine.add(100, b"\x1b[31mred\xff\xc3\xa9\x07 a b c")
        machine.add(101, "日本語の名前がここにある".encode())
        machine.add(102, b"x" * 5000)
        machine.add(103, b"")
        for columns in ("40", "80", "200"):
            result = probe.run("--processes", **machine.settings(many(4)) | {"COLUMNS": columns})
            check("\x1b" not in result.out and "\x07" not in result.out, result)
            check(len(lines_of(result)) == 5 and all(columns_of(line) <= int(columns) or columns == "40" for line in lines_of(result)), columns, result)
        document, result = probe.json(**machine.settings(many(4)))
        check(not complaints(probe, document) and len(document["devices"][0]["processes"]) == 4, result)


def without_a_source_nothing_is_printed(probe):
    with Processes() as machine:
        settings = machine.settings("devices 2; memory * 80G; process 0 1 1G") | {"GPUHAL_NVML_LIBRARY": "/nowhere/libnvidia-ml.so.1"}
        result = probe.run(**settings)
        check(result.code == 0 and not lines_of(result) and "process" not in result.out, result)
        result = probe.run("--processes", **settings)
        check("\n  cuda:0: no source lists the processes of this device\n" in result.out and not lines_of(result), result)
        document, _ = probe.json(**settings)
        check(document["devices"][0]["processes"] is None and "processes" not in document["devices"][0]["missing"], document["devices"][0])
        idle = machine.settings("devices 2; memory * 80G")
        check("process" not in probe.run(**idle).out, "nothing without processes")
        check("\n  no process is known to use these GPUs\n" in probe.run("--processes", **idle).out, "said where it is asked for")
        check(probe.json(**idle)[0]["devices"][0]["processes"] == [], "an empty list")
        check(probe.json("--cached", **idle)[0]["devices"][0]["processes"] is None, "nothing is read")


def a_driver_that_hangs_or_fails_costs_its_processes_alone(probe):
    with Processes() as machine:
        for fault in ("hang nvmlDeviceGetComputeRunningProcesses_v3 1", "fail nvmlDeviceGetComputeRunningProcesses_v3 1+ 999"):
            begin = time.monotonic()
            result = probe.run(**machine.settings(f"devices 8; memory * 80G; process * 100 1G; {fault}"))
            check(result.code == 0 and "8 GPUs ready" in result.out and "33" not in lines_of(result), fault, result)
            check(time.monotonic() - begin < 30, fault, "the deadline for all of them is a second", time.monotonic() - begin)
            document, _ = probe.json(**machine.settings(f"devices 1; memory * 80G; process * 100 1G; {fault}"))
            device = document["devices"][0]
            check(device["processes"] is None and device["missing"]["processes"], fault, device["missing"])
            check(not complaints(probe, document), complaints(probe, document))


def csv_and_metrics_have_the_count_alone(probe):
    with Processes() as machine:
        machine.add(100, b"secretcommand", group=f"0::/docker/{CONTAINER}\n".encode())
        machine.add(101, b"secretcommand")
        settings = machine.settings("devices 2; memory * 80G; process 0 100 1G; process 0 101 2G")
        table = rows_of_csv(probe.run("--format", "csv", "--columns", "id,processes", **settings).out)
        check(table[1:3] == [["cuda:0", "2"], ["cuda:1", "0"]], table)
        metrics = probe.run("--format", "openmetrics", **settings).out
        found = re.findall(r'^gpuhal_processes\{device="(cuda:\d)".*\} (\d+)$', metrics, re.M)
        check(found == [("cuda:0", "2"), ("cuda:1", "0")] and "# TYPE gpuhal_processes gauge" in metrics, metrics)
        whole = metrics + probe.run("--format", "csv", **settings).out
        check(not any(word in whole for word in ("secretcommand", "alice", CONTAINER[:12])), whole)


def each_line_of_watch_in_a_pipe_has_them(probe):
    with Processes() as machine:
        machine.add(100, b"python3")
        settings = machine.settings("devices 1; memory * 80G; process 0 100 1G")
        child = subprocess.Popen([probe.program, "--watch=0.1"], env=probe.environment((), settings), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        lines = [json.loads(child.stdout.readline()) for _ in range(3)]
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=DEADLINE)
        for line in lines:
            check([(one["pid"], one["user"], one["command"]) for one in line["devices"][0]["processes"]] == [(100, "alice", "python3")], line["devices"][0])


def a_report_leaves_users_and_commands_out(probe):
    with Processes() as machine:
        machine.add(100, b"secretcommand", group=f"0::/docker/{CONTAINER}\n".encode())
        report = probe.run("--report", "-", **machine.settings("devices 1; memory * 80G; process 0 100 1G")).out
        check(not any(word in report for word in ("secretcommand", "alice", CONTAINER[:12])), report)
        document = json.loads(report[report.index("\n{") + 1:])
        process, = document["devices"][0]["processes"]
        check((process["pid"], process["memory_bytes"], process["uid"], process["command"]) == (100, 1 << 30, None, None), process)


def where_they_have_no_place_the_option_is_a_mistake(probe):
    for options in (("--cached",), ("--format", "csv"), ("--report", "-"), ("--watch",), ("--explain", "cuda:0"), ("--registry",)):
        result = probe.run("--processes", *options)
        check(result.code == 2 and "--processes has no effect beside --" in result.err, options, result)


if __name__ == "__main__":
    main(globals())
