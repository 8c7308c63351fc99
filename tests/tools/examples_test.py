#!/usr/bin/env python3
"""Tests the programs of examples/ that require no other program: FILE TEST FOLDER FAKES CUDA. TEST may be all
(together.py). CUDA is 1 if the programs' kernel was compiled for CUDA. Exit code 77 means skipped."""

import array
import json
import os
import re
import subprocess
import sys
import tempfile

import together
from probe_support import check

TWO_CARDS = "; ".join(f"pci {i} 0000:{i + 1}b:00.0; uuid {i} {i + 1:032x}" for i in range(2))


class Examples:
    def __init__(self, folder, fakes, cuda):
        self.folder, self.fakes, self.cuda = folder, fakes, cuda == "1"

    def run(self, program, *arguments, cards="", **variables):
        """Runs the program with the fake of CUDA and `cards`."""
        environment = {**os.environ, "POCL_DEVICES": "pthread basic", **variables}
        if cards:
            if program in ("group_size", "workers", "pipeline") and not self.cuda:
                sys.exit(77)
            environment.update(FAKE_CUDA=cards, GPUHAL_BACKENDS="cuda,cpu", GPUHAL_CUDA_LIBRARY=f"{self.fakes}/cuda/libcuda.so.1",
                               GPUHAL_NVML_LIBRARY=f"{self.fakes}/cuda/libnvidia-ml.so.1")
        return subprocess.run([os.path.join(self.folder, program), *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=100, check=False)


def workers_of(done):
    """Checks that all values of the workers are right. Returns each worker's device."""
    check(done.returncode == 0 and not done.stderr, done)
    return re.findall(r"^worker \d+: ([^:]+:\d+).*: 65536 of 65536 values right(?:, in \d+\.\d{3} ms)?$", done.stdout, re.M)


def steps_of(done):
    return dict(re.findall(r"^  (\w+): (.+)$", done.stdout, re.M))


def each_worker_of_the_strategy_cpu_computes_on_the_cpu(examples):
    devices = workers_of(examples.run("workers", "cpu"))
    check(devices and set(devices) == {"cpu:0"}, devices)


def a_strategy_of_the_program_gives_a_worker_to_each_device_with_kernels(examples):
    done = examples.run("workers", "each_device")
    devices = workers_of(done)
    check("cpu:0" in devices and len(set(devices)) == len(devices), done)
    check(done.stdout.startswith(f"strategy each_device: {len(devices)} workers\n"), done)


def workers_have_a_device_each_or_share_one(examples):
    cards = f"devices 2; {TWO_CARDS}"
    check(workers_of(examples.run("workers", "rank_per_device", cards=cards)) == ["cuda:0", "cuda:1"])
    check(workers_of(examples.run("workers", "single_device", cards=cards)) == ["cuda:0"])
    done = examples.run("workers", cards=cards, RANK="1", LOCAL_RANK="1")
    check(workers_of(done) == ["cuda:1"] and "started by torchrun" in done.stdout, done)
    done = examples.run("workers", "rank_per_device", cards=cards, RANK="2", LOCAL_RANK="2")
    check(done.returncode == 1 and "LOCAL_RANK" in done.stderr, done)


def pipeline_on(examples, *arguments, **where):
    done = examples.run("pipeline", *arguments, **where)
    check(done.returncode == 0 and not done.stderr, done)
    check("3 of 4 steps have a device" in done.stdout and "\n8 of 8 batches right, " in done.stdout and " in 2 slots\n" in done.stdout, done)
    steps = steps_of(done)
    check(steps["generate"] == "no device needed" and steps["combine"] == steps["refine"], done)
    return steps, done


def the_steps_of_a_pipeline_run_on_every_backend_that_is_named(examples):
    check(pipeline_on(examples)[0]["combine"] == "cpu:0", "without a GPU the CPU does it")
    for backend in ("cpu", "opencl", "vulkan"):
        listed = examples.run("workers", "each_device").stdout
        if f": {backend}:0" in listed:
            check(pipeline_on(examples, backend)[0]["combine"] == f"{backend}:0", backend)


def steps_of_one_group_share_a_device_and_the_last_one_has_another(examples):
    steps, done = pipeline_on(examples, cards=f"devices 2; {TWO_CARDS}; link 0 1 nvlink 4 18")
    check(steps == {"generate": "no device needed", "combine": "cuda:0", "refine": "cuda:0", "deliver": "cuda:1"}, done)
    check("cuda:1: 8388608 bytes from there\n" in done.stdout, done)


def nothing_runs_if_a_step_cannot_have_a_device(examples):
    done = examples.run("pipeline", "nosuch")
    check(done.returncode == 1 and not done.stdout and done.stderr.startswith("nothing was run: gpuhal_assign: "), done)
    for mistake in (("--trace",), ("--surprise", "x"), ("--output", "/dev/null", "--trace")):
        check(examples.run("pipeline", *mistake).returncode == 2, mistake)
    check('step "combine": no device satisfies its need' in done.stderr and "  cpu:0: is of another backend\n" in done.stderr, done)


def a_pipeline_writes_the_trace_of_its_queues(examples):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        pipeline_on(examples, "--trace", path, "cpu")
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        check(sum(event["ph"] == "X" and event["name"] == "saxpy" for event in events) == 16, events[:5])


def the_batches_of_a_pipeline_lie_in_their_order_in_its_file(examples):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "results")
        pipeline_on(examples, "--output", path, "cpu")
        with open(path, "rb") as file:
            results = array.array("f", file.read())
        wanted = [5.0 * (i % 1024 + batch) for batch in range(8) for i in range(1 << 18)]
        check(list(results) == wanted, len(results))
    done = examples.run("pipeline", "--output", "/dev/full/no", "cpu")
    check(done.returncode == 1 and done.stderr.count("batch ") == 8, done)


