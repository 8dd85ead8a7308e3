"""The rules that turn evidence into points, one table for each."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from grader.domain.analyzed_program import LOADING, TRAINING, Claim, ForbiddenUse, Place
from grader.domain.assignment import (
    Assignment,
    CheckSpec,
    Component,
    DataUse,
    Remark,
    RubricItem,
    RubricPart,
)
from grader.domain.assignment_files import SubmittedFile
from grader.domain.assignment_rules import ForbiddenRule, LatePolicy
from grader.domain.edit import Accepted, Edit, Marked, Ruled, Waived
from grader.domain.errors import EngineError, UsageError
from grader.domain.evidence import (
    Blame,
    Checkpoint,
    Epoch,
    Evidence,
    Finding,
    FindingKind,
    Status,
    TrainedModel,
    Training,
    TrainingOutcome,
    UnfinishedRun,
)
from grader.domain.formatting import named
from grader.domain.limits import Limits
from grader.domain.measure import Scale, TrainingCall
from grader.domain.program_run import Pried, Prying
from grader.domain.score import GradeStatus, LineState, Score, ScoreLine, Waiver
from grader.domain.submission import Delivery, RefusedFile, Role
from grader.scoring import passes, score, stray_targets
from grader.scoring.decided_by_people import with_waived
from grader.scoring.measurements import measured_line
from grader.training.metrics import accuracy_interval

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CHECKS = (
    CheckSpec("oracle", "Attention", "It is attention.", weight=2),
    CheckSpec("shape", "Attention", "The shape stays."),
    CheckSpec("scale", "Attention", "Scores are scaled."),
    CheckSpec("logits", "ViT", "One number per class."),
    CheckSpec("named", "submission", "Files are named right."),
)
ASSIGNMENT = Assignment(
    id="small",
    title="Small",
    folder=Path("small"),
    file_stem="{student_id}_homework",
    files=(SubmittedFile(Role.CODE, (".py", ".ipynb")), SubmittedFile(Role.REPORT, (".pdf",))),
    components=(Component("Attention", "class", ""), Component("ViT", "class", "")),
    checks=CHECKS,
    rubric=(
        RubricItem("model", "Model", 12, components={"Attention": 8, "ViT": 4}),
        RubricItem(
            "training", "Training", 15, measured="test_accuracy", threshold=0.6,
            breakpoints=((0.2, 0), (0.6, 9), (0.8, 15)),
        ),
        RubricItem("essay", "Essay", 5),
    ),
    forbidden=(
        ForbiddenRule("timm", "forbid", "model", "Write it yourself."),
        ForbiddenRule("torch.nn.MultiheadAttention", "forbid", "Attention", "Write attention yourself."),
        ForbiddenRule("torch.nn.functional.scaled*", "flag", "Attention", "A person decides."),
    ),
    limits=Limits(),
    data=DataUse("real", "synthetic", ("a", "b", "c", "d", "e")),
)  # fmt: skip


def finding(
    check: str,
    status: Status = Status.PASSED,
    blame: Blame | None = None,
    *,
    kind: FindingKind | None = None,
) -> Finding:
    component = next(spec.component for spec in CHECKS if spec.id == check)
    return Finding(check, component, "", status, blame, kind=kind)


ALL = tuple(finding(spec.id) for spec in CHECKS)
PERFECT = Evidence(
    student_id="400101204",
    assignment_id="small",
    submission_digest="",
    graded_at=NOW,
    findings=ALL,
    training=Training(TrainingOutcome.COMPLETED, accuracy=0.9, interval=(0.87, 0.93)),
)


def evidence_with(*changed: Finding, **fields: object) -> Evidence:
    """The perfect evidence with some findings and fields replaced."""
    others = [one for one in ALL if one.check not in {own.check for own in changed}]
    return replace(PERFECT, findings=(*others, *changed), **fields)  # type: ignore[arg-type]


def line_of(found: Score, item_id: str) -> ScoreLine:
    return next(line for line in found.lines if line.id == item_id)


def points_of(evidence: Evidence, component: str) -> float | None:
    model = line_of(score(ASSIGNMENT, evidence), "model")
    return next(own.points for own in model.components if own.component == component)


# --- the whole ------------------------------------------------------------------------------------------


def test_a_perfect_submission_awaits_only_the_person() -> None:
    found = score(ASSIGNMENT, PERFECT)
    assert found.status is GradeStatus.GRADED
    assert (found.total, found.decided, found.maximum) == (27.0, 27.0, 32.0)
    assert found.awaiting == ("essay",)
    assert [line.id for line in found.lines] == ["model", "training", "essay"]
    assert [line.points for line in found.lines] == [12.0, 15.0, None]
    assert line_of(found, "model").reason == "All checks passed."


def test_a_bare_template_earns_nothing_and_is_decided() -> None:
    failed = [finding(spec.id, Status.FAILED, Blame.STUDENT) for spec in CHECKS]
    training = Training(TrainingOutcome.FAILED, reason="ViT is not implemented.")
    found = score(ASSIGNMENT, evidence_with(*failed, training=training))
    assert (found.total, found.decided) == (0.0, 27.0)
    assert found.awaiting == ("essay",)


def test_scoring_changes_no_evidence_and_repeats() -> None:
    assert score(ASSIGNMENT, PERFECT) == score(ASSIGNMENT, PERFECT)


# --- checks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failed", "points", "passed"),
    [((), 8.0, 3), (("oracle",), 4.0, 2), (("shape",), 6.0, 2), (("shape", "scale"), 4.0, 1),
     (("oracle", "shape", "scale"), 0.0, 0)],
)  # fmt: skip
def test_a_component_earns_its_share_of_passed_weight(
    failed: tuple[str, ...], points: float, passed: int
) -> None:
    evidence = evidence_with(*(finding(name, Status.FAILED, Blame.STUDENT) for name in failed))
    model = line_of(score(ASSIGNMENT, evidence), "model")
    attention = model.components[0]
    assert (attention.points, attention.passed, attention.total) == (points, passed, 3)
    assert (model.points, model.floor, model.state) == (points + 4, None, "decided")


@pytest.mark.parametrize("status", [Status.PASSED, Status.FAILED, Status.SKIPPED])
def test_folding_alone_changes_no_points(status: Status) -> None:
    """What is folded loses its own weight, once, and what passed all the same earns."""
    blame = None if status is Status.PASSED else Blame.STUDENT
    cause = finding("oracle", Status.FAILED, Blame.STUDENT)
    own, folded = finding("scale", status, blame), replace(finding("scale", status, blame), because="oracle")
    assert score(ASSIGNMENT, evidence_with(cause, own)) == score(ASSIGNMENT, evidence_with(cause, folded))
    assert points_of(evidence_with(cause, folded), "Attention") == (4.0 if blame is None else 2.0)
    rest = replace(finding("shape", Status.SKIPPED, Blame.STUDENT), because="oracle")
    lost = evidence_with(cause, folded, rest)
    assert points_of(lost, "Attention") == (2.0 if blame is None else 0.0), "and never more than all of it"
    assert points_of(lost, "ViT") == 4.0


def test_the_line_says_where_points_were_lost() -> None:
    model = line_of(score(ASSIGNMENT, evidence_with(finding("scale", Status.FAILED, Blame.STUDENT))), "model")
    assert model.reason == "Attention has 6 of 8: 2 of 3 checks passed."


@pytest.mark.parametrize(
    ("status", "blame", "points"),
    [
        (Status.PASSED, None, 8.0),
        (Status.FAILED, Blame.STUDENT, 6.0),
        (Status.FAILED, None, 6.0),
        (Status.FAILED, Blame.INSTRUCTOR, None),
        (Status.FAILED, Blame.ENGINE, None),
        (Status.SKIPPED, Blame.STUDENT, 6.0),
        (Status.SKIPPED, Blame.INSTRUCTOR, None),
        (Status.SKIPPED, Blame.ENGINE, None),
        (Status.SKIPPED, None, None),
        (Status.ERRORED, Blame.STUDENT, None),
        (Status.ERRORED, Blame.INSTRUCTOR, None),
        (Status.ERRORED, Blame.ENGINE, None),
        (Status.ERRORED, None, None),
    ],
)
def test_only_the_student_can_lose_points(status: Status, blame: Blame | None, points: float | None) -> None:
    assert points_of(evidence_with(finding("scale", status, blame)), "Attention") == points


@pytest.mark.parametrize(
    ("findings", "told"),
    [
        ([one for one in ALL if one.check != "scale"], "The check 'scale' left no finding."),
        ([*ALL, finding("scale")], "The check 'scale' left several findings."),
        ([*ALL, finding("scale", Status.FAILED, Blame.STUDENT)], "The check 'scale' left several findings."),
        ([], "Attention is undecided: 3 checks left no finding."),
    ],
    ids=["missing", "twice passed", "passed and failed", "none"],
)
def test_a_check_that_did_not_leave_one_finding_is_undecided(findings: list[Finding], told: str) -> None:
    evidence = replace(PERFECT, findings=tuple(findings))
    model = line_of(score(ASSIGNMENT, evidence), "model")
    assert (model.points, model.state) == (None, "awaiting")
    assert told in model.reason
    assert points_of(evidence, "Attention") is None


def test_an_undecided_line_keeps_what_is_secured() -> None:
    evidence = evidence_with(finding("scale", Status.ERRORED, Blame.ENGINE))
    found = score(ASSIGNMENT, evidence)
    model = line_of(found, "model")
    assert (model.points, model.floor, model.state) == (None, 10.0, "awaiting")
    assert [own.points for own in model.components] == [None, 4.0]
    assert model.reason == (
        "Attention is undecided: The check 'scale' could not be decided (the grader's fault)."
    )
    assert (found.total, found.decided) == (15.0, 15.0), "the floor is not in the total"


def test_of_several_undecided_checks_their_number_is_told() -> None:
    """Their names say nothing to a student, and ten of them hide what else is said."""
    doubts = [
        finding("scale", Status.ERRORED, Blame.INSTRUCTOR, kind=FindingKind.UNDECIDED),
        finding("oracle", Status.ERRORED, Blame.INSTRUCTOR, kind=FindingKind.UNDECIDED),
        finding("shape", Status.ERRORED, Blame.INSTRUCTOR),
    ]
    assert line_of(score(ASSIGNMENT, evidence_with(*doubts)), "model").reason.startswith(
        "Attention is undecided: 2 checks leave it to a person. "
        "The check 'shape' could not be decided (a mistake in the check)."
    )


def test_a_bug_in_a_check_is_called_that() -> None:
    evidence = evidence_with(finding("scale", Status.ERRORED, Blame.INSTRUCTOR))
    assert "(a mistake in the check)" in line_of(score(ASSIGNMENT, evidence), "model").reason


def test_findings_that_no_check_declared_count_for_nothing() -> None:
    invented = Finding("invented", "Attention", "", Status.PASSED)
    failed = evidence_with(finding("oracle", Status.FAILED, Blame.STUDENT), invented)
    assert points_of(failed, "Attention") == 4.0


def test_a_component_without_checks_is_undecided() -> None:
    assignment = replace(ASSIGNMENT, checks=tuple(one for one in CHECKS if one.component != "ViT"))
    model = line_of(score(assignment, PERFECT), "model")
    assert (model.points, model.floor) == (None, 8.0)
    assert model.reason == "ViT is undecided: No check judges ViT."


def test_a_given_part_without_checks_holds_nothing_up() -> None:
    """No points stand for it, so there is nothing to decide."""
    checks = tuple(one for one in CHECKS if one.component != "ViT")
    given = replace(ASSIGNMENT.rubric[0], points=8, components={"Attention": 8, "ViT": 0})
    model = line_of(score(replace(ASSIGNMENT, checks=checks, rubric=(given,)), PERFECT), "model")
    assert (model.points, model.state, model.reason) == (8.0, LineState.DECIDED, "All checks passed.")


@pytest.mark.parametrize(("points", "given"), [(0, True), (4, False)])
def test_a_given_part_that_was_changed_leaves_what_it_trained_to_a_person(points: int, given: bool) -> None:
    call = TrainingCall("Attention", "ViT")
    item = replace(ASSIGNMENT.rubric[0], points=8 + points, components={"Attention": 8, "ViT": points})
    assignment = replace(
        ASSIGNMENT,
        rubric=(item, ASSIGNMENT.rubric[1]),
        measures=(replace(ASSIGNMENT.measures[0], call=call),),
    )
    failed = replace(finding("logits", Status.FAILED, Blame.STUDENT), message="It takes twice the epochs.")
    own = line_of(score(assignment, PERFECT), "training")
    changed = line_of(score(assignment, evidence_with(failed)), "training")
    assert own.state is LineState.DECIDED
    if given:
        assert (changed.points, changed.state, changed.floor) == (None, LineState.AWAITING, None)
        told = (
            "`ViT` is given, but it no longer does what it did: It takes twice the epochs. A person decides."
        )
        assert told in changed.reason
    else:
        assert changed == own, "what is graded has lost its own points"


def test_a_change_of_what_is_given_that_the_assignment_accepts_is_reported_and_counts() -> None:
    call = TrainingCall("Attention", "ViT", accepts=("from_scratch",))
    item = replace(ASSIGNMENT.rubric[0], points=8, components={"Attention": 8, "ViT": 0})
    measures = (replace(ASSIGNMENT.measures[0], call=call),)
    assignment = replace(ASSIGNMENT, rubric=(item, ASSIGNMENT.rubric[1]), measures=measures)
    failed = replace(
        finding("logits", Status.FAILED, Blame.STUDENT), message="It starts anew.", diagnosis="from_scratch"
    )
    own = line_of(score(assignment, PERFECT), "training")
    accepted = line_of(score(assignment, evidence_with(failed)), "training")
    assert accepted == replace(own, reason=f"{own.reason} It starts anew.")
    other = line_of(score(assignment, evidence_with(replace(failed, diagnosis="another"))), "training")
    assert other.state is LineState.AWAITING


def test_points_are_rounded_and_still_add_up() -> None:
    three = tuple(CheckSpec(name, "ViT", "") for name in "abc")
    item = RubricItem("model", "Model", 4, components={"ViT": 4})
    assignment = replace(ASSIGNMENT, checks=three, rubric=(item,))
    passed = [Finding(name, "ViT", "", Status.PASSED) for name in "abc"]
    for count, points in ((1, 1.33), (2, 2.67), (3, 4.0)):
        failed = [replace(one, status=Status.FAILED, blame=Blame.STUDENT) for one in passed[count:]]
        found = score(assignment, replace(PERFECT, findings=(*passed[:count], *failed)))
        assert found.lines[0].points == found.lines[0].components[0].points == found.total == points


# --- forbidden parts ------------------------------------------------------------------------------------


def use(rule: str, *reached_from: str, line: int = 3) -> ForbiddenUse:
    return ForbiddenUse(rule, f"{rule}.part", Place("homework.py", line), reached_from)


def test_a_prebuilt_model_costs_the_item() -> None:
    found = score(ASSIGNMENT, replace(PERFECT, forbidden=(use("timm", "ViT"),)))
    model = line_of(found, "model")
    assert (model.points, model.state) == (0.0, "decided")
    assert model.reason == "`timm.part` at homework.py:3: Write it yourself."
    assert [own.points for own in model.components] == [0.0, 0.0]
    assert found.total == 15.0


def test_prebuilt_attention_costs_attention_alone() -> None:
    evidence = replace(PERFECT, forbidden=(use("torch.nn.MultiheadAttention", "Attention", "ViT"),))
    model = line_of(score(ASSIGNMENT, evidence), "model")
    assert [own.points for own in model.components] == [0.0, 4.0]
    assert model.points == 4.0
    assert "homework.py:3: Write attention yourself." in model.reason


def test_a_forbidden_part_costs_what_is_undecided_too() -> None:
    evidence = evidence_with(finding("scale", Status.ERRORED, Blame.ENGINE), forbidden=(use("timm", "ViT"),))
    model = line_of(score(ASSIGNMENT, evidence), "model")
    assert (model.points, model.floor, model.state) == (0.0, None, "decided")


def test_a_forbidden_component_secures_nothing() -> None:
    evidence = evidence_with(
        finding("logits", Status.ERRORED, Blame.ENGINE),
        forbidden=(use("torch.nn.MultiheadAttention", "Attention"),),
    )
    model = line_of(score(ASSIGNMENT, evidence), "model")
    assert (model.points, model.floor) == (None, 0.0)


@pytest.mark.parametrize(
    "uses",
    [(use("timm"),), (use("torch.nn.MultiheadAttention"),), (use("no.longer.forbidden", "ViT"),)],
    ids=["imported, unused", "used elsewhere", "rule is gone"],
)
def test_what_no_graded_name_reaches_costs_nothing(uses: tuple[ForbiddenUse, ...]) -> None:
    assert score(ASSIGNMENT, replace(PERFECT, forbidden=uses)) == score(ASSIGNMENT, PERFECT)


def test_a_flag_costs_nothing_but_is_told() -> None:
    evidence = replace(PERFECT, forbidden=(use("torch.nn.functional.scaled*", "Attention"),))
    model = line_of(score(ASSIGNMENT, evidence), "model")
    assert (model.points, model.state) == (12.0, "decided")
    assert (
        "A person will take a look: `torch.nn.functional.scaled*.part` at homework.py:3: A person decides."
        in model.reason
    )


def test_a_flag_on_an_item_is_told_too() -> None:
    rule = ForbiddenRule("timm", "flag", "training", "A person decides.")
    evidence = replace(PERFECT, forbidden=(use("timm", "ViT"),))
    line = line_of(score(replace(ASSIGNMENT, forbidden=(rule,)), evidence), "training")
    assert line.points == 15.0
    assert line.reason.endswith("A person will take a look: `timm.part` at homework.py:3: A person decides.")


def remark(check: str, message: str) -> Finding:
    """A check that passed and has something for a person to look at."""
    return replace(finding(check), policy="fixed_positions", message=message, where="homework.py:41")


def test_a_check_that_passed_with_a_remark_costs_nothing_but_is_told() -> None:
    evidence = evidence_with(remark("logits", "The positions are fixed."))
    model = line_of(score(ASSIGNMENT, evidence), "model")
    assert (model.points, model.state) == (12.0, "decided")
    assert (
        model.reason
        == "ViT has 4 of 4: The check passed. A person will take a look: The positions are fixed."
    )
    attention, vit = model.components
    assert "A person will take a look" not in attention.reason
    assert (vit.points, vit.passed, vit.total) == (4.0, 1, 1)
    assert vit.reason == "The check passed. A person will take a look: The positions are fixed."


def test_remarks_and_flagged_parts_are_told_together_and_once() -> None:
    evidence = evidence_with(
        remark("shape", "It is odd."), remark("scale", "It is odd."), remark("oracle", "It is new."),
        forbidden=(use("torch.nn.functional.scaled*", "Attention"),),
    )  # fmt: skip
    attention = line_of(score(ASSIGNMENT, evidence), "model").components[0]
    assert attention.points == 8.0
    _, _, told = attention.reason.partition("A person will take a look: ")
    assert told.startswith("`torch.nn.functional.scaled*.part` at homework.py:3: A person decides.")
    assert told.endswith("It is odd. It is new.")
    assert told.count("It is odd.") == 1


def test_a_remark_saves_no_points_that_a_forbidden_part_costs() -> None:
    evidence = evidence_with(remark("logits", "It is odd."), forbidden=(use("timm", "ViT"),))
    model = line_of(score(ASSIGNMENT, evidence), "model")
    assert (model.points, model.reason) == (0.0, "`timm.part` at homework.py:3: Write it yourself.")


def test_the_message_of_a_check_that_did_not_pass_is_no_remark() -> None:
    failed = replace(finding("shape", Status.FAILED, Blame.STUDENT), message="It is wrong.")
    model = line_of(score(ASSIGNMENT, evidence_with(failed)), "model")
    assert "A person will take a look" not in model.reason
    assert "A person will take a look" not in model.components[0].reason


def test_many_uses_make_one_sentence() -> None:
    uses = tuple(use("timm", "ViT", line=line) for line in (3, 8, 9, 9))
    model = line_of(score(ASSIGNMENT, replace(PERFECT, forbidden=uses)), "model")
    assert model.reason == "`timm.part` at homework.py:3 (and 2 more): Write it yourself."


def test_what_another_part_uses_inside_costs_nothing_of_its_own() -> None:
    """Where that other part is only flagged, so is what it consists of; nobody is spared a look."""
    inside = replace(use("torch.nn.MultiheadAttention", "Attention"), inside="torch.nn.Layer")
    model = line_of(score(ASSIGNMENT, replace(PERFECT, forbidden=(inside,))), "model")
    assert model.points == 12.0
    assert (
        "A person will take a look: `torch.nn.MultiheadAttention.part` within `torch.nn.Layer` at "
        "homework.py:3: Write attention yourself." in model.reason
    )


@pytest.mark.parametrize(("rule", "points"), [("timm", None), ("torch.nn.functional.scaled*", 15.0)])
def test_what_the_training_alone_uses_is_a_matter_of_its_points(rule: str, points: float | None) -> None:
    found = score(ASSIGNMENT, replace(PERFECT, forbidden=(use(rule, TRAINING),)))
    model, training = line_of(found, "model"), line_of(found, "training")
    assert (model.points, model.reason) == (12.0, "All checks passed.")
    assert training.points == points
    assert f"{named(f'{rule}.part')} at homework.py:3:" in training.reason
    if points is None:
        assert (training.state, training.floor) == ("awaiting", None)
        assert "The training uses what is not allowed." in training.reason
        assert training.reason.endswith("A person decides.") and found.total == 12.0


def test_what_a_graded_name_and_the_training_use_costs_what_the_graded_name_costs() -> None:
    found = score(ASSIGNMENT, replace(PERFECT, forbidden=(use("timm", "ViT", TRAINING),)))
    assert line_of(found, "model").points == 0.0 and line_of(found, "training").points == 15.0


def test_a_training_that_is_worth_nothing_stays_so() -> None:
    low = replace(PERFECT.training, accuracy=0.2, interval=None)
    evidence = replace(PERFECT, training=low, forbidden=(use("timm", TRAINING),), unproven=(TRAINING,))
    assert line_of(score(ASSIGNMENT, evidence), "training").points == 0.0


def test_where_the_watch_was_disturbed_a_person_decides() -> None:
    """What forbidden parts could cost is open, and nothing else."""
    found = score(ASSIGNMENT, replace(PERFECT, unproven=("Attention", LOADING)))
    model = line_of(found, "model")
    assert (model.points, model.state, model.floor) == (None, "awaiting", None)
    assert "noticed after: Attention, the loading" in model.reason
    assert line_of(found, "training").points == 15.0

    other = replace(ASSIGNMENT, forbidden=ASSIGNMENT.forbidden[1:])  # nothing costs the whole item
    model = line_of(score(other, replace(PERFECT, unproven=("ViT",))), "model")
    assert [own.points for own in model.components] == [None, 4.0]
    assert (model.points, model.floor) == (None, 4.0)


def test_a_disturbed_watch_saves_no_points_that_a_forbidden_part_costs() -> None:
    evidence = replace(PERFECT, forbidden=(use("timm", "ViT"),), unproven=("ViT",))
    assert line_of(score(ASSIGNMENT, evidence), "model").points == 0.0


def test_a_watch_that_was_disturbed_in_training_leaves_its_points_open() -> None:
    found = score(ASSIGNMENT, replace(PERFECT, unproven=(TRAINING,)))
    assert line_of(found, "training").points is None and line_of(found, "model").points == 12.0


def test_prying_costs_nothing() -> None:
    pried = (Pried(Prying.FRAMES, Place("homework.py", 3), "Attention"),)
    assert score(ASSIGNMENT, replace(PERFECT, pried=pried)) == score(ASSIGNMENT, PERFECT)


# --- training -------------------------------------------------------------------------------------------


def epoch(accuracy: float) -> Epoch:
    return Epoch(1, 1.0, 1.0, accuracy, 0.001, 1.0)


TRAININGS = [
    # outcome, accuracy, last epoch's accuracy, reason -> points, state, floor
    (TrainingOutcome.COMPLETED, 0.9, 0.9, "", 15.0, "decided", None),
    (TrainingOutcome.COMPLETED, 0.6, 0.6, "", 9.0, "decided", None),
    (TrainingOutcome.COMPLETED, 0.7, 0.1, "", 12.0, "decided", None),
    (TrainingOutcome.COMPLETED, 0.1, 0.1, "", 0.0, "decided", None),
    (TrainingOutcome.COMPLETED, None, None, "", None, "awaiting", None),
    (TrainingOutcome.COMPLETED, math.nan, None, "", None, "awaiting", None),
    (TrainingOutcome.COMPLETED, 81.0, None, "", None, "awaiting", None),
    (TrainingOutcome.FAILED, None, 0.3, "ViT is not implemented.", 0.0, "decided", None),
    (TrainingOutcome.DIVERGED, None, 0.5, "The loss is not finite.", 0.0, "decided", None),
    (TrainingOutcome.DIVERGED, 0.4, 0.2, "The loss is not finite.", 4.5, "decided", None),
    (TrainingOutcome.BUDGET, None, 0.7, "1800 s", None, "awaiting", 12.0),
    (TrainingOutcome.BUDGET, 0.6, 0.5, "1800 s", None, "awaiting", 9.0),
    (TrainingOutcome.BUDGET, None, None, "1800 s", None, "awaiting", None),
    (TrainingOutcome.UNKNOWN, None, 0.4, "which model?", None, "awaiting", 4.5),
    (TrainingOutcome.UNKNOWN, math.nan, None, "which model?", None, "awaiting", None),
    (TrainingOutcome.NOT_RUN, None, None, "", None, "not_run", None),
    (TrainingOutcome.NOT_RUN, None, None, "Something prevented it.", None, "awaiting", None),
]


@pytest.mark.parametrize(("outcome", "accuracy", "last", "reason", "points", "state", "floor"), TRAININGS)
def test_training(
    outcome: TrainingOutcome,
    accuracy: float | None,
    last: float | None,
    reason: str,
    points: float | None,
    state: str,
    floor: float | None,
) -> None:
    epochs = (epoch(0.3), epoch(last)) if last is not None else ()
    training = Training(outcome, reason=reason, accuracy=accuracy, epochs=epochs)
    found = score(ASSIGNMENT, replace(PERFECT, training=training))
    line = line_of(found, "training")
    assert (line.points, line.state, line.floor) == (points, state, floor)
    assert reason in line.reason
    assert found.decided == (27.0 if state == "decided" else 12.0)
    assert ("training" in found.awaiting, "training" in found.not_run) == (
        state == "awaiting",
        state == "not_run",
    )


def test_training_that_was_not_asked_for_is_not_run_whatever_its_reason() -> None:
    training = Training(TrainingOutcome.NOT_RUN, reason="--no-train")
    found = score(ASSIGNMENT, replace(PERFECT, training=training, not_run=("training",)))
    assert found.not_run == ("training",)
    assert found.awaiting == ("essay",)
    assert found.total == 12.0


def test_the_training_line_gives_the_accuracy_and_what_was_asked() -> None:
    assert line_of(score(ASSIGNMENT, PERFECT), "training").reason == (
        "90 % of the hidden test images are classified correctly (95 % interval: 87 % to 93 %); "
        "60 % is asked for."
    )


def test_submitted_weights_change_no_points() -> None:
    """They may have been trained on the hidden images."""
    weak = replace(PERFECT, training=Training(TrainingOutcome.COMPLETED, accuracy=0.5))
    perfect = replace(weak, checkpoint=Checkpoint("fits", accuracy=1.0))
    assert score(ASSIGNMENT, perfect) == score(ASSIGNMENT, weak)


NEAR = Training(TrainingOutcome.COMPLETED, accuracy=0.58, interval=(0.53, 0.61), runs=(0.56, 0.58, 0.60))


@pytest.mark.parametrize(
    ("changes", "points", "told"),
    [
        ({}, 9.0, "which the interval reaches: it counts as reached"),
        ({"interval": (0.5, 0.599)}, 8.55, "(mean of 3 training runs: 56 %, 58 %, 60 %; 95 % interval"),
        ({"accuracy": 0.62, "interval": (0.57, 0.66)}, 9.6, "62 % of the hidden"),
        ({"runs": ()}, 8.55, "58 % of the hidden"),
    ],
)
def test_near_the_threshold_the_interval_of_several_trainings_decides(
    changes: dict[str, object], points: float, told: str
) -> None:
    training = replace(NEAR, **changes)  # type: ignore[arg-type]
    line = line_of(score(ASSIGNMENT, replace(PERFECT, training=training)), "training")
    assert line.points == points and line.state == "decided"
    assert told in line.reason
    assert ("counts as reached" in line.reason) is (points == 9.0)


def repeated(*runs: float, images: int = 540, **changes: object) -> Training:
    """Trainings that were completed, as they are measured."""
    mean = sum(runs) / len(runs)
    interval = accuracy_interval(runs, images)
    made = Training(TrainingOutcome.COMPLETED, accuracy=mean, interval=interval, runs=runs)
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("training", "passed"),
    [
        (repeated(0.59, 0.58, 0.60), True),
        (repeated(0.57, 0.56, 0.555), True),
        (repeated(0.56, 0.56, 0.56), True),  # the images alone: 51.8 % to 60.1 %
        (repeated(0.56, 0.56, 0.56, images=1000), False),
        (repeated(0.62, 0.61, 0.50), False),
        (repeated(0.53, 0.55, 0.57), False),  # 5 points below it: its interval reaches 61 %
        (repeated(0.57, 0.30, 0.30), False),
        (repeated(0.57, 0.0, 0.0), False),
        (repeated(0.59, 0.58, unfinished=(UnfinishedRun(3, TrainingOutcome.BUDGET, "Slow."),)), False),
        (repeated(0.63, 0.58, 0.60), True),
    ],
)
def test_the_benefit_of_the_doubt_needs_a_mean_near_the_threshold_and_every_training(
    training: Training, passed: bool
) -> None:
    """Chance between seeds is given to the student; a mean far below is not chance."""
    assert passes(training, 0.6) is passed


RAISED = UnfinishedRun(2, TrainingOutcome.FAILED, "Training ended in epoch 1", "homework.py:9")


@pytest.mark.parametrize(
    ("training", "floor", "told"),
    [
        # recognized as the first of three, whose seed a student had worked out
        (
            repeated(0.563, 0.0, 0.0),
            0.0,
            "gave 0 % to 56.3 %: with values so far apart, their mean says little",
        ),
        # and by accident
        (repeated(0.57, 0.30, 0.30), 2.25, "gave 30 % to 57 %"),
        (repeated(0.62, 0.61, 0.50), 6.75, "gave 50 % to 62 %"),
        (
            repeated(0.62, 0.66, unfinished=(RAISED,)),
            0.0,
            "Training 2 of 3 was not completed (homework.py:9)",
        ),
        (
            repeated(0.63, unfinished=(RAISED, replace(RAISED, number=3))),
            0.0,
            "Training 3 of 3 was not completed",
        ),
        (repeated(0.59, 0.58, 0.60), None, ""),
        (repeated(0.62, 0.57, 0.53), None, ""),  # nine points: chance between seeds
        (repeated(0.99, 0.81, 0.85), None, ""),  # all of them are worth full points
        (repeated(0.19, 0.02, 0.0), None, ""),  # and all of them none
    ],
)
def test_trainings_that_do_not_agree_are_a_persons(
    training: Training, floor: float | None, told: str
) -> None:
    """What the worst of them is worth is secured; a suspicion takes nothing."""
    line = line_of(score(ASSIGNMENT, replace(PERFECT, training=training)), "training")
    assert (line.state, line.floor) == ("awaiting" if told else "decided", floor)
    assert (line.points is None) is bool(told)
    assert told in line.reason and line.reason.endswith("A person decides.") is bool(told)
    assert line.reason.count("A person decides.") <= 1
    assert "counts as reached" not in line.reason or not told


def test_full_points_that_one_training_less_could_change_are_a_persons_too() -> None:
    """Else what raises where it would do badly kept the points of where it does well."""
    item = replace(ASSIGNMENT.rubric[1], breakpoints=((0.2, 0), (0.6, 15)))
    assert item.measured == "test_accuracy"
    assignment = replace(ASSIGNMENT, rubric=(ASSIGNMENT.rubric[0], item, *ASSIGNMENT.rubric[2:]))
    lucky = replace(PERFECT, training=repeated(0.62, 0.63, unfinished=(RAISED,)))
    line = line_of(score(assignment, lucky), "training")
    assert (line.state, line.points, line.floor) == ("awaiting", None, 0.0)
    whatever = replace(PERFECT, training=repeated(0.95, 0.95, unfinished=(RAISED,)))
    assert line_of(score(assignment, whatever), "training").points == 15
    rebuilt = replace(PERFECT, training=repeated(0.57, 0.30, 0.30, rebuilt=True))
    assert line_of(score(ASSIGNMENT, rebuilt), "training").floor == 2.25


CLAIMED = Claim(0.75, "cell 12", "Test accuracy: 75%")
MEASURED = Training(TrainingOutcome.COMPLETED, accuracy=0.7, planned_epochs=1)
FAILED = Training(TrainingOutcome.FAILED, reason="KeyError", epochs=(epoch(0.3),))
DIVERGED = Training(TrainingOutcome.DIVERGED, reason="The outputs are not finite.")


@pytest.mark.parametrize(
    ("training", "claim", "shown", "floor", "told"),
    [
        (MEASURED, None, None, None, ""),
        (MEASURED, CLAIMED, 1, None, ""),
        (replace(MEASURED, accuracy=0.69), CLAIMED, None, 11.7, "75 % is claimed (cell 12), and"),
        (MEASURED, None, 30, 12.0, "outputs show 30 epochs, its code asks for 1 epoch, and the handed-in"),
        (replace(MEASURED, rebuilt=True), None, None, 12.0, "could not be executed as it stands."),
        (replace(MEASURED, accuracy=0.85, rebuilt=True), replace(CLAIMED, accuracy=0.99), 30, None, ""),
        (FAILED, CLAIMED, None, 0.0, "75 % is claimed"),
        (FAILED, None, None, None, ""),
        (DIVERGED, CLAIMED, None, 0.0, "75 % is claimed"),
        (DIVERGED, None, None, None, ""),
        # more than the weights can show is not a claim that they support
        (replace(MEASURED, accuracy=0.6), replace(CLAIMED, accuracy=0.999), None, None, ""),
    ],
)
def test_where_something_speaks_against_the_measurement_a_person_decides(
    training: Training, claim: Claim | None, shown: int | None, floor: float | None, told: str
) -> None:
    weights = Checkpoint("fits", accuracy=0.78)
    evidence = replace(PERFECT, training=training, claim=claim, shown_epochs=shown, checkpoint=weights)
    line = line_of(score(ASSIGNMENT, evidence), "training")
    assert (line.state, line.floor) == ("awaiting" if told else "decided", floor)
    assert (line.points is None) is bool(told)
    assert told in line.reason and line.reason.endswith("A person decides.") is bool(told)


@pytest.mark.parametrize(
    "weights",
    [
        Checkpoint("missing"),
        Checkpoint("mismatch", "They do not fit."),
        Checkpoint("not_tried"),
        Checkpoint("refused", accuracy=0.99),
        Checkpoint("fits", accuracy=None),
        Checkpoint("fits", accuracy=0.72),
        Checkpoint("fits", accuracy=float("nan")),
    ],
    ids=str,
)
@pytest.mark.parametrize("training", [MEASURED, FAILED, DIVERGED], ids=["measured", "failed", "diverged"])
def test_what_is_only_said_changes_no_points(training: Training, weights: Checkpoint) -> None:
    """Anybody can write 99.9 % and epoch 100 into an output: it is listed, and what was measured counts."""
    if training is not MEASURED and weights.accuracy == 0.72:
        return  # there the weights do say more
    said = Claim(0.999, "cell 12", "Test accuracy: 99.9%")
    plain = replace(PERFECT, training=training, checkpoint=weights, claim=None, shown_epochs=None)
    forged = replace(plain, claim=said, shown_epochs=100)
    assert score(ASSIGNMENT, forged).lines == score(ASSIGNMENT, plain).lines
    assert line_of(score(ASSIGNMENT, forged), "training").state == "decided"


def test_the_students_place_is_told_when_training_failed() -> None:
    training = Training(
        TrainingOutcome.FAILED,
        reason="train_epoch raised KeyError",
        where="homework.py:80",
        epochs=(epoch(0.3),),
    )
    line = line_of(score(ASSIGNMENT, replace(PERFECT, training=training)), "training")
    assert line.reason == "Training failed (homework.py:80): train_epoch raised KeyError."


def test_a_training_that_fails_at_once_with_parts_that_are_right_goes_to_a_person() -> None:
    """What surrounds the parts is partly the grader's: its data, and what it leaves out."""
    at_once = Training(TrainingOutcome.FAILED, reason="KeyError")
    line = line_of(score(ASSIGNMENT, replace(PERFECT, training=at_once)), "training")
    assert (line.points, line.state, line.floor) == (None, "awaiting", 0.0)
    assert "Each part passed its checks" in line.reason
    wrong = evidence_with(finding(CHECKS[0].id, Status.FAILED, Blame.STUDENT), training=at_once)
    line = line_of(score(ASSIGNMENT, wrong), "training")
    assert (line.points, line.state) == (0.0, "decided")


