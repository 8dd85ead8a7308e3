"""The three assignments in one course: each stands by itself, and a term renews them all."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.course.reference_solution import solved_source
from tests.submissions.build import pdf

ROOT = Path(__file__).parents[2]
ASSIGNMENTS = ("vit_cifar10", "vit_defects", "vit_finetune")
ID = "400106001"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A copy of the course without its templates."""
    copy = tmp_path / "course"
    for folder in ("reference", "datasets"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(ROOT / "course.toml", copy / "course.toml")
    return copy


def run(course: Path, *words: object) -> str:
    """What a command prints."""
    done = CliRunner().invoke(cli, ["--course", str(course), *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.slow
def test_a_term_renews_all_of_them(course: Path) -> None:
    """The templates are those that are handed out now, but for the term in them."""
    run(course, "new-term", "2027-fall")
    assert 'term = "2027-fall"' in (course / "course.toml").read_text(encoding="utf-8")
    made = {path.name for path in (course / "template").iterdir()}
    assert made == set(ASSIGNMENTS)
    for name in ASSIGNMENTS:
        new, old = course / "template" / name, ROOT / "template" / name
        files, before = ({path.name for path in each.iterdir() if path.suffix} for each in (new, old))
        assert {name for name in files if not name.endswith(".whl")} <= before
        assert (new / "homework.py").read_bytes() == (old / "homework.py").read_bytes()


@pytest.mark.slow
def test_grading_one_never_touches_another(course: Path, tmp_path: Path) -> None:
    """The others may be broken, or gone: nobody reads them, and nothing in them changes."""
    for other in ASSIGNMENTS[:2]:
        for path in (course / "reference" / other).rglob("*"):
            if path.is_file():
                path.write_bytes(b"not read ]")
    before = {path: path.stat().st_mtime_ns for path in course.rglob("*")}
    handed_in, out = tmp_path / "class", tmp_path / "out"
    handed_in.mkdir()
    source = (course / "reference" / "vit_finetune" / "solution.py").read_text(encoding="utf-8")
    (handed_in / f"{ID}_Finetune.py").write_text(solved_source(source, "solution.py"), encoding="utf-8")
    (handed_in / f"{ID}_Finetune.pdf").write_bytes(pdf("Report"))
    run(course, "grade", handed_in, "--assignment", "vit_finetune", "--no-train", "--out", out)
    [result] = json.loads((out / "results.json").read_text(encoding="utf-8"))["submissions"]
    assert result["student_id"] == ID and all(each["status"] == "passed" for each in result["findings"])
    after = {path: path.stat().st_mtime_ns for path in course.rglob("*") if path.name != ".grader-secret"}
    touched = {path for path in after if path.is_file() and after[path] != before.get(path)}
    assert not [path for path in touched if path.is_relative_to(course / "reference")]
