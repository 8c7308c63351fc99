#!/usr/bin/env python3
"""Exit statuses of gpuhal-probe, and what it says when something is wrong. See probe_support.py."""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time

from probe_support import by_id, check, complaints, fake_cuda, machine_with, main, on_recorded, rows_of, states, DEADLINE


def a_missing_driver_is_a_complete_listing(probe):
    probe.use_drivers()
    document, result = probe.json(GPUHAL_OPENCL_LIBRARY="/nowhere/libOpenCL.so.1")
    check(states(document)["opencl"] == "no_driver", result)
    check(result.code == 0 and result.err == "", result)


def a_machine_without_any_device_answers_3(probe):
    settings = {"GPUHAL_OPTIONS": "cpu.devices=none"}
    document, result = probe.json(**settings)
    check(result.code == 3 and document["devices"] == [] and document["chosen"]["id"] is None, result)
    check(not complaints(probe, document), complaints(probe, document))
    result = probe.run(**settings)
    check(result.code == 3 and "no GPU" in result.out and "there is no device" in result.err, result)
    check("cpu.devices" in probe.run("--explain", **settings).out)


def a_machine_without_a_gpu_answers_3_when_it_is_strict(probe):
    with machine_with() as root:
        settings = {"GPUHAL_SYSTEM_ROOT": root}
        document, result = probe.json("--strict", **settings)
        check(result.code == 3 and document["status"] == "no_device" and "there is no GPU" in result.err, result)
        check(not complaints(probe, document), complaints(probe, document))
        result = probe.run("--strict", **settings)
        check(result.code == 3 and "cpu:0" in result.out and "there is no GPU" in result.err, result)
        check(probe.run("--strict", "--device", "cpu", **settings).code == 0 and probe.run(**settings).code == 0)
    check(probe.run("--strict", plugins=("longname",)).code == 0, "a GPU of any plugin is one")


def usage_errors_answer_2_with_a_sentence_and_a_hint(probe):
    for options in (["--nonsense"], ["stray"], ["--json", "stray"], ["--device"], ["--device", ""], ["--json=yes"], ["-x"],
                    ["--device", "cpu", "--device", "cpu"], ["--timeout", "soon"], ["--timeout", "-1"], ["--timeout", "nan"],
                    ["--device", "size=3"], ["--backends", "cpu,-opencl"]):
        result = probe.run(*options)
        json_too = any(option.startswith("--json") for option in options)
        check(result.code == 2 and (result.out == "") != json_too and result.err.startswith("gpuhal-probe: "), options, result)


def errors_are_documents_when_json_is_asked_for(probe):
    for options, code, status in ((["--json", "--nonsense"], "usage", 2), (["--json", "--device", "nosuch:9"], "not_found", 5),
                                  (["--format=json", "--retry", "nonesuch"], "not_found", 5), (["--timeout", "x", "--format", "json"], "usage", 2)):
        document, result = probe.json(*options)
        check(document["schema"] == "gpuhal.probe/2" and document["error"]["code"] == code and result.code == status, options, result)
        check(document["error"]["message"] in " ".join(result.err.split()) and not complaints(probe, document), options, result)
    document, result = probe.json("--device", "refused:0", plugins=("refused",))
    check(document["error"]["code"] == "no_permission" and "/dev/odd0" in document["error"]["message"] and result.code == 6, result)


def an_unknown_selector_answers_5_and_is_named(probe):
    for selector in ("nosuch:9", "opencl:99", "name=no such thing*", "pci=0000:ff:1f.7", "cpu,nosuch"):
        result = probe.run("--json", "--device", selector)
        check(result.code == 5, result)
        check(selector.split(",")[-1] in result.err and "--device" in result.err, result)
    result = probe.run(GPUHAL_DEVICES="nosuch:9")
    check(result.code == 5 and "GPUHAL_DEVICES" in result.err and "nosuch:9" in result.err, result)


