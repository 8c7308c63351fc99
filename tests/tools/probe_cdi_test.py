#!/usr/bin/env python3
"""Tests gpuhal-probe --format cdi on recorded machines, against the published schema and against rules of the
specification that are not in the schema."""

import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from probe_formats_test import Tree
from probe_support import check, fake_cuda, fakes_of, main, on_recorded

VERSION = "580.65.06"  # NVIDIA's driver version on the recorded machines
SHOWN = "580"  # the part of it that remains in a machine's output (recorded_test.py)
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")
FIELDS = {"document": {"cdiVersion", "kind", "devices", "containerEdits"}, "device": {"name", "containerEdits"},
          "edits": {"deviceNodes", "mounts"}, "node": {"path", "permissions"}, "mount": {"hostPath", "containerPath", "options"}}


def complaints_about(document):
    """Validates the document against the schema. The schema's two files are merged first."""
    try:
        import jsonschema
    except ImportError:
        print("skipped: python3-jsonschema is not installed")
        sys.exit(77)
    folder = Path(__file__).resolve().parent / "cdi"
    schema = json.loads((folder / "schema.json").read_text().replace('"defs.json#/', '"#/'))
    schema["definitions"] = json.loads((folder / "defs.json").read_text())["definitions"]
    return [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(document)]


def check_edits(edits, nodes):
    check(set(edits) <= FIELDS["edits"], edits)
    for node in edits.get("deviceNodes", []):
        check(set(node) == FIELDS["node"] and re.fullmatch(r"/dev/[\w/-]+", node["path"]) and node["permissions"] == "rw", node)
    for mount in edits.get("mounts", []):
        check(set(mount) == FIELDS["mount"] and mount["hostPath"][0] == mount["containerPath"][0] == "/" and "ro" in mount["options"], mount)
    paths = [node["path"] for node in edits.get("deviceNodes", [])]
    check(len(paths) == len(set(paths)) and bool(paths) == nodes, edits)


def cdi_of(result):
    """Returns the edits of each device by name, and the edits that apply to all devices. Reads the file as a container
    runtime does, so unknown keys are errors."""
    document = json.loads(result.out)
    check(not complaints_about(document), complaints_about(document), result)
    check(set(document) <= FIELDS["document"] and document["kind"] == "gpuhal/gpu" and document["cdiVersion"] == "0.5.0", document)
    names = [device["name"] for device in document["devices"]]
    check(len(names) == len(set(names)) and names[-1] == "all" and all(NAME.fullmatch(name) for name in names), names)
    for device in document["devices"]:
        check(set(device) == FIELDS["device"], device)
        check_edits(device["containerEdits"], True)
    check_edits(document.get("containerEdits", {}), False)
    return {device["name"]: device["containerEdits"] for device in document["devices"]}, document.get("containerEdits", {})


def nodes_of(edits):
    return {node["path"] for node in edits["deviceNodes"]}


class Driver:
    """Installs the libraries of NVIDIA's driver, including the fake libcuda, as a package does. Removes them when the
    test ends."""

    kept = []

    def __init__(self, folder="driver"):
        self.kept.append(self)
        self.place = tempfile.TemporaryDirectory()
        self.folder = os.path.join(os.fsencode(os.path.realpath(self.place.name)), os.fsencode(folder))
        os.makedirs(self.folder)
        shutil.copy(os.path.join(fakes_of("cuda", "libcuda.so.1"), "libcuda.so.1"), self.path(f"libcuda.so.{VERSION}"))
        os.symlink(f"libcuda.so.{VERSION}", self.path("libcuda.so.1"))
        os.symlink("libcuda.so.1", self.path("libcuda.so"))
        for name in (f"libnvidia-nvvm.so.{VERSION}", "libother.so.1.2.3", "libother.so.1", f"notes.so.{VERSION}", f'libnv"\n\x1b.so.{VERSION}'):
            self.put(name)
        os.symlink(f"libnvidia-nvvm.so.{VERSION}", self.path("libnvidia-nvvm.so.4"))
        os.symlink("/nowhere", self.path(f"libgone.so.{VERSION}"))

    def path(self, name):
        return os.path.join(self.folder, os.fsencode(name))

    def put(self, name):
        with open(self.path(name), "wb"):
            pass

    def settings(self):
        return {"GPUHAL_CUDA_LIBRARY": os.fsdecode(self.path("libcuda.so.1"))}


