#!/usr/bin/env python3
"""Tests the live view of gpuhal-probe in a real terminal emulator, tmux."""

import os
import re
import shlex
import signal
import subprocess

from probe_support import check, columns_of, fake_cuda, main
from terminal import Terminal

EIGHT = "devices 8; memory * 80G; used 2 61G; used 3 78G; name * NVIDIA H100 80GB HBM3; name 7 Fake L40S"


def watch(probe, terminal, *patterns):
    terminal.run(f'clear; {shlex.quote(probe.program)} --watch 0.2; echo "ended $?"')
    return terminal.wait("^> cuda:0 ", *patterns)


def cuda(machine):
    return fake_cuda(machine) | {"GPUHAL_BACKENDS": "cuda"}


def has_curve(lines):
    return any(re.search("[▁▂▃▄▅▆▇█]{2}", line) for line in lines)


def the_view_fits_80_columns_and_24_lines(probe):
    with Terminal(probe, 80, 24, **cuda(EIGHT)) as terminal:
        lines = watch(probe, terminal, "8 GPUs ready", *(f"^[> ] cuda:{i} " for i in range(8)), "61.0/80.0 GiB", "[▁▂▃▄▅▆▇█]{2}",
                      "PID +USER +DEVICE +TYPE +MEMORY", "^q quit  h help")
        check(len(lines) == 24 and all(columns_of(line) <= 80 for line in lines), *lines)
        check("8 GPUs ready" in lines[0] and lines[-1].startswith("q quit  h help") and "…" not in lines[-1], *lines)


def a_name_that_is_too_long_loses_its_vendor_before_its_model(probe):
    with Terminal(probe, 80, 24, **cuda("devices 1; name * NVIDIA RTX A2000")) as terminal:
        watch(probe, terminal, "^> cuda:0 +RTX A2000 ")


def a_large_terminal_shows_more_columns_and_the_curves_of_all_gpus(probe):
    with Terminal(probe, 200, 50, **cuda(EIGHT)) as terminal:
        lines = watch(probe, terminal, *(f"^cuda:{i} .* mem .* power " for i in range(5)))
        check(re.search("UTIL +MEMORY +TEMP +POWER +CLOCK +FAN", lines[1]), *lines)
        check(all(columns_of(line) <= 200 for line in lines), *lines)


def the_view_follows_the_size_of_the_terminal(probe):
    with Terminal(probe, 80, 24, **cuda(EIGHT)) as terminal:
        watch(probe, terminal)
        terminal.resize(200, 50)
        check(len(terminal.wait("CLOCK +FAN")) == 50, "all lines")
        terminal.resize(60, 10)
        lines = terminal.wait("^q quit .{30,70}…$")
        check(len(lines) == 10 and all(columns_of(line) <= 60 for line in lines), *lines)
        terminal.resize(20, 4)
        terminal.wait("^gpuhal-probe +8…?")
        terminal.resize(80, 24)
        terminal.wait("d its own$")
        terminal.type("q")
        terminal.wait("^ended 0$")


def a_single_line_shows_the_machine(probe):
    with Terminal(probe, 80, 24, **cuda(EIGHT)) as terminal:
        watch(probe, terminal)
        terminal.resize(80, 1)
        lines = terminal.wait("^gpuhal-probe +8 GPUs ready")
        check(len(lines) == 1, *lines)
        terminal.resize(80, 24)
        terminal.wait("^q quit  h help")
        terminal.type("q")
        terminal.wait("^ended 0$")


def keys_select_pause_sort_reverse_and_filter(probe):
    with Terminal(probe, 100, 30, **cuda(EIGHT)) as terminal:
        watch(probe, terminal)
        for key, pattern in (("j", "^> cuda:1 "), ("Down", "^> cuda:2 "), ("Up", "^> cuda:1 "), ("Space", "PAUSED"), ("s", "BUSY↓"), ("r", "BUSY↑"),
                             ("S", "MEMORY↑"), ("r", "MEMORY↓"), ("h", "pid namespace"), ("h", "^> cuda:1 "), ("/", "filter: _$")):
            terminal.type(key)
            terminal.wait(pattern)
        terminal.tmux("send-keys", "-l", "xyzq")
        terminal.wait("filter: xyzq_$")
        terminal.type("BSpace")
        terminal.wait("filter: xyz_$")
        terminal.type("Enter")
        terminal.wait("^q quit ")
        terminal.type("Space")
        terminal.wait("every 0.2 s *$")
        terminal.type("-")
        terminal.wait("every 0.4 s *$")


