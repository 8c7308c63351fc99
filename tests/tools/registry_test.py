#!/usr/bin/env python3
"""Tests how gpuhal-probe displays and changes the registry. Each call runs one test: registry_test.py TEST PROGRAM
ODD_PLUGINS SCHEMA. Exit code 77 means skipped. Most tests write a registry themselves, so that its dates and numbers
are known."""

import json
import os
import re
import stat
import sys
import tempfile

from probe_support import changed, check, columns_of, complaints, fake_cuda, fake_hip, is_a_path, main, on_recorded, places, screen_lines, spoilings, validator

MARCH = 1772357400  # 2026-03-01 09:30:00 UTC
JULY = 1783846980  # 2026-07-12 09:03:00 UTC


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def record(kind, *pairs):
    body = f"[{kind}]\n" + "".join(f"{key} = {value}\n" for key, value in pairs)
    return body + f"crc = {crc32c(body.encode()):08x}\n\n"


def registry_text(*records, version=1, generation=17):
    head = record("registry", ("version", version), ("generation", generation), ("next_physical", 9), ("next_interface", 9))
    return head + "".join(records) + record("end", ("records", len(records)))


def physical(number, name="Fake H100", pci=None, host=0, first=MARCH, last=JULY):
    pairs = [("generation", 3), ("number", number), ("host", host), ("vendor_id", 0x10de), ("pci", pci), ("name", name),
             ("first_seen", first), ("last_seen", last)]
    return record("physical", *[pair for pair in pairs if pair[1] is not None])


def interface(number, of, backend="cuda", present=1, name="Fake H100", drivers=((MARCH, "550.54.14"), (JULY, "560.35.03")), first=MARCH, last=JULY):
    return record("interface", ("generation", 3), ("number", number), ("physical", of), ("present", present), ("backend", backend), ("name", name),
                  ("uuid", f"00010203-0405-0607-0809-0a0b0c0d0e{number:02x}"), ("first_seen", first), ("last_seen", last),
                  *[("driver", f"{since} {version}") for since, version in drivers])


def plugin(name, state=0, stage=9, reason="", key=(), signal=0, output=(), file="/usr/lib/gpuhal/gpuhal-x.so"):
    return record("plugin", ("generation", 3), ("identity", f"1-2-3-{name}"), *[("key", line) for line in key], ("name", name), ("file", file),
                  ("version", "0.2.0"), ("driver", "/usr/lib/libx.so.1"), ("state", state), ("stage", stage), ("status", 0), ("signal", signal),
                  ("reason", reason), *[("output", line) for line in output], ("probed_at", JULY))


def link(of, to, verified=1, driver="560.35.03", reason=None, path=2, speed=25 << 30, latency=8200):
    pairs = [("generation", 3), ("from", of), ("to", to), ("from_driver", driver), ("to_driver", driver), ("verified", verified), ("path", path),
             ("bytes_per_second", speed), ("latency_ns", latency), ("reason", reason), ("tried", JULY)]
    return record("link", *[pair for pair in pairs if pair[1] is not None])


def fault(kind, of=0, plugin_identity=None, count=12):
    pairs = [("generation", 3), ("kind", kind), ("interface", of), ("plugin", plugin_identity), ("driver_version", "560.35.03"),
             ("detail", "cuda:0: allocating 99 bytes: cuMemAlloc: out of memory (2)"), ("count", count), ("first", MARCH), ("last", JULY)]
    return record("fault", *[pair for pair in pairs if pair[1] is not None])


def everything():
    return registry_text(
        plugin("opencl", key=("variable POCL_DEVICES=nothing like it",)),
        plugin("crashing", state=4, stage=7, reason="crashing: the helper process was ended by signal 11", key=machine_key(), signal=11,
               output=("about to crash", "now")),
        physical(1, pci="0000:11:00.0"), physical(2, name="Gone Card", pci="0000:21:00.0", last=MARCH), physical(3, name="Processor", host=1),
        interface(1, 1), interface(2, 2, present=0, name="Gone Card", drivers=((MARCH, "550.54.14"),), last=MARCH), interface(3, 3, backend="cpu", name="Processor", drivers=()),
        interface(4, 1, backend="vulkan", drivers=((JULY, "560.35.3"),), first=JULY),
        link(1, 3), link(1, 2, verified=0, driver="550.54.14", reason="after a copy 7 of 524288 bytes are wrong", speed=0, latency=0, path=0),
        fault(4, of=1), fault(1, plugin_identity="1-2-3-crashing", count=1))


