#!/usr/bin/env python3
"""Tests the output formats of gpuhal-probe for other programs. The output is parsed as those programs parse it."""

import csv
import io
import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import time

from probe_support import DEADLINE, check, fake_cuda, fake_hip, main, on_recorded

NAMED = 'devices 2; memory * 80G; used 0 61G; name 0 Fake "H100", 80GB \\ HBM3; name 1 Fake L40S'


def families_of(text):
    """Parses metrics as a scraper does. Exits with 77 if the parser is not installed."""
    try:
        from prometheus_client.openmetrics.parser import text_string_to_metric_families
    except ImportError:
        print("skipped: python3-prometheus-client is not installed")
        sys.exit(77)
    return {family.name: family for family in text_string_to_metric_families(text)}


def samples_of(families, name):
    return families[name].samples if name in families else []


def start(probe, *options, **settings):
    return subprocess.Popen([probe.program, *options], env=probe.environment((), settings), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8")


def wait_for(what, *shown):
    """Waits until what() returns a true value. Returns the value."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        result = what()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError("\n".join(["it took too long", *map(str, shown)]))


def contents_of(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


# ---------------------------------------------------------------------------------------------- CSV

def rows_of(text):
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def csv_has_a_line_for_each_device_and_units_in_its_names(probe):
    result = probe.run("--format", "csv", "--backends", "cuda", **fake_cuda(NAMED))
    names, *lines = rows_of(result.out)
    check(result.out.endswith("\r\n") and result.code == 0, result)
    check(all(len(line) == len(names) for line in lines), names, lines)
    check({"id", "name", "memory_used_bytes", "temperature_celsius", "power_watts", "utilization_ratio", "clock_hertz"} <= set(names), names)
    first, second = ({**dict(zip(names, line))} for line in lines[:2])
    check(first["id"] == "cuda:0" and first["name"] == 'Fake "H100", 80GB \\ HBM3', first)
    check(second["name"] == "Fake L40S", second)
    check(int(first["memory_total_bytes"]) == 80 << 30 and int(first["memory_used_bytes"]) >= 61 << 30, first)
    check(0 < float(first["temperature_celsius"]) < 150 and 0 <= float(first["utilization_ratio"]) <= 1, first)
    check(first["kernel_driver"] == "" or "\n" not in first["kernel_driver"], first)


def column(probe, name, *options, **settings):
    result = probe.run("--format", "csv", "--columns", f"backend,{name}", *options, **settings)
    check(result.code == 0, result)
    return [line[1] for line in rows_of(result.out)[1:] if line[0] != "cpu"]


def uuids_are_written_as_the_vendors_tools_take_them(probe):
    settings = fake_cuda("devices 1; mig 0 3 0 1g.10gb 1G")
    part, = column(probe, "uuid", "--backends", "cuda", **settings)
    check(re.fullmatch("MIG-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", part), part)
    check(column(probe, "partition", "--backends", "cuda", **settings) == [part])
    whole, = column(probe, "uuid", "--backends", "cuda", **fake_cuda("devices 1"))
    check(re.fullmatch("GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", whole), whole)
    with tempfile.TemporaryDirectory() as state:
        settings = fake_hip("devices 2; uuid 0 1a2b3c4d5e6f7080; uuid 1 fa2b3c4d5e6f7081") | {"GPUHAL_REGISTRY": state}
        check(column(probe, "uuid", "--backends", "rocm", **settings) == ["GPU-1a2b3c4d5e6f7080", "GPU-fa2b3c4d5e6f7081"])
        for selector in ("GPU-fa2b3c4d5e6f7081", "fa2b3c4d5e6f7081", "GPU-fa2b", "uuid=fa2b", "66613262-3363-3464-3565-366637303831"):
            check(column(probe, "id", "--backends", "rocm", "--device", selector, **settings) == ["rocm:1"], selector)
        shown, record = probe.run("--registry", **settings), probe.run("--export", "-", **settings)
        check("GPU-1a2b3c4d5e6f7080" in shown.out and "uuid = 31613262-3363-3464-3565-366637303830" in record.out, shown, record)
        report = probe.run("--report", "-", "--backends", "rocm", **settings)
        check("GPU-uuid-" in report.out and "1a2b3c4d5e6f7080" not in report.out, report)


def what_is_of_a_whole_gpu_is_shown_once_among_its_parts(probe):
    settings = fake_hip("devices 1; memory 0 384M; partitions 0 3")
    heat = column(probe, "temperature", "--backends", "rocm", **settings)
    check(len(heat) == 3 and heat[0] and not any(heat[1:]), heat)
    memory = column(probe, "memory_used", "--backends", "rocm", **settings)
    check(memory[1:] == ["0", "0"], memory)
    check(column(probe, "temperature", "--backends", "rocm", "--device", "rocm:2", **settings) == heat[:1])


def csv_has_the_columns_that_are_asked_for_in_their_order(probe):
    result = probe.run("--format", "csv", "--columns", "memory_total, id,power_watts", "--backends", "cuda", **fake_cuda("devices 1; memory 0 1G"))
    names, line, *_ = rows_of(result.out)
    check(names == ["memory_total_bytes", "id", "power_watts"] and line[1] == "cuda:0", result)
    for wrong in ("id,shoe_size", "", "id,,name", "id name"):
        result = probe.run("--format", "csv", "--columns", wrong)
        check(result.code == 2 and not result.out, wrong, result)


def csv_has_an_empty_cell_where_nothing_is_known(probe):
    result = probe.run("--format", "csv", "--columns", "pcie_generation", "--backends", "cpu")
    check(rows_of(result.out) == [["pcie_generation"], [""]], result)


def csv_has_no_control_character_of_a_driver(probe):
    result = probe.run("--format", "csv", "--columns", "id,name", "--backends", "cuda", **fake_cuda("devices 1; memory 0 1G; name 0 bad\x1b[31m\x07name"))
    check(rows_of(result.out)[1] == ["cuda:0", "bad?[31m?name"], result)


def hardware_without_a_device_has_what_the_record_and_its_class_say(probe):
    run = on_recorded("h100-8-one-gone")
    names, *lines = rows_of(run("--format=csv").out)
    gone, = (dict(zip(names, line)) for line in lines if line[names.index("state")] == "gone")
    check((gone["type"], gone["physical"], gone["uuid"]) == ("gpu", "8", "GPU-70717273-7475-7677-7879-7a7b7c7d7e7f"), gone)
    hardware = [one for one in json.loads(run("--json").out)["hardware"] if one["state"] != "display_only"]
    check([(one["type"], one["physical_device"]) for one in hardware] == [("gpu", number) for number in range(1, 9)], hardware)
    check(hardware[7]["uuid"] == gone["uuid"] and all(one["uuid"] for one in hardware), hardware)
    labels = re.search(r'^gpuhal_hardware_state\{(.*),state="gone"\} 1$', run("--format=openmetrics").out, re.M)[1]
    check(f'physical="8"' in labels and f'uuid="{gone["uuid"]}"' in labels, labels)
    names, *lines = rows_of(on_recorded("mi300x-kfd-refused")("--format=csv").out)
    refused = [dict(zip(names, line)) for line in lines if line[names.index("state")] == "no_permission"]
    check(len(refused) == 8 and all(one["type"] == "gpu" and not one["uuid"] for one in refused), refused)


# ---------------------------------------------------------------------------------------------- OpenMetrics

def openmetrics_passes_the_parser_of_a_scraper(probe):
    result = probe.run("--format", "openmetrics", "--backends", "cuda", **fake_cuda(NAMED))
    families = families_of(result.out)
    check(result.out.endswith("# EOF\n") and result.code == 0, result)
    for family in families.values():
        check(family.documentation and family.name.startswith("gpuhal_"), family)
        check(family.samples, family)
    used = {sample.labels["device"]: sample for sample in samples_of(families, "gpuhal_memory_used_bytes")}
    check(used["cuda:0"].value >= 61 << 30 > used["cuda:1"].value, used)
    check(used["cuda:0"].labels["name"] == 'Fake "H100", 80GB \\ HBM3' and used["cuda:0"].labels["backend"] == "cuda", used)
    check(used["cuda:0"].labels["pci"] == "0000:11:00.0" and used["cuda:0"].labels["uuid"].startswith("GPU-"), used)
    heat = [sample for sample in samples_of(families, "gpuhal_temperature_celsius") if sample.labels["sensor"] == "core"]
    check(len(heat) >= 2 and all(0 < sample.value < 150 for sample in heat), heat)
    check(families["gpuhal_energy_joules"].type == "counter" and families["gpuhal_energy_joules"].unit == "joules", families)
    check(samples_of(families, "gpuhal_energy_joules")[0].name == "gpuhal_energy_joules_total", families)
    ratios = samples_of(families, "gpuhal_utilization_ratio")
    check(ratios and all(0 <= sample.value <= 1 for sample in ratios), ratios)


def heads_of(text):
    """Returns TYPE and HELP by name, as node_exporter's textfile collector parses them. They apply only to metrics with
    exactly this name."""
    return {kind: dict(re.findall(rf"^# {kind} (\S+) (.+)$", text, re.M)) for kind in ("TYPE", "HELP")}


def every_metric_for_the_textfile_collector_has_its_type_and_help(probe):
    settings = fake_cuda(NAMED)
    older = probe.run("--format", "prometheus", "--backends", "cuda", **settings)
    heads, metrics = heads_of(older.out), set(re.findall(r"^([a-z_]+)[{ ]", older.out, re.M))
    check(older.code == 0 and set(heads["TYPE"]) == set(heads["HELP"]) == metrics, metrics ^ set(heads["TYPE"]), older)
    check({name for name, kind in heads["TYPE"].items() if kind == "counter"} == {name for name in metrics if name.endswith("_total")}, heads)
    check({"gpuhal_energy_joules_total", "gpuhal_pcie_replays_total", "gpuhal_ecc_errors_total"} <= metrics, metrics)
    check(all(line.startswith(("# TYPE ", "# HELP ", "gpuhal_")) for line in older.out.splitlines()), older)
    newer = probe.run("--format", "openmetrics", "--backends", "cuda", **settings)
    numbers = [[line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")] for text in (older.out, newer.out)]
    check(numbers[0] == numbers[1], "the metrics are the same", numbers)
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ImportError:
        return
    kinds = {family.name: family.type for family in text_string_to_metric_families(older.out)}
    check(kinds["gpuhal_energy_joules"] == "counter" and "unknown" not in kinds.values() and "untyped" not in kinds.values(), kinds)


def openmetrics_has_types_alone_that_the_textfile_collector_reads(probe):
    result = probe.run("--format", "openmetrics", "--backends", "cuda", **fake_cuda(NAMED))
    types = set(re.findall(r"^# TYPE \S+ (.*)$", result.out, re.M))
    check(types == {"gauge", "counter"}, types)
    info = samples_of(families_of(result.out), "gpuhal_device_info")
    check([sample.value for sample in info][:2] == [1, 1] and "driver" in info[0].labels, info)


def openmetrics_has_one_state_of_all_for_each_device(probe):
    families = families_of(probe.run("--format", "openmetrics", "--backends", "cuda", **fake_cuda(NAMED)).out)
    states = [sample for sample in samples_of(families, "gpuhal_hardware_state") if sample.labels["device"] == "cuda:0"]
    check([sample.labels["state"] for sample in states if sample.value] == ["ready"], states)
    check({"no_kernel_driver", "off_bus", "gone", "lost"} <= {sample.labels["state"] for sample in states}, states)


def openmetrics_has_no_metric_where_nothing_is_known(probe):
    result = probe.run("--format", "openmetrics", "--backends", "cpu")
    families = families_of(result.out)
    check("gpuhal_pcie_generation" not in result.out and "gpuhal_fan" not in result.out, result)
    for family in families.values():
        for sample in family.samples:
            check(0 <= sample.value < 1 << 60, "a number that stands for none", sample)
    check(samples_of(families, "gpuhal_memory_total_bytes")[0].value > 1 << 20, result)


def openmetrics_has_no_control_character_of_a_driver(probe):
    result = probe.run("--format", "openmetrics", "--backends", "cuda", **fake_cuda("devices 1; memory 0 1G; name 0 bad\x1b[31mname\\"))
    check("\x1b" not in result.out, result)
    check(samples_of(families_of(result.out), "gpuhal_device_info")[0].labels["name"] == "bad?[31mname\\", result)


# ---------------------------------------------------------------------------------------------- JSON lines

def json_lines_are_one_document_each(probe):
    result = probe.run("--format", "jsonl", "--backends", "cpu")
    lines = result.out.splitlines()
    check(len(lines) == 1 and json.loads(lines[0])["schema"] == "gpuhal.probe/2", result)


def repeated_lines_follow_each_other_until_a_signal(probe):
    for options in (("--format", "jsonl", "--every", "0.1"), ("--watch=0.1",), ("--watch", "0.1"), ("--format", "csv", "--every", "0.1")):
        child = start(probe, *options, "--backends", "cpu")
        lines = [child.stdout.readline() for _ in range(4)]
        child.send_signal(signal.SIGTERM)
        rest, said = child.communicate(timeout=DEADLINE)
        check(child.returncode == 0 and not said, options, child.returncode, said)
        if "csv" in options:
            check(lines[0].startswith("id,") and lines[1].startswith("cpu:0,") and lines[2].startswith("cpu:0,"), lines)
        else:
            check([json.loads(line)["schema"] for line in lines] == ["gpuhal.probe/2"] * 4, lines)
        check(not rest or rest.endswith("\n"), "the last line is whole", rest)


# ---------------------------------------------------------------------------------------------- files

def a_file_is_written_whole_with_a_mode_that_others_read(probe):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gpuhal.prom")
        result = probe.run("--format", "openmetrics", "--output", path, "--backends", "cpu")
        check(result.code == 0 and not result.out and not result.err, result)
        families_of(contents_of(path))
        check(stat.S_IMODE(os.stat(path).st_mode) == 0o644 and os.listdir(folder) == ["gpuhal.prom"], os.listdir(folder))
        link = os.path.join(folder, "link")
        os.symlink("gpuhal.prom", link)
        result = probe.run("--format", "csv", "--output", link, "--backends", "cpu")
        check(os.path.islink(link) and contents_of(path).startswith("id,"), "a link stays one", result)


def a_reader_never_sees_a_part_of_a_file(probe):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gpuhal.prom")
        child = start(probe, "--format", "openmetrics", "--output", path, "--every", "0.1", "--backends", "cpu")
        wait_for(lambda: contents_of(path))
        seen = set()
        while len(seen) < 4:
            text = contents_of(path)
            check(text.endswith("# EOF\n"), text)
            seen.add(os.stat(path).st_ino)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=DEADLINE)
        check(child.returncode == 0 and not said, child.returncode, said)
        check(os.listdir(folder) == ["gpuhal.prom"], os.listdir(folder))


def expect_failure(probe, path, what, **how):
    done = subprocess.run([probe.program, "--format", "openmetrics", "--backends", "cpu", "--output", path], timeout=DEADLINE,
                          env=probe.environment((), {}), stdin=subprocess.DEVNULL, capture_output=True, text=True, **how)
    check(done.returncode == 1 and path in done.stderr and not done.stdout, what, done)


def forbid_large_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def a_file_that_cannot_be_written_stays_as_it_was(probe):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gpuhal.prom")
        with open(path, "w", encoding="utf-8") as file:
            file.write("former\n")
        expect_failure(probe, path, "no room on the disk", preexec_fn=forbid_large_files)
        os.chmod(path, 0o444)
        expect_failure(probe, path, "a file that is read-only")
        check(contents_of(path) == "former\n" and os.listdir(folder) == ["gpuhal.prom"], os.listdir(folder))
        expect_failure(probe, folder, "a folder")
        expect_failure(probe, os.path.join(folder, "none", "gpuhal.prom"), "a folder that is not there")


def a_folder_that_vanishes_ends_the_repetition(probe):
    with tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, "there")
        os.mkdir(folder)
        path = os.path.join(folder, "gpuhal.prom")
        child = start(probe, "--format", "openmetrics", "--output", path, "--every", "0.1", "--backends", "cpu")
        wait_for(lambda: contents_of(path))
        os.rename(folder, os.path.join(parent, "moved"))
        _, said = child.communicate(timeout=DEADLINE)
        check(child.returncode == 1 and path in said, child.returncode, said)
        check(contents_of(os.path.join(parent, "moved", "gpuhal.prom")).endswith("# EOF\n"), "the last one is whole")


def a_repetition_opens_no_driver_again(probe):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gpuhal.prom")
        report = os.path.join(folder, "report")
        os.mkdir(report)
        settings = fake_cuda("devices 1; memory 0 1G") | {"FAKE_CUDA_REPORT": os.path.join(report, "r")}
        child = start(probe, "--format", "openmetrics", "--output", path, "--every", "0.1", "--backends", "cuda", **settings)
        wait_for(lambda: contents_of(path))
        processes, seen = len(os.listdir(report)), set()
        while len(seen) < 4:
            seen.add(os.stat(path).st_ino)
            time.sleep(0.01)
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=DEADLINE)
        check(len(os.listdir(report)) == processes, "no helper was started again", os.listdir(report))


def metrics_that_are_measured_over_a_time_are_those_of_a_repetition(probe):
    settings = fake_cuda("devices 1; memory 0 1G")
    measured = ("gpuhal_pcie_receive_bytes_per_second{", "gpuhal_pcie_send_bytes_per_second{")
    single = probe.run("--format", "openmetrics", "--backends", "cuda,cpu", **settings).out
    check(not any(name in single for name in measured) and 'gpuhal_utilization_ratio{device="cpu:0"' not in single, single)
    check('gpuhal_utilization_ratio{device="cuda:0"' in single, single)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gpuhal.prom")
        child = start(probe, "--format", "openmetrics", "--output", path, "--every", "1", "--backends", "cuda,cpu", **settings)
        wait_for(lambda: contents_of(path))
        text = contents_of(path)
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=DEADLINE)
        check(all(name in text for name in measured) and 'gpuhal_utilization_ratio{device="cpu:0"' in text, text)


# ---------------------------------------------------------------------------------------------- Slurm

class Tree:
    """A machine below GPUHAL_SYSTEM_ROOT with two sockets of four cores each. The kernel's CPU numbers alternate
    between the sockets."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.put("sys/devices/system/cpu/present", "0-15")
        for cpu in range(16):
            core = cpu % 8
            self.put(f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", str(core % 2))
            self.put(f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", f"{core},{core + 8}")

    def put(self, path, text):
        path = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")

    def gpu(self, address, ids, driver=None, cpus="0-15", nvidia=None, render=None):
        vendor, device = ids.split(":")
        place = f"sys/bus/pci/devices/{address}"
        for name, text in (("class", "0x030200"), ("vendor", "0x" + vendor), ("device", "0x" + device), ("local_cpulist", cpus), ("numa_node", "0")):
            self.put(f"{place}/{name}", text)
        if driver:
            os.makedirs(os.path.join(self.folder.name, "sys/bus/pci/drivers", driver), exist_ok=True)
            os.symlink(f"../../drivers/{driver}", os.path.join(self.folder.name, place, "driver"))
        if nvidia is not None:
            self.put(f"proc/driver/nvidia/gpus/{address}/information", f"Device Minor: \t {nvidia}")
            self.put(f"dev/nvidia{nvidia}", "")
            self.put("dev/nvidiactl", "")
        if render is not None:
            self.put(f"{place}/drm/renderD{render}/dev", f"226:{render}")
            self.put(f"dev/dri/renderD{render}", "")

    def settings(self):
        return {"GPUHAL_SYSTEM_ROOT": self.folder.name}


KEYWORDS = {"name", "type", "file", "multiplefiles", "cores", "links", "flags", "count", "nodename"}


def gres_of(text):
    """Parses the lines of a gres.conf by the grammar of its manual page. The file has comments, and keywords with one
    value each."""
    lines = []
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if not line or line == "AutoDetect=off":
            continue
        entry = {}
        for word in line.split():
            key, sign, value = word.partition("=")
            check(sign and value and key.lower() in KEYWORDS and key.lower() not in entry, line)
            entry[key.lower()] = value
        check(entry["name"] == "gpu" and re.fullmatch(r"[a-z0-9_.-]+", entry["type"]), line)
        check(("file" in entry) != ("multiplefiles" in entry), line)
        check(re.fullmatch(r"(/[\w.-]+)+(,(/[\w.-]+)+)*", entry.get("file") or entry["multiplefiles"]), line)
        check(re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", entry.get("cores", "0")), line)
        lines.append(entry)
    for place, entry in enumerate(lines):
        links = [int(number) for number in entry.get("links", "").split(",") if number]
        check(not links or (len(links) == len(lines) and [i for i, n in enumerate(links) if n == -1] == [place]), text)
    return lines


FOUR = "devices 4; memory * 1G; name * NVIDIA H100 80GB HBM3; link 0 1 nvlink 4 18; link 2 3 nvlink 4 12"


def gres_conf_has_files_cores_and_links_as_slurm_counts_them(probe):
    tree = Tree()
    for place, address in enumerate(("0000:11:00.0", "0000:21:00.0", "0000:31:00.0", "0000:41:00.0")):
        tree.gpu(address, "10de:2330", "nvidia", "0,2,4,6,8,10,12,14" if place < 2 else "1,3,5,7,9,11,13,15", nvidia=place)
    result = probe.run("--format", "gres", "--backends", "cuda", **fake_cuda(FOUR) | tree.settings())
    lines = gres_of(result.out)
    check([line["file"] for line in lines] == [f"/dev/nvidia{i}" for i in range(4)], result)
    check({line["type"] for line in lines} == {"nvidia_h100_80gb_hbm3"}, result)
    check([line["cores"] for line in lines] == ["0-3", "0-3", "4-7", "4-7"], result)
    check([line["links"] for line in lines] == ["-1,18,0,0", "18,-1,0,0", "0,0,-1,12", "0,0,12,-1"], result)
    check("Gres=gpu:nvidia_h100_80gb_hbm3:4\n" in result.out and "\nAutoDetect=off\n" in result.out, result)


def gres_conf_has_a_type_for_a_name_without_letters_that_slurm_takes(probe):
    tree = Tree()
    tree.gpu("0000:11:00.0", "10de:2330", "nvidia", nvidia=0)
    result = probe.run("--format", "gres", "--backends", "cuda", **fake_cuda("devices 1; name 0 日本") | tree.settings())
    check([line["type"] for line in gres_of(result.out)] == ["gpu"] and "Gres=gpu:gpu:1\n" in result.out, result)


def gres_conf_has_the_gpus_of_all_vendors_and_says_what_is_left_out(probe):
    tree = Tree()
    tree.gpu("0000:11:00.0", "10de:2330", "nvidia", nvidia=0)
    tree.gpu("0000:91:00.0", "1002:74a1", "amdgpu", render=129)
    tree.gpu("0000:a1:00.0", "8086:56c0")
    rocm = os.path.join(os.environ.get("PROBE_TEST_FAKES", "/nowhere"), "rocm")
    settings = {"FAKE_HIP": "devices 1; memory 0 1G; name 0 AMD Instinct MI300X; pci 0 0000:91:00.0",
                "GPUHAL_HIP_LIBRARY": f"{rocm}/libamdhip64.so.6", "GPUHAL_ROCM_SMI_LIBRARY": f"{rocm}/librocm_smi64.so.1",
                "GPUHAL_AMD_SMI_LIBRARY": f"{rocm}/libamd_smi.so"}
    result = probe.run("--format", "gres", "--backends", "cuda,rocm", **fake_cuda("devices 1; memory 0 1G; name 0 H100") | settings | tree.settings())
    lines = gres_of(result.out)
    check([line["file"] for line in lines] == ["/dev/nvidia0", "/dev/dri/renderD129"], result)
    check([line["type"] for line in lines] == ["h100", "amd_instinct_mi300x"], result)
    check(not any("cores" in line or "links" in line for line in lines), "all cores and no links say nothing", result)
    comments = [line for line in result.out.splitlines() if line.startswith("# left out: ")]
    check(len(comments) == 1 and "0000:a1:00.0" in comments[0] and "driver" in comments[0], result)


def gres_conf_has_the_files_of_the_one_part_of_a_divided_gpu(probe):
    tree = Tree()
    tree.gpu("0000:11:00.0", "10de:2330", "nvidia", nvidia=0)
    capabilities = "proc/driver/nvidia/capabilities/gpu0/mig/gi3"
    tree.put(f"{capabilities}/access", "DeviceFileMinor: 30\nDeviceFileMode: 292")
    tree.put(f"{capabilities}/ci0/access", "DeviceFileMinor: 31\nDeviceFileMode: 292")
    settings = fake_cuda("devices 1; memory 0 1G; name 0 NVIDIA H100; mig 0 3 0 1g.10gb 96M") | tree.settings()
    result = probe.run("--format", "gres", "--backends", "cuda", **settings)
    (line,) = gres_of(result.out)
    check(line["multiplefiles"] == "/dev/nvidia0,/dev/nvidia-caps/nvidia-cap30,/dev/nvidia-caps/nvidia-cap31", result)
    check(line["type"] == "nvidia_h100_mig_1g.10gb", result)
    tree.put(capabilities.replace("gi3", "gi4") + "/access", "DeviceFileMinor: 39")
    result = probe.run("--format", "gres", "--backends", "cuda", **settings)
    check([line["multiplefiles"] for line in gres_of(result.out)] == ["/dev/nvidia0,/dev/nvidia-caps/nvidia-cap30,/dev/nvidia-caps/nvidia-cap31"], result)
    # without this function of NVML, nothing shows which of the two instances the device is
    settings["FAKE_CUDA"] += "; fail nvmlDeviceGetGpuInstanceId 1+ 999"
    result = probe.run("--format", "gres", "--backends", "cuda", **settings)
    check(not gres_of(result.out) and "# left out: cuda:0 0000:11:00.0" in result.out, result)


# ---------------------------------------------------------------------------------------------- usage

def what_a_descriptor_has_open_is_not_replaced(probe):
    with tempfile.NamedTemporaryFile() as file:
        for path in ("/dev/stdout", "/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"):
            os.truncate(file.name, 0)
            with open(file.name, "w", encoding="utf-8") as errors:
                errors.write("before\n")
                errors.flush()
                code = subprocess.run([probe.program, "--output", path], stdout=errors, stderr=errors, stdin=subprocess.DEVNULL,
                                      env=probe.environment((), {})).returncode
            with open(file.name, encoding="utf-8") as errors:
                text = errors.read()
            check(code == 1 and text.startswith("before\n") and "names a descriptor" in text, path, text)


def options_that_make_no_sense_together_are_usage_errors(probe):
    wrong = (["--every", "0", "--output", "/tmp/x"], ["--watch=0"], ["--watch", "nothing"], ["--every", "1"], ["--every", "1", "--format", "json"],
             ["--watch", "--every", "1"], ["--watch", "--output", "x"], ["--watch", "--format", "csv"], ["--output", "-"], ["--format", "yaml"],
             ["--report", "x", "--every", "1"], ["--explain", "cpu", "--output", "x"], ["--format", "csv", "--explain"], ["--format", "gres", "--timings"], ["--registry", "--every", "1"], ["--registry", "--watch"], ["2"])
    for options in wrong:
        result = probe.run(*options)
        wants_json = "json" in options
        check(result.code == 2 and bool(result.out) == wants_json and result.err, options, result)


def an_option_without_effect_beside_another_is_a_usage_error_that_names_both(probe):
    ignored = (("--columns id", "--json --format=jsonl --format=openmetrics --format=gres --format=wide --report=x --watch"),
               ("--all", "--report=x --forget=x"), ("--strict", "--report=x --watch"), ("--verify", "--watch"),
               ("--timings", "--report=x --format=csv"), ("--env", "--report=x --format=openmetrics"), ("--explain", "--report=x --watch"))
    beside_target = "--all --links --verify --timings --env --json --format=wide --columns=id --watch=2 --every=1 --output=x --report=x"
    pairs = [(*one.split(), other) for one, others in ignored for other in others.split()]
    for options in pairs + [("--explain", "cpu", other) for other in beside_target.split()]:
        result = probe.run(*options)
        words = re.match(r"gpuhal-probe: (--[a-z]+) has no effect beside (--[a-z]+)", result.err)
        names = {re.match("--[a-z]+", option)[0].replace("--json", "--format") for option in options if option.startswith("--")}
        check(result.code == 2 and words and {word.replace("--json", "--format") for word in words.groups()} == names, options, result)


def options_of_which_neither_is_ignored_go_together(probe):
    for options in ("--json --all --explain --timings --color=never", "--format=csv --columns=id --all --strict --verify", "--links --columns=id,pci",
                    "--explain cpu --cached --strict --refresh --timeout=30", "--report=- --verify --links --cached"):
        result = probe.run(*options.split())
        check(result.code in (0, 3, 4) and result.out, options, result)


def a_temperature_below_zero_is_negative_in_every_format(_):
    cold = {"sys/devices/pci0000:c0/0000:c0:01.1/0000:c1:00.0/hwmon/hwmon2/temp1_input": "-5500\n"}
    run = on_recorded("nvidia-and-amd", cold)
    rows = {row["id"]: row for row in csv.DictReader(run("--format=csv").out.splitlines())}
    check((rows["rocm:1"]["temperature_celsius"], rows["rocm:0"]["temperature_celsius"]) == ("-5.5", "38"), rows["rocm:1"])
    heat = {(s.labels["device"], s.labels["sensor"]): s.value for s in samples_of(families_of(run("--format=openmetrics").out), "gpuhal_temperature_celsius")}
    check(heat["rocm:1", "edge" if ("rocm:1", "edge") in heat else "core"] == -5.5, heat)


def variables_alone_are_what_env_prints_unless_a_listing_is_asked_for(probe):
    check("cpu:0" not in probe.run("--env", "--device", "cpu").out, "an option that a variable stands for asks for none")
    for options in (("--columns", "id"), ("--cached",), ("--strict",), ("--format", "table"), ("--timeout", "30")):
        result = probe.run("--env", *options)
        check("cpu:0" in result.out and "GPUHAL_BACKENDS" in result.out, options, result)
    check(json.loads(probe.run("--env", "--format", "jsonl").out)["environment"], "a document is one")
    with tempfile.TemporaryDirectory() as folder:
        result = probe.run("--env", "--output", os.path.join(folder, "listing"))
        check(not result.out and "GPUHAL_BACKENDS" in contents_of(os.path.join(folder, "listing")), result)


if __name__ == "__main__":
    main(globals())
