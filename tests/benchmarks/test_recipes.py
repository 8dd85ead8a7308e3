"""The trainings of recipes are kept: what is done again, what is not, and what is written of them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import recipes, tune
from benchmarks.training_records import Record, digest, keep, kept, trained
from grader.domain.assignment import Assignment
from grader.domain.errors import EngineError
from grader.kit.splits import Splits

SOURCE = '"""Words."""\n\n\ndef f():\n    """More."""\n    return 1  # one\n'
RECORD = Record(
    recipe="linear_28",
    without="",
    digest=digest(SOURCE),
    seed=1,
    epochs=5,
    correct=9,
    images=10,
    seconds=3.0,
    cpu_seconds=2.0,
    threads=1,
    device="cpu",
    processor="a processor",
    torch="2.0",
    on="2026-01-02",
)
PLANNED = recipes.Planned("linear_28", "", SOURCE, 1)


def test_a_digest_is_of_code() -> None:
    """Comments, docstrings and spaces do not count; a value does."""
    assert digest(SOURCE) == digest("def f():\n\n    return 1\n")
    assert digest(SOURCE) != digest(SOURCE.replace("return 1", "return 2"))


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "records.json"
    assert kept(path) == []
    records = [RECORD, replace(RECORD, seed=2)]
    keep(path, records)
    assert kept(path) == records and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "other",
    [
        replace(RECORD, recipe="conv_stem_28"),
        replace(RECORD, without="weight decay"),
        replace(RECORD, seed=2),
        replace(RECORD, digest=digest("x = 1")),
    ],
)
def test_only_a_record_of_the_same_training_counts(other: Record) -> None:
    assert PLANNED.done([other]) is None
    assert PLANNED.done([other, RECORD]) == RECORD


def test_what_is_interrupted_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each training is kept at once; one that fails stops no other; a changed recipe is trained anew."""
    done: list[tuple[str, int]] = []

    def train(recipe: str, without: str, source: str, seed: int, **_: object) -> Record:
        if seed == 3:
            raise EngineError("it did not work")
        done.append((source, seed))
        return replace(RECORD, seed=seed, digest=digest(source))

    monkeypatch.setattr(recipes, "RECORDS", tmp_path / "records.json")
    monkeypatch.setattr(recipes, "real_splits", lambda: None)
    monkeypatch.setattr(recipes, "trained", train)
    monkeypatch.setenv("MINUTES", "0")
    wanted = [replace(PLANNED, seed=seed) for seed in (1, 2, 3, 4)]
    recipes.train(wanted)
    assert done == []
    monkeypatch.delenv("MINUTES")
    recipes.train(wanted[:1])
    recipes.train(wanted)
    assert done == [(SOURCE, seed) for seed in (1, 2, 4)]
    changed = replace(PLANNED, source="x = 1")
    recipes.train([changed])
    assert [(r.digest, r.seed) for r in kept(recipes.RECORDS)] == [
        (digest(SOURCE), 2),
        (digest(SOURCE), 4),
        (digest("x = 1"), 1),
    ]


def test_the_table_says_what_was_measured_and_what_not() -> None:
    wanted = [replace(PLANNED, seed=seed) for seed in (1, 2, 3)]
    section = recipes.section(wanted, [RECORD, replace(RECORD, seed=2, correct=8, cpu_seconds=4.0)])
    assert section.rows == (
        ("`conv_stem_28`", "not measured", "", "0", "", ""),
        ("`resolution_free`", "not measured", "", "0", "", ""),
        ("`linear_28`", "85.00 ± 7.07", "80.00 to 90.00", "2", "5", "3"),
    )
    assert section.verdicts[-1] == (
        "`linear_28`, mean of n = 2: 85 %; at least 88 % is asked for: falls short. Aimed at: 94 %, "
        "9.00 points more."
    )
    better = recipes.section(wanted, [replace(RECORD, correct=19, images=20)])
    assert better.verdicts[-1].endswith("95 %; at least 88 % is asked for: holds. Aimed at: 94 %, reached.")
    assert section.where.startswith("Measured on 2026-01-02; cpu, 1 thread; a processor; torch 2.0.")


def test_the_ingredients_are_compared_with_the_short_training() -> None:
    names = ("nothing", "crops", "weight decay")
    wanted = [replace(PLANNED, without=name) for name in names]
    records = [
        replace(RECORD, without="nothing"),
        replace(RECORD, without="crops", correct=7),
        replace(RECORD, without="weight decay", digest="of other code"),
    ]
    section = recipes.ingredients_section(wanted, records)
    assert section.rows == (
        ("`linear_28`", "nothing", "90.0", ""),
        ("`linear_28`", "crops", "70.0", "-20.0"),
    )
    assert section.verdicts == ("1 of 3 trainings are not done yet.",)
    assert recipes.ingredients_section(wanted[:2], records).verdicts == ()
    assert recipes.ingredients_section(wanted, records[1:]).rows == (("`linear_28`", "crops", "70.0", ""),)


