"""Check files are parsed, never imported; a check that lacks something is reported with its line."""

from pathlib import Path

import pytest

from grader.course.check_files import checks
from grader.domain.assignment import CheckSpec
from grader.domain.errors import CourseError

COMPONENTS = ("Attention", "ViT")


def folder_with(tmp_path: Path, **files: str) -> Path:
    (tmp_path / "checks").mkdir(exist_ok=True)
    for name, text in files.items():
        (tmp_path / "checks" / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


def fault_of(tmp_path: Path, text: str) -> str:
    with pytest.raises(CourseError) as caught:
        checks(folder_with(tmp_path, test_a=text), COMPONENTS)
    return str(caught.value)


def test_a_check_is_what_its_function_says(tmp_path: Path) -> None:
    text = '''\
import nowhere_to_be_found

raise SystemExit("never executed")

@pytest.mark.component("Attention")
@pytest.mark.weight(2.5)
def test_scales(student):
    """
    Scores are divided by the root of dim_head.

    More for the author.
    """
'''
    assert checks(folder_with(tmp_path, test_attention=text), COMPONENTS) == (
        CheckSpec(
            id="scales",
            component="Attention",
            title="Scores are divided by the root of dim_head.",
            weight=2.5,
            public=False,
            file="test_attention.py",
        ),
    )


@pytest.mark.parametrize(
    "mark",
    [
        'pytestmark = pytest.mark.component("Attention")',
        'pytestmark = [pytest.mark.component("Attention"), pytest.mark.slow]',
        'pytestmark = (pytest.mark.weight(1), pytest.mark.component("Attention"))',
        'pytestmark: object = pytest.mark.component("Attention")',
    ],
)
def test_a_file_may_name_the_component_of_all_its_checks(tmp_path: Path, mark: str) -> None:
    text = f'''\
{mark}

def test_one():
    """One."""

@pytest.mark.component("ViT")
def test_two():
    """Two."""

def some_function():
    pass
'''
    found = checks(folder_with(tmp_path, test_a=text), COMPONENTS)
    assert [(check.id, check.component) for check in found] == [("one", "Attention"), ("two", "ViT")]


def test_a_file_may_weigh_all_its_checks(tmp_path: Path) -> None:
    text = '''\
pytestmark = [pytest.mark.component("ViT"), pytest.mark.weight(3)]

def test_one():
    """One."""

@pytest.mark.weight(0.5)
def test_two():
    """Two."""
'''
    assert [check.weight for check in checks(folder_with(tmp_path, test_a=text), COMPONENTS)] == [3.0, 0.5]


def test_parameters_fold_into_one_check(tmp_path: Path) -> None:
    text = '''\
@pytest.mark.parametrize("heads", [1, 2, 3])
@mark.component("ViT")
def test_one(heads):
    """One."""
'''
    assert [check.id for check in checks(folder_with(tmp_path, test_a=text), COMPONENTS)] == ["one"]


def test_the_submission_as_a_whole_may_be_judged(tmp_path: Path) -> None:
    text = '@pytest.mark.component("submission")\ndef test_named():\n    """Files are named right."""\n'
    assert checks(folder_with(tmp_path, test_a=text), COMPONENTS)[0].component == "submission"


def test_public_checks_are_those_of_the_public_file(tmp_path: Path) -> None:
    text = '@pytest.mark.component("ViT")\ndef test_{0}():\n    """It does."""\n'
    folder = folder_with(tmp_path, test_public=text.format("seen"), test_vit=text.format("hidden"))
    assert [(check.id, check.public) for check in checks(folder, COMPONENTS)] == [
        ("seen", True),
        ("hidden", False),
    ]


def test_a_student_has_the_public_file_beside_the_homework(tmp_path: Path) -> None:
    text = '@pytest.mark.component("ViT")\ndef test_seen():\n    """It does."""\n'
    (tmp_path / "test_public.py").write_text(text)
    assert [check.public for check in checks(tmp_path, COMPONENTS)] == [True]
    folder_with(tmp_path, test_own=text.replace("seen", "own"))
    assert [check.id for check in checks(tmp_path, COMPONENTS, public_only=True)] == ["seen"]


def test_public_checks_may_be_in_several_files(tmp_path: Path) -> None:
    text = '@pytest.mark.component("ViT")\ndef test_{0}():\n    """It does."""\n'
    seen = {f"test_public_{name}": text.format(name) for name in ("shape", "order")}
    folder = folder_with(tmp_path, test_publicity=text.format("hidden"), **seen)
    assert [(check.id, check.public) for check in checks(folder, COMPONENTS)] == [
        ("order", True),
        ("shape", True),
        ("hidden", False),
    ]


def test_what_is_left_of_a_single_public_file_is_told(tmp_path: Path) -> None:
    text = '@pytest.mark.component("ViT")\ndef test_{0}():\n    """It does."""\n'
    for name, check in (("test_public", "old"), ("test_public_vit", "new")):
        (tmp_path / f"{name}.py").write_text(text.format(check))
    with pytest.raises(CourseError, match=r"test_public\.py and test_public_vit\.py are there: .* left from"):
        checks(tmp_path, COMPONENTS, public_only=True)


def test_checks_are_in_the_order_of_the_components(tmp_path: Path) -> None:
    text = '@pytest.mark.component("{0}")\ndef test_{1}():\n    """It does."""\n\n'
    first = text.format(COMPONENTS[1], "second") + text.format("submission", "whole")
    folder = folder_with(tmp_path, test_a=first, test_b=text.format(COMPONENTS[0], "first"))
    assert [check.id for check in checks(folder, COMPONENTS)] == ["whole", "first", "second"]


def test_no_check_files_are_no_checks(tmp_path: Path) -> None:
    assert checks(tmp_path, COMPONENTS) == ()


def test_only_test_files_hold_checks(tmp_path: Path) -> None:
    text = 'def test_one():\n    """One."""\n'
    assert checks(folder_with(tmp_path, conftest=text, rigged=text, broken="def"), COMPONENTS) == ()


@pytest.mark.parametrize("name", ["vit_test.py", "more/test_vit.py"])
def test_a_check_in_a_file_that_is_never_run_is_told(tmp_path: Path, name: str) -> None:
    path = tmp_path / "checks" / name
    path.parent.mkdir(parents=True)
    path.write_text('@pytest.mark.component("ViT")\ndef test_one():\n    """One."""\n')
    with pytest.raises(CourseError) as caught:
        checks(tmp_path, COMPONENTS)
    assert str(caught.value) == (
        f"checks/{name}:2: test_one is never run: checks are in checks/test_*.py. Rename or move the file."
    )
    path.rename(path.with_name(".#test_vit.py"))  # what an editor keeps is no check
    assert checks(tmp_path, COMPONENTS) == ()


@pytest.mark.parametrize("fixture", ["reference", "trained"])
def test_a_public_check_asks_for_what_students_have(tmp_path: Path, fixture: str) -> None:
    text = f'@pytest.mark.component("ViT")\ndef test_one(student, {fixture}):\n    """One."""\n'
    with pytest.raises(CourseError, match=rf"^test_public\.py:2: test_one asks for `{fixture}`, which stud"):
        checks(folder_with(tmp_path, test_public=text), COMPONENTS)
    (tmp_path / "checks" / "test_public.py").unlink()
    assert len(checks(folder_with(tmp_path, test_hidden=text), COMPONENTS)) == 1


def test_old_escapes_are_no_fault(tmp_path: Path) -> None:
    text = '@pytest.mark.component("ViT")\ndef test_one():\n    """One."""\n    "\\d"\n'
    assert len(checks(folder_with(tmp_path, test_a=text), COMPONENTS)) == 1


WRONG = [
    (
        "\n\ndef test_rejects_odd_size(): pass\n",
        "test_a.py:3: test_rejects_odd_size has no docstring. Its first line is what the student reads.",
    ),
    (
        'def test_one():\n    """   """\n',
        "test_a.py:1: test_one has no docstring. Its first line is what the student reads.",
    ),
    (
        'def test_one():\n    """One."""\n',
        "test_a.py:1: test_one does not say which component it judges. "
        'Write @pytest.mark.component("Attention") above it.',
    ),
    (
        '@pytest.mark.component("attention")\ndef test_one():\n    """One."""\n',
        "test_a.py:2: test_one judges the component 'attention', which does not exist. Did you "
        "mean 'Attention'?",
    ),
    (
        '@pytest.mark.component("Mixer")\ndef test_one():\n    """One."""\n',
        "test_a.py:2: test_one judges the component 'Mixer', which does not exist. "
        "There are 'Attention', 'ViT' and 'submission'.",
    ),
    (
        '@pytest.mark.component(NAME)\ndef test_one():\n    """One."""\n',
        'test_a.py:1: pytest.mark.component needs one name in quotes, as in component("Attention").',
    ),
    (
        '@pytest.mark.component\ndef test_one():\n    """One."""\n',
        "test_a.py:1: pytest.mark.component needs a value in parentheses.",
    ),
    (
        '@pytest.mark.component("ViT")\n@pytest.mark.component("Attention")\ndef test_one():\n    '
        '"""One."""\n',
        "test_a.py:2: a check judges one component. Remove the second mark.",
    ),
    (
        '@pytest.mark.component("ViT")\n@pytest.mark.weight(0)\ndef test_one():\n    """One."""\n',
        "test_a.py:2: pytest.mark.weight needs one number above zero, as in weight(2).",
    ),
    (
        '@pytest.mark.component("ViT")\n@pytest.mark.weight("2")\ndef test_one():\n    """One."""\n',
        "test_a.py:2: pytest.mark.weight needs one number above zero, as in weight(2).",
    ),
    (
        'class TestAttention:\n    def test_one(self):\n        """One."""\n',
        "test_a.py:2: test_one is inside another statement, where it is not counted. "
        "Make it a function of the file itself.",
    ),
    (
        'if True:\n    def test_one():\n        """One."""\n',
        "test_a.py:2: test_one is inside another statement, where it is not counted. "
        "Make it a function of the file itself.",
    ),
    (
        '@pytest.mark.component("ViT")\n@pytest.mark.wieght(2)\ndef test_one():\n    """One."""\n',
        "test_a.py:2: pytest.mark.wieght means nothing here. Did you mean 'weight'?",
    ),
    (
        '@pytest.mark.component("ViT")\ndef tset_one():\n    """One."""\n',
        "test_a.py:2: tset_one has the marks of a check, and is never run: its name does not begin with "
        "test_. Rename it, or remove the marks.",
    ),
    (
        '@pytest.mark.component("ViT")\ndef test_one(student):\n    """One."""\n    if student:\n'
        "        return False\n",
        "test_a.py:2: test_one returns a value in line 5, and nobody looks at it. "
        "Write an assertion: a check fails by what it raises.",
    ),
    (
        '@pytest.mark.component("ViT")\nasync def test_one():\n    """One."""\n',
        "test_a.py:2: test_one is never run: nobody awaits it. Write `def` in place of `async def`.",
    ),
    ("def test_one(:\n", "test_a.py:1: this is not valid Python (invalid syntax). Fix it."),
]


def test_a_check_may_end_early_and_hold_functions_that_return(tmp_path: Path) -> None:
    text = (
        '@pytest.mark.component("ViT")\ndef test_one(student):\n    """One."""\n    if not student:\n'
        "        return\n    def double(x):\n        return 2 * x\n    if double(1):\n        return None\n"
    )
    assert [spec.id for spec in checks(folder_with(tmp_path, test_a=text), COMPONENTS)] == ["one"]


@pytest.mark.parametrize(("text", "sentence"), WRONG, ids=[sentence[:50] for _, sentence in WRONG])
def test_wrong_files(tmp_path: Path, text: str, sentence: str) -> None:
    assert fault_of(tmp_path, text) == sentence


def test_a_check_is_declared_once_in_all_files(tmp_path: Path) -> None:
    text = '@pytest.mark.component("ViT")\ndef test_one():\n    """One."""\n'
    with pytest.raises(
        CourseError, match=r"^test_b\.py:2: test_one is also declared at test_a\.py:2\. Rename"
    ):
        checks(folder_with(tmp_path, test_a=text, test_b=text), COMPONENTS)


def test_a_check_is_declared_once_in_a_file(tmp_path: Path) -> None:
    text = '@pytest.mark.component("ViT")\ndef test_one():\n    """One."""\n'
    assert fault_of(tmp_path, text + text) == (
        "test_a.py:5: test_one is also declared at test_a.py:2. Rename one of them."
    )


@pytest.mark.parametrize("content", [b"x = '\xff'", b"x = 1\x00", b"(" * 100_000])
def test_what_is_not_python_is_named(tmp_path: Path, content: bytes) -> None:
    (folder_with(tmp_path) / "checks" / "test_a.py").write_bytes(content)
    with pytest.raises(CourseError, match=r"^test_a\.py"):
        checks(tmp_path, COMPONENTS)


# --- declared causes ------------------------------------------------------------------------------------


def declared(name: str, *causes: str, component: str = "ViT", run: str = "") -> str:
    """The text of a check that names its causes."""
    names = ", ".join([*(f'"{cause}"' for cause in causes), *([f"run={run}"] if run else [])])
    mark = f"@pytest.mark.because({names})\n" if names else ""
    return f'@pytest.mark.component("{component}")\n{mark}def test_{name}():\n    """It does."""\n\n'


def test_a_check_names_the_causes_of_its_failure(tmp_path: Path) -> None:
    text = declared("a") + declared("b", "a") + declared("c", "b", "a", "b", run="False")
    found = checks(folder_with(tmp_path, test_vit=text), COMPONENTS)
    assert [(check.id, check.because, check.tried_anyway) for check in found] == [
        ("a", (), True),
        ("b", ("a",), True),
        ("c", ("b", "a"), False),
    ]


def test_a_check_stands_behind_the_causes_that_it_names(tmp_path: Path) -> None:
    """Whatever the order of the files and lines; but for the components' order, nothing else moves."""
    folder = folder_with(
        tmp_path,
        test_a=declared("one") + declared("two", "six") + declared("three", component="Attention"),
        test_b=declared("four", "two") + declared("five") + declared("six", "seven") + declared("seven"),
    )
    assert [check.id for check in checks(folder, COMPONENTS)] == [
        *("three", "one", "seven", "six", "two", "four", "five")
    ]


def test_a_file_may_name_a_cause_of_all_its_other_checks(tmp_path: Path) -> None:
    text = (
        'pytestmark = [pytest.mark.component("ViT"), pytest.mark.because("first")]\n\n'
        'def test_second():\n    """It does."""\n\n'
        'def test_first():\n    """It does."""\n\n' + declared("third", "second")
    )
    found = checks(folder_with(tmp_path, test_vit=text), COMPONENTS)
    assert [(check.id, check.because) for check in found] == [
        ("first", ()),
        ("second", ("first",)),
        ("third", ("second",)),
    ]


MARK = (
    "test_a.py:1: pytest.mark.because needs the ids of checks in quotes, and at most a run=False, as in "
    'because("keeps_the_shape").'
)
WRONG_CAUSES = [
    (
        declared("shape") + declared("b", "shapes"),
        "test_a.py:7: test_b names 'shapes' as its cause, and there is no such check. Did you mean 'shape'?",
    ),
    (
        declared("shape") + declared("c", component="Attention") + declared("b", "oracle"),
        "test_a.py:11: test_b names 'oracle' as its cause, and there is no such check. ViT has 'shape'.",
    ),
    (
        declared("b", "oracle"),
        "test_a.py:3: test_b names 'oracle' as its cause, and there is no such check. Remove the mark.",
    ),
    (
        declared("shape", component="Attention") + declared("b", "shape"),
        "test_a.py:7: test_b names 'shape' as its cause, which judges Attention. Name one that judges ViT, "
        "too.",
    ),
    (
        declared("a", "b") + declared("b", "c") + declared("c", "b"),
        "test_a.py:8: 'b' because of 'c' because of 'b': the causes go around in a circle. Remove one of "
        "these marks.",
    ),
    (
        declared("a", "a"),
        "test_a.py:3: 'a' because of 'a': the causes go around in a circle. Remove one of these marks.",
    ),
    ('@pytest.mark.because()\ndef test_one():\n    """One."""\n', MARK),
    ('@pytest.mark.because(NAME)\ndef test_one():\n    """One."""\n', MARK),
    ('@pytest.mark.because("a", run=0)\ndef test_one():\n    """One."""\n', MARK),
    ('@pytest.mark.because("a", skip=True)\ndef test_one():\n    """One."""\n', MARK),
    (
        '@pytest.mark.because\ndef test_one():\n    """One."""\n',
        "test_a.py:1: pytest.mark.because needs a value in parentheses.",
    ),
    (
        '@pytest.mark.because("a")\n@pytest.mark.because("b")\ndef test_one():\n    """One."""\n',
        "test_a.py:2: a check names all its causes in one mark. Join the two.",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), WRONG_CAUSES, ids=[told[:50] for _, told in WRONG_CAUSES])
def test_causes_that_cannot_be_a_checks(tmp_path: Path, text: str, sentence: str) -> None:
    assert fault_of(tmp_path, text) == sentence


def test_a_check_that_students_have_names_causes_that_they_have(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, test_public=declared("seen", "hidden"), test_vit=declared("hidden"))
    with pytest.raises(CourseError) as caught:
        checks(folder, COMPONENTS)
    assert str(caught.value) == (
        "test_public.py:3: test_seen names 'hidden' as its cause, which students do not have. "
        "Name a public check."
    )
    folder = folder_with(tmp_path, test_public=declared("seen"), test_vit=declared("hidden", "seen"))
    assert [check.id for check in checks(folder, COMPONENTS)] == ["seen", "hidden"]


# --- causes that explain others -------------------------------------------------------------------------


def explaining(name: str, *others: str, component: str = "ViT", verb: str = "explains") -> str:
    """The text of a check that says which others fail for the cause that it finds."""
    names = ", ".join(f'"{other}"' for other in others)
    return (
        f'@pytest.mark.component("{component}")\n@pytest.mark.{verb}({names})\n'
        f'def test_{name}():\n    """It does."""\n\n'
    )


def test_a_hidden_check_explains_public_ones(tmp_path: Path) -> None:
    """They stand behind it, with what they name themselves first; students, who lack it, notice nothing."""
    public = declared("shape") + declared("apart", "shape")
    folder = folder_with(tmp_path, test_public=public, test_vit=explaining("oracle", "apart", "shape"))
    assert [(check.id, check.because) for check in checks(folder, COMPONENTS)] == [
        ("oracle", ()),
        ("shape", ("oracle",)),
        ("apart", ("shape", "oracle")),
    ]
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "test_public.py").write_text((folder / "checks" / "test_public.py").read_text())
    own = checks(tmp_path / "copy", COMPONENTS, public_only=True)
    assert [(check.id, check.because) for check in own] == [("shape", ()), ("apart", ("shape",))]


