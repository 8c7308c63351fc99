#!/usr/bin/env python3
"""Tests the explanations of gpuhal-probe, and its report. See probe_support.py."""

import os
import pwd
import re
import socket
import stat
import tempfile
import time

from probe_support import by_id, check, fake_cuda, fake_hip, main, on_recorded


def what_is_wrong_comes_first_and_what_works_is_one_line_each(probe):
    result = probe.run("--explain", plugins=("twin_a", "twin_b", "crashing"))
    text = result.out[result.out.index("crashing: not used"):]
    check(text.index("    reason ") < text.index("\ntwin_a: used, 1 device\ntwin_b: used, 1 device\n") < text.index("\nchosen: "), result)
    check("\ntwin_a:0 is also twin_b:0\n" in text, result)
    whole = probe.run("--explain", "--all", plugins=("twin_a", "twin_b"))
    check("\ntwin_a: used, 1 device\n    devices  twin_a:0\n" in whole.out, whole)


def a_group_of_an_unknown_version_is_a_reason_and_a_warning(probe):
    sentence = "device 0: the group programs is not offered: its table has version 2, this library supports version 1"
    result = probe.run("--explain", plugins=("later",), GPUHAL_LOG="warning")
    check(f"later: used, 1 device: {sentence}" in " ".join(result.out.split()) and sentence in result.err, result)
    whole = probe.run("--explain", "later", plugins=("later",))
    check(f"reason {sentence}" in " ".join(whole.out.split()), whole)


def parts_of_one_gpu_are_called_so(probe):
    result = probe.run("--explain", "--backends", "rocm", **fake_hip("devices 1; memory 0 384M; partitions 0 3"))
    check("\nrocm:0, rocm:1, rocm:2 are parts of one GPU\n" in result.out and " is also" not in result.out, result)


def a_chain_of_reasons_names_each_cause_once(probe):
    probe.use_drivers()
    result = probe.run("--explain", "--backends", "cuda", GPUHAL_CUDA_LIBRARY="/nowhere/libcuda.so.1")
    line = " ".join(result.out.split())
    check(line.count("/nowhere/libcuda.so.1") == 1, result)


def a_target_is_a_plugin_a_device_or_an_address(probe):
    plugins = ("twin_a", "twin_b")
    plugin = probe.run("--explain", "twin_b", plugins=plugins)
    check(plugin.code == 0 and plugin.out.startswith("twin_b: used, 1 device\n") and "twin_a: used" not in plugin.out, plugin)
    for target in ("twin_b:0", "c1:00.0", "0000:C1:00.0", "pci=c1:00.0"):
        device = probe.run("--explain", target, plugins=plugins)
        check(device.code == 0 and "devices  twin_a:0, twin_b:0\n" in device.out and "state the same PCI address" in device.out, device)
    nothing = probe.run("--explain", "nonesuch", plugins=plugins)
    check(nothing.code == 5 and '"nonesuch" is neither' in nothing.err and nothing.out == "", nothing)
    check(probe.run("nonesuch").code == 2)


def hardware_without_a_device_is_explained_by_its_address(probe):
    with tempfile.TemporaryDirectory() as root:
        folder = os.path.join(root, "sys/devices/pci0000:00/0000:01:00.0")
        os.makedirs(folder)
        os.makedirs(os.path.join(root, "sys/bus/pci/devices"))
        os.symlink(folder, os.path.join(root, "sys/bus/pci/devices/0000:01:00.0"))
        for name, text in (("vendor", "0x10de"), ("device", "0x2684"), ("class", "0x030000"), ("subsystem_vendor", "0x10de"),
                           ("subsystem_device", "0x0001")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text + "\n")
        result = probe.run("--explain", "01:00.0", GPUHAL_SYSTEM_ROOT=root)
        check(result.code == 0 and result.out.startswith("0000:01:00.0: ") and "[10de:2684], no kernel driver\n" in result.out, result)
        check(re.search(r"^    reason +\S", result.out, re.M) and re.search(r"^    kernel +none is bound$", result.out, re.M), result)


def hardware_is_explained_by_what_a_device_of_it_had_and_answers_by_its_grade(probe):
    run = on_recorded("h100-8-one-gone")
    for target in ("df:00.0", "00000000:DF:00.0", "pci=0000:df:00.0", "cuda:7", "GPU-70717273", "70717273-7475-7677-7879-7a7b7c7d7e7f"):
        result = run("--explain", target)
        check(result.code == 4 and result.out.startswith("0000:df:00.0: NVIDIA H100") and not result.err, target, result)
        check(re.search(r"^    reason +it was on the bus on .*\n    next +sudo dmesg", result.out, re.M), result)
    check(run("--explain", "cuda:0").code == 0)
    for target in ("cuda:8", "00.0", "0:00.0", "0000:00.0", "MIG-70717273"):
        check(run("--explain", target).code == 5, target)
    hidden = on_recorded("h100-8-hidden-by-variable")
    check((hidden("--explain", "1b:00.0").code, hidden("--explain", "1b:00.0", "--strict").code) == (0, 4), hidden("--explain", "1b:00.0"))


