"""What the course allows, flags or forbids: from the check's word to the finding."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.course.assignment_file import read_assignment
from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.domain.errors import CourseError
from grader.domain.evidence import Blame, Finding, Status
from grader.judge.course_code import CourseCode, course_code
from grader.judge.examination import Checks, run_pytest
from grader.judge.student import Student
from grader.judge.verdict import PolicyNote
from grader.kit import Mismatch

SENTENCE = "The positions are fixed; the handout asks for learnable ones."


def student(assignment: Assignment, **policies: str) -> Student:
    """A student whose code is never asked for anything."""

    def none() -> Any:
        raise AssertionError("no worker is needed")

    return Student(none, Program("homework.py"), replace(assignment, policies=policies), seed=1)


def test_allowed_is_nothing_to_speak_of(assignment: Assignment) -> None:
    owner = student(assignment, fixed_positions="allow")
    owner.policy("fixed_positions", SENTENCE, "Learn them.")
    assert owner.notes == []


def test_flagged_goes_on_and_is_noted(assignment: Assignment) -> None:
    owner = student(assignment, fixed_positions="flag")
    owner.policy("fixed_positions", SENTENCE, "Learn them.")
    assert owner.notes == [PolicyNote("fixed_positions", False, SENTENCE, "Learn them.")]


def test_advised_goes_on_and_is_told_with_its_hint(assignment: Assignment) -> None:
    owner = student(assignment, fixed_positions="advise")
    owner.policy("fixed_positions", SENTENCE, "Learn them.")
    assert owner.notes == [PolicyNote("fixed_positions", True, SENTENCE, "Learn them.")]


def test_forbidden_is_a_mismatch_of_that_name(assignment: Assignment) -> None:
    owner = student(assignment, fixed_positions="forbid")
    with pytest.raises(Mismatch) as caught:
        owner.policy("fixed_positions", SENTENCE, "Learn them.")
    found = caught.value
    assert (found.message, found.hint, found.diagnosis) == (SENTENCE, "Learn them.", "fixed_positions")
    assert owner.notes == []


def test_a_policy_that_the_file_lacks_is_the_instructors_to_add(assignment: Assignment) -> None:
    with pytest.raises(CourseError) as caught:
        student(assignment, other="flag").policy("fixed_positions", SENTENCE)
    assert str(caught.value) == (
        "assignment.toml: [policies] has no 'fixed_positions', which a check asks for. "
        'Add fixed_positions = "allow", "advise", "flag" or "forbid".'
    )


# --- from a check to its finding ------------------------------------------------------------------------

CHECKS = """
import pytest

from grader.kit import Mismatch

pytestmark = pytest.mark.component("Doubler")


def test_positions(student):
    \"""Positions are learned.\"""
    student.policy("positions", "The positions are fixed.", "Learn them.")


def test_line(student):
    \"""The policy says what to look for.\"""
    student.policy("stem", "The stem is odd.", look_for="return")


def test_nothing(student):
    \"""Nothing is odd.\"""


@pytest.mark.parametrize("case", [1, 2, 3])
def test_cases(student, case):
    \"""Only one case is odd, in two ways.\"""
    if case == 2:
        student.policy("stem", "The stem is convolutional.")
        student.policy("positions", "The positions are fixed.")


def test_flagged_and_wrong(student):
    \"""It is odd, and then it fails.\"""
    student.policy("positions", "The positions are fixed.")
    assert False, "It is wrong all the same."


def test_unknown(student):
    \"""The file does not say.\"""
    student.policy("unknown", "It is odd.")


def test_no_pattern(student):
    \"""It is wrong, at a place that cannot be looked for.\"""
    raise Mismatch("It is wrong.", look_for="?? here")


def test_flag_without_a_pattern(student):
    \"""It is odd, at a place that cannot be looked for.\"""
    student.policy("stem", "The stem is odd.", look_for="?? here")


def test_no_sentence(student):
    \"""What it caught is handed on as it is.\"""
    raise Mismatch(ValueError("It is wrong."))
"""
HOMEWORK = """
import torch


class Doubler(torch.nn.Module):
    def forward(self, x):
        return x
"""


@pytest.fixture
def findings(
    tiny_course: Path, analyzed: Callable[[str], Program], spawn: Callable[[], Any]
) -> Callable[..., dict[str, Finding]]:
    """The findings of the checks above, by check, under some policies."""
    folder = tiny_course / "reference" / "tiny"
    file = folder / "checks" / "test_doubler.py"
    file.write_text(CHECKS, encoding="utf-8")
    program = analyzed(HOMEWORK)
    program = replace(program, defined={"Doubler": program.statements[-1].place})

    def found(**policies: str) -> dict[str, Finding]:
        assignment = replace(read_assignment(folder), policies=policies)
        kept: list[Finding] = []

        def use(checks: Checks) -> None:
            owner = Student(spawn, program, assignment, seed=1)
            try:
                kept.extend(checks.examined(owner).findings)
            finally:
                owner.close()

        run_pytest([file], assignment, None, use)
        return {finding.check: finding for finding in kept}

    return found


