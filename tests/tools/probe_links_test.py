#!/usr/bin/env python3
"""Tests links between devices: gpuhal-probe --links. See probe_support.py."""

import os
import re
import tempfile

from probe_support import by_id, check, columns_of, complaints, fake_cuda, main, on_recorded, screen_lines


def by_ends(document):
    return {(link["from"], link["to"]): link for link in document["links"]}


def cells_of(text, title):
    """Returns the texts of the table with this title by (from, to). A wide table continues below."""
    cells, above = {}, None
    for line in text.splitlines():
        words = line.split()
        if words and (words[0] == title or above):
            if words[0] == title:
                above = words[1:]
            elif above:
                cells |= {(words[0], to): cell for to, cell in zip(above, words[1:])}
        elif not words:
            above = None
    return cells


def links_go_from_every_device_to_every_other_one(probe):
    probe.use_drivers()
    document, result = probe.json("--links")
    ids = list(by_id(document))
    check([(a, b) for a in ids for b in ids if a != b] == list(by_ends(document)), list(by_ends(document)))
    for link in document["links"]:
        nulls = {key for key, value in link.items() if value is None and key != "verify_error"}
        check(set(link["missing"]) == nulls, link)
        check(link["missing"]["verified"] == "not read: --verify was not given", link)
    check(by_ends(document)["cpu:0", "opencl:0"]["kind"] == "same_memory", result)
    check(result.code == 0, result)
    check(probe.json()[0]["links"] is None)


def what_only_a_vendor_knows_is_shown_by_its_number_and_a_link_by_its_name(probe):
    document, _ = probe.json("--links", plugins=("own_numbers",))
    device = by_id(document)["own_numbers:1"]
    facts = {key: value for key, value in device["facts"].items() if key.startswith("0x")}
    check(facts == {"0x80000001": 43, "0x80000002": "systolic", "0x80abcdef": None}, facts)
    check(device["missing"]["0x80abcdef"] == "no permission: for administrators", device["missing"])
    link = by_ends(document)["own_numbers:0", "own_numbers:1"]
    check(link["kind"] == "vendor" and link["name"] == "Odd Fabric", link)


def links_are_verified_and_measured_between_the_devices_that_are_listed(probe):
    document, result = probe.json("--links", "--verify", "--backends", "opencl", plugins=("twin_a", "twin_b"))
    preferred = {device["id"] for device in document["devices"] if device["preferred"]}
    for ends, link in by_ends(document).items():
        measured = [link[key] is not None and link[key] > 0 for key in ("measured_bytes_per_second", "measured_latency_ns")]
        tried = preferred.issuperset(ends)
        check(link["verified"] is (True if tried else None) and measured == [tried, tried], link)
        check(tried or "--all" in link["missing"]["verified"], link)
    document, result = probe.json("--links", "--verify", "--all", "--backends", "opencl")
    check(all(link["verified"] is True and link["path"] in ("shared", "staged") for link in document["links"]), result)
    check(result.code == 0, result)


def figures_of_software_devices_are_labelled_and_others_are_not(probe):
    result = probe.run("--links", "--verify", "--all", "--backends", "opencl")
    for title in ("GiB/s", "µs"):
        numbers = {ends: cell for ends, cell in cells_of(result.out, title).items() if ends[0] != ends[1]}
        check(numbers and all(cell[-1] == "~" and float(cell[:-1]) > 0 for cell in numbers.values()), title, result)
    check("~         measured with a software device" in result.out, result)
    check("~" not in probe.run("--links", "--all", "--backends", "opencl").out, "nothing was measured")
    document, result = probe.json("--links", "--all", "--backends", "opencl")
    check(document["links"] and all(link["software"] is True for link in document["links"]), result)
    pair = fake_cuda("devices 2") | {"GPUHAL_BACKENDS": "cuda", "GPUHAL_DEVICES": "cuda:0,cuda:1"}
    document, result = probe.json("--links", **pair)
    check(document["links"] and all(link["software"] is False for link in document["links"]), result)
    check("~" not in probe.run("--links", "--verify", **pair).out)


