#!/usr/bin/env python3
"""Tests the screen output of gpuhal-probe. See probe_support.py."""

import os
import re
import tempfile
import time
import unicodedata

from probe_support import check, columns_of, fake_cuda, is_a_path, machine_with, main, rows_of, screen_lines


def eight_healthy_gpus_are_eight_lines_and_nothing_superfluous(probe):
    names = "; ".join(f"name {i} NVIDIA H100 80GB HBM3" for i in range(8))
    result = probe.run("--backends", "cuda", COLUMNS="80", **fake_cuda(f"devices 8; memory * 80G; {names}; used 2 61G"))
    lines = result.out.splitlines()
    check(result.code == 0 and result.err == "", result)
    check(re.fullmatch(r".*: 8 GPUs ready   NVIDIA driver 580\.65\.06, CUDA 13\.0(   Linux .*)?", lines[0]), lines[0])
    lines = lines[1 if "Linux" in lines[0] else 2:]
    check(len(lines) == 1 + 1 + 8 + 1 + 2 and lines[0] == "" and lines[10] == "", result)
    check(lines[1] == "  ID      NAME                   USED/TOTAL GiB  UTIL  TEMP      POWER  PCI", lines[1])
    check(lines[2] == "* cuda:0  NVIDIA H100 80GB HBM3      0.0 / 80.0   37%  41°C  123/700 W  11:00.0", lines[2])
    check(lines[4] == "  cuda:2  NVIDIA H100 80GB HBM3     61.0 / 80.0   37%  41°C  123/700 W  31:00.0", lines[4])
    check(lines[11].startswith("* = default device: cuda:0"), lines[11])
    check(lines[12] == "  more: --format wide (clock, ECC, fan, NUMA, PCIe), --watch, --explain cuda:0", lines[12])


def what_the_screen_leaves_out_is_there_with_the_option_that_it_names(probe):
    settings = fake_cuda("devices 1; memory 0 8G; value 0 memory_limit 4294967296")
    wide = probe.run("--backends", "cuda", "--format", "wide", COLUMNS="80", **settings)
    check(all(f" {title}" in wide.out for title in ("CLOCK", "MEM CLOCK", "ECC", "FAN", "NUMA", "PCIe")), wide)
    explained = probe.run("--backends", "cuda", "--explain", "cuda:0", **settings).out
    for line in ("performance state: 2 (nvml)", "persistence mode: on (nvml)", "display active: no (nvml)", "memory limit of this control group: 4.0 GiB (nvml)"):
        check(line in explained, line, explained)
    for options, settings in (((), {}), (("--all",), {"COLUMNS": "80"}), (("--backends", "cpu"), {"COLUMNS": "80"})):
        result = probe.run(*options, **(fake_cuda("devices 1") if "cpu" not in options else {}), **settings)
        check("more:" not in result.out, options, result)
    check("  more: --watch, --explain cuda:0\n" in probe.run("--backends", "cuda", COLUMNS="140", **fake_cuda("devices 1")).out, "on a wide screen")


def every_run_prints_the_same_columns(probe):
    settings = fake_cuda("devices 2; memory * 8G; used 1 3G")
    with tempfile.TemporaryDirectory() as registry:
        first, second, third = (probe.run("--backends", "cuda", *options, GPUHAL_REGISTRY=registry, **settings) for options in ((), (), ("--cached",)))
    check(first.out == second.out, first, second)
    check(third.out.splitlines()[2] == first.out.splitlines()[2] and " - / 8.0     -     -          -" in third.out, third)


def a_gpu_that_was_there_and_is_gone_is_a_row_a_sentence_and_exit_4(probe):
    with tempfile.TemporaryDirectory() as registry:
        probe.run("--backends", "cuda", GPUHAL_REGISTRY=registry, **fake_cuda("devices 2"))
        result = probe.run("--backends", "cuda", "--refresh", GPUHAL_REGISTRY=registry, **fake_cuda("devices 1"))
        check(result.code == 4 and ": 1 of 2 GPUs ready" in result.out, result)
        check(re.search(r"^! none    Fake H100 +MISSING, last seen \d{4}-\d\d-\d\d +21:00\.0$", result.out, re.M), result)
        check(re.search(r"^! Fake H100 at 0000:21:00\.0: .+\n  next:  .+$", result.out, re.M), result)
        again = probe.run("--backends", "cuda", GPUHAL_REGISTRY=registry, **fake_cuda("devices 1"))
        check(again.code == 4 and "MISSING" in again.out, "it is not forgotten", again)


def a_gpu_without_a_driver_is_a_row_a_sentence_and_a_command(probe):
    with machine_with(("0000:01:00.0", "0x10de", "0x25a2", ""), ("0000:02:00.0", "0x1a03", "0x2000", "ast")) as root:
        result = probe.run(GPUHAL_SYSTEM_ROOT=root)
        check(": 0 of 1 GPU ready" in result.out and re.search(r"^! none +.* NO DRIVER +01:00\.0$", result.out, re.M), result)
        check(re.search(r"^! .*0000:01:00\.0: .+\n  next:  .+$", result.out, re.M) and "02:00.0" not in result.out, result)
        check("02:00.0" in probe.run("--all", GPUHAL_SYSTEM_ROOT=root).out, "a display controller is listed with --all")
        check(("*", "cpu:0") in rows_of(result), result)


