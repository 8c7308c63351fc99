#!/usr/bin/env python3
"""Tests which devices a process gets if the kernel restricts it: with a device cgroup, namespaces, or another user.
FILE TEST PROGRAM FAKES. TEST may be all (together.py). Exit code 77 means skipped. All tests require root."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import device_cgroup
import recorded_test
import together

NVIDIA, GPUS, GIVEN = 195, 8, 2  # major number of the nodes; number of GPUs; index of the GPU that the job gets
LINE = "1 GPU ready; 7 more of this host are not given"


def skip(why):
    print("skipped:", why)
    sys.exit(77)


class Host:
    """A machine with eight GPUs that have real nodes. CUDA lists one of the GPUs, and nothing indicates a container."""

    def __init__(self, program, fakes):
        folder = Path(__file__).resolve().parent.parent / "recorded/docker-one-of-8"
        self.place = tempfile.TemporaryDirectory(prefix="gpuhal-given-", dir="/tmp")
        os.chmod(self.place.name, 0o755)
        machine = recorded_test.Machine(folder)
        player = recorded_test.Player(program, fakes, self.place.name)
        self.program, self.root = player.program, player.root
        self.environment = player.environment(machine) | {"COLUMNS": "80", "GPUHAL_REGISTRY": "none"}
        os.remove(self.root + "/.dockerenv")
        for number in range(GPUS):
            node = f"{self.root}/dev/nvidia{number}"
            if os.path.exists(node):
                os.remove(node)
            os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(NVIDIA, number))
            os.chmod(node, 0o666)

    def run(self, *options, before=(), setup=None, **settings):
        done = subprocess.run([*before, self.program, "--color=never", *options], env=self.environment | settings, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=60, preexec_fn=setup, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode()


def check(condition, *shown):
    if not condition:
        raise AssertionError("\n".join(map(str, shown)))


def enter_a_cgroup(kind, program, fakes):
    """Returns a machine and a cgroup that gives a job one of its GPUs."""
    if not kind.parent():
        skip(f"there is no device cgroup of the {kind.__name__.lower()} version, or none that can be changed")
    try:
        group = kind(kind.parent())
        group.deny(NVIDIA, set(range(GPUS)) - {GIVEN})
    except OSError as error:
        skip(f"a device cgroup of the {kind.__name__.lower()} version cannot be made: {error}")
    return Host(program, fakes), group


def give_one(kind, program, fakes):
    host, group = enter_a_cgroup(kind, program, fakes)
    try:
        os.makedirs(host.root + "/proc/self", exist_ok=True)
        for group_of, who in (("user.slice/user-1000.slice/session-3.scope", "user session"), ("system.slice/trainer.service", "service"),
                               ("", "process")):
            Path(host.root + "/proc/self/cgroup").write_text(f"0::/{group_of}\n", encoding="utf-8")
            code, out, err = host.run(setup=group.enter)
            check(code == 0 and f"{LINE} to this {who}\n" in out, code, out, err)
        code, out, err = host.run(setup=group.enter)
        check(code == 0 and LINE in out and "\n!" not in out and "cuda:0" in out, code, out, err)
        code, out, err = host.run("--all", setup=group.enter, SLURM_JOB_ID="17")
        check(code == 0 and out.count("not given ") == 8 and f"{LINE} to this Slurm job 17\n" in out, code, out, err)
        code, out, err = host.run("--json", setup=group.enter, SLURM_JOB_ID="17")
        check(code == 0 and out.count('"this Slurm job 17 was not given /dev/nvidia') == 7 and "its device cgroup refuses it" in out, code, out, err)
        check(out.count('"srun --gres=gpu:1 …"') == 7, out)
        code, out, err = host.run()
        check(code == 4 and "0 more" not in out and LINE not in out, "without the group they are the host's own", code, out, err)
    finally:
        group.close()


def a_job_in_a_device_cgroup_has_the_gpus_of_that_alone(program, fakes):
    give_one(device_cgroup.First, program, fakes)


def a_job_in_a_device_cgroup_of_version_2_has_the_gpus_of_that_alone(program, fakes):
    give_one(device_cgroup.Second, program, fakes)


def take_away(kind, program, fakes):
    """A reload of systemd removes a container's GPUs from the container's device cgroup (NVIDIA/nvidia-docker#1730), so
    the driver in the container fails."""
    host, group = enter_a_cgroup(kind, program, fakes)
    try:
        group.deny(NVIDIA, range(GPUS))
        Path(host.root + "/.dockerenv").touch()
        failed = host.environment["FAKE_CUDA"] + "\ninit 999"
        for value, lacking in (("all", GPUS), ("2", 1), ("1,2", 2), ("void", 0), ("none", 0)):
            code, out, err = host.run("--refresh", "--json", setup=group.enter, FAKE_CUDA=failed, NVIDIA_VISIBLE_DEVICES=value)
            sentence = f"NVIDIA_VISIBLE_DEVICES={value} asks for this GPU, but the device cgroup of this container refuses /dev/nvidia"
            hardware = [one for one in json.loads(out)["hardware"] if one.get("why", "").startswith(sentence)]
            check(len(hardware) == lacking and all(one["state"] == "no_permission" and one["fix"].endswith("\n# on the host; ends all programs in this container:\ndocker restart …") for one in hardware),
                  value, lacking, out)
        code, out, err = host.run("--refresh", setup=group.enter, FAKE_CUDA=failed, NVIDIA_VISIBLE_DEVICES="2")
        check(code == 4 and out.count("NO PERMISSION") == 1 and "docker restart" in out and "7 more of this host are not given" in out, code, out, err)
        code, out, err = host.run("--refresh", setup=group.enter, NVIDIA_VISIBLE_DEVICES="2")
        check(code == 0 and "cuda:0" in out, "one that works is not asked about", code, out, err)
    finally:
        group.close()


def a_container_whose_cgroup_takes_its_gpus_away_says_so(program, fakes):
    take_away(device_cgroup.First, program, fakes)


def a_container_whose_cgroup_of_version_2_takes_its_gpus_away_says_so(program, fakes):
    take_away(device_cgroup.Second, program, fakes)


def a_process_in_namespaces_of_its_own_was_not_given_what_it_cannot_reach(program, fakes):
    if not shutil.which("unshare") or subprocess.run(("unshare", "-pmf", "true"), stderr=subprocess.DEVNULL, check=False).returncode != 0:
        skip("namespaces of mounts and processes cannot be made here: without unshare, or below a chroot")
    host = Host(program, fakes)
    for number in set(range(GPUS)) - {GIVEN}:
        os.remove(f"{host.root}/dev/nvidia{number}")
    code, out, err = host.run(before=("unshare", "-pmf", "sh", "-c", 'mount -t proc proc "$0/proc" && exec "$@"', host.root))
    check(code == 0 and LINE in out, code, out, err)


def a_user_without_the_group_of_a_node_lacks_permission(program, fakes):
    host = Host(program, fakes)
    for number in set(range(GPUS)) - {GIVEN}:
        os.chown(f"{host.root}/dev/nvidia{number}", 0, 44)
        os.chmod(f"{host.root}/dev/nvidia{number}", 0o660)

    def become_another_user():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    code, out, err = host.run(setup=become_another_user)
    check(code == 4 and "NO PERMISSION" in out and "which is for the group" in out and "not given" not in out, code, out, err)


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip("only root may make nodes, groups and namespaces")
    sys.exit(together.run(globals(), "program, fakes", sys.argv[1], lambda test: test(*sys.argv[2:4])))
