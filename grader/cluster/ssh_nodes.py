"""Nodes that are started by SSH: one `ssh` per host, whose open input holds the node.

A node gets its order, with the run's certificates, through that input: neither an argument list nor a file
has them. When the input ends, whoever ended it, the node ends.
"""

import asyncio
import contextlib
import json
import logging
import os
import shlex
import subprocess
from asyncio.subprocess import DEVNULL, PIPE
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from distributed import Security
from distributed.deploy.spec import ProcessInterface

from grader.cluster.node_process import address_towards
from grader.cluster.node_supervision import LastingCluster
from grader.cluster.servers import credentials, scheduler_spec
from grader.cluster.where import SshHost, SshHosts
from grader.domain.errors import UsageError

SSH_VARIABLE = "GRADER_SSH"  # the command in place of `ssh`, with its options
# after the user's own options, of which the first counts: no question, and no long wait for what is gone
OPTIONS = (
    *("-o", "BatchMode=yes"),
    *("-o", "ConnectTimeout=30"),
    *("-o", "ServerAliveInterval=30"),
    *("-o", "ServerAliveCountMax=3"),
)
_CLOSE_SECONDS = 20.0
_FATE = 300  # characters of what ssh says


class SshNode(ProcessInterface):
    """A node's process on another machine, held by an `ssh` whose input stays open."""

    def __init__(self, scheduler: str, name: str, host: SshHost, parts: dict[str, str]) -> None:
        """Nothing is started yet."""
        super().__init__(scheduler=scheduler, name=name)  # type: ignore[no-untyped-call]
        self.node_name, self.fate, self.advice, self.note = host.name, "", "", ""
        self._port = urlsplit(scheduler).port
        self._host = host
        self._parts = parts
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, and give it its order; if it cannot be, `fate` says why."""
        try:
            own = await asyncio.to_thread(own_address, self._host.name)
        except OSError as error:
            self.fate = f"{self._host.name}: cannot be reached ({error})."
            self.advice = f"Try: ssh {self._host.name}"
        else:
            await self._start(f"tls://[{own}]:{self._port}" if ":" in own else f"tls://{own}:{self._port}")
        await super().start()  # type: ignore[no-untyped-call]

    async def _start(self, scheduler: str) -> None:
        order = {
            "scheduler": scheduler,
            "credentials": self._parts,
            "name": self._host.name,
            "jobs": self._host.jobs,
        }
        command = f"exec {shlex.quote(self._host.python)} -m grader.cluster.node_process"
        process = await asyncio.create_subprocess_exec(
            *ssh_command(),
            *OPTIONS,
            "--",
            self._host.name,
            command,
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=PIPE,
            start_new_session=True,  # Ctrl-C is for the coordinator, which then ends its nodes in order
        )
        assert process.stdin is not None
        with contextlib.suppress(ConnectionError):
            process.stdin.write(json.dumps(order).encode() + b"\n")
            await process.stdin.drain()
        self._process = process
        self._watching = asyncio.ensure_future(self._watch(process))

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        tail = b""
        while part := await process.stderr.read(4096):
            tail = (tail + part)[-4096:]
        code = await process.wait()
        if self.status.name == "running":
            self._note_end(code, tail.decode(errors="replace"))

    def _note_end(self, code: int, said: str) -> None:
        """Say why it ended. `ssh` gives the code of the process there, or 255 for its own failures."""
        words = " ".join(said.split())[-_FATE:] or f"exit code {code}"
        how = "its process ended"
        if code in (126, 127) or "No module named" in said:
            how = f"{self._host.python} there does not have the grader"
            self.advice = (
                "Install vit-grader[cluster] there, and name its Python in the list of hosts, as in "
                "python=/opt/grader/bin/python."
            )
        elif code == 255 or code < 0:
            how = "the connection failed or was lost"
            self.advice = f"Try: ssh {self._host.name}"
        self.fate = f"{self._host.name}: {how} ({words})."

    async def close(self) -> None:
        """End it: its input ends, which it takes as the word to go."""
        await super().close()  # type: ignore[no-untyped-call]
        process = self._process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _CLOSE_SECONDS)
        except TimeoutError:
            process.kill()


def ssh_command() -> list[str]:
    """The command that reaches another machine: `ssh`, or what `$GRADER_SSH` says."""
    return shlex.split(os.environ.get(SSH_VARIABLE, "")) or ["ssh"]


def ssh_cluster(security: Security, where: SshHosts) -> LastingCluster:
    """A scheduler here, and the nodes of these hosts.

    Raises:
        UsageError: There is no `ssh`.
    """
    node = partial(SshNode, parts=credentials(security))
    workers: dict[str, Any] = {host.name: {"cls": node, "options": {"host": host}} for host in where.hosts}
    return LastingCluster(  # type: ignore[no-untyped-call]
        workers=workers,
        scheduler=scheduler_spec(security, _listening_address(where)),
        security=security,
        silence_logs=logging.CRITICAL,
    )


def _listening_address(where: SshHosts) -> str:
    """This machine's address if all hosts see the same one; otherwise all of its addresses."""
    seen = set()
    for host in where.hosts:
        with contextlib.suppress(OSError):
            seen.add(own_address(host.name))
    return seen.pop() if len(seen) == 1 else "0.0.0.0"


def own_address(name: str) -> str:
    """This machine's address towards a host of SSH.

    Raises:
        OSError: The host is not known.
        UsageError: There is no `ssh`.
    """
    command = [*ssh_command(), "-G", "--", name]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(f"--cluster ssh: {command[0]} cannot be started ({error}).") from None
    settings = dict(line.partition(" ")[::2] for line in listed.stdout.splitlines())
    return address_towards(settings.get("hostname", name))