def a_device_is_explained_with_its_values_their_sources_and_why_others_are_missing(probe):
    run = on_recorded("h100-8")
    for target in ("cuda:2", "52:00.0"):
        result = run("--explain", target)
        values = dict(re.findall(r"^ +(?:values +)?([a-z ]+): ([^:]+ \([a-z-]+\))$", result.out, re.M))
        check(values["memory used"] == "61.0 GiB (nvml)" and values["temperature"] == "67°C (nvml)" and values["power"] == "644 W (nvml)", values, result)
        check(values["utilisation"] == "98% (nvml)" and values["power limit"] == "700 W (nvml)" and "clock" in values, values, result)
    check("values" not in run("--explain", "cuda:2", "--cached").out, "--cached reads none")
    asleep = on_recorded("laptop-hybrid-asleep")
    result = asleep("--explain", "01:00.0")
    check(re.search(r"^    missing  memory used, .*, temperature, .*: asleep: \S", result.out, re.M) and "_bytes" not in result.out, result)
    check(result.out.count("    missing  ") == 1, "one line for each reason", result)
    part = on_recorded("nvidia-mig")("--explain", "cuda:0")
    check("power: 84 W (nvml, of the whole GPU)\n" in part.out and "memory free: 39.4 GiB (nvml)\n" in part.out, part)


def a_device_is_explained_with_its_memory_errors_links_and_processes(probe):
    run = on_recorded("h100-8")
    result = run("--explain", "cuda:2")
    for line in ("uncorrected memory errors: 0 (nvml)", "corrected memory errors: 0 (nvml)", "memory repair: none pending (nvml)", "NVLinks up: 18 (nvml)",
                 "links    NVLink 4 through NVSwitch, 18 links each, direct access to memory: cuda:0, cuda:1, cuda:3 to cuda:7"):
        check(re.search(rf"^ +(?:values +)?{re.escape(line)}$", result.out, re.M), line, result)
    check(re.search(r"^  cuda:2 +alice +48213 +60.0 GiB +python3$", result.out, re.M) and "root" not in result.out, "only its own processes", result)
    check("\n  no process is known to use this GPU\n" in run("--explain", "cuda:0").out, "said if there is none")
    cached = run("--explain", "cuda:2", "--cached").out
    check("links " not in cached and "alice" not in cached, "--cached starts no driver", cached)
    mixed = on_recorded("nvidia-and-amd")("--explain", "rocm:0").out
    check(re.search(r"^    links    .*: rocm:1\n             .*: cuda:0$", mixed, re.M) or re.search(r"^    links    .*: cuda:0\n             .*: rocm:1$", mixed, re.M), mixed)
    check("links " not in run("--explain", "cpu:0").out, "the processor has no link of its own")


def a_driver_that_hangs_at_a_link_costs_the_link_alone(probe):
    result = probe.run("--explain", "cuda:0", "--timeout", "4", "--backends", "cuda", **fake_cuda("devices 2; hang cuDeviceCanAccessPeer 1"))
    check(result.code == 4 and "problem  the link from cuda:0 to cuda:1 cannot be read: the driver did not finish within " in result.out, result)
    check("temperature: 41°C (nvml)\n" in result.out and "\n    links " not in result.out, result)


def a_devices_problems_stand_before_its_values_with_the_next_command(probe):
    for name, code, state, words in (("reset-required", 4, "reset needed", "problem  cuda:0: the GPU needs a reset, .*\n    next     # ends all programs on this GPU:\n +sudo nvidia-smi --gpu-reset"),
                                     ("gpu-lost-values", 4, "lost", "problem  cuda:0: the device is lost: .*\n    next     sudo dmesg"),
                                     ("ecc-uncorrected", 0, "ready", "warning  cuda:0: 37 memory errors could not be corrected\n    next     nvidia-smi -q -d ECC")):
        run = on_recorded(name)
        result = run("--explain", "cuda:0")
        check(result.code == code and re.match(rf"0000:c1:00.0: NVIDIA .*, {state}\n", result.out), name, result)
        found = re.search(f"^    {words}", result.out, re.M)
        check(found and found.start() < re.search("^    (values|missing) ", result.out, re.M).start(), name, result)
        check(run("--explain", "cuda:0", "--strict").code == 4, name)


