"""The pytest plugin, as it is at work in a student's folder: mostly in processes of its own."""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.course.student_template import notebook, write_template
from grader.files.known_folders import is_public_checks, public_checks


@pytest.fixture(scope="module")
def handout(course_root, tmp_path_factory) -> Path:
    """What students receive."""
    folder = tmp_path_factory.mktemp("handout") / "vit"
    write_template(course_root / "reference" / "vit_defects", folder, course_root / "datasets")
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """pytest in a folder, as a person starts it; warnings are errors here too."""
    command = [sys.executable, "-W", "error", "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "160"}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, encoding="utf-8"
    )


@pytest.fixture
def run_here(warm_workers, monkeypatch):
    """pytest in a folder, within this process and with warm workers: its exit code and what it printed."""
    monkeypatch.setenv("COLUMNS", "160")

    def of(folder: Path, *arguments: str) -> tuple[int, str]:
        monkeypatch.chdir(folder)
        plugins = ["-p", "no:cacheprovider", "-p", "no:faulthandler", "-s", "--import-mode=importlib"]
        said = io.StringIO()
        # pytest would find a file of the same name in another folder, if one was imported
        earlier = {name: module for name, module in sys.modules.items() if is_public_checks(f"{name}.py")}
        for name in earlier:
            del sys.modules[name]
        with contextlib.redirect_stdout(said):
            code = pytest.main([*plugins, *arguments])
        for name in [name for name in sys.modules if is_public_checks(f"{name}.py")]:
            del sys.modules[name]
        sys.modules.update(earlier)
        return int(code), said.getvalue()

    return of


