#!/usr/bin/env python3
"""Measures how many faults the tests detect. The script makes one change to the library or a plugin at a time, builds
the changed code, and runs the tests for the folder of the change.

A mutant is killed if the build or a test fails. If a mutant survives, either a test is missing, or the change makes no
difference (an equivalent mutant). A person has to decide which.

The script works in a copy of the tracked and untracked files (--work), so the checkout never changes. The same seed
selects the same mutants of the same sources. Each result is immediately appended to a file of JSON lines. If a run was
stopped, the next run continues after its last result. Mutants of sources that have changed since then are tested again.
The script requires only Python's standard library, git, CMake and Ninja.
"""
import argparse
import ctypes
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A folder of sources, and a CTest expression for the tests that must detect faults in this folder. The first match
# applies.
TESTS = [
    ("hal/core/base/", r"^(core|call_slots|device|selector|loader_(manifest|stream|selection|files)|registry_(form|open)|privileged|file|"
                  r"job|trace|options|fault_log|deadline|rescan)\."),
    ("hal/core/os/", r"^(core|file|file_failure|loader_(process|stuck|files|backend)|registry_(place|store)|hotplug|transfer_ring|"
                r"privileged|share_[a-z]+|fork_[a-z]+|lease[a-z_]*)\."),
    ("hal/core/registry/", r"^registry_|^loader_(cache|cache_key|warm)\."),
    ("hal/core/loader/", r"^loader_|^(hotplug|privileged|options|deadline|replug|rescan)\."),
    ("hal/core/device/", r"^(device|selector|identity|link|hotplug|registry_(api|known|numbers)|loader_backend|relisted|rescan|replug|fault_log|fork|threads)"),
    ("hal/core/memory/", r"^(buffer|blocks|share|given_back|device|transfer_(ranges|paths)|sharing|opencl(_share)?\.|vulkan_memory)"),
    ("hal/core/transfer/", r"^(transfer|queue|file|link|usage|hotplug|replug|opencl_queue|vulkan_queue)"),
    ("hal/core/queue/", r"^(queue|transfer_rect|timeline|watchdog|threads|fork|given_back|deadline|fault_log|opencl_queue|vulkan_queue)"),
    ("hal/core/program/", r"^(program|launch|recording|watchdog_compile)"),
    ("hal/core/pool/", r"^(pool|blocks|ladder|relief|pressure)"),
    ("hal/store/", r"^store[_.]"),
    ("hal/core/telemetry/", r"^(telemetry|cpu_system|cpu_telemetry|core|cuda_telemetry_own|rocm_telemetry|vulkan_fake)"),
    ("hal/node/", r"^(hardware|sampler|registry_(api|known|numbers)|fault_log|relisted)"),
    ("hal/core/hotplug/", r"^(hotplug|rescan|relisted|replug|fault_log|fork|cuda_together|rocm_together)"),
    ("hal/schedule/", r"^(lease|slots|place|rank|assign|strategy|memory_plan)"),
    ("hal/", r"^(core|call_slots|device|selector|transfer|queue|job|options|deadline|hotplug|watchdog|rescan|replug|fork|"
             r"loader_(backend|selection))"),
    ("plugins/cpu/", r"^(cpu|conformance\.cpu|sharing|queue|file_devices)"),
    ("plugins/opencl/", r"^(opencl|conformance\.opencl|sharing|queue)"),
    ("plugins/vulkan/", r"^(vulkan(\.|_[^v])|conformance\.vulkan|sharing|queue)"),
    ("plugins/stream/", r"^(cuda|rocm|link|conformance\.(cuda|rocm)|queue)"),
    ("plugins/cuda/", r"^(cuda|link|conformance\.cuda|queue)"),
    ("plugins/rocm/", r"^(rocm|link|conformance\.rocm)"),
]

SWAPS = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
    (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r"(?<=\w) - (?=\w)", " + "), (r" & (?=[\w(~])", " | "),
    (r"\+= ", "-= "), (r"-= ", "+= "), (r"\breturn true;", "return false;"), (r"\breturn false;", "return true;"),
    (r" = true;", " = false;"), (r" = false;", " = true;"), (r"\breturn GPUHAL_ERROR_\w+;", "return GPUHAL_OK;"),
    (r"(?<=[\w\])]) \? (?=.*:)", " ? !"), (r"\bif \((?=.*\) \{\s*$)", "if (!("), (r"\b1\b(?!\w)", "0"),
]
# Matches a whole statement on one line: a call whose result is unused, or an assignment to an existing variable.
STATEMENT = re.compile(r"^\s+((\(void\))?[a-z_][\w.>\[\]*-]*\([^{}]*\);|[a-z_*][\w.>\[\]-]*(\.|->)[\w.>\[\]-]* = [^{}]*;|[a-z_]+ = [^{}]*;)$")


