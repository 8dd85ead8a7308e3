"""The class of a weekend, graded once; each test works on a copy of what came of it."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.cli import cli
from tests.conftest import TINY
from tests.warm_hosts import WarmHosts
from tests.weekend.generated import QUESTIONS, TOML, Weekend, weekend, write


@dataclass(frozen=True)
class Desk:
    """The downloads of the class, and commands about them.

    Attributes:
        folder: Where the downloads and lists are.
        out: The folder of the results.
        made: What the downloads hold.
    """

    folder: Path
    out: Path
    made: Weekend

    def tell(self, *words: object, fails: bool = False) -> str:
        """Run a command; what it prints.

        Args:
            fails: It must end with an error.
        """
        given = ["--course", str(self.folder / "course"), *map(str, words)]
        done = CliRunner().invoke(cli, given, prog_name="grader")
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert (done.exit_code != 0) == fails, done.output
        assert "older than the gradebook" not in done.output, "each command leaves the pages up to date"
        return done.output

    def grade(self, lms: str, *more: object) -> str:
        """Grade a download into the one folder of the results."""
        download = self.folder / f"DL-Lab8-{lms.lower()}.zip"
        lists = {"Moodle": "Grades-DL-Lab8.csv", "Canvas": "canvas.csv"}
        roster = ["--roster", self.folder / lists[lms]] if lms in lists else []
        words = ("--assignment", "doubling", "--no-train", "--out", self.out, "--jobs", 2)
        return self.tell("grade", download, *words, *roster, *more)

    def mark(self, students: Sequence[str], points: float = 5) -> None:
        """Give all questions of these students so many points, by a marking sheet."""
        rows = [f"{student},{item},{points}" for student in students for item in QUESTIONS]
        sheet = self.folder / "quick.csv"
        sheet.write_text("student_id,item,points\n" + "\n".join(rows) + "\n", "utf-8")
        self.tell("marks", "import", self.out, sheet, "--by", "ta1")


def _course(folder: Path) -> None:
    for name, text in TINY.items():
        path = folder / "course" / name.replace("/tiny/", "/doubling/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "course/reference/doubling/assignment.toml").write_text(TOML, encoding="utf-8")


@pytest.fixture(scope="session")
def graded_class(
    tmp_path_factory: pytest.TempPathFactory, warm_hosts: WarmHosts
) -> Iterator[tuple[Path, dict[str, str]]]:
    """The folder of the graded class, and LMS -> what its grading printed."""
    folder = tmp_path_factory.mktemp("weekend")
    made = weekend()
    _course(folder)
    write(made, folder)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("GRADER_COURSE", "GRADER_GRADEBOOK", "GRADER_SECRET"):
            patch.delenv(name, raising=False)
        patch.setenv("GRADER_BY", "head")
        desk = Desk(folder, folder / "results", made)
        with warm_hosts.shared():
            printed = {lms: desk.grade(lms) for lms in made.uploads}
        yield folder, printed


@pytest.fixture
def printed(graded_class: tuple[Path, dict[str, str]]) -> dict[str, str]:
    """LMS -> what its grading printed."""
    return graded_class[1]


@pytest.fixture
def desk(
    graded_class: tuple[Path, dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    on_warm_hosts: None,
) -> Desk:
    """A copy of the graded class."""
    for name in ("GRADER_COURSE", "GRADER_GRADEBOOK", "GRADER_SECRET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GRADER_BY", "head")
    shutil.copytree(graded_class[0], tmp_path / "weekend")
    return Desk(tmp_path / "weekend", tmp_path / "weekend/results", weekend())
