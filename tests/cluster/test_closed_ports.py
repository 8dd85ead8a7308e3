"""Whoever scans the ports of a run, or comes without its certificate, gets no word."""

import contextlib
import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from distributed import Client, Security

from grader.cluster.cluster_start import ReachedCluster, reached
from grader.cluster.servers import configure
from grader.cluster.where import LocalNode

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[ReachedCluster]:
    """A run's own scheduler and one node."""
    with reached(LocalNode(), 1) as started:
        started.client.wait_for_workers(1, timeout=120)
        yield started


@pytest.fixture(scope="module")
def listening(cluster: ReachedCluster) -> list[tuple[str, int]]:
    """The addresses at which this process and its children listen."""
    own = psutil.Process(os.getpid())
    addresses = {
        (connection.laddr.ip, connection.laddr.port)
        for process in (own, *own.children(recursive=True))
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    return sorted(addresses)


def test_the_scheduler_the_nanny_and_the_worker_listen_on_loopback(
    listening: list[tuple[str, int]],
) -> None:
    assert len(listening) == 3
    assert {host for host, _ in listening} == {"127.0.0.1"}


def test_no_port_answers_without_tls(listening: list[tuple[str, int]]) -> None:
    for address in listening:
        for words in (b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\0" * 64):
            with socket.create_connection(address, timeout=5) as connection:
                with contextlib.suppress(OSError):  # it may have hung up by then
                    connection.sendall(words)
                    connection.shutdown(socket.SHUT_WR)
                said = said_by(connection)
            assert not said or is_alert(said), (address, said)


def is_alert(said: bytes) -> bool:
    """Whether it is what a TLS library says of what is no TLS (RFC 8446, section 6), and nothing else."""
    return len(said) == 7 and said[0] == 21 and said[1] == 3 and said[3:5] == b"\0\2"


def said_by(connection: socket.socket) -> bytes:
    """What the other side says until it hangs up."""
    try:
        return connection.recv(1000)
    except (ConnectionError, ssl.SSLError):
        return b""


@pytest.mark.parametrize("foreign", [False, True], ids=["no certificate", "another run's certificate"])
def test_no_port_answers_without_the_runs_certificate(
    listening: list[tuple[str, int]], foreign: bool, tmp_path: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if foreign:
        other = Security.temporary()
        (tmp_path / "certificate").write_text(other.tls_client_cert, encoding="utf-8")
        (tmp_path / "key").write_text(other.tls_client_key, encoding="utf-8")
        context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    for address in listening:
        said = b""
        try:
            with (
                socket.create_connection(address, timeout=5) as plain,
                context.wrap_socket(plain, server_hostname="dask-internal") as connection,
            ):
                said = said_by(connection)
        except (ConnectionError, ssl.SSLError):
            pass  # it hung up during the handshake
        assert said == b"", address


def test_a_client_of_another_run_cannot_join(cluster: ReachedCluster) -> None:
    configure()
    address = cluster.client.scheduler.address  # type: ignore[union-attr]
    with pytest.raises((OSError, TimeoutError)):
        Client(address, security=Security.temporary(), timeout=3, set_as_default=False)


def test_a_client_without_tls_is_refused(cluster: ReachedCluster) -> None:
    address = cluster.client.scheduler.address  # type: ignore[union-attr]
    with pytest.raises((OSError, TimeoutError)):
        Client(address.replace("tls://", "tcp://"), timeout=3, set_as_default=False)
