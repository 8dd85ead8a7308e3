"""What the fine-tuning of vit_finetune is compared with, and what its section says."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks import finetuning
from benchmarks.finetuning import PROBE, REAL, SCRATCH, SYNTHETIC, TUNED, Planned
from benchmarks.resumable_training import Training
from benchmarks.training_records import Record, digest

ANY = Record(
    *("", "", "", 1, 15, 800, 1000, 40.0, 39.0, 1, "cpu", "a processor", "2.13.0", "2026-11-25"), counted=0.8
)


def record(planned: Planned, counted: float) -> Record:
    """Of a training that was done."""
    return replace(
        ANY,
        recipe=planned.recipe,
        without=planned.images,
        digest=digest(planned.code),
        seed=planned.seed,
        counted=counted,
    )


def test_from_scratch_no_weights_are_taken_and_nothing_ends_early() -> None:
    tuned, scratch = Planned(TUNED, REAL, 1).source, Planned(SCRATCH, REAL, 1, "1e-2").source
    assert "model.load_state_dict(load_file(" in tuned and "load_state_dict(load_file(" not in scratch
    assert "RATE = 1e-2" in scratch and "PATIENCE = 15" in scratch
    ast.parse(scratch)


def test_other_weights_are_another_training() -> None:
    """Where they come with the assignment; those for real images are made by this program alone."""
    assert Planned(TUNED, SYNTHETIC, 1).code != Planned(TUNED, REAL, 1).code


@pytest.mark.slow
def test_the_best_rate_is_compared_and_the_gain_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        record(Planned(SCRATCH, REAL, finetuning.TRIED_SEED, rate), value)
        for rate, value in (("3e-3", 0.3), ("1e-2", 0.4), ("3e-2", 0.2))
    ]
    monkeypatch.setattr(finetuning, "kept", lambda path: [])
    assert not finetuning._compared(REAL), "no rate was tried yet"
    monkeypatch.setattr(finetuning, "kept", lambda path: records)
    assert finetuning.best_rate(REAL) == "1e-2"
    wanted = finetuning._compared(REAL)
    assert len(wanted) == 15 and {each.rate for each in wanted} == {"", "1e-2"}
    values = {TUNED: 0.5, PROBE: 0.45, SCRATCH: 0.4}
    records += [record(each, values[each.way] + each.seed / 100) for each in wanted]
    section = finetuning.section(records)
    [verdict] = section.verdicts
    assert verdict.startswith("fine-tuning above scratch, real: 10 points") and "holds" in verdict
    assert [row[2] for row in section.rows[3:]] == ["53.00 ± 1.58", "48.00 ± 1.58", "43.00 ± 1.58"]
    assert [row[2] for row in section.rows[:3]] == ["not measured"] * 3


def test_a_training_that_was_kept_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    """Model, optimizer, schedule and random numbers."""
    images, labels = torch.randn(20, 4), torch.arange(20) % 2

    def begun() -> tuple[torch.nn.Module, Training]:
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2)
        return model, Training(model, 20, 4, 0.1, 7)

    def epochs(training: Training, count: int) -> None:
        for _ in range(count):
            training.one_epoch(lambda rows, random: (images[rows], labels[rows]))

    whole, training = begun()
    epochs(training, 4)
    _, interrupted = begun()
    epochs(interrupted, 2)
    state = tmp_path / "state.pt"
    interrupted.keep(state)
    resumed, again = begun()
    again.resume(state)
    epochs(again, 2)
    assert again.epoch == 4 and torch.equal(whole.weight, resumed.weight)  # type: ignore[arg-type]
