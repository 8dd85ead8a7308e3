"""Reads where a class is to be examined: the text of `--cluster`."""

import ipaddress
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grader.domain.errors import UsageError

LEAST_WALLTIME = 600  # seconds: a job needs a minute or two to get ready, and its end is kept free
KINDS = "local, tls://SCHEDULER:PORT, ssh:HOSTS.txt or slurm"


@dataclass(frozen=True)
class LocalNode:
    """One more process on this machine: to try out what a cluster does."""


@dataclass(frozen=True)
class Address:
    """A Dask cluster that somebody else started.

    Attributes:
        url: Of its scheduler.
    """

    url: str


@dataclass(frozen=True)
class SshHost:
    """A machine that is reached by SSH.

    Attributes:
        name: As `ssh` takes it: `user@host`, or a name of its configuration.
        jobs: Submissions at once; None: one per processor core.
        python: The Python there that has the grader.
    """

    name: str
    jobs: int | None = None
    python: str = "python3"


@dataclass(frozen=True)
class SshHosts:
    """Machines that are reached by SSH."""

    hosts: tuple[SshHost, ...]


class SlurmJobs(BaseModel):
    """Jobs of Slurm, each of which is a node. What is not given comes from Dask's `jobqueue.yaml`.

    Attributes:
        nodes: How many jobs.
        cores: Of each: submissions at once.
        memory: Of each, as in `16GB`.
        walltime: Of each, as in `4:00:00`.
        partition: Where they are submitted.
        account: On whose account.
        gpus: Of each.
        python: The Python there that has the grader; this one by default.
        extra: Further options of sbatch, separated by blanks.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    nodes: Annotated[int, Field(ge=1)] = 1
    cores: Annotated[int, Field(ge=1)] | None = None
    memory: Annotated[str, Field(pattern=r"^\d+(\.\d+)? ?[KkMmGgTt]i?[Bb]?$")] | None = None
    walltime: Annotated[str, Field(pattern=r"^(\d+-)?\d+(:\d\d){0,2}$")] | None = None
    partition: str | None = None
    account: str | None = None
    gpus: Annotated[int, Field(ge=0)] = 0
    python: str | None = None
    extra: str = ""


Where = LocalNode | Address | SshHosts | SlurmJobs


def where(text: str) -> Where:
    """Where `--cluster` says that a class is examined.

    Raises:
        UsageError: It says nothing that can be used.
    """
    kind, _, rest = text.partition(":")
    if text == "local":
        return LocalNode()
    if kind in ("tls", "tcp"):
        return _address(text)
    if kind == "ssh":
        return _ssh_hosts(Path(rest))
    if kind == "slurm":
        return _slurm_jobs(rest)
    raise UsageError(f"--cluster {text}: is no place to grade. Give {KINDS}.")


def _address(text: str) -> Address:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or port is None:
        raise UsageError(f"--cluster {text}: is no address. Write it like tls://scheduler.example.org:8786.")
    if parts.scheme == "tcp" and not _is_loopback(host):
        raise UsageError(
            f"--cluster {text}: without TLS anybody on the way could read submissions and change grades. "
            "Start the scheduler with TLS and give its tls:// address; tcp:// is for this machine alone."
        )
    return Address(text)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# --- ssh -------------------------------------------------------------------------------------------------


def _ssh_hosts(path: Path) -> SshHosts:
    try:
        lines = path.expanduser().read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--cluster ssh:{path}: cannot be read ({error}). It is a text file with a host on each line, as "
            "in 'user@lab1.example.org python=/opt/grader/bin/python'."
        ) from None
    hosts = [
        _ssh_host(line, f"{path}:{number}")
        for number, line in enumerate((line.partition("#")[0].strip() for line in lines), 1)
        if line
    ]
    if not hosts:
        raise UsageError(f"{path}: names no host. Write one on each line.")
    names = [host.name for host in hosts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{path}: {twice} is named twice. Write each host once, with jobs=NUMBER.")
    return SshHosts(tuple(hosts))


def _ssh_host(line: str, place: str) -> SshHost:
    try:
        name, *settings = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{place}: cannot be read ({error}). Write it like lab1 jobs=8.") from None
    values: dict[str, str] = {}
    for setting in settings:
        key, separator, value = setting.partition("=")
        if key not in ("python", "jobs") or not separator or not value:
            raise UsageError(
                f"{place}: '{setting}' is no setting of a host. Write python=PATH or jobs=NUMBER."
            )
        values[key] = value
    if name.startswith("-"):
        raise UsageError(
            f"{place}: '{name}' is no host. Write user@host, or a name of your SSH configuration."
        )
    jobs = values.get("jobs")
    if jobs is not None and not re.fullmatch("[1-9][0-9]{0,3}", jobs):
        raise UsageError(f"{place}: jobs={jobs} is no number of submissions at once. Write jobs=8.")
    # a path that is not absolute begins at the user's home there, where nothing expands the tilde
    python = values.get("python", "python3").removeprefix("~/")
    return SshHost(name, int(jobs) if jobs else None, python)


# --- slurm -----------------------------------------------------------------------------------------------


def _slurm_jobs(text: str) -> SlurmJobs:
    values: dict[str, str] = {}
    for setting in filter(None, text.split(",")):
        key, separator, value = setting.partition("=")
        if not separator or not value:
            raise UsageError(f"--cluster slurm: '{setting}' is no setting. Write it like nodes=5.")
        values[key.strip()] = value.strip()
    try:
        jobs = SlurmJobs.model_validate(values)
    except ValidationError as error:
        fault = error.errors()[0]
        name = str(fault["loc"][0]) if fault["loc"] else ""
        known = ", ".join(SlurmJobs.model_fields)
        what = "is not known" if fault["type"] == "extra_forbidden" else f"cannot be {values.get(name, '')}"
        raise UsageError(
            f"--cluster slurm: '{name}' {what}. The settings are {known}, as in "
            "slurm:nodes=5,cores=8,memory=16GB,walltime=4:00:00."
        ) from None
    try:
        shlex.split(jobs.extra)
    except ValueError as error:
        raise UsageError(f"--cluster slurm: 'extra' cannot be {jobs.extra} ({error}).") from None
    if jobs.walltime is not None and seconds_of_walltime(jobs.walltime) < LEAST_WALLTIME:
        raise UsageError(
            f"--cluster slurm: walltime={jobs.walltime} is less than {LEAST_WALLTIME // 60} minutes, in "
            "which a job hardly gets ready. Write it like 4:00:00; a number alone is minutes."
        )
    return jobs


def seconds_of_walltime(text: str) -> int:
    """The seconds of a walltime as Slurm reads it: `30` (minutes), `30:00`, `4:00:00`, `1-12:00:00`, ..."""
    days, dash, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if dash:
        parts += [0] * (3 - len(parts))
        hours, minutes, seconds = parts
    elif len(parts) == 1:
        hours, minutes, seconds = 0, parts[0], 0
    elif len(parts) == 2:
        hours, (minutes, seconds) = 0, parts
    else:
        hours, minutes, seconds = parts
    return ((int(days) if dash else 0) * 24 + hours) * 3600 + minutes * 60 + seconds