def test_what_was_measured_under_another_name_gives_no_points() -> None:
    item = replace(ASSIGNMENT.rubric[1], measured="beauty")
    line = score(replace(ASSIGNMENT, rubric=(item,)), PERFECT).lines[0]
    assert (line.points, line.state) == (None, "not_run")


def test_each_item_is_decided_by_the_training_of_its_own_model() -> None:
    first = ASSIGNMENT.rubric[1]
    second = replace(first, id="second", measured="second_accuracy")
    better = TrainedModel(training=replace(PERFECT.training, accuracy=0.0, interval=(0.0, 0.01)))
    evidence = replace(PERFECT, further={"second_accuracy": better})
    own, other = score(replace(ASSIGNMENT, rubric=(first, second)), evidence).lines
    assert (own.points, other.points) == (first.points, 0.0)
    claimed = replace(evidence, claim=Claim(0.9, "cell 1"), shown_epochs=90)
    assert score(replace(ASSIGNMENT, rubric=(second,)), claimed).lines[0].points == 0.0, "of the first model"


# --- what cannot be graded ------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [GradeStatus.REFUSED, GradeStatus.ENGINE_ERROR])
def test_what_cannot_be_graded_has_no_total_and_no_zeros(status: GradeStatus) -> None:
    evidence = replace(PERFECT, status=status.value, reason="homework.py:3 is not valid Python.", findings=())
    found = score(ASSIGNMENT, evidence, edits=[mark("essay", 4)])
    assert (found.status, found.total, found.decided) == (status, None, 5.0)
    assert found.reason == "homework.py:3 is not valid Python."
    assert [line.points for line in found.lines] == [None, None, 4.0]
    assert found.awaiting == ("model", "training")
    for line in found.lines[:2]:
        assert "homework.py:3 is not valid Python." in line.reason


