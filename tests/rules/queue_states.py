#!/usr/bin/env python3
"""The page of a queue's states: queue_states.py SOURCE_DIRECTORY [--write].

Makes docs/queue-states.md from hal/core/queue/states.inc, or reports differences from the page. Also checks that every state can be
reached from the first state of its region, and that no change leads to another region.
"""

import re
import sys
from pathlib import Path

REGIONS = {
    "life": "Its life, as its user sees it",
    "health": "Whether it takes work",
    "right": "Who may call the plugin on it",
    "worker": "Who works its list off",
}
HEAD = """# The states of a queue

This page is made from `hal/core/queue/states.inc` (`python3 tests/rules/queue_states.py . --write`), and a test compares them. A queue has one
state of each of four regions, which change independently, under the queue's mutex, by `gpuhal_queue_change()`. Builds for debugging and with
sanitizers stop at a change that is not drawn here. [Transfers and queues](transfers.md) explains the rest.

The one way past the mutex is the fast path of `hal/core/queue/fast_path.c`: for transfers like the one before, and for launches in a row, a thread
takes the right to call by one atomic exchange. Every thread that locks the mutex closes that path first, so no state below changes while it is open.
"""
PLACES = """
## Where threads wait

All threads wait on the one condition of the queue, each for another reason: `gpuhal_queue_wait_at()` takes the place as an argument, and
`waiting` in `struct gpuhal_queue` counts the threads at each, for debuggers too.

| place | waiting thread | until |
|---|---|---|
"""


def read(root):
    text = (root / "hal/core/queue/states.inc").read_text(encoding="utf-8")
    states = re.findall(r'^STATE\((\w+), (\w+), "(.*)"\)$', text, re.M)
    changes = re.findall(r'^CHANGE\((\w+), (\w+), "(.*)"\)$', text, re.M)
    places = re.findall(r'^PLACE\((\w+), "(.*)", "(.*)"\)$', text, re.M)
    return states, changes, places


def page(states, changes, places):
    lines = [HEAD.rstrip("\n")]
    for region, title in REGIONS.items():
        names = [name for of, name, _ in states if of == region]
        lines += [f"\n## {title}\n", "```mermaid", "stateDiagram-v2", f"    [*] --> {names[0]}"]
        lines += [f"    {one} --> {other}: {reason}" for one, other, reason in changes if one in names]
        lines += ["```\n", "| state | meaning |", "|---|---|"]
        lines += [f"| {name} | {meaning} |" for of, name, meaning in states if of == region]
    lines += [PLACES.rstrip("\n")] + [f"| {name} | {who} | {until} |" for name, who, until in places]
    return "\n".join(lines) + "\n"


def complaints_about_the_source(root, rows):
    text = (root / "hal/core/queue/states.inc").read_text(encoding="utf-8")
    if len(re.findall(r"\b(?:STATE|CHANGE|PLACE)\(", text.split("*/", 1)[1])) != rows:
        yield "states.inc: a line is not of the form that this rule reads"
    for path in sorted((root / "hal/core/queue").glob("*.c")):
        for name in re.findall(r"->(?:life|health|right|worker) = (\w+)", path.read_text(encoding="utf-8")):
            if path.name != "queue.c" or name not in ("GPUHAL_QUEUE_OPEN", "GPUHAL_QUEUE_USABLE", "GPUHAL_QUEUE_FREE", "GPUHAL_QUEUE_UNATTENDED"):
                yield f"{path.relative_to(root)}: sets {name} without gpuhal_queue_change()"


def complaints(states, changes):
    for of in sorted({of for of, _, _ in states} - set(REGIONS)):
        yield f"states.inc: {of} is no region that is drawn"
    region = {name: of for of, name, _ in states}
    for one, other, _ in changes:
        if region.get(one) != region.get(other):
            yield f"states.inc: {one} and {other} are not of one region"
    for name in REGIONS:
        names = [state for state in region if region[state] == name]
        reached = set(names[:1])
        for _ in names:
            reached |= {other for one, other, _ in changes if one in reached}
        for lost in sorted(set(names) - reached):
            yield f"states.inc: nothing leads to {lost}"


def main():
    root = Path(sys.argv[1])
    states, changes, places = read(root)
    found = list(complaints(states, changes)) + list(complaints_about_the_source(root, len(states) + len(changes) + len(places)))
    made, path = page(states, changes, places), root / "docs/queue-states.md"
    if "--write" in sys.argv:
        path.write_text(made, encoding="utf-8")
    elif path.read_text(encoding="utf-8") != made:
        found.append(f"{path.relative_to(root)} is not what hal/core/queue/states.inc says: python3 tests/rules/queue_states.py . --write")
    if not list(complaints([("life", "A", ""), ("life", "B", ""), ("right", "C", "")], [("A", "C", "")])):
        found.append("the rule itself is broken")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