def machine_key():
    """Returns the lines of a cache key. The test knows the value of only one kind of line: an environment variable that
    is never set."""
    return ("variable GPUHAL_TEST_NEVER_SET",)


class Place:
    """A folder for a registry. It is removed when the program exits."""
    folders = []

    def __init__(self, text=None):
        self.folder = tempfile.TemporaryDirectory()
        self.folders.append(self.folder)
        self.path = os.path.join(self.folder.name, "state")
        self.file = os.path.join(self.path, "registry")
        if text is not None:
            os.mkdir(self.path, 0o700)
            self.write(text)

    def write(self, text):
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(text)

    def read(self):
        with open(self.file, encoding="utf-8") as file:
            return file.read()

    def beside(self, name):
        return os.path.join(self.folder.name, name)

    def settings(self, **more):
        return {"GPUHAL_REGISTRY": self.path, "TZ": "UTC"} | more


# ---------------------------------------------------------------------------------------------- showing

def no_line_of_the_record_is_wider_than_the_screen(probe):
    text = everything()
    for columns in (40, 80, 132):
        result = probe.on_terminal("--registry", columns=columns, **Place(text).settings())
        check(result.code == 0, result)
        for line in screen_lines(result.out):
            one_word = is_a_path(line) or line.startswith("registry: /") or re.fullmatch(r" +uuid +(GPU-|MIG-)?[0-9a-f-]{36}", line)
            check(columns_of(line) <= columns or one_word, f"{columns_of(line)} columns: {line}", result.out)


def partitions_of_amd_keep_their_numbers_in_a_record_with_their_former_names(probe):
    """The registry does not contain the devices' addresses. Only the UUID in the library's format identifies them."""
    parts = [record("interface", ("generation", 3), ("number", 7 - part), ("physical", 5), ("present", 1), ("backend", "rocm"), ("partition", part),
                    ("name", "Fake MI300X"), ("uuid", "31613262-3363-3464-3565-366637303830"), ("first_seen", MARCH), ("last_seen", JULY))
             for part in range(2)]
    card = record("physical", ("generation", 3), ("number", 5), ("host", 0), ("vendor_id", 0x1002), ("name", "Fake MI300X"), ("first_seen", MARCH),
                  ("last_seen", JULY))
    settings = Place(registry_text(card, *parts)).settings(**fake_hip("devices 1; memory 0 384M; partitions 0 2; uuid 0 1a2b3c4d5e6f7080"))
    document, result = probe.json("--backends", "rocm", **settings)
    check([device["physical_device"] for device in document["devices"] if device["backend"] == "rocm"] == [5, 5], result)
    known = json.loads(probe.run("--registry", "--json", **settings).out)["physical_devices"][0]
    check([(one["number"], one["partition"], one["uuid"]) for one in known["interfaces"]] ==
          [(7, "0", "GPU-1a2b3c4d5e6f7080"), (6, "1", "GPU-1a2b3c4d5e6f7080")], known)


def a_driver_cannot_write_escape_codes_through_the_record(probe):
    text = registry_text(physical(1, name="x\u202ey"), interface(1, 1, name="x\u202ey"))
    check("\u202e" not in probe.run("--registry", **Place(text).settings()).out)


def showing_looks_at_no_plugin_and_changes_nothing(probe):
    place = Place(everything())
    before = place.read()
    result = probe.run("--registry", plugins=("hanging", "crashing"), **place.settings())
    check(result.code == 0 and place.read() == before and os.listdir(place.path) == ["registry"], result)
    none = Place()
    check(probe.run("--registry", **none.settings()).code == 0 and not os.path.exists(none.path), "showing made the folder")


def a_damaged_record_answers_4_and_shows_what_is_whole(probe):
    text = everything()
    place = Place(text.replace("Gone Card", "Gone Cart", 1))
    result = probe.run("--registry", **place.settings())
    check(result.code == 4 and "physical device 1" in result.out and "physical device 2" not in result.out, result)
    check(probe.run("--registry", **Place("rubbish\n").settings()).code == 4)


