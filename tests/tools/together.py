"""Runs the tests of a file, which are its functions with given parameters. Runs one test by name, or for `all` each in
its own child process. The children inherit Python and the file's imports, because starting those takes longer than
most tests. 77 means skipped."""

import inspect
import os
import sys
import tempfile

AT_ONCE = 2  # most tests wait more than they compute


def run(functions, parameters, wanted, test, first=lambda: None):
    """`test` runs the given function, in a child process if `wanted` is all. `first` runs before all tests and does
    their common preparation. Returns the file's exit status."""
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
