"""What a check on one's own machine says of the grade."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from grader.cli.verdict_view import training_in_a_line, verdict, verdict_document
from grader.domain.analyzed_program import TRAINING, ForbiddenUse, Place, Program, Script
from grader.domain.assignment import Assignment, CheckSpec, HiddenCheck
from grader.domain.evidence import Blame, Finding, FindingKind, Status
from grader.domain.formatting import SPACE
from grader.domain.program_run import Plan, Rehearsal, Stage
from grader.students.own_check import LocalCheck
from grader.students.prospect import Outcome, absent_for_training, known_points, prospect

CHECKS = (
    CheckSpec("loads", "submission", "It loads.", public=True),
    CheckSpec("a", "PreNorm", "A.", public=True),
    CheckSpec("b", "Attention", "B.", public=True),
    CheckSpec("c", "Attention", "C.", public=True),
)
HIDDEN = (
    HiddenCheck("Attention", "Attention is right.", 5, seen=True),
    HiddenCheck("Attention", "The gradient reaches the input.", 1),
)
BARE = Program("homework.py")
LINE = Place("homework.py", 408)
STAGE = Stage(LINE, None, "Adam", "", 10, 3, 0.1, 0.1)
RUNS = Plan(model="model", loops=(LINE,), rehearsal=Rehearsal((STAGE,)))


def plain(text: str) -> str:
    """A text without the spaces that keep a number and its noun on one line."""
    return text.replace(SPACE, " ")


@pytest.fixture
def small(assignment: Assignment) -> Assignment:
    """PreNorm (3 points) has one check, Attention (8 points) two, and two that students lack."""
    return replace(assignment, checks=CHECKS, hidden_checks=HIDDEN)


@pytest.fixture
def checked(small: Assignment) -> Callable[..., LocalCheck]:
    """What the checks found, but for those that fail."""

    def made(*failed: str, plan: Plan = RUNS, program: Program = BARE) -> LocalCheck:
        findings = tuple(
            Finding(
                check.id,
                check.component,
                check.title,
                Status.FAILED if check.id in failed else Status.PASSED,
                Blame.STUDENT if check.id in failed else None,
                where="homework.py:41" if check.id in failed else "",
            )
            for check in CHECKS
        )
        return LocalCheck(program, findings, 10, (), (), {"test_accuracy": plan})

    return made


def test_points_by_what_decides_them(small: Assignment) -> None:
    known = known_points(small, {"a", "b"})
    assert (known.sure, known.lost, known.hidden) == (3 + 1, 1, 6)
    assert (known.code, known.trained, known.people, known.maximum) == (50, 15, 35, 100)
    assert [(check.title, check.points) for check in known.open_checks] == [
        ("The gradient reaches the input.", 1)
    ]
    costly = known_points(small, {"a", "b", "c"}, costs={"Attention"})
    assert (costly.sure, costly.lost, costly.hidden) == (3, 8, 0)
    whole = known_points(small, {"a", "b", "c"}, costs={"model"})
    assert (whole.sure, whole.lost) == (0, 35)


def test_a_check_that_could_not_be_decided_costs_nothing(
    small: Assignment, checked: Callable[..., LocalCheck]
) -> None:
    """It is said beside it that it is not the student's fault; its points are neither sure nor lost."""
    found = checked()
    findings = tuple(
        replace(finding, status=Status.ERRORED, blame=Blame.INSTRUCTOR) if finding.check == "c" else finding
        for finding in found.findings
    )
    undecided = replace(found, findings=findings)
    known = prospect(small, undecided).points
    assert (known.sure, known.lost, known.undecided, known.hidden) == (3 + 1, 0, 1, 6)
    told = verdict_document(undecided, small)["points"]
    assert (told["lost"], told["undecided"]) == (0, 1)


def test_all_of_a_part_that_is_not_written_is_lost_for_now(
    small: Assignment, checked: Callable[..., LocalCheck]
) -> None:
    """But not of one of which something passes, and the training waits for both."""
    untried = replace(RUNS, rehearsal=None)
    for failed, (lost, hidden) in {("b", "c"): (8, 0), ("c",): (1, 6)}.items():
        found = checked(*failed, plan=untried)
        stopped = [
            replace(finding, kind=FindingKind.NOT_IMPLEMENTED if finding.check == "c" else None)
            for finding in found.findings
        ]
        known = prospect(small, replace(found, findings=tuple(stopped)))
        assert (known.points.lost, known.points.hidden) == (lost, hidden)
        assert plain(training_in_a_line(known.trainings[0], "homework.py")) == (
            "`model` (line 408) was not tried, since `Attention` does not run through yet"
        )


def test_a_check_that_fails_makes_its_part_undone(
    small: Assignment, checked: Callable[..., LocalCheck]
) -> None:
    found = checked("c")
    known = prospect(small, found)
    assert known.outcome is Outcome.CHECK_FAILS
    assert (known.done, known.not_done) == (("PreNorm",), ("Attention",))
    assert verdict(found, known) == "3 of 4 public checks pass. Begin with `Attention` (homework.py:41)."


