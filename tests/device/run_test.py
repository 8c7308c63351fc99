#!/usr/bin/env python3
"""Tests tests/device/run.sh as users run it, and the build that it uses. Each call runs one test: run_test.py TEST
SOURCE BUILD WORK CMAKE GENERATOR COMPILER."""

import json
import os
import resource
import shutil
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path

try:
    import jsonschema
except ImportError:
    jsonschema = None


class Here:
    def __init__(self, source, build, work, cmake, generator, compiler):
        self.source, self.build, self.work = Path(source), Path(build), Path(work)
        self.cmake, self.generator, self.compiler = cmake, generator, compiler


def expect(truth, sentence, more=""):
    if not truth:
        sys.exit(f"{sentence}\n{more}")


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def command_of(here, out, *arguments):
    return ["sh", str(here.source / "tests/device/run.sh"), "--out", str(out), *map(str, arguments)]


def read_report(here, out):
    report = json.loads((out / "report.json").read_text(encoding="ascii"))
    if jsonschema:
        schema = json.loads((here.source / "tests/device/report.schema.json").read_text(encoding="utf-8"))
        complaints = [f"{list(e.absolute_path)}: {e.message}" for e in jsonschema.Draft202012Validator(schema).iter_errors(report)]
        expect(not complaints, "the report breaks its schema", "\n".join(complaints))
    for name in ("report.md", "log.txt"):
        expect((out / name).stat().st_size > 100, f"{name} is missing or all but empty")
    return report


def run_script(here, out, *arguments, **environment):
    """Returns the exit code, the output and the report. Variables with the value None are unset. GPUHAL_* variables are
    passed with --set."""
    shutil.rmtree(out, ignore_errors=True)
    variables = {name: value for name, value in {**os.environ, **environment}.items() if value is not None}
    settings = [word for name, value in environment.items() if name.startswith("GPUHAL_") for word in ("--set", f"{name}={value}")]
    done = subprocess.run(command_of(here, out, *arguments, *settings), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=variables)
    report = read_report(here, out)
    failed = [step for step in report["steps"] if step["result"] == "failed"]
    expect((done.returncode == 1) == bool(failed) == (report["result"] == "failed"), "steps, result and exit code do not agree", done.stdout)
    return done.returncode, done.stdout, report


def results(report):
    return {step["name"]: step["result"] for step in report["steps"]}


def a_run_without_a_gpu_says_so_and_passes(here):
    nowhere = {f"GPUHAL_{name}_LIBRARY": "/nonexistent/library" for name in ("CUDA", "NVML", "HIP")}
    # The steps of OpenCL and Vulkan are similar to those of CUDA, which the test with a GPU runs.
    code, text, report = run_script(here, here.work / "report", "--quick", "--use", here.build, GPUHAL_BACKENDS="cuda,rocm", **nowhere)
    expect(code == 0, f"exit code {code}", text)
    found = [d for d in report["devices"] if d["type"] in ("gpu", "integrated_gpu") and not d["software"]]
    expect(report["gpu_found"] == bool(found), "gpu_found does not agree with the devices", text)
    if not found:
        expect("no GPU was found: cuda: " in text, "it does not say that there is no GPU", text)
    expect(results(report)["cuda-context"] == "skipped", "cuda-context was not skipped without a driver", text)
    ids = [device["id"] for device in report["devices"]]
    pairs = [(pair["from"], pair["to"]) for pair in report["copy_matrix"]]
    expect(pairs == [(a, b) for a in ids for b in ids], f"the matrix has other pairs: {pairs}", text)
    expect(all(pair["ok"] for pair in report["copy_matrix"]), "a pair of devices failed", text)
    expect(report["probe"]["schema"] == "gpuhal.probe/2", "the report is without what gpuhal-probe printed")
    for plugin in report["plugins"]:
        wanted = "passed" if plugin["state"] == "ok" else "skipped"
        expect(results(report)[f"check-{plugin['name']}"] == wanted, f"check-{plugin['name']} is not {wanted}", text)
    lines = [b["lines"] for b in report["bench"] if b["step"] == "bench-cpu-call"]
    expect(lines and len(lines[0]) > 2, "the processor was not measured", text)
    table = (here.work / "report/report.md").read_text(encoding="utf-8")
    expect(all(f"| {step['name']} | " in table for step in report["steps"]), "report.md is without some steps", table)


