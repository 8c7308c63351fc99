#!/usr/bin/env python3
"""Tests the drawings of gpuhal-plot with recorded results and traces. plot_test.py TEST|all PROGRAM RESULTS. Exit code
77 means that matplotlib is missing."""

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from collections import namedtuple
from importlib.util import find_spec
from pathlib import Path

import together

SVG = "{http://www.w3.org/2000/svg}"
Plot = namedtuple("Plot", "program results place")


def run(plot, *options, code=0, text=None, **environment):
    done = subprocess.run([sys.executable, plot.program, *map(str, options)], input=text, capture_output=True, text=True, timeout=100,
                          env={**os.environ, "MPLCONFIGDIR": str(plot.place), **environment})
    assert done.returncode == code, f"exit code {done.returncode}: {done.stderr}"
    return done


def needs_matplotlib():
    if find_spec("matplotlib") is None:
        print("skipped: matplotlib is missing")
        sys.exit(77)


def drawn(plot, text):
    """Returns all words of the drawing."""
    run(plot, "-", plot.place / "a.svg", text=text)
    return ["".join(element.itertext()).strip() for element in xml.parse(plot.place / "a.svg").getroot().iter(SVG + "text")]


def each_device_and_direction_and_each_pair_of_devices_has_a_panel(plot):
    needs_matplotlib()
    words = drawn(plot, plot.results.read_text())
    for title in ("cpu:0: write", "cpu:0: read", "opencl:0 to opencl:1*: staged"):
        assert words.count(title) == 1, f"{title}: {words}"
    assert words.count("gpuhal") == 3 and words.count("direct calls") == 2 and words.count("slower side alone") == 1, words
    assert words.count("GiB/s") == 3 and words.count("256 B") == 3 and words.count("4 MiB") == 3, words
    assert any(word.startswith("* a software device") for word in words), words
    assert "libgpuhal 0.2.0 on machine: a processor, 2 processors" in words, words


def without_a_baseline_the_curves_of_gpuhal_are_drawn_alone(plot):
    needs_matplotlib()
    lines = [line for line in plot.results.read_text().replace('"baseline_bytes_per_second":', '"baseline_bytes_per_second":null,"x":').splitlines()
             if '"opencl' not in line]
    words = drawn(plot, "\n".join(lines))
    assert words.count("gpuhal") == 2 and "direct calls" not in words and not any("software" in word for word in words), words


def what_a_stopped_run_left_is_drawn_and_named_so(plot):
    needs_matplotlib()
    words = drawn(plot, "[driver] says {\n7\n" + plot.results.read_text().split('{"status"')[0][:-300])
    assert "cpu:0: write" in words and any("; stopped before its end" in word for word in words), words


def the_picture_is_a_png_where_its_name_says_so(plot):
    needs_matplotlib()
    run(plot, plot.results, plot.place / "a.png")
    assert (plot.place / "a.png").read_bytes().startswith(b"\x89PNG"), "it is no PNG"


def trace_of(recorded):
    """Returns the lines of a recorded trace except the first one."""
    return recorded.results.with_name("pool_trace.jsonl").read_text().splitlines(keepends=True)


def pools_of_a_trace_are_drawn_over_time_with_a_map_of_their_segments(plot):
    needs_matplotlib()
    words = drawn(plot, "".join(trace_of(plot)))
    assert "libgpuhal 0.2.0: pools over time; 3 operations were overwritten" in words, words
    for word, count in (("pool 1 on cpu:0", 1), ("pool 2 on cpu:0", 1), ("used", 2), ("reserved", 2), ("free", 2), ("refused", 1), ("MiB of all segments", 2)):
        assert words.count(word) == count, f"{word}: {words}"
    boxes = xml.parse(plot.place / "a.svg").getroot().findall(f".//{SVG}g[@id='PolyCollection_1']/*")
    assert len(boxes) == 4, "pool 1 has had four buffers"


def a_trace_without_its_beginning_and_one_that_was_cut_off_are_drawn(plot):
    needs_matplotlib()
    first, *lines = trace_of(plot)
    for some in (lines[8:], [line for line in lines if '"grow"' not in line], lines[:6] + [lines[6][:50]], lines[1:2]):
        assert "pool 1 on cpu:0" in drawn(plot, first + "".join(some)), some


def a_trace_with_many_buffers_has_no_map(plot):
    needs_matplotlib()
    first, *lines = trace_of(plot)
    taken = next(line for line in lines if '"allocate","result":"ok"' in line)
    many = [taken.replace('"buffer":1,', f'"buffer":{number},') for number in range(2001)]
    for count, maps in ((2000, 1), (2001, 0)):
        assert drawn(plot, first + "".join(many[:count])).count("MiB of all segments") == maps, count


def what_cannot_be_drawn_is_named(plot):
    needs_matplotlib()
    header = plot.results.read_text().splitlines()[0]
    picture = plot.place / "a.svg"
    for code, word, options, text in ((1, "no copies over sizes", ("-", picture), header), (1, "gpuhal.bench/2", ("-", picture), '{"schema":"x"}'),
                                      (1, "no operations", ("-", picture), trace_of(plot)[0]),
                                      (1, "is no operation", ("-", picture), trace_of(plot)[0] + '{"operation":"grow","pool":"x","time_ns":1}'),
                                      (1, "/nowhere/a", ("/nowhere/a", picture), None), (1, "/nowhere/a.svg", (plot.results, "/nowhere/a.svg"), None)):
        done = run(plot, *options, code=code, text=text)
        assert word in done.stderr and done.stderr.count("\n") == 1 and not picture.exists(), done


def mistakes_on_the_command_line_are_named(plot):
    for word, options in (("a.pdf", (plot.results, "a.pdf")), ("PICTURE", (plot.results,)), ("--nonsense", (plot.results, "a.svg", "--nonsense"))):
        assert word in run(plot, *options, code=2).stderr, word


def without_matplotlib_one_sentence_says_so(plot):
    (plot.place / "matplotlib.py").write_text("raise ImportError\n")
    done = run(plot, plot.results, plot.place / "a.svg", code=2, PYTHONPATH=str(plot.place))
    assert "matplotlib is missing" in done.stderr and done.stderr.count("\n") == 1 and not (plot.place / "a.svg").exists(), done


def main(test):
    with tempfile.TemporaryDirectory() as place:
        test(Plot(sys.argv[2], Path(sys.argv[3]), Path(place)))


if __name__ == "__main__":
    sys.exit(together.run(globals(), "plot", sys.argv[1], main))
