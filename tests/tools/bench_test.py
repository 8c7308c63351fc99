#!/usr/bin/env python3
"""Tests the output of gpuhal-bench on the CPU, which every machine has. Tests with the parameter `baseline` test
gpuhal-bench-baseline. Each call runs one test: bench_test.py TEST PROGRAM [ARGUMENT...]. No test checks measured
figures."""

import json
import os
import pty
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KEYS = ("device peer test path bytes bytes_per_second baseline_bytes_per_second ratio ratio_low ratio_high ratio_of_slower_side unit gpuhal baseline "
        "value value_low value_high budget ok software error").split()
WITH_STREAMS = ("call_overhead awaited_copy allocate_4kib open_backend helper_start write read copy upload readback "
                "batch batch_synchronize batch_awaited submit queued_copy synchronize event_to_fd fd_after_event "
                "file_to_device").split()
EVERYWHERE = ("sample sampler call_overhead lease allocate_4kib pool_threads_2 enumerate resident_memory open_all warm_listing write read copy upload readback share "
              "share_memory batch batch_awaited submit queued_copy synchronize event_to_fd file_to_device store_spill store_restore "
              "store_restore_file store_hit recording_76 recording_152 recording_513 recording_8x76 recording_28_values "
              "recording_4_values recording_4_buffers blocks_full blocks_serving blocks_training blocks_mean arena_full arena_serving arena_training "
              "place_64_on_6_latency place_64_on_6_throughput place_80_on_12_latency place_80_on_12_throughput plan_2000_items plan_100000_items").split()
MISTAKES = """2 --nonsense: --nonsense
2 surprise: surprise
2 14: --pairs 14
2 1000: --pairs 1000
2 many: --pairs many
2 2GiB: --sizes 1MiB,2GiB
2 0: --sizes 0
2 5miles: --sizes 5miles
2 -1: --sizes=-1
2 telemetry: --only call,telemetry
2 soon: --hang soon
2 0.01: --hang 0.01
2 =::=: --device =::=
2 --device: --device
2 --csv: --csv
2 staged: --only staged
5 cpu:77: --device cpu:77
2 /nowhere/a: --replay /nowhere/a
2 directory: --replay /"""


def run(program, *options, code=0, **more):
    done = subprocess.run([program, "--quick", *options], stdout=subprocess.PIPE, stderr=more.get("stderr", subprocess.PIPE), timeout=400)
    text = done.stdout.decode()
    assert done.returncode == code, f"exit code {done.returncode}: {text} {done.stderr}"
    return text


def results(program, *options):
    """Returns the rows of a complete run after checking its header and status."""
    header, *rows, last = map(json.loads, run(program, "--json", *options).splitlines())
    assert header["schema"] == "gpuhal.bench/2" and set(header["host"]) == {"name", "os", "kernel", "architecture", "cpu", "processors"}, header
    assert last == {"status": "passed", "held": 0, "missed": 0, "errors": 0}, last
    assert all(list(row) == KEYS and row["ok"] is None for row in rows), "a key is missing, or a quick run judged a budget"
    check_schema(header, *rows, last)
    return rows


def check_schema(*lines):
    """Checks every line against the schema if python3-jsonschema is installed."""
    docs = Path(__file__).resolve().parents[2] / "docs"
    schema, probe = (json.loads((docs / name).read_text(encoding="utf-8")) for name in ("gpuhal.bench-2.schema.json", "gpuhal.probe-2.schema.json"))
    assert schema["$defs"]["host"]["properties"] == probe["$defs"]["host"]["properties"], "probe and bench describe the machine alike"
    assert set(schema["$defs"]["row"]["required"]) == set(KEYS) and list(lines[0]["host"]) == list(schema["$defs"]["host"]["properties"])
    try:
        import jsonschema
    except ImportError:
        return
    jsonschema.Draft202012Validator.check_schema(schema)
    for line in lines:
        wrong = [f"{list(error.absolute_path)}: {error.message}" for error in jsonschema.Draft202012Validator(schema).iter_errors(line)]
        assert not wrong, (line, wrong)


