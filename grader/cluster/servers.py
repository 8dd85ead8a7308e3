"""Dask's scheduler and worker as a run starts them: they listen for the run's certificate alone.

Dask's own also answer HTTP without a certificate, for pages that nobody needs here.
"""

import logging
from typing import Any

import dask.config
from distributed import Scheduler, Security, Worker

CONFIG = {
    # a worker ends its processes itself, and their memory is bounded by the sandbox
    "distributed.worker.memory.terminate": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.target": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.comm.timeouts.connect": "60s",
    # of the processes that nannies start
    "distributed.nanny.pre-spawn-environ.DASK_LOGGING__DISTRIBUTED": "critical",
    "distributed.admin.large-graph-warning-threshold": "1GB",  # a submission's files are in it
}


class QuietScheduler(Scheduler):
    """A scheduler without HTTP."""

    def start_http_server(self, *arguments: Any, **options: Any) -> None:
        """Start none."""


class QuietWorker(Worker):
    """A worker without HTTP."""

    def start_http_server(self, *arguments: Any, **options: Any) -> None:
        """Start none."""


def scheduler_spec(security: Security, host: str) -> dict[str, Any]:
    """A scheduler as a cluster of Dask starts it, at a free port.

    Args:
        host: The address at which it listens.
    """
    options = {
        "host": host,
        "port": 0,
        "protocol": "tls://",
        "security": security,
        "dashboard": False,
        "dashboard_address": None,
    }
    return {"cls": QuietScheduler, "options": options}


def configure() -> None:
    """Set Dask up for grading, and keep its messages from the terminal."""
    dask.config.set(CONFIG)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)


# the parts of Security that a node needs
_PARTS = ("tls_ca_file", "tls_client_key", "tls_client_cert", "tls_worker_key", "tls_worker_cert")


def credentials(security: Security) -> dict[str, str]:
    """What a node needs to join: certificates and keys as texts, which exist in memory only."""
    return {part: getattr(security, part) for part in _PARTS}


def joined_security(parts: dict[str, str]) -> Security:
    """The counterpart of `credentials`."""
    return Security(require_encryption=True, **parts)
