#!/usr/bin/env python3
"""The numbered rules of docs/vendor-guide.md name the checks that test them: must_rules.py CTEST SOURCE_DIRECTORY BUILD_DIRECTORY.

A rule begins with its number, such as **M-01. A paragraph "Checked by:" follows it, and names checks of gpuhal-check (`symbols`) or
tests (`loader_corpus.…`, with a dot), which must exist; or it explains after "Not by a program:" why there are none. For each named check,
tests/conformance/faults.inc has a plugin that breaks this rule and fails this check. The default rule of each check in
tools/check/checks.inc must name the check. Numbers are never reused; they may be in any order, but each occurs exactly once and none is
missing. tools/check/rules.inc has a hint for each.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

RULE = re.compile(r"^\*\*M-(\d\d) ", re.MULTILINE)
CHECKED = re.compile(r"^Checked by: (.*?)(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
HONEST = "Not by a program:"


def complaints(guide, checks, tests, hints, proofs):
    """checks: {name: number of the default rule}; proofs: pairs of a check and a rule number."""
    rules = list(RULE.finditer(guide))
    if not rules:
        yield "there is no rule"
    numbers = sorted(int(rule.group(1)) for rule in rules)
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"the rules are not M-01 to M-{len(numbers):02}, each once"
    if sorted(hints) != numbers:
        yield f"rules.inc has hints for {sorted(hints)}, and the guide has {numbers}"
    named_by = {}
    for place, rule in enumerate(rules):
        number, name = int(rule.group(1)), f"M-{rule.group(1)}"
        end = rules[place + 1].start() if place + 1 < len(rules) else len(guide)
        checked = CHECKED.findall(guide[rule.start():end])
        if len(checked) != 1:
            yield f"{name} has {len(checked)} paragraphs that begin with \"Checked by:\""
            continue
        by, _, why = " ".join(checked[0].split()).partition(HONEST)
        names = re.findall(r"`([^`]+)`", by)
        if not names and len(why.split()) < 4:
            yield f"{name} names neither a check nor why there is none"
        for wanted in names:
            named_by.setdefault(wanted, set()).add(number)
            if wanted not in (tests if "." in wanted else checks):
                yield f"{name}: there is no {'test' if '.' in wanted else 'check'} {wanted}"
            elif "." not in wanted and (wanted, number) not in proofs:
                yield f"{name}: no plugin in faults.inc breaks it and fails {wanted}"
    for check, number in checks.items():
        if number not in named_by.get(check, ()):
            yield f"the check {check} is about M-{number:02}, whose paragraph does not name it"


def tests_of(ctest, build, *more):
    """The tests of a build, by name, with their labels."""
    shown = subprocess.run([ctest, *more, "--show-only=json-v1"], cwd=build, check=True, stdout=subprocess.PIPE).stdout
    properties = {test["name"]: {each["name"]: each["value"] for each in test["properties"]} for test in json.loads(shown)["tests"]}
    return {name: values.get("LABELS", []) for name, values in properties.items()}


def try_on_examples():
    """Yields a sentence for each example with a wrong result."""
    rule, other = "**M-01 It MUST.** So.\n\n", "**M-02 It MUST.** So.\n\n"
    checks, proofs = {"symbols": 1}, {("symbols", 1), ("symbols", 2)}
    one = rule + "Checked by: `symbols`.\n"
    good = [(one, {1}), (rule + "Checked by: `symbols`,\n`unit.one_works`.\n\nMore.\n", {1}),
            (one + "\n" + other + "Checked by: Not by a program: it is invisible there.\n", {1, 2}),
            (other + "Checked by: `symbols`, for a part. Not by a program: the rest.\n\n" + one, {1, 2})]
    bad = [("", set()), (rule, {1}), (one, set()), (one, {1, 2}), (rule + "Checked by: nothing.\n", {1}),
           (rule + "Checked by: `symbols`, `gone`.\n", {1}), (rule + "Checked by: `symbols`, `unit.gone`.\n", {1}),
           (rule + "Checked by: Not by a program: no.\n", {1}), (other + "Checked by: `symbols`.\n", {2}),
           (one + rule + "Checked by: `symbols`.\n", {1}),
           (rule + "Checked by: `unit.one_works`.\n\n" + other + "Checked by: `symbols`.\n", {1, 2}),
           (one + "\n" + other + "Checked by: `quiet`.\n", {1, 2})]
    for expected, texts in ((False, good), (True, bad)):
        for text, hints in texts:
            known = {**checks, "quiet": 2} if "quiet" in text else checks
            found = list(complaints(text, known, {"unit.one_works"}, hints, proofs))
            if bool(found) != expected:
                yield f"the rule itself is broken: {'silent about' if expected else 'complains about'} {text!r}: {found}"


def main():
    ctest, source, build = sys.argv[1:]
    read = lambda path: (Path(source) / path).read_text(encoding="utf-8")
    guide = read("docs/vendor-guide.md")
    checks = {name: int(rule) for name, rule in re.findall(r"^CHECK\((\w+), \w+, (\d+),", read("tools/check/checks.inc"), re.MULTILINE)}
    hints = [int(number) for number in re.findall(r"^RULE\((\d+),", read("tools/check/rules.inc"), re.MULTILINE)]
    faults = re.findall(r'^FAULT(?:_FILE)?\(\w+,(?: "[^"]*",)? \d, "[^"]*", (\w+), (\d+),', read("tests/conformance/faults.inc"), re.MULTILINE)
    proofs = {(check, int(rule)) for check, rule in faults}
    tests = tests_of(ctest, build)
    found = list(try_on_examples()) + list(complaints(guide, checks, tests, hints, proofs))
    for sentence in found:
        print(sentence)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
