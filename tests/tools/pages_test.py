#!/usr/bin/env python3
"""Checks that output of gpuhal-probe on pages equals its output on recorded machines: PAGES_TEST SOURCE_DIRECTORY."""

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
    """Checks the quoted texts in the first column of a table. In these texts … matches anything. The JSON is from a
    later run than the screen, and contains the messages of the screen."""
    printed = " ".join(" ".join(file.read_text(encoding="utf-8").split()) for name in ("screens.txt", "probe.json") for file in recorded.glob(f"*/{name}"))
    for line in (source / "docs/troubleshooting.md").read_text(encoding="utf-8").splitlines():
        first = re.match(r"\| (.*?) \| ", line)
        for words in re.findall(r"`([^`]{4,})`", first[1] if first else ""):
            pattern = ".{0,80}?".join(map(re.escape, words.split("…")))
            if not words.startswith("-") and not re.search(pattern, printed):
                yield f"docs/troubleshooting.md: no recorded machine prints \"{words}\""


def answers_that_a_screen_does_not_have():
    """Checks the table of questions. Its texts must be on the screen of a machine, and its options in the last line of
    the screen."""
    page = (source / "docs/instead-of.md").read_text(encoding="utf-8").split("## What the default screen answers")[-1]
    answered = re.findall(r"^\| (.*) \| `(.*)` \| `([\w-]+)` \|$", page, re.M)
    named = re.findall(r"^\| .* \| ((?:`--[^`]+`(?:; )?)+) \|$", page, re.M)
    if len(answered) < 21 or len(named) != 7:
        yield f"docs/instead-of.md: {len(answered)} questions are answered on the screen, {len(named)} by an option"
    for question, text, machine in answered:
        if text not in screen_of(machine, 80):
            yield f"docs/instead-of.md: {question}: no \"{text}\" on the screen of {machine}"
    more = screen_of("h100-8", 80).splitlines()[-1]
    for option in {option for options in named for option in re.findall(r"`(.*?)`", options)}:
        if option not in more:
            yield f"docs/instead-of.md: the last line of the screen does not name {option}"


def words_without_a_line():
    """Checks gpuhal-probe's words for hardware states, for health, and for other findings."""
    page = "".join(line for line in (source / "docs/errors.md").read_text(encoding="utf-8").splitlines(True) if line.startswith("| `"))
    states = re.search(r"gpuhal_hardware_state_name.*?\{(.*?)\}", (source / "hal/node/hardware.c").read_text(encoding="utf-8").replace("{\n", "", 1), re.S)[1]
    health = (source / "tools/probe/health.c").read_text(encoding="utf-8")
    others = (source / "tools/probe/problems.c").read_text(encoding="utf-8")
    words = {*re.findall(r'"([a-z_]+)"', states), *re.findall(r'\] = "([a-z_]+)"', health), *re.findall(r'"([a-z]+_[a-z_]+)"', others)}
    if not {"off_bus", "reset_needed", "values_timed_out"} <= words:
        yield "the source has other forms of words"
    for word in sorted(words - {"unknown", "ready"}):
        if f"`{word}`" not in page:
            yield f"docs/errors.md has no line for {word}"


mistakes = [*wrong_screens(), *symptoms_that_nothing_prints(), *answers_that_a_screen_does_not_have(), *words_without_a_line()]
print(*mistakes, sep="\n")
sys.exit(bool(mistakes))
