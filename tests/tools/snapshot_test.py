#!/usr/bin/env python3
"""Tests gpuhal-snapshot with PyTorch's memory snapshots. snapshot_test.py TEST|all PROGRAM."""

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import together


def entry(action, address, size):
    return {"action": action, "addr": address, "size": size, "stream": 16, "time_us": 1, "frames": [{"filename": "a.py", "line": 1, "name": "f"}]}


# A snapshot in the format of torch.cuda.memory._snapshot(). Blocks 0x100 and 0x900 existed before the trace. 0x100
# still exists, and 0x900 has been freed.
SNAPSHOT = {
    "segments": [{"device": 0, "address": 0x100, "total_size": 2048, "stream": 16, "segment_type": "small",
                  "blocks": [{"size": 512, "requested_size": 500, "state": "active_allocated", "frames": []},
                             {"size": 512, "requested_size": 400, "state": "active_allocated", "frames": []},
                             {"size": 1024, "requested_size": 0, "state": "inactive", "frames": []}]},
                 {"device": 1, "address": 0x9000, "total_size": 512, "stream": 0, "segment_type": "small",
                  "blocks": [{"address": 0x9000, "size": 512, "requested_size": 7, "state": "active_allocated", "frames": []}]}],
    "device_traces": [[entry("segment_alloc", 0x100, 2048), entry("free_requested", 0x900, 64), entry("free_completed", 0x900, 64),
                       entry("alloc", 0x300, 400), entry("oom", 0, 1 << 40), entry("alloc", 0x500, 9), entry("free_requested", 0x500, 9),
                       entry("free_completed", 0x500, 9), entry("snapshot", 0, 0)], []],
}


def run(program, data, *options, code=0):
    done = subprocess.run([sys.executable, program, "-", *options], input=data, capture_output=True, timeout=100)
    assert done.returncode == code, f"exit code {done.returncode}: {done.stderr}"
    return done.stdout.decode(), done.stderr.decode()


def a_snapshot_becomes_the_requests_of_its_device_with_what_was_there_before(program):
    text, errors = run(program, pickle.dumps(SNAPSHOT))
    assert text.splitlines() == ["Thread,Time,Action,Pointer,Size,Stream", "0,0,allocate,0x900,64,0x10", "0,0,allocate,0x100,500,0x10",
                                 "0,0,free,0x900,64,0x10", "0,0,allocate,0x300,400,0x10", "0,0,allocate,0x500,9,0x10",
                                 "0,0,free,0x500,9,0x10"] and not errors, (text, errors)
    text, errors = run(program, pickle.dumps(SNAPSHOT), "--device", "1")
    assert text.splitlines()[1:] == ["0,0,allocate,0x9000,7,0x0"], text
    assert "nothing was allocated on device 2" in run(program, pickle.dumps(SNAPSHOT), "--device", "2", code=1)[1]


class Harm:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def nothing_in_a_snapshot_is_executed(program):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made"
        errors = run(program, pickle.dumps({**SNAPSHOT, "x": Harm(path)}), code=1)[1]
        assert "posix.mkdir" in errors and not path.exists(), errors


def what_is_no_snapshot_is_refused_in_a_sentence(program):
    whole = pickle.dumps(SNAPSHOT)
    for data in (b"", b"a", whole[:-20], pickle.dumps([]), pickle.dumps({"segments": [], "device_traces": [[{"action": "alloc"}]]})):
        errors = run(program, data, code=1)[1]
        assert errors.startswith("gpuhal-snapshot: -: not a snapshot: ") and errors.count("\n") == 1, errors


if __name__ == "__main__":
    sys.exit(together.run(globals(), "program", sys.argv[1], lambda test: test(sys.argv[2])))
