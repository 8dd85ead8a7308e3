"""How a check ended, and whose fault it is."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from grader.domain.analyzed_program import Omission, Place, Program, Statement
from grader.domain.assignment import CheckSpec
from grader.domain.errors import CourseError, EngineError
from grader.domain.evidence import Blame, Finding, FindingKind, Status
from grader.judge.verdict import (
    PolicyNote,
    cannot_be_had,
    explained_mismatch,
    finding,
    hint_of,
    noted,
    skipped,
    worst,
)
from grader.kit import Mismatch, Undecided
from grader.protocol.link import StudentRaised, WorkerFault
from grader.protocol.replies import Loaded, Problem

SPEC = CheckSpec("attention_matches_oracle", "Attention", "Attention is right.", file="test_attention.py")


@pytest.mark.parametrize(
    ("error", "status", "blame", "diagnosis"),
    [
        (None, Status.PASSED, None, None),
        (
            Mismatch("Wrong.", hint="Fix it.", diagnosis="missing_scale"),
            Status.FAILED,
            Blame.STUDENT,
            "missing_scale",
        ),
        (AssertionError("Wrong."), Status.FAILED, Blame.STUDENT, None),
        (WorkerFault("time", "no answer", 10.0), Status.FAILED, Blame.STUDENT, "hangs"),
        (WorkerFault("death", "it was killed"), Status.FAILED, Blame.STUDENT, "dies"),
        (WorkerFault("nonsense", "?"), Status.FAILED, Blame.STUDENT, "nonsense"),
        (Undecided("cannot tell"), Status.ERRORED, Blame.INSTRUCTOR, "undecided"),
        (KeyError("secret_value_42"), Status.ERRORED, Blame.INSTRUCTOR, None),
        (ZeroDivisionError(), Status.ERRORED, Blame.INSTRUCTOR, None),
        (CourseError("no reference"), Status.ERRORED, Blame.INSTRUCTOR, None),
        (EngineError("The worker failed."), Status.ERRORED, Blame.ENGINE, None),
    ],
)
def test_blame(
    error: BaseException | None, status: Status, blame: Blame | None, diagnosis: str | None
) -> None:
    """The table of DESIGN: what a student's code does is the student's, the rest costs nobody a point."""
    found = finding(SPEC, error, where="homework.py:3", seconds=0.5)
    assert (found.status, found.blame, found.label) == (status, blame, diagnosis)
    assert (found.check, found.component, found.title) == (SPEC.id, SPEC.component, SPEC.title)
    assert bool(found.message) == (status is not Status.PASSED)
    assert "secret_value_42" not in found.message


def test_the_better_place_wins() -> None:
    """A line that raised is a better place than the component's first."""
    assert (
        finding(SPEC, Mismatch("x", where="homework.py:41"), where="homework.py:3").where == "homework.py:41"
    )
    assert finding(SPEC, Mismatch("x"), where="homework.py:3").where == "homework.py:3"


def test_pytests_rewriting_is_taken_away() -> None:
    """Of an assertion only what its author wrote is shown."""
    rewritten = AssertionError("The shapes differ.\nassert (2, 3) == (2, 4)\n  At index 1 diff: 3 != 4")
    assert finding(SPEC, rewritten).message == "The shapes differ."
    bare = AssertionError("assert 0.123 == 0.456")
    assert finding(SPEC, bare).message == SPEC.title


def test_a_time_out_names_its_limit() -> None:
    """The student reads how long was waited."""
    assert "within 10 s" in finding(SPEC, WorkerFault("time", "", 10.0)).message


def test_skipped_for_our_own_reasons_costs_nothing() -> None:
    """A check that was not tried is the student's only when the student's code is the reason."""
    assert skipped(SPEC, "It hung.").status is Status.SKIPPED
    assert skipped(SPEC, "No time.", blame=Blame.ENGINE).status is Status.ERRORED