def a_link_that_lies_answers_4_and_is_named(probe):
    settings = fake_cuda("devices 3; link 0 1 nvlink 4 18; silent 0 1; link 1 2 system")
    document, result = probe.json("--links", "--verify", "--backends", "cuda", "--device", "cuda:0-2", **settings)
    links = by_ends(document)
    check(result.code == 4 and "the link from cuda:0 to cuda:1 failed verification: the driver reports that cuda:1 can access memory of cuda:0"
          in result.err, result)
    lying = links["cuda:0", "cuda:1"]
    check(lying["verified"] is False and lying["peer_advertised"] and lying["path"] == "staged" and lying["kind"] == "nvlink", lying)
    check("cuda:1 can access memory of cuda:0" in lying["verify_error"], lying)
    check(links["cuda:0", "cuda:2"]["verified"] and links["cuda:0", "cuda:2"]["path"] == "peer", result)
    check(links["cuda:1", "cuda:2"]["verified"] and links["cuda:1", "cuda:2"]["path"] == "staged", result)
    check(not complaints(probe, document), complaints(probe, document))
    check(probe.run("--links", "--backends", "cuda", **settings).code == 0, "without --verify it is unknown")


def the_tables_of_links_say_what_the_document_says(probe):
    settings = fake_cuda("devices 3; link 0 1 nvlink 4 18; silent 0 2; link 1 2 system")
    result = probe.run("--links", "--verify", "--backends", "cuda", **settings)
    kinds, paths = cells_of(result.out, "from/to"), cells_of(result.out, "path")
    check(kinds["cuda:0", "cuda:1"] == "nvlink+" and kinds["cuda:0", "cuda:2"] == "switch!", result)
    check(kinds["cuda:1", "cuda:2"] == "system" and kinds["cpu:0", "cuda:0"] == "host" and kinds["cpu:0", "cpu:0"] == ".", result)
    check(paths["cuda:0", "cuda:1"] == "peer" and paths["cuda:0", "cuda:2"] == "staged" and paths["cuda:0", "cpu:0"] == "shared", result)
    for title in ("GiB/s", "µs"):
        numbers = {ends: cell for ends, cell in cells_of(result.out, title).items() if ends[0] != ends[1]}
        check(len(numbers) == 12 and all(float(cell) > 0 for cell in numbers.values()), title, result)
    for word in ("nvlink    NVLink, directly", "host      through the host's memory; no closer connection is known",
                 "+         one reaches the other's memory, as its driver says and bytes", "!         tried, and failed"):
        check(word in result.out, word, result)
    plain = probe.run("--links", "--backends", "cuda", **settings)
    check(cells_of(plain.out, "from/to")["cuda:0", "cuda:2"] == "switch+" and "as its driver says; --verify tries" in plain.out, plain)
    check(not cells_of(plain.out, "path") and "Express host bridge" not in plain.out, plain)


def tables_of_many_links_fit_the_screen(probe):
    settings = fake_cuda("devices 8; link 0 1 nvlink 4 6; link 0 7 system")
    for columns in (40, 60, 80, 200):
        result = probe.on_terminal("--links", "--backends", "cuda", columns=columns, **settings)
        lines = screen_lines(result.out)
        check(all(columns_of(line) <= columns for line in lines), columns, result)
        check(len(cells_of("\n".join(lines), "from/to")) == 64, columns, result)
    check(sum("from/to" in line for line in screen_lines(probe.on_terminal("--links", "--backends", "cuda", columns=90, **settings).out)) == 1)
    check(probe.run("--links", "--verify", "--backends", "cpu,opencl", LC_ALL="C").out.isascii())


def all_pairs(count, text):
    return "; ".join(f"link {a} {b} {text}" for a in range(count) for b in range(a + 1, count))


