"""A package that trains on a few examples: what it holds and tells; unasked, it decides nothing."""

import io
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from packages.conftest import SECRET
from packages.schemas import require_valid
from packages.test_golden_submissions import in_package, items_of, points_by_command

from grader.cli import cli
from grader.course.locate import located_course
from grader.course.reference_solution import solved_source
from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.evidence import Checkpoint, Evidence, Training, TrainingOutcome
from grader.grading.run import Run
from grader.kit.splits import Examples, Splits
from grader.packages import graded_submission, package_archives, package_data, reduced_run
from grader.packages.gradescope_results import gradescope_document
from grader.packages.package_contents import assignment_key
from grader.packages.package_data import FILE, ReducedRequest, packed_data, read_packed_data
from grader.packages.package_settings import PackageSettings, ReducedRun, read_settings
from grader.packages.prairielearn_results import prairielearn_document
from grader.packages.reduced_run import (
    NOT_FINISHED,
    Runs,
    left_open,
    reduced_evidence,
    reduced_outcome,
    unknown,
)
from grader.scoring import score

BY_HAND = Path(__file__).parents[1] / "courses" / "by_hand"
ID = "numpy_network"
STUDENT = "400101204"
FEW = ("--reduced", "synthetic", "--per-class", "300")


# --- what the package holds ------------------------------------------------------------------------------


def test_it_holds_a_few_examples_and_says_so(made: Callable, tmp_path: Path) -> None:
    package = made("gradescope", *FEW, assignment=ID, course=BY_HAND)
    assert package.path.stat().st_size < 5_000_000
    assert "trains on 300 and measures on 129 examples" in package.said
    assert "Their hidden labels are in the zip." in package.said and "(20 points): measured" in package.said
    package.unpack(tmp_path)
    held = read_packed_data(tmp_path)
    assert isinstance(held, Examples)
    assert held.train_inputs.shape == (300, 2) and len(held.test_targets) == 129
    assert read_settings(tmp_path).reduced == ReducedRun(300, 129)
    decides = made("gradescope", *FEW, "--reduced-decides", assignment=ID, course=BY_HAND)
    assert "Open in it" not in decides.said


def test_without_being_asked_it_trains_nothing_and_holds_no_labels(made: Callable, tmp_path: Path) -> None:
    package = made("gradescope", assignment=ID, course=BY_HAND)
    assert not [name for name in package.files() if name.endswith(".npz")]
    assert "hidden labels" not in package.said
    package.unpack(tmp_path)
    assert read_settings(tmp_path).reduced is None
    with pytest.raises(UsageError, match="is not the data of a reduced run"):
        read_packed_data(tmp_path)


def test_its_examples_are_drawn_with_its_own_key(made: Callable, tmp_path: Path) -> None:
    """Those of `grader grade` come from the secret."""
    made("gradescope", *FEW, assignment=ID, course=BY_HAND).unpack(tmp_path)
    course = located_course(BY_HAND, environment={})
    assignment = course.assignment(ID)
    request = ReducedRequest("synthetic", 300)
    drawn = {}
    for key in (SECRET, assignment_key(SECRET, ID)):
        content = packed_data(replace(course, secret=key), assignment, request, 0).content
        with np.load(io.BytesIO(content)) as file:
            drawn[key] = file["test_inputs"]
    held = read_packed_data(tmp_path)
    assert np.array_equal(held.test_inputs, drawn[assignment_key(SECRET, ID)])
    assert not np.isin(held.test_inputs, drawn[SECRET]).any()


@pytest.fixture
def few_images(monkeypatch: pytest.MonkeyPatch, assignment: Assignment) -> Splits:
    """A data set of 120 images in place of the course's."""
    labels = np.repeat(np.arange(6), 20)
    images = np.random.default_rng(0).integers(0, 256, (120, 8, 8), dtype=np.uint8)
    names = tuple(f"{number}.png" for number in range(120))
    withheld = np.arange(120) % 2 == 0
    classes = assignment.required_data().classes
    splits = Splits("few", classes, images, labels, names, images[::-1], labels[::-1], names, withheld)

    class Hidden:
        def of(self, attempt: int) -> Splits:
            return splits

    monkeypatch.setattr(package_data, "hidden_data", lambda *_: Hidden())
    return splits


