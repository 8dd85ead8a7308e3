"""Evidence comes back exactly: each field, each type, every number."""

import math
import pickle
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.domain.analyzed_program import Claim, ForbiddenUse, NearName, Note, Omission, Place, TunedValue
from grader.domain.errors import EngineError
from grader.domain.evidence import (
    AttentionMap,
    Attestation,
    Blame,
    Checkpoint,
    Epoch,
    Evidence,
    Figure,
    Finding,
    FindingKind,
    LayerSummary,
    Prediction,
    RocCurve,
    Status,
    TrainedModel,
    Training,
    TrainingOutcome,
    UnfinishedRun,
)
from grader.domain.measure import StudyAgain, StudyRow
from grader.domain.program_run import Plan, Pried, Prying, Rehearsal, Stage
from grader.domain.submission import AcceptedFile, Answers, Delivery, DrawnPage, Origin, RefusedFile, Undrawn
from grader.gradebook import Gradebook
from grader.gradebook.records import evidence_from, evidence_text

STAGE = Stage(Place("homework.py", 7), Place("homework.py", 8), "AdamW", "StepLR", 499, 30, 0.1, 1e-5, True)
BARE = Evidence("400101204", "vit_defects", "ab12", datetime(2026, 1, 31, tzinfo=UTC))
RICH = Evidence(
    student_id="400101204",
    assignment_id="vit_defects",
    submission_digest="ab12",
    graded_at=datetime(2026, 1, 31, 12, 30, 1, 123456, tzinfo=timezone(timedelta(hours=3, minutes=30))),
    status="refused",
    reason="“homework.py” is \n broken \x00 \ud800",
    received_at=datetime(2026, 1, 30, 8),
    delivery=Delivery(datetime(2026, 1, 30, 7), "a zip", True, datetime(2026, 2, 2, tzinfo=UTC)),
    partial=True,
    absent=True,
    team=("400101204", "400101205"),
    origin=Origin("Moodle:7", "A_7", "moodle-7", "Moodle", "7", "A", "400101204", "400101205"),
    code_file="homework.py",
    missing=("checkpoint", "metrics"),
    files=(AcceptedFile("metrics", "400101204_metrics.csv", 120, "ab" * 32),),
    refused_files=(RefusedFile("a.pth", "It is not a checkpoint.", clutter=True),),
    notes=(Note("A note."), Note("Another.", ask_person=True)),
    findings=(
        Finding("oracle", "Attention", "It is attention.", Status.PASSED, seconds=0.1),
        Finding("scale", "Attention", "Scaled.", Status.FAILED, Blame.STUDENT, "missing_scale", "No."),
        Finding("load", "ViT", "Loads.", Status.FAILED, Blame.STUDENT, kind=FindingKind.HANGS),
        Finding("runs", "ViT", "Runs.", Status.SKIPPED, Blame.STUDENT, None, "No.", because="load"),
        Finding("learns", "ViT", "Learns.", Status.PASSED, message="Fixed.", policy="fixed_positions"),
    ),
    near_names=(NearName("ViT", "VIT", Place("cell 4", 3)),),
    omissions=(Omission(Place("homework.py", 1), "plt.show()", "It draws.", broken=True),),
    forbidden=(ForbiddenUse("timm", "timm.models", Place("homework.py", 2), ("ViT", "Attention"), "timm.a"),),
    pried=(Pried(Prying.FRAMES, Place("homework.py", 2), "ViT"), Pried(Prying.MEMORY, None, "the training")),
    unproven=("Attention",),
    tuned=(TunedValue("dim", "64", Place("homework.py", 9)),),
    source={"homework.py": "import torch\n"},
    claim=Claim(0.85, "cell 4", "Test accuracy: 85%", cell="cell 4"),
    shown_epochs=30,
    answers=Answers("a.pdf", "ab" * 32, 1_000, True, 3, 2, (DrawnPage(1, 848, 1200),), Undrawn.ENDED),
    parameters=499_462,
    layers=(LayerSummary("", "ViT", 0, 0),),
    training=Training(
        TrainingOutcome.DIVERGED,
        reason="Not finite.",
        classes=("crazing", "patches"),
        epochs=(Epoch(1, None, math.inf, 1 / 3, 0.003, 2.5),),
        planned_epochs=30,
        accuracy=1 / 3,
        interval=(0.1, 0.5),
        confusion=((3, 1), (0, 4)),
        seen_accuracy=0.75,
        roc=(RocCurve(0.9, ((0.0, 0.0), (0.1, 0.8), (1.0, 1.0))), RocCurve(None)),
        predictions=(Prediction("p0.png", 0, 1, 0.7, ((1, 0.7), (0, 0.3))),),
        runs=(0.3, 0.4),
        unfinished=(UnfinishedRun(2, TrainingOutcome.FAILED, "It raised.", "homework.py:9", 4e3),),
        attention=(AttentionMap("p0.png", "a0.png", "r0.png"),),
        projected_seconds=7e3,
        stages=(STAGE,),
    ),
    checkpoint=Checkpoint("mismatch", "The shapes differ.", None),
    figures=(Figure("plot_confusion_matrix", "f0.png"),),
    not_run=("training",),
    attestation=Attestation("strict", {"seccomp": "2"}, ("No cgroup.",)),
    plan=Plan(
        "model", "its weights are saved", "", (Place("homework.py", 3),), (Place("homework.py", 4),), True,
        (Omission(Place("homework.py", 5), "for lr in rates:", "It trains another model."),),
        Rehearsal((STAGE,), 2, False, "It raised.", "homework.py:9", 460, 34_000), True,
    ),
    measure="vit_accuracy",
    study=StudyAgain(
        (StudyRow({"depth": "2"}, 0.5, 0.4, True, "", 2.0), StudyRow({"depth": "4"}, 0.6, None, False, "-")),
        0.04, "Not all of it.", StudyRow({"depth": "1"}, 0.7),
    ),
    further={"resnet_accuracy": TrainedModel(Plan("resnet"), Training(TrainingOutcome.FAILED, "It raised."),
             Checkpoint("mismatch", "It does not fit."))},
    engine="0.1.0",
    assignment_digest="cd34",
    attempt=2,
    data_digest="ef56",
    variant={"heads": 4},
    seconds={"checks": 1.25},
    node="lab1",
)  # fmt: skip


