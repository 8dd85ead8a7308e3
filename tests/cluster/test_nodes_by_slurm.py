"""A class graded by jobs of Slurm: one that Slurm ends loses nothing, and none is left in the end."""

import time
from pathlib import Path

import pytest

from tests.cluster.small_classes import (
    SECRET,
    SmallClass,
    all_points,
    grading,
    processes_that_know,
    small_class,
)
from tests.loopback_servers import wait_until
from tests.real_slurm import ENDED, Slurm

pytestmark = pytest.mark.service
WHERE = "slurm:nodes={nodes},cores=1,memory=1GB,walltime=20"


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> SmallClass:
    """Enough submissions that two jobs are at work until Slurm has ended one."""
    return small_class(tmp_path_factory.mktemp("class"), students=16, seconds=4)


def test_a_job_that_slurm_ends_at_its_time_limit_loses_nothing(
    slurm: Slurm, graded: SmallClass, tmp_path: Path
) -> None:
    with grading(graded, WHERE.format(nodes=2), tmp_path / "out", slurm.environment) as grades:
        grades.wait_for("slurm-1: ready", "slurm-2: ready")
        first, second = sorted(slurm.jobs())
        assert_private(slurm)
        slurm.end_at_limit(first)
        assert slurm.wait_for(first, seconds=90) == "TIMEOUT"
        wait_until(lambda: len(slurm.jobs()) == 3, "another job takes its place", 90)
        assert grades.wait() == 0, grades.said()
    assert all_points(grades.results()) == dict.fromkeys(graded.students, ("graded", 10))
    assert f"Slurm's job {first} has ended (timeout)." in grades.said()
    assert "process died" not in grades.said(), "a job that Slurm ends says nothing against a submission"
    wait_until(lambda: ended_jobs(slurm) == 3, "no job is left", 30)
    assert slurm.state(second) == "CANCELLED"


def assert_private(slurm: Slurm) -> None:
    """Nobody but its user reads a job's script, which holds the certificates; it lacks the secret."""
    scripts = [path for path in slurm.home.rglob("*script") if path.is_file()]
    assert len(scripts) >= 2 and not any(path.stat().st_mode & 0o077 for path in scripts)
    assert all("GRADER_NODE_ORDER=" in path.read_text(encoding="utf-8") for path in scripts)
    kept = b"".join(path.read_bytes() for path in slurm.home.rglob("*") if path.is_file())
    assert SECRET.encode() not in kept
    of_jobs = processes_that_know("SLURM_JOB_ID=")
    assert of_jobs and not processes_that_know(SECRET).keys() & of_jobs.keys()


def ended_jobs(slurm: Slurm) -> int:
    return sum(state in ENDED for state in slurm.jobs().values())


def test_an_interrupted_run_cancels_its_jobs(slurm: Slurm, graded: SmallClass, tmp_path: Path) -> None:
    before = set(slurm.jobs())
    with grading(graded, WHERE.format(nodes=1), tmp_path / "out", slurm.environment) as grades:
        wait_until(lambda: set(slurm.jobs()) > before, "a job is there", 120, [grades.process], [grades.log])
        [job] = set(slurm.jobs()) - before
        slurm.wait_for(job, "RUNNING")
        grades.interrupt()
        assert grades.wait(60) != 0
        assert slurm.wait_for(job) == "CANCELLED"


def test_what_slurm_refuses_is_told(slurm: Slurm, graded: SmallClass, tmp_path: Path) -> None:
    where = "slurm:nodes=1,partition=elsewhere"
    began = time.monotonic()
    with grading(graded, where, tmp_path / "out", slurm.environment) as grades:
        assert grades.wait() == 2, grades.said()
    assert "slurm-1: cannot be submitted: sbatch: error: invalid partition specified" in grades.said()
    assert time.monotonic() - began < 120