def a_quick_run_prints_valid_json_about_every_group_and_compares_two_sides_with_the_slower_one(baseline):
    os.environ["POCL_DEVICES"] = "pthread"  # with two devices, pairs would take as long as all other tests together
    rows = results(baseline, "--baseline")
    tests = {row["test"] for row in rows}
    devices = {row["device"] for row in rows}
    expected = {*EVERYWHERE, *"launch_one_group launch_all_cores launch_triad launch_compute".split(),
                *("step launch launch_changing launch_offsets launch_recorded warm_program".split() if "opencl:0" in devices else []),
                *("launch_76 launch_76_submit launch_513_submit replay_8x76".split() if "vulkan:0" in devices else [])}
    assert expected <= tests, f"no row is about {expected - tests}"
    for row in rows:
        if row["test"].startswith(("file_to_device", "store_spill", "store_restore")) or row["path"] in ("staged", "shared"):
            assert row["ratio"] is None and row["ratio_of_slower_side"] > 0, row
    # The cost of a call is judged by its ratio to a reference in the same run. All other times are those of processes,
    # plans and thread wakeups, or a difference to a wait for which a ratio is judged too.
    calls = {row["test"] for row in rows if row["ratio"] is not None and row["unit"] == "ns"}
    assert {"call_overhead", "lease", "allocate_4kib", "allocate_pool", "launch_one_group", "sample"} <= calls, calls
    judged = {row["test"] for row in rows if row["value"] is not None and row["unit"] == "ns" and not row["test"].startswith(("place_", "plan_"))}
    assert judged <= {"fd_after_event", "enumerate", "helper_start", "warm_listing", "warm_probe"}, f"{judged} are judged by nanoseconds, which are true on one processor"


def a_quick_run_compares_every_row_with_direct_calls(baseline, device, reports=None):
    """Runs with a fake driver. `reports` is a folder for the reports of the fake CUDA. The fake NVML reads the memory
    in use from these reports."""
    if reports:
        shutil.rmtree(reports, ignore_errors=True)
        os.makedirs(reports)
        os.environ["FAKE_CUDA_REPORT"] = os.path.join(reports, "report")
    rows = results(baseline, "--baseline", "--device", device)
    tests = {row["test"] for row in rows}
    # The machine has no kernel files of AMD GPUs.
    expected = {*WITH_STREAMS, *"staging_memory share share_memory".split(), *(["device_memory"] if reports else [])}
    assert expected <= tests, f"no row is about {expected - tests}"
    compared = {row["test"] for row in rows if row["baseline"] is not None or row["baseline_bytes_per_second"] is not None}
    assert set(WITH_STREAMS) <= compared, f"{set(WITH_STREAMS) - compared} are compared with nothing"
    if reports:
        shutil.rmtree(reports)


def without_the_vendors_calls_a_run_has_gpuhals_figures_alone(program, device):
    rows = results(program, "--baseline", "--device", device)
    tests = {row["test"] for row in rows}
    expected = {*WITH_STREAMS, "share"} - {"helper_start", "batch_synchronize", "fd_after_event"}
    assert expected <= tests and "device_memory" not in tests, f"no row is about {expected - tests}"
    compared = {row["test"] for row in rows if row["path"] is None and (row["baseline"] or row["baseline_bytes_per_second"])}
    assert "call_overhead" in compared, "the plugin's own function is no call of a vendor"
    vendors = {"awaited_copy", "allocate_4kib", "open_backend", "write", "read", "copy", "upload", "readback", "batch", "submit", "queued_copy", "event_to_fd"}
    assert not compared & vendors, f"{compared & vendors} are compared, with what?"


def mistakes_on_the_command_line_are_named(program):
    for line in MISTAKES.splitlines():
        expected, options = line.split(": ", 1)
        code, word = expected.split(" ", 1)
        done = subprocess.run([program, *options.split()], capture_output=True, text=True, timeout=400)
        assert done.returncode == int(code) and word in done.stderr and not done.stdout, f"{options}: {done}"
        assert done.stderr.startswith("gpuhal-bench: ") and done.stderr.count("\n") <= 2, f"{options}: {done}"
        in_json = subprocess.run([program, "--json", *options.split()], capture_output=True, text=True, timeout=400)
        document = json.loads(in_json.stdout)
        check_schema(json.loads((Path(__file__).parent / "bench.jsonl").read_text(encoding="utf-8").splitlines()[0]), document)
        assert (in_json.returncode, in_json.stderr) == (done.returncode, done.stderr), f"{options}: {in_json}"
        assert document["error"]["code"] in ("usage", "not_found") and done.stderr.startswith(f"gpuhal-bench: {document['error']['message']}\n"), document
    hidden = subprocess.run([program, "--json"], capture_output=True, text=True, timeout=400, env=os.environ | {"GPUHAL_DEVICES": "nosuch:9"})
    error = json.loads(hidden.stdout)["error"]
    assert hidden.returncode == 5 and error["code"] == "not_found" and error["message"] in hidden.stderr, hidden


