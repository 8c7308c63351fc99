#!/usr/bin/env python3
"""What pages show of gpuhal-probe is what it prints on recorded machines: PAGES_TEST SOURCE_DIRECTORY."""

import re
import sys
from pathlib import Path

source = Path(sys.argv[1])
recorded = source / "tests/recorded"
SHOWN = re.compile(r"<!-- tests/recorded/([\w-]+), (\d+) columns -->\n```text\n\$ gpuhal-probe\n(.*?)```\n", re.S)


def screen_of(machine, columns):
    text = (recorded / machine / "screens.txt").read_text(encoding="utf-8")
    return re.search(rf"^\$ COLUMNS={columns} gpuhal-probe -> \d+\n(.*?)\n(?=\$ )", text, re.M | re.S)[1].rstrip() + "\n"


def without_dates(text):
    return re.sub(r"\b\d{4}-\d\d-\d\d\b", "0000-00-00", text)


def wrong_screens():
    pages = [source / "README.md", *(source / "docs").glob("*.md")]
    shown = [(page.name, *found) for page in pages for found in SHOWN.findall(page.read_text(encoding="utf-8"))]
    if not any(page == "README.md" for page, *_ in shown):
        yield "README.md shows no recorded machine"
    for page, machine, columns, text in shown:
        if without_dates(text) != screen_of(machine, columns):
            yield f"{page}: {machine} in {columns} columns prints:\n{screen_of(machine, columns)}"


def symptoms_that_nothing_prints():
    """Quoted in the first column of a table; … stands for anything."""
    printed = " ".join(" ".join(file.read_text(encoding="utf-8").split()) for file in recorded.glob("*/screens.txt"))
    for line in (source / "docs/troubleshooting.md").read_text(encoding="utf-8").splitlines():
        first = re.match(r"\| (.*?) \| ", line)
        for words in re.findall(r"`([^`]{4,})`", first[1] if first else ""):
            pattern = ".{0,80}?".join(map(re.escape, words.split("…")))
            if not words.startswith("-") and not re.search(pattern, printed):
                yield f"docs/troubleshooting.md: no recorded machine prints \"{words}\""


mistakes = [*wrong_screens(), *symptoms_that_nothing_prints()]
print(*mistakes, sep="\n")
sys.exit(bool(mistakes))
