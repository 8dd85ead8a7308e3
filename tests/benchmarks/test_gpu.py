"""What is measured on a GPU, measured on a processor: figures mean nothing, but all of it runs."""

import sys
from pathlib import Path

import pytest
import torch

from benchmarks.section import write
from datasets.synthetic_steel import made_images
from grader.domain.assignment import Assignment
from grader.kit.splits import Splits, split_images


@pytest.fixture
def splits(assignment: Assignment) -> Splits:
    """Four images per class."""
    made = made_images(0, per_class=4)
    return split_images("tiny", assignment.data.classes, made, seed=1, train_share=0.7)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="grading others' work needs Linux")
def test_a_class_and_an_epoch(splits: Splits) -> None:
    from benchmarks import gpu  # slow to load: not while tests are collected

    found = gpu.compared("cpu", splits, epochs=2, rounds=1, students=2)
    assert [row[0] for row in found.rows] == ["an epoch", "a class"]
    assert all(float(row[3].split()[0]) > 0 for row in found.rows)
    assert "at least 3 is asked for" in found.verdicts[0] and "at least 4 is asked for" in found.verdicts[1]
    assert found.measured


def test_without_a_gpu_nothing_is_claimed_and_nothing_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    from benchmarks import gpu

    found, results = gpu.measured(), tmp_path / "RESULTS.md"
    assert {row[1] for row in found.rows} == {"not measured"} and not found.measured
    write(found, found.where, results)
    assert "not measured" in results.read_text(encoding="utf-8")
    results.write_text("# Results\n\n## On a GPU\n\nMeasured on an H100.\n", encoding="utf-8")
    write(found, found.where, results)
    assert "H100" in results.read_text(encoding="utf-8")
