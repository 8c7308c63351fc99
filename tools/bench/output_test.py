#!/usr/bin/env python3
"""What gpuhal-bench prints and draws, on the processor alone, which is everywhere. One test a run: output_test.py TEST PROGRAM.
Figures are never part of a test."""

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"
KEYS = ("device peer test path bytes gib_per_s baseline_gib_per_s ratio ratio_low ratio_high ratio_of_slower_half unit ours baseline "
        "value value_low value_high budget ok software error").split()
FONT_SIZES = {"title": 19, "group": 15, "panel": 12, "note": 11.5, "key": 11.5, "tick": 10, "unit": 10, "name": 10.5}
LETTER = 0.62  # Width of a letter of a common font over its size, rather more than less.


def run(program, *options, code=0, **more):
    done = subprocess.run([program, "--quick", *options], stdout=subprocess.PIPE, stderr=more.get("stderr", subprocess.PIPE), timeout=100)
    text = done.stdout.decode()
    assert done.returncode == code, f"exit code {done.returncode}: {text} {done.stderr}"
    return text


def drawn(program, *options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "curves.svg")
        document = json.loads(run(program, "--json", "--svg", path, *options))
        return document["results"], xml.parse(path).getroot()


def csv_has_the_keys_of_the_json_as_columns_and_a_row_for_each_result(program):
    options = ("--device", "cpu:0", "--only", "copy,call,file", "--baseline")
    rows = list(csv.reader(io.StringIO(run(program, "--csv", *options))))
    results = json.loads(run(program, "--json", *options))["results"]
    assert rows[0] == KEYS, rows[0]
    assert list(results[0]) == KEYS, results[0]
    assert len(rows) == len(results) + 1, f"{len(rows)} lines for {len(results)} results"
    for row, result in zip(rows[1:], results):
        assert len(row) == len(KEYS), row
        for key, field in zip(KEYS, row):
            value = result[key]
            expected = {type(None): "", str: value, bool: str(value).lower(), int: str(value)}.get(type(value))
            if expected is not None:
                assert field == expected, f"{key}: {field} is not {expected}"
            else:
                float(field)


def ratios_are_there_with_a_baseline_and_null_without(program):
    options = ("--json", "--device", "cpu:0", "--only", "copy,call")
    for row in json.loads(run(program, *options))["results"]:
        assert row["ratio"] is None and row["baseline"] is None and row["baseline_gib_per_s"] is None, row
        assert (row["bytes"] is None) == (row["gib_per_s"] is None), row
    for row in json.loads(run(program, "--baseline", *options))["results"]:
        if row["bytes"] is not None:
            assert row["ratio_low"] <= row["ratio"] <= row["ratio_high"] and row["ratio_of_slower_half"] is None, row
        else:
            assert row["test"] == "call_overhead" and row["ratio"] is None and row["baseline"] > 0, row


def what_goes_in_two_halves_is_compared_with_the_slower_one(program):
    rows = json.loads(run(program, "--json", "--baseline", "--only", "file,pairs"))["results"]
    for row in rows:
        if row["test"] == "file_to_device" or row["path"] in ("staged", "shared"):
            assert row["ratio"] is None and row["ratio_of_slower_half"] > 0, row
    assert any(row["test"] == "file_to_device" for row in rows)


def each_curve_has_a_panel_with_a_line_a_point_for_each_size_and_a_name(program):
    for baseline in ((), ("--baseline",)):
        results, root = drawn(program, "--device", "cpu:0", "--only", "copy", *baseline)
        assert root.tag == SVG + "svg", root.tag
        panels = [g for g in root.iter(SVG + "g") if any("panel" == text.get("class") for text in g.findall(SVG + "text"))]
        tests = list(dict.fromkeys(row["test"] for row in results))
        assert len(panels) == len(tests), f"{len(panels)} panels for {tests}"
        for panel, test in zip(panels, tests):
            sizes = [row["bytes"] for row in results if row["test"] == test]
            lines = [path.get("d") for path in panel.findall(SVG + "path") if path.get("class") in ("ours", "base")]
            assert len(lines) == (2 if baseline else 1), lines
            assert all(len(re.findall("[ML]", line)) == len(sizes) for line in lines), lines
            names = [text.text for text in panel.findall(SVG + "text") if text.get("class").startswith("name")]
            assert sorted(names) == (["baseline", "libgpuhal"] if baseline else ["libgpuhal"]), names
            texts = [text.text for text in panel.findall(SVG + "text")]
            assert "GiB/s" in texts and "size of a copy" in texts and "256 B" in texts, texts


def boxes(element, x=0, y=0):
    """Every text with its place on the page: left, top, right, bottom, words."""
    moved = re.match(r"translate\(([-\d.]+) ([-\d.]+)\)", element.get("transform", ""))
    if moved:
        x, y = x + float(moved.group(1)), y + float(moved.group(2))
    for child in element:
        if child.tag == SVG + "text":
            size = FONT_SIZES[child.get("class").split()[0]]
            width = len(child.text) * size * LETTER
            left = x + float(child.get("x")) - width * {"middle": 0.5, "end": 1}.get(child.get("text-anchor"), 0)
            base = y + float(child.get("y"))
            yield left, base - size * 0.8, left + width, base + size * 0.2, child.text
        yield from boxes(child, x, y)