def test_an_engine_error_counts_no_findings() -> None:
    found = score(ASSIGNMENT, replace(PERFECT, status="engine_error"))
    assert [line.points for line in found.lines] == [None, None, None]


def test_an_unknown_status_is_our_fault() -> None:
    with pytest.raises(EngineError, match="has the status 'fine', which does not exist"):
        score(ASSIGNMENT, replace(PERFECT, status="fine"))


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        ((Role.REPORT,), "400101204_homework.pdf is missing: the total is withheld."),
        (
            (Role.CHECKPOINT, Role.REPORT),
            "the checkpoint file and 400101204_homework.pdf are missing: the total is withheld.",
        ),
    ],
)
def test_a_missing_file_withholds_the_total_alone(missing: tuple[Role, ...], reason: str) -> None:
    found = score(ASSIGNMENT, replace(PERFECT, missing=missing))
    assert (found.status, found.total, found.reason) == (GradeStatus.INCOMPLETE, None, reason)
    assert found.lines == score(ASSIGNMENT, PERFECT).lines
    assert found.decided == 27.0


def test_missing_code_leaves_nothing_to_check() -> None:
    found = score(ASSIGNMENT, replace(PERFECT, missing=(Role.CODE,), findings=()))
    assert found.reason == "400101204_homework.py or .ipynb is missing: the total is withheld."
    assert found.awaiting == ("model", "training", "essay")
    assert found.lines[0].reason == "No code was handed in, so there is nothing to check."


