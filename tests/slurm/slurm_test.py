#!/usr/bin/env python3
"""Runs a real Slurm with one node and two GPUs of the fake driver: slurm_test.py BUILD. The output of gpuhal-probe
--format gres is used as gres.conf, and device cgroups restrict each job to its GPUs. Exit code 77 means skipped.

Everything runs in new mount, PID, network and UTS namespaces. In them /dev contains the nodes of the GPUs, all ports
are free, and all processes are killed when the first process exits. Only cgroups remain after this process; the test
removes them at the end."""

import errno
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
from probe_formats_test import Tree  # noqa: E402
from probe_support import check  # noqa: E402

GPUS, NVIDIA = 2, 195  # number of GPUs, and the major number of their nodes
ADDRESSES = ("0000:11:00.0", "0000:21:00.0")
SECONDS = 60
CGROUPS = Path("/sys/fs/cgroup")
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

SLURM_CONF = """ClusterName=gpuhal
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PropagateResourceLimits=NONE
MpiDefault=none
GresTypes={types}
NodeName=localhost NodeAddr=127.0.0.1 CPUs=4 Gres={gres}
PartitionName=all Nodes=localhost Default=YES
"""
CGROUP_CONF = """CgroupPlugin=cgroup/v1
CgroupAutomount=no
CgroupMountpoint=/sys/fs/cgroup
ConstrainDevices=yes
"""


def skip(why):
    print("skipped:", why)
    sys.exit(77)


# ---------------------------------------------------------------------------------------------- in the namespaces

