"""The tables that are handed in: the study of the Vision Transformer, and the measures of both models."""

import math
from collections import Counter, defaultdict

import pytest

from grader.kit import Mismatch, csv_rows, plain, quoted

VALUES = {
    "patch_size": int, "dim": int, "depth": int, "heads": int, "mlp_ratio": float, "positions": str,
    "epochs": int,
}  # fmt: skip
COLUMNS = {**VALUES, "seed": int, "parameters": int, "validation_accuracy": float}
LAPTOP = {"patch_size": (4, 8), "depth": (2, 6), "epochs": (1, 15)}
GPU = {"patch_size": (1, 16), "depth": (1, 24), "epochs": (1, 100)}
SEEDS, ROWS, MOST_ROWS, LARGEST = 3, 6, 500, 100_000
SIDE, CHANNELS, CLASSES = 32, 3, 10
# what a name has in it, without signs, if it speaks of one of the measures that are asked for
MEASURES = {
    "accuracy": ("acc",), "precision": ("prec",), "recall": ("recall", "sensitivity", "tpr"),
    "F1": ("f1", "fscore", "fmeasure"), "ROC-AUC": ("auc", "roc"),
}  # fmt: skip
FEWEST_MEASURES = 3  # of them, of each model


def rows_of(student):
    """The rows of the study."""
    rows = csv_rows(student.file("study"), COLUMNS, name="the study's table")
    if len(rows) > MOST_ROWS:
        raise Mismatch(
            f"The study's table has {len(rows)} rows: nobody trained so many models. It should have one row "
            "for each training."
        )
    for number, row in enumerate(rows, start=2):
        for name in ("dim", "heads", "mlp_ratio"):
            if row[name] > LARGEST:
                raise Mismatch(f"Line {number} of the study's table has {name} over {LARGEST}.")
        if not 0.0 <= row["validation_accuracy"] <= 1.0:
            raise Mismatch(
                f"Line {number} of the study's table has the validation accuracy "
                f"{row['validation_accuracy']:g}; it should be a share from 0 to 1.",
                diagnosis="study_in_percent",
            )
    return rows


def require_possible(row, number):
    """Require that there can be a Vision Transformer of a row's sizes."""
    for name, whole, of in (
        ("heads", row["dim"], f"dim {row['dim']}"),
        ("patch_size", SIDE, f"an image's side of {SIDE}"),
    ):
        if whole % row[name]:
            raise Mismatch(
                f"Line {number} of the study's table has {name} {row[name]}, which does not divide {of}: "
                "there is no such model."
            )


def differing(row, base):
    """The columns in which a row differs from the base."""
    return [name for name, value in zip(VALUES, base, strict=True) if row[name] != value]


def model_of(row):
    """What is trained in a row: the MLP is as wide as its width times the ratio, made whole."""
    sizes = tuple(row[name] for name in VALUES if name != "mlp_ratio")
    return (*sizes, int(row["dim"] * row["mlp_ratio"]))


def base_of(rows):
    """The configuration that most rows differ from in one value, of those with most seeds."""
    seeds, alike = defaultdict(set), Counter()
    for row in rows:
        base = tuple(row[name] for name in VALUES)
        seeds[base].add(row["seed"])
        alike.update((place, *base[:place], *base[place + 1 :]) for place in range(len(base)))

    def neighbors(base):  # rows that agree in all values but one; its own rows agree in all
        return sum(alike[place, *base[:place], *base[place + 1 :]] for place in range(len(base)))

    own = Counter(tuple(row[name] for name in VALUES) for row in rows)
    return max(seeds, key=lambda base: (len(seeds[base]), neighbors(base) - len(VALUES) * own[base]))


