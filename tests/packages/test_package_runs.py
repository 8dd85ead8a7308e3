"""A package's own script, in folders laid out like other graders': the same points; cheats gain nothing.

Each run loads PyTorch twice. What was published as ways to cheat inside of Gradescope is tried together in
one homework; leaving with the exit code of success ends a process, and is tried apart.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from packages.conftest import Tree
from packages.schemas import require_valid
from submissions import build

from grader.cli import cli
from grader.sandbox.namespaces import FIRST_UID, MOST_UIDS

HERE = Path(__file__).parent
GOLDEN = ("good_script", "missing_scale", "no_residual", "good_notebook", "bare_template", "syntax_error")
WAYS = ("container", "user", "container without seccomp,landlock")
WEAKEST = "container without seccomp,landlock"


def hand_in(tree: Tree, behaviour: str, folder: Path) -> str:
    """Put a golden submission into a tree; whose it is."""
    built = build.build(HERE.parent / "submissions" / behaviour, folder)
    for path in built.iterdir():
        path.rename(tree.submission / path.name)
    built.rmdir()
    return built.name


@pytest.fixture(scope="module")
def by_command(course_root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What `grader grade` makes of the golden submissions: behaviour -> item -> points."""
    folder = tmp_path_factory.mktemp("golden")
    students = {
        build.build(HERE.parent / "submissions" / name, folder / "class").name: name for name in GOLDEN
    }
    arguments = ["grade", str(folder / "class"), "--assignment", "vit_defects", "--no-train", "--jobs", "1"]
    done = CliRunner().invoke(
        cli, [*arguments, "--out", str(folder / "out"), "--course", str(course_root)], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    document = json.loads((folder / "out" / "results.json").read_text("utf-8"))
    return {
        students[record["student_id"]]: {item["id"]: item["points"] for item in record["items"]}
        for record in document["submissions"]
    }


@pytest.mark.slow
@pytest.mark.usefixtures("is_root")
@pytest.mark.parametrize(("number", "behaviour"), list(enumerate(GOLDEN)))
def test_each_item_has_the_points_of_grader_grade(
    gradescope_tree: Tree,
    by_command: dict[str, dict[str, Any]],
    number: int,
    behaviour: str,
    tmp_path: Path,
) -> None:
    hand_in(gradescope_tree, behaviour, tmp_path)
    document = gradescope_tree.graded(how=WAYS[number % len(WAYS)])
    require_valid("gradescope", document)
    items = {
        test["tags"][0]: test.get("score") for test in document["tests"] if len(test.get("tags", ())) == 1
    }
    assert items == by_command[behaviour]
    level = "standard" if WAYS[number % len(WAYS)] == "user" else "container"
    if behaviour != "syntax_error":
        assert document["extra_data"]["isolation"] == level
        assert f"Isolation: {level}" in document["printed"]


@pytest.mark.slow
@pytest.mark.usefixtures("is_root")
def test_prairielearn_gets_the_share_of_the_same_points(
    prairielearn_tree: Tree, by_command: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    built = build.build(HERE.parent / "submissions" / "missing_scale", tmp_path)
    next(built.glob("*.py")).rename(prairielearn_tree.submission / "homework.py")
    document = prairielearn_tree.graded(how="container")
    require_valid("prairielearn", document)
    known = [points for points in by_command["missing_scale"].values() if points is not None]
    assert document["gradable"] and document["score"] == pytest.approx(sum(known) / 50)


@pytest.mark.slow
@pytest.mark.usefixtures("is_root")
def test_an_empty_submission_leaves_a_valid_file(gradescope_tree: Tree) -> None:
    (gradescope_tree.submission / "link.py").symlink_to("/etc/passwd")
    document = gradescope_tree.graded(how="container")
    require_valid("gradescope", document)
    assert "No code was handed in" in document["output"]
    assert [test["score"] for test in document["tests"] if "score" in test] == [0]  # of 0 points


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
    import os, time
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for _ in range(600):
            _try(_overwrite)
            time.sleep(0.1)
        os._exit(0)
    return pid


class PreNorm(PreNorm):
    def forward(self, x, **kwargs):
        cheats = [_overwrite, _replace, _read_tests, _read_metadata, _environment, _leave_behind, _patch]
        outcomes = [_try(cheat) for cheat in cheats]
        raise ValueError("tried: " + "".join(outcomes))
"""
_EXIT = """
class PreNorm(PreNorm):
    def forward(self, x, **kwargs):
        import os
        print('{"score": 100}', flush=True)
        os._exit(0)
"""


def cheating(tree: Tree, folder: Path, code: str) -> str:
    """Hand in the solution with a cheat in PreNorm, in the place of a class of that name."""
    student = hand_in(tree, "good_script", folder)
    path = next(tree.submission.glob("*.py"))
    text = path.read_text("utf-8")
    begin = text.index("class FeedForward")
    path.write_text(text[:begin] + code.replace("{root}", str(tree.root)) + "\n\n" + text[begin:], "utf-8")
    return student


def shares(document: dict[str, Any]) -> str:
    return next(test["output"] for test in document["tests"] if test.get("tags") == ["model"])


@pytest.mark.slow
@pytest.mark.usefixtures("is_root")
@pytest.mark.parametrize("how", [WEAKEST, "container"])
def test_the_published_cheats_gain_nothing(gradescope_tree: Tree, tmp_path: Path, how: str) -> None:
    cheating(gradescope_tree, tmp_path, _CHEATS)
    document = gradescope_tree.graded(how=how)
    require_valid("gradescope", document)
    assert "PreNorm: 0 of 3" in shares(document) and document["score"] <= 47
    output = next(test["output"] for test in document["tests"] if "tried: " in test["output"])
    # refused but for tests, of which nothing is seen, and patches, which change the process's own functions;
    # without a filter something is left behind
    assert f"tried: nnenn{'y' if how == WEAKEST else 'n'}y" in output
    # what was left behind did not change the file since
    before = gradescope_tree.results.read_bytes()
    assert json.loads(before)["score"] == document["score"]
    assert not left_running()


def left_running() -> list[str]:
    """Forks of students' processes: such a process has the user that its own number makes, a fork has not."""
    running = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        uid = int(lines["Uid"].split()[0])
        is_fork = FIRST_UID <= uid < FIRST_UID + MOST_UIDS and uid - FIRST_UID != int(status.parent.name)
        if is_fork and lines["State"].split()[0] != "Z":
            running.append(f"{status} {uid}")
    return running


@pytest.mark.slow
@pytest.mark.usefixtures("is_root")
def test_leaving_with_success_gains_nothing(gradescope_tree: Tree, tmp_path: Path) -> None:
    cheating(gradescope_tree, tmp_path, _EXIT)
    document = gradescope_tree.graded(how=WEAKEST)
    require_valid("gradescope", document)
    assert "PreNorm: 0 of 3" in shares(document) and document["score"] <= 47
