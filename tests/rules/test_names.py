#!/usr/bin/env python3
"""Every test that a page or a program names exists: test_names.py CTEST SOURCE_DIRECTORY BUILD_DIRECTORY.

CTest expressions are in .ci/run, tests/mutation/run.py and the commands of the pages. Each alternative of an expression, also inside its
groups, must select a test or a label, because otherwise tests would silently be left out. Capital letters stand for any name.
The pages and the public headers contain names in backquotes, `group.test` or `group.beginning…`. They count if a test group has this
name; other names are files or options. Each line of docs/guarantees.md that begins with a star is a promise: one sentence that ends
with the tests that prove it, in parentheses. CMakeLists.txt adds this rule only to builds that have all tests.
"""

import re
import sys
from pathlib import Path

from must_rules import tests_of

PROMISES_AT_MOST = 120
GROUPS_AT_MOST = 9  # CMake compiles no expression with more
QUOTED = re.compile(r"`([a-z0-9_]+(?:\.[a-z0-9_-]+)?\.[a-z0-9_-]*(?:[a-z0-9]|\*|…))`")
FILE = re.compile(r"\.(?:c|h|hpp|inc|py|sh|md|txt|csv|json)$")
SHOWN = re.compile(r" \(((?:`[^`]+`(?:, )?)+)\)\.$")


def parts_of(expression):
    """Returns the top-level alternatives of an expression and, if there is only one, the positions of its groups' contents."""
    alternatives, groups, depth, begin = [], [], 0, 0
    for match in re.finditer(r"\\.|\[\]?[^]]*\]|[()|]", expression):
        at, mark = match.start(), match.group()
        if mark == "(":
            depth += 1
            if depth == 1:
                groups.append([at + 1, None])
        elif mark == ")":
            if depth == 1:
                groups[-1][1] = at
            depth -= 1
        elif mark == "|" and depth == 0:
            alternatives.append(expression[begin:at])
            begin = at + 1
    return alternatives + [expression[begin:]], groups


def choices_of(expression):
    """Returns one expression for each top-level alternative, and one for each alternative of a group, with the other groups unchanged."""
    alternatives, groups = parts_of(expression)
    if len(alternatives) > 1:
        return [choice for alternative in alternatives for choice in choices_of(alternative)]
    found = []
    for begin, end in groups:
        inside = choices_of(expression[begin:end])
        found += [expression[:begin] + choice + expression[end:] for choice in inside if len(inside) > 1]
    return found or [expression]


def selects(expression, texts):
    """Returns whether CTest finds the expression in one of the texts. CTest does not support classes such as \\d."""
    python = re.sub(r"\\([A-Za-z])", r"\1", re.sub(r"[A-Z]{2,}", ".+", expression))
    return any(re.search(python, text) for text in texts)


def expressions_of(text):
    """Returns pairs from a script or a page: whether labels are selected, and the expression. Expressions in variables contain a ^ but not a slash."""
    text = re.sub(r"(?:^|\s)# .*|\$\w+\|?", "", text, flags=re.M)
    found = [("L" in option, (quoted or word)) for option, quoted, word in re.findall(r"\s-(L|LE|R|E) (?:'([^'\n]+)'|([a-z][\w|]*))", text)]
    strings = [one or two for one, two in re.findall(r"(?:=|^ +)'([^'\n]*\^[^'\n]*)'|=\"([^\"\n]*\^[^\"\n]*)\"", text, re.M)]
    return found + [(False, string) for string in strings if (False, string) not in found and "/" not in string]


def complaints_of_expressions(where, pairs, tests):
    labels = {label for test in tests.values() for label in test}
    for of_labels, expression in pairs:
        if len(re.findall(r"(?<!\\)\(", expression)) > GROUPS_AT_MOST:
            yield f"{where}: more than {GROUPS_AT_MOST} groups: {expression}"
        for choice in choices_of(expression):
            if not selects(choice, labels if of_labels else tests):
                yield f"{where}: {choice} selects no {'label' if of_labels else 'test'}"


def known(name, tests):
    beginning = name.rstrip("*…")
    return name in tests if beginning == name else any(test.startswith(beginning) for test in tests)


def complaints_of_names(where, text, tests, options):
    groups = {test.rpartition(".")[0] for test in tests}
    for name in QUOTED.findall(text):
        if name.rpartition(".")[0] in groups and not known(name, tests) and not FILE.search(name) and name not in options:
            yield f"{where}: there is no test {name}"


