"""Findings do not depend on the random inputs: the same submission gets the same ones under every seed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course.composing import recipes
from grader.course.homework_versions import composed
from grader.domain.assignment import Assignment
from grader.judge.examination import Examined

pytestmark = pytest.mark.slow

MISTAKES = ("missing_scale", "norm_over_tokens", "blocks_summed", "positions_multiplied", "loss_over_batch")
FORMS = ("attention_sum_of_heads", "transformer_all_inline", "vit_list_of_positions", "loops_with_lists")
PARTS = ("PreNorm", "FeedForward", "Attention", "Transformer", "ViT", "train_epoch", "evaluate")


@pytest.mark.parametrize(("folder", "names"), [("mistakes", MISTAKES), ("legitimate", FORMS)])
def test_ten_seeds_find_the_same(
    folder: str,
    names: tuple[str, ...],
    course_root: Path,
    solved: str,
    examined: Callable[..., Examined],
) -> None:
    files = {
        "mistakes": course_root / "reference" / "vit_defects" / "mistakes",
        "legitimate": course_root / "reference" / "vit_defects" / "forms",
    }
    text = solved
    for name in names:
        part = (files[folder] / f"{name}.py").read_text(encoding="utf-8")
        text = composed(text, part, after=folder == "mistakes")
    found = [
        [
            (f.check, f.status, f.label, f.message, f.where)
            for f in examined(text, components=PARTS, seed=seed).findings
        ]
        for seed in range(10)
    ]
    failed = {diagnosis for _, status, diagnosis, _, _ in found[0] if status != "passed"}
    assert failed >= set(names) if folder == "mistakes" else not failed, found[0]
    assert all(other == found[0] for other in found)


@pytest.mark.parametrize("name", ["conv_stem_28", "linear_28"])
def test_tuned_embeddings_pass_under_ten_seeds(
    name: str, assignment: Assignment, examined: Callable[..., Examined]
) -> None:
    """Narrow convolutions, batch and layer normalization: whatever the weights are by chance."""
    [recipe] = [each for each in recipes(assignment) if each.name == name]
    for seed in range(10):
        findings = examined(recipe.source, components=("ViT",), seed=seed).findings
        assert [f for f in findings if f.status != "passed"] == []