def fewest_and_most_parameters(row):
    """Bounds of the parameters of a ViT of a row's sizes, wide enough for a block with a mistake."""
    dim, hidden = row["dim"], int(row["dim"] * row["mlp_ratio"])
    around = row["patch_size"] ** 2 * CHANNELS * dim + CLASSES * dim
    block = 4 * dim * dim + 2 * dim * hidden
    positions = ((SIDE // row["patch_size"]) ** 2 + 1) * dim
    most = row["depth"] * (block + 8 * dim * dim + 13 * dim + hidden) + around + positions
    return (around + block) // 2, 2 * most


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
                f"Line {number} of the study's table has positions {quoted(row['positions'])}; "
                "they are 'learned' or 'sinusoidal'."
            )
        if min(row["dim"], row["heads"], row["parameters"]) < 1 or row["mlp_ratio"] <= 0:
            raise Mismatch(f"Line {number} of the study's table has a size that is not positive.")
        require_possible(row, number)
        require_likely_parameters(row, number)


def require_likely_parameters(row, number):
    """Require that the parameters are about as many as a Vision Transformer of a row's sizes has."""
    low, high = fewest_and_most_parameters(row)
    if not low <= row["parameters"] <= high:
        raise Mismatch(
            f"Line {number} of the study's table has {row['parameters']} parameters; a Vision Transformer of "
            f"its sizes has between {low} and {high}.",
            hint="sum(p.numel() for p in model.parameters()), of the model that the row is about.",
        )


@pytest.mark.component("study")
def test_study_changes_one_value_at_a_time(student):
    """The base is trained with three seeds, and six rows differ from it in one value each."""
    rows = rows_of(student)
    if not rows:
        raise Mismatch("The study's table has no rows.")
    for number, row in enumerate(rows, start=2):
        if min(row["heads"], row["patch_size"]) > 0:  # which the other check requires
            require_possible(row, number)
    base = base_of(rows)
    seeds = {row["seed"] for row in rows if not differing(row, base)}
    if len(seeds) < SEEDS:
        raise Mismatch(
            f"No configuration is in the study's table with {SEEDS} seeds; the most that one has is "
            f"{len(seeds)}. Without them, nobody can tell an effect from chance.",
            diagnosis="study_base_once",
        )
    trained = {model_of(row) for row in rows if not differing(row, base)}
    for number, row in enumerate(rows, start=2):
        if len(differing(row, base)) == 1 and model_of(row) in trained:
            raise Mismatch(
                f"Line {number} of the study's table has mlp_ratio {row['mlp_ratio']:g}, and the MLP is as "
                f"wide as the base's: int(dim * mlp_ratio) is {model_of(row)[-1]}. It is the same model."
            )
    single = {model_of(row) for row in rows if len(differing(row, base)) == 1}
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
    content, columns = student.file("metrics"), {"metric": str, "value": float}
    rows = csv_rows(content, columns, name="the table of measures", missing=True)
    values = {}
    for row in rows:
        if row["metric"] in values:
            raise Mismatch(f"The table of measures has {quoted(row['metric'])} twice.")
        values[row["metric"]] = row["value"]
    models = defaultdict(set)
    for name in values:
        model, _, rest = name.lower().partition(".") if "full" in edition else ("", "", name)
        if rest:
            models[model].update(measures_in(rest))
    if len(models) < 2 and "full" in edition:
        said = ", ".join(quoted(name, 30) for name in list(values)[:4]) or "no rows"
        raise Mismatch(
            "The table of measures should have the numbers of both models, with the model first, as in "
            f"'vit.accuracy'; it has {said}.",
            diagnosis="metrics_of_one_model",
        )
    measured = sorted(models.values(), key=len, reverse=True)[: 2 if "full" in edition else 1]
    least = measured[-1] if measured else set()
    if len(least) < FEWEST_MEASURES:
        said = ", ".join(f"`{name}`" for name in sorted(least)) or "none"
        whose, has = "the model", f"it has {said}"
        if "full" in edition:
            whose, has = "each of the two models", f"one of them has {said}"
        measures = ", ".join(f"`{name}`" for name in MEASURES)
        raise Mismatch(
            f"The table of measures should have {measures} of {whose}, under such names; of these {has}.",
            hint="export_metrics({'vit': ..., 'resnet': ...}, path), of what classification_metrics gives.",
        )
    for name, value in values.items():
        share = any(part in plain(name) for part in ("accuracy", "precision", "recall", "f1", "auc"))
        if share and not math.isnan(value) and not 0.0 <= value <= 1.0:
            raise Mismatch(
                f"The table of measures has {value:g} for {quoted(name)}; it should be a share from 0 to 1.",
                diagnosis="metrics_in_percent",
            )


def measures_in(name):
    """Which of the measures a name speaks of."""
    return {measure for measure, words in MEASURES.items() if any(word in plain(name) for word in words)}
