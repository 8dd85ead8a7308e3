"""An assignment without data: nothing is trained or measured, and nothing is said of that."""

import json
import re
import shutil
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grader.cli import cli
from grader.course.assignment_file import read_assignment
from grader.course.student_template import student_files
from grader.domain.errors import CourseError

LETTERS = Path(__file__).parent / "letters" / "reference" / "letter_counts"
OF_DATA = re.compile(r"\b(train\w*|accurac\w+|images?|epochs?|data|data set)\b", re.IGNORECASE)


@pytest.fixture
def run(letters: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """A command in the course."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADER_COURSE", str(letters))
    return lambda *words: CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")


def written(html: str) -> str:
    """What a person reads of a page."""
    text = re.sub(r"<style.*?</style>", "", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_it_has_no_classes_and_its_template_no_data_sets() -> None:
    assignment = read_assignment(LETTERS)
    assert assignment.data is None and assignment.class_names == () and not assignment.needs_data
    assert not [name for name in student_files(LETTERS) if name.startswith("datasets")]


@pytest.mark.parametrize(
    ("added", "said"),
    [
        (
            '[[rubric]]\nid = "accuracy"\ntitle = "T"\npoints = 5\nmeasured = "test_accuracy"\n'
            'breakpoints = [{ at = "chance", points = 0 }, { at = 0.9, points = 5 }]\n',
            "rubric item 'accuracy' is measured, but there is no [data] to measure on.",
        ),
        ('[[measure]]\nid = "other"\n', "[[measure]] 'other' measures a model, but there is no [data]"),
    ],
)
def test_what_is_measured_needs_data(letters: Path, added: str, said: str) -> None:
    folder = letters / "reference" / "letter_counts"
    path = folder / "assignment.toml"
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{added}", encoding="utf-8")
    with pytest.raises(CourseError) as raised:
        read_assignment(folder)
    assert str(raised.value).startswith(f"assignment.toml: {said}") and "Add [data]" in str(raised.value)


@pytest.mark.slow
def test_it_is_graded_without_data(
    run: Callable[..., Result], tmp_path: Path, letters_solved: str, on_warm_hosts: None
) -> None:
    folder = tmp_path / "class"
    folder.mkdir()
    more = 'optimizer = torch.optim.Adam(LetterCounts("a").parameters(), lr=0.1)\nprint("accuracy 99 %")'
    (folder / "400101204_Letters.py").write_text(f"{letters_solved}\n{more}", encoding="utf-8")
    (folder / "400101205_Letters.py").write_text(
        letters_solved.replace("text.lower()", "text"), encoding="utf-8"
    )
    done = run("grade", folder, "--assignment", "letter_counts", "--out", tmp_path / "out", "--jobs", 2)
    assert done.exit_code == 0, done.output
    assert not OF_DATA.search(done.output.replace(str(tmp_path), ""))
    document = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    right, wrong = document["submissions"]
    assert (right["total"], right["awaiting"], right["not_run"]) == (10, ["style"], [])
    assert right["training"]["outcome"] == "not_run" and right["plan"] is None
    assert (wrong["total"], wrong["findings"][0]["diagnosis"]) == (0, "small_letters_only")
    for page in ("index.html", "students/400101204/report.html", "students/400101205/report.html"):
        text = written((tmp_path / "out" / page).read_text(encoding="utf-8"))
        for own in ("trainable parameters", "accuracy 99 %", "optimizer = torch"):
            text = text.replace(own, "")
        assert not OF_DATA.search(text), OF_DATA.findall(text)
    again = run(
        "grade", folder, "--assignment", "letter_counts", "--out", tmp_path / "out", "--data", "synthetic"
    )
    assert again.exit_code == 0 and "has no data set, so --data is not used" in again.output
    assert "2 unchanged" in again.output


@pytest.mark.slow
def test_it_is_valid(run: Callable[..., Result], on_warm_hosts: None) -> None:
    done = run("validate", "letter_counts")
    assert done.exit_code == 0, done.output
    assert "reference full; template 0; mistakes 1 of 1 detected, 1 named" in done.output


def test_a_student_checks_and_packs_it(
    run: Callable[..., Result], letters: Path, tmp_path: Path, letters_solved: str, warm_workers: object
) -> None:
    assert run("template", "letter_counts").exit_code == 0
    folder = shutil.copytree(letters / "template" / "letter_counts", tmp_path / "mine")
    (folder / "homework.py").write_text(letters_solved, encoding="utf-8")
    (folder / "homework.ipynb").unlink()
    checked = run("check", folder / "homework.py")
    assert checked.exit_code == 0, checked.output
    assert not OF_DATA.search(checked.output) and "the checks build it themselves" in checked.output
    packed = run("pack", folder, "--id", "400101204")
    assert packed.exit_code == 0 and "trained" not in packed.output, packed.output
    trained = run("train", folder / "homework.py")
    assert trained.exit_code == 2 and "letter_counts has no data set" in trained.output
    assert run("program", folder / "homework.py").output.startswith("This assignment measures nothing")
