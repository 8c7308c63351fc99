#!/usr/bin/env python3
"""Tests the output of gpuhal-probe --json. See probe_support.py."""

import json
import os
import re

from probe_formats_test import Tree
from probe_support import by_id, changed, check, complaints, fake_cuda, machine_with, main, on_recorded, places, spoilings, states, validator


def cpu_and_opencl_devices_are_listed_and_verified(probe):
    probe.use_drivers()
    document, result = probe.json("--verify", "--all")
    check(states(document).get("opencl") == "ok", "OpenCL with PoCL is needed here", result)
    devices = by_id(document)
    check({"cpu:0", "opencl:0", "opencl:1"} <= set(devices), result)
    for device in devices.values():
        check(device["verified"] is True and device["verify_error"] is None, device)
    check(result.code == 0, result)
    check(not complaints(probe, document), complaints(probe, document))


def the_document_follows_the_schema_with_every_option(probe):
    probe.use_drivers()
    every = ["--verify", "--explain", "--timings", "--env", "--all", "--links", "--device", "cpu:0,opencl:0"]
    for options in ([], every, ["--links", "--cached"], ["--device", "cpu", "--strict"],
                    ["--backends", "cpu"]):
        document, result = probe.json(*options)
        check(not complaints(probe, document), options, complaints(probe, document), result)


def the_document_follows_the_schema_when_plugins_misbehave(probe):
    plugins = ("crashing", "refused", "locked", "dying", "wrong", "longname", "twin_a", "twin_b")
    document, result = probe.json("--verify", plugins=plugins)
    check(not complaints(probe, document), complaints(probe, document), result)
    check(set(plugins) <= set(states(document)), states(document))


def a_changed_document_does_not_pass_the_schema(probe):
    with machine_with(("0000:01:00.0", "0x10de", "0x2684", "")) as root:
        document, _ = probe.json("--verify", "--env", "--links", plugins=("twin_a", "twin_b"), GPUHAL_SYSTEM_ROOT=root)
    check(document["hardware"] and document["problems"], document["hardware"])
    check(not complaints(probe, document), complaints(probe, document))
    # One entry of each kind suffices.
    document["links"] = document["links"][:1]
    document["environment"] = document["environment"][:2]
    document["devices"] = [device for device in document["devices"] if device["id"] in ("cpu:0", "twin_a:0")]
    document["plugins"] = list({plugin["state"]: plugin for plugin in document["plugins"]}.values())
    document["physical_devices"] = [one for one in document["physical_devices"] if "twin_a:0" in one["interfaces"]]
    check(not complaints(probe, document), complaints(probe, document))
    evidence = ("physical_devices", 0, "evidence", 0)
    passes = validator(probe.schema_path).is_valid

    passed = []
    check(all(passes(changed(document, path, lambda at: None)) for path in {path for path, _ in places(document)}), "it is the change that does not pass")
    for path, key, what, change in spoilings(document):
        if (path[-1:] != ("missing",) or what == "of a wrong type") and passes(changed(document, path, change)):
            passed.append((path, key, what))
    for path, key, value in (((), "schema", "gpuhal.probe/3"), (("devices", 0), "type", "toaster"), (("devices", 0), "id", "cpu"),
                             (("devices", 0), "uuid", "GPU-1"), (("devices", 0), "verified", False), (("plugins", 0), "state", "fine"),
                             (("devices", 0), "memory_total_bytes", -1), (("devices", 0), "capabilities", ["fly"]), ((), "status", "fine"), (("problems", 0), "grade", "fine"),
                             (("hardware", 0), "state", "broken"), (("hardware", 0), "vendor_id", 4318), ((), "generated_at", "today"),
                             (evidence[:2], "interfaces", []), (evidence[:2], "interfaces", ["twin_a:0", "twin_a:0"]), (evidence[:2], "interfaces", ["gpu"]),
                             (evidence[:2], "pci_address", "c1:00.0"), (evidence[:2], "uuid", ""), (evidence[:2], "number", -1),
                             (("links", 0), "kind", "wire"), (("links", 0), "path", "native"), (("links", 0), "verified", False),
                             (("links", 0), "from", "cpu"), (("links", 0), "peer_advertised", 1),
                             (evidence, "same", 1), (evidence, "matched_by", "name"), (evidence, "value", None), (evidence, "sentence", ""),
                             (evidence, "device", "vulkan"), (evidence, "matched_by", "host_processor")):
        if passes(changed(document, path, lambda at: at.update({key: value}))):
            passed.append((path, key, value))
    check(not passed, "the schema lets these through:", *passed)


