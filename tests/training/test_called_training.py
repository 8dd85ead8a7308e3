"""Training by calling what students wrote: real workers, no loop of the program's own."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from grader.analysis.programs import program
from grader.domain.assignment import Component, ProgramRules
from grader.domain.evidence import TrainingOutcome
from grader.domain.limits import Limits
from grader.domain.measure import Scale, TrainingCall
from grader.kit.splits import Examples
from grader.protocol.link import WorkerProcess
from grader.training import (
    CalledJob,
    EpochReport,
    made_up_images,
    rehearsed_call,
    repeated_training,
    trained_once,
)
from grader.training.called_training import Arguments
from grader.training.measured_training import images_as_examples
from grader.training.metrics import mean_interval, score_of, value_interval

LINE = """
import numpy as np


class Line:
    def __init__(self, slope=0.0, offset=0.0):
        self.numbers = {"slope": np.array([slope]), "offset": np.array([offset])}

    def parameters(self):
        return self.numbers

    def forward(self, inputs, training=False):
        if training:
            raise RuntimeError("nobody trains here")
        return inputs * self.numbers["slope"] + self.numbers["offset"]


def fit(model, inputs, targets, epochs, rate=0.1):
    for _ in range(epochs):
        wrong = inputs * model.numbers["slope"] + model.numbers["offset"] - targets
        model.numbers["slope"] -= rate * (wrong * inputs).mean(axis=0)
        model.numbers["offset"] -= rate * wrong.mean(axis=0)
"""
NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, classes=2):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, classes)

    def forward(self, images):
        return self.head(self.norm(images.flatten(1)))


def fit(model, loader, validation, epochs, device):
    assert device == torch.device("cpu") and not model.head.weight.is_cuda
    seen = [len(targets) for _, targets in validation]
    assert len(loader.dataset) == 9 * sum(seen), (len(loader.dataset), seen)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model.train()
    for _ in range(epochs):
        for images, targets in loader:
            assert images.max() <= 1
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), targets).backward()
            optimizer.step()
"""


def parts(model: str) -> ProgramRules:
    """What is graded: a model and `fit`."""
    components = (Component(model, "class", ""), Component("fit", "function", "model"))
    return ProgramRules(components, trains=False)


def squared(outputs: Any, targets: Any) -> float:
    """The mean squared error."""
    return float(((outputs - targets) ** 2).mean())


LINE_CALL = TrainingCall(
    "Line",
    "fit",
    arguments={"slope": 0.5},
    given={"model": "{model}", "inputs": "{inputs}", "targets": "{targets}", "epochs": 200},
    weights="parameters",
    answers="forward",
    answers_with={"training": False},
    tensors=False,
)


def line_job(text: str, **changes: Any) -> CalledJob:
    """Points on y = 3 x - 1."""
    inputs = np.random.default_rng(0).normal(size=(600, 1))
    data = Examples("points", inputs[:300], 3 * inputs[:300] - 1, inputs[300:], 3 * inputs[300:] - 1)
    job = CalledJob(
        program("homework.py", text.encode(), parts("Line")),
        Limits(training_seconds=20, call_seconds=5),
        seed=3,
        order_seed=5,
        examples=data,
        call=LINE_CALL,
        score=score_of(squared, "squared"),
    )
    return replace(job, **changes)


def test_objects_that_are_no_modules_are_trained_and_measured(spawn: Callable[[], WorkerProcess]) -> None:
    """Their numbers go into an object that is made anew, by the member that the assignment names."""
    training = trained_once(spawn, line_job(LINE)).training
    assert training.outcome is TrainingOutcome.COMPLETED, training.reason
    assert training.value is not None and training.value < 1e-6
    assert training.accuracy is None and training.measured == training.value
    assert training.counted == "after `fit(model, inputs, targets, epochs=200)`"
    few = replace(LINE_CALL, given={**LINE_CALL.given, "epochs": 3})
    little = trained_once(spawn, line_job(LINE, call=few)).training
    assert little.value is not None and little.value > 0.5
    assert little.interval is not None and little.interval[0] < little.value < little.interval[1]


def test_only_a_value_that_is_a_placeholder_stands_for_something(
    spawn: Callable[[], WorkerProcess],
) -> None:
    """Neither a text that begins with one, nor a key."""
    given = {**LINE_CALL.given, "note": "{validation_set} of ours"}
    job = line_job(LINE, call=replace(LINE_CALL, given=given))
    assert len(Arguments(job).training_rows) == 300
    nested = {**LINE_CALL.given, "further": [{"held_out": "{validation_inputs}"}]}
    assert len(Arguments(line_job(LINE, call=replace(LINE_CALL, given=nested))).training_rows) == 270
    own_model = LINE.replace("def fit(model,", "def fit(names,").replace(
        "    for _ in", "    model = Line(0.5)\n    for _ in"
    )
    given = {name: value for name, value in LINE_CALL.given.items() if name != "model"}
    given["names"] = {"{model}": 1}
    job = line_job(own_model + "    return model\n", call=replace(LINE_CALL, given=given))
    training = trained_once(spawn, job).training
    assert training.value is not None and training.value < 1e-6, training.reason


