"""Nodes that are jobs of Slurm; dask-jobqueue writes their scripts.

A script holds the run's certificates. It goes to `sbatch` through its input, so that no file here has them;
Slurm keeps it where only the job's user and Slurm itself can read it.
"""

import asyncio
import contextlib
import logging
import os
import shlex
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from typing import Any

import dask.config
from distributed import Security
from pydantic import ValidationError

from grader.cluster.node_process import ORDER_VARIABLE, packed_order
from grader.cluster.node_supervision import LastingCluster
from grader.cluster.node_work import ENDS_VARIABLE
from grader.cluster.servers import QuietScheduler, configure, credentials, scheduler_spec
from grader.cluster.where import SlurmJobs, seconds_of_walltime
from grader.domain.errors import UsageError

_ON_INTERRUPT = signal.getsignal(signal.SIGINT)
from dask_jobqueue.slurm import SLURMCluster, SLURMJob  # noqa: E402

# with its import, dask-jobqueue has Ctrl-C end the program without a word, as if all had gone well
signal.signal(signal.SIGINT, _ON_INTERRUPT)

_LOOK_SECONDS = 10.0
_COMMAND_SECONDS = 60.0
_SAID = 300  # characters of what a command of Slurm says
# states of jobs that run, or will
_ALIVE = {"PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "REQUEUED", "RESIZING", "SIGNALING"}
# what other variables of the coordinator a job must not get, since Slurm keeps them with the job
_SECRET_WORDS = ("SECRET", "TOKEN", "PASSWORD", "CREDENTIAL")


class SlurmJobStates:
    """The states of this user's jobs, which are asked for once for all nodes."""

    def __init__(self) -> None:
        self._asking = asyncio.Lock()
        self._asked = float("-inf")
        self._states: dict[str, tuple[str, str]] = {}

    async def state(self, job: str, *, since: float) -> tuple[str, str]:
        """A job's state and what it waits for; Slurm forgets ended ones after minutes: they are `GONE`.

        Args:
            since: When it was submitted: what was told before knows nothing of it.

        Raises:
            RuntimeError: Slurm does not answer.
        """
        async with self._asking:
            now = time.monotonic()
            if self._asked < max(since, now - _LOOK_SECONDS / 2):
                told = await asked_slurm("squeue", "--noheader", "--states=all", "--me", "--format=%i|%T|%r")
                lines = (line.split("|", 2) for line in told.splitlines() if line.count("|") > 1)
                self._states = {number: (state, reason) for number, state, reason in lines}
                self._asked = now
        return self._states.get(job, ("GONE", ""))


class SlurmNode(SLURMJob):
    """A job that is a node."""

    def __init__(self, scheduler: str | None = None, name: str | None = None, **options: Any) -> None:
        """Nothing is submitted yet."""
        parts, self._jobs = options.pop("parts", None), options.pop("jobs", None) or SlurmJobStates()
        options["security"] = None
        super().__init__(scheduler=scheduler, name=name, **options)  # type: ignore[no-untyped-call]
        self.node_name, self.fate, self.advice, self.note = str(name), "", "", ""
        order = {"scheduler": scheduler, "credentials": parts, "name": str(name), "jobs": self.worker_cores}
        packed = packed_order(order) if parts is not None else "..."
        self._job_script_prologue = [*self._job_script_prologue, f"export {ORDER_VARIABLE}={packed}"]
        python = self._command_template.split(" -m ")[0]
        self._command_template = f"exec {python} -m grader.cluster.node_process"
        self._watching: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Submit it; if it cannot be, `fate` says why."""
        try:
            self.job_id = await asked_slurm("sbatch", "--parsable", given=self.job_script())  # type: ignore[no-untyped-call]
            self.job_id = self.job_id.partition(";")[0].strip()
        except RuntimeError as error:
            self.fate = f"{self.node_name}: cannot be submitted: {error}"
        else:
            self._watching = asyncio.ensure_future(self._watch())
        self.status = type(self.status).running

    async def _watch(self) -> None:
        """Look at the job until it has ended."""
        submitted = time.monotonic()
        while not self.fate:
            await asyncio.sleep(_LOOK_SECONDS)
            with contextlib.suppress(RuntimeError):  # a controller that does not answer says nothing of a job
                state, reason = await self._jobs.state(str(self.job_id), since=submitted)
                self.take_note(state, reason, time.monotonic() - submitted)

    def take_note(self, state: str, reason: str, waited: float) -> None:
        """Note what a state means.

        Args:
            state: As Slurm names it.
            reason: Why it waits, if it does.
            waited: Seconds since it was submitted.
        """
        self.note = ""
        if state not in _ALIVE:
            self.fate = f"{self.node_name}: Slurm's job {self.job_id} has ended ({state.lower()})."
            self.advice = "Its output says why: add extra=--output=PATH to the settings, and read it."
        elif state == "PENDING" and waited > 2 * _LOOK_SECONDS:
            self.note = f"{self.node_name}: Slurm's job {self.job_id} waits in the queue ({reason})."

    async def close(self) -> None:
        """Cancel it."""
        if self._watching is not None:
            self._watching.cancel()
        if self.job_id:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                await asked_slurm("scancel", str(self.job_id))
        self.status = type(self.status).closed


class SlurmCluster(LastingCluster, SLURMCluster):
    """A scheduler here, and jobs of Slurm."""

    job_cls: type[SLURMJob] = SlurmNode

    def _get_worker_security(self, security: Security | None) -> None:
        """Write no files: the certificates are in the scripts."""

    def _new_worker_name(self, worker_number: int) -> str:
        return f"slurm-{worker_number + 1}"


async def asked_slurm(*command: str, given: str = "") -> str:
    """What a command of Slurm prints.

    Args:
        given: Its input.

    Raises:
        RuntimeError: It cannot be started, or failed.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE if given else DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            env=harmless(os.environ),
            start_new_session=True,
        )
    except OSError as error:
        raise RuntimeError(f"{command[0]} cannot be started ({error}).") from None
    try:
        told, said = await asyncio.wait_for(process.communicate(given.encode() or None), _COMMAND_SECONDS)
    except TimeoutError:
        process.kill()
        raise RuntimeError(f"{command[0]} does not answer.") from None
    if process.returncode:
        raise RuntimeError(" ".join(said.decode(errors="replace").split())[:_SAID] or f"{command[0]} failed.")
    return told.decode(errors="replace")


