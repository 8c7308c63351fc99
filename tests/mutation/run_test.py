#!/usr/bin/env python3
"""Checks that run.py changes only code, makes the same changes for the same seed, and ends all processes that a mutant
started."""
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run

SOURCE = """/* a < b */
#define FEWER(a, b) ((a) < (b))
static int number = 1;
int compare(int a, int b)
{
    // a < b
    if (a < b) { /* a > b */
        report("a == b");
    }
    int c = a;
    return c;
}
"""


# A helper process that leaves its session and its parent, writes its PID, and keeps running.
HELPER = """import os, pathlib, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        pathlib.Path(sys.argv[1] + ".new").write_text(str(os.getpid()))
        os.rename(sys.argv[1] + ".new", sys.argv[1])
        time.sleep(600)
    os._exit(0)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
time.sleep(float(sys.argv[2]))
"""


class Processes(unittest.TestCase):
    def end_of(self, seconds, timeout):
        """Calls run() for a program that takes this long, and waits until the program's helper has ended. Returns the
        result of run()."""
        run.adopt_orphans()
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "helper"
            result = run.run([sys.executable, "-c", HELPER, str(file), str(seconds)], timeout)
            with self.assertRaises(ProcessLookupError):
                os.kill(int(file.read_text()), 0)
        return result

    def test_a_helper_that_left_its_session_ends_with_the_program(self):
        self.assertIs(self.end_of(0, 60), True)

    def test_a_helper_that_left_its_session_ends_with_the_time(self):
        self.assertIsNone(self.end_of(600, 2))

    def test_a_program_that_fails_is_reported_so(self):
        self.assertIs(run.run([sys.executable, "-c", "raise SystemExit(3)"], 60), False)


class Mutants(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(setattr, run, "ROOT", run.ROOT)
        run.ROOT = pathlib.Path(self.folder.name)
        (run.ROOT / "hal").mkdir()
        (run.ROOT / "hal" / "a.c").write_text(SOURCE)

    def after(self):
        lines = SOURCE.split("\n")
        return [lines[number][:begin] + new + lines[number][end:] for _, number, begin, end, new in run.choose(["hal/a.c"], 99, 1)]

    def test_comments_strings_the_preprocessor_and_file_scope_stay(self):
        for line in self.after():
            self.assertNotIn("!=", line)
            self.assertNotIn("FEWER", line)
            self.assertNotIn(">= b", line)
        self.assertIn("    if (a <= b) { /* a > b */", self.after())
        self.assertIn("        ;", self.after())

    def test_a_declaration_is_not_deleted(self):
        self.assertNotIn("    ;", self.after())

    def test_expressions_are_of_those_that_ctest_knows(self):
        for _, expression in run.TESTS:
            self.assertNotIn("(?", expression)

    def test_one_seed_gives_one_choice(self):
        self.assertEqual(run.choose(["hal/a.c"], 2, 7), run.choose(["hal/a.c"], 2, 7))

    def test_what_does_not_compile_is_not_counted(self):
        rows = run.summary([{"file": "hal/a.c", "outcome": outcome} for outcome in ("build", "test", "survived", "time")])
        self.assertEqual(rows[-1], "| all | 3 | 2 | 67% |")


if __name__ == "__main__":
    unittest.main()
