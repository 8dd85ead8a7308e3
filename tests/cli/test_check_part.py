"""`grader check PART`: the checks of one part alone."""

import json
from pathlib import Path

import pytest

from grader.cli.check import part_and_its_file
from grader.course.locate import student_assignment
from grader.domain.errors import UsageError


@pytest.fixture
def attention(handout: Path) -> int:
    """How many public checks `Attention` has."""
    return sum(spec.component == "Attention" for spec in student_assignment(handout).checks)


def test_only_the_checks_of_the_part_are_made_and_shown(desk, run, solved, attention):
    text = solved.replace("class FeedForward(", "class Feedforward(").replace(
        "import shutil\n", "import timm\n"
    )
    (desk / "homework.py").write_text(text, encoding="utf-8")
    result = run("check", "Attention")
    assert result.exit_code == 0, result.output
    headings = [line for line in result.output.splitlines() if line and not line.startswith((" ", "✓"))]
    assert headings[1:] == ["Attention"], "neither other parts, nor the file, its training and its notes"
    last = result.output.strip().splitlines()[-1]
    assert last == f"✓ All {attention} public checks of `Attention` pass."


def test_a_part_that_fails_names_its_cause_once(desk, run, attention):
    result = run("check", "Attention", "homework.ipynb")
    assert result.exit_code == 1
    assert result.output.startswith("homework.ipynb: ") and "\nAttention\n" in result.output
    assert (
        f"{attention - 1} more checks fail for this reason:" in result.output
        and "ViT" not in result.output.split("\n", 1)[1]
    )
    assert result.output.strip().endswith(f"✗ 0 of {attention} public checks of `Attention` pass.")


def test_what_hinders_the_part_is_told_and_nothing_else(desk, run, solved):
    text = solved.replace("class Attention(", "class Atention(") + "\nvalue = 1\n"
    (desk / "homework.py").write_text(text, encoding="utf-8")
    result = run("check", "Attention")
    assert "`Atention` was taken for `Attention`" in result.output
    assert "Left out" not in result.output and "What would be trained" not in result.output
    assert "`Atention` was taken" not in run("check", "PreNorm").output


def test_json_has_the_findings_of_the_part(desk, run):
    found = json.loads(run("check", "PreNorm", "--json").output)
    assert {one["component"] for one in found["findings"]} == {"PreNorm"} and found["plans"] == {}
    assert (found["part"], found["exit_code"]) == ("PreNorm", 1) and "points" not in found


def test_a_part_that_is_not_allowed_is_told_where_it_is_used(desk, run, solved):
    before, begin, rest = solved.partition("class Attention(")
    line = "super().__init__()\n"
    text = before + begin + rest.replace(line, f"{line}        self.theirs = nn.MultiheadAttention\n", 1)
    (desk / "homework.py").write_text(text, encoding="utf-8")
    result = run("check", "Attention")
    assert result.exit_code == 1 and "Parts that are not allowed" in result.output
    assert result.output.strip().endswith("but `torch.nn.MultiheadAttention` is not allowed: see above.")
    assert run("check", "PreNorm").exit_code == 0, "another part does not use it"


def test_an_unknown_part_gets_the_parts_that_there_are(desk, run):
    result = run("check", "attention")
    assert result.exit_code == 2
    told = " ".join(result.output.split())
    assert told.startswith(
        "error: There is no part `attention`. Is `Attention` meant? The parts that can be "
    )
    assert "`PreNorm`" in told and "`submission`" not in told
    assert "There is no part `submission`" in run("check", "submission").output
    assert "3 words" in run("check", "a", "b", "c").output


def test_a_word_is_a_part_unless_it_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").write_text("x = 1\n", encoding="utf-8")
    assert part_and_its_file(()) == ("", None)
    assert part_and_its_file(("Attention",)) == ("Attention", None)
    assert part_and_its_file(("mine",)) == ("", Path("mine"))
    assert part_and_its_file(("nothing.py",)) == ("", Path("nothing.py"))
    assert part_and_its_file(("ViT", "mine")) == ("ViT", Path("mine"))
    Path("train").mkdir()  # as of an unpacked data set: no folder can be checked
    assert part_and_its_file(("train",)) == ("train", None)
    with pytest.raises(UsageError):
        part_and_its_file(("a", "b", "c"))