def a_selected_gpu_that_cannot_be_used_answers_4_or_6_with_its_reason_and_the_next_command(probe):
    for name, selectors, code, words in (
            ("h100-8-one-gone", ("df:00.0", "pci=0000:DF:00.0", "00000000:DF:00.0", "cuda:7", "cuda:0-7", "cuda:0,cuda:7", "7", "0-7", "0,7", "GPU-70717273", "uuid=70717273",
                                 "70717273-7475-7677-7879-7a7b7c7d7e7f"), 4, r"at 0000:df:00\.0: it was there on .*; next: sudo dmesg"),
            ("h100-8-one-off-bus", ("GPU-70717273", "df:00.0"), 4, "at 0000:df:00\\.0: .*; next: sudo dmesg"),
            ("h100-8-hidden-by-variable", ("1b:00.0", "gpu", "cpu,gpu"), 4, r'CUDA_VISIBLE_DEVICES="" hides it from CUDA; next: unset CUDA_VISIBLE_DEVICES'),
            ("laptop-without-nvidia-driver", ("01:00.0",), 4, "at 0000:01:00\\.0: no kernel driver is bound to it.*; next: "),
            ("mi300x-kfd-refused", ("0c:00.0", "0c:00.0,22:00.0", "gpu"), 6, "may not open /dev/kfd.*; next: sudo chgrp")):
        run = on_recorded(name)
        for selector in selectors:
            result = run("--device", selector)
            check(result.code == code and not result.out and re.match(f"gpuhal-probe: --device: .*{words}", result.err), name, selector, result)
        document = json.loads(run("--device", selectors[0], "--json").out)
        check(document["error"]["code"] == ("not_usable" if code == 4 else "no_permission") and not complaints(probe, document), document)
        result = run(GPUHAL_DEVICES=selectors[0])
        check(result.code == code and re.match(f"gpuhal-probe: GPUHAL_DEVICES: .*{words}", result.err), name, result)
    run = on_recorded("h100-8-one-gone")
    explained = run("--explain", "7")
    check(explained.code == 4 and explained.out.startswith("0000:df:00.0: ") and "gone\n" in explained.out, explained)
    check(rows_of(run("--device", "6")) == [("*", "cuda:6")] and rows_of(run("--device", "0", "--backends", "cpu")) == [("*", "cpu:0")])
    check(rows_of(on_recorded("h100-8")("--device", "8")) == [("*", "cpu:0")] and run("--device", "8").code == 5)
    check(run("--device", "gpu").code == 0 and on_recorded("server-plain")("--device", "gpu").code == 5)
    for selector in ("cuda:8", "cuda:7-9", "GPU-ff", "MIG-70717273", "ff:00.0", "opencl:0", "00000000-7475-7677-7879-7a7b7c7d7e7f"):
        result = run("--device", selector)
        check(result.code == 5 and "no device matches" in result.err, selector, result)


def a_selector_with_an_exclusion_or_a_limit_lists_what_it_leaves(probe):
    run = on_recorded("h100-8")
    for selector, left in (("cuda:*,!cuda:1-6", ["cuda:0", "cuda:7"]), ("gpu,!2-7", ["cuda:0", "cuda:1"]), ("cuda:0@8GiB,cuda:7@25%", ["cuda:0", "cuda:7"]),
                           ("0-1@50%", ["cuda:0", "cuda:1"]), ("!cuda:0-5,!cpu", ["cuda:6", "cuda:7"]), ("each,!cpu,!0-6", ["cuda:7"])):
        for result in (run("--device", selector), run(GPUHAL_DEVICES=selector)):
            check(result.code == 0 and [row[1] for row in rows_of(result)] == left and not result.err, selector, result)
    check(run("--device", "cuda,!cuda:9").code == 5 and run("--device", "cuda:0@8").code == 2 and run("--device", "cuda,!cuda").code == 5)
    for selector, words in (("most_free", "most free memory of"), ("least_loaded,!0-6", "least load of 1")):
        for result in (run("--device", selector), run(GPUHAL_DEVICES=selector)):
            check(result.code == 0 and len(rows_of(result)) == 1 and f", {words}" in result.out and not result.err, selector, result)
    gone = on_recorded("h100-8-one-gone")("--device", "0,7@8GiB")
    check(gone.code == 4 and "it was there on" in gone.err, gone)