# ---------------------------------------------------------------------------------------------- JSON

def the_document_of_the_record_follows_its_schema(probe):
    for text in (None, registry_text(), everything(), everything().replace("Gone Card", "Gone Cart", 1)):
        document, result = probe.json("--registry", **Place(text).settings())
        check(not complaints(probe, document), complaints(probe, document), result)
    document, result = probe.json("--registry")
    check(not complaints(probe, document) and document["place"] is None, result)


def the_document_has_what_the_record_has(probe):
    place = Place(everything())
    document, _ = probe.json("--registry", **place.settings())
    check(document["place"] == place.path and document["generation"] == 17 and document["damage"] is None, document)
    first = document["physical_devices"][0]
    check(first["number"] == 1 and first["present"] is True and first["first_seen"] == "2026-03-01T09:30:00Z", first)
    check([one["number"] for one in first["interfaces"]] == [1, 4], first)
    check(first["interfaces"][0]["drivers"] == [{"version": "550.54.14", "since": "2026-03-01T09:30:00Z"},
                                           {"version": "560.35.03", "since": "2026-07-12T09:03:00Z"}], first)
    check(document["physical_devices"][1]["present"] is False, document)
    opencl, crashing = document["plugins"]
    check(opencl["valid"] is False and opencl["stale"] == "POCL_DEVICES has another value", opencl)
    check(crashing["signal"] == 11 and crashing["output"] == ["about to crash", "now"] and crashing["stage"] == "start", crashing)
    good, bad = document["links"]
    check((good["from"], good["to"], good["verified"], good["path"], good["bytes_per_second"]) == (1, 3, True, "peer", 25 << 30), good)
    check(bad["verified"] is False and bad["path"] is None and bad["latency_ns"] is None and "7 of 524288" in bad["reason"], bad)
    memory, crash = document["faults"]
    check((memory["kind"], memory["interface"], memory["count"], memory["plugin"]) == ("out_of_memory", 1, 12, None), memory)
    check((crash["kind"], crash["interface"], crash["plugin"]) == ("crash", None, "crashing"), crash)


def a_changed_document_of_the_record_does_not_pass(probe):
    document, _ = probe.json("--registry", **Place(everything()).settings())
    passes = validator(probe.schema_path).is_valid
    passed = [(path, key, what) for path, key, what, change in spoilings(document) if passes(changed(document, path, change))]
    check(all(passes(changed(document, path, lambda at: None)) for path in {path for path, _ in places(document)}), "it is the change that does not pass")
    check(not passed, "the schema lets these through:", *passed)


def keys_of_the_record_come_in_the_order_of_the_schema(probe):
    document, _ = probe.json("--registry", **Place(everything()).settings())
    schema = validator(probe.schema_path).schema
    check(list(document) == list(schema["properties"]), list(document))
    parts = schema["$defs"]
    for name, objects in (("physical_device", document["physical_devices"]), ("interface", document["physical_devices"][0]["interfaces"]),
                          ("plugin", document["plugins"]), ("link", document["links"]),
                          ("fault", document["faults"])):
        for one in objects:
            check(list(one) == list(parts[name]["properties"]), name, list(one))


# ---------------------------------------------------------------------------------------------- changing

def a_plugin_is_forgotten_with_its_faults_and_the_physical_devices_stay(probe):
    place = Place(everything())
    result = probe.run("--forget", "crashing", **place.settings())
    check(result.code == 0 and result.err == "", result)
    document, _ = probe.json("--registry", **place.settings())
    check([one["name"] for one in document["plugins"]] == ["opencl"] and [one["kind"] for one in document["faults"]] == ["out_of_memory"], document)
    check(len(document["physical_devices"]) == 3 and document["generation"] > 17, document)
    result = probe.run("--forget", "crashing", **place.settings())
    check(result.code == 5 and '"crashing"' in result.err, result)