def test_a_file_given_by_itself_is_not_incomplete() -> None:
    found = score(ASSIGNMENT, replace(PERFECT, missing=(Role.REPORT,), partial=True))
    assert (found.status, found.total) == (GradeStatus.GRADED, 27.0)


def test_evidence_about_another_assignment_is_refused() -> None:
    with pytest.raises(UsageError, match="the evidence is about 'other', not 'small'"):
        score(ASSIGNMENT, replace(PERFECT, assignment_id="other"))


# --- people ---------------------------------------------------------------------------------------------

MINUTES = iter(range(10_000))


Made = TypeVar("Made", bound=Edit)


def decision(kind: type[Made], **given: Any) -> Made:
    """An edit by ta1, a minute after the one before."""
    shared = {"who": "ta1", "why": "The handout was wrong.", "student_id": "400101204"}
    return kind(when=NOW + timedelta(minutes=next(MINUTES)), **shared | given)


def rule(*, counts: bool = False, digest: str | None = None) -> Ruled:
    return decision(Ruled, counts=counts, digest=digest)


def mark(target: str, points: float | None, **more: Any) -> Marked:
    return decision(Marked, target=target, points=points, **more)


def waiver(check: str, *, lifted: bool = False) -> Waived:
    return decision(Waived, check=check, lifted=lifted, student_id=None)