def the_libraries_of_nvidias_driver_are_mounts_by_each_of_their_names(probe):
    driver = Driver()
    result = on_recorded("h100-8")("--format=cdi", **driver.settings())
    devices, common = cdi_of(result)
    check(result.code == 0 and not result.err, result)
    folder = os.path.basename(driver.place.name) + "/driver/"
    mounts = {mount["containerPath"].rsplit("/", 1)[1]: mount for mount in common["mounts"]}
    check(set(mounts) == {f"libcuda.so.{SHOWN}", "libcuda.so.1", "libcuda.so", f"libnvidia-nvvm.so.{SHOWN}", "libnvidia-nvvm.so.4"}, mounts)
    check(mounts["libcuda.so.1"]["hostPath"].endswith(f"{folder}libcuda.so.{SHOWN}"), mounts)
    check(mounts["libcuda.so.1"]["containerPath"].endswith(folder + "libcuda.so.1"), mounts)
    check(all("mounts" not in edits for edits in devices.values()), "once, since all have them")


def each_gpu_of_nvidia_is_a_device_by_its_place_and_by_its_uuid(probe):
    devices, _ = cdi_of(on_recorded("h100-8")("--format=cdi", **Driver().settings()))
    check(set(map(str, range(8))) <= set(devices) and len(devices) == 17 and len([name for name in devices if name.startswith("GPU-")]) == 8, devices)
    shared = {"/dev/nvidiactl", "/dev/nvidia-uvm"}
    check(nodes_of(devices["3"]) == shared | {"/dev/nvidia3", "/dev/dri/card4", "/dev/dri/renderD131"}, devices["3"])
    check(list(devices.values())[8:16] == list(devices.values())[:8], "UUIDs stand in the same order")
    check({f"/dev/nvidia{i}" for i in range(8)} | shared <= nodes_of(devices["all"]), devices["all"])


def parts_of_an_amd_gpu_have_nodes_of_their_own_and_its_uuid_means_all_of_them(probe):
    result = on_recorded("mi300x-partitions")("--format=cdi")
    devices, common = cdi_of(result)
    check(result.code == 0 and not common and "mounts" not in json.dumps(devices), result)
    check(nodes_of(devices["0"]) == {"/dev/kfd", "/dev/dri/card1", "/dev/dri/renderD129"}, devices["0"])
    check(nodes_of(devices["1"]) == {"/dev/kfd", "/dev/dri/renderD137"}, devices["1"])
    check(nodes_of(devices["14"]) == {"/dev/kfd", "/dev/dri/card8", "/dev/dri/renderD136"}, devices["14"])
    divided = nodes_of(devices["GPU-1a2b3c4d5e6f7080"])
    check(divided == {"/dev/kfd", "/dev/dri/card1", "/dev/dri/renderD129"} | {f"/dev/dri/renderD{i}" for i in range(137, 144)}, divided)


def gpus_of_intel_are_their_nodes_below_dri(probe):
    devices, common = cdi_of(on_recorded("intel-arc-and-integrated")("--format=cdi"))
    check(nodes_of(devices["0"]) == {"/dev/dri/card1", "/dev/dri/renderD129"}, devices)
    check(nodes_of(devices["1"]) == {"/dev/dri/card0", "/dev/dri/renderD128"} and not common, devices)


def a_container_may_use_what_this_user_may_not_open_or_has_no_library_for(probe):
    devices, _ = cdi_of(on_recorded("mi300x-kfd-refused")("--format=cdi"))
    check(all("/dev/kfd" in nodes_of(devices[str(i)]) for i in range(8)), devices)
    devices, _ = cdi_of(on_recorded("amd-discrete")("--format=cdi", GPUHAL_HIP_LIBRARY="/nowhere/hip.so", GPUHAL_VULKAN_LIBRARY="/nowhere/vulkan.so"))
    check(nodes_of(devices["0"]) >= {"/dev/dri/renderD129"}, devices)


def nvidia_without_libcuda_is_refused_with_the_name_of_the_tool_that_makes_the_file(probe):
    run = on_recorded("h100-8")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gpuhal.json")
        Path(path).write_text("former\n")
        for options in ((), ("--output", path)):
            result = run("--format=cdi", *options, GPUHAL_CUDA_LIBRARY="/nowhere/libcuda.so.1")
            check(result.code in (3, 4) and not result.out and result.err.count("libcuda, which programs in a container need") == 8, result)
            check('"nvidia-ctk cdi generate"' in result.err, result)
        check(Path(path).read_text() == "former\n" and os.listdir(folder) == ["gpuhal.json"], "a file stays what it was")
    result = run("--format=cdi")
    check(result.code == 3 and not result.out and "the path of libcuda does not say" in result.err, result)