def a_run_that_is_stopped_leaves_the_lines_that_it_had(program):
    running = subprocess.Popen([program, "--json", "--device", "cpu:0", "--only", "copy"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lines = [running.stdout.readline() for _ in range(3)]
    running.kill()
    lines += running.communicate()[0].splitlines()
    header, *rows = map(json.loads, lines)
    assert header["schema"] == "gpuhal.bench/2" and all(list(row) == KEYS for row in rows), lines
    assert [row["test"] for row in rows[:2]] == ["write", "read"], lines


def results_that_cannot_be_written_fail_the_run(program):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([program, "--quick", "--json", "--device", "cpu:0", "--only", "call"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1 and b"writing the results" in done.stderr, done


def ratios_are_there_with_a_baseline_and_null_without(program):
    options = ("--device", "cpu:0", "--only", "copy,call")
    for row in results(program, *options):
        assert row["ratio"] is None and row["baseline"] is None and row["baseline_bytes_per_second"] is None, row
        assert (row["bytes"] is None) == (row["bytes_per_second"] is None), row
    for row in results(program, "--baseline", *options):
        if row["bytes"] is not None:
            assert row["ratio_low"] <= row["ratio"] <= row["ratio_high"] and row["ratio_of_slower_side"] is None, row
        else:
            assert row["ratio_low"] <= row["ratio"] <= row["ratio_high"] and row["baseline"] > 0 and row["value"] is None, row


def the_table_fits_into_80_columns_and_marks_software_devices(program):
    for options in (("--only", "copy,call,open,queue", "--device", "cpu:0"), ("--only", "copy,call,blocks", "--baseline")):
        text = run(program, *options)
        for line in text.splitlines():
            assert len(line) <= 80, f"{len(line)} columns: {line}"
        assert "cpu:0" in text and "256 B" in text, text
        assert ("*: a software device" in text) == bool(re.search(r"^\w+:\d+\*", text, re.M)), text


def the_table_has_a_block_for_each_device_and_each_pair(program):
    os.environ.update(GPUHAL_BACKENDS="cpu", GPUHAL_OPTIONS="cpu.devices=1G,1G")
    text = run(program, "--baseline", "--only", "call,pairs")
    lines = text.splitlines()
    assert all(line == line.rstrip() and len(line) <= 80 for line in lines), text
    assert [line for line in lines if re.match(r"cpu:\d", line)] == ["cpu:0", "cpu:1", "cpu:0 and cpu:1", "cpu:1 and cpu:0"], text
    assert "limit" not in text and len(re.findall("^row +size +gpuhal +baseline +result +95 % interval$", text, re.M)) == 4, text
    assert re.search(r"^copy, \w+ +1 MiB +\S+/s", text, re.M) and len(re.findall("^staging_memory ", text, re.M)) == 2, text


def what_is_measured_is_shown_on_a_terminal_and_nowhere_else(program):
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
    assert "measuring cpu:0 write 64 KiB ..." in lines and "measuring cpu:0 call_overhead  ..." in lines, shown
    assert max(map(len, lines)) <= 80, shown
    silent = subprocess.run([program, "--quick", "--device", "cpu:0", "--only", "copy"], capture_output=True, timeout=400)
    assert b"measuring" not in silent.stderr, silent.stderr


def a_driver_that_hangs_ends_the_run_with_a_sentence(program, plugins):
    os.environ.update(GPUHAL_PLUGIN_PATH=os.path.join(plugins, "halting"), GPUHAL_BACKENDS="halting")
    for options in ([], ["--json"]):
        done = subprocess.run([program, "--quick", "--hang", "0.3", "--only", "copy", *options], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "halting:0 copy: failed: a call did not return within 0.3 s" in done.stderr, done
    header, failed, last = map(json.loads, done.stdout.splitlines())
    assert failed["device"] == "halting:0" and failed["error"] and last["status"] == "failed" and last["errors"] == 1, done


def copies_over_a_link_are_compared_with_the_vendors_own_call(baseline, backend):
    rows = results(baseline, "--baseline", "--only", "pairs", "--device", f"{backend}:0")
    linked = [row for row in rows if row["test"] == "copy" and row["path"] == "peer"]
    assert {(row["device"], row["peer"]) for row in linked} == {(f"{backend}:{i}", f"{backend}:{1 - i}") for i in (0, 1)}, rows
    for row in linked:
        assert row["baseline_bytes_per_second"] > 0 and row["ratio_low"] <= row["ratio"] <= row["ratio_high"], row
        assert row["ratio_of_slower_side"] is None, row


def opening_with_all_plugins_is_compared_with_the_direct_calls_of_every_vendor_found(baseline, backend):
    rows = results(baseline, "--baseline", "--only", "open")
    by_test = {row["test"]: row for row in rows}
    assert by_test["open_all"]["device"] == "all" and by_test["open_all"]["ratio"] > 0 and by_test["open_all"]["baseline"] > 0, rows
    for test in ("open_backend", "helper_start"):
        assert by_test[test]["device"] == f"{backend}:0" and by_test[test]["baseline"] > 0, rows
    assert by_test["warm_listing"]["gpuhal"] > 0 and by_test["warm_listing"]["unit"] == "ns", rows


REPLAY = "replay replay_refused replay_used replay_reserved replay_overhead replay_fragments replay_peak".split()
CSV = "Thread,Time,Action,Pointer,Size,Stream\n"
TRACE = '{"schema":"gpuhal.pool-trace/1","library_version":"0.2.0"}\n'
ROW = '{"operation":"allocate","result":"ok","pool":1,"buffer":1,"queue":null,"bytes":100}\n'


def replay(program, text, *options, code=0):
    """Returns the rows by name, and the text on standard error."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(text if isinstance(text, bytes) else text.encode())
        file.flush()
        done = subprocess.run([program, "--quick", "--json", "--replay", file.name, *options], capture_output=True, text=True, timeout=300)
        assert done.returncode == code, f"exit code {done.returncode}: {done}"
        return {row["test"]: row for row in map(json.loads, done.stdout.splitlines()[1:-1])}, done.stderr.replace(file.name, "FILE")


def csv(*rows, end="\n"):
    return CSV + end.join(f"1,10:00:00.000001,{row}" for row in rows) + end


def a_replay_says_what_the_requests_cost_and_what_they_take(program):
    folder = os.path.dirname(os.path.abspath(__file__))
    for name, used, lost in (("replay.csv", 68, 0), ("pool_trace.jsonl", 68, 1)):
        with open(os.path.join(folder, name), "rb") as file:
            text = file.read()
        for options in ((), ("--baseline",), ("--device", "cpu:0")):
            rows, errors = replay(program, text, *options)
            assert list(rows) == REPLAY and all(list(row) == KEYS and row["device"] == "cpu:0" for row in rows.values()), rows
            assert rows["replay"]["gpuhal"] > 0 and (rows["replay"]["ratio"] is not None) == (options == ("--baseline",)), rows
            assert rows["replay_refused"]["gpuhal"] == 0 and rows["replay_used"]["gpuhal"] == used, rows
            assert rows["replay_reserved"]["gpuhal"] == 8192 and rows["replay_overhead"]["gpuhal"] > 0, rows
            assert errors.count("\n") == lost, errors


def a_replay_states_the_peak_of_what_is_reserved_also_where_it_comes_after_that_of_use(program):
    os.environ["GPUHAL_BACKENDS"] = "cpu"
    # the first two use one segment of 32 MiB each; the third uses another segment after both have been freed
    a, b, c = 30 << 20, 30 << 20, 33 << 20
    rows, errors = replay(program, csv(f"allocate,0x1,{a},0", f"allocate,0x2,{b},0", f"free,0x1,{a},0", f"free,0x2,{b},0", f"allocate,0x3,{c},0"))
    assert round(rows["replay_overhead"]["gpuhal"], 1) == 6.7 and round(rows["replay_peak"]["gpuhal"], 1) == 61.7 and not errors, (rows, errors)


def what_a_replay_cannot_match_or_have_is_counted(program):
    os.environ["GPUHAL_BACKENDS"] = "cpu"
    huge = 1 << 63
    cases = ((csv("allocate,0x10,100,0", "free,0x10,100,0", "free,0x10,100,0", "free,0x20,7,0x1"), 0, [2]),
             (csv(f"allocate,0x10,{huge},0", f"allocate,0x20,{2 * huge - 1},0", "allocate,0x30,1,0", f"free,0x10,{huge},0"), 2, []),
             (csv("allocate,0x10,0,0", "allocate,0x20,0,0", "allocate failure,(nil),100,0", "allocate,0x30,5,0", "free,0x10,0,0"), 0, []),
             (csv("allocate,0x10,100,0", "allocate,0x10,200,0", "free,0x10,200,0"), 0, [1]),
             (csv("allocate,0x10,100,0", "free,0x10,100,0", end="\r\n").replace("Stream\n", "Stream\r\n"), 0, []),
             (csv("allocate,16,100,0", "free,0x10,100,0")[:-1], 0, []),
             (csv(*(f"allocate,{n:#x},100,{n:#x}" for n in range(1, 1000))), 0, []),
             (TRACE + ROW.replace("100", str(huge - 1)) + ROW.replace(":1,", ":2,") + ROW.replace("allocate", "release") * 2, 1, [1]),
             (TRACE + ROW.replace(":100", ":0") + '{"lost":9}\n' + ROW.replace("allocate", "future"), 1, [9]))
    for text, refused, notes in cases:
        rows, errors = replay(program, text)
        assert rows["replay_refused"]["gpuhal"] == refused and rows["replay"]["error"] is None, (text[:500], rows)
        counts = re.findall(r"not measured: (\d+) (lines|operations)", errors)
        assert [int(count) for count, _ in counts] == notes, (text[:500], errors)


def a_malformed_line_of_a_replay_is_named_by_its_number(program):
    os.environ["GPUHAL_BACKENDS"] = "cpu"
    good = csv("allocate,0x10,100,0")
    cases = ((1, ""), (1, "\n\nhello\n"), (1, CSV[1:]), (1, "{}\n"), (1, '{"schema":"gpuhal.pool-trace/2"}\n'), (1, "[]\n"), (1, CSV), (1, TRACE),
             (3, good + "1,2,3\n"), (3, good + "1,2,free,0x10,100,0,7\n"), (3, good + "1,2,free,x10,100,0\n"), (3, good + "1,2,free,0x,100,0\n"),
             (3, good + "1,2,free,0x10,-100,0\n"), (3, good + "1,2,free,0x10,18446744073709551616,0\n"), (3, good + "1,2,free,0x10,1e3,0\n"),
             (3, good + "1,2,free,0x11111111111111111,1,0\n"), (3, good + "1,2,reallocate,0x10,100,0\n"), (3, good + "1,2,free,0x10,100,\n"),
             (4, good + "\n1,2,free,0x10,100," + "0" * 32), (3, good + "\x00\n"), (3, good + "1," * 5000 + "\n"), (3, TRACE + ROW + "7\n"),
             (3, TRACE + ROW + ROW[:-3]), (3, TRACE + ROW + ROW.replace(":100", ":-100")), (3, TRACE + ROW + ROW.replace("null", '"x"')),
             (3, TRACE + ROW + ROW.replace(":100", ":1e2")), (3, TRACE + ROW + ROW.replace('"pool"', '"tool"')), (3, TRACE + ROW + "[" * 4000 + "\n"),
             (3, TRACE + ROW + ROW.replace("allocate", "use")), (3, TRACE + ROW + ROW.replace(":100", ":9223372036854775808")))
    for line, text in cases:
        rows, errors = replay(program, text, code=2)
        assert not rows and errors.count("\n") == 1, (text[:500], errors)
        assert errors.startswith(f"gpuhal-bench: FILE:{line}: ") or (errors.startswith("gpuhal-bench: FILE: it has no allocation") and line == 1) or \
            (text.startswith("\n") and errors.startswith("gpuhal-bench: FILE:3: ")), (text[:500], errors)


def no_bytes_of_a_replay_crash_it(program):
    os.environ["GPUHAL_BACKENDS"] = "cpu"
    chance = random.Random(14)
    texts = [good.encode() for good in (csv("allocate,0x10,100,0", "free,0x10,100,0") * 3, TRACE + ROW + ROW.replace("allocate", "use"))]
    for _ in range(40):
        replay_any(program, chance.randbytes(chance.randrange(5000)))
        text = bytearray(chance.choice(texts))
        for _ in range(chance.randrange(1, 4)):
            text[chance.randrange(len(text))] = chance.randrange(256)
        replay_any(program, bytes(text))


def replay_any(program, text):
    done = subprocess.run([program, "--quick", "--json", "--replay", "-"], input=text, capture_output=True, timeout=400)
    assert done.returncode in (0, 2), (text, done)


def a_replay_of_many_lines_ends(program):
    pairs = [f"{action},{n + 1:#x},{256 + n % 4096},0x{n % 3}" for n in range(100000) for action in ("allocate", "free")]
    rows, errors = replay(program, csv(*pairs))
    assert list(rows) == REPLAY and rows["replay_refused"]["gpuhal"] == 0 and not errors, (rows, errors)


def a_run_leaves_no_temporary_registry_behind_and_the_users_own_alone(program):
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as registry:
        os.environ.update(TMPDIR=place, GPUHAL_REGISTRY="none", XDG_STATE_HOME=registry, GPUHAL_BACKENDS="cpu")
        rows = results(program, "--only", "open")
        assert any(row["test"] == "warm_listing" and row["error"] is None for row in rows), rows
        assert os.listdir(place) == [] and os.listdir(registry) == [], (os.listdir(place), os.listdir(registry))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