def test_a_mark_decides_its_line() -> None:
    found = score(ASSIGNMENT, PERFECT, edits=[mark("essay", 3.5, comment="Well argued.")])
    assert (found.total, found.decided, found.awaiting) == (30.5, 32.0, ())
    essay = line_of(found, "essay")
    assert (essay.reason, essay.comments) == ("Marked by a person.", ("Well argued.",))
    assert [(edit.who, edit.old, edit.new) for edit in essay.edits] == [("ta1", None, 3.5)]


def test_a_mark_of_zero_is_a_mark() -> None:
    found = score(ASSIGNMENT, PERFECT, edits=[mark("essay", 0)])
    assert (found.total, found.awaiting) == (27.0, ())


def test_marks_of_other_students_do_not_count() -> None:
    assert score(ASSIGNMENT, PERFECT, edits=[mark("essay", 3, student_id="other")]).awaiting == ("essay",)


def test_the_last_mark_counts_and_all_are_kept() -> None:
    undecided = evidence_with(finding("scale", Status.ERRORED, Blame.ENGINE))
    edits = [mark("model", 9.0), mark("model", 11.5, who="ta2", why="Seen in office hours.")]
    found = score(ASSIGNMENT, undecided, edits=edits)
    model = line_of(found, "model")
    assert (model.points, model.state, model.floor) == (11.5, "decided", None)
    assert model.reason == "Changed by a person."
    assert [(edit.who, edit.old, edit.new) for edit in model.edits] == [("ta1", None, 9), ("ta2", 9, 11.5)]
    assert len(model.components) == 2
    assert found.total == 26.5