def each_group_size_computes_the_same_and_the_fastest_is_named(examples):
    listed = examples.run("workers", "each_device").stdout
    for device in [name for name in ("cpu:0", "opencl:0", "vulkan:0") if f": {name}" in listed]:
        done = examples.run("group_size", device)
        check(done.returncode == 0 and not done.stderr and "WRONG" not in done.stdout and "FAILED" not in done.stdout, done)
        sizes = re.findall(r"^ +(\d+)  \d+\.\d{3} ms$", done.stdout, re.M)
        check(len(sizes) > 1 and done.stdout.splitlines()[-1].removeprefix("best: ") in sizes, done)
        check(("one thread for each" in done.stdout) == (device == "cpu:0"), done)
        check(device == "cpu:0" or "      8192  refused: " in done.stdout, done)
    done = examples.run("group_size", "nosuch")
    check(done.returncode == 1 and not done.stdout and 'no device matches "nosuch"' in done.stderr, done)


def a_script_waits_until_a_value_has_passed_a_limit_the_time_is_over_or_the_device_is_lost(examples):
    for wait, code, words in ((("memory_free_bytes", "above", "1", "60"), 0, "cpu:0: memory_free_bytes is "),
                              (("memory_free_bytes", "below", "1", "0.3"), 3, "\nhealth: ok\n"),
                              (("pcie_width", "above", "999999", "60"), 1, "cpu:0 has no pcie_width"),
                              (("memory_free_bytes", "above", "1", "0"), 0, "cpu:0: memory_free_bytes is "),
                              (("nosuch", "above", "1"), 2, "expected a value"), (("memory_free_bytes", "above", "x"), 2, "expected a whole number"),
                              (("memory_free_bytes", "above", "-5"), 2, "expected a whole number"), (("memory_free_bytes", "over", "1"), 2, "above or below"),
                              (("memory_free_bytes", "above", "1", "abc"), 2, "expected a number of seconds"), (("memory_free_bytes",), 2, "usage: ")):
        done = examples.run("wait_for_value", "cpu", *wait, GPUHAL_BACKENDS="cpu")
        check(done.returncode == code and words in done.stdout + done.stderr, wait, done)


def a_script_learns_that_a_card_is_hot_or_lost(examples):
    wait = ("wait_for_value", "cuda:0", "temperature_millicelsius", "above", "90000", "60")
    done = examples.run(*wait, cards="devices 1; value 0 temperature 95")
    check(done.returncode == 0 and "is 95000, above 90000\n" in done.stdout and "95000 on average" in done.stdout, done)
    done = examples.run(*wait, cards="devices 1; value 0 temperature 60; fail nvml* 30+ 15")
    check(done.returncode == 4 and "\nhealth: lost, cuda:0: " in done.stdout, done)


def a_cache_of_models_loads_each_once_and_knows_what_comes_next(examples):
    done = examples.run("model_cache", GPUHAL_BACKENDS="cpu")
    check(done.returncode == 0 and not done.stderr and "WRONG" not in done.stdout, done)
    check(done.stdout.count("  loading model ") == 3 and done.stdout.count(" comes back\n") == 7, done)
    check("model 2: 1052672 bytes, on the device, in host memory; its weights begin with 18\n" in done.stdout and "block" not in done.stdout.split("\nmodel 0: ")[1].split("\ncpu")[0], done)
    check("12 requests, 11 loads, 7 from host memory, 97 at once; 8 blocks dropped" in done.stdout, done)


if __name__ == "__main__":
    sys.exit(together.run(globals(), "examples", sys.argv[1], lambda test: test(Examples(*sys.argv[2:]))))