def test_what_hidden_checks_show_has_its_cause_in_them_too(tmp_path: Path) -> None:
    """They stand before it; what only explains it shows nothing; and students run it all the same."""
    hidden = explaining("whole", "shape", verb="shows") + explaining("half", "shape")
    hidden += explaining("rest", "shape", verb="shows")
    folder = folder_with(tmp_path, test_public=declared("shape"), test_vit=hidden)
    assert [(check.id, check.because, check.shown_by) for check in checks(folder, COMPONENTS)] == [
        ("whole", (), ()),
        ("half", (), ()),
        ("rest", (), ()),
        ("shape", ("whole", "half", "rest"), ("whole", "rest")),
    ]
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "test_public.py").write_text((folder / "checks" / "test_public.py").read_text())
    [own] = checks(tmp_path / "copy", COMPONENTS, public_only=True)
    assert own.shown_by == ()


WRONGLY_EXPLAINED = [
    (
        explaining("oracle", "shapes") + declared("shape"),
        "test_a.py:3: test_oracle explains 'shapes', and there is no such other check. Did you mean 'shape'?",
    ),
    (
        explaining("oracle", "oracle"),
        "test_a.py:3: test_oracle explains 'oracle', and there is no such other check. Remove the mark.",
    ),
    (
        explaining("oracle", "shape") + declared("shape", component="Attention"),
        "test_a.py:3: test_oracle explains 'shape', which judges Attention. Name one that judges ViT, too.",
    ),
    (
        explaining("a", "b") + explaining("b", "a"),
        "test_a.py:3: 'a' because of 'b' because of 'a': the causes go around in a circle. Remove one of "
        "these marks.",
    ),
    (
        explaining("oracle", "shapes", verb="shows") + declared("shape"),
        "test_a.py:3: test_oracle shows 'shapes', and there is no such other check. Did you mean 'shape'?",
    ),
    (
        explaining("oracle", "shape", verb="shows") + declared("shape", component="Attention"),
        "test_a.py:3: test_oracle shows 'shape', which judges Attention. Name one that judges ViT, too.",
    ),
    (
        '@pytest.mark.shows(NAME)\ndef test_one():\n    """One."""\n',
        'test_a.py:1: pytest.mark.shows needs the ids of checks in quotes, as in shows("keeps_the_shape").',
    ),
    (
        '@pytest.mark.explains(NAME)\ndef test_one():\n    """One."""\n',
        "test_a.py:1: pytest.mark.explains needs the ids of checks in quotes, as in "
        'explains("keeps_the_shape").',
    ),
]


@pytest.mark.parametrize(("text", "sentence"), WRONGLY_EXPLAINED, ids=[told for _, told in WRONGLY_EXPLAINED])
def test_what_a_check_cannot_explain(tmp_path: Path, text: str, sentence: str) -> None:
    assert fault_of(tmp_path, text) == sentence