def test_a_mark_that_is_taken_back_leaves_what_the_evidence_says() -> None:
    edits = [mark("training", 4), mark("training", None), mark("essay", 5), mark("essay", None)]
    found = score(ASSIGNMENT, PERFECT, edits=edits)
    assert (found.total, found.awaiting) == (27.0, ("essay",))
    assert [(edit.old, edit.new) for edit in line_of(found, "training").edits] == [(15, 4), (4, 15)]


def test_a_mark_beyond_what_the_rubric_gives_now_is_marked_again() -> None:
    essay = replace(ASSIGNMENT.rubric[2], points=3)
    smaller = replace(ASSIGNMENT, rubric=(*ASSIGNMENT.rubric[:2], essay))
    line = line_of(score(smaller, PERFECT, edits=[mark("essay", 5)]), "essay")
    assert (line.points, line.state) == (None, "awaiting")
    assert (
        line.reason == "5 points were given for 'essay', which now has 0 to 3: a person must mark it again."
    )


def test_what_the_rubric_no_longer_has_is_named_and_costs_nothing() -> None:
    edits = [mark("gone", 5), waiver("old_check"), mark("essay", 1)]
    assert score(ASSIGNMENT, PERFECT, edits=edits).total == 28.0
    assert stray_targets(ASSIGNMENT, edits) == ("gone", "old_check")