def what_is_unknown_is_null_and_where_a_value_is_expected_with_a_reason(probe):
    document, result = probe.json(plugins=("wrong",))
    for device in document["devices"]:
        nulls = {k for k, v in device.items() if v is None} | {k for k, v in device["facts"].items() if v is None}
        check(set(device["missing"]) <= nulls, device["id"], set(device["missing"]) - nulls)
        check(not any(reason.startswith("not supported") for reason in device["missing"].values()), device["missing"])
    odd = by_id(document)["wrong:0"]
    check(odd["missing"]["numa_node"] == "no permission: sysfs is not mounted", odd["missing"])
    check(odd["uuid"] is None and "uuid" not in odd["missing"], odd["missing"])
    check(odd["memory_total_bytes"] == 24 << 30 and odd["vendor"] == "Odd", odd)


def sets_of_bits_are_words_and_flags_are_booleans(probe):
    document, result = probe.json("--backends", "cuda", **fake_cuda("devices 1"))
    device = by_id(document)["cuda:0"]
    facts = device["facts"]
    check(facts["memory_kinds"] == ["device", "upload", "readback", "migrating"] and facts["export_kinds"] == ["opaque_fd"], facts)
    check(facts["unified_memory"] is False and facts["pageable_access"] == "staged" and "fp16" in facts["data_types"], facts)
    check(device["telemetry"]["throttle_reasons"]["value"] == ["power_cap"], device["telemetry"])
    check(device["api_version"] == "CUDA 13.0" and device["compute_capability"] == "9.0" and device["target_architecture"] == "sm_90", device)


def telemetry_has_a_value_with_its_source_or_a_reason(probe):
    document, result = probe.json("--backends", "cuda", **fake_cuda("devices 1; memory * 8G; used 0 3G"))
    telemetry = by_id(document)["cuda:0"]["telemetry"]
    check(telemetry["temperature_millicelsius"]["value"] == 41000 and telemetry["temperature_millicelsius"]["source"], telemetry)
    check(0 < telemetry["memory_free_bytes"]["value"] < 8 << 30, telemetry)
    check(telemetry["memory_used_bytes"]["value"] >= 3 << 30 and telemetry["fan_permille"] is None, telemetry)
    document, result = probe.json("--backends", "cuda", "--cached", **fake_cuda("devices 1"))
    check(by_id(document)["cuda:0"]["telemetry"] is None, result)


def a_partition_of_a_gpu_has_profile_and_uuid(probe):
    document, result = probe.json("--backends", "cuda", **fake_cuda("devices 1; mig 0 3 0 1g.10gb 1G"))
    device = by_id(document)["cuda:0"]
    check(device["mig"] == {"profile": "1g.10gb", "uuid": device["uuid"], "numbers": "3/0"}, device["mig"])
    document, result = probe.json("--backends", "cuda", **fake_cuda("devices 1"))
    check(by_id(document)["cuda:0"]["mig"] is None, result)


def hardware_without_a_driver_is_in_the_document_with_cause_and_command(probe):
    with machine_with(("0000:01:00.0", "0x10de", "0x2684", "")) as root:
        document, result = probe.json(GPUHAL_SYSTEM_ROOT=root)
    check(not complaints(probe, document), complaints(probe, document))
    one = document["hardware"][0]
    check(one["pci_address"] == "0000:01:00.0" and one["state"] == "no_kernel_driver" and one["vendor_id"] == "10de", one)
    check(one["cpu_affinity"] == "0-3" and one["numa_node"] == 0 and one["kernel_driver"] is None, one)
    problem = document["problems"][0]
    check(problem["hardware"] == "0000:01:00.0" and problem["code"] == "no_kernel_driver" and problem["sentence"] and problem["fix"], problem)
    check((document["status"] == "partial") == (result.code == 4) and problem["grade"] == one["grade"], result)


