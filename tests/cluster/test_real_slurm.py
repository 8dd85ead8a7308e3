"""The Slurm of tests runs jobs, ends them at their time limit, is private, and leaves nothing behind."""

import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

from tests.loopback_servers import kill, living, wait_until
from tests.real_slurm import SECONDS_TO_DIE, Slurm
from tests.real_slurm import slurm as running_slurm

pytestmark = pytest.mark.service
ROOT = Path(__file__).parents[2]


def test_jobs_run_on_both_nodes(slurm: Slurm) -> None:
    options = ("--time=1", "--exclusive")
    jobs = [slurm.submit("echo on $SLURMD_NODENAME; sleep 1", *options) for _ in slurm.nodes]
    assert [slurm.wait_for(job) for job in jobs] == ["COMPLETED"] * 2
    assert sorted(slurm.printed(job) for job in jobs) == ["on node1\n", "on node2\n"]


def test_a_job_that_fails_is_told_from_one_that_is_cancelled(slurm: Slurm) -> None:
    failing, waiting = slurm.submit("exit 3"), slurm.submit("sleep 300")
    assert slurm.wait_for(failing) == "FAILED"
    slurm.wait_for(waiting, "RUNNING")
    slurm.cancel(waiting)
    assert slurm.wait_for(waiting) == "CANCELLED"


def test_its_files_are_private_and_its_ports_on_loopback_only(slurm: Slurm) -> None:
    assert stat.S_IMODE(slurm.home.stat().st_mode) == 0o700
    listening = [
        connection.laddr.ip
        for pid in slurm.processes()
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening == ["127.0.0.1"] * (1 + len(slurm.nodes))


def test_nothing_is_left_of_it(lacking: Callable[[str], NoReturn]) -> None:
    """Also of a job that does not listen, and of a process that Slurm lets live: its parents have ended."""
    with running_slurm(lacking, nodes=1) as slurm:
        job = slurm.submit("trap '' TERM; (setsid sleep 3001 &); sleep 3002")
        slurm.wait_for(job, "RUNNING")
        wait_until(lambda: len(sleepers(slurm)) == 2, "the job sleeps", 10)
        slept = sleepers(slurm)
        daemons = slurm.processes()
        assert {"slurmctld", "slurmd", "munged"} <= {name_of(line) for line in daemons.values()}
    assert not slurm.home.exists()
    assert not slurm.processes()
    assert not living(lambda process: int(process.name) in slept)


def test_no_daemon_outlives_tests_that_are_killed(slurm: Slurm, tmp_path: Path) -> None:
    """The programs are there, as another Slurm runs."""
    program = (
        "import pathlib, time\n"
        "from tests.real_slurm import slurm\n"
        "with slurm(exit, nodes=1) as made:\n"
        f"    pathlib.Path({str(tmp_path / 'home')!r}).write_text(str(made.home))\n"
        "    time.sleep(300)\n"
    )
    tests = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    try:
        wait_until(lambda: written(tmp_path / "home") != "", "Slurm runs", 60, [tests])
    finally:
        tests.kill()
        tests.wait()
    left = Slurm(Path(written(tmp_path / "home")), {}, "", ())
    try:
        wait_until(lambda: not left.processes(), "all daemons have ended", 10)
    finally:
        kill(lambda process: int(process.name) in left.processes())
        shutil.rmtree(left.home)


def test_a_job_is_ended_at_its_time_limit(slurm: Slurm) -> None:
    """One that goes when it is asked to, and one that does not listen."""
    polite = slurm.submit("trap 'echo asked; exit' TERM; while :; do sleep 0.1; done", "--time=1")
    deaf = slurm.submit("trap '' TERM; while :; do sleep 0.1; done", "--time=1")
    for job in (polite, deaf):
        slurm.wait_for(job, "RUNNING")
    over = max(slurm.end_at_limit(job) for job in (polite, deaf))
    for job, seconds in ((polite, 4), (deaf, 4 + SECONDS_TO_DIE)):
        assert slurm.wait_for(job, seconds=70) == "TIMEOUT"
        assert 0 < time.time() - over < seconds + 3
    assert "asked\n" in slurm.printed(polite)
    assert not [line for line in slurm.processes().values() if "slurm_script" in line]


def sleepers(slurm: Slurm) -> set[int]:
    return {pid for pid, line in slurm.processes().items() if line.startswith("sleep 300")}


def written(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def name_of(command_line: str) -> str:
    return Path(command_line.split()[0]).name
