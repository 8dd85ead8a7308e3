"""Under coverage.py (`make coverage`) the lines of processes that are not locked down count as well.

coverage.py starts by itself in a Python that has its variable. Hosts start with a scrubbed environment, so
it is put there here, for those whose children may write files; and a child is given the time to write what it
has counted, which it does at its end.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from grader.sandbox.host_client import Host, HostChild

VARIABLE = "COVERAGE_PROCESS_CONFIG"
COUNTED = ("grader.judge", "unconfined_worker", "warm_python")
SECONDS_TO_WRITE = 10.0


@pytest.fixture(scope="session", autouse=True)
def _processes_are_counted() -> Iterator[None]:
    if VARIABLE not in os.environ:
        yield
        return
    start, close = Host._started, HostChild.close
    counted: set[str] = set()

    def started(asked: Any, *more: Any) -> Host:
        if asked.module in COUNTED:
            asked = replace(asked, env={**asked.env, VARIABLE: os.environ[VARIABLE]})
        host = start(asked, *more)
        if asked.module in COUNTED:
            counted.add(host.address)
        return host

    def closed(child: HostChild) -> None:
        with contextlib.suppress(OSError):
            if child._connection.getpeername() in counted:
                child.writer.close()
                child.wait(SECONDS_TO_WRITE)
        close(child)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Host, "_started", started)
        patch.setattr(HostChild, "close", closed)
        yield