def a_selector_of_a_vendors_variable_says_what_in_it_does_not_count(probe):
    settings = {"ONEAPI_DEVICE_SELECTOR": "native_cpu:0.1"}
    result = probe.run("--device", "env=ONEAPI_DEVICE_SELECTOR", "--explain", **settings)
    check(result.code == 0 and 'note: --device: env=ONEAPI_DEVICE_SELECTOR: the whole device stands for its sub-devices in "0.1"' in result.out, result)
    result = probe.run(GPUHAL_DEVICES="env=ONEAPI_DEVICE_SELECTOR", ONEAPI_DEVICE_SELECTOR="level_zero:gpu:0")
    check(result.code == 2 and "too many colons" in result.err and not result.out, result)
    result = probe.run("--device", "env=CUDA_VISIBLE_DEVICES", CUDA_VISIBLE_DEVICES="-1,0")
    check(result.code == 5 and 'CUDA ends the list at "-1": it is negative, and "0" does not count' in result.err, result)


def a_selector_of_gpus_that_finds_only_software_says_so(probe):
    probe.use_drivers()
    for options, settings in ((["--device", "gpu"], {}), ([], {"GPUHAL_DEVICES": "gpu"})):
        result = probe.run(*options, **settings)
        check(result.code == 5 and re.search(r': no device matches "gpu"; ignored: [a-z]+:0(, [a-z]+:[0-9]+)* \(software drivers? on the CPU; select (it|them) by name\)', result.err), result)


def a_device_that_is_lost_when_its_values_are_read_answers_4_and_is_named(probe):
    calls = ("nvmlDeviceGetHandleByUUID", "nvmlDeviceGetHandleByPciBusId_v2")
    settings = fake_cuda("devices 2;" + ";".join(f"fail {call} 1+ 15" for call in calls)) | {"GPUHAL_BACKENDS": "cuda"}
    words = "the device is lost: NVML returned NVML_ERROR_GPU_IS_LOST (15): the GPU has fallen off the bus"
    table = probe.run(**settings)
    check(table.code == 4 and ": 0 of 2 GPUs ready" in table.out and re.search("^! cuda:1 .* LOST ", table.out, re.M), table)
    check(f"cuda:0, cuda:1 (2): {words}" in " ".join(table.out.split()), table)
    document, result = probe.json(**settings)
    check(result.code == 4 and [problem["code"] for problem in document["problems"]] == ["lost", "lost"], document["problems"], result)
    for options in (("--format", "gres"), ("--format", "csv"), ("--device", "cuda:1")):
        check(probe.run(*options, **settings).code == 4, options)
    check(probe.run("--explain", "cuda:1", **settings).code == 4 and probe.run("--cached", **settings).code == 0)
    check("\n* cpu:0 " in table.out and "* default device: cpu:0, the best of the others: cuda:0 is lost" in table.out, table)
    check(document["chosen"]["id"] == "cpu:0" and probe.json("--device", "cuda", **settings)[0]["chosen"]["id"] is None, document["chosen"])
    settings = fake_cuda("devices 1; mig 0 7 0 1g.10gb 128M;" + ";".join(f"fail {call} 1+ 15" for call in calls)) | {"GPUHAL_BACKENDS": "cuda"}
    table = probe.run(**settings)
    check(table.code == 4 and re.search("^! cuda:0 .* LOST ", table.out, re.M), table)


def the_default_device_is_none_that_the_same_run_finds_lost(probe):
    root = machine_with(("0000:11:00.0", "0x10de", "0x2330", "nvidia"), ("0000:21:00.0", "0x10de", "0x2330", "nvidia"))
    with open(os.path.join(root.name, "sys/devices/pci0000:00/0000:11:00.0/config"), "wb") as config:
        config.write(b"\xff" * 64)
    settings = fake_cuda("devices 2") | {"GPUHAL_BACKENDS": "cuda", "GPUHAL_SYSTEM_ROOT": root.name}
    result = probe.run(**settings)
    check(rows_of(result) == [("!", "cuda:0"), ("*", "cuda:1")] and "1 of 2 GPUs ready" in result.out, result)
    document, result = probe.json(**settings)
    check(document["chosen"] == {"id": "cuda:1", "reason": "the best of the others: cuda:0 is lost"}, document["chosen"])
    document, result = probe.json("--device", "cuda:0", **settings)
    check(result.code == 4 and [problem["code"] for problem in document["problems"]] == ["off_bus"], document["problems"], result)
    check(probe.run("--device", "cuda:1", **settings).code == 0)


