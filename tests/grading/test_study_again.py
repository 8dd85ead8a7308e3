"""Rows of a study that was handed in, trained again: which, and whether they agree."""

from collections.abc import Mapping
from typing import Any

import pytest

from grader.domain.assignment import RubricItem
from grader.domain.measure import StudyAgain, StudyTable, TrainingCall, with_values
from grader.domain.score import LineState
from grader.grading.study_reproduction import _quantile, study_again, typed
from grader.scoring.rubric_lines import study_line

TABLE = StudyTable(
    "study",
    TrainingCall(
        "Net", "fit", {"dim": "{dim}", "kind": "{kind}"}, {"epochs": "{epochs}", "data": "{inputs}"}
    ),
    claimed="accuracy",
    seed="seed",
    size="parameters",
    columns=("dim", "kind", "epochs"),
)
HEAD = "dim,kind,epochs,seed,parameters,accuracy\n"
BASE = "8,plain,3,0,100,0.50\n8,plain,3,1,100,0.52\n8,plain,3,2,100,0.51\n"
ROWS = (
    "16,plain,3,0,200,0.60\n8,odd,3,0,100,0.49\n8,plain,6,0,100,0.58\n"
    "4,plain,3,0,50,0.55\n32,odd,9,0,300,0.9\n"
)
TRUE = {8: 0.40, 16: 0.50, 4: 0.44}


def trained(values: Mapping[str, Any], number: int) -> tuple[float | None, str, float]:
    """What a row reaches: all of them a tenth less than is claimed."""
    reached = TRUE[values["dim"]] + (-0.02 if values["kind"] == "odd" else 0) + (values["epochs"] - 3) * 0.02
    return reached, "", 2.0


def again(rows: str = HEAD + BASE + ROWS, secret: str = "secret", **more: Any) -> StudyAgain:
    """What comes of a table."""
    return study_again(TABLE, rows.encode(), secret=secret, images=5000, **{"trained": trained, **more})


def test_the_base_and_two_rows_that_differ_in_one_value_are_trained() -> None:
    found = again()
    base, *others = found.rows
    assert base.is_base and base.values == {"dim": "8", "kind": "plain", "epochs": "3"}
    assert base.claimed == pytest.approx(0.51) and base.measured == 0.40
    assert len(others) == 2 and all(
        sum(row.values[name] != base.values[name] for name in row.values) == 1 for row in others
    )
    changed = [next(name for name in row.values if row.values[name] != base.values[name]) for row in others]
    assert len(set(changed)) == 2, "of different columns where there are"


def test_nobody_can_tell_beforehand_which_they_are() -> None:
    chosen = {tuple(str(row.values) for row in again(secret=str(number)).rows[1:]) for number in range(20)}
    assert len(chosen) > 3


def test_differences_that_agree_give_full_points() -> None:
    """The accuracies themselves may differ: the images are others, and the transforms."""
    found = again()
    assert found.agrees is True and 0.02 < found.tolerance < 0.06
    line = study_line(RubricItem("study", "The study", 3, study=True), found)
    assert (line.points, line.state) == (3, LineState.DECIDED) and "as claimed" in line.reason


def test_a_base_that_is_said_to_scatter_makes_nothing_agree() -> None:
    """What the table shows of it is a claim, too."""
    base = BASE.replace("0.50", "0.40").replace("0.52", "0.62")
    assert again(HEAD + base + ROWS).tolerance == pytest.approx(again().tolerance, abs=1e-3)


def test_rows_that_are_all_the_same_model_go_to_a_person() -> None:
    """The same seed and the same model give the same number: no claim is confirmed by that."""
    rows = "8.001,plain,3,0,100,0.51\n8.002,plain,3,0,100,0.51\n"
    found = again(HEAD + BASE + rows, trained=lambda values, number: (0.4, "", 2.0))
    assert found.agrees is None and "exactly what the base reaches, 40.0 %" in found.reason
    line = study_line(RubricItem("study", "The study", 3, study=True), found)
    assert line.points is None and "make no difference to the model" in line.reason


def test_a_difference_beyond_chance_goes_to_a_person() -> None:
    rows = ROWS
    for claimed in ("0.60", "0.58", "0.49"):
        rows = rows.replace(claimed, "0.80")
    found = again(HEAD + BASE + rows)
    assert found.agrees is False
    line = study_line(RubricItem("study", "The study", 3, study=True), found)
    assert (
        line.points is None
        and "does not differ from the base as claimed" in line.reason
        and "person" in line.reason
    )


