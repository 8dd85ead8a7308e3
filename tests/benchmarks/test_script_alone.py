"""The forms of the comparison are real homework, and its verdict follows from the records."""

from benchmarks import script_alone
from benchmarks.script_alone import ALONE, INSIDE, SEEDS, forms, section
from benchmarks.training_records import Record, new_record
from grader.analysis import program


def record(name: str, without: str, seed: int, accuracy: float) -> Record:
    return new_record(
        recipe=name,
        without=without,
        source=script_alone._seeded(forms()[name], seed),
        seed=seed,
        epochs=30,
        correct=1,
        images=2,
        seconds=1.0,
        cpu_seconds=1.0,
        device="cpu",
        counted=accuracy,
    )


def test_each_form_is_trained_as_its_name_says() -> None:
    read = {
        name: program("homework.py", text.encode(), script_alone.ASSIGNMENT.program_rules).script
        for name, text in forms().items()
    }
    assert all(not script.missing and script.model == "model" for script in read.values())
    assert [len(script.loops) for script in read.values()] == [1, 2, 2]
    assert [script.single for script in read.values()] == [True, True, False]
    assert [script.validates for script in read.values()] == [False, False, True]


def test_only_forms_with_all_seeds_are_judged() -> None:
    first, second, third = forms()
    records = [record(first, kind, seed, 0.80) for kind in (INSIDE, ALONE) for seed in SEEDS]
    records += [record(second, INSIDE, seed, 0.78) for seed in SEEDS]
    records += [record(second, ALONE, seed, 0.80) for seed in SEEDS]
    records += [record(third, INSIDE, SEEDS[0], 0.10)]
    found = section(records)
    assert [row[0] for row in found.rows] == [first, second]
    assert found.verdicts == (
        f"{first}: +0.00 points, at most 1.5 asked for: holds.",
        f"{second}: -2.00 points, at most 1.5 asked for: falls short.",
    )
