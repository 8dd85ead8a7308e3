"""Other people's zips are opened in a process of their own: what a bomb ends is that process."""

import io
import os
import struct
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.domain.assignment import Assignment
from grader.domain.errors import SubmissionError
from grader.domain.program_run import Ending
from grader.intake import intake, submissions
from grader.intake.archive_pieces import Caps
from grader.intake.unpacking import HERE, unpacked
from grader.parser.client import parsed_files
from grader.parser.client.parsed_files import ParserOpener
from grader.parser.messages import MODULE, VIEWS
from grader.protocol.frames import Frame, write_frame
from grader.sandbox.host_client import Host
from tests.warm_hosts import WarmHosts

CAPS = Caps(total_bytes=100_000_000, file_bytes=50_000_000)


@pytest.fixture(scope="module")
def parsers(warm_hosts: WarmHosts) -> Iterator[Host]:
    """The parsers' host."""
    with warm_hosts.shared(), Host.start(MODULE, [VIEWS], wrapped=True) as host:
        yield host


def bomb(path: Path, method: int) -> Path:
    """A zip whose one entry unpacks to 200 MB at once and says that it is a kilobyte."""
    with zipfile.ZipFile(path, "w", method) as archive, archive.open("bomb.py", "w") as file:
        for _ in range(200):
            file.write(bytes(1_000_000))
    raw = bytearray(path.read_bytes())
    struct.pack_into("<L", raw, raw.index(b"PK\x01\x02") + 24, 1_000)
    path.write_bytes(raw)
    return path


def test_what_comes_out_is_what_comes_out_here(parsers: Host, tmp_path: Path) -> None:
    """The same files, to the byte, and the same reasons; more than one message's worth."""
    path = tmp_path / "upload.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/b.pth", os.urandom(3_000_000) + bytes(500_000))
        archive.writestr("گروه/é.py", "x = 1")
        archive.writestr("empty.py", "")
        archive.writestr("../evil.py", "x")
        archive.writestr("bomb.py", bytes(2_000_000))
    here, apart = (
        unpacked(path, tmp_path / name, CAPS, opener)
        for name, opener in (("here", HERE), ("apart", ParserOpener(parsers)))
    )
    assert here.refused == apart.refused and len(here.refused) == 2
    for folder, result in (("here", here), ("apart", apart)):
        assert [file.relative_to(tmp_path / folder).name for file in result.files] == [
            *("b.pth", "é.py", "empty.py"),
        ]
    assert [file.read_bytes() for file in here.files] == [file.read_bytes() for file in apart.files]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"PK\x05\x06" * 9])
def test_what_cannot_be_opened_gets_the_same_sentence(parsers: Host, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "upload.zip").write_bytes(content)
    said = []
    for opener in (HERE, ParserOpener(parsers)):
        with pytest.raises(SubmissionError) as caught:
            unpacked(tmp_path / "upload.zip", tmp_path / "out", CAPS, opener)
        said.append(str(caught.value))
    assert said[0] == said[1] and said[0].startswith("upload.zip: ")