@pytest.mark.parametrize(
    ("asked", "room", "train"), [(7, 0, 7), (None, 10_000_000, 20), (None, 3000, 4), (None, 0, 1)]
)
def test_each_class_has_as_many_images(
    few_images: Splits, assignment: Assignment, tmp_path: Path, asked: int | None, room: int, train: int
) -> None:
    course = located_course(assignment.folder.parents[1], environment={})
    packed = packed_data(course, assignment, ReducedRequest("synthetic", asked), room)
    (tmp_path / FILE).write_bytes(packed.content)
    held = read_packed_data(tmp_path)
    assert isinstance(held, Splits) and held.classes == few_images.classes
    assert np.bincount(held.train_labels).tolist() == [train] * 6 and packed.train == 6 * train
    assert len(set(np.bincount(held.test_labels).tolist())) == 1 and len(held.test_labels) == packed.test
    rows = [few_images.test_names.index(name) for name in held.test_names]
    assert np.array_equal(held.test_images, few_images.test_images[rows])
    assert np.array_equal(held.withheld, few_images.withheld[rows])
    if asked is None and room > 1000:
        assert held.train_images.nbytes + held.test_images.nbytes <= room


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["package", "gradescope", *arguments], env={"GRADER_SECRET": SECRET})
    return done.exit_code, " ".join(done.output.split())


