#!/usr/bin/env python3
"""Tests the options of gpuhal-probe. See probe_support.py."""

import os
import re
import subprocess
import tempfile
import time

from probe_support import by_id, check, complaints, fake_cuda, main, on_recorded, rows_of, states


def options_win_over_the_environment(probe):
    document, _ = probe.json("--backends", "cpu", GPUHAL_BACKENDS="opencl")
    check(states(document)["opencl"] == "excluded", states(document))
    document, _ = probe.json("--device", "cpu:0", GPUHAL_DEVICES="opencl:0")
    check(set(by_id(document)) == {"cpu:0"}, by_id(document))


def a_selector_narrows_the_listing_and_makes_the_choice(probe):
    probe.use_drivers()
    document, result = probe.json("--device", "opencl:1")
    check(list(by_id(document)) == ["opencl:1"] and document["chosen"]["id"] == "opencl:1", result)
    check("opencl:1" in document["chosen"]["reason"], result)
    result = probe.run("--device", "opencl:0,opencl:1")
    check([device for _, device in rows_of(result)] == ["opencl:0", "opencl:1"], result)


def a_number_chooses_what_it_lists(probe):
    run = on_recorded("h100-8")
    for selector, marks in (("3", "*"), ("1,3", "* "), ("5-7", "*  "), ("3,cuda:2", "* ")):
        result = run("--device", selector)
        check("".join(mark for mark, _ in rows_of(result)) == marks, selector, result)
    check([device for _, device in rows_of(run("--device", "1,3"))] == ["cuda:1", "cuda:3"])


def interfaces_of_one_physical_device_are_hidden_until_asked_for(probe):
    probe.use_drivers()
    plugins = ("twin_a", "twin_b")
    shown, every = rows_of(probe.run(plugins=plugins)), rows_of(probe.run("--all", plugins=plugins))
    check(shown == [("*", "twin_a:0")], shown)
    check({("*", "twin_a:0"), (" ", "twin_b:0"), (" ", "opencl:0"), (" ", "opencl:1"), ("+", "cpu:0")} <= set(every), every)
    check(re.search("--all shows [0-9] software devices", probe.run(plugins=plugins).out))
    document, _ = probe.json(plugins=plugins)
    a, b = by_id(document)["twin_a:0"], by_id(document)["twin_b:0"]
    check(a["physical_device"] == b["physical_device"] and a["preferred"] and not b["preferred"], a, b)


def without_a_gpu_the_choice_is_the_processor_and_the_reason_names_what_was_passed_over(probe):
    probe.use_drivers()
    result = probe.run("--all", "--verify")
    last = " ".join(result.out.split("\n\n")[-1].split())
    check("physical device 1: the host's processor\n" in result.out and ("*", "cpu:0") in rows_of(result), result)
    check(last.startswith("* = default device: cpu:0, no usable GPU"), result)
    document, result = probe.json()
    check("opencl:0" in document["chosen"]["reason"] and "software drivers)" in document["chosen"]["reason"], document["chosen"])


def a_selector_of_a_physical_device_lists_its_preferred_interface_and_keeps_the_others(probe):
    plugins = ("twin_a", "twin_b")
    result = probe.run("--device", "pci=0000:c1:00.0", plugins=plugins)
    check(rows_of(result) == [("*", "twin_a:0")], result)
    document, result = probe.json("--device", "pci=0000:c1:00.0", plugins=plugins)
    check(list(by_id(document)) == ["twin_a:0", "twin_b:0"] and document["chosen"]["id"] == "twin_a:0", result)
    check("twin_b:0" in document["chosen"]["reason"], document["chosen"])


def variables_alone_are_printed_without_running_plugins(probe):
    begin = time.monotonic()
    result = probe.run("--env", plugins=("hanging",), GPUHAL_BACKENDS="nonsense")
    check(result.code == 0 and time.monotonic() - begin < 5, result)
    check("GPUHAL_BACKENDS = nonsense" in result.out and "GPUHAL_DEVICES is not set" in result.out, result)
    result = probe.run("--env", "--timings", "--backends", "cpu", GPUHAL_BACKENDS="opencl")
    check("GPUHAL_BACKENDS = opencl (overruled by --backends)" in result.out and "cpu:0" in result.out, result)


