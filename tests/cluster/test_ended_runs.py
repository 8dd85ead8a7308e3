"""A node ends a run at the word of its coordinator, its successor, or in silence, and blames nobody."""

import contextlib
import errno
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader.cluster import node_work
from grader.cluster.cluster_grading import _alone
from grader.cluster.node_orders import ExamineOrder, NodeBusy, NodeUnready, RunOrder, pack_folder
from grader.course.assignment_file import read_assignment
from grader.domain.errors import SandboxError, UsageError
from grader.domain.evidence import Attestation, Evidence
from grader.domain.submission import Submission
from grader.grading import examiner
from grader.grading.run import EvidenceBuilder
from grader.grading.submission_draws import SubmissionDraws
from grader.sandbox import ProcessLimits
from tests.loopback_servers import wait_until

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ORDER = ExamineOrder(
    "run",
    examiner.SubmissionWork(Submission("1000", "tiny", (), "digest"), 1),
    (),
    SubmissionDraws({}, 0, "", {}),
    "",
    NOW,
)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files of a node without hosts, which has no run in the end."""

    @contextlib.contextmanager
    def hosts(*arguments: Any, **options: Any) -> Iterator[Any]:
        yield SimpleNamespace(isolation=Attestation("strict"))

    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(node_work, "running_hosts", hosts)
    monkeypatch.setattr(node_work, "_Reports", lambda run_id: SimpleNamespace(watch=None))
    yield folder
    node_work.release("run")


@pytest.fixture
def order(tiny_course: Path) -> Callable[..., RunOrder]:
    """`order(run_id, results)`: what a node gets before its first submission."""
    assignment = read_assignment(tiny_course / "reference" / "tiny")
    files = pack_folder(assignment.folder)

    def made(run_id: str = "run", results: str = "results") -> RunOrder:
        return RunOrder(run_id, results, assignment, files, "standard", False, "cpu")

    return made


def blaming(meanwhile: Callable[[], object]) -> Callable[..., EvidenceBuilder]:
    """In place of an examination during which something happens, so that the submission seems to fail."""

    def examined(run: Any, submission: Submission, **more: Any) -> EvidenceBuilder:
        meanwhile()
        return EvidenceBuilder(Evidence(submission.student_id, "tiny", submission.digest, NOW))

    return examined


def test_what_was_examined_while_the_run_ended_is_no_evidence(
    temporary: Path, order: Callable[..., RunOrder], monkeypatch: pytest.MonkeyPatch
) -> None:
    node_work.prepare(order())
    monkeypatch.setattr(examiner, "examined", blaming(lambda: None))
    assert node_work.examine(ORDER)[0].student_id == "1000"
    monkeypatch.setattr(examiner, "examined", blaming(lambda: node_work.release("run")))
    with pytest.raises(NodeUnready):
        node_work.examine(ORDER)
    assert not list(temporary.iterdir())
    with pytest.raises(NodeUnready):
        node_work.examine(ORDER)


def test_nor_if_it_was_made_ready_again_meanwhile(
    temporary: Path, order: Callable[..., RunOrder], monkeypatch: pytest.MonkeyPatch
) -> None:
    def again() -> None:
        node_work.release("run")
        node_work.prepare(order())

    node_work.prepare(order())
    monkeypatch.setattr(examiner, "examined", blaming(again))
    with pytest.raises(NodeUnready):
        node_work.examine(ORDER)


@pytest.mark.parametrize("what", ["parsers", "judges", "workers", "disk"])
def test_a_node_that_cannot_work_any_more_gets_ready_again(
    what: str, temporary: Path, order: Callable[..., RunOrder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would fail at once for one submission after the other, and take a whole class."""

    def spawn(limits: ProcessLimits, *, kind: str = "") -> Any:
        if what == kind:
            raise SandboxError("A host process does not answer.")
        return SimpleNamespace(close=lambda: None)

    def full(**_: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    hosts = {
        kind: SimpleNamespace(spawn=partial(spawn, kind=kind)) for kind in ("parsers", "judges", "workers")
    }
    failed = EvidenceBuilder(Evidence("1000", "tiny", "digest", NOW, status="engine_error"))
    monkeypatch.setattr(examiner, "examined", lambda *_, **__: failed)
    node_work.prepare(order())
    for name, host in hosts.items():
        setattr(node_work._required("run").run.hosts, name, host)
    monkeypatch.setattr(tempfile, "TemporaryFile", full if what == "disk" else tempfile.TemporaryFile)
    with pytest.raises(NodeUnready):
        node_work.examine(ORDER)
    assert not node_work.renew("run") and not list(temporary.iterdir())


def test_a_failure_for_one_submission_is_its_evidence(
    temporary: Path, order: Callable[..., RunOrder], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = SimpleNamespace(spawn=lambda limits: SimpleNamespace(close=lambda: None))
    failed = EvidenceBuilder(Evidence("1000", "tiny", "digest", NOW, status="engine_error"))
    monkeypatch.setattr(examiner, "examined", lambda *_, **__: failed)
    node_work.prepare(order())
    for name in ("parsers", "judges", "workers"):
        setattr(node_work._required("run").run.hosts, name, host)
    assert node_work.examine(ORDER)[0].status == "engine_error" and node_work.renew("run")


def test_another_run_waits_until_this_one_is_over(temporary: Path, order: Callable[..., RunOrder]) -> None:
    node_work.prepare(order())
    with pytest.raises(NodeBusy):
        node_work.prepare(order("another", "other results"))
    assert node_work.renew("run")
    node_work.release("run")
    node_work.prepare(order("another", "other results"))
    assert not node_work.renew("run")
    node_work.release("another")


def test_two_runs_on_clusters_are_never_at_work_for_the_same_results(tmp_path: Path) -> None:
    """Each would take the nodes that the other has just made ready, and neither would end."""
    with _alone(tmp_path / "results"):
        with (
            pytest.raises(UsageError, match="another grading on a cluster is at work"),
            _alone(tmp_path / "results"),
        ):
            pass
        with _alone(tmp_path / "other results"):
            pass
    with _alone(tmp_path / "results"):
        pass


def test_a_run_gives_way_to_the_next_one_for_the_same_results(
    temporary: Path, order: Callable[..., RunOrder]
) -> None:
    """Only one at a time writes them, so that the earlier one's coordinator is gone."""
    node_work.prepare(order("earlier"))
    node_work.give_way("other results", "run")
    node_work.give_way("results", "earlier")
    assert node_work.renew("earlier")
    node_work.give_way("results", "run")
    assert not node_work.renew("earlier") and not list(temporary.iterdir())
    node_work.prepare(order("earlier"))
    node_work.prepare(order())
    assert node_work.renew("run") and len(list(temporary.iterdir())) == 1


@pytest.mark.slow
def test_nothing_is_left_of_a_run_whose_coordinator_is_silent(
    temporary: Path, order: Callable[..., RunOrder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_work, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(node_work, "LEASE_SECONDS", 0.5)
    node_work.prepare(order())
    until = time.monotonic() + 1
    while time.monotonic() < until:
        assert node_work.renew("run")
        time.sleep(0.02)
    wait_until(lambda: not list(temporary.iterdir()), "the run has ended", 10)
    assert not node_work.renew("run")