def test_the_worst_of_a_parametrized_check_counts() -> None:
    """Ours before the student's: what could not be decided is not counted as wrong."""

    def of(error: BaseException | None) -> Finding:
        return finding(SPEC, error)

    assert worst([of(None), of(Mismatch("x")), of(None)]).status is Status.FAILED
    assert worst([of(Mismatch("x")), of(Undecided("y"))]).status is Status.ERRORED
    assert worst([of(None), of(None)]).status is Status.PASSED


def test_what_the_course_must_mend_is_told_in_its_words_and_nothing_else_is() -> None:
    """A CourseError's sentence is ours; another exception's words may hold what is hidden."""
    sentence = "assignment.toml: [policies] has no 'stem', which a check asks for."
    found = finding(SPEC, CourseError(sentence))
    assert found.message == f"The check itself failed (test_attention.py): {sentence} It costs no points."
    other = finding(SPEC, ValueError(sentence))
    assert other.message == "The check itself failed (ValueError in test_attention.py). It costs no points."
    check = compile("def check(call):\n    call()", f"checks/{SPEC.file}", "exec")
    names: dict[str, Any] = {}
    exec(check, names)  # noqa: S102
    with pytest.raises(ZeroDivisionError) as caught:
        names["check"](lambda: 1 / 0)
    assert "(ZeroDivisionError in test_attention.py:2)" in finding(SPEC, caught.value).message


STEM = PolicyNote("stem", False, "The stem is odd.")
MEANS = PolicyNote("means", True, "It is a mean of means.", "Divide once.")


def test_a_flag_is_told_only_where_the_check_passed() -> None:
    """The first policy is the diagnosis; every sentence is told, once."""
    passed = finding(SPEC, None, where="homework.py:3", seconds=0.5)
    assert noted(passed, [], "homework.py:3") == passed
    flags = [STEM, STEM, PolicyNote("positions", False, "So are they.", "Learn them.")]
    found = noted(passed, flags, "homework.py:41")
    assert (found.status, found.blame, found.label) == (Status.PASSED, None, "stem")
    assert (found.message, found.where) == ("The stem is odd. So are they.", "homework.py:41")
    assert (found.seconds, found.hint) == (0.5, "")
    for error in (Mismatch("x"), Undecided("y")):
        assert noted(finding(SPEC, error), flags, "homework.py:41") == finding(SPEC, error)


def test_what_is_noted_outlasts_the_cases_that_passed_without() -> None:
    """Of a parametrized check; and it is nothing beside a case that failed, nor advice beside a flag."""
    passed, flag, advice = (noted(finding(SPEC, None), notes, "") for notes in ([], [STEM], [MEANS]))
    for told in (flag, advice):
        assert worst([passed, told, passed]) == told
        assert worst([told, finding(SPEC, Mismatch("Wrong."))]).message == "Wrong."
    assert worst([advice, flag]) == flag


def test_advice_has_its_hint_and_gives_way_to_a_flag() -> None:
    told = noted(finding(SPEC, None), [MEANS], "homework.py:9")
    assert (told.label, told.hint, told.where) == ("means", "Divide once.", "homework.py:9")
    assert told.is_advice and not told.flagged
    both = noted(finding(SPEC, None), [MEANS, STEM], "")
    assert both.flagged and (both.label, both.message) == ("stem", "The stem is odd.")


@pytest.mark.parametrize(
    ("message", "is_own"),
    [
        ("'ViT' object has no attribute 'positions'", True),
        ("'Attention' object has no attribute 'to_qkv'. Did you mean: 'to_q'?", True),
        ("'numpy.ndarray' object has no attribute 'numpy'", False),
        ("'Tensor' object has no attribute 'dim_head'", False),
        ("'NoneType' object has no attribute 'shape'", False),
    ],
)
def test_only_what_a_class_of_the_students_lacks_is_to_be_assigned_in_init(
    message: str, is_own: bool
) -> None:
    assert bool(hint_of("AttributeError", message)) is is_own


