"""A Slurm of its own for tests: controller, nodes and Munge on one machine, over loopback only.

The controller (slurmctld) gives jobs to nodes (slurmd), which are as many daemons on this machine. All that
they write is in one private folder, and nothing is left of them at the end. Where real sites have control
groups, these nodes find a job's processes by their parents: one whose parents have ended outlives its job,
until Slurm ends.
"""

import contextlib
import ipaddress
import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NoReturn

import pytest

from tests.loopback_servers import free_ports, kill, listens, living, program, server, wait_until

PARTITION = "grading"
# how often the controller looks for jobs whose time is over: a constant in its source (PERIODIC_TIMEOUT)
SECONDS_BETWEEN_LOOKS = 30
# from SIGTERM to SIGKILL for a job that shall end. KillWait is rounded up to the waits between which a node
# looks whether the job has ended, and the first of these take 4.7 seconds
SECONDS_TO_DIE = 5
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "DEADLINE"}
# what an outer Slurm, whose job these tests may be, tells its jobs
OUTER = ("SLURM", "SBATCH_", "SQUEUE_", "SCANCEL_", "SINFO_", "SALLOC_", "SRUN_")

CONFIGURATION = """
ClusterName=grader-tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket
# bind to the address of the machine's name, which is one of loopback, rather than to all
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/%n
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/%n.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/%n.log
# at this level the controller logs when it looks at time limits
SlurmctldDebug=debug2
SlurmdDebug=verbose
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_interval=1,sched_min_interval=0
# the nodes are what is written here, whatever the machine is
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
OverTimeLimit=0
{nodes}
PartitionName={partition} Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@dataclass(frozen=True)
class Slurm:
    """A running Slurm.

    Attributes:
        home: The private folder of its files: `slurm.conf`, and the logs `slurmctld.log` and `NODE.log`.
        environment: With which its commands find it: ours, with SLURM_CONF.
        partition: The name of its only partition, which is the default.
        nodes: The names of its nodes.
    """

    home: Path
    environment: Mapping[str, str]
    partition: str
    nodes: tuple[str, ...]

    @property
    def configuration(self) -> Path:
        """The file that SLURM_CONF names."""
        return self.home / "slurm.conf"

    def run(self, *command: str) -> str:
        """What a command of Slurm prints.

        Raises:
            AssertionError: It failed; with what it said.
        """
        done = subprocess.run(
            command, env=self.environment, cwd=self.home / "jobs", capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout.strip()

    def submit(self, script: str, *options: str) -> int:
        """The number of a new job.

        Args:
            script: What the job's shell runs.
            options: Further options of `sbatch`.
        """
        return int(self.run("sbatch", "--parsable", *options, f"--wrap={script}"))

    def jobs(self) -> dict[int, str]:
        """The states of all jobs that the controller remembers, which is of the last five minutes."""
        told = self.run("squeue", "--noheader", "--states=all", "--format=%i %T")
        return {int(number): state for number, state in map(str.split, told.splitlines())}

    def state(self, job: int) -> str:
        """A job's state, such as RUNNING or TIMEOUT."""
        return self.jobs()[job]

    def wait_for(self, job: int, *states: str, seconds: float = 30) -> str:
        """The state of a job as soon as it is one of these; by default, as soon as it has ended."""
        wanted = set(states) or ENDED
        logs = [self.home / "slurmctld.log", *(self.home / f"{node}.log" for node in self.nodes)]
        wait_until(lambda: self.state(job) in wanted, f"job {job} is {wanted}", seconds, logs=logs)
        return self.state(job)

    def printed(self, job: int) -> str:
        """What a job that was submitted here, without an `--output` of its own, has printed so far."""
        return (self.home / "jobs" / f"slurm-{job}.out").read_text(encoding="utf-8")

    def cancel(self, job: int) -> None:
        """End a job as its owner would."""
        self.run("scancel", str(job))

    def end_at_limit(self, job: int, least: float = 1.0) -> float:
        """Let a running job's time be over soon, so that Slurm itself ends it at its time limit.

        A limit has at least a minute, and the controller looks at limits every 30 seconds only. So the job's
        end is moved to just before a look. It comes within 32 seconds if `least` is not longer. Slurm sends
        the job SIGTERM 1 to 4 seconds later, and SIGKILL after SECONDS_TO_DIE.

        Args:
            job: A job that runs.
            least: For how many seconds the job shall run on at least.

        Returns:
            When the job's time is over, in seconds since the epoch.
        """
        now = time.time()
        over = self._last_look() + SECONDS_BETWEEN_LOOKS - 2
        while over < now + max(least, 1):
            over += SECONDS_BETWEEN_LOOKS
        self.run("scontrol", "update", f"JobId={job}", f"EndTime=now+{round(over - now)}")
        return over

    def processes(self) -> dict[int, str]:
        """The command lines of its daemons, its jobs, and of its commands that still run, by pid."""
        return living(self._is_ours)

    def _last_look(self) -> float:
        """When the controller last looked at time limits, or began to count."""
        log = (self.home / "slurmctld.log").read_text(encoding="utf-8", errors="replace")
        looks = re.findall(
            r"^\[(\S+)\] .*(?:Testing job time limits|Running as primary controller)", log, re.M
        )
        return datetime.fromisoformat(looks[-1]).timestamp()

    def _is_ours(self, process: Path) -> bool:
        setting = f"SLURM_CONF={self.configuration}".encode()
        return setting in (process / "environ").read_bytes().split(b"\0")


