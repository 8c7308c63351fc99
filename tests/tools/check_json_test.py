#!/usr/bin/env python3
"""Tests the output of gpuhal-check --json, with the misbehaving plugin of tests/conformance. check_json_test.py
TEST|all PROGRAM FAULTY SCHEMA; exit code 77 means skipped."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import together
from probe_support import changed, check, read_schema, spoilings, validator


class Report:
    """Returns the lines of a report in order. Each line must match the schema."""

    def __init__(self, tool, text):
        self.lines = [json.loads(line) for line in text.splitlines()]
        wrong = [f"{line}: {error.message}" for line in self.lines for error in validator(tool.schema_path).iter_errors(line)]
        check(text.endswith("\n") and not wrong, text, *wrong)
        self.header, self.checks, self.totals = self.lines[0], self.lines[1:-1], self.lines[-1]
        check("schema" in self.header and all("result" in one for one in self.checks) and "status" in self.totals, text)

    def by_name(self):
        return {(one["name"], one["device"]): one for one in self.checks}

    def counts(self):
        return [self.totals[result] for result in ("passed", "failed", "expected", "skipped")]

    def __repr__(self):
        return json.dumps(self.lines, indent=1)


class Tool:
    def __init__(self, program, faulty, schema):
        self.program, self.plugin, self.schema_path = program, os.path.join(faulty, "faulty.so"), schema
        self.good_manifest = os.path.join(faulty, "manifests/good.gpuhal")

    def run(self, *options, code, fault="good_all", **more):
        """Returns the report. @code is the expected exit status, with and without --json."""
        environment = os.environ | {"FAULTY": fault}
        done = subprocess.run([self.program, "--json", *options], env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=100, **more)
        plain = subprocess.run([self.program, *options], env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=100, **more)
        check(done.returncode == code and plain.returncode == code, done, plain)
        return Report(self, done.stdout.decode())

    def listed(self):
        done = subprocess.run([self.program, "--list", "--json"], capture_output=True, check=True, timeout=100)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def mixed(self):
        """Returns a report that contains every result. The check `copy` fails; on the second device this is expected.
        There is no manifest."""
        with tempfile.NamedTemporaryFile("w", suffix=".expect") as expect:
            expect.write("copy@1: known since last week\n")
            expect.flush()
            return self.run("--only", "copy", "--only", "manifest", "--only", "health@0", "--expect", expect.name, self.plugin, code=1, fault="copy_short")


def a_plugin_that_passes_is_described_with_the_machine_and_the_time_of_each_check(tool):
    report = tool.run("--only", "copy", tool.plugin, code=0)
    check(report.totals["status"] == "passed" and report.counts() == [3, 0, 0, 0], report)
    check(list(report.by_name()) == [("file", None), ("copy", 0), ("copy", 1)], report)
    check(all(one["time_ms"] > 0 for one in report.checks), report)
    plugin = report.header["plugin"]
    check(plugin["file"] == os.path.abspath(tool.plugin) and plugin["manifest"] is None, plugin)
    check(plugin["name"] == "faulty" and plugin["version"] and plugin["abi_version"] == report.header["abi_version"], plugin)


def the_machine_is_described_as_by_gpuhal_probe(tool):
    probe = os.path.join(os.path.dirname(tool.program), "gpuhal-probe")
    listing = json.loads(subprocess.run([probe, "--json", "--backends", "cpu"], capture_output=True, check=False).stdout)
    report = tool.run("--only", "copy@0", tool.plugin, code=0)
    check(report.header["host"] == listing["host"] and report.header["host"]["cpu"], report.header["host"], listing["host"])
    with open(os.path.join(os.path.dirname(tool.schema_path), "gpuhal.probe-2.schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    check(validator(tool.schema_path).schema["$defs"]["host"]["properties"] == schema["$defs"]["host"]["properties"], "the schemas differ")


def failed_expected_and_skipped_checks_say_why(tool):
    report = tool.mixed()
    check(report.totals["status"] == "failed" and report.counts() == [2, 1, 1, 1], report)
    checks = report.by_name()
    failed, expected, skipped = checks["copy", 0], checks["copy", 1], checks["manifest", None]
    check(failed["result"] == "failed" and failed["rule"] == "M-23" and failed["message"] and failed["hint"] and failed["expected"] is None, failed)
    check(expected["result"] == "expected" and expected["expected"] == "known since last week" and expected["message"], expected)
    check(skipped["result"] == "skipped" and skipped["message"].startswith("no manifest was given") and skipped["rule"] is None, skipped)


def a_crash_is_a_failed_check_and_the_others_go_on(tool):
    report = tool.run("--only", "copy@0", "--only", "health@0", tool.plugin, code=1, fault="copy_crashes")
    crashed = report.by_name()["copy", 0]
    check(crashed["result"] == "failed" and crashed["message"] and crashed["rule"] == "M-27", crashed)
    check(report.by_name()["health", 0]["result"] == "passed", report)


def what_the_plugin_printed_stands_in_a_member_of_its_own(tool):
    report = tool.run("--only", "copy@0", "--only", "quiet", tool.plugin, code=1, fault="prints_output")
    quiet = report.by_name()["quiet", None]
    check("a word on standard output" in quiet["printed"] and quiet["message"] == "the plugin printed in the check copy", quiet)


def after_three_time_outs_the_others_are_skipped_and_the_run_has_failed(tool):
    options = ("--deadline", "1", "--only", "read", "--only", "copy@0", "--only", "copy_within", "--only", "health@0")
    with tempfile.NamedTemporaryFile("w", suffix=".expect") as expect:
        expect.write("read: hangs\ncopy: hangs\n")
        expect.flush()
        report = tool.run(*options, "--expect", expect.name, tool.plugin, code=1, fault="read_hangs")
    results = [(one["name"], one["device"], one["result"]) for one in report.checks]
    check(results == [("file", None, "passed"), ("read", 0, "expected"), ("read", 1, "expected"), ("copy", 0, "expected"),
                      ("copy_within", 0, "skipped"), ("copy_within", 1, "skipped"), ("health", 0, "skipped")], report)
    check(report.totals["status"] == "failed" and report.checks[-1]["message"].startswith("not run: "), report)


def a_manifest_is_named_with_its_library(tool):
    plugin = tool.run("--only", "manifest", tool.good_manifest, code=0).header["plugin"]
    check(plugin["manifest"] == tool.good_manifest and os.path.samefile(plugin["file"], tool.plugin), plugin)


def a_plugin_that_cannot_be_used_has_one_failed_check(tool):
    for options in (("/nowhere/plugin.so",), ("/nowhere/plugin.gpuhal",), ("--device", "7", tool.plugin)):
        report = tool.run(*options, code=3)
        check(report.totals["status"] == "no_plugin" and len(report.checks) == 1, report)
        only = report.checks[0]
        check(only["name"] == "file" and only["result"] == "failed" and only["message"] and only["hint"], report)
    check(tool.run("/nowhere/plugin.so", code=3).header["plugin"]["name"] is None, "a name out of nothing")


def texts_hold_any_bytes(tool):
    path = b'/nowhere/\xff"\\\x1b\xc3\xa9.so'
    report = tool.run(path, code=3)
    check(report.header["plugin"]["file"] == '/nowhere/\ufffd"\\\x1b\u00e9.so' and report.checks[0]["message"], report)
    plain = subprocess.run([tool.program, path], capture_output=True, check=False, timeout=100).stdout.decode()
    message = next(line for line in plain.splitlines() if line.startswith("  message: "))
    check(json.loads(message.removeprefix("  message: ")) == report.checks[0]["message"], plain)


def a_mistake_on_the_command_line_is_a_line_and_a_sentence(tool):
    for options, word in ((("--frobnicate", "x.so"), "--frobnicate"), (("--only", "cpoy", "x.so"), "cpoy"), ((), "no plugin was given"),
                          (("--only", "copy@1", "--device", "0", "x.so"), "--only copy@1 is about device 1, and --device 0 checks device 0 only"),
                          (("--json=1", "x.so"), "--json"), (("",), "is empty"), (("--expect", "/nowhere/list", tool.plugin), "/nowhere/list")):
        if not any(option.startswith("--json") for option in options):
            options = (*options, "--json")
        done = subprocess.run([tool.program, *options], capture_output=True, text=True, timeout=100)
        document = json.loads(done.stdout)
        check(done.returncode == 2 and document["error"]["code"] == "usage" and word in document["error"]["message"], done)
        check(done.stderr.startswith("gpuhal-check: ") and document["error"]["message"] in done.stderr, done)
        check(validator(tool.schema_path).is_valid(document), document)


def the_list_of_checks_has_a_line_with_the_rule_of_each(tool):
    listed = tool.listed()
    check(all(validator(tool.schema_path).is_valid(one) for one in listed), listed)
    plain = subprocess.run([tool.program, "--list"], capture_output=True, check=True, text=True, timeout=100).stdout
    check([f"{one['name']:<20} {one['sentence']}" for one in listed] == plain.splitlines(), listed, plain)
    copy, query = (next(one for one in listed if one["name"] == name) for name in ("copy", "query"))
    check(copy["rule"] == "M-23" and copy["per_device"] is True and query["rule"] == "M-06" and query["per_device"] is False, copy, query)


def output_that_cannot_be_written_is_named_and_leaves_with_4(tool):
    for options in (["--json", "--only", "copy@0", tool.plugin], ["--only", "copy@0", tool.plugin], ["--list"], ["--list", "--json"], ["--help"], ["--version"]):
        for target, reason in ((">/dev/full", b"No space left"), (">&-", b"Bad file descriptor")):
            done = subprocess.run(["/bin/sh", "-c", f'exec "$0" "$@" {target}', tool.program, *options], env=os.environ | {"FAULTY": "good_all"},
                                  capture_output=True, timeout=100)
            check(done.returncode == 4 and b"standard output cannot be written: " + reason in done.stderr, done)


def a_reader_that_goes_ends_the_run_with_4(tool):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([tool.program, tool.plugin], env=os.environ | {"FAULTY": "good_all"}, stdout=writer, stderr=subprocess.PIPE, timeout=100)
    os.close(writer)
    check(done.returncode == 4 and b"Broken pipe" in done.stderr, done)


def wait_for_hang(process):
    """Waits until @process's child sleeps, which means that the plugin hangs in read."""
    quiet = 0
    while quiet < 10:
        time.sleep(0.05)
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            children = file.read().split()
        try:
            with open(f"/proc/{children[0]}/stat", encoding="ascii") as file:
                quiet = quiet + 1 if file.read().rsplit(")", 1)[1].split()[0] == "S" else 0
        except (IndexError, FileNotFoundError):
            quiet = 0


