"""Packages, made by the command, and trees of folders laid out like other graders'.

What is run as a package is a small assignment: a run loads PyTorch twice, and little more than that.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.course.locate import located_course
from grader.course.reference_solution import solved_source

SECRET = "a secret of the tests: 5e0c1b7f"
HERE = Path(__file__).parent
ORDINARY_UID = 54_321


@dataclass(frozen=True)
class MadePackage:
    """A package: its zip, and what the command said."""

    path: Path
    said: str

    def files(self) -> dict[str, bytes]:
        """Name -> content."""
        with zipfile.ZipFile(self.path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    def unpack(self, folder: Path) -> None:
        """As `unzip` does it, with the permissions."""
        with zipfile.ZipFile(self.path) as archive:
            for entry in archive.infolist():
                archive.extract(entry, folder)
                (folder / entry.filename).chmod(entry.external_attr >> 16 & 0o777)


@pytest.fixture(scope="session")
def made(course_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., MadePackage]:
    """Make a package by the command; each once."""
    known: dict[tuple[object, ...], MadePackage] = {}

    def package(
        kind: str, *options: str, assignment: str = "vit_defects", course: Path = course_root
    ) -> MadePackage:
        key = (kind, *options, assignment, course)
        if key not in known:
            path = tmp_path_factory.mktemp("package") / f"{kind}.zip"
            arguments = ["package", kind, "--assignment", assignment, "--course", str(course)]
            done = CliRunner().invoke(
                cli, [*arguments, "--out", str(path), *options], env={"GRADER_SECRET": SECRET}
            )
            assert done.exit_code == 0, done.output
            known[key] = MadePackage(path, done.output)
        return known[key]

    return package


@pytest.fixture(scope="session")
def small_course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course with one assignment, `heads`, whose values are drawn for the term."""
    folder = tmp_path_factory.mktemp("small") / "course"
    shutil.copytree(HERE.parent / "courses" / "drawn", folder)
    path = folder / "reference" / "heads" / "assignment.toml"
    path.write_text(path.read_text("utf-8").replace('per = "student"\n', ""), "utf-8")
    return folder


@pytest.fixture(scope="session")
def small_solution(small_course: Path) -> str:
    """The solution of `heads` with the values of the term."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADER_SECRET", SECRET)
        course = located_course(small_course)
    text = (course.reference("heads") / "solution.py").read_text("utf-8")
    return solved_source(text, "solution.py", course.values("heads", course.assignment("heads").variant))


@dataclass(frozen=True)
class Tree:
    """A folder laid out like another grader's.

    Attributes:
        root: `/autograder` or `/grade`.
        submission: Where the student's files lie.
        run: The command that the other grader executes.
    """

    root: Path
    submission: Path
    run: tuple[str, ...]

    @property
    def results(self) -> Path:
        """The file that the other grader reads."""
        return self.root / "results" / "results.json"

    def graded(self, *, how: str = "") -> dict[str, Any]:
        """What a run leaves.

        Args:
            how: `user`: as an ordinary user; `container`, `container without seccomp,landlock`: as root in
                one; empty: as whoever runs the tests.
        """
        command = list(self.run)
        if how == "user":
            subprocess.run(["chown", "-R", str(ORDINARY_UID), str(self.root)], check=True)
            launcher = HERE.parent / "sandbox" / "ordinary_user.py"
            command = [sys.executable, str(launcher), str(ORDINARY_UID), *command]
        elif how:
            without = how.removeprefix("container").removeprefix(" without ") or "nothing"
            command = [sys.executable, str(HERE / "in_container.py"), "--without", without, *command]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
        assert done.returncode == 0, done.stderr
        document = json.loads(self.results.read_text("utf-8"))
        document["printed"] = done.stdout + done.stderr
        sys.stdout.write(document["printed"])  # shown where a test fails
        return document


@pytest.fixture
def root_folder() -> Iterator[Path]:
    """A folder that everybody may enter, as `/autograder` is; pytest's own are its user's."""
    folder = Path(tempfile.mkdtemp(prefix="grader-tree-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def gradescope_tree(made: Callable[..., MadePackage], root_folder: Path, small_course: Path) -> Tree:
    """`/autograder` with the small assignment."""
    return laid_out(made("gradescope", assignment="heads", course=small_course), root_folder)


def laid_out(package: MadePackage, root: Path) -> Tree:
    """`/autograder` with an unpacked package, and with Python where `setup.sh` puts it."""
    package.unpack(root / "source")
    for name in ("submission", "results"):
        (root / name).mkdir()
    (root / "venv").symlink_to(sys.prefix)
    metadata = {"id": 7, "created_at": "2026-05-01T10:00:00.123456-07:00", "previous_submissions": []}
    (root / "submission_metadata.json").write_text(json.dumps(metadata))
    script = str(root / "source" / "run_autograder")
    return Tree(root, root / "submission", (script, str(root)))


@pytest.fixture
def prairielearn_tree(made: Callable[..., MadePackage], root_folder: Path, small_course: Path) -> Tree:
    """`/grade` with the question's tests, and an image's folder beside it."""
    made("prairielearn", assignment="heads", course=small_course).unpack(root_folder)
    grade = root_folder / "grade"
    for name in ("student", "data"):
        (grade / name).mkdir(parents=True)
    (root_folder / "question" / "tests").rename(grade / "tests")
    (grade / "data" / "data.json").write_text("{}")
    (root_folder / "venv").symlink_to(sys.prefix)
    script = str(root_folder / "image" / "run_autograder")
    return Tree(grade, grade / "student", (script, str(grade), str(root_folder)))


@pytest.fixture
def is_root() -> None:
    """Skip where containers cannot be imitated."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root can imitate a container")
