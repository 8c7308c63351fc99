"""Runs the tests of a file. The tests are the file's functions with the given parameters. Runs one test by name in this
process, or for `all` each test in a child process. The children are forked, because starting Python and importing
modules takes longer than most tests. Exit code 77 means skipped."""

import atexit
import inspect
import os
import sys
import tempfile
import traceback

AT_ONCE = 2  # tests at the same time; most of them mostly wait


def run(functions, parameters, wanted, test, first=lambda: None):
    """`test` calls the given function, in a child process if `wanted` is all. `first` is called before all tests and
    makes their common preparations. Returns the exit status for the file."""
    if wanted != "all":
        return test(functions[wanted])
    first()
    return run_all({name: each for name, each in functions.items()
                    if inspect.isfunction(each) and ", ".join(inspect.signature(each).parameters) == parameters}, test)


def end_with(test, *arguments):
    """Runs a test and ends this child process. Python would first free every object that the parent had made, which
    copies nearly all of the parent's memory and takes longer than many tests."""
    status = 1
    try:
        status = test(*arguments)
    except SystemExit as ended:
        status = ended.code
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()  # removes temporary folders
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status or 0)


def run_all(tests, test):
    """Calls `test` with each value of the dictionary, in a child process. Returns the exit status for all."""
    waiting, running, statuses = list(tests), {}, []
    while waiting or running:
        if waiting and len(running) < AT_ONCE:
            name, output = waiting.pop(0), tempfile.TemporaryFile()
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                end_with(test, tests[name])
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
