"""Each tool as its users run it; every run is followed by a look at the grades, which must be full marks."""

import csv
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.assertions import ASSERTIONS
from benchmarks.peers.cost import Cost, ToolError, cost
from benchmarks.peers.environment import Environment
from benchmarks.peers.notebooks import Homework

ROOT = Path(__file__).parents[2]
EQUAL_WORK = Path(__file__).with_name("equal_work")
ASSIGNMENT = "homework"  # its name with the other tools


class Nbgrader:
    """`nbgrader autograde`, which takes one submission after the other."""

    def __init__(self, environment: Environment, folder: Path, homework: Sequence[Homework]) -> None:
        """Make the course and the released assignment.

        Raises:
            ToolError: nbgrader does not accept the assignment.
        """
        self._program = environment.program("nbgrader")
        self._variables = environment.variables(folder / "home")
        self._course = folder / "course"
        self._homework = list(homework)
        source = self._course / "source" / ASSIGNMENT
        source.mkdir(parents=True)
        (source / "homework.ipynb").write_text(_nbgrader_notebook(homework[0].cells), encoding="utf-8")
        (self._course / "nbgrader_config.py").write_text(
            "c = get_config()\nc.CourseDirectory.course_id = 'peers'\n", encoding="utf-8"
        )
        command = [self._program, "generate_assignment", ASSIGNMENT]
        cost(command, folder=self._course, variables=self._variables)

    def graded(self, count: int, folder: Path) -> Cost:
        """What grading the first `count` notebooks costs, in a new copy of the course."""
        shutil.copytree(self._course, folder)
        for one in self._homework[:count]:
            handed_in = folder / "submitted" / one.student_id / ASSIGNMENT
            handed_in.mkdir(parents=True)
            (handed_in / "homework.ipynb").write_text(_nbgrader_notebook(one.cells), encoding="utf-8")
        command = [self._program, "autograde", ASSIGNMENT]
        found = cost(command, folder=folder, variables=self._variables)
        cost([self._program, "export"], folder=folder, variables=self._variables)
        with (folder / "grades.csv").open(newline="", encoding="utf-8") as file:
            rows = {row["student_id"]: float(row["raw_score"]) for row in csv.DictReader(file)}
        _require_full_marks("nbgrader", rows, self._homework[:count])
        return found


class Otter:
    """`otter run`, a command for each submission, without its containers."""

    def __init__(self, environment: Environment, folder: Path, homework: Sequence[Homework]) -> None:
        """Make the autograder's zip.

        Raises:
            ToolError: Otter does not accept the tests.
        """
        self._program = environment.program("otter")
        self._variables = environment.variables(folder / "home")
        self._folder = folder
        self._homework = list(homework)
        tests = folder / "tests"
        tests.mkdir(parents=True)
        for one in ASSERTIONS:
            (tests / f"{one.name}.py").write_text(one.ok_file, encoding="utf-8")
        zipped = ["-t", "tests", "-o", "autograder.zip", "--no-environment", "--no-requirements"]
        cost([self._program, "generate", *zipped], folder=folder, variables=self._variables)

    def graded(self, number: int, folder: Path) -> Cost:
        """What grading the notebook of that number costs."""
        one = self._homework[number]
        folder.mkdir(parents=True)
        (folder / "homework.ipynb").write_text(one.ipynb(), encoding="utf-8")
        zipped = str(self._folder / "autograder.zip")
        command = [self._program, "run", "--no-logo", "-a", zipped, "homework.ipynb"]
        found = cost(command, folder=folder, variables=self._variables)
        results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        points = sum(test["score"] for test in results["tests"] if test.get("score") is not None)
        _require_full_marks("Otter", {one.student_id: points}, [one])
        return found


class Grader:
    """`grader grade --no-train`, with all of its isolation."""

    def __init__(self, folder: Path, homework: Sequence[Homework], assignment: str) -> None:
        """Make the folder of submissions, and the course for the row *equal work*.

        Args:
            assignment: `vit_defects`: all checks of this course; `equal_work`: the four assertions.
        """
        self._course = ROOT if assignment != "equal_work" else equal_work_course(folder / "course")
        self._assignment = assignment
        self._folder = folder
        self._homework = list(homework)

    def graded(self, count: int, folder: Path, *, jobs: int) -> Cost:
        """What grading the first `count` notebooks costs.

        Raises:
            ToolError: A check did not pass, or the isolation is less than it should be.
        """
        handed_in = folder / "handed_in"
        handed_in.mkdir(parents=True)
        for one in self._homework[:count]:
            stem = f"{one.student_id}_{'Lab8_Homework' if self._course == ROOT else 'homework'}"
            (handed_in / f"{stem}.ipynb").write_text(one.ipynb(), encoding="utf-8")
        command = [sys.executable, "-m", "grader", "grade", str(handed_in), "--no-train"]
        command += ["--course", str(self._course), "--assignment", self._assignment]
        command += ["--out", "results", "--jobs", str(jobs)]
        found = cost(command, folder=folder, variables=dict(os.environ))
        document = json.loads((folder / "results" / "results.json").read_text(encoding="utf-8"))
        by_student = {each["student_id"]: each for each in document["submissions"]}
        for one in self._homework[:count]:
            _require_all_passed(by_student.get(one.student_id), one)
        return found


def equal_work_course(folder: Path) -> Path:
    """A course whose only assignment is the four assertions; its solution is the one of `vit_defects`."""
    assignment = folder / "reference" / "equal_work"
    shutil.copytree(EQUAL_WORK, assignment)
    shutil.copy(ROOT / "reference" / "vit_defects" / "solution.py", assignment)
    (folder / "course.toml").write_text('title = "Peers"\nsecret = "any"\n', encoding="utf-8")
    return folder


def _nbgrader_notebook(cells: Sequence[str]) -> str:
    """A notebook whose code is written by the student and whose assertions are locked."""
    content: dict[str, Any] = json.loads(Homework("", ASSIGNMENT, tuple(cells)).ipynb())
    # one cell of the student's: the forms differ in how many definitions they have
    content["cells"] = [
        _cell("answer", "\n\n".join(cells), solution=True),
        *(_cell(one.name, one.cell, grade=True, locked=True, points=1) for one in ASSERTIONS),
    ]
    return json.dumps(content)


def _cell(name: str, source: str, **marks: Any) -> dict[str, Any]:
    settings = {"grade": False, "locked": False, "solution": False, "task": False, **marks}
    return {
        "cell_type": "code",
        "id": name.replace("_", "-"),
        "metadata": {"nbgrader": {"grade_id": name, "schema_version": 3, **settings}},
        "source": source,
        "execution_count": None,
        "outputs": [],
    }


def _require_full_marks(tool: str, points: dict[str, float], homework: Sequence[Homework]) -> None:
    for one in homework:
        if points.get(one.student_id) != len(ASSERTIONS):
            raise ToolError(
                f"{tool} gave {points.get(one.student_id)} of {len(ASSERTIONS)} points to {one.name}: "
                "what it costs to grade something else says nothing."
            )


def _require_all_passed(graded: dict[str, Any] | None, one: Homework) -> None:
    if graded is None or not graded["findings"]:
        raise ToolError(f"grader left no finding about {one.name}.")
    for finding in graded["findings"]:
        if finding["status"] != "passed":
            raise ToolError(f"grader: {one.name}, {finding['check']}: {finding['message']}")
    if graded["sandbox"]["level"] != "strict":
        raise ToolError(f"grader isolated {one.name} less than it can: {graded['sandbox']}")
