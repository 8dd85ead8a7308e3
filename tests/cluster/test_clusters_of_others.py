"""A class graded by a Dask cluster that somebody else started, as docs/cluster.md says; or not, and why."""

import contextlib
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import dask.config
import pytest
from distributed import Security

from grader.cluster.cluster_start import reached
from grader.cluster.where import Address
from grader.domain.errors import UsageError
from tests.cluster.small_classes import all_points, grading, small_class
from tests.loopback_servers import free_ports, listens, server, wait_until

DOCUMENT = Path(__file__).parents[2] / "docs" / "cluster.md"
TLS = "DASK_DISTRIBUTED__COMM__TLS__"


def block(language: str) -> str:
    """The only block of this kind in the document."""
    [text] = re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return str(text)


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables that the document's commands set."""
    shown = subprocess.run(
        ["bash", "-ec", f"{block('certificates')}\nenv -0"],
        cwd=tmp_path_factory.mktemp("certificates"),
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return dict(line.split("=", 1) for line in shown.split("\0") if line.startswith(TLS))


@pytest.fixture
def configured(certified: dict[str, str]) -> Iterator[None]:
    """This process has the certificates."""
    settings = {
        name.removeprefix("DASK_").replace("__", ".").replace("_", "-").lower(): value
        for name, value in certified.items()
    }
    with dask.config.set(settings):
        yield


@contextlib.contextmanager
def listener(security: Security | None) -> Iterator[int]:
    """A port at which somebody answers: with TLS and a word, or with words that are no TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            with contextlib.suppress(OSError):
                plain, _ = listening.accept()
                if security is None:
                    plain.sendall(b"220 mail.example.org\r\n")
                    plain.recv(100)
                else:
                    context = security.get_listen_args("scheduler")["ssl_context"]
                    with context.wrap_socket(plain, server_side=True) as connection:
                        connection.sendall(b"a word")
                plain.close()

        threading.Thread(target=answer, daemon=True).start()
        yield listening.getsockname()[1]


def complaint(port: int, scheme: str = "tls") -> str:
    """Why nothing is graded at an address."""
    with pytest.raises(UsageError) as refused, reached(Address(f"{scheme}://127.0.0.1:{port}"), 1):
        pass
    return str(refused.value)


def test_nobody_listens(configured: None) -> None:
    for scheme in ("tls", "tcp"):
        told = complaint(free_ports(1)[0], scheme)
        assert "nothing answers there ([Errno 111] Connection refused)" in told


def test_no_certificate() -> None:
    with listener(Security.temporary()) as port:
        assert "Dask's configuration names no certificates" in complaint(port)


def test_certificates_that_are_not_there(tmp_path: Path) -> None:
    missing = {
        "distributed.comm.tls.ca-file": str(tmp_path / "a"),
        "distributed.comm.tls.client.cert": str(tmp_path / "b"),
    }
    with dask.config.set(missing):
        assert "cannot be read" in complaint(free_ports(1)[0])


def test_certificates_of_another_authority(configured: None) -> None:
    with listener(Security.temporary()) as port:
        assert "the certificates do not fit" in complaint(port)


def test_what_speaks_no_tls(configured: None) -> None:
    with listener(None) as port:
        assert "what listens there speaks no TLS" in complaint(port)


@pytest.mark.service
def test_the_document_s_own_cluster_grades(certified: dict[str, str], tmp_path: Path) -> None:
    graded = small_class(tmp_path, students=2, seconds=0)
    [port] = free_ports(1)
    lines = [
        line.replace("SCHEDULER", "127.0.0.1").replace("8786", str(port)).replace("nthreads 4", "nthreads 2")
        for line in block("workers").splitlines()
    ]
    environment = {**os.environ, **certified}
    with contextlib.ExitStack() as stack:
        for number, line in enumerate(lines):
            command = [str(Path(sys.executable).parent / "dask"), *shlex.split(line)[1:]]
            command += ["--host", "127.0.0.1", *(["--local-directory", str(tmp_path)] if number else [])]
            log = tmp_path / f"{number}.log"
            started = stack.enter_context(server(command, log, environment))
            if not number:
                wait_until(lambda: listens("127.0.0.1", port), "it listens", 240, [started], [log])
        with grading(graded, f"tls://127.0.0.1:{port}", tmp_path / "out", certified) as grades:
            assert grades.wait() == 0, grades.said()
    assert all_points(grades.results()) == dict.fromkeys(graded.students, ("graded", 10))