@pytest.mark.parametrize(
    ("change", "outcome", "told"),
    [
        (("def fit(", "def other("), TrainingOutcome.FAILED, "`fit` is not there"),
        (
            ("    for _ in range(epochs):", "    raise NotImplementedError\n    for _ in ():"),
            TrainingOutcome.FAILED,
            "not impl",
        ),
        (("        wrong =", "        1 / 0\n        wrong ="), TrainingOutcome.FAILED, "ZeroDivisionError"),
        (("rate=0.1", "rate=1e9"), TrainingOutcome.DIVERGED, "not finite numbers"),
        (("return self.numbers\n", "return [self]\n"), TrainingOutcome.FAILED, "tensors and arrays"),
        (("return self.numbers\n", "return 7\n"), TrainingOutcome.FAILED, "ValueError"),
        (("return inputs * self", "return None and self"), TrainingOutcome.FAILED, "tensor or an array"),
        (("return inputs * self", "return inputs[:2] * self"), TrainingOutcome.FAILED, "gives 2 outputs"),
        (("return inputs * self", "return inputs[:, [0, 0, 0]] * self"), TrainingOutcome.UNKNOWN, "measured"),
        pytest.param(
            ("    for _ in range(epochs):", "    while True:"),
            TrainingOutcome.BUDGET,
            "time limit of 3 s",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_does_not_end_in_a_number(
    spawn: Callable[[], WorkerProcess], change: tuple[str, str], outcome: TrainingOutcome, told: str
) -> None:
    """The student's own fault costs; what is ours or nobody knows is unknown, never zero."""
    assert change[0] in LINE

    def three(outputs: Any, targets: Any) -> float:
        if outputs.shape != targets.shape:
            raise ValueError("other shapes")
        return squared(outputs, targets)

    job = line_job(LINE.replace(*change), score=score_of(three, "three"))
    job = replace(job, limits=replace(job.limits, training_seconds=3.0))
    training = trained_once(spawn, job).training
    assert (training.outcome, training.value) == (outcome, None), training.reason
    assert told in training.reason


def test_hidden_targets_reach_nobody(spawn: Callable[[], WorkerProcess]) -> None:
    """The worker that trains has the training data alone, and the one that answers is told nothing else."""
    peek = LINE.replace(
        "    for _ in range(epochs):",
        "    import gc\n"
        "    arrays = [each for each in gc.get_objects() if isinstance(each, np.ndarray)]\n"
        "    assert not any(each.shape == (300, 1) and each is not inputs and each is not targets\n"
        "                   for each in arrays)\n"
        "    for _ in range(epochs):",
    )
    assert trained_once(spawn, line_job(peek)).training.outcome is TrainingOutcome.COMPLETED
    learned = LINE.replace("slope=0.0, offset=0.0):", "slope=0.0, offset=0.0):\n        self.kept = []")
    learned = learned.replace("    for _ in range", "    model.kept.append(inputs)\n    for _ in range")
    learned = learned.replace("        if training:", "        assert not self.kept\n        if training:")
    assert trained_once(spawn, line_job(learned)).training.outcome is TrainingOutcome.COMPLETED


def test_the_hidden_inputs_come_in_an_order_that_no_worker_knows(spawn: Callable[[], WorkerProcess]) -> None:
    """An answer by place alone is worth nothing."""
    by_place = LINE.replace(
        "        return inputs * self.numbers",
        "        self.seen = getattr(self, 'seen', 0) + len(inputs)\n"
        "        first = np.arange(self.seen - len(inputs), self.seen)[:, None] + 0.0\n"
        "        return first + 0 * self.numbers",
    )
    data = line_job(LINE).examples
    numbered = replace(data, test_targets=np.arange(300.0)[:, None])
    untrained = replace(LINE_CALL, given={**LINE_CALL.given, "epochs": 0})
    training = trained_once(spawn, line_job(by_place, examples=numbered, call=untrained)).training
    assert training.value is not None and training.value > 1000
    job = line_job(by_place, examples=numbered, call=untrained, order_seed=None)
    known = trained_once(spawn, job).training
    assert known.value is not None and known.value < 10, "it would be, were the order known"


STANDARDIZED = NET.replace(
    "            assert images.max() <= 1\n",
    "            assert images.min() < -0.5 and abs(float(images.mean())) < 1 and images.std() < 1.5\n",
)


def net_job(source: str, *, epochs: int = 10, standardized: bool = False) -> CalledJob:
    """Dark and light images, which are easy to tell apart."""
    splits = made_up_images(("dark", "light"), (2, 2))
    light = splits.train_labels == 1
    images = np.where(light[:, None, None], 200, 20).astype(np.uint8) + splits.train_images // 8
    splits = replace(
        splits,
        train_images=np.concatenate([images] * 5),
        train_labels=np.concatenate([splits.train_labels] * 5),
        test_images=images,
    )
    call = TrainingCall(
        "Net",
        "fit",
        arguments={"classes": 2},
        given={
            "model": "{model}",
            "loader": "{batches}",
            "validation": "{validation_batches}",
            "epochs": epochs,
            "device": "{device}",
        },
        batch_size=8,
        standardized=standardized,
    )
    return CalledJob(
        program("homework.py", source.encode(), parts("Net")),
        Limits(),
        seed=3,
        order_seed=5,
        examples=images_as_examples(splits),
        call=call,
        scaled=True,
        splits=splits,
    )


@pytest.mark.parametrize("standardized", [False, True])
def test_modules_are_trained_on_images_with_loaders(
    spawn: Callable[[], WorkerProcess], standardized: bool
) -> None:
    """Shares of one, in batches, with a part for validation; statistics of batches are taken over."""
    measured = trained_once(spawn, net_job(STANDARDIZED if standardized else NET, standardized=standardized))
    training = measured.training
    assert training.outcome is TrainingOutcome.COMPLETED, training.reason
    assert training.accuracy == training.seen_accuracy == 1.0 and training.value is None
    assert [sum(row) for row in training.confusion] == [4, 4]
    assert {each.image for each in training.predictions} == set(measured.images)


def test_a_called_training_gets_its_part_of_a_gpu_that_can_be_used(
    spawn: Callable[[], WorkerProcess],
) -> None:
    """As a script's: one that cannot be used is not the student's fault."""
    device = 'assert device == torch.device("cpu") and not model.head.weight.is_cuda'
    job = replace(net_job(NET.replace(device, "model.to(device)")), device="cuda", gpu_memory_mb=4000)
    assert Arguments(job).node("{device}") == {"device": "cuda", "memory_mb": 4000}
    if torch.cuda.is_available():
        pytest.skip("there is one")
    training = trained_once(spawn, job).training
    assert training.outcome is TrainingOutcome.UNKNOWN and "UnusableGpuError" in training.reason


STAGES = """
    model.requires_grad_(False).head.requires_grad_(True)
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.2)
    for _ in range(2):
        one_pass(model, loader, optimizer)
    model.requires_grad_(True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for _ in range(epochs - 2):
        list(loader), [model.eval()(images) for images, _ in validation]  # passes in which nothing is trained
        one_pass(model, loader, optimizer)
        schedule.step()


def one_pass(model, loader, optimizer):
    model.train()
    for images, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), targets).backward()
        optimizer.step()
"""
IN_STAGES = NET[: NET.index("    seen = ")] + STAGES


def test_each_pass_in_which_a_module_is_trained_is_seen(spawn: Callable[[], WorkerProcess]) -> None:
    """With its stage, and what the model then is worth; a pass without a step of an optimizer is none."""
    told: list[EpochReport] = []
    training = trained_once(spawn, net_job(IN_STAGES, epochs=5), told.append).training
    assert training.outcome is TrainingOutcome.COMPLETED, training.reason
    assert [epoch.number for epoch in training.epochs] == [1, 2, 3, 4, 5] == [t.epoch.number for t in told]
    assert {report.planned for report in told} == {5}
    assert training.epochs[-1].test_accuracy == training.accuracy
    assert training.epochs[-1].test_loss < training.epochs[0].test_loss
    seen = [(s.epochs, s.optimizer, s.schedule, s.learned, s.first_rate) for s in training.stages]
    assert seen == [(2, "SGD", "", 10, 0.2), (3, "Adam", "StepLR", 18, 0.02)]
    assert training.stages[1].last_rate == 0.005


def test_the_stages_are_seen_in_a_trial_before(spawn: Callable[[], WorkerProcess]) -> None:
    """On made-up images: what a program does with the real ones could say something of them."""
    trial = rehearsed_call(spawn, net_job(IN_STAGES, epochs=5))
    assert trial is not None and trial.epochs == 5
    assert [(stage.epochs, stage.learned) for stage in trial.stages] == [(2, 10), (3, 18)]
    assert rehearsed_call(spawn, line_job(LINE)) is None
    broken = rehearsed_call(spawn, net_job(IN_STAGES.replace("schedule.step()", "1 / 0"), epochs=5))
    assert broken is not None and broken.epochs is None and len(broken.stages) == 2
    nothing = net_job(IN_STAGES.replace("def fit(", "def other("))
    assert rehearsed_call(spawn, nothing) is None


def test_the_trained_model_can_be_looked_at_again(spawn: Callable[[], WorkerProcess]) -> None:
    """With its weights, some hidden images as it is fed them, and what it answers for these."""
    measured = trained_once(spawn, net_job(STANDARDIZED, standardized=True))
    final = measured.trained
    assert final is not None and set(final.state) >= {"head.weight", "norm.running_mean"}
    assert final.inputs.shape == (2, 1, 2, 2) and final.inputs.dtype == np.float32
    assert abs(final.inputs.mean()) < 0.2 and 0.5 < final.inputs.std() < 1.5
    normalized = (final.inputs.reshape(2, 4) - final.state["norm.running_mean"]) / np.sqrt(
        final.state["norm.running_var"] + 1e-5
    )
    hidden = normalized * final.state["norm.weight"] + final.state["norm.bias"]
    scores = hidden @ final.state["head.weight"].T + final.state["head.bias"]
    assert np.allclose(scores, final.scores, atol=1e-4)
    assert trained_once(spawn, line_job(LINE)).trained is None


@pytest.mark.parametrize(
    ("more", "steps", "said"),
    [
        ("", 1.0, ()),
        (
            "    for _ in range(3):\n        one_pass(model, loader, optimizer)\n",
            1.6,
            ("`fit` trained in 8 passes over images; it was asked for 5 epochs.",),
        ),
        # copies of batches are no pass over the loader, and steps are counted all the same
        (
            "    kept = [*loader]\n    for _ in range(10):\n        one_pass(model, kept, optimizer)\n",
            3.0,
            (),
        ),
    ],
)
def test_more_training_than_was_asked_for_is_seen(
    spawn: Callable[[], WorkerProcess], more: str, steps: float, said: tuple[str, ...]
) -> None:
    source = IN_STAGES.replace("\n\ndef one_pass", f"{more}\n\ndef one_pass")
    training = trained_once(spawn, net_job(source, epochs=5)).training
    assert training.outcome is TrainingOutcome.COMPLETED, training.reason
    assert (training.steps_per_batch, training.objections) == (steps, said)


OWN_LOADER = "    loader = torch.utils.data.DataLoader(loader.dataset, 4, shuffle=True)\n"


def test_a_loader_of_ones_own_is_trained_by_and_has_no_curve(spawn: Callable[[], WorkerProcess]) -> None:
    """What is not seen is not told; what counts is the model in the end."""
    source = IN_STAGES.replace("    model.requires_grad_(F", f"{OWN_LOADER}    model.requires_grad_(F", 1)
    training = trained_once(spawn, net_job(source, epochs=5)).training
    assert training.outcome is TrainingOutcome.COMPLETED and training.accuracy is not None
    assert training.epochs == training.stages == () and training.planned_epochs is None
    assert training.steps_per_batch == 1.8, "its batches are half as large"


def test_near_what_is_asked_for_three_trainings_are_made(spawn: Callable[[], WorkerProcess]) -> None:
    """Within four percent of it."""
    few = replace(LINE_CALL, given={**LINE_CALL.given, "epochs": 5})
    first = trained_once(spawn, line_job(LINE, call=few)).training
    assert first.value is not None
    asked, scale = 1.03 * first.value, Scale(lower_is_better=True, is_share=False)

    def job(run: int) -> CalledJob:
        return line_job(LINE, call=few, seed=run)

    near = repeated_training(spawn, job, asked, scale=scale).training
    assert len(near.runs) == 3 and near.value == pytest.approx(sum(near.runs) / 3)
    far = repeated_training(spawn, job, 1.1 * first.value, scale=scale).training
    assert not far.runs


def test_the_interval_of_a_measure() -> None:
    """The bootstrap's reach is that of the mean's standard error; seeds add theirs."""
    random = np.random.default_rng(0)
    outputs, targets = random.normal(size=400), np.zeros(400)
    score = score_of(lambda outputs, targets: outputs.mean(), "mean")
    low, high = value_interval(score, outputs, targets)
    assert high - low == pytest.approx(2 * 1.96 * outputs.std() / 20, rel=0.2)
    assert value_interval(score, outputs, targets) == (low, high)
    wide = mean_interval((1.0, 2.0, 3.0), (0.9, 1.1))
    assert wide[0] < 0 and wide[1] > 4
    assert mean_interval((1.0,), (0.9, 1.1)) == (0.9, 1.1)
