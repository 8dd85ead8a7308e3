"""Measures and their export, exactly by the contract."""

import csv
import io
import math

import numpy as np
import pytest
import torch

from grader.kit import Mismatch, csv_rows, quoted

TIED = "tied probabilities"


def cases(student):
    """(targets, probabilities) of several kinds: many images, ties, absent classes, a single image."""
    many = (2 * student.tensor(40, 4)).softmax(dim=1).numpy()
    labels = torch.randint(0, 4, (40,), generator=student.random).numpy()
    ties = np.round(many[:24], 1)
    absent = np.where(labels[:24] == 2, 0, labels[:24])
    one = np.array([[0.2, 0.5, 0.3]])
    return {
        "40 images of four classes": (labels, many),
        TIED: (labels[:24], ties),
        "a class that does not occur": (absent, many[:24]),
        "a single image": (np.array([1]), one),
    }


def measured(student, numbers, targets, probabilities):
    """What classification_metrics gives, as arrays and numbers."""
    returned = student.call("classification_metrics", targets, probabilities).returned
    classes = probabilities.shape[1]
    found = {"confusion": numbers(returned.at("confusion"), classes, classes)}
    for name in ("precision", "recall", "f1", "support", "roc_auc"):
        found[name] = numbers(returned.at(name), classes)
        for kind in ("macro", "weighted") if name != "support" else ():
            found[f"{kind}_{name}"] = returned.at(f"{kind}_{name}").number(finite=False)
    return found


@pytest.mark.explains(
    "metrics_count_each_image",
    "metrics_of_each_class_are_right",
    "metrics_have_the_area_under_the_curve",
    "metrics_have_two_kinds_of_means",
)
@pytest.mark.component("classification_metrics")
@pytest.mark.weight(4)
def test_measures_are_right(student, reference):
    """Confusion matrix, precision, recall, F1, support, ROC-AUC and both kinds of means are exact."""
    judged(student, reference, ["40 images of four classes"])


@pytest.mark.explains("metrics_count_ties_as_one_half", "metrics_know_classes_that_do_not_occur")
@pytest.mark.component("classification_metrics")
@pytest.mark.weight(2)
@pytest.mark.because("measures_are_right")
def test_measures_are_right_at_the_corners(student, reference):
    """The measures are exact with tied probabilities, absent classes and a single image, too."""
    judged(student, reference, [TIED, "a class that does not occur", "a single image"])


def judged(student, reference, names):
    oracle, given = reference.oracle, cases(student)
    found = {name: measured(student, oracle.numbers, *given[name]) for name in names}

    def wrong(made):
        return {name: oracle.wrong_measures(found[name], made(*given[name])) for name in names}

    others = wrong(reference.classification_metrics)
    if not any(others.values()):
        return
    for mistake in reference.mistakes_of("classification_metrics"):
        try:
            if not any(wrong(mistake.namespace["classification_metrics"]).values()):
                raise reference.named(mistake.id)
        except (ValueError, KeyError, ZeroDivisionError):
            continue
    right = {name: reference.classification_metrics(*given[name])["confusion"] for name in names}
    counted = [(found[name]["confusion"], right[name]) for name in names if others[name]]
    if all(np.array_equal(once, each > 0) for once, each in counted) and any(e.max() > 1 for _, e in counted):
        raise reference.named("metrics_count_each_pair_once")
    areas = {name for name in oracle.MEANS if name.endswith("roc_auc")} | {"roc_auc"}
    elsewhere = any(each for name, each in others.items() if name != TIED)
    if not elsewhere and set(others.get(TIED, ())) <= areas:
        raise reference.named("metrics_auc_ignores_ties")
    case, measures = next((name, each) for name, each in others.items() if each)
    right = reference.classification_metrics(*given[case])[measures[0]]
    raise Mismatch(
        f"For {case}, {measures[0]!r} is {_short(found[case][measures[0]])}; it should be {_short(right)}."
    )


def _short(value):
    return np.array2string(np.asarray(value, dtype=float), precision=3, separator=", ")


# --- export -----------------------------------------------------------------------------------------------

CLASSES = ("ox", "hen", "yak", "emu", "cod", "asp", "elk", "gnu")
FURTHER = ("seconds", "epochs", "parameters", "images", "seed", "batch")


def nested(student):
    """(measures in dictionaries, the rows that they are), with names and numbers drawn for a submission."""
    share = torch.rand(8, generator=student.random).mul(9000).round().div(10_000).add(0.05).tolist()
    order = torch.randperm(len(CLASSES), generator=student.random).tolist()
    one, two, three = (CLASSES[place] for place in order[:3])
    further = FURTHER[order[3] % len(FURTHER)]
    measures = {
        "vit": {"accuracy": share[0], "recall": {one: share[1], two: share[2]}, "f1": np.array(share[3:6])},
        "resnet": {"accuracy": share[6], "precision": {three: share[7]}},
        further: 12.5 + order[4],
    }
    rows = {
        "vit.accuracy": share[0], f"vit.recall.{one}": share[1], f"vit.recall.{two}": share[2],
        "vit.f1.0": share[3], "vit.f1.1": share[4], "vit.f1.2": share[5],
        "resnet.accuracy": share[6], f"resnet.precision.{three}": share[7], further: 12.5 + order[4],
    }  # fmt: skip
    return measures, rows