def test_every_recipe_has_a_goal_and_is_planned() -> None:
    assert {each.recipe for each in recipes.whole()} == set(recipes.GOALS)
    assert len(recipes.whole()) == len(recipes.SEEDS) * len(recipes.GOALS)
    planned = recipes.ablations()
    assert len({digest(each.source) for each in planned}) == len(planned)
    assert all(f"N_EPOCHS = {recipes.SHORT}\n" in each.source for each in planned)


@pytest.fixture(scope="module")
def images() -> Splits:
    """Two images of each class to train on and one to test, 40 x 40, told apart by their brightness."""
    labels = np.repeat(np.arange(6), 12)
    pictures = np.zeros((72, 40, 40), dtype=np.uint8)
    pictures[:] = (20 + 40 * labels)[:, None, None]
    names = tuple(f"{number}.png" for number in range(72))
    test = slice(0, 72, 12)
    classes = ("a", "b", "c", "d", "e", "f")
    return Splits("toys", classes, pictures, labels, names, pictures[test], labels[test], ("t",) * 6)


@pytest.mark.slow
def test_a_recipe_is_trained_by_its_own_loop(assignment: Assignment, images: Splits) -> None:
    """Through the grader's own worker, with crops of larger images, to the end."""
    [recipe] = [each for each in recipes.recipes(assignment) if each.name == "linear_28"]
    source = recipe.changed("N_EPOCHS = 2\nDEPTH = 1\n")
    told: list[int] = []
    record = trained(
        "linear_28",
        "",
        source,
        4,
        assignment=assignment,
        splits=images,
        report=lambda report: told.append(report.epoch.number),
    )
    assert told == [1, 2]
    assert (record.epochs, record.images, record.seed, record.device) == (2, 6, 4, "cpu")
    assert 0 <= record.correct <= 6 and record.cpu_seconds > 0
    assert record.digest == digest(source)


@pytest.mark.slow
def test_a_training_that_fails_is_no_record(assignment: Assignment, images: Splits) -> None:
    [recipe] = [each for each in recipes.recipes(assignment) if each.name == "linear_28"]
    source = recipe.changed("N_EPOCHS = 2\nLEAST_CROP = 'all'\n")
    with pytest.raises(EngineError, match=r"linear_28 without nothing, seed 1: .*TypeError"):
        trained("linear_28", "", source, 1, assignment=assignment, splits=images)


def test_no_training_that_tunes_is_done_twice(
    images: Splits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The seeds that are there are read; one that is added is trained, and all are told together."""
    done: list[int] = []

    def train(recipe: str, without: str, source: str, seed: int, **_: object) -> Record:
        done.append(seed)
        return replace(RECORD, seed=seed, digest=digest(source), correct=10 - seed)

    monkeypatch.setenv("GRADER_CACHE", str(tmp_path))
    monkeypatch.setattr(tune, "trained", train)
    monkeypatch.setattr(recipes, "real_splits", lambda: images)
    monkeypatch.setattr("sys.argv", ["tune", "linear_28", "N_EPOCHS = 7"])
    tune.main()
    assert done == [1]
    monkeypatch.setenv("SEEDS", "2")
    tune.main()
    assert done == [1, 2]
    said = capsys.readouterr().out.splitlines()
    assert (
        said[-1] == "linear_28, N_EPOCHS = 7: 85.00 ± 7.07 % of 10, n = 2; 5 epochs, 2 processor seconds each"
    )
    monkeypatch.setattr("sys.argv", ["tune", "linear_28", "N_EPOCHS = 8"])
    tune.main()
    assert done == [1, 2, 1, 2]


@pytest.mark.parametrize("seeds", ["0", "all", "-1", ""])
def test_seeds_that_are_no_number_are_refused(seeds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["tune", "linear_28"])
    monkeypatch.setenv("SEEDS", seeds)
    with pytest.raises(SystemExit, match=f"SEEDS is a whole number above 0, as in SEEDS=1, not '{seeds}'"):
        tune.main()


def test_tuning_sees_no_test_image(images: Splits) -> None:
    """A fifth of each class of the training images stands in for the test images."""
    found = tune.validation(images)
    assert set(found.train_names).isdisjoint(found.test_names)
    assert set(found.train_names) | set(found.test_names) == set(images.train_names)
    assert np.bincount(found.test_labels).tolist() == [2] * 6
    for side, labels, names in (
        (found.train_images, found.train_labels, found.train_names),
        (found.test_images, found.test_labels, found.test_names),
    ):
        assert side[:, 0, 0].tolist() == (20 + 40 * labels).tolist()
        assert labels.tolist() == [int(name.removesuffix(".png")) // 12 for name in names]
