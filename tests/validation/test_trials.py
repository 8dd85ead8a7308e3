"""Validating an assignment: what is run on which version, in the hosts of grading, and what it means."""

from dataclasses import replace
from pathlib import Path

import pytest

from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import HomeworkVersion, Kind, homework_versions, mistake_pairs
from grader.course.locate import located_course
from grader.domain.assignment import Assignment, CheckSpec
from grader.domain.errors import CourseError, UsageError
from grader.domain.evidence import Blame, Finding, FindingKind, Status
from grader.validation.mutation_report import mutation_report
from grader.validation.trials import Trial, TrialOutcome, chosen, outcomes, seed_of, trials

SOURCE = """
class Inner: ...
class Outer:
    def __init__(self): self.inner = Inner()
class Alone: ...
def helper(): return Outer()
def run(model): return helper()
def draw(model): ...
"""


def version(kind: Kind, name: str, *parts: str) -> HomeworkVersion:
    """A version of some parts."""
    return HomeworkVersion(kind, name, f"{name}.py", SOURCE, parts)


def finding(check: str, component: str, status: Status, **more: object) -> Finding:
    """What a check found."""
    return Finding(check, component, check, status, **more)  # type: ignore[arg-type]


@pytest.fixture
def tiny(tiny_course: Path) -> Assignment:
    """The small assignment."""
    return read_assignment(tiny_course / "reference" / "tiny")


def test_what_is_run_on_which_version(tiny: Assignment) -> None:
    """All on one mistake of each component; on the others, their own."""
    [doubler] = tiny.components
    kinds = {"Inner": "class", "Outer": "class", "Alone": "class", "run": "function", "draw": "function"}
    assignment = replace(
        tiny, components=tuple(replace(doubler, name=name, kind=kind) for name, kind in kinds.items())
    )
    known = [
        version(Kind.REFERENCE, "reference"),
        version(Kind.TEMPLATE, "template"),
        version(Kind.FORM, "form", "Alone"),
        version(Kind.FORM, "loop", "run"),
        version(Kind.MISTAKE, "first", "Inner"),
        version(Kind.MISTAKE, "second", "Inner"),
        version(Kind.MISTAKE, "drawn", "draw"),
        version(Kind.MISTAKE, "redrawn", "draw"),
    ]
    planned = trials(assignment, known)
    assert all(trial.components is None for trial in trials(assignment, known, thorough=True))
    assert {trial.version.name: trial.components for trial in planned} == {
        "reference": None,
        "template": None,
        "form": ("Alone", "submission"),
        "loop": ("run", "submission"),
        "first": None,
        "second": ("Inner", "submission"),
        "drawn": None,
        "redrawn": ("draw", "submission"),
    }


def test_the_seed_is_the_versions_own() -> None:
    one, other = version(Kind.FORM, "a"), replace(version(Kind.FORM, "b"), source="x = 1")
    assert seed_of(one) == seed_of(version(Kind.FORM, "c")) != seed_of(other)


def test_a_pattern_chooses_by_name() -> None:
    every = [version(Kind.FORM, "one_form"), version(Kind.MISTAKE, "one_mistake")]
    assert [each.name for each in chosen(every, "*_mistake")] == ["one_mistake"]
    assert chosen(every, None) == tuple(every)
    with pytest.raises(UsageError, match="no version has such a name"):
        chosen(every, "mistake")


def test_the_hosts_of_grading_judge_the_versions(
    tiny: Assignment, tiny_course: Path, on_warm_hosts: None
) -> None:
    """Each in a worker of its own; only the checks that were asked for; none that fails stops the others."""
    course = located_course(tiny_course, environment={})
    every = homework_versions(tiny)
    unreadable = HomeworkVersion(Kind.FORM, "unreadable", "unreadable.py", "def (", ("Doubler",))
    told: list[str] = []
    found = outcomes(
        course,
        tiny,
        (*trials(tiny, every), Trial(every[0], ("submission",)), Trial(unreadable)),
        jobs=2,
        report=lambda outcome: told.append(outcome.version.name),
    )
    names = ["reference", "template", "added", "tripled", "reference", "unreadable"]
    assert [outcome.version.name for outcome in found] == names and sorted(told) == sorted(names)
    assert mutation_report(tiny, found[:4]).passed
    assert found[4].findings == () and found[4].fault == ""
    assert "unreadable could not be judged" in mutation_report(tiny, found[5:]).wrong[0]
    assert all(outcome.seconds > 0 for outcome in found)


