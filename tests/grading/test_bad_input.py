"""Bad input gets one clear sentence that names the file and the remedy, and never a traceback."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from click.testing import CliRunner, Result
from nbformat import v4

from grader.cli import cli
from tests.warm_hosts import WarmHosts

Grader = Callable[..., Result]
Writer = Callable[[Path], None]


def old_notebook(code: str) -> str:
    """A notebook of the format 3, as IPython 2 wrote it."""
    cell = {"cell_type": "code", "input": code, "language": "python", "outputs": [], "collapsed": False}
    sheet = {"cells": [cell], "metadata": {}}
    return json.dumps({"metadata": {"name": ""}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [sheet]})


def new_notebook(code: str) -> str:
    """A notebook of today's format."""
    text: str = nbformat.writes(v4.new_notebook(cells=[v4.new_code_cell(code)]))
    return text


# student id -> (the file's name ending, its bytes, what the reason must say)
ODD: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    "1001": (".py", b"", ("1001_Lab8_Homework.py", "empty")),
    "1002": (".py", b"class ViT(:\n    pass\n", ("1002_Lab8_Homework.py:1",)),
    "1003": (".py", b"\x81\x8d = 1\n", ("1003_Lab8_Homework.py", "UTF-8")),
    "1004": (".py", b"print 'hello'\n", ("1004_Lab8_Homework.py", "Python 2")),
    "1005": (".ipynb", new_notebook("x = 1")[:60].encode(), ("1005_Lab8_Homework.ipynb", "notebook")),
    "1006": (".py", b"x = 1\x00\n", ("1006_Lab8_Homework.py",)),
    "1007": (".py", b"x = " + b"(" * 5000 + b")" * 5000, ("1007_Lab8_Homework.py", "nest")),
}


@pytest.fixture(scope="module")
def results(
    tmp_path_factory: pytest.TempPathFactory, warm_hosts: WarmHosts, course_root: Path
) -> dict[str, Any]:
    """What becomes of a class of odd uploads, by student id."""
    folder, out = tmp_path_factory.mktemp("odd"), tmp_path_factory.mktemp("out")
    for student_id, (suffix, data, _) in ODD.items():
        (folder / f"{student_id}_Lab8_Homework{suffix}").write_bytes(data)
    (folder / "1008_Lab8_Homework.ipynb").write_text(old_notebook("def evaluate(model, data_loader):\n    1"))
    (folder / "1009_Lab8_Homework.py").write_text("x = 1\n")
    (folder / "1009_Lab8_Homework.pth").write_bytes(b"these are not weights")
    (folder / "1009_Lab8_Homework.pdf").write_text("this is not a PDF")
    words = (
        "--course",
        course_root,
        "grade",
        folder,
        "--assignment",
        "vit_defects",
        "--no-train",
        "--out",
        out,
    )
    with warm_hosts.shared():
        done = CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")
    assert done.exit_code == 0, done.output
    assert "Traceback" not in done.output
    document = json.loads((out / "results.json").read_text("utf-8"))
    return {entry["student_id"]: entry for entry in document["submissions"]}


@pytest.mark.parametrize("student_id", ODD)
def test_unreadable_code_is_refused_with_the_reason(student_id: str, results: dict[str, Any]) -> None:
    entry = results[student_id]
    assert entry["status"] == "refused" and entry["total"] is None
    for words in ODD[student_id][2]:
        assert words in entry["reason"], entry["reason"]


def test_a_notebook_of_an_old_format_is_upgraded_and_graded(results: dict[str, Any]) -> None:
    entry = results["1008"]
    assert entry["status"] == "incomplete" and entry["findings"]
    assert any("format" in note for note in entry["notes"])


def test_files_that_are_not_what_they_say_are_missing_with_the_reason(results: dict[str, Any]) -> None:
    entry = results["1009"]
    assert entry["status"] == "incomplete" and set(entry["missing"]) == {"checkpoint", "report"}
    reasons = " ".join(refused["reason"] for refused in entry["refused_files"])
    assert "torch.save" in reasons and "PDF" in reasons


def no_images(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "notes.txt").write_text("nothing here")


def corrupt_zip(folder: Path) -> None:
    (folder / "class.zip").write_bytes(b"PK\x03\x04 and then nothing that makes sense")


def empty_class(folder: Path) -> None:
    (folder / "class").mkdir()


@pytest.mark.parametrize(
    ("prepare", "arguments", "words"),
    [
        (no_images, ("HERE", "--data", "HERE/data"), ("HERE/data", "images")),
        (lambda folder: None, ("HERE", "--data", "HERE/missing.zip"), ("HERE/missing.zip",)),
        (corrupt_zip, ("HERE/class.zip", "--no-train"), ("class.zip", "zip")),
        (corrupt_zip, ("HERE", "--data", "HERE/class.zip"), ("class.zip", "zip")),
        (empty_class, ("HERE/class", "--no-train"), ("class", "no submission")),
        (lambda folder: None, ("HERE/nobody.py", "--no-train"), ("HERE/nobody.py", "does not exist")),
        (lambda folder: None, ("HERE",), ("--data", "--no-train", "synthetic")),
    ],
)
def test_bad_arguments_get_one_sentence(
    grader: Grader, tmp_path: Path, prepare: Writer, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    prepare(tmp_path)
    given = [argument.replace("HERE", str(tmp_path)) for argument in arguments]
    done = grader(
        "grade", *given, "--assignment", "vit_defects", "--out", tmp_path.with_name(f"{tmp_path.name}_out")
    )
    assert done.exit_code == 2
    said = [line for line in done.stderr.splitlines() if not line.startswith("warning:")]
    assert len(said) == 1 and said[0].startswith("error: ")
    for word in words:
        assert word.replace("HERE", str(tmp_path)) in said[0]


def test_an_unknown_assignment_is_named_with_the_known_ones(grader: Grader, tmp_path: Path) -> None:
    done = grader("grade", tmp_path, "--assignment", "vit_defect", "--no-train", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "vit_defects" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("command", "out"),
    [("grade", "results"), ("grade", "deeper/results"), ("grade", "."), ("similar", "results")],
)
def test_results_do_not_go_among_the_submissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, course_root: Path, command: str, out: str
) -> None:
    """The next run would read them as a student's, whose missing code then holds the grades of the class."""
    (tmp_path / "1001_Lab8_Homework.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    words = [command, ".", "--assignment", "vit_defects", "--out", out]
    words += ["--no-train"] if command == "grade" else []
    done = CliRunner().invoke(cli, ["--course", str(course_root), *words])
    told = " ".join(done.output.split())
    assert done.exit_code == 2 and f"--out {out}: lies among the submissions" in told, told
    assert f"Give a folder outside of {tmp_path}." in told
    assert [path.name for path in tmp_path.iterdir()] == ["1001_Lab8_Homework.py"]