def a_run_that_a_signal_ends_reports_what_has_run(tool):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        for form in (["--json"], []):
            options = [*form, "--only", "describe", "--only", "read@0", tool.plugin]
            with subprocess.Popen([tool.program, *options], env=os.environ | {"FAULTY": "read_hangs"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  # the shell that started this test may ignore the signal
                                  text=True, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)) as process:
                wait_for_hang(process)
                process.send_signal(number)
                out, err = process.communicate(timeout=100)
            check(process.returncode == -number and err == f"gpuhal-check: ended by {number.name}\n", process.returncode, out, err)
            if not form:
                check("\nok 3 - describe@1: " in out and out.endswith(f"\nBail out! ended by {number.name}\n"), out)
                continue
            report = Report(tool, out)
            check(report.totals["status"] == "stopped" and report.totals["signal"] == number.name and report.counts()[0] == 3, report)
            check(list(report.by_name()) == [("file", None), ("describe", 0), ("describe", 1)], report)


def a_signal_before_the_first_result_leaves_the_header_and_the_totals(tool):
    with subprocess.Popen([tool.program, "--json", tool.plugin], env=os.environ | {"FAULTY": "enumerate_hangs"}, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as process:
        wait_for_hang(process)
        process.terminate()
        report = Report(tool, process.communicate(timeout=100)[0])
    check(process.returncode == -signal.SIGTERM and report.totals["status"] == "stopped" and not report.checks, report)


def a_run_that_is_killed_leaves_every_result_until_then(tool):
    for form in (["--json"], []):
        options = [*form, "--only", "describe", "--only", "read@0", tool.plugin]
        with subprocess.Popen([tool.program, *options], env=os.environ | {"FAULTY": "read_hangs"}, stdout=subprocess.PIPE, text=True) as process:
            wait_for_hang(process)
            process.kill()
            out = process.communicate(timeout=100)[0]
        if form:
            results = [json.loads(line).get("result") for line in out.splitlines()]
            check(results == [None, "passed", "passed", "passed"], out)
        else:
            check(out.splitlines()[-1].startswith("ok 3 - describe@1: "), out)


def keys_come_in_the_order_of_the_schema(tool):
    report, described = tool.mixed(), validator(tool.schema_path).schema["$defs"]
    for part, name in ((report.header, "header"), (report.header["host"], "host"), (report.totals, "totals"), *((one, "check") for one in report.checks),
                       *((one, "listed") for one in tool.listed())):
        check(list(part) == described[name]["required"] == list(described[name]["properties"]), list(part))
    plugin = described["header"]["properties"]["plugin"]
    check(list(report.header["plugin"]) == plugin["required"] == list(plugin["properties"]), report)


def a_changed_line_does_not_pass_the_schema(tool):
    report, passes = tool.mixed(), validator(tool.schema_path).is_valid
    error = {"schema": "gpuhal.check/2", "error": {"code": "usage", "message": "no plugin was given"}}
    listed = tool.listed()[0]
    lines = (*report.lines, error, listed)
    check(all(passes(line) for line in lines), "one that was not changed")
    passed = [(path, key, what) for line in lines for path, key, what, change in spoilings(line) if passes(changed(line, path, change))]
    one = {line["result"]: line for line in report.checks}
    for line, path, key, value in ((report.header, (), "schema", "gpuhal.check/1"), (report.header, (), "generated_at", "today"),
                                   (report.header, (), "abi_version", "0"), (report.header, ("host",), "cpu", ""), (report.header, ("plugin",), "name", ""),
                                   (report.totals, (), "status", "fine"), (report.totals, (), "signal", "SIGTERM"), (report.totals, (), "status", "stopped"),
                                   (report.totals, (), "failed", -1), (listed, (), "rule", "23"), (error, ("error",), "code", "odd"),
                                   (one["passed"], (), "message", "but"), (one["passed"], (), "rule", "M-23"), (one["passed"], (), "device", -1),
                                   (one["passed"], (), "notes", [""]), (one["passed"], (), "time_ms", -1), (one["failed"], (), "message", None),
                                   (one["failed"], (), "rule", "23"), (one["failed"], (), "result", "broken"), (one["expected"], (), "expected", None),
                                   (one["skipped"], (), "message", None), (one["skipped"], (), "hint", "none")):
        if passes(changed(line, path, lambda at: at.update({key: value}))):
            passed.append((path, key, value))
    check(not passed, "the schema lets these through:", *passed)


if __name__ == "__main__":
    sys.exit(together.run(globals(), "tool", sys.argv[1], lambda test: test(Tool(*sys.argv[2:5])), read_schema))
