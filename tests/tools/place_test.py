#!/usr/bin/env python3
"""Tests gpuhal-place with models that the tests generate. place_test.py TEST|all PROGRAM SCHEMA; exit code 77 means
skipped."""

import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import together
from probe_support import check, read_schema, validator

U32, U64, F32, STRING, ARRAY = 4, 10, 6, 8, 9
Q8_0, F16, TYPE_F32 = 8, 1, 0


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def entry(key, kind, raw):
    return text(key) + struct.pack("<I", kind) + raw


def tensor(name, sizes, kind):
    return text(name) + struct.pack("<I", len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes) + struct.pack("<IQ", kind, 0)


def gguf(blocks=4, embedding=64, tied=False, extra_entries=(), extra_tensors=(), heads=8, kv_heads=2):
    """Returns a header like those of llama.cpp's converters, with grouped heads and 8-bit weights."""
    entries = [entry("general.architecture", STRING, text("llama")), entry("general.name", STRING, text("tiny")),
               entry("tokenizer.ggml.tokens", ARRAY, struct.pack("<IQ", STRING, 3) + text("a") + text("b") + text("")),
               entry("tokenizer.ggml.scores", ARRAY, struct.pack("<IQ", F32, 2) + struct.pack("<2f", 1, 2)),
               entry("llama.block_count", U32, struct.pack("<I", blocks)), entry("llama.context_length", U32, struct.pack("<I", 2048)),
               entry("llama.embedding_length", U32, struct.pack("<I", embedding)),
               entry("llama.attention.head_count", U32, struct.pack("<I", heads)),
               entry("llama.attention.head_count_kv", U32, struct.pack("<I", kv_heads)), *extra_entries]
    tensors = [tensor("token_embd.weight", (embedding, 100), F16), tensor("output_norm.weight", (embedding,), TYPE_F32)]
    for block in range(blocks):
        tensors += [tensor(f"blk.{block}.attn_q.weight", (embedding, embedding), Q8_0),
                    tensor(f"blk.{block}.ffn_up.weight", (embedding, 4 * embedding), Q8_0)]
    if not tied:
        tensors.append(tensor("output.weight", (embedding, 100), F16))
    tensors += extra_tensors
    return b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries) + b"".join(tensors)


BLOCK = (64 * 64 + 64 * 256) // 32 * 34  # bytes of one block of this model
STATE = 2 * (8 + 8) * 2 * 2048           # bytes of its KV cache
EMBEDDING = 64 * 100 * 2