def harmless(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without the grader's variables, among them the course's secret, and without tokens."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("GRADER_") and not any(word in name.upper() for word in _SECRET_WORDS)
    }


def slurm_script(where: SlurmJobs) -> str:
    """The script of a job, without the certificates of a run."""
    configure()
    job = SlurmNode("tls://COORDINATOR:PORT", "slurm-1", config_name="slurm", **_options(where))
    return str(job.job_script())  # type: ignore[no-untyped-call]


def slurm_cluster(security: Security, where: SlurmJobs, folder: str) -> SlurmCluster:
    """A scheduler here, and jobs, which are submitted.

    Args:
        folder: For temporary files, here.
    """
    interface = dask.config.get("jobqueue.slurm.interface", None)
    host = None if interface else dask.config.get("jobqueue.slurm.scheduler-options.host", None)
    scheduler = scheduler_spec(security, host or "")["options"]
    if interface:
        scheduler |= {"interface": interface, "host": None}
    cluster = SlurmCluster(
        security=security,
        scheduler_cls=QuietScheduler,
        scheduler_options=scheduler,
        silence_logs=logging.CRITICAL,
        local_directory=folder,
        parts=credentials(security),
        jobs=SlurmJobStates(),
        **_options(where),
    )
    cluster.scale(where.nodes)  # type: ignore[no-untyped-call]
    return cluster


def _options(where: SlurmJobs) -> dict[str, Any]:
    configured = dask.config.get("jobqueue.slurm", {})
    asked = _completed(where, configured)
    assert asked.walltime is not None
    seconds = seconds_of_walltime(asked.walltime)
    options: dict[str, Any] = {
        "walltime": asked.walltime,
        "cores": asked.cores,
        "memory": asked.memory,
        "processes": 1,
        "job_name": "grader",
        "job_extra_directives": [
            *([] if configured.get("log-directory") else ["--output=/dev/null"]),
            *(configured.get("job-extra-directives") or []),
            *([f"--gres=gpu:{where.gpus}"] if where.gpus else []),
            *shlex.split(where.extra),
        ],
        "job_script_prologue": [
            *(configured.get("job-script-prologue") or []),
            # Slurm tells its jobs when they end since version 23
            f"export {ENDS_VARIABLE}=${{SLURM_JOB_END_TIME:-$(( $(date +%s) + {seconds} ))}}",
        ],
        "python": asked.python,
    }
    if where.partition:
        options["queue"] = where.partition
    if where.account:
        options["account"] = where.account
    return options


def _completed(where: SlurmJobs, configured: Mapping[str, Any]) -> SlurmJobs:
    """The settings, with those of Dask's configuration, or the grader's own, in place of what is not given.

    Raises:
        UsageError: One of the configuration's cannot be used.
    """
    own = {"cores": 1, "memory": "8GB", "walltime": "01:00:00", "python": sys.executable}
    known = {name: configured[name] for name in own if configured.get(name)}
    try:
        return SlurmJobs.model_validate({**own, **known, **where.model_dump(exclude_none=True)})
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        raise UsageError(
            f"--cluster slurm: jobqueue.slurm.{name} in Dask's configuration cannot be {known.get(name)!r}. "
            "Write times and sizes in quotes, as in walltime: '4:00:00' and memory: '16GB'."
        ) from None