def the_former_document_is_printed_on_request(probe):
    former = os.path.join(os.path.dirname(probe.schema_path), "gpuhal.probe-1.schema.json")
    for options in ((), ("--verify", "--env", "--links", "--cached", "--device", "cpu:0,wrong:0")):
        result = probe.run("--json=1", *options, plugins=("wrong", "crashing", "own_numbers"))
        document = json.loads(result.out)
        wrong = [f"{list(error.absolute_path)}: {error.message}" for error in validator(former).iter_errors(document)]
        check(document["schema"] == "gpuhal.probe/1" and not wrong, options, *wrong)


def keys_come_in_the_order_of_the_schema(probe):
    document, _ = probe.json("--env", "--links")
    schema = validator(probe.schema_path).schema

    def order(part):
        return list(part["properties"])
    check(list(document) == order(schema), list(document))
    definitions = schema["$defs"]
    for plugin in document["plugins"]:
        check(list(plugin) == order(definitions["plugin"]), list(plugin))
    for device in document["devices"]:
        check(list(device) == order(definitions["device"]), list(device))
        check(list(device["facts"]) == order(definitions["facts"]), list(device["facts"]))
        check(list(device["telemetry"]) == definitions["telemetry"]["required"], list(device["telemetry"]))
    check(list(document["host"]) == order(definitions["host"]), document["host"])
    for link in document["links"]:
        check(list(link) == order(definitions["link"]), list(link))
    for physical in document["physical_devices"]:
        check(list(physical) == order(definitions["physical_device"]), list(physical))
        for evidence in physical["evidence"]:
            check(list(evidence) == order(definitions["evidence"]), list(evidence))


def every_device_is_an_interface_of_the_physical_device_that_it_names(probe):
    probe.use_drivers()
    for options in ([], ["--device", "opencl:0,cpu"], ["--device", "cpu"]):
        document, result = probe.json(*options, plugins=("twin_a", "twin_b", "longname"))
        for physical in document["physical_devices"]:
            named = [d["id"] for d in document["devices"] if d["physical_device"] == physical["number"]]
            check(physical["interfaces"] == named, physical, named)
            check(len(physical["evidence"]) == len(named) - 1, physical)
            check(sum(d["preferred"] for d in document["devices"] if d["id"] in named) == 1, physical)
        listed = [one for physical in document["physical_devices"] for one in physical["interfaces"]]
        check(sorted(listed) == sorted(by_id(document)), listed)


def evidence_names_what_devices_were_matched_by(probe):
    probe.use_drivers()
    document, result = probe.json(plugins=("twin_a", "twin_b"))
    hardware = {one: physical for physical in document["physical_devices"] for one in physical["interfaces"]}
    check(hardware["twin_b:0"]["pci_address"] == "0000:c1:00.0" and hardware["twin_b:0"]["uuid"] is None, hardware["twin_b:0"])
    check(hardware["twin_b:0"]["evidence"] == [{
        "device": "twin_b:0", "other": "twin_a:0", "same": True, "matched_by": "pci_address", "value": "0000:c1:00.0",
        "sentence": "twin_b:0 and twin_a:0 state the same PCI address, 0000:c1:00.0"}], hardware["twin_b:0"])
    processor = hardware["cpu:0"]
    check({"opencl:0", "opencl:1"} < set(processor["interfaces"]) and processor["pci_address"] is None and processor["uuid"] is None, processor)
    for evidence in processor["evidence"]:
        check(evidence["same"] and evidence["other"] == "cpu:0" and evidence["value"] is None, evidence)
        check(evidence["matched_by"] == "host_processor" and "the host's processor" in evidence["sentence"], evidence)


def verify_tries_preferred_interfaces_and_with_all_every_interface(probe):
    plugins = ("twin_a", "twin_b")
    document, result = probe.json("--verify", plugins=plugins)
    for device in document["devices"]:
        check(device["verified"] is (True if device["preferred"] else None), device["id"], result)
        check(device["preferred"] or "--all" in device["missing"]["verified"], device["missing"])
    document, result = probe.json("--verify", "--all", plugins=plugins)
    check(all(device["verified"] is True for device in document["devices"]), result)


def free_memory_of_the_processor_is_known_without_opening(probe):
    document, result = probe.json("--device", "cpu:0")
    device = by_id(document)["cpu:0"]
    free = device["telemetry"]["memory_free_bytes"]
    check(isinstance(free["value"], int) and 0 < free["value"] <= device["memory_total_bytes"] and free["source"], free)