def bring_loopback_up():
    """Adds a second address. If 127.0.0.1 is the only one, the C library finds no address for listening
    (AI_ADDRCONFIG)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh22x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
        fcntl.ioctl(any_socket, 0x8916, struct.pack("16sHH4s16x", b"lo:1", socket.AF_INET, 0, socket.inet_aton("127.0.0.2")))  # SIOCSIFADDR


def make_devices(root):
    """Creates in /dev the nodes that every program requires and the nodes of the GPUs."""
    dev = root + "/dev"
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        number = os.stat("/dev/" + name).st_rdev
        os.mknod(f"{dev}/{name}", 0o666 | stat.S_IFCHR, number)
        os.chmod(f"{dev}/{name}", 0o666)
    for name in [f"nvidia{number}" for number in range(GPUS)] + ["nvidiactl", "nvidia-uvm"]:
        number = int(name[6:]) if name[6:].isdigit() else 255 if name == "nvidiactl" else 254
        if os.path.exists(f"{dev}/{name}"):
            os.remove(f"{dev}/{name}")
        os.mknod(f"{dev}/{name}", 0o666 | stat.S_IFCHR, os.makedev(NVIDIA, number))
        os.chmod(f"{dev}/{name}", 0o666)
    os.makedirs(dev + "/shm", exist_ok=True)
    os.symlink("/proc/self/fd", dev + "/fd")
    subprocess.run(("mount", "--rbind", dev, "/dev"), check=True)


class Cluster:
    def __init__(self, folder, build):
        self.folder, self.build = folder, Path(build)
        self.tree = Tree()
        for number, address in enumerate(ADDRESSES):
            self.tree.gpu(address, "10de:2330", "nvidia", nvidia=number)
        self.tree.put("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06")
        fakes = self.build / "tests/fakes/cuda"
        self.environment = {"PATH": PATH, "LC_ALL": "C.UTF-8", "HOME": folder, "SLURM_CONF": folder + "/slurm.conf", "GPUHAL_REGISTRY": "none",
                            "GPUHAL_BACKENDS": "cuda,cpu", "GPUHAL_CUDA_LIBRARY": str(fakes / "libcuda.so.1"),
                            "GPUHAL_NVML_LIBRARY": str(fakes / "libnvidia-ml.so.1"), "FAKE_CUDA": driver_of(range(GPUS))} | self.tree.settings()
        make_devices(self.tree.folder.name)

    def start(self, name, *options):
        with open(f"{self.folder}/{name}.out", "wb") as out:
            subprocess.Popen((name, *options), env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def configure(self):
        """Writes the program's output to gres.conf. The first lines of the output contain the values for slurm.conf."""
        gres = subprocess.run((self.build / "bin/gpuhal-probe", "--format", "gres", "--output", self.folder + "/gres.conf"),
                              env=self.environment, capture_output=True, text=True, check=False)
        check(gres.returncode == 0, gres)
        text = Path(self.folder, "gres.conf").read_text(encoding="utf-8")
        types, line = re.search(r"^# slurm\.conf: GresTypes=(\S+), and for this node Gres=(\S+)$", text, re.M).groups()
        check(line.endswith(f":{GPUS}") and text.count("File=/dev/nvidia") == GPUS and "Links=-1,18" in text, text)
        Path(self.folder, "slurm.conf").write_text(SLURM_CONF.format(folder=self.folder, types=types, gres=line), encoding="utf-8")
        Path(self.folder, "cgroup.conf").write_text(CGROUP_CONF, encoding="utf-8")

    def run(self, *command):
        return subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)

    def bring_up(self):
        for name in ("state", "spool"):
            os.mkdir(f"{self.folder}/{name}")
        key = Path(self.folder, "munge.key")
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        paths = (f"--{name}={self.folder}/munge.{ending}" for name, ending in
                 (("socket", "socket"), ("key-file", "key"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed")))
        self.start("munged", "--foreground", *paths)
        self.wait(lambda: os.path.exists(self.folder + "/munge.socket"), "munged")
        self.start("slurmctld", "-D")
        self.start("slurmd", "-D")
        self.wait(lambda: self.run("sinfo", "-h", "-o", "%T").stdout.strip() == "idle", "slurmd")

    def wait(self, what, name):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if what():
                return
            time.sleep(0.1)
        raise AssertionError("\n".join([f"{name} did not come up", *self.logs()]))

    def logs(self):
        files = sorted(Path(self.folder).glob("*.log")) + sorted(Path(self.folder).glob("*.out"))
        return [f"---- {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in files]

    def srun(self, *options, program="gpuhal-probe", arguments=()):
        """Runs a program in several tasks. Each task first lists the nodes that it can open."""
        path = self.build / {"gpuhal-probe": "bin", "workers": "examples"}[program] / program
        return self.run("srun", "--quiet", *options, sys.executable, "-B", os.path.abspath(__file__), "task", str(path), *arguments)


def driver_of(numbers):
    """Returns the fake driver's statements for these GPUs."""
    lines = [f"devices {len(numbers)}", "memory * 1G", "name * NVIDIA H100 80GB HBM3"]
    lines += [f"pci {place} {ADDRESSES[number]}; uuid {place} {number + 1:032x}" for place, number in enumerate(numbers)]
    return "; ".join(lines + (["link 0 1 nvlink 4 18"] if len(numbers) == 2 else []))


def task(program, *arguments):
    """Runs in a job. The fake CUDA lists the GPUs whose nodes the kernel permits the process to open. No driver serves
    these nodes."""
    given = []
    for number in range(GPUS):
        try:
            os.close(os.open(f"/dev/nvidia{number}", os.O_RDWR))
            given.append(number)
        except OSError as error:
            given += [] if error.errno == errno.EPERM else [number]
    print(f"rank {os.environ['SLURM_PROCID']} opens {given}", flush=True)
    os.environ["FAKE_CUDA"] = driver_of(given)
    os.execv(program, (program, *arguments))


def opened(result):
    """Returns by rank which nodes each rank can open."""
    return {int(rank): json.loads(numbers) for rank, numbers in re.findall(r"^rank (\d+) opens (\[.*\])$", result.stdout, re.M)}


def a_job_with_one_gpu_has_that_alone_and_nothing_is_broken(cluster):
    result = cluster.srun("--gres=gpu:1", arguments=("--json",))
    ((number,),) = opened(result).values()
    check(result.returncode == 0, result, *cluster.logs())
    document = json.loads(result.stdout[result.stdout.index("\n") + 1:])
    check([device["id"] for device in document["devices"] if device["backend"] == "cuda"] == ["cuda:0"], result)
    states = {hardware["pci_address"]: hardware["state"] for hardware in document["hardware"]}
    check(states == {ADDRESSES[number]: "ready", ADDRESSES[1 - number]: "not_given"} and not document["problems"], result)
    result = cluster.srun("--gres=gpu:1")
    check(result.returncode == 0 and "1 GPU ready; 1 more of this host is not given" in result.stdout and not result.stderr, result)
    result = cluster.srun("--gres=gpu:nvidia_h100_80gb_hbm3:2", arguments=("--expect", "2"))
    check(result.returncode == 0 and opened(result) == {0: [0, 1]} and "2 GPUs ready" in result.stdout, result)


def a_job_without_a_gpu_has_none(cluster):
    result = cluster.srun("-n1")
    check(result.returncode == 0 and opened(result) == {0: []} and "not given" in result.stdout, result)


def each_rank_has_its_own_gpu_without_a_flag(cluster):
    for options in (("--gpus-per-task=1",), ("--gres=gpu:2", "--gpu-bind=single:1")):
        result = cluster.srun("-n2", *options, program="workers", arguments=("rank_per_device",))
        ranks = opened(result)
        check(result.returncode == 0 and sorted(ranks) == [0, 1] and sorted(ranks.values()) == [[0], [1]], result)
        check(result.stdout.count("strategy rank_per_device: 2 workers, started by slurm\n") == 2, "both know the number of local ranks", result)
        check(sorted(re.findall(r"^worker (\d): cuda:0.*: 65536 of 65536 values right.*$", result.stdout, re.M)) == ["0", "1"], result)


def ranks_that_see_all_gpus_have_them_by_their_number(cluster):
    result = cluster.srun("-n2", "--gres=gpu:2", program="workers", arguments=("rank_per_device",))
    check(result.returncode == 0 and opened(result) == {0: [0, 1], 1: [0, 1]}, result)
    check(sorted(re.findall(r"^worker (\d): cuda:(\d)", result.stdout, re.M)) == [("0", "0"), ("1", "1")], result)


def two_ranks_on_one_gpu_are_refused(cluster):
    result = cluster.srun("-n2", "--gres=gpu:1", program="workers", arguments=("rank_per_device",))
    check(result.returncode != 0 and 'SLURM_LOCALID is "1", and this process sees 1 device' in result.stderr, result)


def run_inside(folder, build):
    tempfile.tempdir = folder  # the caller removes it, even after a failure here
    subprocess.run(("mount", "-t", "proc", "proc", "/proc"), check=True)
    socket.sethostname("localhost")
    bring_loopback_up()
    cluster = Cluster(folder, build)
    cluster.configure()
    cluster.bring_up()
    for test in (a_job_with_one_gpu_has_that_alone_and_nothing_is_broken, a_job_without_a_gpu_has_none, each_rank_has_its_own_gpu_without_a_flag,
                 ranks_that_see_all_gpus_have_them_by_their_number, two_ranks_on_one_gpu_are_refused):
        try:
            test(cluster)
        except BaseException:
            print(f"---- {test.__name__}", *cluster.logs(), sep="\n", flush=True)
            raise
    print("5 tests of a node of Slurm passed")


# ---------------------------------------------------------------------------------------------- outside

def groups_of_slurm():
    return [group for place in CGROUPS.iterdir() if place.is_dir() for group in place.glob("slurm*")]


def remove_groups(tries):
    """Removes Slurm's cgroups, the innermost first. Retries, because a process in a cgroup may not have exited yet.
    Returns whether all cgroups have been removed."""
    for _ in range(tries):
        for group in groups_of_slurm():
            for folder, _, _ in os.walk(group, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    pass
        if not groups_of_slurm():
            return True
        time.sleep(0.1)
    return False


def what_is_lacking(build):
    missing = [name for name in PROGRAMS if not shutil.which(name, path=PATH)]
    if missing:
        return f"Slurm is not installed (no {missing[0]})"
    if os.geteuid() != 0:
        return "only root may make nodes, control groups and namespaces"
    if not os.access(CGROUPS / "devices/cgroup.procs", os.W_OK) or not (CGROUPS / "freezer/cgroup.procs").exists():
        return "there is no device cgroup of version 1, or none that can be changed"
    if not remove_groups(1):  # empty cgroups remain from a run that was killed
        return "Slurm is running on this machine"
    if subprocess.run(("unshare", "-mpnuf", "true"), stderr=subprocess.DEVNULL, check=False).returncode != 0:
        return "namespaces cannot be made here"
    if not (Path(build) / "tests/fakes/cuda/libcuda.so.1").exists():
        return "the fake CUDA was not built"
    if not list((Path(build) / "examples").glob("*/example_saxpy.ptx")):
        return "the kernel of examples/workers.c has no form for CUDA (no nvcc)"
    return None


def main(build):
    lacking = what_is_lacking(build)
    if lacking:
        skip(lacking)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the code in "finally" also runs
    with tempfile.TemporaryDirectory(prefix="gpuhal-slurm-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        try:
            return subprocess.run(("unshare", "-mpnuf", "--kill-child", sys.executable, "-B", os.path.abspath(__file__), "inside", folder, build),
                                  stdin=subprocess.DEVNULL, timeout=SECONDS, check=False).returncode
        finally:
            check(remove_groups(50), "left behind:", *groups_of_slurm())


if __name__ == "__main__":
    if sys.argv[1] == "task":
        task(*sys.argv[2:])
    elif sys.argv[1] == "inside":
        run_inside(*sys.argv[2:])
    else:
        sys.exit(main(os.path.abspath(sys.argv[1])))