def test_a_zip_that_is_too_large_says_by_how_much_and_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(package_archives, "MOST_BYTES", 1_000_000)
    options = ("--assignment", ID, "--course", str(BY_HAND), "--out", str(tmp_path / "a.zip"), *FEW)
    code, said = run(*options)
    above = ((tmp_path / "a.zip").stat().st_size - 1_000_000) / 1e6
    assert code == 0 and f"it is {above:.1f} MB above 1 MB" in said and "MB of the reduced run" in said


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--assignment", ID, "--per-class", "5"), "--per-class: there is no reduced run. Name its data"),
        (("--assignment", ID, "--reduced-decides"), "--reduced-decides: there is no reduced run"),
        (("--assignment", ID, "--reduced", "synthetic", "--per-class", "0"), "--per-class"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(options: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    code, said = run(*options, "--course", str(BY_HAND), "--out", str(tmp_path / "a.zip"))
    assert code == 2 and sentence in said and "Traceback" not in said and not list(tmp_path.iterdir())


def test_what_trains_nothing_cannot_be_reduced(tmp_path: Path) -> None:
    letters = BY_HAND.parent / "letters"
    options = ("--course", str(letters), "--out", str(tmp_path / "a.zip"), "--reduced", "synthetic")
    code, said = run("--assignment", "letter_counts", *options)
    assert code == 2 and "letter_counts has no data and trains nothing" in said


# --- what it tells ---------------------------------------------------------------------------------------


@pytest.fixture
def trained(assignment: Assignment) -> Callable[..., Evidence]:
    """Evidence with a training."""

    def evidence(outcome: TrainingOutcome, **values: object) -> Evidence:
        training = Training(outcome, **values)
        now = datetime(2026, 5, 1, tzinfo=UTC)
        return Evidence("1", assignment.id, "0" * 64, now, code_file="a.py", training=training)

    return evidence


@pytest.mark.parametrize(
    ("outcome", "values", "runs", "words"),
    [
        ("completed", {"accuracy": 0.5}, Runs.YES, "ended without an error on 60 examples."),
        (
            "failed",
            {"reason": "It raised ValueError.", "where": "a.py:4"},
            Runs.NO,
            "fails (a.py:4). It raised",
        ),
        ("diverged", {"reason": "Not finite."}, Runs.NO, "The training diverges. Not finite."),
        ("budget", {"reason": "A person decides."}, Runs.UNKNOWN, "A limit of this run ended the training"),
        (
            "unknown",
            {"reason": "No loop."},
            Runs.UNKNOWN,
            "It is not known whether the training runs. No loop.",
        ),
    ],
)
def test_a_student_reads_whether_the_training_runs(
    assignment: Assignment, trained: Callable, outcome: str, values: dict, runs: Runs, words: str
) -> None:
    told = reduced_outcome(assignment, trained(TrainingOutcome(outcome), **values), ReducedRun(60, 24))
    assert told.runs is runs and words in told.sentences[0]
    assert ("On 24 others, which it has not seen, it reaches 50 %" in str(told)) == (outcome == "completed")


def test_weights_that_do_not_fit_are_told(assignment: Assignment, trained: Callable) -> None:
    evidence = replace(
        trained(TrainingOutcome.COMPLETED, accuracy=0.5), checkpoint=Checkpoint("mismatch", "Other.")
    )
    assert reduced_outcome(assignment, evidence, ReducedRun(60, 24)).sentences[-1] == "Other."


def test_all_see_at_once_whether_it_runs_and_the_item_stays_open(
    assignment: Assignment, trained: Callable
) -> None:
    checked = replace(trained(TrainingOutcome.NOT_RUN), not_run=("training",))
    told = reduced_outcome(assignment, trained(TrainingOutcome.COMPLETED, accuracy=0.5), ReducedRun(60, 24))
    points = left_open(assignment, score(assignment, checked))
    document = gradescope_document(assignment, checked, points, seconds=1.0, reduced=told)
    require_valid("gradescope", document)
    [entry] = [test for test in document["tests"] if "reduced_run" in test.get("tags", ())]
    assert entry["visibility"] == "visible" and entry["status"] == "passed" and "score" not in entry
    assert document["extra_data"]["reduced_run"] == "yes"
    [line] = [test for test in document["tests"] if test.get("tags") == ["training"]]
    assert "score" not in line and "a training on all examples" in line["output"]
    other = prairielearn_document(assignment, checked, points, told)
    require_valid("prairielearn", other)
    assert "it reaches 50 %" in str(other["tests"])
    failed = gradescope_document(assignment, checked, points, seconds=1.0, reduced=unknown(NOT_FINISHED))
    assert "status" not in next(test for test in failed["tests"] if "reduced_run" in test.get("tags", ()))


def test_where_it_decides_what_was_measured_waits_until_grades_are_published(
    assignment: Assignment, trained: Callable
) -> None:
    """Every attempt is measured on the same hidden examples: told at once, they could be tried out."""
    evidence, reduced = trained(TrainingOutcome.COMPLETED, accuracy=0.7), ReducedRun(60, 24, decides=True)
    told = reduced_outcome(assignment, evidence, reduced)
    points = score(assignment, evidence)
    document = gradescope_document(assignment, evidence, points, seconds=1.0, reduced=told)
    [line] = [test for test in document["tests"] if test.get("tags") == ["training"]]
    assert line["score"] == 12.0 and line["visibility"] == "after_published"
    at_once = (
        str([test for test in document["tests"] if test["visibility"] == "visible"]) + document["output"]
    )
    assert "70 %" not in at_once and "12 of" not in at_once and "The training runs" in at_once


@pytest.mark.parametrize(("decides", "trainings"), [(False, 1), (True, 3)])
def test_a_training_has_what_is_left_of_the_package(
    assignment: Assignment,
    trained: Callable,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    decides: bool,
    trainings: int,
) -> None:
    """Near the threshold three seeds are trained, if points depend on it; each has a third of the time."""
    seen: list[Assignment] = []
    monkeypatch.setattr(reduced_run, "trained_on", lambda run, *_: seen.append(run.assignment))
    monkeypatch.setattr(reduced_run, "read_packed_data", lambda _: None)
    settings = PackageSettings("gradescope", "any", 10, 3000, reduced=ReducedRun(60, 24, decides))
    rules = replace(assignment, limits=replace(assignment.limits, training_seconds=1000.0))
    run = Run(located_course(BY_HAND, environment={}), rules, None, None)

    def evidence(seconds: float) -> Evidence | None:
        checked = trained(TrainingOutcome.NOT_RUN)
        return reduced_evidence(run, None, checked, settings, tmp_path, time.monotonic() + seconds)

    evidence(300)
    assert seen[0].limits.training_seconds == pytest.approx(240 / trainings, abs=1)
    assert seen[0].limits.memory_mb == settings.worker_memory_mb * 0.75 < assignment.limits.memory_mb
    assert any(item.threshold for item in seen[0].rubric) == decides and seen[0].study is None
    evidence(100_000)
    assert seen[1].limits.training_seconds == 1000.0
    assert evidence(5) is None and len(seen) == 2


# --- what it finds ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def solution() -> str:
    """The solution of `numpy_network`."""
    path = BY_HAND / "reference" / ID / "solution.py"
    return solved_source(path.read_text("utf-8"), path.name, {})


@pytest.fixture
def graded(made: Callable, on_warm_hosts: None, tmp_path: Path) -> Callable[..., dict]:
    """What a package makes of a source."""

    def document(source: str, *options: str) -> dict:
        made("gradescope", *options, assignment=ID, course=BY_HAND).unpack(tmp_path / "source")
        handed_in = tmp_path / "upload"
        handed_in.mkdir(exist_ok=True)
        (handed_in / f"{STUDENT}_Network.py").write_text(source, "utf-8")
        return in_package(tmp_path, handed_in, tmp_path)

    return document


def told_in(document: dict) -> str:
    return next(test["output"] for test in document["tests"] if "reduced_run" in test.get("tags", ()))


@pytest.mark.slow
def test_it_says_that_the_training_runs_and_each_decided_item_is_as_by_grader_grade(
    graded: Callable, grader: Callable[..., Result], solution: str, tmp_path: Path
) -> None:
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / f"{STUDENT}_Network.py").write_text(solution, "utf-8")
    words = ("grade", tmp_path / "class", "--assignment", ID, "--data", "synthetic", "--jobs", 1)
    done = grader("--course", BY_HAND, *words, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    by_command = points_by_command(tmp_path / "out")[STUDENT]
    open_here = graded(solution, *FEW)
    assert items_of(open_here) == {**by_command, "measured": None}
    assert "The training runs" in told_in(open_here) and "which it has not seen, it reaches" in told_in(
        open_here
    )
    # with as many examples as `grader grade` has, it may decide
    decided = graded(solution, "--reduced", "synthetic", "--per-class", "1500", "--reduced-decides")
    assert items_of(decided) == by_command and by_command["measured"] == 20


@pytest.mark.slow
def test_a_training_that_fails_is_told_with_its_line_and_costs_nothing(
    graded: Callable, solution: str
) -> None:
    broken = solution + "\n\ndef fit(network, inputs, targets, **further):\n    raise ValueError('not yet')\n"
    document = graded(broken, *FEW)
    line = broken.splitlines().index("    raise ValueError('not yet')") + 1
    assert "The training fails" in told_in(document) and f"{STUDENT}_Network.py:{line}" in told_in(document)
    assert items_of(document)["measured"] is None


@pytest.mark.slow
def test_a_training_that_takes_too_much_is_ended_and_costs_nothing(graded: Callable, solution: str) -> None:
    too_large = "held = np.ones(10**9 if len(inputs) == 300 else 1)"
    document = graded(f"{solution}\n\ndef fit(network, inputs, targets, **further):\n    {too_large}\n", *FEW)
    assert "A limit of this run ended the training" in told_in(document)
    assert items_of(document)["layers"] == 40 and items_of(document)["measured"] is None


@pytest.mark.slow
def test_what_was_checked_is_there_before_it_is_trained(
    graded: Callable, solution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever ends the training, the process included: so the parent finds it."""

    class Ended(BaseException):
        """The process is no more."""

    def end(*_: object) -> None:
        raise Ended

    monkeypatch.setattr(graded_submission, "reduced_evidence", end)
    written: list[dict] = []
    monkeypatch.setattr(graded_submission, "packed", lambda document: written.append(document) or b"")
    with pytest.raises(Ended):
        graded(solution, *FEW)
    [document] = written
    require_valid("gradescope", document)
    assert items_of(document)["layers"] == 40 and "did not finish" in told_in(document)


@pytest.mark.slow
def test_a_failure_of_the_grader_costs_nothing_and_is_told(
    graded: Callable, solution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graded_submission, "reduced_evidence", lambda *_: 1 / 0)
    document = graded(solution, *FEW)
    assert items_of(document)["layers"] == 40 and "not your fault" in told_in(document)