def variables_of_vendors_are_printed_where_they_are_set(probe):
    """Returns all reasons that the library reports for hidden hardware, and the variables in docs/environment.md."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    with open(os.path.join(source, "hal/node/hardware_hidden.c"), encoding="utf-8") as file:
        names = set(re.findall(r'\{"[a-z]+", "([A-Z_]+)", (?:FILTER|MASK|LIST)\}', file.read()))
    with open(os.path.join(source, "docs/environment.md"), encoding="utf-8") as file:
        names |= set(re.findall(r"`((?!GPUHAL_)[A-Z]+_[A-Z_]+)`", file.read().partition("Variables of the vendors")[2]))
    check({"CUDA_VISIBLE_DEVICES", "VK_ICD_FILENAMES", "OCL_ICD_VENDORS"} <= names, names)
    for name in sorted(names):
        set_one = probe.run("--env", **{name: "one,two"})
        check(re.search(rf"^{name} = one,two\n    \S", set_one.out, re.M), name, set_one)
    kept = [name for name in names if name in probe.run("--env").out and name not in os.environ]
    check(not kept, "what is not set is left out", kept)
    check('CUDA_VISIBLE_DEVICES = ""\n' in probe.run("--env", CUDA_VISIBLE_DEVICES="").out, "an empty list hides every device")
    document, result = probe.json("--env", "--backends", "cpu", CUDA_VISIBLE_DEVICES="3")
    found = [one["value"] for one in document["environment"] if one["name"] == "CUDA_VISIBLE_DEVICES"]
    check(found == ["3"] and not complaints(probe, document), found, complaints(probe, document))


def timings_name_every_plugin_that_was_probed(probe):
    probe.use_drivers()
    result = probe.run("--timings")
    check(re.search(r"^cpu +\d+\.\d ms  ok$", result.out, re.M), result)
    check(re.search(r"^opencl +\d+\.\d ms  ok$", result.out, re.M), result)


def the_explanation_names_the_library_that_was_tried_and_the_option_that_excluded_a_plugin(probe):
    probe.use_drivers()
    result = probe.run("--explain", GPUHAL_OPENCL_LIBRARY="/nowhere/libOpenCL.so.1")
    check("opencl: not used, no driver" in result.out and "/nowhere/libOpenCL.so.1" in result.out, result)
    result = probe.run("--explain", "--backends", "cpu")
    check(re.search('not used, excluded: --backends is "cpu"\n', result.out) and "config." not in result.out, result)
    result = probe.run("--backends", "cpu", "--device", "opencl:0")
    check('--device: no device matches "opencl:0"; opencl: --backends is "cpu"' in result.err and "config." not in result.err, result)
    document, result = probe.json("--backends", "cpu")
    check(any(plugin["reason"] == '--backends is "cpu"' for plugin in document["plugins"]), result)


def help_and_version_answer_0_on_standard_output(probe):
    result = probe.run("--help")
    check(result.code == 0 and result.err == "", result)
    for option in "--json --explain --verify --links --timings --env --all --format --columns --color --cached --strict --refresh --device --backends --timeout --retry --registry --diff --accept --forget --export --import --help --version".split():
        check(option in result.out, option)
    check(all(len(line) <= 80 and line == line.rstrip() for line in result.out.splitlines()), result)
    result = probe.run("--version")
    check(re.fullmatch(r"gpuhal-probe \d+\.\d+\.\d+ \(library \d+\.\d+\.\d+, plugin ABI \d+\.\d+\)\n", result.out), result)


def short_help_of_every_program_fits_a_small_terminal_and_names_every_option(probe):
    for name in ("gpuhal-probe", "gpuhal-check", "gpuhal-bench", "gpuhal-lease", "gpuhal-place"):
        program = os.path.join(os.path.dirname(probe.program), name)
        short, whole = (subprocess.run([program, option], capture_output=True, text=True) for option in ("-h", "--help"))
        lines = short.stdout.splitlines()
        check(short.returncode == 0 and not short.stderr and len(lines) < 24 and max(map(len, lines)) < 80, short.stdout)
        for option in set(re.findall(r"^ .{0,5}(--[a-z-]+)", whole.stdout, re.M)) - {"--usage", "--version"}:
            check(re.search(rf"{option}\b", short.stdout), option, short.stdout)


def the_table_has_the_columns_that_are_asked_for(probe):
    result = probe.run("--columns", "pci,id,verified", "--backends", "cuda", **fake_cuda("devices 1"))
    check(result.out.splitlines()[2].split() == ["PCI", "ID", "OK"], result)
    check(result.out.splitlines()[3].split() == ["*", "11:00.0", "cuda:0", "-"], result)
    settings = fake_cuda("devices 2; process 0 100 1M; process 0 101 1M; value 1 throttle 68") | {"GPUHAL_BACKENDS": "cuda"}
    result = probe.run("--columns", "id,uuid,processes,throttle", **settings)
    rows = [line.split(maxsplit=4) for line in result.out.splitlines()[2:5]]
    check(rows[0] == ["ID", "UUID", "PROCESSES", "THROTTLE"], result)
    check(rows[1][:4] == ["*", "cuda:0", "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f", "2"], result)
    check(rows[2][1] == "cuda:1" and rows[2][3:] == ["0", "power_cap thermal"], result)
    result = probe.run("--columns", "id,speed")
    check(result.code == 2 and result.out == "" and '"speed"' in result.err and "temperature" in result.err, result)
    check(probe.run("--columns", ",").code == 2)


def refresh_is_another_name_of_retry_all(probe):
    with tempfile.TemporaryDirectory() as registry:
        settings = {"GPUHAL_REGISTRY": registry}
        probe.run(**settings)
        for option, cached in ((), True), (("--refresh",), False), (("--retry", "all"), False):
            document, result = probe.json(*option, **settings)
            check(next(plugin["cached"] for plugin in document["plugins"] if plugin["name"] == "cpu") is cached, option, result)
    check(probe.run("--refresh", "--retry", "cpu").code == 2)


def two_formats_are_a_mistake_and_the_same_twice_is_not(probe):
    check(probe.run("--format", "json", "--json").code == 0)
    for options in (("--json", "--format", "table"), ("--format", "xml"), ("--json=3",)):
        result = probe.run(*options)
        check(result.code == 2, options, result)


if __name__ == "__main__":
    main(globals())
