#!/usr/bin/env python3
"""gpuhal-probe as its users see it. One test a run: probe_test.py TEST PROGRAM ODD_PLUGINS SCHEMA; 77 means skipped."""

import copy
import fcntl
import functools
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unicodedata

DEADLINE = 100  # seconds for one run; the tests have a little more
SETTINGS = ("GPUHAL_", "POCL_DEVICES", "NO_COLOR", "COLUMNS", "TERM", "LC_", "LANG")


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Probe:
    """Runs the program. Starting the drivers of this machine takes long, so only tests that look at them have them: `use_drivers()`."""

    def __init__(self, program, odd, schema):
        self.program, self.odd, self.schema_path, self.drivers = program, odd, schema, False

    def use_drivers(self):
        self.drivers = True

    def environment(self, plugins, settings):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(SETTINGS)}
        kept |= {"LC_ALL": "C.UTF-8", "TERM": "xterm", "POCL_DEVICES": "pthread basic", "GPUHAL_REGISTRY": "none"}
        if not self.drivers:
            kept["GPUHAL_BACKENDS"] = "-cuda,-rocm,-vulkan,-opencl"
        if plugins:
            kept["GPUHAL_PLUGIN_PATH"] = ":".join(os.path.join(self.odd, name) for name in plugins)
        return kept | settings

    def run(self, *options, plugins=(), **settings):
        done = subprocess.run([self.program, *options], env=self.environment(plugins, settings), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=DEADLINE)
        return Result(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))

    def json(self, *options, **settings):
        result = self.run("--json", *options, **settings)
        try:
            return json.loads(result.out), result
        except json.JSONDecodeError as error:
            raise AssertionError(f"no JSON: {error}\n{result}") from None

    def on_terminal(self, *options, columns=80, plugins=(), **settings):
        """Output and messages go to one terminal, as at a desk."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        child = subprocess.Popen([self.program, *options], env=self.environment(plugins, settings), stdin=slave, stdout=slave,
                                 stderr=slave)
        os.close(slave)
        text, end = b"", time.monotonic() + DEADLINE
        while time.monotonic() < end:
            if select.select([master], [], [], 0.2)[0]:
                try:
                    block = os.read(master, 65536)
                except OSError:  # Linux: the other side has closed
                    break
                if not block:
                    break
                text += block
        os.close(master)
        return Result(child.wait(timeout=5), text.decode("utf-8"), "")


def screen_lines(text):
    """The lines that a terminal shows in the end: colours gone, wiped progress gone."""
    lines = []
    for line in text.replace("\r\n", "\n").split("\n"):
        shown = ""
        for piece in line.split("\r"):
            shown = piece[3:] if piece.startswith("\033[K") else piece or shown
        lines.append(re.sub(r"\033\[[0-9;]*m", "", shown))
    return lines


def columns_of(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def check(condition, *shown):
    if not condition:
        raise AssertionError("\n".join(str(one) for one in shown))


def by_id(document):
    return {device["id"]: device for device in document["devices"]}


def states(document):
    return {plugin["name"]: plugin["state"] for plugin in document["plugins"]}


@functools.lru_cache(maxsize=None)
def validator(schema_path):
    try:
        import jsonschema
    except ImportError:
        print("skipped: python3-jsonschema is not installed")
        sys.exit(77)
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def complaints(probe, document):
    return [f"{list(error.absolute_path)}: {error.message}" for error in validator(probe.schema_path).iter_errors(document)]


def places(value, path=()):
    """Where a member is, and its name, of every object in the document."""
    if isinstance(value, dict):
        for key in value:
            yield path, key
            yield from places(value[key], path + (key,))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, path + (index,))


def spoilings(key):
    return (("removed", lambda at: at.pop(key)), ("of a wrong type", lambda at: at.update({key: [1.5]})),
            ("renamed", lambda at: at.update({key + " x": at.pop(key)})))


def changed(document, path, change):
    other = copy.deepcopy(document)
    at = other
    for step in path:
        at = at[step]
    change(at)
    return other


# ---------------------------------------------------------------------------------------------- JSON

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
    for options in ([], ["--verify", "--explain", "--timings", "--env", "--all", "--links"], ["--links"], ["--device", "cpu"], ["--backends", "cpu"]):
        document, result = probe.json(*options)
        check(not complaints(probe, document), options, complaints(probe, document), result)


def the_document_follows_the_schema_when_plugins_misbehave(probe):
    plugins = ("crashing", "refused", "locked", "dying", "wrong", "longname", "twin_a", "twin_b")
    document, result = probe.json("--verify", plugins=plugins)
    check(not complaints(probe, document), complaints(probe, document), result)
    check(set(plugins) <= set(states(document)), states(document))


def a_changed_document_does_not_pass_the_schema(probe):
    document, _ = probe.json("--verify", "--env", "--links", plugins=("twin_a", "twin_b"))
    check(not complaints(probe, document), complaints(probe, document))
    # One of each kind stands for all.
    document["links"] = document["links"][:1]
    document["devices"] = [device for device in document["devices"] if device["id"] in ("cpu:0", "twin_a:0")]
    document["plugins"] = list({plugin["state"]: plugin for plugin in document["plugins"]}.values())
    document["physical_devices"] = [one for one in document["physical_devices"] if "twin_a:0" in one["interfaces"]]
    check(not complaints(probe, document), complaints(probe, document))
    evidence = ("physical_devices", 0, "evidence", 0)
    passes = validator(probe.schema_path).is_valid

    passed = []
    for path, key in places(document):
        if path[-1:] == ("missing",):
            needed = key in document[path[0]][path[1]]  # reasons of single facts are checked by another test
            if not needed:
                continue
        for what, change in spoilings(key):
            if path[-1:] == ("missing",) and what == "renamed":
                continue
            if passes(changed(document, path, change)):
                passed.append((path, key, what))
    for path, key, value in (((), "schema", "gpuhal.probe/3"), (("devices", 0), "type", "toaster"), (("devices", 0), "id", "cpu"),
                             (("devices", 0), "uuid", "GPU-1"), (("devices", 0), "verified", False), (("plugins", 0), "state", "fine"),
                             (("devices", 0), "memory_total_bytes", -1), (("devices", 0), "capabilities", ["fly"]),
                             (evidence[:2], "interfaces", []), (evidence[:2], "interfaces", ["twin_a:0", "twin_a:0"]), (evidence[:2], "interfaces", ["gpu"]),
                             (evidence[:2], "pci_address", "c1:00.0"), (evidence[:2], "uuid", ""), (evidence[:2], "number", -1),
                             (("links", 0), "kind", "wire"), (("links", 0), "path", "native"), (("links", 0), "verified", False),
                             (("links", 0), "from", "cpu"), (("links", 0), "peer_advertised", 1),
                             (evidence, "same", 1), (evidence, "matched_by", "name"), (evidence, "value", None), (evidence, "sentence", ""),
                             (evidence, "device", "vulkan"), (evidence, "matched_by", "host_processor")):
        if passes(changed(document, path, lambda at: at.update({key: value}))):
            passed.append((path, key, value))
    check(not passed, "the schema lets these through:", *passed)


def everything_unknown_is_null_with_a_reason(probe):
    document, result = probe.json(plugins=("wrong",))
    for device in document["devices"]:
        nulls = {k for k, v in device.items() if v is None and k != "verify_error"}
        nulls |= {k for k, v in device["facts"].items() if v is None}
        check(nulls == set(device["missing"]), device["id"], nulls ^ set(device["missing"]))
    odd = by_id(document)["wrong:0"]
    check(odd["missing"]["numa_node"] == "no permission: sysfs is not mounted", odd["missing"])
    check(odd["uuid"] is None and odd["missing"]["uuid"].startswith("not supported"), odd["missing"])
    check(odd["memory_total_bytes"] == 24 << 30 and odd["vendor"] == "Odd" and odd["facts"]["memory_kinds"] == 7, odd)


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
    check(isinstance(device["memory_free_bytes"], int) and 0 < device["memory_free_bytes"] <= device["memory_total_bytes"], device)


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


# ---------------------------------------------------------------------------------------------- links

def fake_cuda(machine):
    """Settings for devices that are not there; 77 where the fake driver was not built."""
    libraries = os.path.join(os.environ.get("PROBE_TEST_FAKES", "/nowhere"), "cuda")
    if not os.path.exists(os.path.join(libraries, "libcuda.so.1")):
        print("skipped: the fake CUDA driver was not built")
        sys.exit(77)
    return {"GPUHAL_CUDA_LIBRARY": os.path.join(libraries, "libcuda.so.1"), "FAKE_CUDA": machine,
            "GPUHAL_NVML_LIBRARY": os.path.join(libraries, "libnvidia-ml.so.1")}


def by_ends(document):
    return {(link["from"], link["to"]): link for link in document["links"]}


def cells_of(text, title):
    """The table with this title, which may go on below: what stands at (from, to)."""
    cells, above = {}, None
    for line in text.splitlines():
        words = line.split()
        if words and (words[0] == title or above):
            if words[0] == title:
                above = words[1:]
            elif above:
                cells |= {(words[0], to): cell for to, cell in zip(above, words[1:])}
        elif not words:
            above = None
    return cells


def links_go_from_every_device_to_every_other_one(probe):
    probe.use_drivers()
    document, result = probe.json("--links")
    ids = list(by_id(document))
    check([(a, b) for a in ids for b in ids if a != b] == list(by_ends(document)), list(by_ends(document)))
    for link in document["links"]:
        nulls = {key for key, value in link.items() if value is None and key != "verify_error"}
        check(nulls == set(link["missing"]), link)
        check(link["missing"]["verified"] == "not read: --verify was not given", link)
    check(by_ends(document)["cpu:0", "opencl:0"]["kind"] == "same_memory", result)
    check(result.code == 0, result)
    check(probe.json()[0]["links"] is None)


def what_only_a_vendor_knows_is_shown_by_its_number_and_a_link_by_its_name(probe):
    document, _ = probe.json("--links", plugins=("own_numbers",))
    device = by_id(document)["own_numbers:1"]
    facts = {key: value for key, value in device["facts"].items() if key.startswith("0x")}
    check(facts == {"0x80000001": 43, "0x80000002": "systolic", "0x80abcdef": None}, facts)
    check(device["missing"]["0x80abcdef"] == "no permission: for administrators", device["missing"])
    link = by_ends(document)["own_numbers:0", "own_numbers:1"]
    check(link["kind"] == "vendor" and link["name"] == "Odd Fabric", link)


def links_are_verified_and_measured_between_the_devices_that_are_listed(probe):
    document, result = probe.json("--links", "--verify", "--backends", "opencl", plugins=("twin_a", "twin_b"))
    preferred = {device["id"] for device in document["devices"] if device["preferred"]}
    for ends, link in by_ends(document).items():
        measured = [link[key] is not None and link[key] > 0 for key in ("measured_bytes_per_second", "measured_latency_ns")]
        tried = preferred.issuperset(ends)
        check(link["verified"] is (True if tried else None) and measured == [tried, tried], link)
        check(tried or "--all" in link["missing"]["verified"], link)
    document, result = probe.json("--links", "--verify", "--all", "--backends", "opencl")
    check(all(link["verified"] is True and link["path"] in ("shared", "staged") for link in document["links"]), result)
    check(result.code == 0, result)


def figures_of_software_devices_are_labelled_and_others_are_not(probe):
    document, result = probe.json("--links", "--verify", "--all", "--backends", "opencl")
    check(document["links"] and all(link["software"] is True for link in document["links"]), result)
    result = probe.run("--links", "--verify", "--all", "--backends", "opencl")
    for title in ("GiB/s", "µs"):
        numbers = {ends: cell for ends, cell in cells_of(result.out, title).items() if ends[0] != ends[1]}
        check(numbers and all(cell[-1] == "~" and float(cell[:-1]) > 0 for cell in numbers.values()), title, result)
    check("~         measured with a software device" in result.out, result)
    check("~" not in probe.run("--links", "--all", "--backends", "opencl").out, "nothing was measured")
    settings = fake_cuda("devices 2")
    document, result = probe.json("--links", "--verify", "--backends", "cuda", **settings)
    check(all(link["software"] is False for link in document["links"]), result)
    check("~" not in probe.run("--links", "--verify", "--backends", "cuda", **settings).out)


def a_link_that_lies_answers_4_and_is_named(probe):
    settings = fake_cuda("devices 3; link 0 1 nvlink 4 18; silent 0 1; link 1 2 system")
    document, result = probe.json("--links", "--verify", "--backends", "cuda", **settings)
    links = by_ends(document)
    check(result.code == 4 and "the link from cuda:0 to cuda:1 is not verified: the driver reports that cuda:1 can access memory of cuda:0"
          in result.err, result)
    lying = links["cuda:0", "cuda:1"]
    check(lying["verified"] is False and lying["peer_advertised"] and lying["path"] == "staged" and lying["kind"] == "nvlink", lying)
    check("cuda:1 can access memory of cuda:0" in lying["verify_error"], lying)
    check(links["cuda:0", "cuda:2"]["verified"] and links["cuda:0", "cuda:2"]["path"] == "peer", result)
    check(links["cuda:1", "cuda:2"]["verified"] and links["cuda:1", "cuda:2"]["path"] == "staged", result)
    check(not complaints(probe, document), complaints(probe, document))
    check(probe.run("--links", "--backends", "cuda", **settings).code == 0, "without --verify it is unknown")


def the_tables_of_links_say_what_the_document_says(probe):
    settings = fake_cuda("devices 3; link 0 1 nvlink 4 18; silent 0 2; link 1 2 system")
    result = probe.run("--links", "--verify", "--backends", "cuda", **settings)
    kinds, paths = cells_of(result.out, "from/to"), cells_of(result.out, "path")
    check(kinds["cuda:0", "cuda:1"] == "nvlink+" and kinds["cuda:0", "cuda:2"] == "switch!", result)
    check(kinds["cuda:1", "cuda:2"] == "system" and kinds["cpu:0", "cuda:0"] == "host" and kinds["cpu:0", "cpu:0"] == ".", result)
    check(paths["cuda:0", "cuda:1"] == "peer" and paths["cuda:0", "cuda:2"] == "staged" and paths["cuda:0", "cpu:0"] == "shared", result)
    for title in ("GiB/s", "µs"):
        numbers = {ends: cell for ends, cell in cells_of(result.out, title).items() if ends[0] != ends[1]}
        check(len(numbers) == 12 and all(float(cell) > 0 for cell in numbers.values()), title, result)
    for word in ("nvlink    NVLink, directly", "host      nothing closer than the host's memory is known",
                 "+         one reaches the other's memory, as its driver says and bytes", "!         tried, and failed"):
        check(word in result.out, word, result)
    plain = probe.run("--links", "--backends", "cuda", **settings)
    check(cells_of(plain.out, "from/to")["cuda:0", "cuda:2"] == "switch+" and "as its driver says; --verify tries" in plain.out, plain)
    check(not cells_of(plain.out, "path") and "Express host bridge" not in plain.out, plain)


def tables_of_many_links_fit_the_screen(probe):
    settings = fake_cuda("devices 8; link 0 1 nvlink 4 6; link 0 7 system")
    for columns in (40, 60, 80, 200):
        result = probe.on_terminal("--links", "--backends", "cuda", columns=columns, **settings)
        lines = screen_lines(result.out)
        check(all(columns_of(line) <= columns for line in lines), columns, result)
        check(len(cells_of("\n".join(lines), "from/to")) == 81, columns, result)
    check(sum("from/to" in line for line in screen_lines(probe.on_terminal("--links", "--backends", "cuda", columns=90, **settings).out)) == 1)
    check(probe.run("--links", "--verify", "--backends", "cpu,opencl", LC_ALL="C").out.isascii())


def links_of_a_single_device_are_none(probe):
    result = probe.run("--links", "--backends", "cpu")
    check(result.code == 0 and "no two devices" in result.out, result)
    check(probe.json("--links", "--backends", "cpu")[0]["links"] == [])
    probe.use_drivers()
    result = probe.run("--links", "--backends", "opencl")
    check("one physical device is listed; --all shows the links between its interfaces" in result.out, result)
    check("opencl:0 is another interface of a listed device; --all lists it" in result.err, result)
    check(not probe.run("--all", "--backends", "opencl").err and not probe.run("--backends", "cpu,opencl").err)


def drivers_that_die_or_hang_at_a_link_cost_that_link_and_the_rest_goes_on(probe):
    probe.use_drivers()
    document, result = probe.json("--links", "--verify", "--timeout", "2", "--device", "cpu:0,dying:0,opencl:0", plugins=("dying",))
    links = by_ends(document)
    check(result.code == 4 and "crashed: signal" in result.err, result)
    check(links["dying:0", "cpu:0"]["verified"] is False and "crashed" in links["dying:0", "cpu:0"]["verify_error"], result)
    check(not complaints(probe, document), complaints(probe, document))
    document, result = probe.json("--links", "--verify", "--timeout", "1", "--device", "cpu:0,stuck:0", plugins=("stuck",))
    links = by_ends(document)
    check(result.code == 4 and "the link from stuck:0 to cpu:0 is not verified: the driver did not finish within 1 s" in result.err, result)
    check(all(link["kind"] == "host" and link["verified"] is False for link in links.values()), "what was known stays", result)
    check(not complaints(probe, document), complaints(probe, document))


# ---------------------------------------------------------------------------------------------- exit codes

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
    check(result.code == 3 and result.out == "" and "there is no device" in result.err, result)
    check("cpu.devices" in probe.run("--explain", **settings).out)


def usage_errors_answer_2_with_a_sentence_and_a_hint(probe):
    for options in (["--nonsense"], ["stray"], ["--json", "stray"], ["--device"], ["--device", ""], ["--json=yes"], ["-x"],
                    ["--device", "cpu", "--device", "cpu"], ["--timeout", "soon"], ["--timeout", "-1"], ["--timeout", "nan"],
                    ["--device", "size=3"], ["--backends", "cpu,-opencl"]):
        result = probe.run(*options)
        check(result.code == 2 and result.out == "" and result.err.startswith("gpuhal-probe: "), options, result)


def an_unknown_selector_answers_5_and_is_named(probe):
    for selector in ("nosuch:9", "opencl:99", "name=no such thing*", "pci=0000:ff:1f.7", "cpu,nosuch"):
        result = probe.run("--json", "--device", selector)
        check(result.code == 5 and result.out == "", result)
        check(selector.split(",")[-1] in result.err and "--device" in result.err, result)
    result = probe.run(GPUHAL_DEVICES="nosuch:9")
    check(result.code == 5 and "GPUHAL_DEVICES" in result.err and "nosuch:9" in result.err, result)


def a_selector_of_gpus_that_finds_only_software_says_so(probe):
    probe.use_drivers()
    for options, settings in ((["--device", "gpu"], {}), ([], {"GPUHAL_DEVICES": "gpu"})):
        result = probe.run(*options, **settings)
        check(result.code == 5 and re.search(r': no device matches "gpu"; ignored: [a-z]+:0(, [a-z]+:[0-9]+)* \(software drivers? on the CPU; select (it|them) by name\)', result.err), result)


def a_crashing_plugin_answers_4_and_the_others_are_listed(probe):
    result = probe.run(plugins=("crashing",))
    check(result.code == 4 and "cpu:0" in result.out, result)


def a_plugin_of_another_abi_is_partial_and_one_of_another_platform_is_not(probe):
    for line, code in (("abi = 0.9\nplatforms = linux", 4), ("abi = 0.2\nplatforms = windows", 0)):
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "other.gpuhal"), "w", encoding="utf-8") as manifest:
                manifest.write(f"[plugin]\nname = other\nlibrary = other.so\n{line}\n")
            document, result = probe.json(GPUHAL_PLUGIN_PATH=directory)
        check(states(document)["other"] == "incompatible" and result.code == code, result)
        check(("1 plugin is incompatible" in result.err) == (code == 4), result)


def a_hanging_plugin_answers_4_after_the_timeout(probe):
    begin = time.monotonic()
    document, result = probe.json("--timeout", "2", plugins=("hanging",))
    check(states(document)["hanging"] == "timed_out" and states(document)["cpu"] == "ok", result)
    check(result.code == 4 and "timed out" in result.err, result)
    check(time.monotonic() - begin < 40, time.monotonic() - begin)


def a_device_that_moves_bytes_wrong_answers_4(probe):
    document, result = probe.json("--verify", plugins=("wrong",))
    device = by_id(document)["wrong:0"]
    check(result.code == 4 and device["verified"] is False and device["verify_error"], result)
    check("wrong:0 is not verified: " in result.err, result)
    check(by_id(document)["cpu:0"]["verified"] is True, result)
    human = probe.run("--verify", plugins=("wrong",))
    check(human.code == 4, human)
    marks = {line.split()[0 if line[0] == " " else 1]: line.split()[-1] for line in human.out.splitlines()}
    check(marks["wrong:0"] == "✗" and marks["cpu:0"] == "✓", human)


def a_driver_that_crashes_when_it_is_verified_costs_its_device_only(probe):
    document, result = probe.json("--verify", plugins=("dying",))
    check(by_id(document)["dying:0"]["verify_error"].startswith("the driver crashed: signal 11"), result)
    check(by_id(document)["cpu:0"]["verified"] is True and result.code == 4, result)


def a_driver_that_hangs_when_it_is_verified_costs_its_device_only(probe):
    document, result = probe.json("--verify", "--timeout", "4", plugins=("stuck",))
    check("did not finish within 4 s" in by_id(document)["stuck:0"]["verify_error"], result)
    check(by_id(document)["cpu:0"]["verified"] is True and result.code == 4, result)


def a_selected_device_without_permission_answers_6(probe):
    result = probe.run("--device", "refused:0", plugins=("refused",))
    check(result.code == 6 and result.out == "", result)
    check("/dev/odd0 may not be opened" in result.err and result.err.count("refused: ") == 1, result)
    result = probe.run("--device", "locked:0", "--verify", plugins=("locked",))
    check(result.code == 6 and "/dev/odd0 may not be opened" in result.err, result)


def a_refused_plugin_that_was_not_selected_is_complete_with_a_hint(probe):
    result = probe.run(plugins=("refused",))
    check(result.code == 0 and "1 plugin lacks permission; gpuhal-probe --explain says why" in result.err, result)
    check(probe.run("--device", "cpu", plugins=("refused",)).code == 0)


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


# ---------------------------------------------------------------------------------------------- options

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
    check([line[2:10] for line in result.out.splitlines()] == ["opencl:0", "opencl:1"], result)


def rows_of(result):
    """The lines of the listing that name a device: mark and id."""
    return [(line[0], line[2:].split()[0]) for line in result.out.splitlines() if re.match("[*+ ] [a-z][a-z0-9_]*:[0-9]+ ", line)]


def interfaces_of_one_physical_device_are_hidden_until_asked_for(probe):
    probe.use_drivers()
    plugins = ("twin_a", "twin_b")
    shown, every = rows_of(probe.run(plugins=plugins)), rows_of(probe.run("--all", plugins=plugins))
    check(shown == [("*", "twin_a:0"), (" ", "cpu:0")], shown)
    check({("*", "twin_a:0"), (" ", "twin_b:0"), (" ", "opencl:0"), (" ", "opencl:1"), ("+", "cpu:0")} <= set(every), every)
    check(re.search("also reachable through [0-9] more interfaces", probe.on_terminal(plugins=plugins).out))
    document, _ = probe.json(plugins=plugins)
    a, b = by_id(document)["twin_a:0"], by_id(document)["twin_b:0"]
    check(a["physical_device"] == b["physical_device"] and a["preferred"] and not b["preferred"], a, b)


def without_a_gpu_the_choice_is_the_processor_and_the_reason_names_what_was_passed_over(probe):
    probe.use_drivers()
    result = probe.run("--all", "--verify")
    last = " ".join(result.out.split("\n\n")[-1].split())
    check(result.out.startswith("physical device 1: the host's processor\n"), result)
    check(last.startswith("* cpu:0: no usable GPU; using the CPU (") and "opencl:0" in last and "software drivers)" in last, result)
    check("\n+ " not in result.out, "a mark that no line has is not explained", result)


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
    check(re.search('not used, excluded\n    reason   --backends is "cpu"\n', result.out) and "config." not in result.out, result)
    result = probe.run("--backends", "cpu", "--device", "opencl:0")
    check('--device: no device matches "opencl:0"; opencl: --backends is "cpu"' in result.err and "config." not in result.err, result)
    document, result = probe.json("--backends", "cpu")
    check(any(plugin["reason"] == '--backends is "cpu"' for plugin in document["plugins"]), result)


def help_and_version_answer_0_on_standard_output(probe):
    result = probe.run("--help")
    check(result.code == 0 and result.err == "", result)
    for option in "--json --explain --verify --links --timings --env --all --device --backends --timeout --retry --registry --diff --accept --forget --export --import --help --version".split():
        check(option in result.out, option)
    check(all(len(line) <= 80 for line in result.out.splitlines()), result)
    result = probe.run("--version")
    check(re.fullmatch(r"gpuhal-probe \d+\.\d+\.\d+ \(library \d+\.\d+\.\d+, plugin ABI \d+\.\d+\)\n", result.out), result)


# ---------------------------------------------------------------------------------------------- the screen

def a_pipe_gets_one_plain_line_per_physical_device(probe):
    document, _ = probe.json()
    result = probe.run()
    check(len(result.out.splitlines()) == len(document["physical_devices"]), result)
    check("\033" not in result.out + result.err and "\r" not in result.out + result.err, result)
    chosen = [line for line in result.out.splitlines() if line.startswith("* ")]
    check(len(chosen) == 1 and chosen[0].split()[1] == document["chosen"]["id"], result)
    check(all(len(line) == len(line.rstrip()) for line in result.out.splitlines()), result)


def is_a_path(line):
    """Whether nothing but a path stands there, behind its label: paths are not broken, they are there to be copied."""
    return re.fullmatch(r" +(?:[a-z]+ +)?/\S+", line)


def no_line_is_wider_than_the_terminal(probe):
    for columns, options in ((40, ()), (60, ("--all",)), (80, ()), (80, ("--all", "--explain")), (200, ("--all",))):
        result = probe.on_terminal("--verify", *options, columns=columns, plugins=("longname", "twin_a", "twin_b"))
        lines = screen_lines(result.out)
        check(any("longname:0" in line for line in lines), result)
        for line in lines:
            check(columns_of(line) <= columns or is_a_path(line), f"{columns_of(line)} columns: {line}", result.out)
    narrow = next(line for line in screen_lines(probe.on_terminal(plugins=("longname",)).out) if "longname:0" in line)
    check("…" in narrow and "24.0 GiB" in narrow, narrow)


def without_a_terminal_lines_fit_80_columns_or_those_of_the_variable(probe):
    for columns, settings in ((80, {}), (100, {"COLUMNS": "100"})):
        widths = [columns_of(line) for line in probe.run(plugins=("longname",), **settings).out.splitlines()]
        check(max(widths) <= columns and max(widths) >= columns - 2, widths)


def colours_are_for_terminals_that_want_them(probe):
    check("\033[1m" in probe.on_terminal().out)
    for settings in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}):
        out = probe.on_terminal("--explain", **settings).out
        check(not re.search(r"\033\[[0-9;]*m", out), settings, out)
    check("\033" not in probe.on_terminal("--verify", TERM="dumb").out)


def a_terminal_sees_progress_and_it_is_gone_afterwards(probe):
    result = probe.on_terminal("--verify")
    check("verifying cpu:0" in result.out, result)
    check(not any("verifying" in line for line in screen_lines(result.out)), screen_lines(result.out))


def a_terminal_sees_the_reason_for_the_choice(probe):
    document, _ = probe.json()
    lines = screen_lines(probe.on_terminal().out)
    check(lines[0].split()[:2] == ["DEVICE", "NAME"], lines)
    check(document["chosen"]["reason"][:40] in " ".join(" ".join(lines).split()), lines)


def a_terminal_sees_which_of_several_named_devices_is_chosen_and_why(probe):
    probe.use_drivers()
    lines = screen_lines(probe.on_terminal("--device", "opencl:0,opencl:1").out)
    words = " ".join(" ".join(lines).split())
    check(re.search(r'\* opencl:[01]: "opencl:0,opencl:1" names 2; first backend \(opencl\), ', words), lines)


def a_locale_without_unicode_gets_ascii(probe):
    for result in (probe.run("--verify", "--explain", plugins=("wrong", "longname"), LC_ALL="C"),
                   probe.on_terminal("--verify", plugins=("wrong", "longname"), LC_ALL="C")):
        check(result.out.isascii(), result)
        marks = [line.split()[-1] for line in screen_lines(result.out) if re.search("(wrong|longname|cpu):0 ", line)]
        check(marks[:3] == ["FAILED", "ok", "ok"], marks, result)


def a_setting_cannot_write_escape_codes_to_the_terminal(probe):
    result = probe.on_terminal("--env", NO_COLOR="1", GPUHAL_OPENCL_LIBRARY="/x\033]0;title\a")
    check("/x?]0;title?" in result.out and "\033" not in result.out, result)
    result = probe.on_terminal("--env", NO_COLOR="1", GPUHAL_OPENCL_LIBRARY="/x\u202eos.lib\u200b")
    check("/x?os.lib?" in result.out, "turned round or hidden", result)


if __name__ == "__main__":
    globals()[sys.argv[1]](Probe(*sys.argv[2:5]))