def environment(pid):
    """Returns a process's state, or "" if it has ended in the meantime, as processes of other tests may."""
    try:
        with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def the_screen_is_as_before_after_q_and_after_signals(probe):
    for how in ("q", "TERM", "INT", "HUP", "C-c"):
        with Terminal(probe, 80, 24, **cuda("devices 1; memory 0 1G")) as terminal:
            terminal.run("clear; echo before")
            terminal.wait("^before$")
            terminal.run(f'{shlex.quote(probe.program)} --watch & echo "pid:$!"; fg >/dev/null; echo "ended $?"' if how.isupper() and len(how) > 1 else
                         f'{shlex.quote(probe.program)} --watch; echo "ended $?"')
            terminal.wait("^> cuda:0 ")
            if how in ("q", "C-c"):
                terminal.type(how)
            else:
                children = subprocess.run(["pgrep", "-f", f"^{re.escape(probe.program)} --watch$"], capture_output=True, text=True).stdout.split()
                mine = [pid for pid in children if terminal.socket in environment(pid)]
                check(len(mine) == 1, children)
                os.kill(int(mine[0]), getattr(signal, f"SIG{how}"))
            lines = terminal.wait("^ended 0$")
            check(any(line == "before" for line in lines) and not any("cuda:0" in line for line in lines), how, *lines)
            terminal.run("stty -a | grep -o ' echo ' ; echo 'still' 'here'")  # the terminal echoes keys again
            terminal.wait("^still here$")


def ctrl_z_gives_the_terminal_back_until_it_goes_on(probe):
    with Terminal(probe, 80, 24, **cuda("devices 1; memory 0 1G")) as terminal:
        terminal.run(f"clear; echo before; {shlex.quote(probe.program)} --watch")
        terminal.wait("^> cuda:0 ")
        terminal.type("C-z")
        terminal.wait("Stopped|suspended")
        terminal.run("echo in 'between'")
        lines = terminal.wait("^in between$")
        check("before" in lines and not any("cuda:0" in line for line in lines), *lines)
        terminal.run("fg")
        terminal.wait("^> cuda:0 ")
        terminal.type("q")
        terminal.wait("^in between$")


def a_driver_that_hangs_never_stops_the_keys(probe):
    with Terminal(probe, 80, 24, **cuda("devices 2; memory * 1G; hang nvmlDeviceGetTemperature 5")) as terminal:
        watch(probe, terminal)
        for key, pattern in (("h", "pid namespace"), ("h", "^> cuda:0 "), ("j", "^> cuda:1 ")):
            terminal.type(key)
            terminal.wait(pattern)
        terminal.type("q")
        terminal.wait("^ended 0$")


def the_view_is_ascii_in_a_locale_without_unicode(probe):
    with Terminal(probe, 80, 24, **cuda(EIGHT) | {"LC_ALL": "C"}) as terminal:
        watch(probe, terminal)
        lines = terminal.wait(r"#{2}|\|{2}")
        check(all(line.isascii() for line in lines), *lines)


def colours_are_left_out_where_they_are_not_wanted(probe):
    for settings, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        with Terminal(probe, 80, 24, **cuda(EIGHT) | settings) as terminal:
            watch(probe, terminal)
            terminal.wait("[▁▂▃▄▅▆▇█]{2}")
            escapes = "\n".join(terminal.lines("-e"))
            check(bool(re.search(r"\x1b\[3[0-7]m", escapes)) == coloured, settings, escapes)


def a_name_cannot_write_escape_codes_to_the_screen(probe):
    with Terminal(probe, 80, 24, **cuda("devices 1; memory 0 1G; name 0 bad\x1b[31mname")) as terminal:
        watch(probe, terminal, re.escape("bad?[31mname"))


def a_terminal_that_is_not_known_is_said(probe):
    with Terminal(probe, 80, 24, **cuda("devices 1; memory 0 1G")) as terminal:
        terminal.run(f'TERM=nothing {shlex.quote(probe.program)} --watch; echo "ended $?"')
        lines = terminal.wait("^ended 1$")
        check('TERM is "nothing"' in " ".join(" ".join(lines).split()), *lines)


if __name__ == "__main__":
    main(globals())