def test_a_chosen_comment_reads_as_the_bank_has_it_today() -> None:
    remarks = (("cite", "Name yuor sources."), ("gone", "As it was."))
    today = replace(ASSIGNMENT, remarks=(Remark("cite", "Name your sources."),))
    found = score(today, PERFECT, edits=[mark("essay", 1, remarks=remarks, comment="Else fine.")])
    assert line_of(found, "essay").comments == ("Name your sources.", "As it was.", "Else fine.")


PARTED = replace(
    ASSIGNMENT,
    rubric=(
        *ASSIGNMENT.rubric[:2],
        replace(ASSIGNMENT.rubric[2], parts=(RubricPart("intro", "Intro", 2), RubricPart("main", "Main", 3))),
    ),
)


def test_an_item_in_parts_is_decided_when_all_parts_are() -> None:
    first, second = mark("essay.intro", 1.5), mark("essay.main", 3, who="ta2", comment="Good.")
    half = score(PARTED, PERFECT, edits=[first])
    line = line_of(half, "essay")
    assert (line.points, line.floor, line.state) == (None, 1.5, "awaiting")
    assert line.reason == "1 of 2 parts are marked." and half.total == 27
    whole = score(PARTED, PERFECT, edits=[first, second])
    line = line_of(whole, "essay")
    assert (line.points, line.reason, whole.total) == (4.5, "Marked by a person.", 31.5)
    assert [(part.points, part.comments) for part in line.parts] == [(1.5, ()), (3, ("Good.",))]
    assert [(edit.part, edit.new) for edit in line.edits] == [("intro", 1.5), ("main", 3)]


def test_a_mark_of_a_whole_item_that_got_parts_is_stray() -> None:
    assert score(PARTED, PERFECT, edits=[mark("essay", 4)]).awaiting == ("essay",)
    assert stray_targets(PARTED, [mark("essay", 4)]) == ("essay",)


# --- waivers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "found",
    [
        finding("scale", Status.FAILED, Blame.STUDENT),
        finding("scale", Status.SKIPPED, Blame.STUDENT),
        finding("scale", Status.ERRORED, Blame.INSTRUCTOR),
    ],
)
def test_a_waived_check_counts_as_passed(found: Finding) -> None:
    waived = score(ASSIGNMENT, evidence_with(found), edits=[waiver("scale")])
    model = line_of(waived, "model")
    assert (model.points, waived.total) == (12, 27)
    assert "'scale' counts as passed for the whole class (The handout was wrong)." in (
        model.components[0].reason
    )
    assert dict(waived.waived) == {"scale": Waiver("ta1", "The handout was wrong")}


def test_a_check_that_left_no_finding_can_be_waived() -> None:
    silent = replace(PERFECT, findings=tuple(one for one in ALL if one.check != "oracle"))
    assert line_of(score(ASSIGNMENT, silent), "model").points is None
    found = score(ASSIGNMENT, silent, edits=[waiver("oracle")])
    assert line_of(found, "model").points == 12


def test_what_was_folded_under_a_waived_check_stands_by_itself() -> None:
    """A failure stays one; what was not tried because of it is unknown, which is never a zero."""
    failed = replace(finding("shape", Status.FAILED, Blame.STUDENT), because="oracle")
    untried = replace(finding("scale", Status.SKIPPED, Blame.STUDENT), because="oracle")
    evidence = evidence_with(finding("oracle", Status.FAILED, Blame.STUDENT), failed, untried)
    assert line_of(score(ASSIGNMENT, evidence), "model").points == 4
    counted = with_waived(ASSIGNMENT, evidence, {"oracle": Waiver("ta1", "It was wrong")})
    found = {one.check: one for one in counted.findings}
    assert found["shape"] == replace(failed, because=None)
    assert (found["scale"].status, found["scale"].because) == (Status.ERRORED, None)
    line = line_of(score(ASSIGNMENT, evidence, edits=[waiver("oracle")]), "model")
    assert (line.points, line.floor) == (None, 8)
    line = line_of(score(ASSIGNMENT, evidence_with(failed), edits=[waiver("oracle")]), "model")
    assert line.points == 10


def test_a_waiver_takes_nothing_from_the_other_checks_and_can_be_taken_back() -> None:
    evidence = evidence_with(
        finding("scale", Status.FAILED, Blame.STUDENT), finding("logits", Status.FAILED, Blame.STUDENT)
    )
    edits = [waiver("scale")]
    assert line_of(score(ASSIGNMENT, evidence, edits=edits), "model").points == 8
    edits.append(waiver("scale", lifted=True))
    assert score(ASSIGNMENT, evidence, edits=edits).lines == score(ASSIGNMENT, evidence).lines


def test_a_forbidden_part_costs_its_points_whatever_is_waived() -> None:
    uses = (ForbiddenUse("timm", "timm.x", Place("homework.py", 2), ("ViT",)),)
    evidence = replace(PERFECT, forbidden=uses)
    found = score(ASSIGNMENT, evidence, edits=[waiver("scale")])
    assert line_of(found, "model").points == 0


# --- the rule on missing files --------------------------------------------------------------------------


INCOMPLETE = replace(PERFECT, missing=(Role.REPORT,))


def test_the_rule_makes_the_total_zero_and_closes_it() -> None:
    found = score(ASSIGNMENT, INCOMPLETE, edits=[rule()])
    assert (found.status, found.total, found.decided) == (GradeStatus.INCOMPLETE, 0, 32)
    assert found.closed and found.awaiting == () and found.not_run == ()
    assert found.reason == "400101204_homework.pdf is missing: 0 points (The handout was wrong)."
    assert [(edit.who, edit.old, edit.new) for edit in found.edits] == [("ta1", None, 0)]
    assert line_of(found, "model").points == 12, "what was found out is shown all the same"


def test_the_rule_can_be_lifted_and_the_last_word_counts() -> None:
    edits = [rule(), rule(counts=True), mark("essay", 2)]
    found = score(ASSIGNMENT, INCOMPLETE, edits=edits)
    assert (found.total, found.closed) == (29, False)
    assert "the total counts all the same" in found.reason
    assert score(ASSIGNMENT, INCOMPLETE, edits=[*edits, rule()]).total == 0


def test_the_rule_is_about_the_files_that_people_saw() -> None:
    """What comes later is judged anew; a rule of an older version names no files."""
    seen = replace(INCOMPLETE, submission_digest="seen")
    ruled = rule(digest="seen")
    assert score(ASSIGNMENT, seen, edits=[ruled]).total == 0
    later = score(ASSIGNMENT, replace(INCOMPLETE, submission_digest="later"), edits=[ruled])
    assert (later.total, later.closed, later.edits) == (None, False, ())
    lifted = rule(counts=True, digest="later")
    assert score(ASSIGNMENT, seen, edits=[ruled, lifted]).total == 0
    assert score(ASSIGNMENT, seen, edits=[ruled, rule(counts=True)]).total == 27


REFUSED = replace(
    PERFECT, status="refused", reason="homework.py:3: is not Python.", findings=(), submission_digest="ab"
)
FAILED = replace(REFUSED, status="engine_error", reason="The grader failed.")
NO_CODE = replace(PERFECT, missing=(Role.CODE,), findings=())


def test_what_was_refused_can_be_closed() -> None:
    assert score(ASSIGNMENT, REFUSED).total is None
    found = score(ASSIGNMENT, REFUSED, edits=[rule(digest="ab")])
    assert (found.status, found.total, found.closed, found.awaiting) == (GradeStatus.REFUSED, 0, True, ())
    assert found.reason == "homework.py:3: is not Python. No grade: The handout was wrong."


