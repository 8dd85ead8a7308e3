"""Hosts and children for the tests of the sandbox."""

import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from grader.domain.errors import SandboxError
from grader.sandbox import Host, ProcessLimits

HERE = Path(__file__).parent
CHILD = "sandbox_child"


@pytest.fixture(scope="session")
def mark() -> str:
    """An argument of each host that these tests start, which those of tests beside these have not."""
    return f"of-the-tests-{os.getpid()}-"


@pytest.fixture(scope="session")
def started_pids() -> set[int]:
    """The hosts that these tests started, whether they still run or not."""
    return set()


@pytest.fixture(scope="session")
def start_host(mark: str, started_pids: set[int]) -> Callable[..., AbstractContextManager[Host]]:
    """Start a host of the tests' own module; environment variables steer it."""
    if sys.platform != "linux":
        pytest.skip("the layers need Linux")

    def started(**options: Any) -> AbstractContextManager[Host]:
        environment = {"PYTHONPATH": str(HERE), **options.pop("env", {})}
        host = Host.start(CHILD, [mark], env=environment, timeout=60, **options)
        started_pids.add(host._pid)
        return host

    return started


@pytest.fixture(scope="session")
def host(start_host: Callable[..., AbstractContextManager[Host]]) -> Iterator[Host]:
    """A host with every layer that this machine gives."""
    try:
        started = start_host()
    except SandboxError as error:
        pytest.skip(f"this machine gives too little isolation: {error}")
    with started as running:
        yield running


@pytest.fixture(scope="session")
def sabotaged() -> Callable[[str], ProcessLimits]:
    """Limits that tell the tests' own module which step of the lock-down to leave out."""
    spec = importlib.util.spec_from_file_location(CHILD, HERE / f"{CHILD}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda step: ProcessLimits(open_files=module.FIRST_SABOTAGE + module.SABOTAGES.index(step))


@pytest.fixture
def child(host: Host) -> Iterator[Any]:
    """A locked-down child that executes what it is sent."""
    with host.spawn(ProcessLimits(memory_mb=200, scratch_mb=8, file_mb=4, processes=8)) as running:
        yield running


@pytest.fixture(scope="module")
def long_lived(host: Host) -> Iterator[Any]:
    """Like `child`, for many tests that leave nothing in it."""
    with host.spawn(ProcessLimits(memory_mb=200, scratch_mb=8, file_mb=4, processes=8)) as running:
        yield running


@pytest.fixture(scope="session")
def answer() -> Callable[[Any, str], Any]:
    """The reply of a child to statements that may set `value`; None when it died."""

    def asked(running: Any, code: str) -> Any:
        running.writer.write(json.dumps({"code": code}).encode() + b"\n")
        running.writer.flush()
        reply = b""
        while not reply.endswith(b"\n"):
            part = running.reader.read(65_536)
            if not part:
                return None
            reply += part
        return json.loads(reply)

    return asked


@pytest.fixture(scope="session")
def processes_of() -> Callable[[Host], list[int]]:
    """The pids of a host's children."""

    def found(host: Host) -> list[int]:
        tasks = Path(f"/proc/{host._pid}/task/{host._pid}/children")
        return [int(pid) for pid in tasks.read_text().split()]

    return found


@pytest.fixture(scope="session")
def traces(traces_of: Callable[..., set[str]], mark: str, started_pids: set[int]) -> Callable[..., set[str]]:
    """What the sandboxes of these tests could leave on the machine, but for the spares of the hosts given."""

    def is_ours(pid: int) -> bool:
        return pid in started_pids or mark.encode() in _command_line(pid)

    return lambda *hosts: traces_of(is_ours, hosts)


@pytest.fixture(scope="session")
def left_behind(
    traces: Callable[[], set[str]], lasting: Callable[[Callable[[], set[str]], set[str]], set[str]]
) -> Callable[[set[str]], set[str]]:
    """What is new since `before` and stays."""
    return lambda before: lasting(traces, before)


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
