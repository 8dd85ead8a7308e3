"""`grader pack` in a student's folder."""

import importlib.util
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ID = "400101204"
STEM = f"{ID}_Lab8_Homework"


@pytest.fixture(scope="session")
def uploads(course_root: Path) -> ModuleType:
    """The module that builds example uploads (importlib mode puts no test folder on the path)."""
    path = course_root / "tests" / "submissions" / "build.py"
    spec = importlib.util.spec_from_file_location("uploads_for_packing", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def built(uploads, course_root, tmp_path_factory) -> Path:
    """The three files of a good submission, under their right names."""
    behaviour = course_root / "tests" / "submissions" / "good_script"
    return Path(uploads.build(behaviour, tmp_path_factory.mktemp("built")))


@pytest.fixture
def ready(desk, built) -> Path:
    """A folder in which everything is there, under a student's own names."""
    for path in built.iterdir():
        name = {".py": "homework.py", ".pth": "400101204.pth", ".pdf": "my report.pdf"}[path.suffix]
        (desk / name).write_bytes(path.read_bytes())
    return desk


def test_a_complete_folder_is_packed_and_zipped(ready, run):
    result = run("pack", "--id", ID, "--zip")
    assert result.exit_code == 0, result.output
    for name, source in (("py", "homework.py"), ("pth", f"{ID}.pth"), ("pdf", "my report.pdf")):
        assert (ready / "handin" / f"{STEM}.{name}").read_bytes() == (ready / source).read_bytes()
        assert f"{STEM}.{name} (from {source})" in result.output
    assert "they fit the model in your code" in result.output
    assert "homework.ipynb was left out" in result.output, "the untouched notebook is not the homework"
    with zipfile.ZipFile(ready / "handin" / f"{STEM}.zip") as archive:
        assert sorted(archive.namelist()) == [f"{STEM}.pdf", f"{STEM}.pth", f"{STEM}.py"]
    before = (ready / "handin" / f"{STEM}.zip").read_bytes()
    again = run("pack", "--id", ID, "--zip")
    assert again.exit_code == 0, "the same content again is no conflict"
    assert (ready / "handin" / f"{STEM}.zip").read_bytes() == before
    inferred = run("pack", "handin", "--assignment-folder", ".", "--out", "elsewhere")
    assert inferred.exit_code == 0, "right names say whose work it is"
    assert sorted(path.name for path in (ready / "elsewhere").iterdir()) == [
        f"{STEM}.{s}" for s in ("pdf", "pth", "py")
    ]


def test_nothing_is_overwritten_unless_it_is_said(ready, run):
    (ready / f"{ID}.pth").unlink()
    target = ready / "handin" / f"{STEM}.py"
    target.parent.mkdir()
    target.write_text("older\n", encoding="utf-8")
    result = run("pack", "--id", ID)
    assert result.exit_code == 1 and "is there already, with other content" in result.output
    assert target.read_text(encoding="utf-8") == "older\n"
    run("pack", "--id", ID, "--force")
    assert target.read_bytes() == (ready / "homework.py").read_bytes()


def test_what_is_missing_is_said_and_the_rest_is_packed(ready, run, uploads):
    (ready / "my report.pdf").unlink()
    (ready / "report.docx").write_bytes(b"PK\x03\x04")
    (ready / f"{ID}.pth").write_bytes(uploads._foreign_weights())
    result = run("pack", "--id", ID, "--zip")
    assert result.exit_code == 1
    assert "There is no .pdf file. Export your report as PDF" in result.output
    assert f"{ID}.pth does not belong to the submitted model" in result.output
    assert "Not complete: no weights, no report. With one file missing there is no grade." in result.output
    assert [path.name for path in (ready / "handin").iterdir()] == [f"{STEM}.py"]


def test_files_that_are_not_what_they_should_be_are_not_packed(ready, run):
    (ready / "homework.py").write_text("def broken(:\n", encoding="utf-8")
    (ready / "my report.pdf").write_bytes(b"PK\x03\x04 a Word document")
    result = run("pack", "--id", ID, "--code", "homework.py")
    assert result.exit_code == 1
    assert "homework.py:1" in result.output
    assert "is not a PDF (it is a Word document under another name)" in result.output
    assert f"{ID}.pth could not be tried, because there is no code" in result.output
    assert [path.name for path in (ready / "handin").iterdir()] == [f"{STEM}.pth"]


def test_of_two_equally_good_files_the_student_chooses(desk, run):
    result = run("pack", "--id", ID)
    assert result.exit_code == 1
    assert "Which one is meant, homework.ipynb or homework.py? Say so: --code FILE" in result.output
    chosen = run("pack", "--id", ID, "--code", "homework.ipynb")
    assert f"✓ code     {STEM}.ipynb (from homework.ipynb)" in chosen.output
    assert "14 of its parts are not written yet." in chosen.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["pack"], "Say so: grader pack --id STUDENT_ID"),
        (["pack", "--id", "a/b"], "letters, digits, `-` and `_` only"),
        (["pack", "nowhere", "--id", ID], "nowhere is not a folder"),
        (["pack", "--id", ID, "--report", "no.pdf"], "--report no.pdf: there is no such file."),
    ],
)
def test_wrong_arguments_get_a_sentence(desk, run, arguments, told):
    result = run(*arguments)
    assert result.exit_code == 2 and told in result.output, result.output


def test_modules_that_the_homework_imports_are_packed_with_it(ready, run):
    text = (ready / "homework.py").read_text(encoding="utf-8")
    (ready / "parts").mkdir()
    (ready / "parts" / "tools.py").write_text("def same(x):\n    return x\n", encoding="utf-8")
    (ready / "homework.py").write_text("from parts.tools import same\n" + text, encoding="utf-8")
    result = run("pack", "--id", ID, "--zip")
    assert result.exit_code == 0, result.output
    assert "module   parts/tools.py: your code imports it" in result.output
    assert (ready / "handin" / "parts" / "tools.py").read_text(encoding="utf-8").startswith("def same")
    with zipfile.ZipFile(ready / "handin" / f"{STEM}.zip") as archive:
        assert "parts/tools.py" in archive.namelist()