def values_of_a_driver_that_hangs_are_missing_and_the_rest_is_there(probe):
    begin = time.monotonic()
    result = probe.run("--backends", "cuda", **fake_cuda("devices 1; name 0 Slow; hang nvmlDeviceGetTemperature 1; hang nvmlDeviceGetTemperatureV 1"))
    check("Slow" in result.out and re.search(r"^\* cuda:0 .* - ", result.out, re.M), result)
    check(time.monotonic() - begin < 60, result)


def a_pipe_gets_plain_lines_that_are_not_cut(probe):
    result = probe.run(plugins=("longname",))
    check("\033" not in result.out + result.err and "\r" not in result.out + result.err, result)
    check("…" not in result.out and max(columns_of(line) for line in result.out.splitlines()) > 80, result)
    check(all(len(line) == len(line.rstrip()) for line in result.out.splitlines()), result)
    check(max(columns_of(line) for line in probe.run(plugins=("longname",), COLUMNS="100").out.splitlines()) <= 100)


def wider_screens_have_more_columns(probe):
    settings = fake_cuda("devices 1")
    titles = {columns: probe.run("--backends", "cuda", COLUMNS=str(columns), **settings).out.splitlines()[2].split() for columns in (80, 120, 200)}
    check(titles[80] == ["ID", "NAME", "USED/TOTAL", "GiB", "UTIL", "TEMP", "POWER", "PCI"], titles)
    check(titles[120][:8] == titles[80] and "CLOCK" in titles[120] and "NUMA" in titles[120] and "DRIVER" in titles[200], titles)
    check(probe.run("--format", "wide", "--backends", "cuda", **settings).out.splitlines()[2].split() == titles[200], titles)


def no_line_is_wider_than_the_terminal(probe):
    for columns, options in ((40, ()), (60, ("--all",)), (80, ()), (80, ("--all", "--explain")), (200, ("--all",))):
        result = probe.on_terminal("--verify", *options, columns=columns, plugins=("longname", "twin_a", "twin_b"))
        lines = screen_lines(result.out)
        check(any("longname:0" in line for line in lines), result)
        for line in lines:
            check(columns_of(line) <= columns or is_a_path(line), f"{columns_of(line)} columns: {line}", result.out)
    narrow = next(line for line in screen_lines(probe.on_terminal(plugins=("longname",)).out) if "longname:0" in line)
    check("…" in narrow and "24.0" in narrow, narrow)


def colours_are_for_terminals_that_want_them(probe):
    check("\033[1m" in probe.on_terminal().out)
    for settings in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}):
        out = probe.on_terminal("--explain", **settings).out
        check(not re.search(r"\033\[[0-9;]*m", out), settings, out)
    check("\033" not in probe.on_terminal("--verify", TERM="dumb").out)
    check("\033[1m" in probe.run("--color", "always").out and "\033[" not in probe.run("--color=auto").out)
    check(not re.search(r"\033\[[0-9;]*m", probe.on_terminal("--color", "never").out))


def a_terminal_sees_progress_and_it_is_gone_afterwards(probe):
    result = probe.on_terminal("--verify")
    check("checking cpu:0 (1 of 1)" in result.out, result)
    check(not any("checking" in line for line in screen_lines(result.out)), screen_lines(result.out))


def a_terminal_sees_which_plugin_is_waited_for_and_how_long(probe):
    result = probe.on_terminal("--timeout", "3", plugins=("hanging",))
    check(re.search(r"checking hanging: [12] s of 3 s", result.out), result)
    check(not any("checking hanging" in line for line in screen_lines(result.out)), screen_lines(result.out))


def the_default_device_is_named_with_its_rule(probe):
    document, _ = probe.json()
    rule = document["chosen"]["reason"].split(";")[0]
    check(f"* = default device: {document['chosen']['id']}, {rule}" in probe.run().out, document["chosen"])


def a_locale_without_unicode_gets_ascii(probe):
    for result in (probe.run("--verify", "--explain", plugins=("wrong", "longname"), LC_ALL="C"),
                   probe.on_terminal("--verify", plugins=("wrong", "longname"), LC_ALL="C")):
        check(result.out.isascii(), result)
        marks = [line.split()[-1] for line in screen_lines(result.out) if re.match("[*! ] (wrong|longname):0  ", line)]
        check(marks == ["FAILED", "ok"], marks, result)


def a_setting_cannot_write_escape_codes_to_the_terminal(probe):
    result = probe.on_terminal("--env", NO_COLOR="1", GPUHAL_OPENCL_LIBRARY="/x\033]0;title\a")
    check("/x?]0;title?" in result.out and "\033" not in result.out, result)
    result = probe.on_terminal("--env", NO_COLOR="1", GPUHAL_OPENCL_LIBRARY="/x\u202eos.lib\u200b")
    check("/x?os.lib?" in result.out, "turned round or hidden", result)


def no_name_brings_control_characters_to_the_user(probe):
    hostile = "Evil\u001b[31m\u0007\u202eos\u200b" + "x" * 60
    for options in ((), ("--all",), ("--explain",), ("--format", "wide")):
        for result in (probe.run("--backends", "cuda", *options, **fake_cuda(f"devices 1; name 0 {hostile}")),
                       probe.on_terminal("--backends", "cuda", "--color", "never", *options, TERM="dumb", **fake_cuda(f"devices 1; name 0 {hostile}"))):
            shown = result.out.replace("\r\n", "\n")
            check("Evil" in shown, result)
            check(not any(unicodedata.category(c) in ("Cc", "Cf") and c != "\n" for c in shown), repr(shown))


if __name__ == "__main__":
    main(globals())