def a_run_with_a_gpu_proves_that_contexts_stay_and_listing_takes_no_memory(here):
    fakes = here.build / "tests/fakes/cuda"
    reports = fresh(here.work / "fake-reports")
    code, text, report = run_script(
        here, here.work / "report-fake", "--quick", "--use", here.build, GPUHAL_BACKENDS="cuda",
        # small devices; copies sleep instead of using CPU time
        FAKE_CUDA="devices 2; memory * 96M; rate 2G; strict 1; value * processes 1",
        FAKE_CUDA_REPORT=str(reports / "fake"), GPUHAL_CUDA_LIBRARY=str(fakes / "libcuda.so.1"),
        GPUHAL_NVML_LIBRARY=str(fakes / "libnvidia-ml.so.1"))
    expect(code == 0, f"exit code {code}", text)
    expect(report["gpu_found"] and "cuda:0" in report["gpu"], "the GPU was not found", text)
    ran = results(report)
    for step in ("cuda-context", "cuda-memory", "cuda-launch", "check-cuda", "copy-matrix", "bench-cuda-copy"):
        expect(ran[step] == "passed", f"{step} is {ran[step]}", text)
    expect(len(report["copy_matrix"]) == 9, "the matrix has not all pairs of two GPUs and the processor", text)
    expect(all(check["ok"] for check in report["cuda"]), "a check of CUDA failed", str(report["cuda"]))
    expect(any(check["detail"] == "the driver prepared the steps" for check in report["cuda"]), "no recording was a graph", str(report["cuda"]))
    calls = [check["calls"] for check in report["cuda"] if "calls" in check]
    expect(len(calls) == 4 and min(calls) > 50, f"the context was looked at after {calls} calls", text)


FAKE_KERNELS = b"".join(b".kernel %s\n" % name for name in (b"saxpy", b"reduce", b"matmul"))


def write_amd_machine(folder):
    """Writes a hipcc whose output the fake accepts as a code bundle. Returns its folder."""
    header = bytearray(64)
    header[:7], header[18], header[52], header[54], header[58] = b"\x7fELF\2\1\1", 224, 64, 56, 64
    code = bytes(header) + FAKE_KERNELS + bytes(64)
    name = b"hipv4-amdgcn-amd-amdhsa--gfx942"
    entry = struct.pack("<QQQ", 128, len(code), len(name)) + name
    bundle = (b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 1) + entry).ljust(128, b"\0") + code
    tools = fresh(folder)
    (tools / "bundle").write_bytes(bundle)
    write_program(tools / "hipcc", f"""while [ $# -gt 1 ]; do case $1 in -o) out=$2;; esac; shift; done
case $1 in */kernels.hip) cp {tools}/bundle "$out";; *) exit 1;; esac
""")
    return tools


