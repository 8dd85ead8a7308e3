"""A Dask cluster that somebody else started, for tests: a scheduler and nodes over TLS on loopback."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from distributed import Security

from tests.loopback_servers import free_ports, listens, server, wait_until

FAKED = Path(__file__).parent / "cluster" / "faked_nodes.py"
_TLS = "DASK_DISTRIBUTED__COMM__TLS__"


@dataclass
class ForeignCluster:
    """The processes of a cluster.

    Attributes:
        url: Of its scheduler.
        folder: What its processes write lies there.
        temporary: The folder for the temporary files of all of them.
        env: With which a process joins it.
        scheduler: Its process.
        nodes: Name -> the node's own process, whose child examines.
    """

    url: str
    folder: Path
    temporary: Path
    env: Mapping[str, str]
    scheduler: "subprocess.Popen[bytes]"
    nodes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    _ends: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def start(self, name: str, *, places: int = 2, **said: Any) -> None:
        """Start a node.

        Args:
            said: What it is like: see `faked_nodes`.
        """
        command = [sys.executable, "-m", "distributed.cli.dask_worker", self.url, "--name", name]
        command += ["--nthreads", str(places), "--host", "127.0.0.1", "--no-dashboard"]
        command += ["--preload", str(FAKED), "--local-directory", str(self.folder / "dask")]
        env = {**self.env, "FAKED_NODE": json.dumps(said), "FAKED_LOG": str(self.folder / "examined")}
        self.nodes[name] = self._ends.enter_context(server(command, self.folder / f"{name}.log", env))

    def workers(self, name: str) -> list[psutil.Process]:
        """The processes of a node that examine: one, or none while it is started."""
        try:
            children = psutil.Process(self.nodes[name].pid).children()
            return [child for child in children if any("spawn_main" in word for word in child.cmdline())]
        except psutil.Error:
            return []

    def end(self, name: str) -> None:
        """Ask a node to end, and wait until it has."""
        self.nodes[name].terminate()
        self.nodes[name].wait(60)

    def kill(self, name: str) -> None:
        """End a node at once, with all of its processes."""
        doomed = [self.nodes[name].pid, *(worker.pid for worker in self.workers(name))]
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.nodes[name].wait()


@contextlib.contextmanager
def foreign_cluster(folder: Path) -> Iterator[ForeignCluster]:
    """A scheduler; its nodes are started by whoever asks for it, and end with it."""
    # not in `folder`: the path of a socket is at most 107 bytes long
    with tempfile.TemporaryDirectory(prefix="grader-test-", dir="/tmp") as name:
        temporary = Path(name)
        folder.mkdir(mode=0o700)
        security, parts = Security.temporary(), {}
        for role in ("client", "scheduler", "worker"):
            for part in ("key", "cert"):
                path = folder / f"{role}.{part}"
                path.touch(mode=0o600)
                path.write_text(getattr(security, f"tls_{role}_{part}"), encoding="utf-8")
                parts[f"{_TLS}{role.upper()}__{part.upper()}"] = str(path)
        (folder / "ca").write_text(security.tls_ca_file, encoding="utf-8")
        env = {**os.environ, **parts, f"{_TLS}CA_FILE": str(folder / "ca"), "TMPDIR": str(temporary)}
        [port] = free_ports(1)
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
        command += ["--protocol", "tls", "--port", str(port), "--no-dashboard", "--no-show"]
        log = folder / "scheduler.log"
        with server(command, log, env) as scheduler, contextlib.ExitStack() as ends:
            wait_until(lambda: listens("127.0.0.1", port), "the scheduler listens", 60, [scheduler], [log])
            yield ForeignCluster(f"tls://127.0.0.1:{port}", folder, temporary, env, scheduler, _ends=ends)
