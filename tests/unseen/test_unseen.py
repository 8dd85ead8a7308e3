"""Homework that was written without sight of the checks: right work loses nothing, mistakes are named."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.cli import cli
from tests.unseen.build import build, homeworks

ROOT = Path(__file__).parents[2]
# folder -> (the part with the mistake, its name; empty: the message says what is found and what should be)
MISTAKES = {
    "attention_scaled_by_full_width": ("MultiHeadSelfAttention", "attention_scaled_by_dim"),
    "auc_ranks_ignore_ties": ("classification_metrics", "metrics_auc_ignores_ties"),
    "best_weights_shallow_copy": ("fit", "fit_keeps_by_reference"),
    "class_token_column_in_map": ("attention_map", "map_of_the_column"),
    "class_token_without_position": ("VisionTransformer", "vit_class_token_without_position"),
    "export_counts_from_one": ("export_metrics", "export_counts_from_one"),
    "heads_merged_without_transpose": ("MultiHeadSelfAttention", "heads_not_joined"),
    "inference_mode_taken_for_eval": ("evaluate", "evaluate_in_training_mode"),
    "last_group_not_strided": ("ResNet18", ""),
    "loss_is_mean_of_batch_means": ("train_epoch", "epoch_means_batches"),
    "macro_f1_from_macro_averages": ("classification_metrics", "metrics_macro_f1_of_the_means"),
    "mean_pool_skips_first_patch": ("VisionTransformer", "vit_mean_skips_the_first_patch"),
    "patches_column_by_column": ("PatchEmbedding", "patches_column_by_column"),
    "positions_own_frequency_per_column": ("sinusoidal_positions", "positions_frequency_for_each_column"),
    "second_residual_from_normalized": ("EncoderBlock", "block_mlp_adds_to_normalized"),
    "shortcut_projected_for_channels_only": ("BasicBlock", "block_shortcut_by_channels_only"),
    "top3_mean_and_std_swapped": ("plot_top3", "top3_mean_and_std_exchanged"),
    "validation_images_augmented_too": ("", ""),  # no part of it is wrong: it shows in the training
    "warmup_starts_above_zero": ("warmup_cosine", "warmup_begins_above_zero"),
    "weights_returned_after_dropout": ("MultiHeadSelfAttention", "weights_after_dropout"),
}


def graded(group: str, out: Path) -> dict[str, dict[str, object]]:
    """The results of a group without trainings, by the folders' names."""
    build(group, out / "class")
    command = ["grade", str(out / "class"), "--assignment", "vit_cifar10", "--no-train", "--jobs", "2"]
    done = CliRunner().invoke(
        cli, ["--course", str(ROOT), *command, "--out", str(out / "results")], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    found = json.loads((out / "results" / "results.json").read_text(encoding="utf-8"))
    folders = homeworks(group)
    return {folders[each["student_id"]].name: each for each in found["submissions"]}


@pytest.mark.slow
def test_correct_homework_passes_every_check(tmp_path: Path) -> None:
    """Ten styles, each with all points that checks give."""
    results = graded("vit_cifar10/correct", tmp_path)
    assert len(results) == 10
    for name, result in results.items():
        assert {f["check"] for f in result["findings"] if f["status"] != "passed"} == set(), name


@pytest.mark.slow
def test_each_mistake_is_found_in_its_own_part(tmp_path: Path) -> None:
    """And nowhere else, by its name where it has one."""
    results = graded("vit_cifar10/mistaken", tmp_path)
    assert set(results) == set(MISTAKES)
    for name, result in results.items():
        part, diagnosis = MISTAKES[name]
        failed = [f for f in result["findings"] if f["status"] != "passed"]
        assert {f["component"] for f in failed} == ({part} if part else set()), name
        assert {f["diagnosis"] or "" for f in failed if not f.get("because")} == (
            {diagnosis} if part else set()
        ), name