def a_run_with_an_amd_gpu_launches_what_its_compiler_made(here):
    fakes = here.build / "tests/fakes/rocm"
    tools = write_amd_machine(here.work / "amd-tools")
    settings = {"FAKE_HIP": "devices 1; memory * 96M; rate 2G; strict 1", "GPUHAL_BACKENDS": "rocm", "GPUHAL_SYSTEM_ROOT": "/nonexistent",
                "GPUHAL_HIP_LIBRARY": str(fakes / "libamdhip64.so.7"), "GPUHAL_ROCM_SMI_LIBRARY": "/nonexistent", "GPUHAL_AMD_SMI_LIBRARY": "/nonexistent"}
    code, text, report = run_script(here, here.work / "report-amd", "--quick", "--use", here.build, "--seconds", 60, PATH=f"{tools}:{os.environ['PATH']}", **settings)
    ran = results(report)
    expect(ran.get("rocm-launch") == "passed" and ran.get("rocm-compile") == "passed", f"no kernel was launched by HIP: {ran}", text)
    launched = [check["check"] for check in report["cuda"] if check.get("device") == "rocm:0" and check["ok"]]
    expect(len(launched) == 5, f"{launched}", text)
    (tools / "hipcc").unlink()
    code, text, report = run_script(here, here.work / "report-amd", "--quick", "--use", here.build, "--seconds", 20, **settings)
    reasons = {step["name"]: step["reason"] for step in report["steps"]}
    if not shutil.which("hipcc") and not list(Path("/opt").glob("rocm*/bin/hipcc")):
        expect("hipcc was not found" in reasons["rocm-launch"], f"it does not say why no kernel was launched: {reasons['rocm-launch']}", text)


def a_hip_driver_that_hangs_holds_up_its_own_step_only(here):
    tools = write_amd_machine(here.work / "amd-tools")
    build = fresh(here.work / "hanging-build")
    write_odd_build(build)
    write_program(build / "tests/device/survey", r"printf 'plugin\trocm\tok\t1\t/x.so\t-\ndevice\trocm:0\trocm\tgpu\thardware\t-\t-\tA\n'" "\n")
    write_program(build / "tests/device/kernel_launch", "exec sleep 100\n")
    code, text, report = run_script(here, here.work / "report-hanging", "--quick", "--use", build, "--step-seconds", 1, PATH=f"{tools}:{os.environ['PATH']}")
    reasons = {step["name"]: step["reason"] for step in report["steps"]}
    expect(reasons.get("rocm-targets") == "it did not end within 1 s", f"{reasons}", text)
    expect("rocm-compile" not in reasons, f"kernels were compiled for no target: {reasons}", text)


def settings_of_the_user_count_only_where_they_are_given(here):
    environment = {**os.environ, "GPUHAL_BACKENDS": "nothing", "GPUHAL_DEVICES": "none:0", "GPUHAL_REGISTRY": "/nonexistent/folder"}
    out = fresh(here.work / "report-settings")
    done = subprocess.run(command_of(here, out, "--quick", "--use", here.build, "--seconds", 20, "--set", "GPUHAL_BACKENDS=cpu"), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=environment)
    report = read_report(here, out)
    expect([device["id"] for device in report["devices"]] == ["cpu:0"], f"other devices than the processor: {report['devices']}", done.stdout)
    expect("left out, although set: GPUHAL_BACKENDS GPUHAL_DEVICES GPUHAL_REGISTRY" in " ".join(report["notes"]), f"{report['notes']}", done.stdout)
    for wrong in ("GPUHAL_BACKENDS", "=cpu", "A B=c"):
        expect(subprocess.run(command_of(here, out, "--set", wrong), capture_output=True).returncode == 2, f"--set takes {wrong}")


def begin_copy_matrix(here, plugin):
    return subprocess.Popen([here.build / "tests/device/copy_matrix", "--quick", "--seconds", "4"], stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "GPUHAL_BACKENDS": plugin, "GPUHAL_PLUGIN_PATH": str(here.build / "tests/odd" / plugin)})


def end_copy_matrix(plugin, running):
    """Returns the exit code and the result of each pair of this plugin's device and the CPU."""
    pairs = [json.loads(line) for line in running.communicate()[0].splitlines()]
    names = {f"{plugin}:0": "odd", "cpu:0": "cpu"}
    return running.returncode, {(names[pair["from"]], names[pair["to"]]): (pair["ok"], pair["error"] or "") for pair in pairs}