def test_all_that_is_known_is_right(small: Assignment, checked: Callable[..., LocalCheck]) -> None:
    found = checked()
    known = prospect(small, found)
    assert known.outcome is Outcome.RIGHT
    assert plain(verdict(found, known)) == (
        "All 4 public checks pass, and the training runs: 3 epochs of `model` (line 408). 5 of 100 points "
        "are sure; the others are decided by further checks, what is measured and people."
    )
    document = verdict_document(found, small)
    assert document["exit_code"] == 0 and document["points"]["sure"] == 5.0
    assert document["training"] == {"test_accuracy": "3 epochs of `model` (line 408)"}


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (Plan(missing="no loop was found"), "but the grader would train nothing: no loop was found."),
        (
            replace(RUNS, rehearsal=Rehearsal((), fault="It raised.", where="homework.py:9")),
            "but training `model` on made-up images does not run (homework.py:9).",
        ),
    ],
)
def test_work_that_would_not_be_trained_is_not_praised(
    small: Assignment, checked: Callable[..., LocalCheck], plan: Plan, told: str
) -> None:
    found = checked(plan=plan)
    known = prospect(small, found)
    assert known.outcome is Outcome.NOT_TRAINED == 4
    assert verdict(found, known) == f"All 4 public checks pass, {told}"
    assert verdict_document(found, small)["exit_code"] == 4


def test_a_trial_that_was_not_made_is_not_claimed(
    small: Assignment, checked: Callable[..., LocalCheck]
) -> None:
    found = checked(plan=replace(RUNS, rehearsal=None))
    known = prospect(small, found)
    assert known.outcome is Outcome.RIGHT
    assert (
        "All 4 public checks pass; whether the training runs is not known: `model` (line 408) was not tried."
        in verdict(found, known)
    )


def test_what_is_not_allowed_is_no_success(small: Assignment, checked: Callable[..., LocalCheck]) -> None:
    use = ForbiddenUse("torch.nn.MultiheadAttention", "torch.nn.MultiheadAttention", LINE, ("Attention",))
    found = checked(program=Program("homework.py", forbidden=(use,)))
    known = prospect(small, found)
    assert known.outcome is Outcome.CHECK_FAILS and known.points.lost == 8
    assert "but `torch.nn.MultiheadAttention` is not allowed" in verdict(found, known)
    training = replace(use, reached_from=(TRAINING,))
    in_training = replace(found, program=Program("homework.py", forbidden=(training,)))
    weighed = prospect(small, in_training)
    assert weighed.outcome is Outcome.CHECK_FAILS and weighed.points.lost == 0, "people weigh it"
    unused = replace(found, program=Program("homework.py", forbidden=(replace(use, reached_from=()),)))
    assert prospect(small, unused).outcome is Outcome.RIGHT


@pytest.mark.parametrize(
    ("tried", "told"),
    [
        (Rehearsal((STAGE,), complete=False), "the first 3 epochs of `model` (line 408)"),
        (
            Rehearsal((), complete=False),
            "no epoch of `model` (line 408) finished within the time of the trial",
        ),
        (Rehearsal((STAGE,), other_models=2), "3 epochs of `model` (line 408), after 2 other models"),
    ],
)
def test_a_trial_in_a_line(
    small: Assignment, checked: Callable[..., LocalCheck], tried: Rehearsal, told: str
) -> None:
    found = checked(plan=replace(RUNS, rehearsal=tried))
    [training] = prospect(small, found).trainings
    assert plain(training_in_a_line(training, "homework.py")).startswith(told)


def test_a_model_that_is_built_again_is_told(small: Assignment, checked: Callable[..., LocalCheck]) -> None:
    source = (
        "model = ViT(dim=64)\nmodel = model.to('cpu')\ndef other():\n    model = ViT(dim=8)\n"
        "for lr in (1, 2):\n    model = ViT(dim=32).to('cpu')\n"
    )
    program = Program("homework.py", script=Script(model="model", model_class="ViT"))
    once = checked(program=replace(program, source={"homework.py": source.partition("for ")[0]}))
    assert [each.rebuilt for each in prospect(small, once).trainings] == [()]
    dead = replace(STAGE, loop=Place("homework.py", 2))
    plan = replace(RUNS, rehearsal=Rehearsal((dead,)))
    trained_before = checked(plan=plan, program=replace(program, source={"homework.py": source}))
    assert [each.rebuilt for each in prospect(small, trained_before).trainings] == [()]
    again = checked(program=replace(program, source={"homework.py": source}))
    [training] = prospect(small, again).trainings
    assert "it is built at line 1 and again at line 6: the last one counts" in training_in_a_line(
        training, "homework.py"
    )


@pytest.mark.parametrize("beneath", [False, True])
def test_a_library_that_the_training_needs_and_that_is_not_here_is_named(
    analyzed: Callable[[str], Program], beneath: bool
) -> None:
    """Wherever it is imported; one that nothing of the training uses is left alone."""
    line = "from no_such_library.scheduler import Falling\n"
    text = (
        "import no_other_library\nimport torch\nfrom torch import nn, optim\n"
        f"{'' if beneath else line}"
        "model = nn.Linear(4, 2)\n"
        "optimizer = optim.Adam(model.parameters())\n"
        f"{line if beneath else ''}"
        "scheduler = Falling(optimizer)\n"
        "for epoch in range(3):\n"
        "    for images, labels in train_loader:\n"
        "        optimizer.zero_grad()\n"
        "        nn.functional.cross_entropy(model(images), labels).backward()\n"
        "        optimizer.step()\n"
        "    scheduler.step()\n"
    )
    assert absent_for_training(analyzed(text)) == ("no_such_library",)