def a_gpu_that_was_taken_out_is_forgotten_alone(probe):
    everything_else = ("plugins", "links", "faults")
    for selector in ("df:00.0", "0000:DF:00.0", "pci=df:00.0", "GPU-70717273", "uuid=70717273-7475-7677-7879-7a7b7c7d7e7f", "cuda:7"):
        run = on_recorded("h100-8-one-gone")
        check(run().code == 4, "a GPU is gone")
        explained = run("--explain", "df:00.0")
        check("gpuhal-probe --forget 0000:df:00.0\n" in explained.out, explained)
        before = json.loads(run("--registry", "--json").out)
        result = run("--forget", selector)
        check(result.code == 0 and result.out == "forgotten: NVIDIA H100 80GB HBM3 at 0000:df:00.0\n" and not result.err, selector, result)
        after, listed = json.loads(run("--registry", "--json").out), run()
        check(listed.code == 0 and "7 GPUs ready" in listed.out and "MISSING" not in listed.out, selector, listed)
        check(len(after["physical_devices"]) == len(before["physical_devices"]) - 1, selector, after["physical_devices"])
        check(all(after[key] == [one for one in before[key] if "df:00.0" not in str(one)] for key in everything_else), selector, before, after)
        again = run("--forget", selector)
        check(again.code == 5 and not again.out and f'"{selector}"' in again.err, selector, again)


def what_is_there_or_is_not_one_gpu_is_not_forgotten(probe):
    run = on_recorded("h100-8-one-gone")
    before = json.loads(run("--registry", "--json").out) if run() else None
    for selector, code, words in (("1b:00.0", 2, "names cuda:0, which is still there"), ("cuda:0", 2, "which is still there"), ("name=*H100*", 2, "which is still there"),
                                  ("GPU-0001", 2, "which is still there"), ("gpu:0", 5, ""), ("aa:00.0", 5, "names no GPU whose row says MISSING"),
                                  ("name=nothing", 5, "no GPU"), ("cuda:8", 5, "no GPU"), ("0", 2, "which is still there"), ("\x1b[31m", 5, ""), ("h100", 5, '"h100"'),
                                  ("GPU-zz", 5, ""), ("!cuda", 2, ""), (":", 5, ""), ("03:00.0", 2, "03:00.0, which is still there")):
        result = run("--forget", selector)
        check(result.code == code and words in result.err and not result.out and result.err and "\x1b" not in result.err, selector, result)
    after = json.loads(run("--registry", "--json").out)
    check(before["physical_devices"] == after["physical_devices"] and run().code == 4, before, after)


def accepting_ends_the_rows_of_what_is_gone(probe):
    run = on_recorded("h100-8-one-gone")
    check(run("--diff").code == 7 and run().code == 4)
    accepted = run("--diff", "--accept")
    check(accepted.code == 0 and re.search(r"^gone +NVIDIA H100 80GB HBM3, PCI 0000:df:00.0", accepted.out, re.M), accepted)
    listed, same = run(), run("--diff")
    check(listed.code == 0 and "7 GPUs ready" in listed.out and same.code == 0, listed, same)


def everything_is_forgotten_but_the_numbers_that_were_given(probe):
    place = Place(everything())
    result = probe.run("--forget", "all", **place.settings())
    check(result.code == 0, result)
    document, _ = probe.json("--registry", **place.settings())
    check(document["physical_devices"] == document["plugins"] == document["links"] == document["faults"] == [], document)
    check("next_physical = 9\nnext_interface = 9\n" in place.read(), place.read())


def what_was_exported_comes_back_with_an_import(probe):
    place, other = Place(everything()), Place()
    file = place.beside("export")
    result = probe.run("--export", file, **place.settings())
    check(result.code == 0 and result.err == "", result)
    check(stat.S_IMODE(os.stat(file).st_mode) == 0o600, oct(os.stat(file).st_mode))
    result = probe.run("--import", file, **other.settings())
    check(result.code == 0, result)
    one, _ = probe.json("--registry", **place.settings())
    two, _ = probe.json("--registry", **other.settings())
    for key in ("physical_devices", "plugins", "links", "faults"):
        check(one[key] == two[key], key, one[key], two[key])


def an_export_to_standard_output_is_the_file(probe):
    place = Place(everything())
    file = place.beside("export")
    check(probe.run("--export", file, **place.settings()).code == 0)
    result = probe.run("--export", "-", **place.settings())
    with open(file, encoding="utf-8") as export:
        check(result.code == 0 and result.err == "" and result.out == export.read(), result)