def the_copy_matrix_sees_wrong_bytes_and_outlives_crashes_and_hangs(here):
    running = {plugin: begin_copy_matrix(here, plugin) for plugin in ("wrong", "dying", "stuck")}
    for plugin, word in (("wrong", " of the destination is 0x"), ("dying", "signal"), ("stuck", "did not end in time")):
        code, pairs = end_copy_matrix(plugin, running[plugin])
        expect(code == 1 and len(pairs) == 4, f"{plugin}: exit code {code}, {pairs}")
        expect(pairs["odd", "odd"][0] is False and word in pairs["odd", "odd"][1], f"{plugin}: {pairs}")
        if plugin == "stuck":
            expect(pairs["odd", "cpu"] == (None, "not tried: the time had run out"), f"{plugin}: {pairs}")
            continue
        expect(pairs["odd", "cpu"][0] is False and pairs["cpu", "odd"][0] is False, f"{plugin}: {pairs}")
        expect(pairs["cpu", "cpu"] == (True, ""), f"{plugin}: the processor's own pair suffers: {pairs}")


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text, encoding="ascii")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


KEYS = ("device peer test path bytes gib_per_s baseline_gib_per_s ratio ratio_low ratio_high ratio_of_slower_side unit gpuhal baseline "
        "value value_low value_high budget ok software error").split()


def bench_lines(*results):
    rows = [{**dict.fromkeys(KEYS), "device": "cuda:0", **result} for result in results]
    return "\n".join(json.dumps(line, separators=(",", ":")) for line in ({"schema": "gpuhal.bench/2"}, *rows, {"status": "passed"}))


def upload(ratio, ok):
    return {"test": "upload", "bytes": 1 << 20, "gib_per_s": 40.5, "baseline_gib_per_s": 45.5, "ratio": ratio, "ratio_low": ratio - 0.01,
            "ratio_high": ratio + 0.01, "budget": 0.98, "ok": ok, "software": False}


def two_results_of_which_one_is_cut_off():
    return bench_lines(upload(0.89, False), upload(0.89, False))[:-100]


def write_odd_build(build):
    write_program(build / "bin/gpuhal-probe", "case $1 in --json) printf '{\\n\"cut\": '; kill -SEGV $$;; esac\nexit 0\n")
    write_program(build / "bin/gpuhal-check", "echo 'not ok 7 - copy: bytes stay'\nexit 1\n")
    write_program(build / "bin/gpuhal-bench-baseline", f"cat <<'END'\n{two_results_of_which_one_is_cut_off()}\nEND\n"
                  "echo 'gpuhal-bench: cuda:0 copy of 1024 MiB: not measured: there is too little memory' >&2\n"
                  "case $* in *'--sizes 64K'* | *cpu:0*) exec sleep 100;; esac\nexit 1\n")
    write_program(build / "tests/device/survey", r"""printf 'plugin\tcuda\tok\t1\t/x.so\t-\nplugin\trocm\tbroken\t0\t/y.so\tit "crashed"\\\n'
printf 'device\tcuda:0\tcuda\tgpu\thardware\t-\t-\tA | \303\251 "GPU"\n'
""")
    write_program(build / "tests/device/copy_matrix", "echo '{\"from\":\"a\",\"to\":\"a\",\"path\":null,\"ok\":false,\"copies\":0,\"bytes\":9,"
                  "\"gib_per_s\":null,\"error\":\"x\"}'\nprintf '{\"from\":'\nexit 1\n")
    write_program(build / "tests/device/cuda_context", "echo '{\"check\":\"c\",\"ok\":false,\"calls\":3,\"detail\":\"gone\"}'\nexit 1\n")


