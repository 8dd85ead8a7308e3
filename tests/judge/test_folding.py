"""One cause, one message: what is folded by declaration, what by facts, and what stands by itself."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from textwrap import dedent, indent

import pytest

from grader.analysis import program
from grader.course.assignment_file import read_assignment
from grader.domain.evidence import Finding, FindingKind, Status
from grader.judge.examination import Checks, Folding, run_pytest
from grader.judge.repeated_calls import RandomPart
from grader.judge.student import Student
from grader.judge.verdict import finding
from grader.kit import Cause, Mismatch
from grader.protocol.link import WorkerProcess
from grader.scoring.rubric_lines import share

HEAD = """
import pytest
from grader.kit import Cause, Mismatch, AffineFake, same

pytestmark = pytest.mark.component("Doubler")
"""
NUMBERS = itertools.count()
Found = dict[str, tuple[str, str | None]]


def homework(forward: str, arguments: str = "dim") -> str:
    """A Doubler with another forward."""
    return (
        "import torch\nfrom torch import nn\n\n\nclass Doubler(nn.Module):\n"
        f"    def __init__(self, {arguments}):\n        super().__init__()\n"
        "        self.calls, self.fn = 0, locals().get('fn')\n\n"
        f"    def forward(self, x):\n{indent(dedent(forward).strip(), '        ')}\n"
    )


@pytest.fixture
def judged(tiny_course: Path, spawn: Callable[[], WorkerProcess]) -> Callable[..., list[Finding]]:
    """The findings of some checks about a homework: `judged(checks, homework)`."""
    folder = tiny_course / "reference" / "tiny"

    def of(checks: str | list[str], text: str, *, call_seconds: float = 10.0) -> list[Finding]:
        for path in (folder / "checks").glob("*.py"):
            path.unlink()
        for body in [checks] if isinstance(checks, str) else checks:
            path = folder / "checks" / f"test_{next(NUMBERS):04}.py"
            path.write_text(HEAD + dedent(body), encoding="utf-8")
        assignment = read_assignment(folder)
        assignment = replace(assignment, limits=replace(assignment.limits, call_seconds=call_seconds))
        found: list[Finding] = []

        def use(plugin: Checks) -> None:
            analyzed = program("homework.py", text.encode(), assignment.program_rules)
            student = Student(spawn, analyzed, assignment, seed=3)
            found.extend(plugin.examined(student).findings)

        run_pytest(sorted((folder / "checks").glob("test_*.py")), assignment, None, use)
        return found

    return of


def ends(found: list[Finding]) -> Found:
    """Check -> its status, and the check that has its cause."""
    return {one.check: (one.status.value, one.because) for one in found}


# --- facts ----------------------------------------------------------------------------------------------

SHAPES = '''
def test_keeps_shape(student):
    """The shape stays."""
    student.build("Doubler", 3)(student.tensor(2, 3), shape=(2, 3))

def test_any_size(student):
    """The shape stays for other sizes."""
    student.build("Doubler", 5)(student.tensor(4, 5), shape=(4, 5))

def test_batches(student):
    """The shape stays for three axes."""
    student.build("Doubler", 5)(student.tensor(4, 2, 5), shape=(4, 2, 5))
'''


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        ("return x[..., :1]", [None, "keeps_shape", None]),  # the last of two axes, the last of three
        ("return x[0]", [None, "keeps_shape", None]),
        ("return None", [None, "keeps_shape", "keeps_shape"]),
        ("return x / 0", [None, "keeps_shape", "keeps_shape"]),
        ("return x.int()", [None, "keeps_shape", "keeps_shape"]),
        ("return x @ x", [None, "keeps_shape", "keeps_shape"]),
        ("raise NotImplementedError('TODO Doubler.forward: it')", [None, "keeps_shape", "keeps_shape"]),
        # two lines, and two types of exceptions at one line, are two causes
        ("if x.ndim == 3:\n    return x @ x\nreturn x @ x", [None, "keeps_shape", None]),
        ("return x @ x if len(x) == 2 else x.nothing", [None, None, "any_size"]),
    ],
)
def test_the_same_fact_about_the_same_thing_is_one_cause(
    judged: Callable[..., list[Finding]], forward: str, expected: list[str | None]
) -> None:
    found = judged(SHAPES, homework(forward))
    assert {one.status for one in found} == {Status.FAILED}
    assert [one.because for one in found] == expected
    assert all(one.message for one in found), "each keeps its own message for whoever looks for it"


def test_what_is_missing_is_one_cause(judged: Callable[..., list[Finding]]) -> None:
    """A name that is not there, and a file that ends while it is loaded."""
    ended = homework("return x").replace(
        "class Doubler(nn.Module):", "class Doubler(nn.Module):\n    __import__('os')._exit(3)"
    )
    for text in ("import torch\n", ended):
        found = judged(SHAPES, text)
        assert [one.because for one in found] == [None, "keeps_shape", "keeps_shape"]
    missing = judged(SHAPES, "import torch\n")
    assert {one.kind for one in missing} == {FindingKind.MISSING_NAME}


VALUES = '''
def test_doubles(student):
    """Twice."""
    x = student.tensor(2, 3)
    if not same(student.build("Doubler", 3)(x), 2 * x):
        raise Mismatch("It is not twice the input.")

def test_is_odd(student):
    """The opposite gives the opposite."""
    x, doubler = student.tensor(2, 3), student.build("Doubler", 3)
    assert same(doubler(-x), -doubler(x)), "It is not odd."

def test_recognized(student):
    """No mistake is known."""
    x = student.tensor(2, 3)
    if not same(student.build("Doubler", 3)(x), 2 * x):
        raise Mismatch("It is tripled.", diagnosis="tripled")
'''


@pytest.mark.parametrize(
    "forward", ["return 2 * x + torch.rand_like(x)", "self.calls += 1\nreturn 2 * x + 1 + self.calls"]
)
def test_of_a_part_whose_output_is_random_nothing_else_is_concluded(
    judged: Callable[..., list[Finding]], forward: str
) -> None:
    """What the check itself would say is true of one call alone; a mistake that was recognized stays."""
    found = judged(VALUES, homework(forward))
    assert [one.because for one in found] == [None, "doubles", None]
    assert found[0].message.startswith("`Doubler(3)` gives a different output each time for the same input")
    assert found[2].diagnosis == "tripled" and found[2].message == "It is tripled."


def test_two_mistakes_of_a_part_are_two_messages(judged: Callable[..., list[Finding]]) -> None:
    found = judged(VALUES, homework("return 3 * x + 1"))
    assert [one.because for one in found] == [None, None, None]
    assert [one.message for one in found] == [
        "It is not twice the input.",
        "It is not odd.",
        "It is tripled.",
    ]


@pytest.mark.parametrize(("seconds", "random"), [(10.0, True), (0.0, False)])
def test_making_calls_again_has_time_of_its_own(
    tiny_course: Path, spawn: Callable[[], WorkerProcess], seconds: float, random: bool
) -> None:
    """It takes none of that of the checks, and no more than its own."""
    assignment = read_assignment(tiny_course / "reference" / "tiny")
    text = homework("return torch.rand_like(x)")
    student = Student(
        spawn, program("homework.py", text.encode(), assignment.program_rules), assignment, seed=3
    )
    try:
        student.build("Doubler", 3)(student.tensor(2, 3))
        waited = student.worker.waited
        found = RandomPart(seconds).failure(Mismatch("Wrong."), student, assignment.checks[0])
        assert student.worker.waited == waited
    finally:
        student.close()
    assert (found is not None) is random
    assert found is None or found.cause is Cause.RANDOM


INNER = '''
@pytest.mark.parametrize("dim", [3, 4])
def test_hands_over(student, dim):
    """What is handed over reaches the module."""
    doubler, x = student.build("Doubler", dim, inner=AffineFake()), student.tensor(2, 1, dim)
    doubler(x)
    if not same(doubler.inputs_of("inner")[0], 2 * x):
        raise Mismatch("It is not doubled.")

def test_returns(student):
    """What the module returns comes back."""
    doubler, x = student.build("Doubler", 3, inner=AffineFake(scale=(3.0,))), student.tensor(2, 1, 3)
    y = doubler(x)
    if not same(y, 3 * doubler.inputs_of("inner")[0]):
        raise Mismatch("It is not what the module returns.")
'''


def test_a_call_that_is_missing_is_a_fact(judged: Callable[..., list[Finding]]) -> None:
    found = judged(INNER, homework("return 2 * x", "dim, fn"))
    assert ends(found) == {"hands_over": ("failed", None), "returns": ("failed", "hands_over")}
    assert found[0].message == "`Doubler(3, fn)` never calls the module that it is given."
    assert ends(judged(INNER, homework("return self.fn(2 * x)", "dim, fn"))) == {
        "hands_over": ("passed", None),
        "returns": ("passed", None),
    }


def test_a_check_can_say_what_its_cause_is(judged: Callable[..., list[Finding]]) -> None:
    """A size that cannot be done, say; of another size it is another cause."""
    checks = "".join(
        f'def test_{name}(student):\n    """{name}."""\n'
        f'    raise Mismatch("No.", cause=Cause.SIZE, concerns="{size} tokens")\n'
        for name, size in (("a", 7), ("b", 8), ("c", 7))
    )
    found = judged(checks, homework("return x"))
    assert [one.because for one in found] == [None, None, "a"]


# --- declarations ---------------------------------------------------------------------------------------

DECLARED = '''
@pytest.mark.because("is_odd", "keeps_shape")
def test_doubles(student):
    """Twice."""
    x = student.tensor(2, 3)
    if not same(student.build("Doubler", 3)(x), 2 * x):
        raise Mismatch("It is tripled.", diagnosis="tripled")

@pytest.mark.because("doubles")
def test_last(student):
    """The last."""
    raise Mismatch("Never.")

@pytest.mark.because("is_odd", run=False)
def test_has_no_memory(student):
    """It has no memory."""

@pytest.mark.because("is_odd")
def test_answers(student):
    """It answers."""
    student.build("Doubler", 3)(student.tensor(2, 3))
'''
SECOND_FILE = '''
def test_keeps_shape(student):
    """The shape stays."""
    student.build("Doubler", 3)(student.tensor(2, 3), shape=(2, 3))

def test_is_odd(student):
    """The opposite gives the opposite."""
    x, doubler = student.tensor(2, 3), student.build("Doubler", 3)
    assert same(doubler(-x), -doubler(x)), "It is not odd."
'''


def test_what_a_check_declares_is_its_cause_if_that_failed(judged: Callable[..., list[Finding]]) -> None:
    """The first that failed, whatever file it is in, and the first of a chain; a mistake keeps its name."""
    found = judged([DECLARED, SECOND_FILE], homework("return 3 * x + 1"))
    assert ends(found) == {
        "is_odd": ("failed", None),
        "keeps_shape": ("passed", None),
        "doubles": ("failed", "is_odd"),
        "last": ("failed", "is_odd"),
        "has_no_memory": ("skipped", "is_odd"),
        "answers": ("passed", None),
    }
    assert next(one for one in found if one.check == "doubles").diagnosis == "tripled"
    assert [one.check for one in found].index("is_odd") == 0, "a cause is tried before what follows from it"


def test_without_the_cause_a_failure_is_its_own(judged: Callable[..., list[Finding]]) -> None:
    assert ends(judged([DECLARED, SECOND_FILE], homework("return 3 * x"))) == {
        "is_odd": ("passed", None),
        "keeps_shape": ("passed", None),
        "doubles": ("failed", None),
        "last": ("failed", "doubles"),
        "has_no_memory": ("passed", None),
        "answers": ("passed", None),
    }


SIZES = '''
def test_any_size(student):
    """It does any size."""
    student.build("Doubler", 7)(student.tensor(2, 7))

@pytest.mark.because("any_size")
@pytest.mark.parametrize("dim", [7, 3, 4])
def test_doubles(student, dim):
    """Twice."""
    x = student.tensor(2, dim)
    if not same(student.build("Doubler", dim)(x), 2 * x):
        raise Mismatch(f"It is not twice the input of {dim}.")

@pytest.mark.parametrize("dim", [7, 3])
def test_undeclared(student, dim):
    """Twice, too."""
    student.build("Doubler", dim)(student.tensor(2, dim))
'''


@pytest.mark.parametrize(
    ("forward", "doubles"),
    [
        ("return 2 * x.reshape(2, 1, 3 if x.shape[1] == 7 else -1).squeeze(1)", ("passed", None)),
        ("return 3 * x.reshape(2, 1, 3 if x.shape[1] == 7 else -1).squeeze(1)", ("failed", "any_size")),
        ("return x.nothing", ("failed", "any_size")),
    ],
    ids=["right at the others", "wrong there", "none can be done"],
)
def test_a_part_that_cannot_do_one_size_is_judged_at_the_others(
    judged: Callable[..., list[Finding]], forward: str, doubles: tuple[str, str | None]
) -> None:
    """Where a check declares its cause; what it finds at the others is what it says."""
    found = judged(SIZES, homework(forward))
    assert ends(found) == {
        "any_size": ("failed", None),
        "doubles": doubles,
        "undeclared": ("failed", "any_size"),
    }
    if "3 *" in forward:
        assert found[1].message == "It is not twice the input of 3."


@pytest.mark.slow
def test_what_a_hang_leaves_untried_is_folded_under_it(judged: Callable[..., list[Finding]]) -> None:
    found = judged(SHAPES, homework("while True: pass"), call_seconds=1.0)
    assert ends(found) == {
        "keeps_shape": ("failed", None),
        "any_size": ("skipped", "keeps_shape"),
        "batches": ("skipped", "keeps_shape"),
    }


def test_what_is_not_the_students_is_never_folded_nor_a_cause(tiny_course: Path) -> None:
    first, second = read_assignment(tiny_course / "reference" / "tiny").checks
    second = replace(second, because=(first.id,))
    folding = Folding()
    broken = finding(first, KeyError("x"))
    assert folding.folded(first, broken, KeyError("x")) == broken
    wrong = finding(second, Mismatch("Wrong."))
    assert folding.folded(second, wrong, Mismatch("Wrong.")) == wrong
    folding = Folding()
    folding.folded(first, finding(first, Mismatch("Wrong.")), Mismatch("Wrong."))
    broken = finding(second, KeyError("x"))
    assert folding.folded(second, broken, KeyError("x")) == broken


def test_components_share_no_cause(tiny_course: Path) -> None:
    first, second = read_assignment(tiny_course / "reference" / "tiny").checks
    second = replace(second, component="Other")
    folding, error = Folding(), Mismatch("Wrong.", cause=Cause.NOT_LOADED, concerns="the file")
    folding.folded(first, finding(first, error), error)
    assert folding.folded(second, finding(second, error), error).because is None


def test_the_points_are_those_without_folding(
    judged: Callable[..., list[Finding]], tiny_course: Path
) -> None:
    """What fails is lost, folded or not; what was shown all the same is earned."""
    found = judged([DECLARED, SECOND_FILE], homework("return 3 * x + 1"))
    checks = read_assignment(tiny_course / "reference" / "tiny").checks
    score = share("Doubler", 12, checks, found).score
    assert (score.points, score.passed, score.total) == (4.0, 2, 6)
    assert share("Doubler", 12, checks, [replace(one, because=None) for one in found]).score == score


# --- what is shown --------------------------------------------------------------------------------------


SHOWN = """
@pytest.mark.shows("stays_even", "grows")
def test_doubles(student):
    \"""It doubles.\"""
    x = student.tensor(2, 3)
    if not same(student.build("Doubler", 3)(x), 2 * x):
        raise Mismatch("It does not.")


@pytest.mark.shows("grows")
@pytest.mark.parametrize("dim", [3, 5])
def test_any_size(student, dim):
    \"""Any size.\"""
    student.build("Doubler", dim)(student.tensor(2, dim), shape=(2, dim))


def test_stays_even(student):
    \"""Nothing passes this one.\"""
    raise Mismatch("It was run.")


def test_grows(student):
    \"""Nor this one.\"""
    raise Mismatch("It was run.")
"""


