"""The four assertions: the reference has full marks by each tool, and what is wrong has not."""

import sys
from pathlib import Path

import pytest

from benchmarks.peers.assertions import ASSERTIONS
from benchmarks.peers.cost import ToolError
from benchmarks.peers.environment import Environment, NotInstalledError, tools_environment
from benchmarks.peers.notebooks import Homework, homework
from benchmarks.peers.tools import EQUAL_WORK, Grader, Nbgrader, Otter, equal_work_course
from grader.course.assignment_file import read_assignment

ROOT = Path(__file__).parents[2]
# (in the reference, in its place, what is told)
MIXED = ("scores.softmax(dim=-1)", "scores.tril().softmax(dim=-1)", "Reordering the tokens changes")


@pytest.fixture(scope="module")
def reference(assignment) -> Homework:
    """The reference as a notebook."""
    return homework(assignment, ROOT, 1)[0]


def wrong(one: Homework) -> Homework:
    """The same with an Attention that does not look at every token alike."""
    old, new, _ = MIXED
    assert sum(cell.count(old) for cell in one.cells) == 1
    return Homework(one.student_id, "wrong", tuple(cell.replace(old, new) for cell in one.cells))


@pytest.fixture(scope="module")
def environment() -> Environment:
    """The other tools, when they were installed by `python -m benchmarks peers`."""
    try:
        return tools_environment(install=False)
    except NotInstalledError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_the_notebooks_are_many_and_neither_train_nor_read(assignment):
    found = homework(assignment, ROOT, 24)
    assert len({one.student_id for one in found}) == len({one.name for one in found}) == 24
    assert {name.partition("_")[0] for name in (one.name for one in found)} >= {
        *("reference", "attention", "feed", "transformer", "vit", "loops", "plots"),
    }
    for one in found:
        text = "\n".join(one.cells)
        compile(text, one.name, "exec")
        assert "dataset.zip" not in text and "for epoch in" not in text


def test_our_checks_are_the_assertions(tmp_path):
    folder = equal_work_course(tmp_path / "course") / "reference" / EQUAL_WORK.name
    assert [spec.id for spec in read_assignment(folder).checks] == [one.name for one in ASSERTIONS]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="grading others' work needs Linux")
def test_ours(reference, tmp_path):
    cost = Grader(tmp_path, [reference], "equal_work").graded(1, tmp_path / "right", jobs=1)
    assert cost.wall > 0 and cost.cpu > 0
    with pytest.raises(ToolError, match=MIXED[2]):
        Grader(tmp_path / "other", [wrong(reference)], "equal_work").graded(1, tmp_path / "wrong", jobs=1)


@pytest.mark.slow
def test_nbgraders(reference, environment, tmp_path):
    tool = Nbgrader(environment, tmp_path, [reference])
    assert tool.graded(1, tmp_path / "right").wall > 0
    tool._homework[0] = wrong(reference)
    with pytest.raises(ToolError, match=r"nbgrader gave 3\.0 of 4 points to wrong"):
        tool.graded(1, tmp_path / "wrong")


@pytest.mark.slow
def test_otters(reference, environment, tmp_path):
    assert Otter(environment, tmp_path / "a", [reference]).graded(0, tmp_path / "right").wall > 0
    with pytest.raises(ToolError, match=r"Otter gave 3(\.0)? of 4 points to wrong"):
        Otter(environment, tmp_path / "b", [wrong(reference)]).graded(0, tmp_path / "wrong")