def steps_that_fail_hang_or_crash_leave_the_others_running(here):
    build = fresh(here.work / "odd-build")
    write_odd_build(build)
    code, text, report = run_script(here, here.work / "report-odd", "--use", build, "--step-seconds", 1)
    steps = {step["name"]: (step["result"], step["reason"]) for step in report["steps"]}
    expect(code == 1, f"exit code {code}", text)
    for name, part in (("probe", "signal 11"), ("check-cuda", "copy did not pass"), ("check-rocm", 'it "crashed"\\'), ("cuda-context", "gone"),
                       ("cuda-memory", "could not be started"), ("copy-matrix", "1 pairs"), ("bench-cuda-copy", "did not end within 1 s"),
                       ("bench-cpu-call", "did not end")):
        expect(steps[name][0] == "failed" and part in steps[name][1], f"{name}: {steps[name]}", text)
    expect(steps["verify"][0] == "passed", "a step after a failed one did not run", text)
    expect(report["probe"] is None and len(report["copy_matrix"]) == 1, "what was cut off is in the report", text)
    expect(report["gpu"] == 'found: A |  "GPU" (cuda:0)', f"the device is called {report['gpu']}")
    bench = report["bench"][0]
    expect(bench["step"] == "bench-cuda-copy" and not bench["whole"] and len(bench["lines"]) == 2 and
           "1024 MiB" in bench["notes"][0], f"what was measured before a hang is not there: {bench}")
    promise = report["speed"][0]
    expect((promise["device"], promise["worst"], promise["held"]) == ("cuda:0", 0.89, False) and promise["results"] > 0, f"{promise}")
    expect(f"at least 0.980 | {promise['results']} | 0.890 | 0.880 to 0.900 | 1 MiB | **missed**" in (here.work / "report-odd/report.md").read_text(), "it is not shown")
    expect("\n* a to a: x\n" in (here.work / "report-odd/report.md").read_text(), "it does not say why a pair failed")
    # A step that was stopped only because other steps used up the time has not failed. On a busy machine the script
    # takes longer to reach the step.
    for seconds in (5, 20, 60, 240):
        code, text, report = run_script(here, here.work / "report-late", "--use", build, "--seconds", seconds)
        steps = {step["name"]: (step["result"], step["reason"]) for step in report["steps"]}
        result, reason = steps.get("bench-cuda-copy", ("", ""))
        if "ran out" in reason:
            break
    expect(result == "skipped" and "ran out" in reason, f"{result}: {reason}", text)
    expect(steps["bench-cpu-call"] == ("skipped", f"no time was left of the {seconds} s for everything"), f"{steps['bench-cpu-call']}", text)


def promises(report):
    return {promise["what"]: promise["held"] for promise in report["speed"] if promise["results"] > 0}


def no_promise_is_held_by_a_bench_that_was_stopped_or_could_not_measure(here):
    build = fresh(here.work / "partial-build")
    write_odd_build(build)
    call = bench_lines({"test": "awaited_copy", "unit": "ns", "ratio": 0.9, "ratio_low": 0.89, "ratio_high": 0.91, "budget": 0.8, "ok": True})
    opened = bench_lines({"test": "device_memory", "unit": "KiB", "value": 0, "value_low": 0, "value_high": 0, "budget": 0, "ok": True},
                            {"test": "open_backend", "ok": False, "error": "it hangs"})
    write_program(build / "bin/gpuhal-bench-baseline", f"""case "$*" in
*'only copy --sizes 64K'*) cat <<'END'; kill -KILL $$;;\n{bench_lines(upload(1.0, True), upload(1.0, True))[:-100]}\nEND
*'only call') cat <<'END';;\n{call}\nEND
*'only open') cat <<'END'; exit 1;;\n{opened}\nEND
*) exit 5;;
esac\n""")
    code, text, report = run_script(here, here.work / "report-partial", "--use", build)
    expect(promises(report) == {"page-locked memory to the device, from 1 MiB": None, "a copy of 4 bytes with its wait beside the direct call": True,
                                "memory of the device that opening and listing take": None}, f"{promises(report)}", text)
    steps = {step["name"]: step["reason"] for step in report["steps"]}
    expect(steps["bench-cuda-copy"] == "it was ended by signal 9", f"who was killed in time: {steps['bench-cuda-copy']}", text)
    expect(steps["bench-cuda-queue"].startswith("exit code 5"), f"a bench without a result: {steps['bench-cuda-queue']}", text)