def links_that_are_all_alike_are_one_sentence(probe):
    settings = fake_cuda(f"devices 8; {all_pairs(8, 'nvlink 4 2')}")
    result = probe.run("--links", "--backends", "cuda", **settings)
    check("\n8 GPUs, NVLink 4 all to all, 2 links each: cuda:0 to cuda:7\n" in result.out and "from/to" not in result.out, result)
    check("cpu:0" not in result.out.split("8 GPUs, NVLink", 1)[1], result)
    for line in result.out.split("8 GPUs, NVLink", 1)[1].splitlines():
        check(not line.startswith("nvlink "), result)
    two = probe.run("--links", "--backends", "cuda", **fake_cuda("devices 2; link 0 1 system"))
    check("\n2 GPUs, system to each other: cuda:0, cuda:1\n" in two.out and "\nsystem    from one NUMA node to another" in two.out, two)
    other = probe.run("--links", "--backends", "cuda", **fake_cuda(f"devices 3; {all_pairs(3, 'nvlink 4 2')}; link 1 2 nvlink 4 1"))
    check("from/to" in other.out and "all to all" not in other.out, other)


def sentences_without_a_legend_end_the_screen(probe):
    result = on_recorded("h100-8")("--links")
    check("NVLink 4 all to all" in result.out and "\nNUMA node 1" in result.out and not result.out.endswith("\n\n"), result)


def two_islands(inside, between):
    """Returns links of eight devices in two groups: 0 to 3, and 4 to 7."""
    return "; ".join(f"link {a} {b} {inside if (a < 4) == (b < 4) else between}" for a in range(8) for b in range(a + 1, 8))


def islands_have_a_line_each_and_one_for_what_is_between_them(probe):
    for between, word, reach in (("system", "system    from one NUMA node", "in a group each reaches"), ("pcie", "switch    PCI Express", "each reaches")):
        result = probe.run("--links", "--backends", "cuda", **fake_cuda(f"devices 8; {two_islands('nvlink 4 2', between)}"))
        lines = ["", "4 GPUs, NVLink 4 all to all, 2 links each: cuda:0 to cuda:3", "4 GPUs, NVLink 4 all to all, 2 links each: cuda:4 to cuda:7",
                 f"between the groups: {word.split()[0]}", reach + " the other's memory, as the driver says; --verify tries it", word]
        check("\n".join(lines) in result.out and "from/to" not in result.out, lines, result)
        check("\nnvlink " not in result.out and "\n+ " not in result.out, result)
    pairs = probe.run("--links", "--backends", "cuda", **fake_cuda("devices 4; link 0 2 nvlink 4 1; link 1 3 nvlink 4 3"))
    check("\n2 GPUs, NVLink 4 to each other, 1 link each: cuda:0, cuda:2\n2 GPUs, NVLink 4 to each other, 3 links each: cuda:1, cuda:3\n" in pairs.out,
          pairs)


def islands_that_are_not_uniform_are_a_table(probe):
    islands = f"devices 8; {two_islands('nvlink 4 2', 'system')}"
    for case in (f"{islands}; link 0 5 pcie", f"{islands}; link 4 5 nvlink 4 1", f"{islands}; link 6 7 system", f"devices 9; {two_islands('nvlink 4 2', 'pcie')}",
                 f"devices 8; {two_islands('pcie', 'nvlink 4 2')}", f"{islands}; link 3 4 nvlink 4 2"):
        result = probe.run("--links", "--backends", "cuda", **fake_cuda(case))
        count = int(case[8])
        check(len(cells_of(result.out, "from/to")) == count * count and "between the groups" not in result.out, case, result)


def a_link_that_failed_is_in_a_table_and_in_no_sentence(probe):
    machine = "devices 4; link 0 1 nvlink 4 1; link 2 3 nvlink 4 1; link 0 2 system; link 0 3 system; link 1 2 system; link 1 3 system"
    options = ("--links", "--verify", "--device", "cuda", "--backends", "cuda")
    good = probe.run(*options, **fake_cuda(machine))
    check("between the groups: system\nin a group each reaches the other's memory, as bytes have proven\n" in good.out and "from/to" not in good.out, good)
    result = probe.run(*options, **fake_cuda(f"{machine}; silent 2 3"))
    check(cells_of(result.out, "from/to")["cuda:2", "cuda:3"] == "nvlink!" and "between the groups" not in result.out, result)