def outdated_results_of_a_plugin_are_one_line(probe):
    stale = [plugin("opencl", key=(f"variable POCL_DEVICES=number {number}",)) for number in range(3)]
    stale = [text.replace("identity = 1-2-3-opencl", f"identity = 1-2-{number}-opencl") for number, text in enumerate(stale)]
    stale = [record("plugin", *[tuple(line.split(" = ", 1)) for line in text.splitlines()[1:] if " = " in line and not line.startswith("crc")])
             for text in stale]
    place = Place(registry_text(*stale))
    check(probe.run(**place.settings(GPUHAL_BACKENDS="cpu")).code == 0)
    result = probe.run("--registry", **place.settings())
    check(result.out.count("plugin opencl: 3 outdated results, not used: ") == 1 and result.out.count("plugin opencl") == 1, result)
    check(re.search(r"^plugin cpu: ok, 1 device\n(.*\n)*? +valid +yes", result.out, re.M), result)
    check(probe.run("--registry", "--all", **place.settings()).out.count("plugin opencl: ok") == 3)


def links_of_the_record_are_named_by_addresses(probe):
    text = registry_text(physical(1, pci="0000:11:00.0"), physical(2, pci="0000:21:00.0"), interface(1, 1), interface(2, 2), link(1, 2), link(1, 1, verified=0, reason="wrong"))
    result = probe.run("--registry", **Place(text).settings())
    check("cuda at 0000:11:00.0 to cuda at 0000:21:00.0: peer" in result.out, result)
    check(re.search(r"^self-tests: .*\n  cuda at 0000:11:00.0: FAILED, .*; wrong$", result.out, re.M), result)


def an_export_overwrites_no_file(probe):
    place = Place(everything())
    file = place.beside("mine")
    with open(file, "w", encoding="utf-8") as mine:
        mine.write("mine")
    result = probe.run("--export", file, **place.settings())
    check(result.code == 1 and result.out == "" and file in result.err, result)
    with open(file, encoding="utf-8") as mine:
        check(mine.read() == "mine")