def a_report_has_everything_and_nothing_private(probe):
    with tempfile.TemporaryDirectory() as home:
        file = os.path.join(home, "report.txt")
        settings = fake_cuda("devices 1") | {"HOME": home, "GPUHAL_REGISTRY": os.path.join(home, "state"), "CUDA_VISIBLE_DEVICES": "0"}
        settings["GPUHAL_PLUGIN_PATH"] = os.path.join(home, "plugins")
        uuid = by_id(probe.json("--backends", "cuda", **settings)[0])["cuda:0"]["uuid"]
        settings |= {"GPUHAL_ROCM_SMI_LIBRARY": "/net/fe80::17/a.so", "GPUHAL_HIP_LIBRARY": "/net/2001:db8:0:1:2:3:4:5"}
        settings |= {"GPUHAL_OPTIONS": "x.token=hunter2;y.key=hunter;y.other=", "GPUHAL_OPTION": "x.token=hunter3"}
        result = probe.run("--report", file, "--backends", "cuda", **settings)
        check(result.code == 0 and "written to " in result.out and stat.S_IMODE(os.stat(file).st_mode) == 0o600, result)
        with open(file, encoding="utf-8") as report:
            text = report.read()
        for part in ("versions", "environment", "devices", "hardware", "registry", "kernel log", "everything"):
            check(f"\n==== {part} (" in text, part, text[:400])
        for needed in ("gpuhal-probe 0.", "CUDA_VISIBLE_DEVICES=0", "GPUHAL_PLUGIN_PATH=~/plugins", "_SMI_LIBRARY=/net/ADDRESS/a.so\n", "_HIP_LIBRARY=/net/ADDRESS\n",
                       "GPUHAL_OPTIONS=x.token=VALUE;y.key=VALUE;y.other=VALUE\n", "GPUHAL_OPTION is not", "cuda: used, 1 device", '"schema": "gpuhal.probe/2"', "uuid-"):
            check(needed in text, needed)
        for private in (uuid.removeprefix("GPU-"), home, "hunter", "fe80", "2001:db8"):
            check(private not in text, private)
        for private in {socket.gethostname(), pwd.getpwuid(os.getuid()).pw_name} - {"root", "localhost"}:
            check(not re.search(rf"\b{re.escape(private)}\b", text), private)
        check(os.listdir(home).count("report.txt") == 1 and not [name for name in os.listdir(home) if name.startswith("report.txt.")], os.listdir(home))
        again = probe.run("--report", file, **settings)
        check(again.code == 1 and "exists" in again.err, again)
        check("\n==== versions (" in probe.run("--report", "-", **settings).out)


def a_report_has_no_beginnings_of_uuids_either(probe):
    selectors = {"CUDA_VISIBLE_DEVICES": "GPU-70717273-7475,GPU-0001", "ROCR_VISIBLE_DEVICES": "GPU-1a2b3c4d5e6f7083", "GPUHAL_DEVICES": "uuid=000102,cpu"}
    text = on_recorded("h100-8")("--report", "-", **selectors).out
    check("CUDA_VISIBLE_DEVICES=GPU-uuid-" in text and "GPUHAL_DEVICES=uuid=uuid-" in text, text[:2000])
    for private in ("70717273", "GPU-0001", "1a2b3c4d", "000102"):
        check(private not in text, private)


def a_timeout_is_for_everything_together(probe):
    """Two devices hang during verification. Each device gets a share of the time, and the CPU must still be
    verified."""
    begin = time.monotonic()
    document, result = probe.json("--verify", "--timeout", "6", plugins=("stuck", "halting"))
    check(time.monotonic() - begin < 20 and result.code == 4, time.monotonic() - begin, result)
    errors = [by_id(document)[name]["verify_error"] for name in ("stuck:0", "halting:0")]
    check(all("did not finish within" in error or "the time of --timeout is over" in error for error in errors), errors)


def what_the_time_does_not_reach_is_not_verified_and_has_not_failed(probe):
    result = on_recorded("h100-8-driver-hangs")("--verify", "--timeout", "1")
    check(result.code == 4 and "NOT VERIFIED" in result.out and "FAILED" not in result.out and "✗" not in result.out, result)
    check("! cpu:0 was not verified: the time of --timeout is over\n" in result.out, result)
    check("default device: none: cpu:0 was not verified in time\n" in result.out, result)


if __name__ == "__main__":
    main(globals())
