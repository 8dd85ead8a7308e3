"""What captions and tick labels are taken to say."""

import pytest

from grader.kit.captions import class_of, classes_named, numbers_named, role, speaks_of_both, stated

CLASSES = ("crazing", "inclusion", "patches", "pitted_surface", "rolled-in_scale", "scratches")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pitted_surface", 3),
        ("Pitted\nSurface", 3),
        ("ROLLED-IN SCALE", 4),
        ("2: patches", 2),
        ("patches (31)", 2),
        ("roll.", 4),
        ("s", 5),
        ("Sc", 5),
        ("PS", 3),
        ("RS", 4),
        ("p", None),  # patches or pitted_surface
        ("3", None),
        ("", None),
        ("class", None),
    ],
)
def test_tick_labels_may_be_shortened(text: str, expected: int | None) -> None:
    """Only letters and digits count; what fits two classes names none."""
    assert class_of(text, CLASSES) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("True: crazing\nPred: pitted surface", [0, 3]),
        ("PATCHES -> Rolled_in_scale", [2, 4]),
        ("gt: scra p: inc", [5, 1]),
        ("pitted_s", [3]),
        ("incorrect, a pattern", []),
        ("patchespatches", [2, 2]),
        ("2", []),
    ],
)
def test_names_are_found_in_captions(text: str, expected: list[int]) -> None:
    """Whole, cut or in other letters, but not in other words."""
    assert classes_named(text, CLASSES) == expected


def test_short_names_are_words() -> None:
    """The name of a class may be a letter, or begin another name."""
    assert classes_named("b, cab", ("a", "b", "c")) == [1]
    assert classes_named("scratch, scratches", ("scratch", "scratches")) == [0, 1]


@pytest.mark.parametrize(
    ("text", "expected"), [("T:3 P:1", [3, 1]), ("#3 p = 0.5, 4 %", []), ("image 12 of 6", []), ("v2", [])]
)
def test_numbers_name_classes(text: str, expected: list[int]) -> None:
    """Whole numbers, but no shares, no percentages and no numbers of images."""
    assert numbers_named(text, CLASSES) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Predicted label", "predicted"),
        ("True label", "true"),
        ("ground truth", "true"),
        ("y_pred", "predicted"),
        ("$\\hat{y}$", "predicted"),
        ("Label", "true"),
        ("Label (predicted)", "predicted"),
        ("Vorhergesagte Klasse", "predicted"),
        ("برچسب پیش‌بینی", "predicted"),
        ("true vs. predicted", None),
        ("class", None),
        ("", None),
    ],
)
def test_axes_tell_their_role(text: str, expected: str | None) -> None:
    """True or predicted; neither when both or none is said."""
    assert role(text) == expected


def test_both_roles_are_heard() -> None:
    """As in a title that explains rows and columns."""
    assert speaks_of_both("rows: predicted, columns: true")
    assert not speaks_of_both("Predicted labels")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("True: crazing\nPred: patches", {"true": 0, "predicted": 2}),
        ("patches (pred), crazing (true)", {"true": 0, "predicted": 2}),
        ("Pred / True: patches / crazing", {"true": 0, "predicted": 2}),
        ("ground truth label: crazing | model's guess: patches", {"true": 0, "predicted": 2}),
        ("Label: crazing, Prediction: patches", {"true": 0, "predicted": 2}),
        ("T:0 P:2", {"true": 0, "predicted": 2}),
        ("predicted: patches", {"predicted": 2}),
        ("crazing p=0.93", {}),
        ("crazing predicted as patches", {}),
        ("crazing -> patches", {}),
    ],
)
def test_statements_say_which_is_which(text: str, expected: dict[str, int]) -> None:
    """Words for the roles and names, matched in order; nothing is concluded from half a statement."""
    assert stated(text, CLASSES) == expected