def beside_a_gpu_of_another_vendor_each_of_nvidia_has_the_mounts(probe):
    run = on_recorded("nvidia-and-amd")
    devices, common = cdi_of(run("--format=cdi", **Driver().settings()))
    with_mounts = {name for name, edits in devices.items() if "mounts" in edits}
    of_nvidia = {name for name, edits in devices.items() if any(path.startswith("/dev/nvidia") for path in nodes_of(edits))}
    check(with_mounts == of_nvidia and "all" in of_nvidia and set(devices) - of_nvidia and not common, devices)
    result = run("--format=cdi", GPUHAL_CUDA_LIBRARY="/nowhere/libcuda.so.1")
    devices, _ = cdi_of(result)
    check("nvidia" not in json.dumps(devices) and "/dev/kfd" in nodes_of(devices["all"]) and "nvidia-ctk" in result.err, result)


def each_part_of_a_divided_gpu_has_its_capabilities(probe):
    tree = Tree()
    tree.gpu("0000:11:00.0", "10de:2330", "nvidia", nvidia=0, render=128)
    capabilities = "proc/driver/nvidia/capabilities/gpu0/mig/gi3"
    tree.put(f"{capabilities}/access", "DeviceFileMinor: 30")
    tree.put(f"{capabilities}/ci0/access", "DeviceFileMinor: 31")
    settings = fake_cuda("devices 1; memory 0 1G; name 0 NVIDIA H100; mig 0 3 0 1g.10gb 96M") | Driver().settings() | tree.settings()
    result = probe.run("--format", "cdi", "--backends", "cuda", **settings)
    check(result.code == 3 and "are missing in /dev/nvidia-caps" in result.err and not result.out, result)
    parts = {f"/dev/nvidia-caps/nvidia-cap{i}" for i in (30, 31)}
    for part in parts:
        tree.put(part[1:], "")
    devices, _ = cdi_of(probe.run("--format", "cdi", "--backends", "cuda", **settings))
    check(nodes_of(devices["0"]) == parts | {"/dev/nvidia0", "/dev/nvidiactl"}, "and no node of the display, which is that of the whole", devices)
    check([name[:4] for name in devices] == ["0", "MIG-", "all"], devices)
    run = on_recorded("nvidia-mig")  # for this process CUDA lists one of three partitions, and NVML lists all
    devices, _ = cdi_of(run("--format=cdi", **Driver().settings()))
    for name, caps in (("0", (30, 31)), ("1", (66, 67)), ("2", (75, 76))):
        check({f"/dev/nvidia-caps/nvidia-cap{i}" for i in caps} == {node for node in nodes_of(devices[name]) if "caps" in node}, name, devices)
    check(sorted(name[:4] for name in devices) == ["0", "1", "2", "MIG-", "MIG-", "MIG-", "all"], devices)
    mute = run.environment["FAKE_CUDA"] + "\nfail nvmlDeviceGetGpuInstanceId 1+ 999"
    result = run("--format=cdi", FAKE_CUDA=mute, **Driver().settings())
    check(result.code == 3 and not result.out and "does not say which of the GPU's parts" in result.err and "nvidia-ctk" in result.err, result)


def a_gpu_that_is_lost_gone_or_not_given_is_no_device(probe):
    result = on_recorded("h100-8-one-gone")("--format=cdi", **Driver().settings())
    devices, _ = cdi_of(result)
    check(result.code == 4 and "7" not in devices and "/dev/nvidia7" not in nodes_of(devices["all"]), result)
    devices, _ = cdi_of(on_recorded("docker-one-of-8")("--format=cdi", **Driver().settings()))
    check(len(devices) == 3, devices)


def a_machine_without_a_gpu_has_no_file(probe):
    result = on_recorded("server-plain")("--format=cdi")
    check(result.code == 3 and not result.out and "no GPU" in result.err, result)


def names_of_files_and_folders_cannot_break_the_document(probe):
    for folder in ('a "quoted" \\ {folder}', "line\nfeed\x1b[31m"):
        _, common = cdi_of(on_recorded("h100-8")("--format=cdi", **Driver(folder).settings()))
        check(len(common["mounts"]) == 5 and folder in common["mounts"][0]["hostPath"], folder, common)
    result = on_recorded("h100-8")("--format=cdi", **Driver(os.fsdecode(b"bytes \xff\xfe that are no text")).settings())
    check(not result.out and "the path of libcuda does not say" in result.err, result)


if __name__ == "__main__":
    main(globals())