def complaints_of_promises(where, text, tests):
    promises = re.findall(r"^\* (.*(?:\n +.*)*)", text, re.M)
    if not 1 <= len(promises) <= PROMISES_AT_MOST:
        yield f"{where}: {len(promises)} promises; {PROMISES_AT_MOST} are the limit"
    for promise in (" ".join(promise.split()) for promise in promises):
        shown = SHOWN.search(promise)
        if not shown:
            yield f"{where}: no tests end the sentence: {promise}"
        elif re.search(r"[.?!] [A-Z]", promise):
            yield f"{where}: more than a sentence: {promise}"
        for name in re.findall(r"`([^`]+)`", shown.group(1)) if shown else ():
            if not known(name, tests):
                yield f"{where}: there is no test {name}"


def try_on_examples():
    """Yields a sentence for each example with a wrong result."""
    tests = {"queue.ends": ["unit"], "queue.ends_well": ["unit"], "cpu.works": ["system", "soak"], "a.b.c": []}
    expressions = lambda text: complaints_of_expressions("x", expressions_of(text), tests)
    names = lambda text: complaints_of_names("x", text, tests, {"cpu.threads"})
    promises = lambda text: complaints_of_promises("x", text, tests)
    judged = [
        (expressions, False, [" -R '^queue\\.|^(cpu|a)\\.' -LE soak", "x='^queue\\.e|[^q]$' # -R '^gone'", " -L 'unit|soak'", ' -R "$2"',
                              "x='^/(hal|tools)/'", " -R '^(NAME|cpu)\\.'", "all='^cpu'\ny=\"$all|^queue\""]),
        (expressions, True, [" -R '^gone\\.'", " -E '^(queue|gone)\\.'", " -E '^(cpu|(queue|gone)\\.ends)'", " -L gone", "x='^queue\\w'",
                             "x='^queue|gone'", "=\"$all|^gone\"", " -R '" + "(q)" * 10 + "'", " -R '^queue\\.|^queue\\.gone'"]),
        (names, False, ["`queue.ends` `queue.ends…` `queue.*` `a.b.c`", "`queue.h` `cpu.threads` `other.ends` queue.gone"]),
        (names, True, ["`queue.gone`", "`queue.g…`", "`a.b.d`"]),
        (promises, False, ["# A\n\n* It ends (`queue.ends`).\n* It ends,\n  and well (`queue.ends`,\n  `cpu.*`).\n\nMore.\n"]),
        (promises, True, ["", "* It ends.\n", "* It ends (`queue.gone`).\n", "* It ends. It works (`cpu.works`).\n", "* It ends (`gone.*`).\n",
                          "* It ends (`queue.ends`).\n" * (PROMISES_AT_MOST + 1)])]
    for rule, expected, texts in judged:
        for text in texts:
            found = list(rule(text))
            if bool(found) != expected:
                yield f"the rule itself is broken: {'silent about' if expected else 'complains about'} {text!r}: {found}"


def main():
    ctest, source, build = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    sys.path.insert(0, str(source / "tests/mutation"))
    import run as mutation
    tests = {**tests_of(ctest, build, "-C", "builds"), **tests_of(ctest, build, "-C", "large")}
    pages = [*sorted(source.glob("docs/*.md")), *sorted(source.glob("*.md"))]
    texts = {path.relative_to(source).as_posix(): path.read_text(encoding="utf-8")
             for path in [source / ".ci/run", *pages, *sorted((source / "hal/include").rglob("*.h*"))]}
    options = set(QUOTED.findall(texts["docs/environment.md"]))
    found = [*try_on_examples(), *complaints_of_expressions("tests/mutation/run.py", [(False, each) for _, each in mutation.TESTS], tests)]
    found += complaints_of_promises("docs/guarantees.md", texts.get("docs/guarantees.md", ""), tests)
    for where, text in texts.items():
        commands = text if where == ".ci/run" else "\n".join(re.findall(r".*\bctest .*", text))
        found += complaints_of_expressions(where, expressions_of(commands), tests)
        found += complaints_of_names(where, text, tests, options)
    sys.stdout.writelines(f"{sentence}\n" for sentence in dict.fromkeys(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