@pytest.mark.parametrize(
    ("evidence", "why"),
    [(REFUSED, "Nothing in the code could be graded, "), (NO_CODE, "No code was handed in, ")],
)
def test_what_people_mark_counts_where_the_rule_is_lifted(evidence: Evidence, why: str) -> None:
    """What nobody can judge gives no points; what people mark awaits their marks, before or after."""
    lifted = rule(counts=True, digest=evidence.submission_digest)
    found = score(ASSIGNMENT, evidence, edits=[lifted])
    assert (found.total, found.decided, found.awaiting, found.closed) == (0, 27, ("essay",), False)
    model = line_of(found, "model")
    assert (model.points, model.state) == (0, "decided")
    assert model.reason == f"{why}so this gives no points."
    for edits in ([mark("essay", 4), lifted], [lifted, mark("essay", 4)]):
        found = score(ASSIGNMENT, evidence, edits=edits)
        assert (found.total, found.decided, found.awaiting) == (4, 32, ())
    given = score(ASSIGNMENT, evidence, edits=[mark("model", 6), mark("essay", 4), lifted])
    assert given.total == 10, "a person's points outweigh the lack of code"


@pytest.mark.parametrize("evidence", [REFUSED, FAILED])
def test_marks_on_every_item_need_no_rule(evidence: Evidence) -> None:
    marks = [mark("model", 6), mark("essay", 4)]
    found = score(ASSIGNMENT, evidence, edits=marks)
    assert (found.total, found.awaiting) == (None, ("training",))
    found = score(ASSIGNMENT, evidence, edits=[*marks, mark("training", 0)])
    assert (found.total, found.decided, found.awaiting) == (10, 32, ())
    assert found.reason.endswith("People gave the points of every item.")
    assert score(ASSIGNMENT, evidence, edits=[*marks, mark("training", 0), mark("model", None)]).total is None


def test_a_missing_file_waits_for_the_rule_whatever_is_marked() -> None:
    assert score(ASSIGNMENT, INCOMPLETE, edits=[mark("essay", 4)]).total is None


def test_a_fault_of_the_grader_is_nobodys_zero() -> None:
    for counts in (False, True):
        found = score(ASSIGNMENT, FAILED, edits=[rule(counts=counts, digest="ab")])
        assert (found.total, found.closed, line_of(found, "model").points) == (None, False, None)


def test_nothing_handed_in_is_a_zero_by_rule_alone() -> None:
    absent = replace(NO_CODE, absent=True, missing=(Role.CODE, Role.REPORT))
    assert score(ASSIGNMENT, absent).total is None
    found = score(ASSIGNMENT, absent, edits=[rule()])
    assert (found.status, found.total) == (GradeStatus.INCOMPLETE, 0)
    assert found.reason == "Nothing was handed in: 0 points (The handout was wrong)."


def test_a_zero_by_rule_is_one_however_late_it_is() -> None:
    """Nobody has to look up by how much something is late that gives no points."""
    late = replace(INCOMPLETE, delivery=Delivery(marked_late=True))
    ruled = replace(ASSIGNMENT, late=LatePolicy(points_per_day=1))
    record = score(ruled, late, edits=[rule()]).late
    assert record is not None and record.total_after == 0


# --- a file that was set aside --------------------------------------------------------------------------


DOCX = replace(INCOMPLETE, refused_files=(RefusedFile("report.docx", "It was not asked for."),))


def test_an_accepted_file_is_the_report() -> None:
    found = score(ASSIGNMENT, DOCX, edits=[decision(Accepted, file="report.docx")])
    assert (found.status, found.total, found.awaiting) == (GradeStatus.GRADED, 27, ("essay",))
    assert found.accepted is not None and found.accepted.file == "report.docx"


@pytest.mark.parametrize(
    ("evidence", "names"),
    [
        (DOCX, ["other.docx"]),
        (DOCX, ["report.docx", ""]),
        (replace(DOCX, refused_files=()), ["report.docx"]),
    ],
    ids=["another file", "taken back", "the file is gone"],
)
def test_a_file_that_is_not_accepted_is_none(evidence: Evidence, names: list[str]) -> None:
    edits = [decision(Accepted, file=name or None) for name in names]
    found = score(ASSIGNMENT, evidence, edits=edits)
    assert (found.status, found.total, found.accepted) == (GradeStatus.INCOMPLETE, None, None)


def test_only_the_report_is_there_by_it() -> None:
    bare = replace(DOCX, missing=(Role.CODE, Role.REPORT), findings=())
    accepted = decision(Accepted, file="report.docx")
    assert score(ASSIGNMENT, bare, edits=[accepted]).reason == (
        "400101204_homework.py or .ipynb is missing: the total is withheld."
    )
    lifted = rule(counts=True)
    assert score(ASSIGNMENT, bare, edits=[accepted, lifted, mark("essay", 5)]).total == 5


def test_the_rule_means_nothing_once_everything_is_there() -> None:
    assert score(ASSIGNMENT, PERFECT, edits=[rule()]) == score(ASSIGNMENT, PERFECT)


LOSS = RubricItem(
    "training",
    "Training",
    15,
    measured="loss",
    threshold=2.0,
    scale=Scale(lower_is_better=True, is_share=False),
    breakpoints=((1.0, 15), (2.0, 9), (4.0, 0)),
)


def loss_line(value: float | None, **changes: Any) -> ScoreLine:
    training = Training(TrainingOutcome.COMPLETED, value=value, interval=(0.5, 5.0), counted="after `fit()`")
    evidence = replace(PERFECT, measure="loss", training=replace(training, **changes))
    return measured_line(LOSS, evidence)


def test_of_a_loss_less_is_better() -> None:
    """The points fall as it rises; nothing is given beyond the worst breakpoint."""
    values = (0.3, 1.0, 1.5, 2.0, 3.0, 4.0, 9.0)
    assert [loss_line(value).points for value in values] == [15, 15, 12, 9, 4.5, 0, 0]
    assert loss_line(1.5).reason == (
        "loss: 1.5 on hidden data, where lower is better (after `fit()`; 95 % interval: 0.5 to 5); 2 is "
        "asked for."
    )
    assert loss_line(None).state is LineState.AWAITING and loss_line(math.nan).points is None


def test_near_what_is_asked_for_seeds_decide_a_loss_too() -> None:
    """Of several trainings the better end of the interval counts; far apart, a person decides."""
    assert loss_line(2.5, runs=(2.5, 2.5), interval=(1.9, 3.2)).points == 6.75, "it is not near"
    near = loss_line(2.05, runs=(2.0, 2.05, 2.1), interval=(1.9, 2.2))
    assert near.points == 9 and "which the interval reaches" in near.reason
    assert loss_line(2.05, interval=(1.9, 2.2)).points == pytest.approx(8.78, abs=0.01)
    wide = loss_line(2.0, runs=(1.0, 2.0, 3.0))
    assert wide.points is None and wide.floor == 4.5 and "1 to 3" in wide.reason
    unfinished = (UnfinishedRun(2, TrainingOutcome.FAILED, "It raised ValueError."),)
    broken = loss_line(1.5, runs=(1.4, 1.6), unfinished=unfinished)
    assert broken.points is None and broken.floor == 0


def test_an_objection_leaves_a_loss_to_a_person() -> None:
    """As of an accuracy."""
    assert loss_line(1.0, objections=("It is another model.",)).state is LineState.AWAITING