@pytest.mark.slow
def test_a_check_that_cannot_be_loaded_is_told_in_a_sentence(tiny: Assignment, tiny_course: Path) -> None:
    mistake = tiny.folder / "mistakes" / "tripled.py"
    mistake.write_text('"""A."""\nclass Doubler(Tripler): ...\n', encoding="utf-8")
    said = r"mistakes/tripled.py:2: executing it raised NameError: name 'Tripler' is not defined\. Fix it\.$"
    with pytest.raises(CourseError, match=said):
        outcomes(located_course(tiny_course, environment={}), tiny, trials(tiny, ()), jobs=1)


def test_points_that_nobody_can_lose_are_told(tiny: Assignment) -> None:
    """A component whose checks fail neither for the template nor for a mistake."""
    passed = finding("doubler_doubles", "Doubler", Status.PASSED)
    template = TrialOutcome(version(Kind.TEMPLATE, "template"), (passed,))
    wrong = mutation_report(tiny, [template]).wrong
    assert any("Doubler carries 4 of the points, but none of its checks fails" in each for each in wrong)
    assert not any("carries 4" in each for each in mutation_report(tiny, [template], complete=False).wrong)
    failed = finding("doubler_doubles", "Doubler", Status.FAILED)
    assert mutation_report(tiny, [replace(template, findings=(failed,))]).wrong == ()


def test_the_engines_failures_are_not_the_checks(tiny: Assignment) -> None:
    """What could not be run is neither a pass nor a detection, and nobody is asked to fix the check."""
    spec = CheckSpec("doubler_doubles", "Doubler", "It doubles.", file="test_doubler.py")
    late = finding(
        spec.id, "Doubler", Status.ERRORED, blame=Blame.ENGINE, message="The checks took over 60 s."
    )
    report = mutation_report(
        tiny, [TrialOutcome(version(Kind.MISTAKE, "slow", "Doubler"), (late,))], complete=False
    )
    assert report.wrong[0] == (
        "checks/test_doubler.py: doubler_doubles could not be run on slow. The checks took over 60 s. "
        "Run it again, with fewer --jobs."
    )
    assert report.summary.startswith("mistakes 0 of 1 detected, 0 named (0 %)")


def test_a_check_that_breaks_for_a_mistake_of_another_part_costs_nothing(tiny: Assignment) -> None:
    """It is told once as broken; the mistake is detected, and does not count as one that costs others."""
    spec = CheckSpec("doubler_doubles", "Doubler", "It doubles.", file="test_doubler.py")
    own = finding("other", "Other", Status.FAILED, diagnosis="m")
    broken = finding(spec.id, "Doubler", Status.ERRORED, blame=Blame.INSTRUCTOR, message="ValueError")
    outcome = TrialOutcome(version(Kind.MISTAKE, "m", "Other"), (own, broken))
    report = mutation_report(replace(tiny, checks=(spec,)), [outcome], complete=False)
    assert report.wrong == (
        "checks/test_doubler.py: doubler_doubles breaks on m. ValueError Fix the check; --only m --debug "
        "shows what it raised.",
    )
    assert report.verdicts[0].word == "detected" and "; 0 cost another component; " in report.summary


def test_a_form_whose_check_is_skipped_loses(tiny: Assignment) -> None:
    skipped = finding("doubler_doubles", "Doubler", Status.SKIPPED, message="It could not be tried.")
    report = mutation_report(
        tiny, [TrialOutcome(version(Kind.FORM, "f", "Doubler"), (skipped,))], complete=False
    )
    assert report.summary == "forms 0 of 1 at full marks" and not report.passed


def test_a_form_says_for_what_a_person_looks_at_it(tiny: Assignment) -> None:
    """A form that is flagged has full marks; its file must say so, or it is noted."""
    flagged = finding("doubler_doubles", "Doubler", Status.PASSED, policy="odd", message="It is odd.")
    form = version(Kind.FORM, "f", "Doubler")
    for policies, notes in (((), 1), (("odd",), 0)):
        outcome = TrialOutcome(replace(form, policies=policies), (flagged,))
        report = mutation_report(tiny, [outcome], complete=False)
        assert report.passed and report.verdicts[0].word == "flagged" and len(report.notes) == notes