def a_crashing_plugin_answers_4_and_the_others_are_listed(probe):
    result = probe.run(plugins=("crashing",))
    check(result.code == 4 and "cpu:0" in result.out, result)


def a_plugin_of_another_abi_is_partial_and_one_of_another_platform_is_not(probe):
    for line, code in (("abi = 0.9\nplatforms = linux", 4), ("abi = 0.3\nplatforms = windows", 0)):
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "other.gpuhal"), "w", encoding="utf-8") as manifest:
                manifest.write(f"[plugin]\nname = other\nlibrary = other.so\n{line}\n")
            document, result = probe.json(GPUHAL_PLUGIN_PATH=directory)
        check(states(document)["other"] == "incompatible" and result.code == code, result)
        check(("plugin other: " in result.err) == (code == 4), result)


def a_hanging_plugin_answers_4_after_the_timeout(probe):
    begin = time.monotonic()
    document, result = probe.json("--timeout", "2", plugins=("hanging",))
    check(states(document)["hanging"] == "timed_out" and states(document)["cpu"] == "ok", result)
    check(result.code == 4 and "driver hung" in result.err, result)
    check(time.monotonic() - begin < 40, time.monotonic() - begin)


def a_device_that_moves_bytes_wrong_answers_4(probe):
    document, result = probe.json("--verify", plugins=("wrong",))
    device = by_id(document)["wrong:0"]
    check(result.code == 4 and device["verified"] is False and device["verify_error"], result)
    check("wrong:0 failed verification: " in result.err, result)
    check(by_id(document)["cpu:0"]["verified"] is True, result)
    human = probe.run("--verify", plugins=("wrong",))
    check(human.code == 4, human)
    row = next(line for line in human.out.splitlines() if "wrong:0 " in line)
    check(row.startswith("! wrong:0 ") and row.endswith("✗") and "VERIFICATION FAILED" in row, human)
    check("! wrong:0 failed verification: " in human.out and "next:  gpuhal-probe --verify --device wrong:0" in human.out, human)
    check(document["chosen"]["id"] == "cpu:0" and "wrong:0 failed" in document["chosen"]["reason"], document["chosen"])
    check(document["problems"][0]["code"] == "verify_failed" and document["status"] == "partial", document["problems"])


def a_driver_that_crashes_when_it_is_verified_costs_its_device_only(probe):
    document, result = probe.json("--verify", plugins=("dying",))
    check(by_id(document)["dying:0"]["verify_error"].startswith("the driver crashed: signal 11"), result)
    check(by_id(document)["cpu:0"]["verified"] is True and result.code == 4, result)


def a_driver_that_hangs_when_it_is_verified_costs_its_device_only(probe):
    document, result = probe.json("--verify", "--timeout", "4", plugins=("stuck",))
    check("did not finish within" in by_id(document)["stuck:0"]["verify_error"], result)
    check(by_id(document)["cpu:0"]["verified"] is True and result.code == 4, result)


def a_selected_device_without_permission_answers_6(probe):
    result = probe.run("--device", "refused:0", plugins=("refused",))
    check(result.code == 6 and result.out == "", result)
    check("/dev/odd0 may not be opened" in result.err and result.err.count("refused: ") == 1, result)
    result = probe.run("--device", "locked:0", "--verify", plugins=("locked",))
    check(result.code == 6 and "/dev/odd0 may not be opened" in result.out, result)


def a_refused_plugin_answers_4_unless_other_devices_are_selected(probe):
    result = probe.run(plugins=("refused",))
    check(result.code == 4 and "! plugin refused: " in result.out and "/dev/odd0 may not be opened" in result.out, result)
    document, result = probe.json(plugins=("refused",))
    check(result.code == 4 and document["problems"][0]["code"] == "plugin_no_permission", result)
    check(probe.run("--device", "cpu", plugins=("refused",)).code == 0)