def no_text_of_the_drawing_lies_over_another_or_outside(program):
    for options in (("--only", "copy,pairs"), ("--device", "cpu:0", "--only", "copy", "--sizes", "1,7,256,1K,4K,16K,64K,256K,1M,4M,16M"),
                    ("--only", "copy", "--sizes", "1M")):
        root = drawn(program, "--baseline", *options)[1]
        width, height = float(root.get("width")), float(root.get("height"))
        texts = list(boxes(root))
        assert len(texts) > 10
        for i, (left, top, right, bottom, words) in enumerate(texts):
            assert left >= 0 and top >= 0 and right <= width and bottom <= height, f"{words} is outside"
            for other in texts[i + 1:]:
                apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
                assert apart, f"{words} and {other[4]} lie over each other"


def the_drawing_is_whole_also_without_a_curve(program):
    root = drawn(program, "--device", "cpu:0", "--only", "call")[1]
    assert "No copies over sizes were measured." in [text.text for text in root.iter(SVG + "text")]


def the_table_fits_into_80_columns_and_marks_software_devices(program):
    for options in (("--only", "copy,call,open,queue"), ("--baseline",)):
        text = run(program, *options)
        for line in text.splitlines():
            assert len(line) <= 80, f"{len(line)} columns: {line}"
        assert "cpu:0" in text and "256 B" in text, text
        assert ("* a software device" in text) == bool(re.search(r"^\w+:\d+\*", text, re.M)), text


def the_table_between_devices_names_both_and_says_what_each_column_is(program):
    os.environ.update(GPUHAL_BACKENDS="cpu", GPUHAL_OPTIONS="cpu.devices=1G,1G")
    text = run(program, "--baseline", "--only", "pairs,share")
    lines = text.splitlines()
    assert all(line == line.rstrip() for line in lines), text
    memory = re.findall(r"^(cpu:\d)\*? +(cpu:\d)\*? +staging_memory ", text, re.M)
    assert sorted(memory) == [("cpu:0", "cpu:1"), ("cpu:1", "cpu:0")], text
    heading = next(line for line in lines if line.startswith("from "))
    paths = [line for line in lines if re.search(r" (staged|shared|peer|local)$", line)]
    assert paths and heading.endswith("least, way"), text
    for line in paths:
        assert line.rindex(" ") + 1 == heading.rindex("least, way"), f"{heading}\n{line}"
    assert (" half " in heading) == ("\nhalf: " in text), text


def progress_is_a_bar_on_a_terminal_and_nothing_elsewhere(program):
    master, slave = pty.openpty()
    run(program, "--device", "cpu:0", "--only", "copy,call", stderr=slave)
    os.close(slave)
    shown = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    lines = [re.sub(r"\x1b\[K", "", line) for line in shown.decode().split("\r")]
    percents = [int(found.group(1)) for line in lines if (found := re.match(r"\[#*\.*\] +(\d+) %", line))]
    assert len(percents) > 5 and percents == sorted(percents) and percents[-1] <= 100, shown
    assert max(map(len, lines)) <= 80, shown
    silent = subprocess.run([program, "--quick", "--device", "cpu:0", "--only", "copy"], capture_output=True, timeout=100)
    assert b"%" not in silent.stderr, silent.stderr


def copies_over_a_link_are_held_against_the_vendors_own_call(program, backend):
    rows = json.loads(run(program, "--json", "--baseline", "--only", "pairs", "--device", f"{backend}:0"))["results"]
    linked = [row for row in rows if row["test"] == "copy" and row["path"] == "peer"]
    assert {(row["device"], row["peer"]) for row in linked} == {(f"{backend}:{i}", f"{backend}:{1 - i}") for i in (0, 1)}, rows
    for row in linked:
        assert row["baseline_gib_per_s"] > 0 and row["ratio_low"] <= row["ratio"] <= row["ratio_high"], row
        assert row["ratio_of_slower_half"] is None, row


def opening_with_all_plugins_is_held_against_the_direct_calls_of_every_vendor_found(program, backend):
    rows = json.loads(run(program, "--json", "--baseline", "--only", "open"))["results"]
    by_test = {row["test"]: row for row in rows}
    assert by_test["open_all"]["device"] == "all" and by_test["open_all"]["ratio"] > 0 and by_test["open_all"]["baseline"] > 0, rows
    for test in ("open_backend", "helper_start"):
        assert by_test[test]["device"] == f"{backend}:0" and by_test[test]["baseline"] > 0, rows
    assert by_test["warm_listing"]["ours"] > 0 and by_test["warm_listing"]["unit"] == "ns", rows
    assert by_test["warm_touched"]["ours"] == 0 and by_test["warm_touched"]["unit"] == "count", rows


def a_run_leaves_no_temporary_registry_behind_and_the_users_own_alone(program):
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as registry:
        os.environ.update(TMPDIR=place, GPUHAL_REGISTRY="none", XDG_STATE_HOME=registry)
        rows = json.loads(run(program, "--json", "--only", "open"))["results"]
        assert any(row["test"] == "warm_listing" and row["error"] is None for row in rows), rows
        assert os.listdir(place) == [] and os.listdir(registry) == [], (os.listdir(place), os.listdir(registry))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