@pytest.mark.slow
def test_the_solved_homework_passes(handout, solved):
    (handout / "solved.py").write_text(solved, encoding="utf-8")
    done = run(handout, "--submission", "solved.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"= 52 passed in", done.stdout)
    assert "submission: solved.py" in done.stdout


@pytest.mark.slow
def test_a_notebook_with_little_in_it_fails_kindly(handout, tmp_path, run_here):
    """Nothing is written but Attention, which hangs: that costs one limit, not one for each check."""
    (tmp_path / "assignment.toml").write_text(
        (handout / "assignment.toml").read_text("utf-8").replace("call_seconds = 10", "call_seconds = 1"),
        encoding="utf-8",
    )
    for path in public_checks(handout):
        shutil.copy(path, tmp_path)
    stub = re.compile(r"raise NotImplementedError\(\s*\"TODO Attention.__init__[^\n]*\n?\s*\)?")
    text, count = stub.subn("while True: pass\n", (handout / "homework.py").read_text("utf-8"))
    assert count == 1
    (tmp_path / "work.ipynb").write_text(notebook(text, "work", "homework.py"), encoding="utf-8")
    code, said = run_here(tmp_path, "--submission=work.ipynb")
    assert code == 1, said
    assert re.search(r"= 43 failed, 2 passed, 7 skipped in", said), said
    failures, _, summary = said.partition("short test summary info")
    hung = failures.partition("_ test_attention_keeps_the_shape _")[2].splitlines()[1]
    assert "did not return within 2 s" in hung
    lines = failures.partition("_ test_prenorm_keeps_the_shape _")[2].splitlines()[1:5]
    assert lines[0] == "`PreNorm.__init__` is not implemented yet."
    assert lines[1].startswith("Asked: PreNorm passes x through the module that it wraps")
    assert lines[2] == "Try: Replace the `raise NotImplementedError` line with your code."
    assert re.fullmatch(r"In \[\d+\], line \d+ \(cell \d+\)    raise NotImplementedError\(.*", lines[3])
    assert "test_evaluate_runs - `evaluate` is not implemented yet." in summary
    for foreign in ("Traceback", "grader/", "Mismatch", "student = <", "assert "):
        assert foreign not in said


@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_told_once(handout):
    (handout / "broken.py").write_text("x = 1\ndef attention(:\n", encoding="utf-8")
    done = run(handout, "--submission", "broken.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"= 51 skipped, 1 error in", done.stdout), done.stdout
    assert done.stdout.count("broken.py:2") == 2, "in the failure and in the summary"
    assert "Traceback" not in done.stdout and "SubmissionError" not in done.stdout


def test_a_submission_that_does_not_exist_is_said_at_once(handout):
    done = run(handout, "--submission", "nothing.py")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--submission: nothing.py does not exist" in done.stdout + done.stderr


@pytest.mark.slow
def test_a_check_that_is_wrong_itself_does_not_accuse_the_student(handout, tmp_path):
    (tmp_path / "assignment.toml").write_bytes((handout / "assignment.toml").read_bytes())
    (tmp_path / "homework.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "test_public.py").write_text(
        'import pytest\n\n\n@pytest.mark.component("ViT")\ndef test_wrong(class_names):\n'
        '    """ViT does something."""\n    class_names.no_such_thing\n',
        encoding="utf-8",
    )
    told = run(tmp_path)
    assert told.returncode == 1
    assert "The check itself failed (AttributeError in test_public.py:7). It costs no points." in told.stdout
    assert "no_such_thing" not in told.stdout
    assert "no_such_thing" in run(tmp_path, "--full-trace").stdout


@pytest.mark.slow
def test_elsewhere_it_is_inert(tmp_path):
    """A project with a fixture, a marker-free configuration and failures of its own is left alone."""
    (tmp_path / "test_own.py").write_text(
        "import sys\nimport pytest\n\n\n@pytest.fixture\ndef student():\n    return 'mine'\n\n\n"
        "def test_fixture(student):\n    assert student == 'mine'\n\n\n"
        "def test_light():\n    assert not {'torch', 'numpy', 'pydantic'} & set(sys.modules)\n\n\n"
        "def test_failure():\n    assert 1 == 2\n",
        encoding="utf-8",
    )
    (tmp_path / "test_marked.py").write_text(
        "import pytest\n\n\n@pytest.mark.component('x')\ndef test_marked():\n    pass\n", encoding="utf-8"
    )
    done = run(tmp_path, "--strict-markers", "test_own.py")
    assert re.search(r"= 1 failed, 2 passed in", done.stdout), done.stdout + done.stderr
    assert "assert 1 == 2" in done.stdout and "submission" not in done.stdout
    marked = run(tmp_path, "--strict-markers", "test_marked.py")
    assert "'component' not found in `markers`" in marked.stdout, "the markers are announced for checks only"


def test_its_fixture_says_what_it_is_for(tmp_path):
    (tmp_path / "test_own.py").write_text("def test_x(student):\n    pass\n", encoding="utf-8")
    done = run(tmp_path)
    assert done.returncode == 1
    assert "it has no assignment.toml beside test_public.py" in done.stdout


def test_what_fails_for_the_cause_of_another_check_says_so(handout, tmp_path, run_here):
    folder = tmp_path / "vit"
    shutil.copytree(handout, folder)
    for path in public_checks(folder):
        path.unlink()
    (folder / "test_public.py").write_text(
        'import pytest\n\npytestmark = pytest.mark.component("ViT")\n\n\n'
        'def test_first(student):\n    """The first."""\n    assert False, "It is wrong."\n\n\n'
        '@pytest.mark.because("first")\n'
        'def test_second(student):\n    """The second."""\n    assert False, "It is wrong as well."\n\n\n'
        '@pytest.mark.because("first", run=False)\n'
        'def test_third(student):\n    """The third."""\n    assert False, "It is tried."\n',
        encoding="utf-8",
    )
    code, said = run_here(folder, "-rs")
    assert code == 1 and "2 failed, 1 skipped" in said, said
    assert "It is wrong." in said and "It fails for the same reason as test_first." in said
    assert "It is wrong as well." not in said and "It is tried." not in said
    assert "It says nothing until test_first passes." in said