@pytest.mark.explains("export_joins_the_names")
@pytest.mark.component("export_metrics")
@pytest.mark.weight(3)
def test_export_writes_every_number(student, reference):
    """The CSV has the columns metric and value, and a row for each number, nested names joined by dots."""
    measures, expected = nested(student)
    outcome = student.call("export_metrics", measures, "metrics.csv", reads=["metrics.csv"])
    content = outcome.file("metrics.csv")
    first = next(csv.reader(io.StringIO(content.decode("utf-8", "replace"))), [])
    if first and first[0].strip().lower() == "vit.accuracy":
        raise reference.named("export_without_header")
    rows = csv_rows(content, {"metric": str, "value": float}, name="metrics.csv")
    found = {row["metric"]: row["value"] for row in rows}
    if _close(found, expected):
        return
    if any("/" in name or "_" in name.replace("_", "", 0) for name in found if name not in expected):
        raise reference.named("export_joins_otherwise")
    if "accuracy" in found and "vit.accuracy" not in found:
        raise reference.named("export_loses_outer_names")
    if "vit.f1.1" in found and "vit.f1.0" not in found:
        raise reference.named("export_counts_from_one")
    missing = [name for name in expected if name not in found]
    if missing:
        said = ", ".join(quoted(name, 30) for name in list(found)[:6]) or "none"
        raise Mismatch(f"metrics.csv has no row {missing[0]!r}; it has {said}.")
    name = next(name for name in expected if not math.isclose(found[name], expected[name], rel_tol=1e-3))
    raise Mismatch(f"In metrics.csv, {name!r} is {found[name]}; it should be {expected[name]}.")


def _close(found, expected):
    return all(
        name in found and math.isclose(found[name], value, rel_tol=1e-3) for name, value in expected.items()
    )


@pytest.mark.component("export_metrics")
@pytest.mark.weight(1)
@pytest.mark.because("export_writes_every_number")
def test_export_writes_what_the_measures_are(student):
    """What classification_metrics gives can be exported; matrices may be left out."""
    count = 3 + int(torch.randint(5, (1,), generator=student.random))
    support = torch.randint(3, 90, (count,), generator=student.random).numpy()
    metrics = {"confusion": np.eye(count), "support": support, "macro_f1": float("nan"), "accuracy": 0.5}
    outcome = student.call("export_metrics", {"vit": metrics}, "metrics.csv", reads=["metrics.csv"])
    rows = csv_rows(outcome.file("metrics.csv"), {"metric": str, "value": str}, name="metrics.csv")
    found = {row["metric"]: row["value"].strip() for row in rows}
    for name, value in ((f"vit.support.{count - 1}", float(support[-1])), ("vit.accuracy", 0.5)):
        if name not in found:
            raise Mismatch(f"metrics.csv has no row {name!r}.")
        if not _is(found[name], value):
            raise Mismatch(f"In metrics.csv, {name!r} is {quoted(found[name])}; it should be {value:g}.")


def _is(text, value):
    try:
        return math.isclose(float(text.replace(",", ".")), value, rel_tol=1e-3)
    except ValueError:
        return False


# --- parameters -------------------------------------------------------------------------------------------


@pytest.mark.explains("table_has_names_and_numbers")
@pytest.mark.component("parameter_table")
def test_table_adds_up(student, reference):
    """The numbers add up to all parameters, including those outside layers and those not learned."""
    for depth, positions, learns in ((1, "learned", True), (3, "sinusoidal", True), (1, "learned", False)):
        sizes = {"image_size": 8, "dim": 12, "depth": depth, "heads": 2, "positions": positions}
        made = student.build("VisionTransformer", **sizes)
        if not learns:
            made.call("requires_grad_", False)
        count = sum(int(np.prod(p.shape)) for p in made.parameters)
        frozen = [p for p in made.parameters if not (p.trainable and learns)]
        rows = student.call("parameter_table", made).returned.items(None, "rows")
        numbers = []
        for row in rows:
            name, number = row.items(2, "values: a name and a number")
            name.text()
            numbers.append(number.whole_number(0))
        found = sum(numbers)
        if found == count:
            continue
        if numbers[-1:] == [count] and sum(numbers[:-1]) == count:
            raise reference.named("table_with_its_total")
        own = [int(np.prod(p.shape)) for p in made.parameters if "." not in p.name]
        if found == count - sum(own):
            raise reference.named("table_of_layers_only")
        if frozen and found == count - sum(int(np.prod(p.shape)) for p in frozen):
            raise reference.named("table_of_what_learns")
        if found > count and not frozen:
            raise reference.named("table_of_the_first_level_twice")
        raise Mismatch(f"The numbers of the table add up to {found}; the model has {count} parameters.")