def what_drivers_print_among_the_results_spoils_no_report(here):
    build = fresh(here.work / "loud-build")
    write_odd_build(build)
    noise = "printf '[driver] \\000\\033 says \"x\\n{cut: 1}\\n  \"open\\n'\n"
    whole = bench_lines(upload(1.0, True)).split("\n", 1)
    write_program(build / "bin/gpuhal-bench-baseline", f"{noise}cat <<'END'\n{whole[0]}\nEND\n{noise}cat <<'END'\n{whole[1]}\nEND\n{noise}")
    write_program(build / "bin/gpuhal-probe", f"{noise}cat <<'END'\n{{\n  \"schema\": \"a \\\"b\\\\\",\nEND\n{noise}printf '  \"list\": [\\n    -1.5e+3,\\n    []\\n  ]\\n}}\\n'\n{noise}")
    write_program(build / "tests/device/cuda_context", f"{noise}printf '{{\"check\":\"cut\",\"ok\"'\nkill -SEGV $$\n")
    write_program(build / "tests/device/cuda_memory", "echo '{\"check\":\"c\",\"ok\":true,\"detail\":null}'\n")
    write_program(build / "tests/device/copy_matrix", f"{noise}yes 'a line of a driver that prints for ever' | head -c 8000000\nexec sleep 100\n")
    code, text, report = run_script(here, here.work / "report-loud", "--use", build, "--step-seconds", 1)
    expect([check["check"] for check in report["cuda"]] == ["c"], f"{report['cuda']}", text)
    expect(report["probe"] == {"schema": 'a "b\\', "list": [-1500, []]}, f"{report['probe']}", text)
    expect(report["copy_matrix"] == [], f"{report['copy_matrix'][:3]}", text)
    expect(report["bench"][0]["whole"] and len(report["bench"][0]["lines"]) == 3, f"{report['bench'][0]}", text)
    expect((here.work / "report-loud/log.txt").stat().st_size < 4 << 20, "log.txt is as long as what a driver prints")


def a_build_that_fails_says_why(here):
    code, text, report = run_script(here, here.work / "report-unbuilt", "--build", here.work / "unbuilt", CC="/bin/false", CMAKE_GENERATOR=here.generator)
    expect(results(report)["configure"] == "failed" and code == 1, f"{report['steps']}", text)


def who_stops_listening_gets_the_report_too(here):
    out = fresh(here.work / "report-unheard")
    script = subprocess.Popen(command_of(here, out, "--use", here.build), stdout=subprocess.PIPE)
    script.stdout.readline()
    script.stdout.close()
    expect(script.wait() == 1 and read_report(here, out)["result"] == "unfinished", "there is no report")


def an_ended_script_leaves_the_report_of_what_has_been(here):
    build, out = fresh(here.work / "ended-build"), fresh(here.work / "report-ended")
    write_odd_build(build)
    write_program(build / "bin/gpuhal-bench-baseline", f"touch {build}/hangs\nexec sleep 100\n")
    script = subprocess.Popen(command_of(here, out, "--use", build), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not (build / "hangs").exists() and script.poll() is None:
        time.sleep(0.02)
    script.terminate()
    text = script.communicate()[0]
    report = read_report(here, out)
    expect(script.returncode == 1 and report["result"] == "unfinished", f"exit code {script.returncode}, {report['result']}", text)
    last = report["steps"][-1]
    expect(last["name"] == "bench-cuda-copy" and "ended from outside" in last["reason"], f"{last}", text)
    expect(not [name for name in os.listdir(out) if name.startswith(".")], f"half a report is left: {os.listdir(out)}")


def a_thin_machine_has_its_report_too(here):
    """Runs with no home directory, no temporary folder except the default one, no lockable memory, and a read-only tree
    without its history."""
    source = fresh(here.work / "thin-source")
    (source / "tests/device").mkdir(parents=True)
    for name in ("run.sh", "report.sh", "environment.sh", "machine.sh", "report.schema.json"):
        shutil.copy(here.source / "tests/device" / name, source / "tests/device")
    for folder in (source / "tests/device", source / "tests", source):
        folder.chmod(0o555)
    thin = Here(source, here.build, here.work, here.cmake, here.generator, here.compiler)
    limits = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, limits[1]))
    code, text, report = run_script(thin, here.work / "report-thin", "--quick", "--use", here.build, "--seconds", 200, GPUHAL_BACKENDS="cpu",
                                    HOME=None, TMPDIR=None, XDG_STATE_HOME=None)
    for folder in (source, source / "tests", source / "tests/device"):
        folder.chmod(0o755)
    expect(code == 0 and results(report)["machine"] == results(report)["check-cpu"] == "passed", f"exit code {code}", text)
    expect(report["machine"]["source"] == "", "it knows a revision")