class Tool:
    def __init__(self, program, schema):
        self.program, self.schema = program, schema
        self.folder = tempfile.TemporaryDirectory()

    def run(self, model, *options, code=0):
        """Writes @model to a file and runs the program with it. Returns the output and the text on standard error."""
        path = os.path.join(self.folder.name, "model")
        with open(path, "wb") as file:
            file.write(model)
        done = subprocess.run([self.program, path, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50, check=False)
        check(done.returncode == code, options, done)
        return done

    def document(self, model, *options, code=0):
        document = json.loads(self.run(model, "--json", *options, code=code).stdout)
        wrong = [f"{list(error.absolute_path)}: {error.message}" for error in validator(self.schema).iter_errors(document)]
        check(not wrong, document, *wrong)
        return document


def a_gguf_file_has_its_layers_with_weights_and_the_cache_for_the_context(tool):
    plan = tool.document(gguf(), "--given", "x=1GiB")
    model = plan["model"]
    check(model["name"] == "tiny" and model["architecture"] == "llama" and model["layer_count"] == 6, model)
    check(model["weight_bytes"] == 4 * BLOCK + 2 * EMBEDDING + 64 * 4 and model["state_bytes"] == 4 * STATE, model, BLOCK, STATE)
    check(model["context_tokens"] == 2048, model)
    stage, = plan["plan"]["stages"]
    check(stage["layers"] == ["input", "block 0", "block 1", "block 2", "block 3", "output"], stage)
    check(stage["used_bytes"] == model["weight_bytes"] + model["state_bytes"], stage)
    check(tool.document(gguf(), "--context", "4096", "--given", "x=1GiB")["model"]["state_bytes"] == 8 * STATE, "twice the context")
    each = entry("llama.attention.head_count_kv", ARRAY, struct.pack("<IQ4I", U32, 4, 2, 0, 4, 2))
    check(tool.document(gguf(extra_entries=[each]), "--given", "x=1GiB")["model"]["state_bytes"] == 4 * STATE, "heads of each block")


def an_output_without_weights_shares_those_of_the_input(tool):
    model = tool.document(gguf(tied=True), "--given", "x=1GiB")
    check(model["model"]["weight_bytes"] == 4 * BLOCK + EMBEDDING + 64 * 4 and model["model"]["layer_count"] == 8, model)
    check(model["plan"]["stages"][0]["used_bytes"] == model["model"]["weight_bytes"] + model["model"]["state_bytes"], model)


def a_table_has_a_line_for_each_layer_and_every_mistake_its_line(tool):
    plan = tool.document(b"# sizes\na, 4KiB, 1KiB, 2KiB, 64 # first\n\nb,100\n", "--given", "x=1MiB", "--margin", "0")
    stage, = plan["plan"]["stages"]
    check(stage["layers"] == ["a", "b"] and stage["used_bytes"] == 7 * 1024 + 100, plan)
    for table, words in ((b"a\n", "line 1"), (b"a,1\nb,x\n", 'line 2: "x"'), (b"", "no layers"), (b"a,1,1,1,1,1\n", "line 1: more"),
                         (b"a,-1\n", "line 1"), (b"a,9999999999GiB\n", "line 1"), (b"x" * 3000, "too long"), (b"a,\n", "line 1")):
        check(words in tool.run(table, "--given", "x=1MiB", code=1).stderr, table, words)


def a_model_in_parts_is_read_from_all_of_them(tool):
    whole = gguf()
    document = tool.document(whole, "--given", "x=1GiB")["model"]
    split = entry("split.count", U32, struct.pack("<I", 2))
    first = gguf(extra_entries=[split], blocks=4).replace(b"blk.3.", b"blk.2.")
    other = b"GGUF" + struct.pack("<IQQ", 3, 2, 1) + split + tensor("blk.3.attn_q.weight", (64, 64), Q8_0) + tensor("blk.3.ffn_up.weight", (64, 256), Q8_0)
    names = [os.path.join(tool.folder.name, f"m-{part:05}-of-00002.gguf") for part in (1, 2)]
    for name, text_ in zip(names, (first, other)):
        with open(name, "wb") as file:
            file.write(text_)
    both = json.loads(subprocess.run([tool.program, names[0], "--json", "--given", "x=1GiB"], capture_output=True, check=True).stdout)["model"]
    check(both["weight_bytes"] == document["weight_bytes"] + BLOCK, both, document)
    for model in (names[1], os.path.join(tool.folder.name, "model")):
        check(subprocess.run([tool.program, model, "--given", "x=1GiB"], capture_output=True, check=False).returncode == (0 if model.endswith("model") else 1), model)
    os.remove(names[1])
    check(b"cannot be opened" in subprocess.run([tool.program, names[0], "--given", "x=1GiB"], capture_output=True, check=False).stderr, "a part is missing")
    check("no tensor of block 3" in tool.run(gguf().replace(b"blk.3.", b"blk.2."), "--given", "x=1GiB", code=1).stderr, "a block is missing")


def models_come_through_pipes_and_say_nothing_to_the_terminal(tool):
    for model, layers in ((b"embed,1\nb,2\nc,3", ["embed", "b", "c"]), (gguf(), None)):
        done = subprocess.run([tool.program, "/dev/stdin", "--json", "--given", "x=1GiB"], input=model, capture_output=True, check=True)
        named = json.loads(done.stdout)["plan"]["stages"][0]["layers"]
        check(layers is None or named == layers, named)
    evil = gguf(extra_entries=[entry("general.name", STRING, text("\x1b[2Jwiped\x07"))])
    shown = tool.run(evil, "--given", "x=1GiB").stdout + tool.run(b"\x1b[2Ja,1\n", "--given", "x=1GiB").stdout
    check("\x1b" not in shown and "\x07" not in shown and "wiped" in shown, shown)


def layers_are_placed_as_the_objective_asks_and_the_picture_shows_it(tool):
    table = b"".join(b"l%d,1GiB\n" % i for i in range(8))
    devices = ("--given", "slow=8GiB,100GB", "--given", "fast=6GiB,1000GB", "--margin", "0")
    plan = tool.document(table, *devices)["plan"]
    check([(stage["device"], stage["layer_count"]) for stage in plan["stages"]] == [("slow", 2), ("fast", 6)], plan)
    check(abs(plan["step_seconds"] - (2 * 2**30 / 100e9 + 6 * 2**30 / 1000e9)) < 1e-6 and plan["gap"] == 0, plan)
    plan = tool.document(table, *devices, "--objective", "fewest")["plan"]
    check([(stage["device"], stage["layer_count"]) for stage in plan["stages"]] == [("slow", 8)], plan)
    plan = tool.document(table, *devices, "--objective", "balanced", "--free-order")["plan"]
    check(abs(plan["largest_share"] - 5 / 8) < 1e-9 or abs(plan["largest_share"] - 4 / 6) < 1e-9, plan)
    shown = tool.run(table, *devices).stdout.splitlines()
    check(len(shown) == 5 and shown[1].split() == ["DEVICE", "LAYERS", "COUNT", "MEMORY", "TIME"], shown)
    check("[#####..............." in shown[2] and "[####################]" in shown[3] and max(map(len, shown)) <= 100, shown)


def what_does_not_fit_is_named_with_the_bytes_that_are_missing(tool):
    table = b"a,1GiB\nb,3GiB\n"
    document = tool.document(table, "--given", "x=2GiB", "--margin", "0", code=6)
    check(document["status"] == "infeasible" and document["plan"] is None, document)
    check(document["shortfall"]["constraint"] == "layer" and document["shortfall"]["layer"] == "b", document)
    check(document["shortfall"]["missing_bytes"] == 2**30 and document["shortfall"]["device"] == "x", document)
    document = tool.document(table, "--given", "x=3GiB", "--margin", "0", code=6)
    check(document["shortfall"]["constraint"] == "memory" and document["shortfall"]["missing_bytes"] == 2**30, document)
    done = tool.run(table, "--given", "x=3GiB", "--margin", "0", code=6)
    check(str(2**30) in done.stderr and done.stdout.splitlines()[1] == "1.0 GiB are missing", done)
    check(tool.run(table, "--given", "x=3GiB", "--format", "llama.cpp", code=6).stdout == "", "no argument without a plan")


def arguments_for_other_programs_count_blocks_as_these_do(tool):
    devices = ("--given", "cuda:0=260KiB", "--given", "cuda:1=1GiB", "--margin", "0")
    plan = tool.document(gguf(), *devices)["plan"]
    stages = {stage["device"]: stage["layers"] for stage in plan["stages"]}
    blocks = {device: sum(name.startswith("block") for name in layers) for device, layers in stages.items()}
    tensor_split = tool.run(gguf(), *devices, "--format", "llama.cpp").stdout
    check(tensor_split == f"-ts {blocks.get('cuda:0', 0)},{blocks['cuda:1'] + 1}\n", tensor_split, stages)
    partition = tool.run(gguf(), *devices, "--format", "vllm").stdout
    check(partition == "VLLM_PP_LAYER_PARTITION=" + ",".join(str(blocks[stage["device"]]) for stage in plan["stages"]) + "\n", partition)
    check(sum(map(int, partition.split("=")[1].split(","))) == 4, partition)
    modules = json.loads(tool.run(gguf(), *devices, "--format", "accelerate").stdout)
    number = {name: int(device[-1]) for device, names in stages.items() for name in names}
    expected = {"model.embed_tokens": number["input"], "model.norm": number["output"], "lm_head": number["output"]}
    expected |= {f"model.layers.{block}": number[f"block {block}"] for block in range(4)}
    check(modules == expected, modules, expected)
    check(set(json.loads(tool.run(gguf(tied=True), *devices, "--format", "accelerate").stdout)) == set(expected), "a tied output")
    check(tool.run(gguf(tied=True), "--given", "x=1GiB", "--format", "llama.cpp").stdout == "-ts 5\n", "a tied output")
    tool.run(b"a,1\n", *devices, "--format", "accelerate", code=1)
    table, three = b"".join(b"l%d,1GiB\n" % i for i in range(6)), ("--given", "a=2GiB", "--given", "b=2GiB", "--given", "c=6GiB", "--margin", "0")
    check(tool.run(table, *three, "--lost", "a", "--format", "llama.cpp").stdout.count(",") == 1, "devices that are left")
    order = ("--given", "slow=4GiB,1GB", "--given", "fast=4GiB,9GB", "--margin", "0", "--free-order", "--objective", "balanced")
    done = tool.run(table, *order, "--format", "vllm")
    check(done.stderr.split(": ")[1].startswith("ranks are on"), done)


def after_a_device_is_lost_only_its_layers_move(tool):
    table = b"".join(b"l%d,1GiB\n" % i for i in range(6))
    devices = ("--given", "a=2GiB", "--given", "b=2GiB", "--given", "c=6GiB", "--margin", "0", "--objective", "balanced")
    before = {stage["device"]: stage["layers"] for stage in tool.document(table, *devices)["plan"]["stages"]}
    after = tool.document(table, *devices, "--lost", "b")
    check(after["objective"] == "moved" and after["plan"]["moved_bytes"] == len(before["b"]) * 2**30, before, after)
    check("--lost" in tool.run(table, *devices, "--lost", "d", code=2).stderr, "no such device")


def the_devices_of_this_machine_are_taken_with_what_is_free_on_them(tool):
    plan = tool.document(gguf(), "--device", "cpu:0", "--margin", "0")
    check([device["id"] for device in plan["devices"]] == ["cpu:0"] and plan["devices"][0]["capacity_bytes"] > 2**20, plan)
    tool.document(gguf(), "--device", "cuda:77", code=3)
    check(tool.document(gguf())["devices"], "by default there is a device")


def mistakes_are_named_and_are_documents_too(tool):
    for options, words in ((("--given", "x"), "NAME=BYTES"), (("--given", "x=1GiB,fast"), "NAME=BYTES"), (("--objective", "best"), "latency"),
                           (("--context", "0"), "tokens"), (("--format", "yaml"), "table"), (("surprise",), "one model"),
                           (("--device", "cpu", "--given", "x=1GiB"), "--given")):
        check(words in tool.run(gguf(), *options, code=2).stderr, options, words)
        check(tool.document(gguf(), *options, code=2)["error"]["code"] == "usage", options)
    check(tool.document(b"GGUF", "--given", "x=1GiB", code=1)["error"]["message"], "a file that is cut off")
    for options in (("--given", "x=1GiB"), ("--json", "--given", "x=1GiB"), ("--help",)):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([tool.program, os.path.join(tool.folder.name, "model"), *options], stdout=full, stderr=subprocess.PIPE, check=False)
        check(done.returncode == 1 and done.stderr, options, done)


def a_file_that_lies_is_refused_and_never_believed(tool):
    good, dice = gguf(), random.Random(7)
    lies = [gguf(extra_entries=[entry("llama.block_count", U64, struct.pack("<Q", 2**40))]),
            gguf(extra_entries=[entry("llama.embedding_length", U64, struct.pack("<Q", 2**63))]), gguf(extra_tensors=[tensor("blk.9.x", (1,), 0)]),
            gguf(extra_tensors=[tensor("huge", (2**40, 2**40), 0)]), gguf(extra_tensors=[tensor("none", (0,), 0)]),
            gguf(extra_tensors=[tensor("odd", (32,), 77)]), gguf(extra_tensors=[tensor("deep", (1,) * 5, 0)]),
            gguf(extra_entries=[entry("x.y", ARRAY, struct.pack("<IQ", ARRAY, 2**60))]), gguf(extra_entries=[entry("x.y", 99, b"")]),
            gguf(extra_entries=[entry("x.y", STRING, struct.pack("<Q", 2**62))]), b"GGUF" + struct.pack("<IQQ", 1, 0, 0),
            b"GGUF" + struct.pack("<IQQ", 3, 2**60, 2**60), good[:-9]]
    for lie in lies:
        check("model: " in tool.run(lie, "--given", "x=1GiB", code=1).stderr, lie[:64])
    for _ in range(40): # the program must print a plan or an error message for every damaged model
        spoilt = bytearray(good)
        for _ in range(3):
            spoilt[dice.randrange(4, len(spoilt))] = dice.randrange(256)
        path = os.path.join(tool.folder.name, "spoilt")
        with open(path, "wb") as file:
            file.write(spoilt)
        done = subprocess.run([tool.program, path, "--given", "x=1GiB"], capture_output=True, timeout=50, check=False)
        check(done.returncode in (0, 1, 6) and bool(done.returncode) == bool(done.stderr), bytes(spoilt), done)


if __name__ == "__main__":
    sys.exit(together.run(globals(), "tool", sys.argv[1], lambda test: test(Tool(*sys.argv[2:])), read_schema))