@pytest.mark.slow
@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_bomb_ends_its_own_process_only(
    parsers: Host, tmp_path: Path, method: int, assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The submission is refused with the limit's name; its neighbor's archive is opened as ever."""
    monkeypatch.setattr(parsed_files, "FILE_LIMITS", replace(parsed_files.FILE_LIMITS, memory_mb=100))
    folder = tmp_path / "class"
    folder.mkdir()
    bomb(folder / "400101204.zip", method)
    with zipfile.ZipFile(folder / "400101205.zip", "w") as archive:
        archive.writestr("400101205_Lab8_Homework.py", "x = 1")
    opener = ParserOpener(parsers)
    first, second = submissions(folder, assignment, tmp_path / "scratch", opener).submissions
    assert [file.name for file in second.files] == ["400101205_Lab8_Homework.py"]
    (refused,) = intake(first, assignment, opener).refused
    assert refused.name == "400101204.zip"
    assert "limit of 100 MB of memory" in refused.reason


@pytest.mark.slow
def test_an_archive_that_takes_too_long_names_the_time(
    parsers: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsed_files, "FILE_LIMITS", replace(parsed_files.FILE_LIMITS, cpu_seconds=1))
    monkeypatch.setattr("grader.protocol.deadlines.busy_factor", lambda: 1.0)  # a busy machine extends it
    path = tmp_path / "upload.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.bin", bytes(5_000_000))
    pieces = ParserOpener(parsers).contents(path, replace(CAPS, total_bytes=6_000_000))
    next(pieces)
    time.sleep(1.5)
    with pytest.raises(SubmissionError, match=r"upload\.zip: opening it failed \(no answer within 1 s"):
        list(pieces)


def test_a_checkpoint_is_judged_apart(parsers: Host, tmp_path: Path) -> None:
    """With the sentence that names the student's file, whatever it is called here."""
    path = tmp_path / "A_1_assignsubmission_file_w.pth"
    opener = ParserOpener(parsers)
    for content in (b"text", b"PK\x03\x04", b"\x80\x02."):
        path.write_bytes(content)
        fault = opener.checkpoint_fault(path, "w.pth")
        assert fault is not None and fault == HERE.checkpoint_fault(path, "w.pth")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", b"x")
    assert opener.checkpoint_fault(path, "w.pth") is None


class Scripted:
    """Parsers that say what a test makes them say."""

    def __init__(self, *frames: Frame) -> None:
        stream = io.BytesIO()
        for frame in frames:
            write_frame(stream, frame)
        self.reader = io.BytesIO(stream.getvalue())
        self.writer = io.BytesIO()

    def spawn(self, limits: Any, gpu: bool = False) -> Any:
        return self

    def kill(self) -> None:
        pass

    close = kill

    def ending(self) -> Ending:
        return Ending("it ended by itself with exit code 0")


@pytest.mark.parametrize(
    "frames",
    [
        (),
        (Frame({}),),
        (Frame({"begun": 5}),),
        (Frame({"begun": "a.py"}), Frame({"chunk": True})),
        (Frame({"begun": "../a.py"}),),
        (Frame({"chunk": True}, {"data": np.zeros(3, dtype=np.uint8)}),),
        (Frame({"ended": None}),),
        (Frame({"left": ["a"]}),),
        (Frame({"failed": "IndexError: string index out of range"}),),
        (Frame({"exhausted": True}),),
        (Frame({"read": [0, "1"]}),),
        (Frame({"begun": "a.py"}), Frame({"ended": ""})),
    ],
    ids=lambda frames: str([frame.document for frame in frames]),
)
def test_a_parser_that_was_taken_over_gets_a_refusal(frames: tuple[Frame, ...], tmp_path: Path) -> None:
    """Whatever it says, files appear in the folder only, and the sentence is ours."""
    (tmp_path / "upload.zip").write_bytes(b"x")
    with pytest.raises(SubmissionError, match=r"^upload\.zip: .* failed"):
        unpacked(tmp_path / "upload.zip", tmp_path / "in/side", CAPS, ParserOpener(Scripted(*frames)))
    assert not (tmp_path / "in/a.py").exists() and not (tmp_path / "a.py").exists()


@pytest.mark.parametrize(("offset", "count"), [(0, 2**40), (-5, 3), (2**40, 3), (0, -1)])
def test_a_parser_gets_bytes_of_the_archive_only(tmp_path: Path, offset: int, count: int) -> None:
    (tmp_path / "upload.zip").write_bytes(b"0123456789")
    parser = Scripted(Frame({"read": [offset, count]}), Frame({"done": True}))
    assert unpacked(tmp_path / "upload.zip", tmp_path / "out", CAPS, ParserOpener(parser)).files == ()
    assert len(parser.writer.getvalue()) < 400


def test_the_list_of_a_gradescope_export_is_read_apart(parsers: Host, tmp_path: Path) -> None:
    """The same rows, and for a list that would end the process the sentence of its file."""
    path = tmp_path / "submission_metadata.yml"
    path.write_text(
        "submission_1:\n  :submitters:\n  - :sid: '400101204'\n  :created_at: 2026-01-26 03:54:49 Z\n"
    )
    opener = ParserOpener(parsers)
    assert opener.metadata_rows(path) == HERE.metadata_rows(path)
    assert opener.metadata_rows(path) == [
        ["submission_1", ["400101204"], "2026-01-26T03:54:49+00:00", 0, [""]]
    ]
    for content in (b"[" * 100_000, b"a: [", b"\xff\xfe"):
        path.write_bytes(content)
        with pytest.raises(
            SubmissionError, match=r"submission_metadata\.yml.*is not the list of submissions"
        ):
            opener.metadata_rows(path)


@pytest.mark.slow
def test_a_list_that_uses_up_memory_ends_its_own_process_only(
    parsers: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsed_files, "FILE_LIMITS", replace(parsed_files.FILE_LIMITS, memory_mb=100))
    path = tmp_path / "submission_metadata.yml"
    path.write_bytes(b"a: [" + b"{x: 1}," * 1_000_000 + b"]\n")
    with pytest.raises(SubmissionError, match=r"submission_metadata\.yml: opening it failed"):
        ParserOpener(parsers).metadata_rows(path)


def test_times_of_modification_come_out_too(parsers: Host, tmp_path: Path) -> None:
    path = tmp_path / "upload.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a.py", (2026, 1, 30, 12, 0, 0)), "x")
        archive.writestr(zipfile.ZipInfo("b.py", (1980, 0, 0, 0, 0, 0)), "x")
    for name, opener in (("here", HERE), ("apart", ParserOpener(parsers))):
        first, second = unpacked(path, tmp_path / name, CAPS, opener).files
        assert first.stat().st_mtime == 1_769_774_400 and second.stat().st_mtime == 0
