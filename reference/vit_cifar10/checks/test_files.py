"""The tables that are handed in: the study of the Vision Transformer, and the measures of both models."""

import math
from collections import defaultdict

import pytest

from grader.kit import Mismatch, csv_rows

VALUES = {
    "patch_size": int, "dim": int, "depth": int, "heads": int, "mlp_ratio": float, "positions": str,
    "epochs": int,
}  # fmt: skip
COLUMNS = {**VALUES, "seed": int, "parameters": int, "validation_accuracy": float}
LAPTOP = {"patch_size": (4, 8), "depth": (2, 6), "epochs": (1, 15)}
GPU = {"patch_size": (1, 16), "depth": (1, 24), "epochs": (1, 100)}
SEEDS, ROWS = 3, 6


def rows_of(student):
    """The rows of the study."""
    rows = csv_rows(student.file("study"), COLUMNS, name="the study's table")
    for number, row in enumerate(rows, start=2):
        if not 0.0 <= row["validation_accuracy"] <= 1.0:
            raise Mismatch(
                f"Line {number} of the study's table has the validation accuracy "
                f"{row['validation_accuracy']:g}; it should be a share from 0 to 1.",
                diagnosis="study_in_percent",
            )
    return rows


def differing(row, base):
    """The columns in which a row differs from the base."""
    return [name for name, value in zip(VALUES, base, strict=True) if row[name] != value]


def base_of(rows):
    """The configuration that most rows differ from in one value, of those with most seeds."""
    seeds = defaultdict(set)
    for row in rows:
        seeds[tuple(row[name] for name in VALUES)].add(row["seed"])
    return max(
        seeds, key=lambda base: (len(seeds[base]), sum(len(differing(row, base)) == 1 for row in rows))
    )


@pytest.mark.component("study")
def test_study_has_a_row_for_each_training(student, edition):
    """The study's table can be read: its columns, and numbers that are possible."""
    rows = rows_of(student)
    for number, row in enumerate(rows, start=2):
        for name, (low, high) in (LAPTOP if "laptop" in edition else GPU).items():
            if not low <= row[name] <= high:
                raise Mismatch(
                    f"Line {number} of the study's table has {name} {row[name]}; it should be {low} to "
                    f"{high}.",
                    diagnosis="study_out_of_bounds",
                )
        if row["positions"] not in ("learned", "sinusoidal"):
            raise Mismatch(
                f"Line {number} of the study's table has positions {row['positions']!r}; "
                "they are 'learned' or 'sinusoidal'."
            )
        if min(row["dim"], row["heads"], row["parameters"]) < 1 or row["mlp_ratio"] <= 0:
            raise Mismatch(f"Line {number} of the study's table has a size that is not positive.")


@pytest.mark.component("study")
def test_study_changes_one_value_at_a_time(student):
    """The base is trained with three seeds, and six rows differ from it in one value each."""
    rows = rows_of(student)
    if not rows:
        raise Mismatch("The study's table has no rows.")
    base = base_of(rows)
    seeds = {row["seed"] for row in rows if not differing(row, base)}
    if len(seeds) < SEEDS:
        raise Mismatch(
            f"No configuration is in the study's table with {SEEDS} seeds; the most that one has is "
            f"{len(seeds)}. Without them, nobody can tell an effect from chance.",
            diagnosis="study_base_once",
        )
    single = {tuple(row[name] for name in VALUES) for row in rows if len(differing(row, base)) == 1}
    several = [row for row in rows if len(differing(row, base)) > 1]
    if len(single) < ROWS and several:
        changed = " and ".join(differing(several[0], base))
        raise Mismatch(
            f"{len(single)} rows of the study differ from its base in one value, and {ROWS} should; a row "
            f"differs in {changed} at once, so that nobody can tell which of them it was.",
            diagnosis="study_changes_two_at_once",
        )
    if len(single) < ROWS:
        raise Mismatch(
            f"{len(single)} rows of the study differ from its base in one value; {ROWS} should.",
            diagnosis="study_too_short",
        )


@pytest.mark.component("metrics")
def test_metrics_of_each_model_are_there(student, edition):
    """The table of measures has the columns metric and value, and the numbers of each model."""
    rows = csv_rows(student.file("metrics"), {"metric": str, "value": float}, name="the table of measures")
    names = [row["metric"] for row in rows]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Mismatch(f"The table of measures has {twice!r} twice.")
    models = {name.partition(".")[0].lower() for name in names if "." in name}
    if len(models) < 2 and "full" in edition:
        raise Mismatch(
            "The table of measures should have the numbers of both models, with the model first, as in "
            f"'vit.accuracy'; it has {', '.join(names[:4]) or 'no rows'}.",
            diagnosis="metrics_of_one_model",
        )
    for row in rows:
        last = row["metric"].lower().split(".")
        share = any(
            word in part for part in last for word in ("accuracy", "precision", "recall", "f1", "auc")
        )
        if share and not math.isnan(row["value"]) and not 0.0 <= row["value"] <= 1.0:
            raise Mismatch(
                f"The table of measures has {row['value']:g} for {row['metric']!r}; it should be a "
                "share from 0 to 1.",
                diagnosis="metrics_in_percent",
            )