# --- pairs of mistakes ----------------------------------------------------------------------------------


def mistake(name: str, part: str) -> HomeworkVersion:
    """A mistake with a code of its own."""
    code = f"class {part}:\n    {name} = True\n"
    return replace(version(Kind.MISTAKE, name, part), code=code, source=SOURCE + code)


def test_pairs_meet_every_pair_of_parts_before_one_again() -> None:
    known = [
        *(mistake(f"inner_{number}", "Inner") for number in range(3)),
        *(mistake(f"outer_{number}", "Outer") for number in range(2)),
        mistake("alone", "Alone"),
        version(Kind.FORM, "form", "Alone"),
        replace(version(Kind.MISTAKE, "text", "history.csv"), changes="def history(text): ..."),
    ]
    first = mistake_pairs(known, 3)
    assert {pair.parts for pair in first} == {("Inner", "Outer"), ("Inner", "Alone"), ("Outer", "Alone")}
    every = mistake_pairs(known, 100)
    assert len({pair.planted for pair in every}) == len(every) == 3 * 2 + 3 + 2
    assert every[:3] == first == mistake_pairs(known, 3)
    for pair in every:
        assert all(f"{name} = True" in pair.source for name in pair.planted)
        assert pair.name == " + ".join(pair.planted)


@pytest.mark.parametrize(
    ("findings", "sentence"),
    [
        ([], ""),
        ([("Inner", "other_name", "")], "calls it other_name, which it is not"),
        ([("Inner", "other_name", "c0")], ""),
        ([("Alone", None, "")], "and has no mistake"),
    ],
)
def test_a_pair_is_told_as_its_two_mistakes(
    tiny: Assignment, findings: list[tuple[str, str | None, str]], sentence: str
) -> None:
    """Neither by another's name, unless folded under a cause, nor at a third part."""
    [pair] = mistake_pairs([mistake("one", "Inner"), mistake("two", "Outer")], 1)
    told = [("Inner", "one", ""), ("Outer", "two", ""), *findings]
    found = tuple(
        finding(f"c{number}", part, Status.FAILED, diagnosis=name, because=because or None)
        for number, (part, name, because) in enumerate(told)
    )
    report = mutation_report(tiny, [TrialOutcome(pair, found)], complete=False)
    assert sentence in " ".join(report.wrong) and report.passed == (not sentence)
    right = 0 if sentence else 1
    assert report.summary == f"pairs of mistakes {right} of 1 told as what they are, and nothing else"


def test_each_mistake_of_a_pair_must_be_noticed(tiny: Assignment) -> None:
    [pair] = mistake_pairs([mistake("one", "Inner"), mistake("two", "Outer")], 1)
    only = finding("c", "Inner", Status.FAILED, diagnosis="one")
    report = mutation_report(tiny, [TrialOutcome(pair, (only,))], complete=False)
    assert report.wrong == (
        "one.py and two.py: Outer passes every check beside the other mistake. Make a check notice it.",
    )


def test_messages_are_counted_without_what_is_folded(tiny: Assignment) -> None:
    head = finding("a", "Doubler", Status.FAILED, message="It is wrong.", diagnosis="m")
    folded = finding("b", "Doubler", Status.FAILED, message="It follows.", because="a")
    other = finding("c", "Doubler", Status.FAILED, message="It is wrong, too.")
    outcome = TrialOutcome(version(Kind.MISTAKE, "m", "Doubler"), (head, folded, other))
    assert mutation_report(tiny, [outcome], complete=False).summary.endswith("2.00 messages for a mistake")


def test_a_mistake_that_the_other_leaves_open_is_for_a_person(tiny: Assignment) -> None:
    """Where one cannot be decided beside the other, that is noticed, and no fault of the checks."""
    [pair] = mistake_pairs([mistake("one", "Inner"), mistake("two", "Outer")], 1)
    told = finding("a", "Inner", Status.FAILED, diagnosis="one")
    undecided = finding("b", "Outer", Status.ERRORED, kind=FindingKind.UNDECIDED, message="It cannot tell.")
    report = mutation_report(tiny, [TrialOutcome(pair, (told, undecided))], complete=False)
    assert report.passed and report.notes == ("one.py and two.py: b of Outer asks a person: It cannot tell.",)