# To hide installed headers and libraries, the search is limited to a folder that does not exist.
BARE = ("-DCMAKE_FIND_ROOT_PATH=/nonexistent", "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY", "-DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY",
        "-DCMAKE_DISABLE_FIND_PACKAGE_Python3=ON")
LEFT_OUT = (("the opencl plugin is", "CL/cl.h"), ("the vulkan plugin is", "vulkan/vulkan_core.h"),
            ("gpuhal-probe, gpuhal-bench, gpuhal-lease and gpuhal-place are", "jansson.h"), ("the live view of gpuhal-probe is", "curses.h"),
            ("the tests are", "cmocka.h"), ("the tests are", "python3"))


def configure(here, build, *settings):
    environment = {name: value for name, value in os.environ.items() if name != "CMAKE_PREFIX_PATH"}
    done = subprocess.run([here.cmake, "-S", str(here.source), "-B", str(build), "-G", here.generator, f"-DCMAKE_C_COMPILER={here.compiler}",
                           "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O0", *BARE, *settings], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    return done.returncode, " ".join(done.stdout.split())


def a_build_names_all_that_is_left_out_and_one_that_must_have_everything_fails(here):
    code, text = configure(here, fresh(here.work / "bare"))
    expect(code == 0, "it cannot be configured", text)
    for what, missing in LEFT_OUT:
        expect(any(line.startswith(f"{what} left out: ") and missing in line for line in text.split("gpuhal: ")),
               f"it does not say that {what} left out for want of {missing}", text)
    build = fresh(here.work / "strict")
    code, text = configure(here, build, "-DGPUHAL_REQUIRE_ALL=ON")
    expect(code != 0, "it goes on without", text)
    for what, missing in LEFT_OUT:
        expect(what in text and missing in text, f"it does not name {missing}", text)
    code, text = configure(here, fresh(here.work / "strict"), "-DGPUHAL_BUILTIN=cpu;opencl")
    expect(code != 0 and 'GPUHAL_BUILTIN asks for "opencl"' in text, "a plugin that is left out is built in", text)


TESTS = (a_run_without_a_gpu_says_so_and_passes, a_run_with_a_gpu_proves_that_contexts_stay_and_listing_takes_no_memory,
         a_run_with_an_amd_gpu_launches_what_its_compiler_made, a_hip_driver_that_hangs_holds_up_its_own_step_only,
         settings_of_the_user_count_only_where_they_are_given,
         the_copy_matrix_sees_wrong_bytes_and_outlives_crashes_and_hangs, steps_that_fail_hang_or_crash_leave_the_others_running,
         no_promise_is_held_by_a_bench_that_was_stopped_or_could_not_measure, what_drivers_print_among_the_results_spoils_no_report,
         a_build_that_fails_says_why, who_stops_listening_gets_the_report_too, an_ended_script_leaves_the_report_of_what_has_been, a_thin_machine_has_its_report_too,
         a_build_names_all_that_is_left_out_and_one_that_must_have_everything_fails)

if __name__ == "__main__":
    here = Here(*sys.argv[2:])
    here.work /= sys.argv[1]  # tests run in parallel
    {test.__name__: test for test in TESTS}[sys.argv[1]](here)
