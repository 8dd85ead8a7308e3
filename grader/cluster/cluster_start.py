"""Starts what a run needs to reach its nodes: a scheduler of its own and the nodes, or a client of another's.

Certificates are made for each run. They exist in memory only; a node gets them through SSH's input or in its
job script, which only its user can read.
"""

import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from distributed import Client, Nanny, Security, SpecCluster

from grader.cluster.node_supervision import LastingCluster, Supervision
from grader.cluster.own_folders import DASK, own_folder
from grader.cluster.servers import QuietWorker, configure, scheduler_spec
from grader.cluster.slurm_nodes import slurm_cluster
from grader.cluster.ssh_nodes import ssh_cluster
from grader.cluster.where import Address, LocalNode, SlurmJobs, SshHosts, Where
from grader.domain.errors import UsageError

_CONNECT_SECONDS = 30.0
_PROBE_SECONDS = 10.0
_CLOSE_SECONDS = 20.0


@dataclass(frozen=True)
class ReachedCluster:
    """A cluster that can be asked.

    Attributes:
        expected: How many nodes were asked for; None: others decide.
        waits_long: Whether nodes may come only after hours, from a queue.
        complaints: Gives, for each node that will not come, a sentence.
        notes: Gives, for each node of which people should know something else, a sentence.
        renew: Start nodes again that have ended.
    """

    client: Client
    expected: int | None
    waits_long: bool = False
    complaints: Callable[[], tuple[str, ...]] = tuple
    notes: Callable[[], tuple[str, ...]] = tuple
    renew: Callable[[], None] = field(default=lambda: None)


@contextlib.contextmanager
def reached(where: Where, jobs: int) -> Iterator[ReachedCluster]:
    """The cluster of a run, which ends with the context if it was started for it.

    Args:
        jobs: Submissions at once, on this machine.

    Raises:
        UsageError: It cannot be reached or started.
    """
    configure()
    if isinstance(where, Address):
        _require_answer(where.url)
        with _client(where.url, Security()) as client:
            yield ReachedCluster(client, None)
        return
    with contextlib.ExitStack() as stack:
        security = Security.temporary()
        folder = str(stack.enter_context(own_folder(DASK)))
        cluster: SpecCluster
        if isinstance(where, LocalNode):
            cluster = _local(security, jobs, folder)
        elif isinstance(where, SshHosts):
            cluster = ssh_cluster(security, where)
        else:
            cluster = slurm_cluster(security, where, folder)
        stack.callback(cluster.close, timeout=_CLOSE_SECONDS)
        client = stack.enter_context(_client(cluster.scheduler_address, security))
        if isinstance(where, LocalNode):
            yield ReachedCluster(client, 1)
            return
        watched = Supervision(cluster)
        yield ReachedCluster(
            client,
            len(cluster.worker_spec),
            isinstance(where, SlurmJobs),
            watched.complaints,
            watched.notes,
            watched.renew,
        )


@contextlib.contextmanager
def _client(address: str, security: Security) -> Iterator[Client]:
    try:
        client = Client(address, security=security, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, RuntimeError, TypeError, ValueError) as error:
        raise UsageError(
            f"--cluster {address}: what listens there does not answer as a scheduler of Dask "
            f"({error or type(error).__name__}). Check the address, and that both ends have the same version."
        ) from None
    try:
        yield client
    finally:
        client.close(timeout=_CLOSE_SECONDS)


def _require_answer(url: str) -> None:
    """Find out soon what Dask would find out late, and would say in other words.

    Raises:
        UsageError: Nobody listens there, or the certificates do not fit.
    """
    parts = urlsplit(url)
    try:
        context = Security().get_connection_args("client")["ssl_context"]
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--cluster {url}: the certificates that Dask's configuration names (distributed.comm.tls) "
            f"cannot be read ({error})."
        ) from None
    if parts.scheme == "tls" and context is None:
        raise UsageError(
            f"--cluster {url}: Dask's configuration names no certificates. Set ca-file, client.cert and "
            "client.key below distributed.comm.tls, as docs/cluster.md shows."
        )
    try:
        with socket.create_connection((parts.hostname, parts.port), timeout=_PROBE_SECONDS) as plain:
            if parts.scheme == "tls":
                with context.wrap_socket(plain) as connection:
                    # a scheduler speaks first, once it has accepted our certificate
                    if not connection.recv(1):
                        raise ConnectionError("it hung up")
    except ssl.SSLError as error:
        raise UsageError(
            f"--cluster {url}: the certificates do not fit ({error.reason or error}). This machine and the "
            "scheduler need certificates of the same authority; or what listens there speaks no TLS."
        ) from None
    except OSError as error:
        raise UsageError(
            f"--cluster {url}: nothing answers there ({error}). Check the address, and that the scheduler "
            "runs."
        ) from None


def _local(security: Security, jobs: int, folder: str) -> SpecCluster:
    options = {
        "nthreads": jobs,
        "host": "127.0.0.1",
        "protocol": "tls://",
        "security": security,
        "worker_class": QuietWorker,
        "dashboard": False,
        "memory_limit": 0,
        "local_directory": folder,
    }
    return LastingCluster(  # type: ignore[no-untyped-call]
        workers={"local": {"cls": Nanny, "options": options}},
        scheduler=scheduler_spec(security, "127.0.0.1"),
        security=security,
        silence_logs=logging.CRITICAL,
    )
