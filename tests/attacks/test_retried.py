"""What once gained points by a training or with a neighbor: tried again by `grader grade`, as a class."""

import os
import subprocess
import sys

import pytest

from grader.sandbox import survey

ASSIGNED = ("--assignment", "vit_defects")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def graded(course_root, attack_modules, tmp_path_factory):
    """The folder of the results: the attackers and one who is honest, two at once."""
    if survey().verdict not in ("strict", "standard"):
        pytest.skip("this machine gives too little isolation")
    folder, out = tmp_path_factory.mktemp("retried"), tmp_path_factory.mktemp("retried_out")
    say = [sys.executable, "-m", "grader"]
    quiet = {"cwd": course_root, "check": True, "capture_output": True}
    subprocess.run(
        [*say, "data", "write", "synthetic", "--out", str(folder / "data.zip"), *ASSIGNED], **quiet
    )
    attack_modules("retried_class").build_trained(folder / "class", folder / "data.zip")
    given = ("--assignment", "vit_defects", "--data", str(folder / "data.zip"), "--jobs", "2")
    secret = {**os.environ, "GRADER_SECRET": "tried again"}
    subprocess.run([*say, "grade", str(folder / "class"), *given, "--out", str(out)], env=secret, **quiet)
    return out


@pytest.fixture(scope="module")
def gains(graded, attack_modules):
    """What each of them has of it, or what is not told: number -> words; none where all is well."""
    return attack_modules("retried_class").look_at_trained(graded)


def test_what_is_tried_again_gains_nothing(retried, gains):
    assert gains[retried.number] == ""


def test_honest_work_among_them_is_decided(graded, attack_modules):
    known = attack_modules("retried_class")
    entry = known.entries(graded)[known.HONEST]
    items = {item["id"]: item for item in entry["items"]}
    assert [items[name]["points"] for name in ("model", "evaluation", "visualization")] == [35, 5, 10]
    # a training this short may differ so much between its seeds that a person decides above the floor
    assert (items["training"]["points"] or items["training"]["floor"]) > 0 and not entry["notes"]