@pytest.mark.parametrize(
    ("message", "is_graded"),
    [
        ("ViT.__init__() missing 1 required positional argument: 'dim'", True),
        ("ViT.forward() takes 2 positional arguments but 3 were given", True),
        ("evaluate() got an unexpected keyword argument 'loader'", True),
        ("Linear.__init__() missing 1 required positional argument: 'out_features'", False),
        ("range() missing 1 required positional arguments: 'end'", False),
        ("Block.__init__() takes from 2 to 3 positional arguments but 4 were given", False),
        ("evaluate.<locals>.step() missing 1 required positional argument: 'batch'", False),
    ],
)
def test_only_what_is_in_the_template_has_its_signature(message: str, is_graded: bool) -> None:
    hint = hint_of("TypeError", message, {"ViT", "evaluate"})
    assert ("signatures are the template's" in hint) is is_graded


def test_a_missing_part_is_the_broken_cells_fault_by_what_the_omission_is() -> None:
    """Not by what is written in the cell, which is the student's."""
    place = Place("cell 4", 1)
    printed = Omission(place, "print('is not correct Python')", "it says `is not correct Python`")
    loaded = Loaded({})
    for broken, kind in ((False, FindingKind.MISSING_NAME), (True, FindingKind.BROKEN_CELL)):
        program = Program("a.ipynb", omissions=(replace(printed, broken=broken),))
        mismatch = cannot_be_had("ViT", "class", None, program, loaded)
        assert finding(SPEC, mismatch).kind is kind


def test_a_part_of_a_module_that_was_not_handed_in_is_told_as_that() -> None:
    """And so is what another part makes of it; a part that is defined again below is the file's own."""
    sources = ("from layers import Attention, MLP", "class MLP: ...", "class Block:\n    attend = Attention")
    names = (("Attention", "MLP"), ("MLP",), ("Block",))
    statements = tuple(
        Statement(text, Place("a.py", number), bound, "definition")
        for number, (text, bound) in enumerate(zip(sources, names, strict=True), start=1)
    )
    program = Program("a.py", statements, defined={"Attention": Place("a.py", 1)})
    loaded = Loaded({"Attention": "function", "MLP": "class", "Block": "class"}, absent_modules=("layers",))
    told = cannot_be_had("Attention", "class", "function", program, loaded)
    assert told.message.startswith("`Attention` is imported from `layers`, but no file layers.py")
    assert told.where == "a.py:1"
    assert "something else" in cannot_be_had("MLP", "class", "other", program, loaded).message
    fault = StudentRaised(Problem("TypeError"))
    other = explained_mismatch(fault, "Block", "Block(4)", program, loaded)
    assert other.message.startswith("`Block` uses `Attention`. `Attention` is imported from `layers`")


def test_what_the_grader_saw_is_no_mistake_of_that_name() -> None:
    """An assignment may call a mistake of its own as it likes."""
    own = finding(SPEC, Mismatch("It hangs on to its input.", diagnosis="hangs"))
    assert (own.kind, own.diagnosis) == (None, "hangs")
    copied = Mismatch("x", diagnosis=FindingKind.NOT_IMPLEMENTED)
    again = Mismatch(copied.message, diagnosis=copied.diagnosis)
    assert finding(SPEC, again).kind is FindingKind.NOT_IMPLEMENTED


def caught(what: Callable[[], object]) -> BaseException:
    """What is raised."""
    with pytest.raises((RuntimeError, MemoryError)) as told:
        what()
    return told.value


def test_the_judges_own_memory_is_ours_by_what_raised_it() -> None:
    """By PyTorch's allocator or Python's; whatever a statement raises says what its author likes."""

    def says_so() -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes.")

    for refused in (lambda: torch.empty(2**50), lambda: bytearray(2**62)):
        found = finding(SPEC, caught(refused))
        assert (found.status, found.blame) == (Status.ERRORED, Blame.ENGINE)
        assert "own memory was not enough" in found.message
    for other in (says_so, lambda: torch.ones(2) @ torch.ones(3)):
        found = finding(SPEC, caught(other))
        assert (found.status, found.blame) == (Status.ERRORED, Blame.INSTRUCTOR)
    assert finding(SPEC, RuntimeError("can't allocate memory")).blame is Blame.INSTRUCTOR, "it was not raised"
