"""A student installs the wheel, has nothing else of ours, and checks a homework."""

import json
import os
import re
import subprocess
import sys
import venv
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from grader.course.student_template import DISTRIBUTION, student_wheel, write_template

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there"),
]


def needed(name: str, found: set[str]) -> set[str]:
    """The distributions that one needs on this machine, without its extras; they are added to `found`."""
    for requirement in distribution(name).requires or ():
        words, _, condition = requirement.partition(";")
        match = re.match(r"[\w.-]+", words)
        assert match is not None
        other = re.sub(r"[-_.]+", "-", match[0]).lower()
        if "extra" in condition or other in found:
            continue
        try:
            distribution(other)
        except PackageNotFoundError:  # for another system or another Python
            continue
        found.add(other)
        needed(other, found)
    return found


def link_dependencies(site_packages: Path) -> None:
    """Puts what the grader needs, and nothing that only its developers need, into another environment."""
    for name in needed(DISTRIBUTION, set()):
        installed = distribution(name)
        tops = {file.parts[0] for file in installed.files or () if file.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            link = site_packages / top
            if not link.exists():
                link.symlink_to(str(installed.locate_file(top)))


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory, course_root: Path) -> Path:
    """A student's folder as it is handed out, with an environment in which its wheel is installed."""
    folder = tmp_path_factory.mktemp("student") / "vit"
    write_template(course_root / "reference" / "vit_defects", folder, course_root / "datasets")
    venv.create(folder / ".venv", with_pip=False, symlinks=True)
    [site_packages] = (folder / ".venv" / "lib").glob("python3*/site-packages")
    link_dependencies(site_packages)
    [wheel] = folder.glob("vit_grader-*.whl")
    install = ["-m", "pip", "--python", ".venv/bin/python", "install", "--quiet", "--no-deps", "--no-index"]
    done = command(folder, sys.executable, *install, str(wheel))
    assert done.returncode == 0, done.stderr
    return folder


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in the student's folder, with no trace of the environment that the tests have."""
    kept = {
        name: os.environ[name]
        for name in ("HOME", "PATH", "LANG", "TMPDIR", "GRADER_CACHE")
        if name in os.environ
    }
    return subprocess.run(
        words, cwd=folder, env=kept, capture_output=True, text=True, check=False, encoding="utf-8"
    )


def test_the_installed_grader_is_not_this_one_and_needs_no_developers_tools(student: Path) -> None:
    asked = "import grader, importlib.util as u; print(grader.__file__); print(u.find_spec('hypothesis'))"
    done = command(student, ".venv/bin/python", "-c", asked)
    file, tool = done.stdout.split()
    assert Path(file).is_relative_to(student / ".venv") and tool == "None"


def test_the_bare_homework_is_checked(student: Path) -> None:
    done = command(student, ".venv/bin/grader", "check", "--json")
    assert done.returncode == 1, done.stderr
    assert "is not implemented yet" in done.stdout


def test_a_right_homework_passes_and_pytest_finds_the_checks(student: Path, solved: str) -> None:
    (student / "homework.py").write_text(solved, encoding="utf-8")
    done = command(student, ".venv/bin/grader", "check", "homework.py", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["passed"]
    done = command(student, ".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_installed_grader_hands_out_the_same_wheel(student: Path, course_root: Path) -> None:
    out = student.parent / "again"
    done = command(
        student,
        ".venv/bin/grader",
        "--course",
        str(course_root),
        "template",
        "vit_defects",
        "--out",
        str(out),
    )
    assert done.returncode == 0, done.stderr
    name, content = student_wheel()
    assert (out / name).read_bytes() == content