def code_lines(text):
    """Yields the lines of C code that are neither comments nor preprocessor lines. Strings and comments are replaced by
    blanks, so that the columns stay the same."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group(0))
    text = re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S)
    text = re.sub(r'"(\\.|[^"\\\n])*"|\'(\\.|[^\'\\\n])*\'', blank, text)
    inside = False
    for number, line in enumerate(text.split("\n")):
        if line.startswith("{"):
            inside = True
        elif line.startswith("}"):
            inside = False
        if inside and line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def mutants_of(path):
    """Yields every (line, begin, end, replacement, word) of a file."""
    text = (ROOT / path).read_text()
    original = text.split("\n")
    for number, line in code_lines(text):
        for pattern, new in SWAPS:
            for match in re.finditer(pattern, line):
                end, replacement = match.end(), new
                if new == "if (!(":
                    end = line.rindex(") {")
                    replacement = "if (!(" + original[number][match.end():end] + ")"
                yield number, match.start(), end, replacement
        if STATEMENT.match(line):
            begin = len(line) - len(line.lstrip())
            yield number, begin, len(original[number]), ";"


def choose(files, count, seed):
    """Chooses the same number of mutants from each folder, or all mutants of a folder that has fewer. Only the seed
    determines the order."""
    folders = {}
    for path in sorted(files):
        for mutant in mutants_of(path):
            folders.setdefault(path.rsplit("/", 1)[0], []).append((path,) + mutant)
    dice = random.Random(seed)
    chosen = []
    pools = [dice.sample(pool, len(pool)) for _, pool in sorted(folders.items())]
    while len(chosen) < count and any(pools):
        chosen += [pool.pop() for pool in pools if pool]
    return chosen[:count]


def sources(arguments):
    """Returns source files of the library and plugins: all files, the given files, or the files that changed since a
    revision."""
    command = ["git", "ls-files", "hal/*.c", "plugins/*.c"]
    if arguments.since:
        command = ["git", "diff", "--name-only", "--diff-filter=d", arguments.since, "--", "hal/*.c", "plugins/*.c"]
    names = subprocess.run(command, cwd=ROOT, check=True, text=True, capture_output=True).stdout.split()
    return [name for name in names if not arguments.files or any(pathlib.PurePath(name).match(glob) for glob in arguments.files)]


def adopt_orphans():
    """Makes this process the new parent of all descendants whose parent exits, even if they have left their session and
    process group."""
    child_subreaper = 36  # PR_SET_CHILD_SUBREAPER of sys/prctl.h
    if ctypes.CDLL(None, use_errno=True).prctl(child_subreaper, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def children():
    """Yields the PIDs of this process's children. The PID of a child cannot be reused before this process waits for the
    child."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == os.getpid():
            yield int(stat.parent.name)


def end_descendants():
    """Kills children until none is left. If a child exits, its children become children of this process."""
    try:
        while True:
            for child in children():
                os.kill(child, signal.SIGKILL)
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


