#!/usr/bin/env python3
"""The numbered rules of docs/vendor-guide.md are tied to what checks them: must_rules.py CTEST SOURCE_DIRECTORY BUILD_DIRECTORY.

Between a rule, which begins with **M-01, and the next one stands a paragraph that begins with "Checked by:". It names checks of
gpuhal-check (`symbols`) or tests (`loader_corpus.…`, with a dot), which have to exist, or says after "Not by a program:" why there are
none. A rule without such a paragraph, or with names that nothing answers to, is a complaint.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

RULE = re.compile(r"^\*\*M-(\d\d) ", re.MULTILINE)
CHECKED = re.compile(r"^Checked by: (.*?)(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
HONEST = "Not by a program:"


def complaints(guide, checks, tests):
    rules = list(RULE.finditer(guide))
    if not rules:
        yield "there is no rule"
    for place, rule in enumerate(rules):
        name = f"M-{rule.group(1)}"
        if int(rule.group(1)) != place + 1:
            yield f"{name} stands where M-{place + 1:02} should be"
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
            if wanted not in (tests if "." in wanted else checks):
                yield f"{name}: there is no {'test' if '.' in wanted else 'check'} {wanted}"


def try_on_examples():
    """Sentences about examples that are judged wrongly."""
    rule = "**M-01 It MUST.** So.\n\n"
    good = [rule + "Checked by: `symbols`.\n", rule + "Checked by: `symbols`,\n`unit.one_works`.\n\nMore.\n",
            rule + "Checked by: Not by a program: nobody can see it there.\n", rule + "Checked by: `symbols`.\n\n" + rule.replace("1", "2", 1)
            + "Checked by: `quiet`, for a part. Not by a program: the rest.\n"]
    bad = ["", rule, rule + "Checked by: nobody.\n", rule + "Checked by: `gone`.\n", rule + "Checked by: `unit.gone`.\n",
           rule + "Checked by: Not by a program: no.\n", rule.replace("1", "2", 1) + "Checked by: `quiet`.\n",
           rule + rule.replace("1", "2", 1) + "Checked by: `quiet`.\n"]
    for expected, texts in ((False, good), (True, bad)):
        for text in texts:
            found = list(complaints(text, {"symbols", "quiet"}, {"unit.one_works"}))
            if bool(found) != expected:
                yield f"the rule itself is broken: {'silent about' if expected else 'complains about'} {text!r}: {found}"


def main():
    ctest, source, build = sys.argv[1:]
    guide = (Path(source) / "docs/vendor-guide.md").read_text(encoding="utf-8")
    table = (Path(source) / "tools/check/checks.inc").read_text(encoding="utf-8")
    checks = set(re.findall(r"^CHECK\((\w+),", table, re.MULTILINE))
    shown = subprocess.run([ctest, "--show-only=json-v1"], cwd=build, check=True, stdout=subprocess.PIPE).stdout
    tests = {test["name"] for test in json.loads(shown)["tests"]}
    found = list(try_on_examples()) + list(complaints(guide, checks, tests))
    for sentence in found:
        print(sentence)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
