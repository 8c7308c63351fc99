#!/usr/bin/env python3
"""Tests MIG partitions. CUDA lists those that this process may use; NVML lists the others too. See probe_support.py."""

import csv
import io
import json
import os
import re
import tempfile
import time

from probe_support import check, complaints, fake_cuda, main, on_recorded

PARTS = ("3g.40gb", "1g.10gb", "1g.10gb")


def parts_of(document):
    return [one for one in document["hardware"] if one["mig"]]


def every_part_is_in_every_output(probe):
    run = on_recorded("nvidia-mig")
    screen = run(columns=80)
    check(screen.code == 0 and "1 GPU ready" in screen.out.splitlines()[0] and screen.out.count("1g.10gb") == 2 and "3g.40gb" in screen.out, screen)
    check(all(len(line) <= 80 for line in screen.out.splitlines()), screen)
    document = json.loads(run("--json").out)
    check(not complaints(probe, document) and document["problems"] == [], document["problems"])
    device = next(one for one in document["devices"] if one["id"] == "cuda:0")
    mig = [device["mig"], *(one["mig"] for one in parts_of(document))]
    check([one["profile"] for one in mig] == list(PARTS) and [one["numbers"] for one in mig] == ["3/0", "7/0", "8/0"], mig)
    check(len({one["uuid"] for one in mig}) == 3 and all(one["uuid"].startswith("MIG-") for one in mig), mig)
    for one in parts_of(document):
        check(one["state"] == "hidden" and one["grade"] == "fine" and one["pci_address"] == "0000:c1:00.0", one)
        check(one["fix"] == f"CUDA_VISIBLE_DEVICES={one['mig']['uuid']} gpuhal-probe", one)
    rows = list(csv.DictReader(io.StringIO(run("--format", "csv").out)))
    check([row["uuid"] for row in rows if row["pci"] == "0000:c1:00.0"] == [one["uuid"] for one in mig], rows)
    metrics = run("--format", "openmetrics").out
    check(all(f'uuid="{one["uuid"]}"' in metrics for one in mig), metrics)


def each_part_has_its_line_in_gres_conf(probe):
    out = on_recorded("nvidia-mig")("--format", "gres").out
    check("Gres=gpu:nvidia_h100_pcie_mig_3g.40gb:1,gpu:nvidia_h100_pcie_mig_1g.10gb:2" in out, out)
    for instance, compute in ((30, 31), (66, 67), (75, 76)):
        check(f"MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap{instance},/dev/nvidia-caps/nvidia-cap{compute}" in out, out)


def whole_gpus_beside_a_divided_one_have_their_line_in_gres_conf(probe):
    out = on_recorded("mig-on-one-of-8")("--format", "gres").out
    check("Gres=gpu:nvidia_h100_80gb_hbm3:7\n" in out and out.count("\nName=gpu Type=nvidia_h100_80gb_hbm3 File=/dev/nvidia") == 7, out)
    for name in ("mig-empty-on-one", "mig-empty-alone"):
        out = on_recorded(name)("--format", "gres").out
        check(out.count("\nName=") == (7 if name == "mig-empty-on-one" else 0) and "MIG is on, and it has no instance" in out, out)
    numbers = re.findall(r"^Name=.* File=/dev/nvidia(\d+)", on_recorded("h100-8")("--format", "gres", CUDA_VISIBLE_DEVICES="2").out, re.M)
    # if a variable hides GPUs from this process, other interfaces list them in the order of the nodes
    check(numbers == list("01234567"), numbers)


def another_part_is_used_by_its_uuid(probe):
    run = on_recorded("nvidia-mig")
    other = parts_of(json.loads(run("--json").out))[1]["mig"]["uuid"]
    document = json.loads(run("--json", CUDA_VISIBLE_DEVICES=other).out)
    check(document["devices"][0]["mig"]["uuid"] == other and len(parts_of(document)) == 2, document["devices"])
    document = json.loads(run("--json", CUDA_VISIBLE_DEVICES="MIG-00000000-0000-0000-0000-000000000000").out)
    check(not [one for one in document["devices"] if one["backend"] == "cuda"] and "CUDA_VISIBLE_DEVICES" in document["hardware"][0]["why"], document)
    check(document["hardware"][0]["fix"] == "unset CUDA_VISIBLE_DEVICES", document["hardware"])


def mig_without_instances_says_how_to_make_one(probe):
    for name, ready in (("mig-empty-on-one", "7 of 8 GPUs ready"), ("mig-empty-alone", "0 of 1 GPU ready")):
        result = on_recorded(name)()
        check(ready in result.out.splitlines()[0] and "MIG is on, and it has no instance" in " ".join(result.out.split()), name, result)
        check(re.search(r"nvidia-smi mig -i (\S+) -lgip\n +# then, with an ID of that list:\n +sudo nvidia-smi mig -i \1 -cgi ID -C\n", result.out) and "\n!" not in result.out and "dmesg" not in result.out, name, result)
        check(result.code == 0, name, result)


def every_gpu_without_an_instance_is_known_however_many_there_are(probe):
    machine = ["devices 24", "init 100", *(f"pci {i} 0000:{i + 1:02x}:00.0" for i in range(24)), *(f"mig_mode {i} on" for i in range(23))]
    settings = fake_cuda("; ".join(machine)) | {"GPUHAL_BACKENDS": "cpu,cuda"}
    with tempfile.TemporaryDirectory() as root:
        for i in range(24):
            folder = os.path.join(root, f"sys/bus/pci/devices/0000:{i + 1:02x}:00.0")
            os.makedirs(folder)
            for name, text in (("class", "0x030200"), ("vendor", "0x10de"), ("device", "0x2330")):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text + "\n")
            os.symlink("../../../bus/pci/drivers/nvidia", os.path.join(folder, "driver"))
        document, result = probe.json(GPUHAL_SYSTEM_ROOT=root, **settings)
    reason = next(plugin["reason"] for plugin in document["plugins"] if plugin["name"] == "cuda")
    check("23 with MIG on and no instance; " in reason and " the other (cuInit" in reason, reason)
    check([one["state"] for one in document["hardware"]].count("no_instance") == 23, [(one["state"], one["why"]) for one in document["hardware"]], result)


def nvml_that_hangs_or_fails_costs_the_parts_alone(probe):
    for script, limit in (("hang nvmlDeviceGetMigMode 1", 20), ("fail nvmlDeviceGetMigMode 1+ 999", 20), ("fail nvmlDeviceGetUUID 1+ 999", 20),
                          ("fail nvmlInitWithFlags 1+ 999; fail nvmlInit_v2 1+ 999", 20), ("fail nvmlDeviceGetMigDeviceHandleByIndex 1+ 15", 20)):
        start = time.monotonic()
        run = on_recorded("nvidia-mig")
        document = json.loads(run("--json", FAKE_CUDA=run.environment["FAKE_CUDA"] + "\n" + script).out)
        check([one["id"] for one in document["devices"] if one["backend"] == "cuda"] == ["cuda:0"] and not parts_of(document), script, document)
        check(time.monotonic() - start < limit, script)


if __name__ == "__main__":
    main(globals())
