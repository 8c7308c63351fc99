#!/usr/bin/env python3
"""What gpuhal-check --json prints, over the misbehaving plugin of tests/conformance. check_json_test.py TEST|all PROGRAM FAULTY SCHEMA;
77 means skipped."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import together
from probe_support import changed, check, read_schema, spoilings, validator


class Tool:
    def __init__(self, program, faulty, schema):
        self.program, self.plugin, self.schema_path = program, os.path.join(faulty, "faulty.so"), schema
        self.good_manifest = os.path.join(faulty, "manifests/good.gpuhal")

    def run(self, *options, code, fault="good_all", **more):
        """The document, which follows the schema; @code: the exit status that is the same without --json."""
        environment = os.environ | {"FAULTY": fault}
        done = subprocess.run([self.program, "--json", *options], env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=100, **more)
        plain = subprocess.run([self.program, *options], env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=100, **more)
        check(done.returncode == code and plain.returncode == code, done, plain)
        document = json.loads(done.stdout)
        wrong = [f"{list(error.absolute_path)}: {error.message}" for error in validator(self.schema_path).iter_errors(document)]
        check(not wrong, document, *wrong)
        return document

    def listed(self):
        done = subprocess.run([self.program, "--list", "--json"], capture_output=True, check=True, timeout=100)
        return json.loads(done.stdout)

    def mixed(self):
        """A document with every result: copy fails, on the second device as expected, and there is no manifest."""
        with tempfile.NamedTemporaryFile("w", suffix=".expect") as expect:
            expect.write("copy@1: known since last week\n")
            expect.flush()
            return self.run("--only", "copy", "--only", "manifest", "--only", "health@0", "--expect", expect.name, self.plugin, code=1, fault="copy_short")


def by_name(document):
    return {(one["name"], one["device"]): one for one in document["checks"]}


def a_plugin_that_passes_is_described_with_the_machine_and_the_time_of_each_check(tool):
    document = tool.run("--only", "copy", tool.plugin, code=0)
    check(document["status"] == "passed" and document["counts"] == {"passed": 3, "failed": 0, "expected": 0, "skipped": 0}, document)
    check(list(by_name(document)) == [("file", None), ("copy", 0), ("copy", 1)], document)
    check(all(one["time_ms"] > 0 for one in document["checks"]), document)
    plugin = document["plugin"]
    check(plugin["file"] == os.path.abspath(tool.plugin) and plugin["manifest"] is None, plugin)
    check(plugin["name"] == "faulty" and plugin["version"] and plugin["abi_version"] == document["abi_version"], plugin)


def the_machine_is_described_as_by_gpuhal_probe(tool):
    probe = os.path.join(os.path.dirname(tool.program), "gpuhal-probe")
    listing = json.loads(subprocess.run([probe, "--json", "--backends", "cpu"], capture_output=True, check=False).stdout)
    document = tool.run("--only", "copy@0", tool.plugin, code=0)
    check(document["host"] == listing["host"] and document["host"]["cpu"], document["host"], listing["host"])
    with open(os.path.join(os.path.dirname(tool.schema_path), "gpuhal.probe-2.schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    check(validator(tool.schema_path).schema["$defs"]["host"]["properties"] == schema["$defs"]["host"]["properties"], "the schemas differ")


def failed_expected_and_skipped_checks_say_why(tool):
    document = tool.mixed()
    check(document["status"] == "failed" and document["counts"] == {"passed": 2, "failed": 1, "expected": 1, "skipped": 1}, document)
    checks = by_name(document)
    failed, expected, skipped = checks["copy", 0], checks["copy", 1], checks["manifest", None]
    check(failed["result"] == "failed" and failed["rule"] == "M-23" and failed["message"] and failed["hint"] and failed["expected"] is None, failed)
    check(expected["result"] == "expected" and expected["expected"] == "known since last week" and expected["message"], expected)
    check(skipped["result"] == "skipped" and skipped["message"].startswith("no manifest was given") and skipped["rule"] is None, skipped)


def a_crash_is_a_failed_check_and_the_others_go_on(tool):
    document = tool.run("--only", "copy@0", "--only", "health@0", tool.plugin, code=1, fault="copy_crashes")
    crashed = by_name(document)["copy", 0]
    check(crashed["result"] == "failed" and crashed["message"] and crashed["rule"] == "M-27", crashed)
    check(by_name(document)["health", 0]["result"] == "passed", document)


def what_the_plugin_printed_stands_in_a_member_of_its_own(tool):
    document = tool.run("--only", "copy@0", "--only", "quiet", tool.plugin, code=1, fault="prints_output")
    quiet = by_name(document)["quiet", None]
    check("a word on standard output" in quiet["printed"] and quiet["message"] == "the plugin printed in the check copy", quiet)


def after_three_time_outs_the_others_are_skipped_and_the_run_has_failed(tool):
    options = ("--deadline", "1", "--only", "read", "--only", "copy@0", "--only", "copy_within", "--only", "health@0")
    with tempfile.NamedTemporaryFile("w", suffix=".expect") as expect:
        expect.write("read: hangs\ncopy: hangs\n")
        expect.flush()
        document = tool.run(*options, "--expect", expect.name, tool.plugin, code=1, fault="read_hangs")
    results = [(one["name"], one["device"], one["result"]) for one in document["checks"]]
    check(results == [("file", None, "passed"), ("read", 0, "expected"), ("read", 1, "expected"), ("copy", 0, "expected"),
                      ("copy_within", 0, "skipped"), ("copy_within", 1, "skipped"), ("health", 0, "skipped")], document)
    check(document["status"] == "failed" and document["checks"][-1]["message"].startswith("not run: "), document)


def a_manifest_is_named_with_its_library(tool):
    plugin = tool.run("--only", "manifest", tool.good_manifest, code=0)["plugin"]
    check(plugin["manifest"] == tool.good_manifest and os.path.samefile(plugin["file"], tool.plugin), plugin)


def a_plugin_that_cannot_be_used_has_one_failed_check(tool):
    for options in (("/nowhere/plugin.so",), ("/nowhere/plugin.gpuhal",), ("--device", "7", tool.plugin)):
        document = tool.run(*options, code=3)
        check(document["status"] == "no_plugin" and len(document["checks"]) == 1, document)
        only = document["checks"][0]
        check(only["name"] == "file" and only["result"] == "failed" and only["message"] and only["hint"], document)
    check(tool.run("/nowhere/plugin.so", code=3)["plugin"]["name"] is None, "a name out of nothing")


def a_mistake_on_the_command_line_is_a_document_and_a_sentence(tool):
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


def the_list_of_checks_is_a_document_with_the_rules(tool):
    document = tool.listed()
    check(validator(tool.schema_path).is_valid(document), document)
    plain = subprocess.run([tool.program, "--list"], capture_output=True, check=True, text=True, timeout=100).stdout
    check([f"{one['name']:<20} {one['sentence']}" for one in document["list"]] == plain.splitlines(), document, plain)
    described = validator(tool.schema_path).schema["else"]["then"]
    check(list(document) == described["required"], list(document))
    check(all(list(one) == described["properties"]["list"]["items"]["required"] for one in document["list"]), document)
    copy, query = (next(one for one in document["list"] if one["name"] == name) for name in ("copy", "query"))
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
    """Until the child of @process sleeps, as the plugin does that hangs in read."""
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
                                  text=True, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)) as process:  # where a shell ignores it
                wait_for_hang(process)
                process.send_signal(number)
                out, err = process.communicate(timeout=100)
            check(process.returncode == -number and err == f"gpuhal-check: ended by {number.name}\n", process.returncode, out, err)
            if not form:
                check("\nok 3 - describe@1: " in out and out.endswith(f"\nBail out! ended by {number.name}\n"), out)
                continue
            document = json.loads(out)
            check(document["status"] == "stopped" and document["signal"] == number.name and document["counts"]["passed"] == 3, document)
            check(list(by_name(document)) == [("file", None), ("describe", 0), ("describe", 1)], document)
            check(validator(tool.schema_path).is_valid(document), document)


def a_signal_before_the_first_result_leaves_a_document_too(tool):
    with subprocess.Popen([tool.program, "--json", tool.plugin], env=os.environ | {"FAULTY": "enumerate_hangs"}, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        wait_for_hang(process)
        process.terminate()
        document = json.loads(process.communicate(timeout=100)[0])
    check(process.returncode == -signal.SIGTERM and document["status"] == "stopped" and not document["checks"], document)
    check(validator(tool.schema_path).is_valid(document), document)


def keys_come_in_the_order_of_the_schema(tool):
    document, schema = tool.mixed(), validator(tool.schema_path).schema
    check(list(document) == schema["$defs"]["report"]["required"] == list(schema["properties"]), list(document))
    for part, described in ((document["plugin"], schema["properties"]["plugin"]), (document["counts"], schema["properties"]["counts"]),
                            (document["host"], schema["$defs"]["host"]), *((one, schema["$defs"]["check"]) for one in document["checks"])):
        check(list(part) == described["required"] == list(described["properties"]), list(part))


def a_changed_document_does_not_pass_the_schema(tool):
    document, passes = tool.mixed(), validator(tool.schema_path).is_valid
    error = {"schema": "gpuhal.check/1", "error": {"code": "usage", "message": "no plugin was given"}}
    check(passes(document) and passes(error), "one that was not changed")
    passed = [(path, key, what) for one in (document, error, tool.listed()) for path, key, what, change in spoilings(one) if passes(changed(one, path, change))]
    number = {one["result"]: index for index, one in enumerate(document["checks"])}
    for path, key, value in (((), "schema", "gpuhal.check/2"), ((), "status", "fine"), ((), "generated_at", "today"), ((), "checks", []),
                             ((), "signal", "SIGTERM"), ((), "status", "stopped"), ((), "abi_version", "0"), (("counts",), "failed", -1), (("host",), "cpu", ""), (("plugin",), "name", ""),
                             (("checks", number["passed"]), "message", "but"), (("checks", number["passed"]), "rule", "M-23"),
                             (("checks", number["passed"]), "device", -1), (("checks", number["passed"]), "notes", [""]),
                             (("checks", number["passed"]), "time_ms", -1), (("checks", number["failed"]), "message", None),
                             (("checks", number["failed"]), "rule", "23"), (("checks", number["failed"]), "result", "broken"),
                             (("checks", number["expected"]), "expected", None), (("checks", number["skipped"]), "message", None),
                             (("checks", number["skipped"]), "hint", "none")):
        if passes(changed(document, path, lambda at: at.update({key: value}))):
            passed.append((path, key, value))
    check(not passed, "the schema lets these through:", *passed)


if __name__ == "__main__":
    sys.exit(together.run(globals(), "tool", sys.argv[1], lambda test: test(Tool(*sys.argv[2:5])), read_schema))