def test_a_flag_stands_in_the_finding_that_passed(findings: Callable[..., dict[str, Finding]]) -> None:
    """With the policy's name and the place; what another check flagged is forgotten."""
    found = findings(positions="flag", stem="flag")
    positions = found["positions"]
    assert (positions.status, positions.blame) == (Status.PASSED, None)
    assert (positions.policy, positions.message) == ("positions", "The positions are fixed.")
    assert positions.where == "homework.py:6"
    assert found["line"].where == "homework.py:7", "what was looked for"
    nothing = found["nothing"]
    assert (nothing.status, nothing.policy, nothing.message) == (Status.PASSED, None, "")
    cases = found["cases"]
    assert (cases.status, cases.policy) == (Status.PASSED, "stem")
    assert cases.message == "The stem is convolutional. The positions are fixed."
    wrong = found["flagged_and_wrong"]
    assert (wrong.status, wrong.diagnosis) == (Status.FAILED, None)
    assert wrong.message == "It is wrong all the same."


def test_advice_stands_in_the_finding_that_passed(findings: Callable[..., dict[str, Finding]]) -> None:
    """No person has to look at it; what a person looks at goes before advice."""
    found = findings(positions="advise", stem="advise")
    positions = found["positions"]
    assert (positions.status, positions.blame, positions.policy) == (Status.PASSED, None, "positions")
    assert (positions.message, positions.hint) == ("The positions are fixed.", "Learn them.")
    assert positions.is_advice and positions.has_remark and not positions.flagged
    assert positions.where == "homework.py:6"
    assert not found["nothing"].has_remark
    assert found["cases"].message == "The stem is convolutional. The positions are fixed."
    assert found["flagged_and_wrong"].status is Status.FAILED
    mixed = findings(positions="advise", stem="flag")["cases"]
    assert mixed.flagged and not mixed.is_advice
    assert (mixed.policy, mixed.message) == ("stem", "The stem is convolutional.")


def test_allowed_and_forbidden_make_the_findings_they_should(
    findings: Callable[..., dict[str, Finding]],
) -> None:
    found = findings(positions="forbid", stem="allow")
    positions = found["positions"]
    assert (positions.status, positions.blame) == (Status.FAILED, Blame.STUDENT)
    assert (positions.diagnosis, positions.hint) == ("positions", "Learn them.")
    assert found["cases"].diagnosis == "positions"
    unknown = found["unknown"]
    assert (unknown.status, unknown.blame) == (Status.ERRORED, Blame.INSTRUCTOR)
    assert "assignment.toml: [policies] has no 'unknown', which a check asks for." in unknown.message


def test_a_check_that_says_it_wrongly_breaks_alone(findings: Callable[..., dict[str, Finding]]) -> None:
    """The judge would end, and the whole submission be without a grade."""
    found = findings(positions="flag", stem="flag")
    for check in ("no_pattern", "flag_without_a_pattern", "no_sentence"):
        assert (found[check].status, found[check].blame) == (Status.ERRORED, Blame.INSTRUCTOR)
        assert not found[check].flagged
    assert "it cannot be looked for: `?? here` is not a name" in found["no_pattern"].message
    assert found["positions"].status is Status.PASSED


# --- where a mistake is likely to stand, in its file ----------------------------------------------------

MISTAKE = '"""It is tripled.\n\nMultiply by 2.{}"""\n\nclass Doubler(Doubler):\n    pass\n'


@pytest.fixture
def code_with(tiny_course: Path) -> Callable[[str], CourseCode]:
    """The course's code, where the docstring of the mistake ends in some text."""
    folder = tiny_course / "reference" / "tiny"

    def of(end: str) -> CourseCode:
        (folder / "mistakes" / "tripled.py").write_text(MISTAKE.format(end), encoding="utf-8")
        return course_code(read_assignment(folder))

    return of


@pytest.mark.parametrize(
    ("end", "names"),
    [
        ("", ()),
        ("\n\nLook for: forward_pass", ("forward_pass",)),
        ("\n\nLook for: scale, softmax,\nrearrange.", ("scale", "softmax", "rearrange")),
        ("\n\n    Look for:   `to_qkv`  ", ("to_qkv",)),
    ],
)
def test_look_for_is_no_sentence_for_the_student(
    code_with: Callable[[str], CourseCode], end: str, names: tuple[str, ...]
) -> None:
    """It names what to search for; message and hint stay what they are."""
    mistake = code_with(end).mistakes["tripled"]
    assert mistake.look_for == names
    assert (mistake.message, mistake.hint) == ("It is tripled.", "Multiply by 2.")


def test_look_for_needs_a_sentence_before_it(tiny_course: Path) -> None:
    """A mistake that says nothing to the student is not a mistake file."""
    folder = tiny_course / "reference" / "tiny"
    text = '"""Look for: scale"""\n\nclass Doubler(Doubler):\n    pass\n'
    (folder / "mistakes" / "tripled.py").write_text(text, encoding="utf-8")
    with pytest.raises(CourseError, match=r"mistakes/tripled\.py: it has no docstring"):
        course_code(read_assignment(folder))


def test_a_recognized_mistake_points_at_the_line_that_its_file_names(
    composed: Callable[..., str], examined: Callable[..., Any]
) -> None:
    """Not at the class, when the student's own words tell where it is."""
    part = """
class PreNorm(PreNorm):
    def forward(self, x, **kwargs):
        inner = self.fn(x, **kwargs)
        return self.norm(inner)
"""
    text = composed(part, after=True)
    found = {f.check: f for f in examined(text, components=["PreNorm"]).findings}
    named = [f for f in found.values() if f.diagnosis == "post_norm"]
    assert named
    line = text[: text.index("        inner = self.fn(x")].count("\n") + 1
    assert {f.where for f in named} == {f"homework.py:{line}"}
