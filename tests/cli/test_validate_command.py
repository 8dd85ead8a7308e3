"""`grader validate`: a small assignment that passes, and each way in which one does not."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.validation import trials
from grader.validation.trials import local_outcomes

MISTAKE = '''"""The input is {what}. Twice is enough."""


class Doubler(Doubler):
    def forward(self, x):
        return {value}
'''
FORM = '''"""The input is {what}."""


class Doubler(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return {value}
'''
TOML = "reference/tiny/assignment.toml"
CHECKS = "reference/tiny/checks/test_doubler.py"
MISTAKES = "reference/tiny/mistakes/{}.py"
SECOND_PART = '[[component]]\nname = "Other"\nkind = "function"\nsignature = "x"\n[[rubric]]'


@pytest.fixture
def validated(run, tiny_course: Path, monkeypatch: pytest.MonkeyPatch) -> Callable:
    """Change files of the small course and validate it, in this process, with warm workers."""

    def local(course, assignment, planned, *, jobs, report, traced):
        return local_outcomes(assignment, planned, report=report, traced=traced)

    monkeypatch.setattr(trials, "outcomes", local)

    def of(*changes, arguments=("tiny",)):
        for name, *edit in changes:
            path = tiny_course / name
            if len(edit) == 2:
                text = path.read_text("utf-8")
                assert text.count(edit[0]) == 1, edit[0]
                path.write_text(text.replace(*edit), encoding="utf-8")
            else:
                path.write_text(*edit, encoding="utf-8")
        return run("validate", *arguments, "--course", tiny_course)

    return of


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ((TOML, '"dim"', '"width"'), "the signature is 'width', and reference/tiny/solution.py:7 has 'dim'."),
        ((TOML, '"dim"', '"dim=3"'), "the signature is 'dim=3', and reference/tiny/solution.py:7 has 'dim'."),
        ((TOML, '"class"', '"function"'), "reference/tiny/solution.py defines no such function."),
    ],
)  # fmt: skip
def test_what_the_solution_contradicts_is_told(validated, change, told):
    result = validated(change)
    assert result.exit_code == 2 and told in result.output, result.output


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("student_readme.md", "student_readme.md"),
        ("checks/test_public.py", "test_public.py"),
    ],
)
def test_what_the_template_would_miss_is_told(validated, tiny_course, name, told):
    """Before anything is tried, in the sentence of `grader template`."""
    (tiny_course / "reference/tiny" / name).unlink()
    result = validated()
    assert result.exit_code == 2 and told in result.output, result.output


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("keeps_the_shape", "names 'keeps_the_shape' as its cause, and there is no such check. Did you mean"),
        (
            "doubler_doubles",
            "'doubler_doubles' because of 'doubler_doubles': the causes go around in a circle.",
        ),
    ],
)
def test_causes_that_cannot_be_are_told(validated, name, told):
    mark = f'@pytest.mark.because("{name}")\ndef test_doubler_doubles('
    result = validated((CHECKS, "def test_doubler_doubles(", mark))
    assert result.exit_code == 2 and told in result.output, result.output


def test_an_assignment_that_is_right_passes(validated):
    result = validated()
    assert result.exit_code == 0, result.output
    summary = (
        "reference full; template 0; forms 1 of 1 at full marks; "
        "mistakes 1 of 1 detected, 1 named (100 %); 0 cost another component; 1.00 messages for a mistake."
    )
    assert summary in result.stdout
    rows = {line.split()[0]: line for line in result.stdout.splitlines() if line.split()}
    assert rows["tripled"].split()[1:5] == ["Doubler", "detected", "named", "doubler_doubles"]
    assert rows["added"].split()[1:4] == ["Doubler", "full", "marks"]
    assert "No mistake of Doubler ever fails doubler_keeps_the_shape." in result.stdout
    assert "tripled: detected (4 of 4 done" in result.stderr
    assert "To be fixed" not in result.stdout


@pytest.mark.slow
def test_checks_that_hold_for_odd_parts_pass(validated):
    """Whatever the part gives; the sample is not bigger than there are versions."""
    result = validated(arguments=("tiny", "--odd", "30"))
    assert result.exit_code == 0, result.output
    assert "✓ no check breaks for 30 odd parts." in result.stdout
    words = re.findall(r"^Doubler_\w+: (\w+) \(\d+ of 30 done", result.stderr, re.MULTILINE)
    assert len(words) == 30 and set(words) <= {"fails", "passes", "asks"}


def test_a_check_that_breaks_for_an_odd_part_is_told(validated):
    change = (CHECKS, "    if same(found, 3 * x):", "    if found[1, 2] == 3 * x[1, 2]:")
    result = validated(change, arguments=("tiny", "--odd", "40"))
    assert result.exit_code == 1, result.output
    assert "checks/test_doubler.py: doubler_doubles breaks on Doubler_" in result.stdout
    broken = len(re.findall(r"^Doubler_\w+: breaks a check", result.stderr, re.MULTILINE))
    assert f"✗ checks break for {broken} of 40 odd parts." in result.stdout and 0 < broken < 40
    assert "no check breaks" not in result.stdout


def test_a_name_of_no_mistake_is_told(validated):
    """Also where no version reaches it."""
    line = '    if same(found, 7 * x):\n        raise reference.named("halved")\n'
    result = validated((CHECKS, "    if same(found, 3 * x):", f"{line}    if same(found, 3 * x):"))
    assert result.exit_code == 1, result.output
    assert "it names the mistake halved, and there is no mistakes/halved.py. Write it," in result.stdout


@pytest.mark.slow
def test_every_assignment_of_the_course_is_tried(validated):
    result = validated(arguments=())
    assert result.exit_code == 0 and "Doubling: 4 versions" in result.stdout.replace(
        "\N{NO-BREAK SPACE}", " "
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        pytest.param(
            [("reference/tiny/solution.py", "return 2 * x", "return 2.5 * x")],
            "solution.py: doubler_doubles (Doubler) does not pass: It is not twice the input. "
            "Fix the check or the solution.",
            id="the reference loses",
        ),
        pytest.param(
            [(CHECKS, 'student.build("Doubler", 3)(student.tensor(2, 3), shape=(2, 3))', "pass")],
            "The bare template passes doubler_keeps_the_shape of Doubler, which carries points.",
            id="the template earns",
        ),
        pytest.param(
            [("reference/tiny/forms/halved.py", FORM.format(what="halved", value="x / 2"))],
            "forms/halved.py: doubler_doubles (Doubler) does not pass: It is not twice",
            id="a form loses",
        ),
        pytest.param(
            [
                (CHECKS, "import Mismatch, same", "import Mismatch, Undecided, same"),
                (CHECKS, 'raise Mismatch("It is not', 'raise Undecided("It is not'),
                ("reference/tiny/forms/halved.py", FORM.format(what="halved", value="x / 2")),
            ],
            "forms/halved.py: doubler_doubles (Doubler) cannot be decided: A person must",
            id="a form is undecided",
        ),
        pytest.param(
            [(MISTAKES.format("twice"), MISTAKE.format(what="doubled", value="x * 2"))],
            "mistakes/twice.py: Doubler passes every check. Make a check notice it, or delete the file.",
            id="a mistake is not detected",
        ),
        pytest.param(
            [
                (
                    "reference/tiny/solution.py",
                    "class Doubler",
                    "def other(x):\n    return Doubler(1)(x)\n\n\nclass Doubler",
                ),
                (TOML, "[[rubric]]", SECOND_PART.replace("Other", "other")),
                (TOML, "Doubler = 4", "Doubler = 3\nother = 1"),
                (CHECKS, "pytestmark =", "import torch\n\npytestmark ="),
                (
                    CHECKS,
                    "def test_doubler_keeps",
                    '@pytest.mark.component("other")\ndef test_other(student):\n    """Other."""\n'
                    '    found = student.build("Doubler", 3)(torch.ones(1, 1))\n    assert found == 2\n\n\n'
                    "def test_doubler_keeps",
                ),
            ],
            "mistakes/tripled.py: it is a mistake of Doubler, but costs other too (other). "
            "Judge other with a fake in place of Doubler.",
            id="a mistake costs another component",
        ),
        pytest.param(
            [(MISTAKES.format("halved"), MISTAKE.format(what="halved", value="x / 2"))],
            "Only 1 of 2 mistakes are called by their names; at least 90% must be.",
            id="too few are named",
        ),
        pytest.param(
            [
                (TOML, "[[rubric]]", SECOND_PART),
                (TOML, "Doubler = 4", "Doubler = 3\nOther = 1"),
                ("reference/tiny/solution.py", "import torch\n", "import torch\n\n\ndef Other(x): ...\n"),
            ],
            "Other carries 1 of the points, but no check judges it.",
            id="no check judges a component",
        ),
    ],
)
def test_what_is_wrong_is_told(validated, changes, sentence):
    result = validated(*changes)
    assert result.exit_code == 1, result.output
    assert sentence in result.stdout.partition("To be fixed")[2].replace("\N{NO-BREAK SPACE}", " "), (
        result.stdout
    )


@pytest.mark.slow
def test_a_check_that_breaks_is_told_once(validated):
    """It breaks on the reference, the template and both parts, which is one thing to fix."""
    result = validated((CHECKS, 'student.build("Doubler", 3)(student.tensor(2, 3), shape=(2, 3))', "1 / 0"))
    assert result.exit_code == 1
    told = result.stdout.replace("\N{NO-BREAK SPACE}", " ")
    assert "test_doubler.py: doubler_keeps_the_shape breaks on reference and 3 other versions." in told
    assert told.count("doubler_keeps_the_shape breaks") == 1 and "ZeroDivisionError" in told


@pytest.mark.slow
def test_debugging_shows_what_a_check_raised_where_and_what_it_printed(validated):
    broken = 'print("sizes", [2, 3])\n    print("x" * 2000 + "end")\n    [][3]'
    result = validated(
        (CHECKS, 'student.build("Doubler", 3)(student.tensor(2, 3), shape=(2, 3))', broken),
        arguments=("tiny", "--only", "reference", "--debug"),
    )
    told = result.stdout.replace("\N{NO-BREAK SPACE}", " ")
    assert "reference: doubler_keeps_the_shape" in told
    assert "IndexError: list index out of range" in told and "| sizes [2, 3]" in told
    assert "xend" in told, "prints are shown whole"
    assert "checks/test_doubler.py:" in told and "[][3]" in told
    plain = validated(arguments=("tiny", "--only", "reference"))
    assert "IndexError: list index" not in plain.stdout, "it is shown where it was asked for"


@pytest.mark.slow
def test_a_forbidden_part_in_a_form_is_told(validated):
    form = FORM.format(what="doubled by a bilinear layer", value="nn.Identity()(2 * x)")
    rule = (
        '[[forbidden]]\nparts = ["torch.nn.Identity"]\npolicy = "forbid"\ncosts = "model"\nreason = "No."\n'
    )
    changes = [("reference/tiny/forms/bilinear.py", form), (TOML, "[[rubric]]", f"{rule}[[rubric]]")]
    result = validated(*changes)
    assert result.exit_code == 1
    assert "bilinear.py: it uses `torch.nn.Identity`, which assignment.toml forbids." in result.stdout
    flagged = validated((TOML, '"forbid"', '"flag"'))
    assert (
        flagged.exit_code == 0 and "add a line `Policy: torch.nn.Identity` to its docstring" in flagged.stdout
    )


@pytest.mark.slow
def test_an_unnamed_mistake_is_noted(validated):
    result = validated((MISTAKES.format("halved"), MISTAKE.format(what="halved", value="x / 2")))
    assert "mistakes/halved.py: it is detected, but not named." in result.stdout.partition("Notes")[2]


def test_no_forms_are_fine(validated, tiny_course):
    (tiny_course / "reference/tiny/forms/added.py").unlink()
    result = validated()
    assert result.exit_code == 0 and "There are no legitimate forms" in result.stdout


def test_only_some_are_tried(validated):
    """What only a whole run can show is not told then."""
    result = validated(arguments=("tiny", "--only", "trip*"))
    assert result.exit_code == 0
    summary = "mistakes 1 of 1 detected, 1 named (100 %); 0 cost another component; 1.00 messages"
    assert f"✓ {summary}" in result.stdout
    assert "Notes" not in result.stdout and "added" not in result.stdout
    unknown = validated(arguments=("tiny", "--only", "xyz"))
    assert unknown.exit_code == 2 and "--only xyz: no version has such a name." in unknown.output


@pytest.mark.parametrize(
    ("arguments", "removed", "sentence"),
    [
        (["tiy"], None, "There is no assignment 'tiy'. The course has 'tiny'. Did you mean 'tiny'?"),
        (["tiny"], "reference/tiny/solution.py", "error: reference/tiny/solution.py is missing"),
        ([], TOML, "has no assignments. Begin one: grader new-assignment ASSIGNMENT"),
    ],
)
def test_bad_input_is_told(validated, tiny_course, arguments, removed, sentence):
    if removed:
        (tiny_course / removed).unlink()
    result = validated(arguments=arguments)
    assert result.exit_code == 2 and sentence in result.output


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("mistakes/x.py", "def (", "mistakes/x.py:1: this is not valid Python (invalid syntax). Fix it."),
        ("mistakes/x.py", "class Doubler: ...", "mistakes/x.py: it has no docstring."),
        (
            "mistakes/x.py",
            '"""No."""\nx = 1',
            "it defines 0 of the graded parts. Define exactly one of 'Doubler'.",
        ),
        ("form", "x = 1", "forms/x.py: it defines none of the graded parts."),
        (
            "form",
            '"""A.\n\nPolicy: odd\n"""\nclass Doubler: ...',
            "says 'Policy: odd', but assignment.toml has no",
        ),
    ],
)
def test_a_malformed_part_is_told(validated, file, text, sentence):
    name = "reference/tiny/forms/x.py" if file == "form" else f"reference/tiny/{file}"
    result = validated((name, text))
    assert result.exit_code == 2 and sentence in result.output


def test_a_training_makes_no_checks(run, tiny_course: Path) -> None:
    """An option about checks would be without effect, and nobody would notice."""
    done = run("validate", "tiny", "--train", "--odd", "3", "--course", tiny_course)
    assert done.exit_code == 2 and "--train runs no checks, and --odd is about checks" in done.output
