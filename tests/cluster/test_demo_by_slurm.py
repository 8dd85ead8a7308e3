"""The demo class, graded with its trainings by jobs of a real Slurm."""

from pathlib import Path

import pytest

from grader.gradebook import Gradebook
from tests.cluster.small_classes import SmallClass, grading
from tests.real_slurm import Slurm
from tests.submissions.build import ASSIGNMENT, behaviors, build, described

ROOT = Path(__file__).parents[2]
TRAINED = {"good_script", "good_notebook", "missing_scale", "prebuilt_vit", "missing_file"}


@pytest.mark.service
def test_each_gets_what_its_upload_deserves(slurm: Slurm, tmp_path: Path) -> None:
    """And both jobs have a share of the work."""
    uploads = {behavior.name: described(behavior) for behavior in behaviors(demo_only=True)}
    for behavior in behaviors(demo_only=True):
        build(behavior, tmp_path / "uploads")
    ids = {name: upload["upload"]["student_id"] for name, upload in uploads.items()}
    demo = SmallClass(ROOT, tmp_path / "uploads", tuple(ids.values()), ASSIGNMENT, ("--data", "synthetic"))
    where = "slurm:nodes=2,cores=1,memory=4GB,walltime=30"
    with grading(demo, where, tmp_path / "out", slurm.environment) as grades:
        assert grades.wait(1_200) == 0, grades.said()
    results = grades.results()
    assert results.keys() == set(ids.values())
    for name, upload in uploads.items():
        record, expected = results[ids[name]], upload["expected"]
        failed = {one["component"] for one in record["findings"] if one["status"] == "failed"}
        assert (name, record["status"], failed) == (name, expected["status"], set(expected["failing"]))
        if "diagnosis" in expected:
            assert expected["diagnosis"] in {one["diagnosis"] for one in record["findings"]}
    outcomes = {name: results[student_id]["training"]["outcome"] for name, student_id in ids.items()}
    assert {name for name, outcome in outcomes.items() if outcome == "completed"} == TRAINED
    with Gradebook(tmp_path / "out", assignment_id=ASSIGNMENT) as book:
        evidence = {name: book.evidence(student_id) for name, student_id in ids.items()}
    assert {one.node for one in evidence.values()} == {"slurm-1", "slurm-2"}
    assert (evidence["good_script"].training.accuracy or 0) >= 0.6, "the threshold"
