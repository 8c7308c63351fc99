"""Runs the tests of a file. The tests are the file's functions with the given parameters. Runs one test by name in this
process, or for `all` each test in a child process. The children are forked, because starting Python and importing
modules takes longer than most tests. Exit code 77 means skipped."""

import inspect
import os
import sys
import tempfile

AT_ONCE = 2  # tests at the same time; most of them mostly wait


def run(functions, parameters, wanted, test, first=lambda: None):
    """`test` calls the given function, in a child process if `wanted` is all. `first` is called before all tests and
    makes their common preparations. Returns the exit status for the file."""
    if wanted != "all":
        return test(functions[wanted])
    first()
    names = [name for name, each in functions.items() if inspect.isfunction(each) and ", ".join(inspect.signature(each).parameters) == parameters]
    waiting, running, statuses = names[:], {}, []
    while waiting or running:
        if waiting and len(running) < AT_ONCE:
            name, output = waiting.pop(0), tempfile.TemporaryFile()
            child = os.fork()
            if child == 0:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                return test(functions[name])
            running[child] = name, output
            continue
        child, status = os.wait()
        name, output = running.pop(child)
        statuses.append(os.waitstatus_to_exitcode(status))
        if statuses[-1]:
            output.seek(0)
            print(f"---- {name}: {'skipped' if statuses[-1] == 77 else f'failed, exit status {statuses[-1]}'}", flush=True)
            print(output.read().decode(errors="replace"), flush=True)
        output.close()
    print(f"{len(statuses)} tests, {len([each for each in statuses if each not in (0, 77)])} failed")
    return 1 if not statuses or set(statuses) - {0, 77} else 77 if 0 not in statuses else 0
