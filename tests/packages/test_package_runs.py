"""A package's own script, in folders laid out like other graders': the same points; cheats gain nothing.

What was published as ways to cheat inside of Gradescope is tried together in one homework: one part tries all
that goes on, the other leaves with the exit code of success.
"""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from packages.conftest import SECRET, Tree
from packages.schemas import require_valid

from grader.cli import cli

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("is_root")]
WEAKEST = "container without seccomp,landlock"
STUDENT = "400101204"


@pytest.fixture(scope="module")
def homework(small_solution: str) -> str:
    """One part is right, the other one is not."""
    wrong = small_solution.replace(".transpose(1, 2)", "")
    assert wrong != small_solution
    return wrong


@pytest.fixture(scope="module")
def by_command(
    homework: str, small_course: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, float | None]:
    """What `grader grade` makes of it: item -> points."""
    folder = tmp_path_factory.mktemp("golden")
    (folder / "class").mkdir()
    (folder / "class" / f"{STUDENT}_Heads.py").write_text(homework, "utf-8")
    arguments = ["--course", str(small_course), "grade", str(folder / "class"), "--assignment", "heads"]
    done = CliRunner().invoke(
        cli, [*arguments, "--out", str(folder / "out"), "--jobs", "1"], env={"GRADER_SECRET": SECRET}
    )
    assert done.exit_code == 0, done.output
    [record] = json.loads((folder / "out" / "results.json").read_text("utf-8"))["submissions"]
    points = {item["id"]: item["points"] for item in record["items"]}
    assert 0 < sum(points.values()) < 10
    return points


def test_each_item_has_the_points_of_grader_grade(
    gradescope_tree: Tree, by_command: dict[str, float | None], homework: str
) -> None:
    """As an ordinary user, to whom the machine gives namespaces."""
    (gradescope_tree.submission / f"{STUDENT}_Heads.py").write_text(homework, "utf-8")
    document = gradescope_tree.graded(how="user")
    require_valid("gradescope", document)
    items = {
        test["tags"][0]: test.get("score") for test in document["tests"] if len(test.get("tags", ())) == 1
    }
    assert items == by_command
    assert document["extra_data"]["isolation"] == "standard"
    assert "Isolation: standard" in document["printed"]


def test_prairielearn_gets_the_share_of_the_same_points(
    prairielearn_tree: Tree, by_command: dict[str, float | None], homework: str
) -> None:
    (prairielearn_tree.submission / "homework.py").write_text(homework, "utf-8")
    document = prairielearn_tree.graded(how="container")
    require_valid("prairielearn", document)
    known = [points for points in by_command.values() if points is not None]
    assert document["gradable"] and document["score"] == pytest.approx(sum(known) / 10)


# --- cheats ----------------------------------------------------------------------------------------------


_CHEATS = """
def _try(cheat):
    try:
        cheat()
    except PermissionError:
        return "n"
    except BaseException:
        return "e"
    return "y"


def _overwrite():
    with open("{root}/results/results.json", "w") as file:
        return file.write('{{"score": 100}}')


def _replace():
    import os
    os.replace(__import__("tempfile").mkstemp()[1], "{root}/results/results.json")


def _read_tests():
    import os
    paths = [os.path.join(at, name) for at, _, names in os.walk("{root}/source") for name in names]
    return open(paths[0]).read()[:10]


def _read_metadata():
    return open("{root}/submission_metadata.json").read()


def _environment():
    import os
    os.environ["PYTHONPATH"] = "/tmp"
    os.environ["GRADER_SECRET"] = "mine"
    return [name for name in os.environ if "GRADER_SECRET" in open("/proc/1/environ").read()]


def _patch():
    import torch
    torch.allclose = lambda *args, **kwargs: True
    torch.testing.assert_close = lambda *args, **kwargs: None
    torch.Tensor.__eq__ = lambda mine, other: torch.ones(mine.shape, dtype=torch.bool)


def _leave_behind():
    import ctypes, os, time
    ctypes.CDLL(None).prctl(15, b"{mark}", 0, 0, 0)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for _ in range(600):
            _try(_overwrite)
            time.sleep(0.1)
        os._exit(0)
    if open("/proc/thread-self/comm").read().strip() != "{mark}":
        raise ValueError("nobody would find it")


class Pool(Pool):
    def forward(self, x):
        cheats = [_overwrite, _replace, _read_tests, _read_metadata, _environment, _leave_behind, _patch]
        outcomes = [_try(cheat) for cheat in cheats]
        raise ValueError("tried: " + "".join(outcomes))


class SplitHeads(SplitHeads):
    def forward(self, x):
        import os
        print('{{"score": 100}}', flush=True)
        os._exit(0)
"""


@pytest.mark.parametrize("how", [WEAKEST, "container"])
def test_the_published_cheats_gain_nothing(gradescope_tree: Tree, small_solution: str, how: str) -> None:
    cheats, mark = _CHEATS, gradescope_tree.root.name.removeprefix("grader-")
    for name, value in (("{root}", str(gradescope_tree.root)), ("{mark}", mark), ("{{", "{"), ("}}", "}")):
        cheats = cheats.replace(name, value)
    (gradescope_tree.submission / f"{STUDENT}_Heads.py").write_text(small_solution + cheats, "utf-8")
    document = gradescope_tree.graded(how=how)
    require_valid("gradescope", document)
    assert document["extra_data"]["status"] == "graded", document["output"]
    shares = next(test["output"] for test in document["tests"] if test.get("tags") == ["parts"])
    assert document["extra_data"]["isolation"] == "container"
    assert "SplitHeads: 0 of 6" in shares and "Pool: 0 of 4" in shares and document["score"] == 0
    output = next(test["output"] for test in document["tests"] if "tried: " in test["output"])
    # refused but for tests, of which nothing is seen, and patches, which change the process's own functions;
    # without a filter something is left behind
    assert f"tried: nnenn{'y' if how == WEAKEST else 'n'}y" in output
    assert not left_running(mark)
    assert json.loads(gradescope_tree.results.read_text("utf-8"))["score"] == document["score"]


def left_running(mark: str) -> list[str]:
    """What this test's cheats left behind and goes on; other tests may leave something of their own."""
    running = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name, state = (process / "comm").read_text().strip(), (process / "stat").read_text()
        except OSError:
            continue
        if name == mark and state.rpartition(")")[2].split()[0] not in "ZX":
            running.append(state)
    return running
