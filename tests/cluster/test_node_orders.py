"""Files travel as they are: names, contents, links; and what is too large travels by its size alone."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.cluster.node_orders import (
    ExamineOrder,
    SentFile,
    pack_folder,
    packed_files,
    unpack_folder,
    unpacked_submission,
)
from grader.domain.errors import EngineError
from grader.domain.submission import Submission
from grader.grading.examiner import SubmissionWork
from grader.grading.submission_draws import SubmissionDraws

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def order(submission: Submission, files: tuple[SentFile, ...]) -> ExamineOrder:
    """An order to examine a submission."""
    draws = SubmissionDraws({}, 0, "", {})
    return ExamineOrder("run", SubmissionWork(replace(submission, files=()), 1), files, draws, "", NOW)


def submission(*files: Path) -> Submission:
    return Submission("1", "any", files, "digest")


def test_files_arrive_as_they_were(tmp_path: Path) -> None:
    sent, arrived = tmp_path / "sent", tmp_path / "arrived"
    (sent / "package").mkdir(parents=True)
    arrived.mkdir()
    paths = (sent / "1_Übung.py", sent / "package" / "__init__.py", sent / "package" / "model.py")
    for number, path in enumerate(paths):
        path.write_bytes(b"x" * number)
    own = submission(*paths)
    there = unpacked_submission(order(own, packed_files(own, 1)), arrived)
    assert [path.relative_to(arrived) for path in there.files] == [path.relative_to(sent) for path in paths]
    assert [path.read_bytes() for path in there.files] == [b"", b"x", b"xx"]
    assert replace(there, files=()) == replace(own, files=())


def test_a_single_file_needs_no_folder(tmp_path: Path) -> None:
    (tmp_path / "homework.py").write_text("1", encoding="utf-8")
    [packed] = packed_files(submission(tmp_path / "homework.py"), 1)
    assert packed == SentFile("homework.py", 1, b"1")
    assert packed_files(submission(), 1) == ()


def test_what_is_larger_than_any_file_may_be_travels_by_its_size(tmp_path: Path) -> None:
    sent, arrived = tmp_path / "weights.pth", tmp_path / "arrived"
    arrived.mkdir()
    sent.write_bytes(b"w" * 2_000_001)
    own = submission(sent)
    packed = packed_files(own, 2)
    assert packed[0].content is None and packed_files(own, 3)[0].content is not None
    [there] = unpacked_submission(order(own, packed), arrived).files
    assert there.stat().st_size == 2_000_001 and there.stat().st_blocks * 512 < 100_000


def test_an_assignment_of_any_age_travels(tmp_path: Path) -> None:
    """Images of systems date all of their files at 1970, which no zip can hold."""
    sent, arrived = tmp_path / "sent", tmp_path / "arrived"
    (sent / "checks").mkdir(parents=True)
    (sent / "checks" / "test_public.py").write_text("1", encoding="utf-8")
    os.utime(sent / "checks" / "test_public.py", (1, 1))
    unpack_folder(pack_folder(sent), arrived)
    assert (arrived / "checks" / "test_public.py").read_text(encoding="utf-8") == "1"


def test_a_link_arrives_as_a_link_and_nothing_follows_it(tmp_path: Path) -> None:
    sent, arrived = tmp_path / "sent", tmp_path / "arrived"
    sent.mkdir()
    arrived.mkdir()
    (tmp_path / "private").write_text("of the coordinator", encoding="utf-8")
    (sent / "homework.py").symlink_to(tmp_path / "private")
    own = submission(sent / "homework.py")
    packed = packed_files(own, 1)
    assert packed[0].link and packed[0].content is None
    [there] = unpacked_submission(order(own, packed), arrived).files
    assert there.is_symlink() and not there.exists()


@pytest.mark.parametrize("name", ["../outside.py", "/etc/outside.py", "a/../../outside.py"])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    packed = (SentFile(name, 1, b"x"),)
    with pytest.raises(EngineError, match="leads out of its folder"):
        unpacked_submission(order(submission(), packed), tmp_path)


def test_an_assignments_folder_arrives_without_what_tools_left_in_it(tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    for name in ("assignment.toml", "checks/test_a.py", "checks/__pycache__/a.pyc", ".cache/b", ".hidden"):
        (sent / name).parent.mkdir(parents=True, exist_ok=True)
        (sent / name).write_text(name, encoding="utf-8")
    unpack_folder(pack_folder(sent), tmp_path / "arrived")
    arrived = {
        path.relative_to(tmp_path / "arrived").as_posix(): path.read_text(encoding="utf-8")
        for path in (tmp_path / "arrived").rglob("*")
        if path.is_file()
    }
    assert arrived == {"assignment.toml": "assignment.toml", "checks/test_a.py": "checks/test_a.py"}
