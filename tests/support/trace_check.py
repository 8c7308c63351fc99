#!/usr/bin/env python3
"""Checks a queue trace against the promises of gpuhal/trace.h, and prints its contents, one item per line, in the order of the
pieces' numbers, with URL-encoded names: trace_check.py FILE

    piece NUMBER LANE CATEGORY NAME BYTES USAGE PATH CLOCK STATUS BEGIN END
    event NUMBER LANE CLOCK STATUS TIME
    arrow NUMBER NUMBER
    sum USAGE BYTES COUNT          only pieces without a status
    other PIECES DROPPED UNFINISHED
"""
import collections
import decimal
import json
import sys
import urllib.parse

USAGES = {"write": {"written"}, "read": {"read"}, "copy": {"copied", "pair"}, "fill": {"filled"},
          "rect": {"written", "read", "copied", "pair"}, "file": {"written", "read"}, "launch": {None}, "recording": {None}, "call": {None}}


def refuse_twice(pairs):
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), names
    return dict(pairs)


def refuse(constant):
    raise AssertionError(constant)


def ns(microseconds):
    value = decimal.Decimal(microseconds) * 1000
    assert value == int(value) and value >= 0, microseconds
    return int(value)


def check_piece(event):
    arguments = event["args"]
    assert set(event) == {"ph", "pid", "tid", "ts", "dur", "name", "cat", "args"}, event
    assert arguments.get("usage") in USAGES[event["cat"]], event
    assert ("bytes" in arguments) == ("usage" in arguments), event
    assert ("from" in arguments) == (arguments.get("usage") == "pair") == ("to" in arguments), event
    assert ("groups" in arguments) == (event["cat"] == "launch"), event
    assert event["cat"] in ("launch", "recording") or event["name"] == event["cat"], event
    assert arguments["path"] in ("direct", "worker", "peer", "shared", "staged"), event
    assert arguments["clock"] in ("device", "host", "none"), event
    assert ns(event["ts"]) >= ns(arguments["enqueued"]), event


def check_event(event):
    assert set(event) == {"ph", "pid", "tid", "ts", "s", "name", "cat", "args"} and event["s"] == "t", event
    assert event["name"] == event["cat"] == "event", event
    assert set(event["args"]) - {"status"} == {"number", "enqueued", "clock"}, event
    assert event["args"]["clock"] in ("device", "host", "none"), event
    assert ns(event["ts"]) >= ns(event["args"]["enqueued"]), event


def check_lanes(pieces):
    lanes = collections.defaultdict(list)
    for event in pieces:
        lanes[event["tid"]].append((float(event["ts"]), float(event["ts"]) + float(event["dur"])))
    for lane in lanes.values():
        lane.sort()
        for (_, end), (begin, _) in zip(lane, lane[1:]):
            assert begin > end, "two pieces of a lane overlap for readers that calculate in floating point"


def check_arrows(events, pieces):
    """Returns the pairs of pieces that arrows connect. Each end of an arrow is inside a piece of its lane."""
    def at(event, begins):
        found = [p["args"]["number"] for p in pieces if p["tid"] == event["tid"] and ns(p["ts"]) <= ns(event["ts"]) and
                 (ns(event["ts"]) < ns(p["ts"]) + ns(p["dur"]) or p["dur"] == 0) and
                 (ns(p["ts"]) == ns(event["ts"]) or not begins)]
        assert found, event
        return found
    halves = collections.defaultdict(dict)
    for event in events:
        assert event["ph"] not in halves[event["id"]], event
        halves[event["id"]][event["ph"]] = event
    pairs = []
    for arrow, both in halves.items():
        assert set(both) == {"s", "f"} and both["f"]["bp"] == "e", both
        number = int(arrow.split(".")[0])
        assert number in at(both["f"], True)
        pairs.append((at(both["s"], False)[-1], number))
    return sorted(pairs)


def check(path):
    with open(path, encoding="utf-8") as file:
        trace = json.load(file, parse_float=decimal.Decimal, parse_constant=refuse, object_pairs_hook=refuse_twice)
    assert list(trace)[:3] == ["schema", "library_version", "traceEvents"] and trace["schema"] == "gpuhal.trace/1", list(trace)
    assert set(list(trace)[3:]) == {"displayTimeUnit", "otherData"} and trace["displayTimeUnit"] == "ns"
    other = trace["otherData"]
    by_phase = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        by_phase[event["ph"]].append(event)
    assert set(by_phase) <= {"M", "X", "i", "s", "f"}, set(by_phase)
    assert len({event["pid"] for event in trace["traceEvents"]}) == 1
    lanes = {event["tid"]: event["args"]["name"] for event in by_phase["M"] if event["name"] == "thread_name"}
    assert len(lanes) + 1 == len(by_phase["M"])
    pieces = sorted(by_phase["X"], key=lambda event: event["args"]["number"])
    instants = sorted(by_phase["i"], key=lambda event: event["args"]["number"])
    assert {event["tid"] for event in pieces + instants} == set(lanes)
    numbers = {event["args"]["number"] for event in pieces + instants}
    assert len(numbers) == len(pieces) + len(instants) == other["pieces"]
    sums = collections.Counter()
    counts = collections.Counter()
    for event in pieces:
        check_piece(event)
        arguments = event["args"]
        print("piece", arguments["number"], lanes[event["tid"]].replace(" ", "_"), event["cat"],
              urllib.parse.quote(event["name"], safe=""), arguments.get("bytes", "-"), arguments.get("usage", "-"), arguments["path"],
              arguments["clock"], arguments.get("status", "ok").replace(" ", "_"), ns(event["ts"]),
              ns(event["ts"]) + ns(event["dur"]))
        if "usage" in arguments and "status" not in arguments:
            sums[arguments["usage"]] += arguments["bytes"]
            counts[arguments["usage"]] += 1
    for event in instants:
        check_event(event)
        arguments = event["args"]
        print("event", arguments["number"], lanes[event["tid"]].replace(" ", "_"), arguments["clock"],
              arguments.get("status", "ok").replace(" ", "_"), ns(event["ts"]))
    check_lanes(pieces)
    for pair in check_arrows(by_phase["s"] + by_phase["f"], pieces):
        print("arrow", *pair)
    for usage in sorted(sums):
        print("sum", usage, sums[usage], counts[usage])
    print("other", other["pieces"], other["dropped"], other["unfinished"])


check(sys.argv[1])