def test_the_rich_example_fills_every_field() -> None:
    same = [field.name for field in fields(BARE) if getattr(RICH, field.name) == getattr(BARE, field.name)]
    assert same == ["student_id", "assignment_id", "submission_digest"]


@pytest.mark.parametrize("evidence", [BARE, RICH], ids=["bare", "rich"])
def test_evidence_comes_back_exactly(tmp_path: Path, evidence: Evidence) -> None:
    with Gradebook(tmp_path) as book:
        book.record(evidence, {})
    with Gradebook(tmp_path) as book:
        found = book.evidence("400101204")
        [same] = book.snapshot().evidence.values()
    assert found == evidence == same
    assert found.graded_at.utcoffset() == evidence.graded_at.utcoffset()
    assert types_in(found) == types_in(evidence), "enumerations and tuples are not plain strings and lists"


@pytest.mark.parametrize("evidence", [BARE, RICH], ids=["bare", "rich"])
def test_evidence_reaches_another_process_as_it_was(evidence: Evidence) -> None:
    every_field = Finding(
        "a", "b", "c", Status.FAILED, Blame.ENGINE, "d", "e", "f", "g", 1.0, FindingKind.DIES, "h", "i"
    )
    sent = replace(evidence, findings=(*evidence.findings, every_field))
    found = pickle.loads(pickle.dumps(sent))  # noqa: S301 - made in this line
    assert found == sent and types_in(found) == types_in(sent)


def types_in(value: Any) -> Any:
    """The types of a value and of all that it holds."""
    if is_dataclass(value):
        return [type(value), *(types_in(getattr(value, field.name)) for field in fields(value))]
    if isinstance(value, tuple):
        return [tuple, *map(types_in, value)]
    return type(value)


def test_a_loss_that_is_not_a_number_stays_one() -> None:
    epoch = Epoch(1, math.nan, math.nan, 0.2, 0.1, 1.0)
    evidence = replace(BARE, training=Training(TrainingOutcome.DIVERGED, epochs=(epoch,)))
    found = evidence_from(evidence_text(evidence)).training.epochs[0]
    assert math.isnan(found.test_loss)
    assert found.train_loss is not None
    assert math.isnan(found.train_loss)


finite = st.floats(allow_nan=False)
places = st.builds(Place, st.text(), st.integers())
evidences = st.builds(
    Evidence,
    student_id=st.just("400101204"),
    assignment_id=st.text(),
    submission_digest=st.text(),
    graded_at=st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=3.5))])),
    reason=st.text(),
    received_at=st.none() | st.datetimes(),
    missing=st.lists(st.sampled_from(["checkpoint", "metrics"])).map(tuple),
    findings=st.lists(
        st.builds(Finding, st.text(), st.text(), st.text(), st.sampled_from(Status),
                  st.none() | st.sampled_from(Blame), st.none() | st.text(), st.text(), seconds=finite),
        max_size=3,
    ).map(tuple),
    omissions=st.lists(st.builds(Omission, places, st.text(), st.text()), max_size=2).map(tuple),
    source=st.none() | st.dictionaries(st.text(), st.text(), max_size=2),
    parameters=st.none() | st.integers(),
    training=st.builds(
        Training,
        st.sampled_from(TrainingOutcome),
        epochs=st.lists(st.builds(Epoch, st.integers(), st.none() | finite, finite, finite, finite, finite),
                        max_size=2).map(tuple),
        interval=st.none() | st.tuples(finite, finite),
        confusion=st.lists(st.lists(st.integers(), max_size=3).map(tuple), max_size=3).map(tuple),
    ),
    variant=st.dictionaries(st.text(), st.integers() | finite | st.text() | st.booleans(), max_size=2),
    seconds=st.none() | st.dictionaries(st.text(), finite, max_size=2),
)  # fmt: skip


@settings(deadline=None, max_examples=60, derandomize=True, database=None)
@given(evidences)
def test_any_evidence_comes_back_exactly(evidence: Evidence) -> None:
    found = evidence_from(evidence_text(evidence))
    assert found == evidence
    assert types_in(found) == types_in(evidence)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        '{"format": 2}',
        '{"format": 1, "evidence": {}}',
        evidence_text(RICH).replace("scale", "sca\x00le"),
    ],
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        evidence_from(text)


def test_a_value_of_another_type_is_our_fault(tmp_path: Path) -> None:
    wrong: Any = object()
    with pytest.raises(EngineError, match="holds a value that is not of its type"):
        Gradebook(tmp_path).record(replace(BARE, engine=wrong), {})
    assert not list(tmp_path.iterdir())