def a_file_that_is_not_whole_is_not_imported(probe):
    place, whole = Place(everything()), everything()
    before = place.read()
    for text in (whole.replace("Gone Card", "Gone Cart", 1), whole[:-30], whole[:len(whole) // 2], "", "hello\n", registry_text(version=2), "x" * (2 << 20)):
        file = place.beside("export")
        with open(file, "w", encoding="utf-8") as export:
            export.write(text)
        result = probe.run("--import", file, **place.settings())
        check(result.code == 1 and result.out == "" and file in result.err, text[:80], result)
        check(place.read() == before)


def a_record_that_cannot_be_written_is_reported_with_the_reason(probe):
    if os.getuid() == 0:
        print("skipped: nothing is forbidden to root")
        sys.exit(77)
    place = Place(everything())
    os.chmod(place.path, 0o500)
    try:
        result = probe.run("--forget", "all", **place.settings())
    finally:
        os.chmod(place.path, 0o700)
    check(result.code == 1 and "cannot be written: Permission denied" in result.err and result.out == "", result)


def a_record_of_a_newer_version_is_left_alone(probe):
    place = Place(registry_text(version=2))
    before, file = place.read(), place.beside("export")
    with open(file, "w", encoding="utf-8") as export:
        export.write(everything())
    for options in (("--forget", "all"), ("--import", file), ("--export", file + "2"), ("--diff",)):
        result = probe.run(*options, **place.settings())
        check(result.code == 1 and result.out == "", options, result)
    check(place.read() == before and not os.path.exists(file + "2"))


def a_plugin_to_retry_that_does_not_exist_answers_5(probe):
    for names in ("cpu, nonesuch", "cpu nonesuch", "nonesuch,,cpu"):
        result = probe.run("--retry", names)
        check(result.code == 5 and '"nonesuch"' in result.err, names, result)
    check(probe.run("--retry", "cpu").code == 0 and probe.run("--retry", "all").code == 0)


# ---------------------------------------------------------------------------------------------- comparing

def a_machine_is_compared_with_its_record(probe):
    place = Place()
    two = fake_cuda("devices 2; link 0 1 nvlink 4 18; pci 1 0000:c1:00.0; name 1 Second Card")
    one = fake_cuda("devices 1; driver_text 599.01")

    def diff(machine, *options):
        return probe.run("--diff", *options, "--backends", "cuda", **place.settings(), **machine)
    first = diff(two)
    check(first.code == 0 and "no devices were recorded before" in first.out, first)
    again = diff(two)
    check(again.code == 0 and "nothing has changed since the baseline of 20" in again.out, again)
    less = diff(one)
    check(less.code == 7 and len(less.out.splitlines()) >= 2, less)
    check(re.search(r"^gone +Second Card, PCI 0000:c1:00.0: cuda; last seen 20", less.out, re.M), less)
    check(re.search(r"^driver +Fake H100, .*: cuda:0 version 599.01, before 580.65.06$", less.out, re.M), less)
    accepted = diff(one, "--accept")
    check(accepted.code == 0 and accepted.out.startswith("gone ") and "accepted" in accepted.out, accepted)
    check(diff(one).code == 0)
    more = diff(two)
    check(more.code == 7 and re.search(r"^new +Second Card, PCI 0000:c1:00.0: cuda:1$", more.out, re.M), more)


def a_difference_is_reported_until_it_is_accepted_however_often_the_machine_is_listed(probe):
    place = Place()
    two, one = fake_cuda("devices 2; name 1 Second Card"), fake_cuda("devices 1")
    settings = place.settings(GPUHAL_BACKENDS="cuda")
    check(probe.run(**settings, **two).code == 0)  # this run writes the record with which the first --diff compares
    for _ in range(3):
        less = probe.run("--diff", **settings, **one)
        check(less.code == 7 and less.out.startswith("gone "), less)
        probe.run("--retry", "cuda", **settings, **one)
    result = probe.run("--diff", "--json", **settings, **one)
    document = json.loads(result.out)
    schema = validator(os.path.join(os.path.dirname(probe.schema_path), "gpuhal.diff-1.schema.json"))
    check(schema.is_valid(document) and list(document) == list(schema.schema["properties"]), list(schema.iter_errors(document)))
    [gone] = document["changes"]
    check(result.code == 7 and (gone["change"], gone["device"], gone["backend"], gone["name"]) == ("gone", None, "cuda", "Second Card"), document)
    check(document["baseline_at"] and document["accepted"] is False and document["not_compared"] == [], document)
    check(json.loads(probe.run("--diff", "--accept", "--json", **settings, **one).out)["accepted"] is True)
    none = probe.run("--diff", "--json", **settings, **one)
    check(none.code == 0 and json.loads(none.out)["changes"] == [], none)


def the_first_comparison_reports_what_an_earlier_run_found_missing(probe):
    place = Place()
    two, one = fake_cuda("devices 2; name 1 Second Card"), fake_cuda("devices 1")
    settings = place.settings(GPUHAL_BACKENDS="cuda")
    for machine in (two, one):  # the second run records the loss
        probe.run(**settings, **machine)
    for _ in range(2):
        result = probe.run("--diff", **settings, **one)
        check(result.code == 7 and re.search(r"^gone +Second Card.*: cuda; last seen 20", result.out, re.M), result)
    result = probe.run("--diff", **settings, **two)
    check(result.code == 0 and "nothing has changed" in result.out, result)
    check(probe.run("--diff", "--accept", **settings, **one).code == 0)
    result = probe.run("--diff", **settings, **one)
    check(result.code == 0 and not os.path.exists(os.path.join(place.path, "first")), result)
    result = probe.run("--diff", **settings, **two)
    check(result.code == 7 and result.out.startswith("new "), result)


def a_damaged_baseline_is_named_and_replaced_by_accepting(probe):
    place = Place()
    settings = place.settings(GPUHAL_BACKENDS="cpu")
    check(probe.run("--diff", **settings).code == 0)
    with open(os.path.join(place.path, "baseline", "registry"), "w", encoding="utf-8") as file:
        file.write("rubbish\n")
    result = probe.run("--diff", **settings)
    check(result.code == 1 and "baseline cannot be used" in result.err and "--diff --accept" in result.err, result)
    check(probe.run("--diff", "--accept", **settings).code == 0 and probe.run("--diff", **settings).code == 0)


def accepting_alone_is_a_mistake(probe):
    result = probe.run("--accept")
    check(result.code == 2 and "--accept" in result.err, result)


def devices_of_a_plugin_that_fails_are_not_gone(probe):
    place = Place()
    settings = place.settings() | fake_cuda("devices 1")
    check(probe.run("--diff", "--backends", "cuda", **settings).code == 0)
    result = probe.run("--diff", **settings | {"GPUHAL_BACKENDS": "cuda,crashing"}, plugins=("crashing",))
    check(result.code == 4 and "crashing: failed, so its devices are not compared" in result.err and "gone" not in result.out, result)


def devices_of_a_plugin_that_was_taken_away_are_not_compared(probe):
    text = registry_text(physical(1), interface(1, 1, backend="departed"), interface(2, 1, backend="departed"))
    result = probe.run("--diff", **Place(text).settings())
    check(result.err.count("departed: no plugin of this name is found, so its devices are not compared") == 1 and "gone" not in result.out, result)


def a_comparison_runs_plugins_with_cached_results_but_not_quarantined_ones(probe):
    place = Place()
    settings = place.settings() | {"GPUHAL_BACKENDS": "crashing"}

    def faults():
        return re.search(r"it crashed or exited, (\d+) times?", probe.run("--registry", **settings).out).group(1)
    check("crashing: failed" in probe.run("--diff", **settings, plugins=("crashing",)).err)
    again = probe.run("--diff", **settings, plugins=("crashing",))
    check(again.code == 4 and "crashing: quarantined, so its devices are not compared" in again.err and faults() == "1", again)
    asked = probe.run("--diff", "--retry", "crashing", **settings, plugins=("crashing",))
    check("crashing: failed" in asked.err and faults() == "2", asked)


def devices_of_the_processor_are_compared_by_name(probe):
    place = Place()

    def diff(sizes):
        return probe.run("--diff", "--backends", "cpu", GPUHAL_OPTIONS="cpu.devices=" + sizes, **place.settings())
    diff("5G")
    more = diff("5G,6G")
    check(more.code == 7 and re.search(r"^new +the host's processor: cpu:1 \(.+\)$", more.out, re.M), more)
    check(probe.run("--diff", "--accept", "--backends", "cpu", GPUHAL_OPTIONS="cpu.devices=5G,6G", **place.settings()).code == 0)
    less = diff("5G")
    check(less.code == 7 and re.search(r"^gone +the host's processor: cpu \(.+\);", less.out, re.M), less)
    check(probe.run("--diff", "--accept", "--backends", "cpu", GPUHAL_OPTIONS="cpu.devices=5G", **place.settings()).code == 0)
    more = diff("5G,6G")
    check(more.code == 7 and re.search(r"^back +the host's processor: cpu:1 \(.+\)$", more.out, re.M), more)


def what_cannot_be_kept_is_said(probe):
    settings = {"GPUHAL_REGISTRY": "/proc/nowhere", "COLUMNS": "400"}  # no folder can be created there
    result = probe.run("--diff", "--backends", "cpu", **settings)
    check(result.code == 0 and "no devices were recorded before" in result.out, result)
    check("the results are not cached: the record in /proc/nowhere cannot be written" in result.err, result)
    explained = probe.run("--explain", "--backends", "cpu", **settings)
    check("note: the results are not cached: the record in /proc/nowhere cannot be written\n" in explained.out, explained)
    kept = probe.run("--explain", "--backends", "cpu", **Place().settings())
    check("are not cached" not in kept.out, kept)
    if os.getuid() != 0:
        shown = probe.run("--registry", **settings)
        check(shown.code == 0 and "nothing is recorded; the directory cannot be written: Permission denied\n" in shown.out, shown)


# ---------------------------------------------------------------------------------------------- a cached list

def a_plugin_that_reported_a_failure_is_said_to_run_again(probe):
    settings = Place(registry_text(plugin("failing", state=4, stage=7, reason="it failed"))).settings(COLUMNS="400")
    [one] = json.loads(probe.run("--registry", "--json", **settings).out)["plugins"]
    check(one["valid"] is False and one["stale"], one)


def a_cached_result_is_explained_as_such_and_the_columns_stay(probe):
    settings = Place().settings() | {"GPUHAL_BACKENDS": "cpu"}
    titles = [probe.on_terminal(*options, columns=200, **settings).out.count("USED/TOTAL") for options in ((), (), ("--retry", "all"))]
    check(titles == [1, 1, 1], titles)
    check(re.search(r"^cpu: used, 1 device, cached from [-0-9]+ \d\d:\d\d$", probe.run("--explain", **settings).out, re.M))
    check(re.search(r"reached +done, cached from [-0-9]+ \d\d:\d\d; not run again now", probe.run("--explain", "cpu", **settings).out))
    check(re.search(r"^cpu +cached +ok$", probe.run("--timings", **settings).out, re.M))


def the_document_says_which_results_are_cached(probe):
    settings = Place().settings() | {"GPUHAL_BACKENDS": "cpu"}

    def cpu(*options):
        plugins = json.loads(probe.run("--json", *options, **settings).out)["plugins"]
        return next(plugin for plugin in plugins if plugin["name"] == "cpu")
    first, second = cpu(), cpu()
    check(not first["cached"] and first["probed_at"] and first["time_ms"], first)
    check(second["cached"] and second["probed_at"] == first["probed_at"] and second["time_ms"] is None, second)
    check(not cpu("--retry", "cpu")["cached"])


# ---------------------------------------------------------------------------------------------- links

# without the CPU, because its links would be measured too
PAIR = ("--links", "--backends", "cuda", "--device", "cuda:0,cuda:1")


def links_that_were_measured_are_listed_without_measuring(probe):
    place = Place()
    settings = place.settings() | fake_cuda("devices 2; link 0 1 nvlink 4 18")
    measured, result = probe.json(*PAIR, "--verify", **settings)
    check(result.code == 0, result)
    listed, result = probe.json(*PAIR, **settings)
    check(result.code == 0 and listed["links"], result)
    for old, new in zip(measured["links"], listed["links"]):
        check(old["cached"] is False and new["cached"] is True and new["verified"] is True, old, new)
        for key in ("path", "measured_bytes_per_second", "measured_latency_ns", "tried_at"):
            check(old[key] is not None and old[key] == new[key], key, old, new)
    result = probe.run(*PAIR, **settings)
    check(re.search(r"\^         cached, measured (between )?20", result.out) and "--verify measures again" in " ".join(result.out.split()), result)
    check("^" not in probe.run(*PAIR, "--verify", **settings).out)
    # The library does not watch the fake's script, so it lists the devices again only after a command.
    newer = place.settings() | fake_cuda("devices 2; link 0 1 nvlink 4 18; driver_text 599.01") | {"GPUHAL_ISOLATION": "always"}
    listed, result = probe.json(*PAIR, **newer)
    check(all(not link["cached"] and link["verified"] is None for link in listed["links"]), result)


def a_device_that_is_lost_while_it_is_verified_has_a_fault_in_the_record(probe):
    place = Place()
    settings = place.settings() | fake_cuda("devices 1; lose 0 cuMemsetD8Async 1 719")
    check(probe.run("--verify", "--backends", "cuda", **settings).code == 4)
    faults = probe.json("--registry", **settings)[0]["faults"]
    check([fault["kind"] for fault in faults] == ["lost"], faults)


def a_link_that_failed_is_listed_so_until_it_is_verified(probe):
    place = Place()
    lying = place.settings() | fake_cuda("devices 2; link 0 1 nvlink 4 18; silent 0 1")
    honest = place.settings() | fake_cuda("devices 2; link 0 1 nvlink 4 18")
    check(probe.run(*PAIR, "--verify", **lying).code == 4)
    result = probe.run(*PAIR, **honest)
    check(result.code == 0 and re.search(r"nvlink!", result.out), result)
    check("failed before with these drivers" in " ".join(result.out.split()), result)
    document, _ = probe.json(*PAIR, **honest)
    pair = next(link for link in document["links"] if (link["from"], link["to"]) == ("cuda:0", "cuda:1"))
    check(pair["verified"] is False and "it failed before" in pair["verify_error"], pair)
    check("failed, and not used" in probe.run("--registry", **honest).out)
    check(probe.run(*PAIR, "--verify", **honest).code == 0)
    check(all(link["verified"] for link in probe.json(*PAIR, **honest)[0]["links"]))


if __name__ == "__main__":
    main(globals())