def test_what_other_checks_show_is_not_run(judged: Callable[..., list[Finding]]) -> None:
    """If all of these passed with all parameters; else it is run, and folded as what it explains."""
    assert ends(judged(SHOWN, homework("return 2 * x"))) == {
        "doubles": ("passed", None),
        "any_size": ("passed", None),
        "stays_even": ("passed", "doubles"),
        "grows": ("passed", "doubles"),
    }
    only_threes = "if x.shape[1] != 3:\n    raise ValueError('no')\nreturn 2 * x"
    assert ends(judged(SHOWN, homework(only_threes))) == {
        "doubles": ("passed", None),
        "any_size": ("failed", None),
        "stays_even": ("passed", "doubles"),
        "grows": ("failed", "any_size"),
    }
    assert ends(judged(SHOWN, homework("return 3 * x"))) == {
        "doubles": ("failed", None),
        "any_size": ("passed", None),
        "stays_even": ("failed", "doubles"),
        "grows": ("failed", "doubles"),
    }


def test_a_check_with_a_remark_shows_nothing(judged: Callable[..., list[Finding]]) -> None:
    said = SHOWN.replace('raise Mismatch("It does not.")', 'student.policy("unusual", "It is unusual.")')
    assert ends(judged(said, homework("return 3 * x")))["stays_even"] == ("failed", None)
    assert ends(judged(said, homework("return 2 * x")))["stays_even"] == ("passed", "doubles")
