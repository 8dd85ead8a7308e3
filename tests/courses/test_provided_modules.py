"""A module that a course hands out: homework imports it, and the course's copy counts."""

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from nbformat import v4

from grader.analysis import program
from grader.cli import cli
from grader.course.assignment_file import read_assignment
from grader.course.reference_solution import solved_source
from grader.domain.errors import CourseError

ID = "400101204"
WAY = """        super().__init__()
        state = torch.hub.load_state_dict_from_url("https://example.org/weights/scale-v1.pth")
        self.scale = nn.Parameter(state["scale"])

    def forward(self, x):
        return self.scale * x
"""
HANDED_OUT = f'''"""What is given."""

import string

import torch
from torch import nn

ALPHABET = string.ascii_lowercase


class Scaled(nn.Module):
    def __init__(self):
{WAY}'''


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """A command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")


@pytest.fixture
def handing_out(letters: Path) -> Path:
    """The assignment on a corpus, whose second class is given in `handout.py`."""
    folder = letters / "reference" / "letter_corpus"
    (folder / "provided" / "handout.py").write_text(HANDED_OUT, encoding="utf-8")
    source = (folder / "solution.py").read_text(encoding="utf-8")
    source = source[: source.index("class Scaled")].rstrip() + "\n"
    source = source.replace("ALPHABET = string.ascii_lowercase\n", "")
    source = source.replace(
        "import string\n\nimport torch\n", "import torch\nfrom handout import ALPHABET, Scaled\n"
    )
    (folder / "solution.py").write_text(source, encoding="utf-8")
    stated(folder, "handout.py")
    settings = (folder / "assignment.toml").read_text(encoding="utf-8")
    settings = settings.replace("CorpusCounts = 4, Scaled = 2", "CorpusCounts = 6, Scaled = 0")
    (folder / "assignment.toml").write_text(settings, encoding="utf-8")
    return folder


def stated(folder: Path, name: str) -> None:
    """Let `assignment.toml` name a file of `provided/`."""
    digest = sha256((folder / "provided" / name).read_bytes()).hexdigest()
    text = (folder / "assignment.toml").read_text(encoding="utf-8")
    text = text.replace("[provided]\nfiles = [", f'[provided]\nfiles = ["{name}", ')
    text = text.replace("[provided.sha256]\n", f'[provided.sha256]\n"{name}" = "{digest}"\n')
    (folder / "assignment.toml").write_text(text, encoding="utf-8")


def solved(assignment: Path) -> str:
    """The text of the solution, as a student would hand it in."""
    return solved_source((assignment / "solution.py").read_text(encoding="utf-8"), "solution.py")


@pytest.mark.slow
def test_the_solution_is_judged_with_it(
    run: Callable[..., Result], handing_out: Path, on_warm_hosts: None
) -> None:
    """In warm hosts and in plain processes."""
    course = handing_out.parents[1]
    done = run("validate", "letter_corpus", "--course", course)
    assert done.exit_code == 0 and "reference full; template 0" in done.output, done.output
    done = run("validate", "letter_corpus", "--course", course, "--only", "reference", "--debug")
    assert done.exit_code == 0 and "reference full" in done.output, done.output


@pytest.mark.slow
def test_the_courses_copy_counts_whatever_is_handed_in(
    run: Callable[..., Result], handing_out: Path, tmp_path: Path, on_warm_hosts: None
) -> None:
    for student_id, given in ((ID, None), ("400101301", HANDED_OUT.replace("lowercase", "digits"))):
        folder = tmp_path / "class" / student_id
        folder.mkdir(parents=True)
        (folder / f"{student_id}_Corpus.py").write_text(solved(handing_out), encoding="utf-8")
        (folder / f"{student_id}_Corpus.txt").write_text("Counted.")
        if given is not None:
            (folder / "handout.py").write_text(given, encoding="utf-8")
    words = ("--assignment", "letter_corpus", "--course", handing_out.parents[1], "--out", tmp_path / "out")
    done = run("grade", tmp_path / "class", *words)
    assert done.exit_code == 0, done.output
    without, changed = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))[
        "submissions"
    ]
    assert (without["total"], changed["total"]) == (6, 6), changed["findings"]
    assert not without["refused_files"]
    (refused,) = changed["refused_files"]
    assert "handout.py: is what the course provides" in refused["reason"]


@pytest.mark.parametrize("name", ["handout.py", "handout/__init__.py", "lib/handout.py"])
def test_no_file_of_the_students_takes_its_place(handing_out: Path, name: str) -> None:
    rules = read_assignment(handing_out).program_rules
    source = solved(handing_out).encode()
    found = program("homework.py", source, rules, {name: b"ALPHABET = 'other'\n"})
    assert found.modules == ("handout.py",)
    (statement,) = [each for each in found.statements if "ALPHABET" in each.binds]
    assert "ascii_lowercase" in statement.source


def test_no_cell_writes_it(handing_out: Path) -> None:
    rules = read_assignment(handing_out).program_rules
    notebook = v4.new_notebook(
        cells=[
            v4.new_code_cell("%%writefile handout.py\nALPHABET = 'other'\n"),
            v4.new_code_cell(solved(handing_out)),
        ]
    )
    found = program("homework.ipynb", v4.writes(notebook).encode(), rules)
    (statement,) = [each for each in found.statements if "ALPHABET" in each.binds]
    assert "ascii_lowercase" in statement.source


@pytest.mark.slow
def test_who_puts_another_in_the_place_of_what_is_given_is_told(
    run: Callable[..., Result], handing_out: Path, tmp_path: Path, on_warm_hosts: None
) -> None:
    """A class of the student's own takes the place of the imported one."""
    own = "\n\nclass Scaled(nn.Module):\n    def __init__(self):\n" + WAY.replace(
        "self.scale * x", "self.scale + x"
    )
    (tmp_path / "class" / ID).mkdir(parents=True)
    (tmp_path / "class" / ID / f"{ID}_Corpus.py").write_text(solved(handing_out) + own, encoding="utf-8")
    (tmp_path / "class" / ID / f"{ID}_Corpus.txt").write_text("Counted.")
    words = ("--assignment", "letter_corpus", "--course", handing_out.parents[1], "--out", tmp_path / "out")
    assert run("grade", tmp_path / "class", *words).exit_code == 0
    (record,) = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))["submissions"]
    assert record["total"] == 6
    assert {each["component"] for each in record["findings"] if each["status"] == "failed"} == {"Scaled"}


