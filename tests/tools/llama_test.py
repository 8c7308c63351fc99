#!/usr/bin/env python3
"""Tests examples/llama with tiny models that the tests generate. Each call runs one test: llama_test.py TEST PROGRAM
GENERATOR. Exit code 77 means skipped."""

import os
import random
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from probe_support import check

TYPES = ("f32", "f16", "q8_0", "q4_0")
FIRST_WORD = 3 + 256
TOKENS = "1,42,60,70,50,300,261,277,17,4,299"


class Llama:
    def __init__(self, program, generator):
        self.program, self.generator = program, generator
        self.folder = tempfile.TemporaryDirectory()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def model(self, *options):
        path = self.path("model.gguf")
        subprocess.run([self.generator, path, *options], check=True)
        return path

    def run(self, path, *options, backends="cpu", devices="cpu"):
        environment = {**os.environ, "GPUHAL_BACKENDS": backends}
        return subprocess.run([self.program, path, "--devices", devices, *options], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=100, check=False)

    def ids(self, path, *options, **where):
        done = self.run(path, "--ids", "--ignore-end", "--quiet", *options, **where)
        check(done.returncode == 0 and done.stdout and not done.stderr, options, where, done)
        return done.stdout

    def refuses(self, path, *options, **where):
        """Runs the program, which must fail. Returns the error message."""
        done = self.run(path, *options, **where)
        check(done.returncode in (1, 2) and not done.stdout and done.stderr.count("llama-run: ") == 1, options, done)
        return done.stderr[done.stderr.index("llama-run: "):]


def all_instructions_of_the_processor_give_equal_logits_for_each_type(llama):
    for kind in TYPES:
        model = llama.model("--type", kind)
        plain = llama.ids(model, "--tokens", TOKENS, "--count", "8", "--instructions", "plain")
        for instructions in ("avx2", "avx512"):
            done = llama.run(model, "--tokens", TOKENS, "--count", "8", "--instructions", instructions, "--ids", "--ignore-end", "--quiet")
            check(done.stdout == plain or "has no instructions" in done.stderr, kind, instructions, plain, done)


def equal_on(llama, device):
    """Compares tokens and logit leads. Skips the test if the device does not exist."""
    backends = ",".join(dict.fromkeys(one.split(":")[0] for one in device.split(",")))
    for kind in TYPES:
        model = llama.model("--type", kind, "--layers", "3")
        options = ("--tokens", TOKENS, "--count", "6", "--split", "1,1,1", "--ids", "--ignore-end", "--quiet")
        wanted = llama.run(model, *options)
        got = llama.run(model, *options, backends=backends, devices=device)
        if "no device matches" in got.stderr or "no backend named" in got.stderr:
            sys.exit(77)
        check(wanted.returncode == 0 and wanted.stdout, wanted)
        check(got.returncode == 0 and got.stdout == wanted.stdout, kind, device, wanted, got)


def opencl_gives_the_tokens_of_the_processor_for_each_type(llama):
    equal_on(llama, "opencl:0")


def vulkan_gives_the_tokens_of_the_processor_for_each_type(llama):
    equal_on(llama, "vulkan:0")


def layers_split_over_three_backends_give_the_tokens_of_one_device(llama):
    equal_on(llama, "cpu,opencl:0,vulkan:0")


def batches_of_any_size_and_any_split_give_the_same_tokens(llama):
    model = llama.model("--type", "q8_0", "--layers", "5", "--heads", "6", "--kv-heads", "2", "--embedding", "96", "--feed-forward", "160")
    wanted = llama.ids(model, "--tokens", TOKENS)
    for options in (("--batch", "1"), ("--batch", "4"), ("--context", "64"), ("--threads", "1")):
        check(llama.ids(model, "--tokens", TOKENS, *options) == wanted, options)
    for split in ("1,1", "4,1", "0,1", "1,0"):
        check(llama.ids(model, "--tokens", TOKENS, "--batch", "3", "--split", split, devices="cpu,cpu") == wanted, split)


def a_model_whose_output_shares_the_embedding_runs_on_one_device_and_on_two(llama):
    model = llama.model("--has-output", "0", "--version", "2")
    done = llama.run(model, "--tokens", TOKENS, "--ids")
    check(done.returncode == 0 and "loading: 100 %" in done.stderr, done)
    check(llama.ids(model, "--tokens", TOKENS) == llama.ids(model, "--tokens", TOKENS, devices="cpu,cpu"))