def run(command, timeout, **options):
    """Returns True, False, or None if the command took too long. Kills all processes that the command started; requires
    adopt_orphans()."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                          start_new_session=True, **options) as process:
        try:
            return process.wait(timeout) == 0
        except subprocess.TimeoutExpired:
            return None
        finally:
            end_descendants()


def prepare(work):
    """Copies the files and configures the copy."""
    tree = work / "tree"
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True).stdout.decode().split("\0")
    for name in filter(None, names):
        source, copy = ROOT / name, tree / name
        if source.is_file() and not (copy.is_file() and copy.read_bytes() == source.read_bytes()):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)  # sets a new time, because a stopped run may have left a built mutant
    command = ["cmake", "-G", "Ninja", "-S", tree, "-B", work / "build", "-DCMAKE_BUILD_TYPE=Release",
               "-DCMAKE_C_FLAGS=-O1 -w", f"-DPython3_EXECUTABLE={sys.executable}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return tree


def tests_of(path):
    return next(expression for folder, expression in TESTS if path.startswith(folder))


def ctest(work, jobs, expression, *more):
    """Returns the command for the tests of an expression. Excludes the complete runs of tests/device, because their
    names begin like the names of the unit tests of devices."""
    return ["ctest", "--test-dir", str(work / "build"), "-j", str(jobs), "-R", expression, *(more or ("-LE", "^device$"))]


def build_command(work, expression, unit):
    """Returns the command that builds the programs of these tests and their dependencies. If a test has no program of
    its own, builds everything, because the test may require any target."""
    listed = subprocess.run(ctest(work, 1, expression, *(("-L", "^unit$") if unit else ("-LE", "^device$")), "--show-only=json-v1"),
                            check=True, text=True, capture_output=True).stdout
    programs = {test["name"].partition(".")[0] + "_test" for test in json.loads(listed)["tests"]}
    targets = subprocess.run(["ninja", "-C", work / "build", "-t", "targets", "all"], check=True, text=True, capture_output=True).stdout
    known = {line.partition(":")[0] for line in targets.splitlines()}
    return ["ninja", "-C", str(work / "build")] + (sorted(programs) if programs <= known else [])


def notice(work, jobs, expression, seconds, unit):
    """Returns True if all these tests pass, otherwise the result of run(). The unit tests run first, because they are
    quick. The time limit applies to all tests together."""
    ends = time.monotonic() + seconds
    passed = run(ctest(work, jobs, expression, "-L", "^unit$", "--stop-on-failure"), seconds)
    if unit:
        return passed
    others = ctest(work, jobs, expression, "-LE", "^(unit|device)$", "--stop-on-failure")
    return passed and run(others, max(ends - time.monotonic(), 1))


def ready(arguments, expression, known):
    """Returns the command that builds these tests, and their time limit. The limit is based on the time of the tests
    without a mutation, so that a mutant does not count as killed because the machine is busy. The tests must pass
    without a mutation; otherwise a failure would prove nothing."""
    if expression not in known:
        build = build_command(arguments.work, expression, arguments.unit)
        only = ("-L", "^unit$") if arguments.unit else ("-LE", "^device$")
        # without this option CTest would succeed if there is no test
        tests = ctest(arguments.work, arguments.jobs, expression, *only, "--no-tests=error")
        if run(build, 3600) is not True:
            sys.exit(f"the tests {expression} cannot be built")
        began = time.monotonic()
        if run(tests, 600) is not True:
            sys.exit(f"the tests {expression} fail without a mutation, or none is there")
        known[expression] = build, max(arguments.seconds, 3 * (time.monotonic() - began))
    return known[expression]


def judge(arguments, tree, mutant, build, seconds):
    """Returns the reason why the mutant was killed, or that it survived."""
    path, number, begin, end, replacement = mutant
    original = (ROOT / path).read_text()
    lines = original.split("\n")
    lines[number] = lines[number][:begin] + replacement + lines[number][end:]
    (tree / path).write_text("\n".join(lines))
    try:
        if run(build, 600) is not True:
            return "build"
        began = time.monotonic()
        passed = notice(arguments.work, arguments.jobs, tests_of(path), seconds, arguments.unit)
        return {True: "survived", False: "test", None: "time"}[passed], time.monotonic() - began
    finally:
        (tree / path).write_text(original)


def summary(results):
    """Returns the lines of a Markdown table with the number of killed mutants in each folder. Changes that do not
    compile are not counted as mutants."""
    folders = {}
    for result in results:
        if result["outcome"] != "build":
            folders.setdefault(result["file"].rsplit("/", 1)[0], []).append(result["outcome"] != "survived")
    rows = [f"| {folder} | {len(killed)} | {sum(killed)} | {sum(killed) / len(killed):.0%} |" for folder, killed in sorted(folders.items())]
    every = [killed for folder in folders.values() for killed in folder]
    if every:
        rows.append(f"| all | {len(every)} | {sum(every)} | {sum(every) / len(every):.0%} |")
    return ["| folder | mutants | killed | rate |", "|---|---|---|---|"] + rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("files", nargs="*", help="globs of sources, such as hal/core/base/*.c; all of hal and plugins without any")
    parser.add_argument("--since", metavar="REVISION", help="only sources that changed since then")
    parser.add_argument("--count", type=int, default=300, help="how many mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=30,
                        help="for the tests of one mutant, or thrice what they take without it (default: %(default)s); longer is killed")
    parser.add_argument("--jobs", type=int, default=2, help="tests at a time (default: %(default)s)")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "mutation", help="folder to work in (default: %(default)s)")
    parser.add_argument("--unit", action="store_true", help="run only the unit tests among the tests of a folder")
    parser.add_argument("--list", action="store_true", help="print the mutants and end")
    arguments = parser.parse_args()
    chosen = choose(sources(arguments), arguments.count, arguments.seed)
    if arguments.list:
        for path, number, begin, end, replacement in chosen:
            line = (ROOT / path).read_text().split("\n")[number]
            print(f"{path}:{number + 1}: {line.strip()}  ->  {(line[:begin] + replacement + line[end:]).strip()}")
        return 0
    if not chosen:
        sys.exit("no source has a place to change")
    adopt_orphans()
    arguments.work.mkdir(parents=True, exist_ok=True)
    results_file = arguments.work / "results.jsonl"
    kept = [json.loads(line) for line in results_file.read_text().splitlines()] if results_file.exists() else []
    known = {(result["file"], result["line"], result["after"], result["source"]): result for result in kept}
    tree = prepare(arguments.work)
    known_tests, results = {}, []
    for mutant in chosen:
        path, number, begin, end, replacement = mutant
        text = (ROOT / path).read_text()
        line = text.split("\n")[number]
        after = (line[:begin] + replacement + line[end:]).strip()
        judges = tests_of(path) + "unit" * arguments.unit  # results of other tests do not count
        source = hashlib.sha256((text + judges).encode()).hexdigest()[:16]
        result = known.get((path, number + 1, after, source))
        if not result:
            result = {"file": path, "line": number + 1, "before": line.strip(), "after": after, "source": source}
            build, limit = ready(arguments, tests_of(path), known_tests)
            outcome = judge(arguments, tree, mutant, build, limit)
            result["outcome"], result["seconds"] = (outcome, 0) if isinstance(outcome, str) else (outcome[0], round(outcome[1], 1))
            with results_file.open("a") as out:
                out.write(json.dumps(result) + "\n")
            print(f"{result['outcome']:8} {path}:{number + 1}: {result['before']}  ->  {result['after']}", flush=True)
        results.append(result)
    print("\n".join(summary(results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
