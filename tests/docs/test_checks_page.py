"""docs/checks.md: every example runs on the homework that stands in it, and every public name has one."""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import grader.kit
from grader.analysis import program
from grader.cli import cli
from grader.domain.assignment import Assignment, Component
from grader.judge.checked_component import Component as BuiltComponent
from grader.judge.examination import Checks
from grader.judge.remote_objects import SETTINGS, Outcome, Thing
from grader.judge.student import Student
from grader.judge.value import Value
from grader.kit import Fake, convolutions, transformers
from grader.protocol.link import WorkerProcess

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/checks.md"
TEXT = PAGE.read_text("utf-8")
BLOCKS = re.findall(r"(?<!-->\n\n)^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
HOMEWORK = "# homework.py\n"
IMPORTS, *_ = BLOCKS
WRITTEN = "\n\n".join(block for block in BLOCKS if block.startswith(HOMEWORK))
EXAMPLES = [block for block in BLOCKS[1:] if not block.startswith(HOMEWORK)]
# what the judge itself is asked, and no check
NOT_FOR_CHECKS = {
    Student: (
        "allow ask attestation built close configured_model fakes figures flagged link loaded missing "
        "keep_figures new_random output_cut parameter_names pictures_of program prove_watch random shared "
        "set_later settle waited watched"
    ),
    Thing: "kind label name stays type",
    BuiltComponent: "calls is_random kind label last_call last_seconds made modules name stays type",
    Value: "label",
    Fake: "answer asks_the_check computes kind name",
}


def stubs() -> Iterator[Component]:
    """The parts of the homework, as an assignment would state them."""
    for node in ast.parse(WRITTEN).body:
        match node:
            case ast.FunctionDef(name, args):
                yield Component(name, "function", ast.unparse(args))
            case ast.ClassDef(name, body=body):
                [init] = [
                    each for each in body if isinstance(each, ast.FunctionDef) and each.name == "__init__"
                ]
                init.args.args = init.args.args[1:]
                yield Component(name, "class", ast.unparse(init.args))


@pytest.fixture
def student(assignment: Assignment, spawn: Callable[[], WorkerProcess]) -> Iterator[Student]:
    """Who wrote the homework of the page."""
    components = tuple(stubs())
    given = replace(assignment, components=components, forbidden=(), measures=())
    rules = replace(assignment.program_rules, components=components, forbidden=(), further={})
    made = Student(spawn, program("homework.py", WRITTEN.encode(), rules), given, seed=3)
    yield made
    made.close()


def title(example: str) -> str:
    """An example's place: the heading above it, and its number."""
    heading = re.findall(r"^## (.+)$", TEXT[: TEXT.index(example)], re.MULTILINE)[-1]
    return f"{heading} {EXAMPLES.index(example) + 1}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("example", EXAMPLES, ids=title)
def test_the_example_runs(student: Student, example: str) -> None:
    assert "assert " in example or "raise " in example, "an example shows what is true"
    namespace: dict[str, Any] = {"student": student}
    exec(IMPORTS, namespace)  # noqa: S102
    above = TEXT[: TEXT.index(example)].count("\n")  # so that a failure names the page's own line
    exec(compile("\n" * above + example, str(PAGE), "exec", dont_inherit=True), namespace)  # noqa: S102


@pytest.mark.parametrize("package", [grader.kit, transformers, convolutions], ids=lambda each: each.__name__)
def test_every_public_name_has_an_example(package: Any) -> None:
    shown = set()
    for example in EXAMPLES:
        tree = ast.parse(example)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == package.__name__:
                imported = {alias.name for alias in node.names}
                assert imported <= used, f"imported and not shown: {imported - used}"
                shown |= imported
    assert sorted(set(package.__all__) - shown) == []


NAMED = re.search(r"<!-- example: test_softmax.py -->\n\n```python\n(.*?)```", TEXT, re.DOTALL)
SOFTMAX = (
    "import numpy as np\n\n\n"
    "def softmax(scores):\n    # >>> TODO softmax: shares of each row\n    {}\n    # <<<\n"
)
RIGHT = "powers = np.exp(scores)\n    return powers / powers.sum(axis=1, keepdims=True)"


@pytest.mark.slow
def test_a_mistake_is_named_as_the_page_says(tiny_course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of a whole check names a mistake of its part."""
    assert NAMED is not None
    folder = tiny_course / "reference/tiny"
    for name in ("forms/added.py", "mistakes/tripled.py", "checks/test_doubler.py"):
        (folder / name).unlink()
    settings = (folder / "assignment.toml").read_text()
    settings = settings.replace('"Doubler"', '"softmax"').replace("Doubler =", "softmax =")
    settings = settings.replace('"class"', '"function"').replace('"dim"', '"scores"')
    whole = RIGHT.replace("axis=1", "axis=0")
    files = {
        "assignment.toml": settings,
        "solution.py": SOFTMAX.format(RIGHT),
        "checks/test_softmax.py": NAMED[1],
        "checks/test_public.py": (
            '"""Public."""\n\nimport pytest\n\n\n@pytest.mark.component("softmax")\n'
            'def test_runs(student):\n    """It runs."""\n'
            '    student.call("softmax", student.tensor(2, 3).numpy()).returned.array(2, 3)\n'
        ),
        "mistakes/softmax_of_columns.py": (
            f'"""The columns are shares."""\n\nimport numpy as np\n\n\ndef softmax(scores):\n    {whole}\n'
        ),
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    monkeypatch.setenv("GRADER_COURSE", str(tiny_course))
    done = CliRunner().invoke(cli, ["validate", "tiny"])
    assert "mistakes 1 of 1 detected, 1 named" in done.output, done.output


def test_every_fixture_is_on_the_page() -> None:
    own = {name for name, value in vars(Checks).items() if type(value) is type(Checks.student)}
    assert own > {"student", "reference"}
    assert [name for name in own if f"| `{name}` |" not in TEXT] == []


def public(kind: type) -> set[str]:
    """The members of a class, without those of its instances that no annotation tells."""
    own = {
        name for each in kind.__mro__[:-1] for name in (*vars(each), *getattr(each, "__annotations__", ()))
    }
    return {name for name in own if not name.startswith("_")} - set(NOT_FOR_CHECKS[kind].split())


@pytest.mark.parametrize(
    "kind", [Student, Thing, BuiltComponent, Value, Fake], ids=lambda each: each.__name__
)
def test_what_a_check_can_ask_is_on_the_page(kind: type) -> None:
    missing = [name for name in sorted(public(kind)) if not re.search(rf"\b{name}\b", TEXT)]
    assert missing == []


def test_every_field_and_setting_of_a_call_is_on_the_page() -> None:
    for name in (*(field.name for field in fields(Outcome)), *SETTINGS):
        assert f"`{name}" in TEXT, name


def test_instructors_and_developers_are_sent_there() -> None:
    for page in ("instructor.md", "developing.md"):
        assert "(checks.md)" in (ROOT / "docs" / page).read_text("utf-8")
    assert "(docs/checks.md)" in (ROOT / "README.md").read_text("utf-8")