@pytest.mark.slow
def test_a_student_has_it_beside_the_homework(
    run: Callable[..., Result], handing_out: Path, tmp_path: Path
) -> None:
    course = handing_out.parents[1]
    assert run("template", "letter_corpus", "--course", course).exit_code == 0
    mine = shutil.copytree(course / "template" / "letter_corpus", tmp_path / "mine")
    assert (mine / "handout.py").read_text(encoding="utf-8") == HANDED_OUT
    (mine / "homework.py").write_text(solved(handing_out), encoding="utf-8")
    (mine / "homework.ipynb").unlink()
    (mine / "notes.txt").write_text("Counted.")
    checked = run("check", mine / "homework.py")
    assert checked.exit_code == 0, checked.output
    packed = run("pack", mine, "--id", ID)
    assert packed.exit_code == 0, packed.output
    assert not (mine / "handin" / "handout.py").exists(), "the grader has its own"
    (mine / "handout.py").write_text(HANDED_OUT.replace("lowercase", "uppercase"), encoding="utf-8")
    told = run("check", mine / "homework.py")
    assert told.exit_code == 2
    assert "handout.py beside homework.py is not the file that the course provides." in told.output


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("torch.py", "Python or a library has a module of the name of 'torch.py'. Rename it."),
        ("string.py", "Python or a library has a module of the name of 'string.py'. Rename it."),
        ("hand-out.py", "'hand-out.py' cannot be imported: that is not a name in Python. Rename it."),
        ("handout.ipynb", "'handout.ipynb' cannot be provided: of code, only modules can."),
    ],
)
def test_a_module_that_cannot_be_imported_is_told(handing_out: Path, name: str, said: str) -> None:
    (handing_out / "provided" / name).write_text(HANDED_OUT, encoding="utf-8")
    stated(handing_out, name)
    with pytest.raises(CourseError) as raised:
        read_assignment(handing_out)
    assert said in str(raised.value)


def test_its_signatures_are_compared_too(run: Callable[..., Result], handing_out: Path) -> None:
    path = handing_out / "assignment.toml"
    text = path.read_text(encoding="utf-8")
    at = text.rindex('signature = ""')
    path.write_text(text[:at] + 'signature = "size"' + text[at + len('signature = ""') :], encoding="utf-8")
    done = run("validate", "letter_corpus", "--course", handing_out.parents[1])
    told = " ".join(done.output.split())
    assert done.exit_code != 0 and "the signature is 'size', and provided/handout.py:12 has ''" in told