def advised_commands_exist_and_none_leads_back_to_one_that_was_followed(probe):
    with tempfile.TemporaryDirectory() as place:
        def follow(run, *options, **more):
            followed = []
            while True:
                result = run(*options, **more)
                check(result.code not in (2, 5), options, result)
                advised = re.search(r"^ +next:? +gpuhal-probe( .+)?$", result.out, re.M)
                if not advised:
                    return followed
                words = shlex.split(advised[1] or "")
                check(words not in followed and words != list(options), followed, result)
                followed.append(words)
                options = [f"{place}/{len(os.listdir(place))}" if word == "report.txt" else word for word in words]

        with tempfile.TemporaryDirectory() as record:
            steps = [[step[0] for step in follow(probe.run, plugins=("crashing",), GPUHAL_REGISTRY=record)] for _ in range(2)]
        check(steps == [["--explain"], ["--retry", "--report"]], steps)
        check([step[0] for step in follow(probe.run, "--verify", plugins=("wrong",))] == ["--verify", "--report"])
        check(follow(probe.run, plugins=("refused",)) == [["--explain", "refused"]])
        for machine in ("h100-8-driver-crashes", "cuda-lists-none", "container-without-nodes"):
            run = on_recorded(machine)
            check(follow(run) == [] and len(follow(run)) < 2, machine)
        own = os.path.join(os.path.dirname(probe.program), "../lib")
        os.makedirs(f"{place}/lib/gpuhal")
        for name in filter(re.compile(r"libgpuhal\.so").match, os.listdir(own)):
            shutil.copy(os.path.join(own, name), f"{place}/lib/{name}")
        for name in os.listdir(f"{own}/gpuhal"):
            if "cuda" not in name:
                os.symlink(os.path.realpath(f"{own}/gpuhal/{name}"), f"{place}/lib/gpuhal/{name}")
        result = on_recorded("nvidia-mig")(LD_LIBRARY_PATH=f"{place}/lib")
        check("plugin for CUDA is not installed (package gpuhal-plugin-cuda)" in result.out and "next:  ls " in result.out, result)
        explained = probe.run("--strict", "--explain")
        check(explained.code == 3 and "--explain says" not in explained.err and "--explain says" in probe.run("--strict").err, explained)


def hardware_that_nothing_drives_answers_by_its_grade(probe):
    with machine_with(("0000:01:00.0", "0x10de", "0x2684", "nouveau")) as root:
        for options in ((), ("--strict",)):
            document, result = probe.json(*options, GPUHAL_SYSTEM_ROOT=root)
            grades = {problem["grade"] for problem in document["problems"]}
            worst = "problem" in grades or (bool(options) and "note" in grades)
            check(grades and result.code == (4 if worst else 0) and document["status"] == ("partial" if worst else "complete"), result)


def output_that_cannot_be_written_answers_1(probe):
    with open("/dev/full", "wb") as full:
        for options in ([], ["--json"], ["--help"], ["--registry"], ["--registry", "--json"]):
            done = subprocess.run([probe.program, *options], env=probe.environment((), {}), stdout=full, stderr=subprocess.PIPE,
                                  timeout=DEADLINE)
            check(done.returncode == 1 and b"standard output cannot be written: No space left" in done.stderr, options, done)


def a_closed_pipe_answers_1(probe):
    for options in ([], ["--json"], ["--help"]):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([probe.program, *options], env=probe.environment((), {}), stdout=writer, stderr=subprocess.PIPE,
                              timeout=DEADLINE, restore_signals=True)
        os.close(writer)
        check(done.returncode == 1 and b"Broken pipe" in done.stderr, options, done)


def a_closed_standard_output_answers_1(probe):
    done = subprocess.run(["/bin/sh", "-c", 'exec "$0" --json >&-', probe.program], env=probe.environment((), {}),
                          stderr=subprocess.PIPE, timeout=DEADLINE)
    check(done.returncode == 1 and b"Bad file descriptor" in done.stderr, done)


if __name__ == "__main__":
    main(globals())
