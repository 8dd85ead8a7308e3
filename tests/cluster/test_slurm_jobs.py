"""The script of a job, which has no secret where it is shown, and what is kept from Slurm."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import dask.config
import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.cluster.slurm_nodes import SlurmJobStates, SlurmNode, harmless, slurm_script
from grader.cluster.where import SlurmJobs, where
from grader.domain.errors import UsageError


@pytest.fixture(autouse=True)
def no_settings() -> Iterator[None]:
    """Whatever this machine's jobqueue.yaml says does not matter."""
    with dask.config.set({"jobqueue.slurm.log-directory": None, "jobqueue.slurm.job-script-prologue": []}):
        yield


def script(text: str) -> list[str]:
    place = where(text)
    assert isinstance(place, SlurmJobs)
    return slurm_script(place).splitlines()


def test_the_settings_are_in_the_script() -> None:
    lines = script(
        "slurm:nodes=5,cores=8,memory=16GB,walltime=4:00:00,partition=lab,account=ml,gpus=2,"
        "python=/opt/grader/bin/python,extra=--nice=100"
    )
    for line in ("--cpus-per-task=8", "--mem=15G", "-t 4:00:00", "-p lab", "-A ml", "--gres=gpu:2"):
        assert f"#SBATCH {line}" in lines
    assert lines.index("#SBATCH --output=/dev/null") < lines.index("#SBATCH --nice=100")
    assert lines[-1] == "exec /opt/grader/bin/python -m grader.cluster.node_process"
    [ends] = [line for line in lines if "GRADER_NODE_ENDS" in line]
    assert "14400" in ends


def test_it_is_a_script_that_a_shell_can_read() -> None:
    text = "\n".join(script("slurm:nodes=2"))
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0


def test_the_configuration_of_dask_gives_what_is_not_said() -> None:
    settings = {
        "jobqueue.slurm.cores": 4,
        "jobqueue.slurm.memory": "2GB",
        "jobqueue.slurm.walltime": "30",
        "jobqueue.slurm.queue": "night",
        "jobqueue.slurm.job-script-prologue": ["module load python"],
        "jobqueue.slurm.job-extra-directives": ["--qos=low"],
    }
    with dask.config.set(settings):
        lines = script("slurm:nodes=2,cores=2")
    for line in ("--cpus-per-task=2", "--mem=2G", "-t 30", "-p night", "--qos=low"):
        assert f"#SBATCH {line}" in lines
    assert "module load python" in lines
    assert any("$(date +%s) + 1800" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "value"), [("walltime", 14_400), ("walltime", "soon"), ("memory", 16), ("cores", "few")]
)
def test_a_configuration_of_dask_that_cannot_be_used_is_told(name: str, value: object) -> None:
    """YAML reads `4:00:00` without quotes as a number."""
    with (
        dask.config.set({f"jobqueue.slurm.{name}": value}),
        pytest.raises(UsageError, match=rf"jobqueue\.slurm\.{name} in Dask's .* cannot be {value!r}\. Write"),
    ):
        script("slurm:nodes=2")


def test_a_dry_run_shows_no_certificate_and_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    words = ["grade", "uploads", "--assignment", "a", "--out", "out", "--dry-run", "--cluster"]
    shown = CliRunner().invoke(cli, [*words, "slurm:nodes=2"])
    assert shown.exit_code == 0, shown.output
    assert "export GRADER_NODE_ORDER=...\n" in shown.output
    refused = CliRunner().invoke(cli, [*words, "local"])
    assert refused.exit_code == 2
    assert "--dry-run prints the job script of --cluster slurm" in refused.output


def test_a_job_s_own_order_is_in_its_script() -> None:
    parts = {"tls_ca_file": "-----BEGIN CERTIFICATE-----\n"}
    job = SlurmNode("tls://10.0.0.1:1", "slurm-1", parts=parts, cores=2, memory="1GB", python="python3")
    assert "GRADER_NODE_ORDER=..." not in job.job_script()


def test_ctrl_c_still_interrupts() -> None:
    """The import of dask-jobqueue changes that."""
    program = "import signal, grader.cluster.slurm_nodes; print(signal.getsignal(signal.SIGINT).__name__)"
    command = [
        sys.executable,
        "-c",
        f"import signal; signal.signal(2, signal.default_int_handler); {program}",
    ]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown == "default_int_handler\n"


def test_slurm_gets_no_secret_of_the_grader_and_no_token() -> None:
    kept = {"PATH": "/bin", "SLURM_CONF": "/etc/slurm.conf", "LANG": "C"}
    secrets = {"GRADER_SECRET": "1", "GRADER_GRADEBOOK": "2", "CANVAS_TOKEN": "3", "PGPASSWORD": "4"}
    assert harmless({**kept, **secrets}) == kept


@pytest.mark.parametrize(
    ("state", "waited", "fate", "note"),
    [
        ("PENDING", 5.0, "", ""),
        ("PENDING", 60.0, "", "slurm-1: Slurm's job 7 waits in the queue (Priority)."),
        ("RUNNING", 60.0, "", ""),
        ("TIMEOUT", 60.0, "slurm-1: Slurm's job 7 has ended (timeout).", ""),
        ("GONE", 60.0, "slurm-1: Slurm's job 7 has ended (gone).", ""),
    ],
)
def test_what_a_state_means(state: str, waited: float, fate: str, note: str) -> None:
    job = SlurmNode("tls://10.0.0.1:1", "slurm-1", cores=2, memory="1GB")
    job.job_id = "7"
    job.take_note(state, "Priority", waited)
    assert (job.fate, job.note) == (fate, note)


def test_the_states_are_asked_for_once_for_all_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    async def told(*command: str) -> str:
        asked.append(command)
        return "7|RUNNING|None\n8|PENDING|Resources\n"

    monkeypatch.setattr("grader.cluster.slurm_nodes.asked_slurm", told)

    async def states() -> list[tuple[str, str]]:
        jobs = SlurmJobStates()
        return [await jobs.state(number, since=0.0) for number in ("7", "8", "9")]

    assert asyncio.run(states()) == [("RUNNING", "None"), ("PENDING", "Resources"), ("GONE", "")]
    assert len(asked) == 1