def a_legend_never_says_two_things_about_one_pair(probe):
    """The driver offers direct access, although the only known connection is through host memory."""
    result = probe.run("--links", "--backends", "cuda", **fake_cuda("devices 3; link 0 1 system"))
    check("host+" not in result.out, result)


def make_pci(root, places):
    """Creates a tree of PCI devices. The argument maps each address to the path below /sys/devices and the NUMA
    node."""
    bus = os.path.join(root, "sys/bus/pci/devices")
    os.makedirs(bus)
    for address, (path, node) in places.items():
        folder = os.path.join(root, "sys/devices", path, address)
        os.makedirs(folder, exist_ok=True)
        os.symlink(folder, os.path.join(bus, address))
        for name, text in (("numa_node", str(node)), ("local_cpulist", f"{node * 32}-{node * 32 + 31}"), ("vendor", "0x10de"),
                           ("device", "0x2330"), ("class", "0x030200"), ("subsystem_vendor", "0x10de"), ("subsystem_device", "0x16c1")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text + "\n")


def network_cards_and_numa_nodes_stand_below_the_links(probe):
    with tempfile.TemporaryDirectory() as root:
        near, far = "pci0000:10/0000:10:00.0", "pci0000:c0/0000:c0:00.0"
        make_pci(root, {"0000:11:00.0": (near, 0), "0000:c1:00.0": (far, 1), "0000:12:00.0": (near, 0)})
        for kind, name in (("infiniband", "mlx5_0"), ("net", "ib0")):
            folder = os.path.join(root, "sys/class", kind, name)
            os.makedirs(folder)
            os.symlink(os.path.join(root, "sys/devices", near, "0000:12:00.0"), os.path.join(folder, "device"))
        os.makedirs(os.path.join(root, "sys/class/net/lo"))
        settings = fake_cuda("devices 2; pci 1 0000:c1:00.0; link 0 1 nvlink 4 2") | {"GPUHAL_SYSTEM_ROOT": root, "COLUMNS": "200"}
        result = probe.run("--links", "--backends", "cuda", **settings)
        check("\nNUMA node 0, processors 0-31: cuda:0\nNUMA node 1, processors 32-63: cuda:1\n" in result.out, result)
        card = next((line for line in result.out.splitlines() if line.startswith("mlx5_0, ib0 at 0000:12:00.0: ")), "")
        check(re.search(r": (switch|bridge) to cuda:0; system to cuda:1$", card), result)
        check("\nsystem    from one NUMA node to another (SYS)\n" in result.out and "\nlo " not in result.out, result)


def links_of_a_single_device_are_none(probe):
    result = probe.run("--links", "--backends", "cpu")
    check(result.code == 0 and "no two devices" in result.out, result)
    check(probe.json("--links", "--backends", "cpu")[0]["links"] == [])
    probe.use_drivers()
    result = probe.run("--links", "--backends", "opencl")
    check("one physical device is listed; --all shows the links between its interfaces" in result.out, result)
    check("opencl:0 is another interface of a listed device; --all lists it" in result.err, result)
    check(not probe.run("--all", "--backends", "opencl").err and not probe.run("--backends", "cpu,opencl").err)


def drivers_that_die_or_hang_at_a_link_cost_that_link_and_the_rest_goes_on(probe):
    probe.use_drivers()
    document, result = probe.json("--links", "--verify", "--timeout", "40", "--device", "cpu:0,dying:0,opencl:0", plugins=("dying",))
    links = by_ends(document)
    check(result.code == 4 and "crashed: signal" in result.err, result)
    check(links["dying:0", "cpu:0"]["verified"] is False and "crashed" in links["dying:0", "cpu:0"]["verify_error"], result)
    check(not complaints(probe, document), complaints(probe, document))
    document, result = probe.json("--links", "--verify", "--timeout", "6", "--device", "cpu:0,stuck:0", plugins=("stuck",))
    links = by_ends(document)
    check(result.code == 4 and "the link from stuck:0 to cpu:0 failed verification: the driver did not finish within " in result.err, result)
    check(all(link["kind"] == "host" and link["verified"] is False for link in links.values()), "what was known stays", result)
    check(not complaints(probe, document), complaints(probe, document))


if __name__ == "__main__":
    main(globals())