def test_a_row_that_cannot_be_trained_goes_to_a_person_with_its_reason() -> None:
    found = again(trained=lambda values, number: (None, "It took too long.", 1.0))
    assert found.agrees is None and [row.measured for row in found.rows] == [None] * 3
    line = study_line(RubricItem("study", "The study", 3, study=True), found)
    assert line.points is None and line.reason.startswith("It took too long.")


def test_a_row_that_disagrees_is_trained_with_more_seeds_and_its_mean_counts() -> None:
    """One unlucky training is no reason to ask a person; where all agree, none is trained again."""
    calls: list[tuple[Any, ...]] = []

    def unlucky(values: Mapping[str, Any], number: int) -> tuple[float | None, str, float]:
        calls.append((*values.values(), number))
        reached, why_not, seconds = trained(values, number)
        assert reached is not None
        return (
            (reached - 0.08 if number == 1 and calls[0][:3] != calls[-1][:3] else reached),
            why_not,
            seconds,
        )

    found = again(HEAD + BASE + "16,plain,3,0,200,0.60\n", trained=unlucky)
    assert calls == [(dim, "plain", 3, number) for number in (1, 2, 3) for dim in (8, 16)]
    assert found.agrees is True and [row.seeds for row in found.rows] == [3, 3]
    assert found.rows[1].measured == pytest.approx(0.4733, abs=1e-4) and found.rows[1].seconds == 6.0
    calls.clear()
    assert again(trained=unlucky, rows=HEAD + BASE + "16,plain,3,0,200,0.49\n").agrees is True
    assert len(calls) == 2


def test_what_is_invented_stays_beyond_chance_with_all_seeds() -> None:
    rows = "16,plain,3,0,200,0.80\n"
    found = again(HEAD + BASE + rows)
    assert found.agrees is False and [row.seeds for row in found.rows] == [3, 3]
    assert found.tolerance < 0.05


def test_what_scatters_is_believed_less() -> None:
    """Of a few trainings, a deviation is not known well: Student's t with as many degrees of freedom."""

    def scattering(by: float) -> Any:
        def reached(values: Mapping[str, Any], number: int) -> tuple[float | None, str, float]:
            mean, why_not, seconds = trained(values, number)
            assert mean is not None
            return mean + (0.0, by, -by)[number - 1], why_not, seconds

        return reached

    rows = HEAD + BASE + "16,plain,3,0,200,0.68\n4,plain,3,0,50,0.54\n"
    quiet, noisy = again(rows), again(rows, trained=scattering(0.02))
    assert quiet.agrees is False and quiet.tolerance < 0.06
    assert noisy.agrees is True and 0.07 < noisy.tolerance < 0.15
    wild = again(rows, trained=scattering(0.05))
    assert wild.agrees is None and "points would be chance" in wild.reason
    assert _quantile(0.05, 6) == pytest.approx(2.447, abs=0.02)
    assert _quantile(0.025, 6) == pytest.approx(2.969, abs=0.03)


def test_a_further_training_that_does_not_end_goes_to_a_person() -> None:
    def once(values: Mapping[str, Any], number: int) -> tuple[float | None, str, float]:
        return trained(values, number) if number == 1 else (None, "It took too long.", 1.0)

    found = again(HEAD + BASE + "16,plain,3,0,200,0.80\n", trained=once)
    assert found.agrees is None and found.rows[0].why_not == "It took too long."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dim,kind\n8,plain\n", "cannot be read"),
        (HEAD, "no rows below"),
        (HEAD + "8,plain,3,0,100,51\n", "51 is not an accuracy"),
        (HEAD + BASE, "No row of the study differs"),
        (HEAD + BASE * 200, "more than 500 rows"),
        (HEAD + "x" * 300_000, "larger than 200 kB"),
    ],
)
def test_a_table_that_cannot_be_used_is_told(text: str, said: str) -> None:
    found = again(text)
    assert said in found.reason and found.agrees is None and not found.rows


def test_the_row_that_is_most_against_its_size_is_told() -> None:
    found = again()
    assert found.unexpected is not None and found.unexpected.values["dim"] == "4", "smaller, and better"


def test_values_take_the_places_of_their_names() -> None:
    given = {"dim": "{dim}", "loaders": {"train": "{batches}"}, "list": ["{dim}", 3]}
    expected = {"dim": 8, "loaders": {"train": "{batches}"}, "list": [8, 3]}
    assert with_values(given, {"dim": 8}) == expected
    assert [typed(text) for text in ("8", "2.0", "1,5", "odd", "1e400")] == [8, 2.0, 1.5, "odd", float("inf")]