@contextlib.contextmanager
def slurm(lacking: Callable[[str], NoReturn], *, nodes: int = 2, cpus: int = 4) -> Iterator[Slurm]:
    """A Slurm that runs as this user, and as nobody else.

    Args:
        lacking: Skips the test if the programs are not installed.
        nodes: How many nodes it has; all are this machine.
        cpus: How many CPUs each node says that it has.
    """
    controller, node = (program(name, "slurm-wlm", lacking) for name in ("slurmctld", "slurmd"))
    program("sbatch", "slurm-wlm", lacking)
    munge = program("munged", "munge", lacking)
    named = _with_a_name_on_loopback()
    # sockets have short paths, which those of pytest's folders are not
    home = Path(tempfile.mkdtemp(prefix="grader-slurm-", dir="/tmp"))
    names = tuple(f"node{number}" for number in range(1, nodes + 1))
    inner = {name: value for name, value in os.environ.items() if not name.startswith(OUTER)}
    made = Slurm(home, {**inner, "SLURM_CONF": str(home / "slurm.conf")}, PARTITION, names)
    try:
        ports = _write_configuration(made, cpus, "localhost" if named else socket.gethostname())
        _write_cgroup_configuration(home, controller)
        try:
            with contextlib.ExitStack() as stack:
                _start_munge(stack, made, munge)
                _start_daemon(stack, made, "slurmctld", ports[0], [*named, controller, "-D", "-c"])
                for name, port in zip(names, ports[1:], strict=True):
                    _start_daemon(stack, made, name, port, [*named, node, "-D", "-N", name])
                wait_until(lambda: _all_idle(made), "all nodes are idle", 30, logs=home.glob("*.log"))
                yield made
                _end_jobs(made)
        finally:
            kill(made._is_ours)
    finally:
        shutil.rmtree(home)


def _with_a_name_on_loopback() -> Sequence[str]:
    """Before Slurm's command, what makes the machine's name one of loopback for it alone, if it is not.

    Slurm has no option for the address at which it listens: it is that of the machine's name.
    """
    with contextlib.suppress(OSError):
        if ipaddress.ip_address(socket.gethostbyname(socket.gethostname())).is_loopback:
            return ()
    renamed = ("unshare", "--uts", "sh", "-c", 'hostname localhost && exec "$@"', "slurm")
    if subprocess.run([*renamed, "true"], capture_output=True).returncode:
        pytest.skip("Slurm would not listen on loopback: this machine's name has another address")
    return renamed


def _write_configuration(made: Slurm, cpus: int, host: str) -> list[int]:
    """Write all files, and tell the ports of the controller and of each node."""
    home = made.home
    for folder in ("state", "jobs"):
        (home / folder).mkdir(mode=0o700)
    key = home / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    ports = free_ports(1 + len(made.nodes))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    lines = (
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory={memory}"
        for name, port in zip(made.nodes, ports[1:], strict=True)
    )
    made.configuration.write_text(
        CONFIGURATION.format(
            home=home,
            host=host,
            controller_port=ports[0],
            user=subprocess.check_output(["id", "-un"], text=True).strip(),
            partition=made.partition,
            nodes="\n".join(lines),
        ),
        encoding="utf-8",
    )
    return ports


def _write_cgroup_configuration(home: Path, controller: str) -> None:
    """Let no control groups be used, whatever the machine has: neither Slurm 22.05 nor a newer one needs any.

    All versions load a plugin for them at their start. Before 24.05 none can be turned off, but that for the
    first version of control groups does nothing until something asks for a group.
    """
    told = subprocess.check_output([controller, "-V"], text=True, timeout=60)
    version = tuple(int(number) for number in re.findall(r"\d+", told)[:2])
    plugin = "disabled" if version >= (24, 5) else "cgroup/v1"
    (home / "cgroup.conf").write_text(f"CgroupPlugin={plugin}\n", encoding="utf-8")


def _start_munge(stack: contextlib.ExitStack, made: Slurm, munge: str) -> None:
    home = made.home
    files = {
        "key-file": "munge.key",
        "socket": "munge.socket",
        "pid-file": "munge.pid",
        "seed-file": "munge.seed",
    }
    # --force: it is right that no other user reaches the socket
    command = [munge, "--foreground", "--force", "--num-threads=10"]
    command += [f"--{option}={home / name}" for option, name in files.items()]
    log = home / "munged.log"
    started = stack.enter_context(server(command, log, made.environment))
    wait_until((home / "munge.socket").exists, "munged has a socket", 20, [started], [log])


def _start_daemon(stack: contextlib.ExitStack, made: Slurm, name: str, port: int, command: list[str]) -> None:
    # what is printed before the configuration is read is in no log
    printed = made.home / f"{name}.printed"
    started = stack.enter_context(server(command, printed, made.environment))
    wait_until(lambda: listens("127.0.0.1", port), f"{name} listens", 20, [started], [printed])


def _all_idle(made: Slurm) -> bool:
    states = made.run("sinfo", "--noheader", "--Node", "--format=%T").split()
    return states == ["idle"] * len(made.nodes)


def _end_jobs(made: Slurm) -> None:
    """End all jobs in Slurm's way, so that nothing of theirs needs to be killed by us."""
    running = [job for job, state in made.jobs().items() if state not in ENDED]
    for job in running:
        made.run("scancel", str(job))
    for job in running:
        made.wait_for(job)


@pytest.fixture(scope="module", name="slurm")
def slurm_of_a_module(lacking: Callable[[str], NoReturn]) -> Iterator[Slurm]:
    """A Slurm with two nodes of four CPUs, for the tests of a module."""
    with slurm(lacking) as made:
        yield made