def what_a_driver_prints_does_not_get_between_the_data(probe):
    for isolation in ("always", "never"):
        document, result = probe.json("--verify", plugins=("chatty",), GPUHAL_ISOLATION=isolation)
        check(by_id(document)["chatty:0"]["verified"] is True, result)
        check("hello from standard output" in result.err, result)


def bytes_that_are_no_text_do_not_spoil_the_document(probe):
    document, result = probe.json("--env", "--backends", "cpu", GPUHAL_OPENCL_LIBRARY=b"/no/\xff\x1b[31m")
    check(not complaints(probe, document), complaints(probe, document))
    value = next(v["value"] for v in document["environment"] if v["name"] == "GPUHAL_OPENCL_LIBRARY")
    check(value == "/no/\ufffd\x1b[31m", repr(value))


def a_tegra_has_its_values_from_the_system(probe):
    load, zone = "sys/bus/platform/drivers/gk20a/17000000.gpu/load", "sys/class/thermal/thermal_zone1/"
    for files, busy, heat in (({}, 237, 47812), ({zone + "type": "GPU-therm\n", load: "1000\n"}, 1000, 47812), ({zone + "temp": "-256000\n"}, 237, "asleep"),
                              ({zone + "temp": "warm\n"}, 237, "failed"), ({zone + "temp": "-5000\n"}, 237, "failed"),
                              ({zone + "type": "cpu-thermal\n"}, 237, "not_supported"), ({load: "1001\n"}, "failed", 47812), ({load: "\n"}, "not_supported", 47812),
                              ({"sys/devices/platform/bus@0/17000000.gpu/power/runtime_status": "suspended\n"}, "asleep", "asleep")):
        run = on_recorded("jetson-orin", files)
        device = json.loads(run("--json").out)["devices"][0]
        values = [device["telemetry"][key] or {"reason": "not_supported"} for key in ("utilization_core_permille", "temperature_millicelsius")]
        found = [value["reason"].split(":")[0] if value.get("reason") else value["value"] for value in values]
        check(device["id"] == "cuda:0" and found == [busy, heat], files, found)
    os.unlink(os.path.join(run.environment["GPUHAL_SYSTEM_ROOT"], "sys/bus/platform/drivers/gk20a/17000000.gpu"))
    device = json.loads(run("--json").out)["devices"][0]
    check(device["id"] == "cuda:0" and not device["telemetry"]["utilization_core_permille"], "without its driver", device)


def no_interface_has_more_memory_available_than_in_all(probe):
    probe.use_drivers()
    document, result = probe.json()
    check(len(document["devices"]) > 1, result)
    for device in document["devices"]:
        available = device["telemetry"]["memory_available_bytes"]["value"]
        check(0 < available <= device["memory_total_bytes"], device["id"], available, device["memory_total_bytes"])
        for name in ("memory_free_bytes", "memory_used_bytes"):
            value = (device["telemetry"][name] or {}).get("value") or 0
            check(value <= device["memory_total_bytes"], device["id"], name, value, device["memory_total_bytes"])
    shown = probe.run("--all").out
    amounts = [tuple(map(float, found)) for found in re.findall(r" ([\d.]+) / ([\d.]+) ", shown)]
    check(amounts and all(used <= total for used, total in amounts), shown)


def available_memory_is_what_the_control_group_leaves_and_says_so(probe):
    tree = Tree()
    tree.gpu("0000:91:00.0", "10de:2330", "nvidia", nvidia=0)
    settings = fake_cuda("devices 1; memory 0 1G; pci 0 0000:91:00.0") | tree.settings()

    def available():
        document, result = probe.json("--backends", "cuda", **settings)
        check(not complaints(probe, document), result)
        return by_id(document)["cuda:0"]["telemetry"]["memory_available_bytes"]

    tree.put("proc/self/cgroup", "0::/jobs/17")
    check(available()["source"] != "cgroup", "the group has no limits")
    tree.put("sys/fs/cgroup/jobs/dmem.max", "drm/0000:91:00.0/vram0 300000000")
    tree.put("sys/fs/cgroup/jobs/dmem.current", "drm/0000:91:00.0/vram0 100000000")
    tree.put("sys/fs/cgroup/jobs/17/dmem.max", "drm/0000:91:00.0/vram0 max")
    check(available() == {"value": 200000000, "source": "cgroup"}, available())


if __name__ == "__main__":
    main(globals())
