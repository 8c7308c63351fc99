#!/usr/bin/env python3
"""Tests the exit statuses and error messages of gpuhal-probe. See probe_support.py."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
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
                                 "70717273-7475-7677-7879-7a7b7c7d7e7f"), 4, r"at 0000:df:00\.0: it was on the bus on .*; next: sudo dmesg"),
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
    check(gone.code == 4 and "it was on the bus on" in gone.err, gone)


def a_selector_of_a_vendors_variable_says_what_in_it_does_not_count(probe):
    settings = {"ONEAPI_DEVICE_SELECTOR": "native_cpu:0.1"}
    result = probe.run("--device", "env=ONEAPI_DEVICE_SELECTOR", "--explain", **settings)
    check(result.code == 0 and 'note: --device: env=ONEAPI_DEVICE_SELECTOR: the whole device stands for its sub-devices in "0.1"' in result.out, result)
    result = probe.run(GPUHAL_DEVICES="env=ONEAPI_DEVICE_SELECTOR", ONEAPI_DEVICE_SELECTOR="level_zero:gpu:0")
    check(result.code == 2 and "too many colons" in result.err and not result.out, result)
    result = probe.run("--device", "env=CUDA_VISIBLE_DEVICES", CUDA_VISIBLE_DEVICES="-1,0")
    check(result.code == 5 and 'CUDA ends the list at "-1": it is negative, and "0" is ignored' in result.err, result)


def a_selector_of_gpus_that_finds_only_software_says_so(probe):
    probe.use_drivers()
    for options, settings in ((["--device", "gpu"], {}), ([], {"GPUHAL_DEVICES": "gpu"})):
        result = probe.run(*options, **settings)
        check(result.code == 5 and re.search(r': no device matches "gpu"; ignored: [a-z]+:0(, [a-z]+:[0-9]+)* \(software drivers? on the CPU; select (it|them) by name\)', result.err), result)


def a_prohibited_gpu_is_no_default_and_can_be_named(probe):
    settings = fake_cuda("devices 2; mode 0 prohibited; memory * 1G") | {"GPUHAL_BACKENDS": "cpu,cuda"}
    result = probe.run(**settings)
    check(" prohibited " in result.out and "\n!" not in result.out and "\n  cuda:0: its compute mode is prohibited" in result.out and "1 of 2 GPUs ready" in result.out and "default device: cuda:1" in result.out, result)
    check("(the compute mode of cuda:0 is prohibited)" in " ".join(result.out.split()), result)
    check(rows_of(probe.run("--device", "cuda:0", **settings))[0][1] == "cuda:0")
    settings = fake_cuda("devices 1; mode 0 prohibited") | {"GPUHAL_BACKENDS": "cuda"}
    result = probe.run("--device", "gpu", **settings)
    check("0 of 1 GPU ready" in result.out and "default device: none" in result.out, result)


XID = "4,9,98123456789,-;NVRM: Xid (PCI:0000:c1:00): {}, pid='<unknown>', name=<unknown>, made up"


def errors_in_the_kernels_log_are_counted_and_those_of_programs_are_not(probe):
    lines = ["6,1,1,-;NVRM: loading", *(XID.format(number) for number in (13, 31, 43, 45, 68, 109))]
    for more, words, sentence in (
            ([], [], None), ([XID.format(79)], ["errors_logged"], "its driver logged 1 error since the machine started, the last one Xid 79"),
            ([XID.format(48), "4,1,1,-;NVRM: Xid (0000:c1:00): 64, x"], ["errors_logged"], "logged 2 errors since the machine started, the last one Xid 64"),
            ([XID.format(79).replace("c1", "c2"), XID.format("x"), XID.format(79)[:40], "NVRM: Xid (PCI:0000:c1:00", "NVRM: Xid ("], [], None),
            # from a program instead of the kernel; does not begin with NVRM
            (["12" + XID.format(79)[1:], "4,9,1,-;checked: NVRM: Xid (PCI:0000:c1:00): 79, x"], [], None),
            (["x" * 9000, XID.format(79)], ["errors_logged"], "Xid 79")):
        run = on_recorded("prohibited", {"dev/kmsg": "\n".join(lines + more) + "\n"})
        document = json.loads(run("--json").out)
        found = [problem["code"] for problem in document["problems"] if problem["code"] != "prohibited"]
        check(found == words, more, document["problems"])
        check(not sentence or sentence in " ".join(run().out.split()), run())


def a_kernels_log_of_100_mib_costs_a_bounded_time(probe):
    run = on_recorded("prohibited", {"dev/kmsg": (XID.format(79) + "\n") * (100 * 1024 * 1024 // 90)})
    usual = on_recorded("prohibited")
    usual(), run()
    took = []
    for one in (usual, run):
        start = time.monotonic()
        check(one().code == 0)
        took.append(time.monotonic() - start)
    check(took[1] < took[0] + 2, took)
    note = "only a part of the kernel's log was read (200 ms or 16 MiB)"
    for one, cut in ((usual, False), (run, True), (on_recorded("prohibited", {"dev/kmsg": XID.format(79) + "\n"}), False)):
        notes = json.loads(one("--json").out)["notes"]
        check(any(text.startswith(note) for text in notes) == cut and (note in one("--explain").out) == cut, notes)


def a_run_that_lasts_reads_of_the_kernels_log_what_is_new(probe):
    old, new = XID.format(79) + "\n", XID.format(48) + "\n"
    run = on_recorded("prohibited", {"dev/kmsg": "x" * (len(old) - 1) + "\n" + old})
    log = os.path.join(run.environment["GPUHAL_SYSTEM_ROOT"], "dev/kmsg")
    child = subprocess.Popen([sys.argv[2], "--watch=0.2"], env=run.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        def wait_for(count, last):
            sentence, begin = f"its driver logged {count} error{'' if count == 1 else 's'} since the machine started, the last one Xid {last}", time.monotonic()
            for line in child.stdout:
                found = [problem["sentence"] for problem in json.loads(line)["problems"] if problem["code"] == "errors_logged"]
                if any(sentence in one for one in found):
                    return
                check(time.monotonic() - begin < 30, sentence, found)
        wait_for(1, 79)
        with open(log, "r+", encoding="utf-8") as file:
            file.write(old)  # already read earlier
            file.seek(0, os.SEEK_END)
            file.write(new[:30])
        time.sleep(0.5)
        with open(log, "a", encoding="utf-8") as file:
            file.write(new[30:])  # the rest of a line; its beginning was read earlier
        wait_for(2, 48)
    finally:
        child.kill()
        child.communicate()


def what_values_say_of_the_health_of_a_gpu_is_a_sentence_and_a_reset_that_is_needed_an_error(probe):
    calls = ("nvmlDeviceGetTemperature", "nvmlDeviceGetPowerUsage")
    for script, code, words, sentence in (
            ("value 0 ecc_uncorrected 3", 0, ["ecc_uncorrected"], "cuda:0: 3 memory errors could not be corrected"),
            ("value 0 ecc_uncorrected 1; value 0 throttle 64", 0, ["ecc_uncorrected", "throttled_by_heat"], "1 memory error could not be corrected"),
            ("value 0 throttle 128", 0, ["throttled_by_power_brake"], "the power supply demands it"),
            ("value 0 throttle 4", 0, [], None),  # the device's power limit
            ("value 0 memory_repair 1", 0, ["repair_pending"], "its memory has errors, and a reset is needed to repair it"),
            ("value 0 memory_repair 2", 0, ["repair_failed"], "no spare rows are left"),
            ("value 0 memory_repair -1; value 0 pages_pending 1", 0, ["repair_pending"], "a reset is needed to repair it"),
            # NVML's maximum may exceed that of the slot
            ("value 0 pcie_width 4; value 0 pcie_generation 1", 0, [], None),
            ("mode 0 exclusive", 0, [], None),
            # in exclusive mode only compute processes make a device busy
            ("mode 0 exclusive; process 0 4242 1G draws", 0, [], None),
            ("process 0 4242 1G", 0, [], None),
            ("mode 0 exclusive; process 0 1 1G", 0, ["taken"], "cuda:0: its compute mode is exclusive, and process 1 has it: until that process ends, no other one can compute on it"),
            ("nvswitch 4 18", 0, [], None),
            ("nvswitch 4 18; value 0 link_replays 3; value 0 link_recoveries 1", 0, ["link_errors"], "cuda:0: its links to other GPUs (NVLink) had 4 errors"),
            ("value 0 link_replays 3", 0, [], None),  # on a GPU without links
            ("nvswitch 4 18; value 0 links_down 2", 0, [], None),  # no other GPU shows the expected number
            ("value 0 fabric 0", 0, [], None),
            ("value 0 fabric 1", 0, ["fabric_not_ready"], "cuda:0: the fabric manager has not set up the switches between it and other GPUs"),
            ("value 0 fabric 2", 0, ["fabric_not_ready"], "has not set up"),
            ("value 0 fabric 3; value 0 fabric_status 0", 0, [], None),
            ("value 0 fabric 3; value 0 fabric_status 999", 0, ["fabric_failed"], "cuda:0: the fabric manager could not set up the switches"),
            ("fail nvmlDeviceGetPowerUsage 1+ 15", 0, ["values_lost"], "cuda:0: its driver reports for some values that the GPU has fallen off the bus, but reports others"),
            ("fail nvmlDeviceGetPowerUsage 1+ 16", 4, ["reset_needed"], "cuda:0: the GPU needs a reset"),
            ("mode 0 prohibited", 0, ["prohibited"], "cuda:0: its compute mode is prohibited: no program may compute on it"),
            ("; ".join(f"fail {call} 1+ 16" for call in calls), 4, ["reset_needed"], "cuda:0: the GPU needs a reset, as its driver reports")):
        settings = fake_cuda(f"devices 1; {script}") | {"GPUHAL_BACKENDS": "cpu,cuda"}
        result = probe.run(**settings)
        check(result.code == code and (not sentence or sentence in " ".join(result.out.split())), script, result)
        check(bool(re.search("^! cuda:0 ", result.out, re.M)) == (words not in ([], ["prohibited"], ["taken"])), script, result)
        check(("RESET NEEDED" in result.out) == (code == 4), script, result)
        check(("default device: cuda:0" in result.out) == (code == 0 and not {"prohibited", "taken"} & set(words)), script, result)
        check((": 1 GPU ready" in result.out) == ("default device: cuda:0" in result.out), script, result)
        check(probe.run("--strict", **settings).code == (4 if words else 0), script)
        document, _ = probe.json(**settings)
        check([problem["code"] for problem in document["problems"]] == words, script, document["problems"])
        metrics = probe.run("--format", "openmetrics", **settings).out
        found = re.findall(r'^gpuhal_health_problem{.*reason="(\w+)"} 1$', metrics, re.M)
        check(found == words, script, metrics)


def fewer_gpus_than_are_expected_answer_4(probe):
    settings = fake_cuda("devices 2") | {"GPUHAL_BACKENDS": "cpu,cuda"}
    for count, code in ((1, 0), (2, 0), (3, 4)):
        result = probe.run("--expect", str(count), **settings)
        check(result.code == code and ("--expect 3: 2 GPUs are ready" in result.err) == (code == 4), result)
    result = probe.run("--expect", "1", GPUHAL_BACKENDS="cpu")
    check(result.code == 4 and "--expect 1: 0 GPUs are ready" in result.err, result)
    for value in ("0", "-1", "many", "1001", "1x", ""):
        check(probe.run(f"--expect={value}", **settings).code == 2, value)
    for other in ("--registry", "--cached"):
        result = probe.run("--expect", "1", other, **settings)
        check(result.code == 2 and f"--expect has no effect beside {other}" in result.err, result)


def a_gpu_that_answers_reset_required_to_everything_and_hangs_costs_its_values_in_time(probe):
    """If any one NVML call fails, the GPU must still be listed, and each missing value must have a reason."""
    run = on_recorded("reset-required")
    for call, code, codes in ((1, 0, ["values_timed_out"]), (3, 0, ["values_timed_out"]), (10, 4, ["reset_needed", "values_timed_out"]),
                              (25, 4, ["reset_needed", "values_timed_out"])):
        start = time.monotonic()
        result = run("--json", FAKE_CUDA=f"hang nvml* {call}\nfail nvmlDevice* 1+ 16\n{run.environment['FAKE_CUDA']}")
        document = json.loads(result.out)
        check(time.monotonic() - start < 20, call, time.monotonic() - start)
        check([device["id"] for device in document["devices"]] == ["cuda:0", "cpu:0"], call, result)
        values = next(device for device in document["devices"] if device["id"] == "cuda:0")["telemetry"]
        check(all(value is None or value["value"] is not None or value["reason"] for value in values.values()), call, values)
        check(values["pcie_width"]["value"] == 16, call, "what the kernel's files have is there", values)
        check(result.code == code and [problem["code"] for problem in document["problems"]] == codes, call, result)


def links_that_are_down_are_those_that_an_equal_gpu_has(probe):
    for script, words, sentence in (
            ("nvswitch 4 18; value 1 links_down 2", ["cuda:1"], "cuda:1: only 16 of its 18 links to other GPUs (NVLink) are up"),
            ("nvswitch 4 18; value * links_down 2", [], None),
            ("nvswitch 4 18; value 1 links_down 2; name 1 Fake H200", [], None),
            ("link 0 1 nvlink 4 4; value 0 links_down 1", ["cuda:0"], "cuda:0: only 3 of its 4 links to other GPUs (NVLink) are up"),
            ("link 0 1 nvlink 4 4; fail nvmlDeviceGetNvLinkState 1+ 999", [], None),
            ("devices 3; link 0 1 nvlink 4 4", [], None)):  # the third GPU has no bridge
        settings = fake_cuda(script if script.startswith("devices") else f"devices 2; {script}") | {"GPUHAL_BACKENDS": "cpu,cuda"}
        document, result = probe.json(**settings)
        check([problem["hardware"] for problem in document["problems"] if problem["code"] == "links_down"] == words and result.code == 0, script, result)
        check(not sentence or sentence in " ".join(probe.run(**settings).out.split()), script)


def a_gpu_that_one_process_has_alone_is_not_ready_for_another(probe):
    settings = fake_cuda("devices 2; mode * exclusive; memory * 1G; process 0 1 1G") | {"GPUHAL_BACKENDS": "cpu,cuda"}
    result = probe.run(**settings)
    check(result.code == 0 and "1 of 2 GPUs ready" in result.out and "default device: cuda:1, since cuda:0 is taken by another process" in
          " ".join(result.out.split()), result)
    check(probe.json(**settings)[0]["chosen"]["id"] == "cuda:1")
    check([probe.run("--check", "healthy", "--expect", str(count), **settings).code for count in (1, 2, 3)] == [0, 0, 4], "a GPU that is taken works")
    check("and process 1 has it: until that process ends" in result.out and "sudo nvidia-smi -c DEFAULT" in result.out and
          "--processes\n" not in result.out, result)
    result = probe.run("--processes", "--device", "cuda:0", **settings)
    check(result.code == 0 and "default device: none: cuda:0 is taken by another process" in " ".join(result.out.split()), result)


def a_gpu_that_this_process_verified_is_not_taken_by_what_another_pid_namespace_numbers(probe):
    """gpuhal-probe has the device open while it probes it. A driver in a container may list gpuhal-probe by its PID on
    the host."""
    settings = fake_cuda("devices 1; mode 0 exclusive; memory * 1G; process 0 4194305 1G") | {"GPUHAL_BACKENDS": "cpu,cuda", "GPUHAL_ISOLATION": "never"}
    check(": 1 GPU ready" in probe.run("--verify", **settings).out and ": 0 of 1 GPU ready" in probe.run(**settings).out)


def exclusive_gpus_whose_driver_hangs_cost_the_time_of_timeout_and_not_some_for_each(probe):
    """Only process lists require the function that hangs, and this format does not list processes."""
    settings = fake_cuda("devices 8; mode * exclusive; memory * 1G; hang nvmlDeviceGetProcessUtilization 1+") | {"GPUHAL_BACKENDS": "cpu,cuda"}
    runs = []
    for _ in range(5): # on a busy machine even a working driver may exceed --timeout
        begin = time.monotonic()
        runs.append((probe.run("--format", "gres", "--timeout", "1", **settings).code, time.monotonic() - begin))
        if runs[-1][0] == 0 and runs[-1][1] < 2:
            return
    check(False, "no run of five ended with 0 in the time of two devices", runs)


def a_gpu_that_the_multi_process_service_has_takes_others_in(probe):
    with tempfile.TemporaryDirectory() as folder:
        server = os.path.join(folder, "nvidia-cuda-mps-server")
        shutil.copy(shutil.which("sleep"), server)
        with subprocess.Popen((server, str(DEADLINE))) as running:
            settings = fake_cuda(f"devices 1; mode 0 exclusive; memory * 1G; process 0 {running.pid} 1G") | {"GPUHAL_BACKENDS": "cpu,cuda"}
            result = probe.run(**settings)
            running.kill()
    check(result.code == 0 and "1 GPU ready" in result.out and "default device: cuda:0" in result.out and "nvidia-cuda-mps" in result.out, result)


def a_device_that_is_lost_when_its_values_are_read_answers_4_and_is_named(probe):
    calls = ("nvmlDeviceGetHandleByUUID", "nvmlDeviceGetHandleByPciBusId_v2")
    settings = fake_cuda("devices 2;" + ";".join(f"fail {call} 1+ 15" for call in calls)) | {"GPUHAL_BACKENDS": "cuda"}
    words = "the device is lost: NVML returned NVML_ERROR_GPU_IS_LOST (15): the GPU has fallen off the bus"
    table = probe.run(**settings)
    check(table.code == 4 and ": 0 of 2 GPUs ready" in table.out and re.search("^! cuda:1 .* LOST ", table.out, re.M), table)
    check(f"cuda:0, cuda:1: {words}" in " ".join(table.out.split()), table)
    document, result = probe.json(**settings)
    check(result.code == 4 and [problem["code"] for problem in document["problems"]] == ["lost", "lost"], document["problems"], result)
    for options in (("--format", "gres"), ("--format", "csv"), ("--device", "cuda:1")):
        check(probe.run(*options, **settings).code == 4, options)
    check(probe.run("--explain", "cuda:1", **settings).code == 4 and probe.run("--cached", **settings).code == 0)
    check("\n* cpu:0 " in table.out and "* = default device: cpu:0, no usable GPU: cuda:0 is lost" in table.out, table)
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
    check(document["chosen"] == {"id": "cuda:1", "reason": "since cuda:0 is lost"}, document["chosen"])
    document, result = probe.json("--device", "cuda:0", **settings)
    check(result.code == 4 and [problem["code"] for problem in document["problems"]] == ["off_bus"], document["problems"], result)
    check(probe.run("--device", "cuda:1", **settings).code == 0)


def a_default_device_whose_driver_has_died_since_it_was_listed_is_not_said_to_work(probe):
    with tempfile.TemporaryDirectory() as record:
        settings = {"GPUHAL_BACKENDS": "cuda", "GPUHAL_REGISTRY": os.path.join(record, "registry"), "GPUHAL_SYSTEM_ROOT": "/nowhere"}
        well = probe.run(**fake_cuda("devices 1"), **settings)
        check("* = default device: cuda:0, first working backend (cuda)" in well.out, well)
        for options in ((), ("--links",)):
            died = probe.run(*options, **fake_cuda("devices 1; init 304"), **settings)
            check(died.code == 4 and rows_of(died) == [("*", "cpu:0")] and "default device: cpu:0, no usable GPU" in died.out, died)
            check("! plugin cuda: " in died.out and "first working backend" not in died.out, died)


def a_default_device_without_any_value_is_not_said_to_work(probe):
    result = probe.run(GPUHAL_PLUGIN_PATH=os.path.join(os.path.dirname(probe.odd), "plugins/good_sample_fails"))
    check("* = default device: good_sample_fails:0, which is listed, but has no value that could be read" in " ".join(result.out.split()), result)


def a_second_list_has_the_rest_of_the_time_only(probe):
    folders = (os.path.join(os.path.dirname(probe.odd), "plugins/good_sample_fails"), os.path.join(probe.odd, "hanging"))
    begin = time.monotonic()
    result = probe.run("--timeout", "6", GPUHAL_PLUGIN_PATH=":".join(folders))
    took = time.monotonic() - begin
    check("* = default device: good_sample_fails:0, which is listed" in result.out and "! plugin hanging: " in result.out, result)
    check(took < 11, took)


def a_manifest_that_an_update_left_behind_is_named(probe):
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(probe.odd, "longname/gpuhal-longname.so")
        for name in ("longname-old", "longname"):
            shutil.copy(library, os.path.join(folder, f"{name}.so"))
            with open(os.path.join(folder, f"{name}.gpuhal"), "w", encoding="ascii") as manifest:
                manifest.write(f"[plugin]\nname = longname\nlibrary = {name}.so\nabi = 0.4\n")
        result = probe.run(GPUHAL_PLUGIN_PATH=folder)
        line = " ".join(result.out.split())
        check(result.code == 4 and "! plugin longname: a plugin named longname was found earlier: " in line, result)
        check("longname-old.gpuhal before longname.gpuhal: remove one of the two" in line, result)


def a_crashing_plugin_answers_4_and_the_others_are_listed(probe):
    result = probe.run(plugins=("crashing",))
    check(result.code == 4 and "cpu:0" in result.out, result)


def a_plugin_of_another_abi_is_partial_and_one_of_another_platform_is_not(probe):
    for line, code in (("abi = 0.9\nplatforms = linux", 4), ("abi = 0.4\nplatforms = windows", 0)):
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


def system_files_that_are_no_files_cost_values_and_not_the_program(probe):
    """Replaces each file of a recorded machine and of the host by a pipe without a writer, then by a device that never
    ends."""
    for machine in ("h100-8", "mi300x-partitions", "nvidia-mig"):
        run = on_recorded(machine)
        for endless in (False, True):
            for options in (("--all",), ("--format", "gres"), ("--links",)):
                result = run(*options, spoiled=endless)
                check(result.code in (0, 3, 4) and result.out, machine, endless, options, result)


if __name__ == "__main__":
    main(globals())
