"""What a host and its client say to each other, what limits are called, and how much of a flood is kept."""

import io
import os
import socket
from collections.abc import Iterator

import pytest

from grader.domain.errors import EngineError
from grader.sandbox import child_processes
from grader.sandbox.child_processes import Exit, OutputTail
from grader.sandbox.process_limits import ProcessLimits


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The two ends of a connection."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other:
        one.settimeout(5)
        other.settimeout(5)
        yield one, other


def test_a_message_arrives_with_its_descriptors(ends: tuple[socket.socket, socket.socket], tmp_path) -> None:
    (tmp_path / "file").write_text("what it leads to")
    with (tmp_path / "file").open("rb") as file:
        child_processes.send_packet(ends[0], {"limits": {"memory_mb": 5}}, [file.fileno()])
    message, (descriptor,) = child_processes.received_packet(ends[1], 1)
    assert message == {"limits": {"memory_mb": 5}}
    assert not os.get_inheritable(descriptor), "no child inherits it"
    with os.fdopen(descriptor, "rb") as file:
        assert file.read() == b"what it leads to"


def test_a_closed_connection_is_no_message(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[0].close()
    assert child_processes.received_packet(ends[1]) == (None, [])


@pytest.mark.parametrize("packed", [b"{", b"\xff\xfe", b"[1, 2]", b'"text"', b"7"])
def test_what_is_no_message_is_an_error_of_ours(
    ends: tuple[socket.socket, socket.socket], packed: bytes
) -> None:
    ends[0].send(packed)
    with pytest.raises(EngineError, match="do not understand"):
        child_processes.received_packet(ends[1])


def test_a_message_that_would_be_cut_is_not_sent(ends: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(EngineError, match="is too long"):
        child_processes.send_packet(ends[0], {"text": "x" * child_processes.MOST_PACKET_BYTES})
    child_processes.send_packet(ends[0], {"text": "x" * 60_000})
    message, _ = child_processes.received_packet(ends[1])
    assert message is not None and len(message["text"]) == 60_000


@pytest.mark.parametrize(
    "document", [{"memory_mb": 0}, {"memory_mb": -1}, {"memory_mb": 1.5}, {"memory_mb": True}, {"memory": 1}]
)
def test_a_limit_that_is_none_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(EngineError, match=f"limit {next(iter(document))} = "):
        ProcessLimits.from_json(document)


def test_limits_are_read_as_they_were_written() -> None:
    assert ProcessLimits.from_json({"memory_mb": 7, "processes": 3}) == ProcessLimits(
        memory_mb=7, processes=3
    )


@pytest.mark.parametrize("limit", ["memory", "cpu", "file_size"])
def test_every_limit_that_ends_a_process_has_words_with_its_number(limit: str) -> None:
    words = ProcessLimits(memory_mb=11, cpu_seconds=22, file_mb=33).exceeded(limit)
    assert {"memory": "11 MB", "cpu": "22 s", "file_size": "33 MB"}[limit] in words


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (Exit(3), "it ended by itself with exit code 3"),
        (Exit(None, 11), "it was ended by signal 11"),
        (Exit(None, 9, exceeded="it used more than its limit"), "it used more than its limit"),
    ],
)
def test_an_end_is_told_as_what_it_was(end: Exit, words: str) -> None:
    assert end.words == words


@pytest.mark.parametrize("pieces", [1, 7, 1000])
def test_the_end_of_a_flood_is_kept_and_that_it_was_cut_is_known(pieces: int) -> None:
    flood = bytes(range(65, 91)) * 1000
    tail = OutputTail(io.BytesIO(flood) if pieces == 1 else Trickle(flood, pieces), 100)  # type: ignore[arg-type]
    tail.join(5)
    assert tail.text() == flood[-100:].decode() and tail.cut


def test_a_short_output_is_kept_as_a_whole() -> None:
    tail = OutputTail(io.BytesIO("é".encode() + b"\xff"), 100)
    tail.join(5)
    assert tail.text() == "é\N{REPLACEMENT CHARACTER}" and not tail.cut


class Trickle(io.BytesIO):
    """A stream that gives a few bytes at a time."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self._most = most

    def read(self, size: int | None = -1) -> bytes:
        """Some of what was asked for."""
        return super().read(self._most)