def a_trace_has_the_bytes_of_the_model_and_every_token_and_its_waits(llama):
    """The numbers are the sizes in make_model.c."""
    layers, width, kv_width, feed_forward, vocabulary, tokens = 3, 64, 32, 128, 320, 6
    weights = 4 * (2 * vocabulary * width + width + layers * (2 * width + 2 * width * width + 2 * width * kv_width + 3 * width * feed_forward))
    os.environ["GPUHAL_TRACE"] = llama.path("trace.json")
    llama.ids(llama.model("--layers", str(layers)), "--tokens", TOKENS, "--count", str(tokens), "--split", "1,1", devices="cpu,cpu")
    reader = Path(__file__).parents[1] / "support/trace_check.py"
    done = subprocess.run([sys.executable, "-B", reader, os.environ["GPUHAL_TRACE"]], capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    pieces = [line for line in lines if line[0] == "piece"]
    check({piece[2] for piece in pieces} == {"cpu:0_queue_1", "cpu:0_queue_2"}, done.stdout)
    check(sum(int(piece[5]) for piece in pieces if piece[3] == "file") == weights, weights, done.stdout)
    check([piece[5] for piece in pieces if piece[3] == "read"] == tokens * [str(4 * vocabulary)], done.stdout)
    # The prompt is one batch of launches on both devices. Each later token is one run of the recording on each.
    check(sum(piece[4] == "attention" for piece in pieces) == layers, done.stdout)
    check(sum(piece[3:5] == ["recording", "token"] for piece in pieces) == 2 * (tokens - 1), done.stdout)
    check(all(piece[9] == "ok" for piece in pieces), done.stdout)
    arrows = sum(line[0] == "arrow" for line in lines)
    check(arrows >= tokens and sum(line[0] == "event" for line in lines) >= arrows, done.stdout)


def word(text):
    """Returns the number of a word. The word begins with the mark for a blank (make_model.c)."""
    number = 0
    for letter in text:
        number = number * 27 + (0 if letter == " " else ord(letter) - ord("a") + 1) + 1
    return FIRST_WORD + number - 1


def a_text_becomes_pieces_by_score_and_bytes_where_there_are_none(llama):
    model = llama.model("--vocabulary", "1100")
    cases = {"ab": [word(" ab")], "zy": [word(" z"), word("y")], "a b": [word(" a"), word(" b")], "é": [word(" "), 3 + 0xC3, 3 + 0xA9],
             "": [], "A\n": [word(" "), 3 + ord("A"), 3 + ord("\n")]}
    for text, pieces in cases.items():
        tokens = ",".join(map(str, [1, *pieces]))
        check(llama.ids(model, "--prompt", text, "--count", "4") == llama.ids(model, "--tokens", tokens, "--count", "4"), text, tokens)


def sampling_depends_on_the_seed_alone(llama):
    model = llama.model()
    warm = ("--tokens", TOKENS, "--temperature", "1.5", "--count", "24")
    first = llama.ids(model, *warm, "--seed", "5")
    check(first == llama.ids(model, *warm, "--seed", "5") and first != llama.ids(model, *warm, "--seed", "6"), first)
    check(llama.ids(model, *warm, "--top-k", "1") == llama.ids(model, "--tokens", TOKENS, "--count", "24"))
    allowed = llama.ids(model, *warm, "--top-k", "2").splitlines()
    check(len(allowed) == 24, allowed)


def a_run_says_what_it_chose_and_how_fast_it_was(llama):
    done = llama.run(llama.model("--type", "q4_0"), "--prompt", "a", "--split", "3,1", devices="cpu,cpu")
    for part in ("layers 0 to 2; host-function", "75 % by --split", "cpu:0: compiling the kernels", "activations: ", "loading: 100 %", "cpu:0: the launches for a token are recorded (form: list)", "prefill: 2 tokens", "decode: "):
        check(part in done.stderr, part, done.stderr)


def a_second_run_says_that_its_kernels_are_from_the_cache(llama):
    model, cache = llama.model(), llama.path("cache")
    os.mkdir(cache)
    os.environ["GPUHAL_PROGRAM_CACHE"] = cache
    runs = [llama.run(model, "--tokens", "1,2", backends="opencl", devices="opencl:0") for _ in range(2)]
    if "no device matches" in runs[0].stderr or "no backend named" in runs[0].stderr:
        sys.exit(77)
    check([", from the cache; " in done.stderr for done in runs] == [False, True], *runs)
    processor = llama.run(model, "--tokens", "1,2")
    check(", from the cache" not in processor.stderr, processor)


def errors_name_what_is_wrong(llama):
    model = llama.model()
    for options, words in ((("--tokens", "1,320"), "320"), (("--tokens", "1,x"), "--tokens"), (("--split", "1,x", "--tokens", "1"), "--split"),
                           (("--count", "-1"), "--count"), (("--what", "1"), "--what"), (("--context", "4", "--tokens", "1,2,3,4,5"), "--tokens"),
                           (("--context", "4", "--prompt", "zzzzzzzz"), "4 tokens"), (("--instructions", "x"), "\"x\""), (("--temperature", "x"), "--temp")):
        check(words in llama.refuses(model, *options), options, words)
    check("no_such" in llama.refuses(model, "--tokens", "1", devices="no_such"))
    check("nowhere cannot be opened: No such file or directory" in llama.refuses(llama.path("nowhere")))
    check("vocabulary" in llama.refuses(llama.model("--has-vocabulary", "0"), "--prompt", "a"))
    check("--split" in llama.refuses(model, "--split", "0,0,1", "--tokens", "1", devices="cpu,cpu"))


def replaced(raw, name, change):
    """Returns the model with one changed tensor record. `change` receives and returns its offset, dimensions and type."""
    at = raw.index(struct.pack("<Q", len(name)) + name.encode()) + 8 + len(name)
    count = struct.unpack_from("<I", raw, at)[0]
    record = f"<{count}QIQ"
    *sizes, kind, offset = struct.unpack_from(record, raw, at + 4)
    sizes, kind, offset = change(sizes, kind, offset)
    spoilt = bytearray(raw)
    struct.pack_into(record, spoilt, at + 4, *sizes, kind, offset)
    return bytes(spoilt)


def number_replaced(raw, key, value):
    at = raw.index(key.encode()) + len(key) + 4
    return raw[:at] + struct.pack("<I", value) + raw[at + 4:]


def a_file_that_lies_is_refused_with_what_is_wrong(llama):
    with open(llama.model(), "rb") as file:
        good = file.read()
    q, k = "blk.0.attn_q.weight", "blk.1.attn_k.weight"
    head = struct.pack("<IQQ", 3, 21, 18)
    check(good[4:24] == head, good[:24])
    lies = [(good[:100], "cut off"), (good[:-4000], "cut off"), (good[:3], "not a GGUF"), (b"GGML" + good[4:], "not a GGUF"),
            (b"GGUF" + struct.pack("<I", 1) + good[8:], "version 1"), (b"GGUF" + struct.pack("<IQQ", 3, 2**60, 18) + good[24:], "tensors"),
            (b"GGUF" + struct.pack("<IQQ", 3, 21, 2**40) + good[24:], "keys"), (b"GGUF" + struct.pack("<IQQ", 3, 20, 18) + good[24:], "blk."),
            (replaced(good, q, lambda sizes, kind, at: (sizes, kind, 0)), "overlap"), (replaced(good, q, lambda sizes, kind, at: (sizes, kind, at + 8)), "multiple"),
            (replaced(good, q, lambda sizes, kind, at: (sizes, kind, 2**63)), q), (replaced(good, q, lambda sizes, kind, at: ([2**40, 2**40], kind, at)), q),
            (replaced(good, q, lambda sizes, kind, at: ([64, 63], kind, at)), q), (replaced(good, q, lambda sizes, kind, at: (sizes, 12, at)), "type 12"),
            (replaced(good, q, lambda sizes, kind, at: ([0, 64], kind, at)), q), (good.replace(q.encode(), k.encode()), "twice"),
            (good.replace(q.encode(), b"blk.0.attn_x.weight"), f"no tensor {q}"), (number_replaced(good, "llama.block_count", 2**31), "block_count"),
            (number_replaced(good, "llama.embedding_length", 33), "embedding_length"), (number_replaced(good, "llama.attention.head_count", 0), "head_count"),
            (number_replaced(good, "llama.attention.head_count_kv", 3), "cannot share"), (number_replaced(good, "llama.rope.dimension_count", 8), "rotated"),
            (good.replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0lhama", 1), "lhama")]
    path = llama.path("lie.gguf")
    for lie, words in lies:
        with open(path, "wb") as file:
            file.write(lie)
        sentence = llama.refuses(path, "--tokens", "1")
        check(path in sentence and words in sentence, words, sentence)


def whatever_is_wrong_with_a_header_there_are_tokens_or_a_sentence(llama):
    with open(llama.model("--type", "q4_0", "--layers", "1"), "rb") as file:
        good = file.read()
    dice, path = random.Random(11), llama.path("spoilt.gguf")
    end = good.index(b"blk.0.ffn_down.weight") + 60
    for _ in range(40):
        spoilt = bytearray(good)
        for _ in range(3):
            spoilt[dice.choice((dice.randrange(4, 800), dice.randrange(4, end)))] = dice.choice((0, 1, 127, 128, 255, dice.randrange(256)))
        with open(path, "wb") as file:
            file.write(spoilt)
        done = llama.run(path, "--tokens", "1,2", "--count", "2", "--quiet", "--context", "32")
        check(done.returncode in (0, 1) and bool(done.returncode) == bool(done.stderr), bytes(spoilt[:64]), done)


def the_tutorial_names_files_and_functions_of_the_code(llama):
    check(os.path.exists(llama.program))
    root = Path(__file__).resolve().parents[2]
    page = (root / "docs/tutorial.md").read_text()
    sources = {path.name: path.read_text() for path in (root / "examples/llama").iterdir() if path.is_file()}
    code = "\n".join(sources.values())
    functions = re.findall(r"`(\w+)\(\)`", page)
    check(len(functions) > 20 and all(f"{name}(" in code for name in functions), [name for name in functions if f"{name}(" not in code])
    for name in re.findall(r"`(llama_\w+|GPUHAL_\w+)`", page) + re.findall(r"(--[a-z-]+)", page):
        check(name in code, name)


if __name__ == "__main__":
    globals()[sys.argv[1]](Llama(*sys.argv[2:]))
