"""Training in the worker: the student's own loop, seeded, with what each epoch reports; and checkpoints."""

import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from grader.domain.analyzed_program import line_at, place_of
from grader.domain.errors import EngineError
from grader.protocol.link import StudentRaised
from grader.protocol.replies import Built, Misfit, TrainingPlan, WeightValues
from grader.protocol.requests import Build, Train, Weights
from grader.protocol.trees import ModelMade, OtherValues

Tiny = Callable[..., Any]


def all_logits(epochs: list[Any]) -> Any:
    """The logits of every epoch, (epochs, images, classes)."""
    return np.stack([epoch.arrays["logits"] for epoch in epochs])


def images(count: int, *shape: int) -> Any:
    """Gray or RGB noise."""
    return np.random.default_rng(5).integers(0, 255, (count, *shape)).astype(np.uint8)


def train_request(train: Any, test: Any, **changes: Any) -> dict[str, Any]:
    """The arrays of a training on other images, as keywords for `trained`."""
    labels = np.arange(len(train), dtype=np.int64) % 3
    return {"arrays": {"train_images": train, "train_labels": labels}, "test_images": test, **changes}


# --- training ---------------------------------------------------------------------------------------------


def test_training_learns_and_tells_of_each_epoch(tiny: Tiny) -> None:
    """Numbers, losses and logits, in float32 for every test image."""
    plan, epochs = tiny(epochs="15").trained()
    assert plan == TrainingPlan(15, 4, "SGD", "", "cpu")
    assert [epoch.number for epoch in epochs] == list(range(1, 16))
    assert {epoch.learning_rate for epoch in epochs} == {0.5}
    assert all(epoch.arrays["logits"].dtype == np.float32 for epoch in epochs)
    # brightness is the class, so a linear model must find it
    assert (epochs[-1].arrays["logits"].argmax(axis=1) == np.repeat(np.arange(3), 3)).mean() > 0.6
    assert epochs[-1].arrays["reported"].mean() < epochs[0].arrays["reported"].mean()


def test_seed_decides_everything(tiny: Tiny) -> None:
    """Initialization, shuffling and dropout: equal seeds give equal numbers, also in another worker."""
    drop = "ViT = lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.Dropout(), nn.Linear(8, 3))"
    worker = tiny(drop)
    one, other, again = (all_logits(worker.trained(seed=seed)[1]) for seed in (3, 4, 3))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    np.testing.assert_array_equal(one, all_logits(tiny(drop).trained(seed=3)[1]))


def test_loader_shuffles_every_epoch_and_loses_no_image(tiny: Tiny) -> None:
    """As a DataLoader with shuffle does, by the seed alone."""
    text = """
        def train_epoch(model, optimizer, data_loader, loss_history):
            for images, labels in data_loader:
                loss_history.extend(labels.tolist())
                optimizer.step()
        """
    _, (first, second) = tiny(text).trained()
    orders = [epoch.arrays["reported"].tolist() for epoch in (first, second)]
    assert [sorted(order) for order in orders] == [[0] * 4 + [1] * 4 + [2] * 4] * 2
    assert orders[0] != orders[1]
    assert sorted(orders[0]) != orders[0]


@pytest.mark.parametrize(
    ("body", "losses"),
    [
        ("loss_history += [0.5, torch.tensor(1.5), np.float64(2.5)]; return 9.0", [0.5, 1.5, 2.5]),
        ("return 0.25", [0.25]),
        ("return torch.tensor([0.75], requires_grad=True)", [0.75]),
        ("print('batch 1 Loss: 0.125'); print('batch 2, loss = 2.5 (1.0 s)'); return None", [0.125, 2.5]),
        ("return (0.5, 0.9)", []),
        ("loss_history.append('bad'); return None", []),
        ("loss_history.append(float('nan')); loss_history.append(1.0)", [1.0]),
        ("loss_history += [True, 1.0]", [1.0]),
        ("pass", []),
    ],
)
def test_losses_are_taken_from_where_the_student_puts_them(
    tiny: Tiny, body: str, losses: list[float]
) -> None:
    """The history, else what is returned, else what is printed; of this epoch only."""
    beginning = "import numpy as np\ndef train_epoch(model, optimizer, data_loader, loss_history):\n"
    text = f"{beginning}    for _ in data_loader: optimizer.step()\n    {body}\n"
    _, epochs = tiny(text).trained()
    assert [epoch.arrays["reported"].tolist() for epoch in epochs] == [losses, losses]


SCHEDULED = """
model = {model}
optimizer = {optimizer}
schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.1)
for epoch in _epochs(range({epochs})):
    train_epoch(model, optimizer, train_loader, [])
    schedule.step()
"""


def test_a_schedule_is_the_students(tiny: Tiny) -> None:
    plan, epochs = tiny(script=SCHEDULED).trained()
    assert plan.scheduler == "ExponentialLR"
    assert [epoch.learning_rate for epoch in epochs] == pytest.approx([0.5, 0.05])


@pytest.mark.parametrize("line", ['device = "cuda"', 'DEVICE = torch.device("cuda:0")', 'gpu = "mps"'])
def test_a_students_gpu_is_the_device_of_the_run(tiny: Tiny, line: str) -> None:
    """It costs nobody a point that this machine has none."""
    name = line.split()[0]
    text = f"""
        import torch
        {line}
        def train_epoch(model, optimizer, data_loader, loss_history):
            model.cuda()
            for images, labels in data_loader:
                images, labels = images.to({name}), labels.to("cuda", non_blocking=True).cuda()
                loss_history.append(float(model(images).sum()))
                optimizer.step()
        """
    _, epochs = tiny(text).trained()
    assert len(epochs) == 2


def test_names_of_data_are_there_in_functions(tiny: Tiny) -> None:
    """As globals of the student's module."""
    text = """
        def train_epoch(net, optimizer, data_loader, loss_history):
            assert net is model and epoch in (0, 1) and names == ["low", "middle", "high"]
            for _ in data_loader:
                optimizer.step()
            loss_history.append(float(len(held_out.dataset.targets)) + epoch)
        """
    _, epochs = tiny(text, roles={"names": "class_names", "held_out": "test_loader"}).trained()
    # the loader for a look holds 3 of the 12 training images, never the 9 hidden ones
    assert [epoch.arrays["reported"].tolist() for epoch in epochs] == [[3.0], [4.0]]


def test_outputs_that_are_not_finite_arrive(tiny: Tiny) -> None:
    """The judge tells divergence; the worker only says what came."""
    _, epochs = tiny(optimizer="optim.SGD(model.parameters(), lr=1e38)", epochs="3").trained()
    assert not np.isfinite(all_logits(epochs)[-1]).all()


def test_learning_rate_that_is_no_number_is_told(tiny: Tiny) -> None:
    """A frame cannot carry it, and the worker must not die of it."""
    script = SCHEDULED.replace(
        "ExponentialLR(optimizer, 0.1)", "LambdaLR(optimizer, lambda n: 1.0 if n == 0 else nan)"
    )
    with pytest.raises(StudentRaised, match="the learning rate became nan"):
        tiny("nan = float('nan')", script=script).trained()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("loss.backward()", "loss.backwards()", "backwards"),
        ("self.head(img.flatten(1))", "self.head(img)", "shapes cannot be multiplied"),
    ],
)
def test_exception_has_the_students_line(tiny: Tiny, old: str, new: str, words: str) -> None:
    """In the loop and in the model."""
    worker = tiny(change=(old, new))
    with pytest.raises(StudentRaised, match=words) as caught:
        worker.trained()
    place = place_of(caught.value.problem.where)
    assert place is not None and place.file == "homework.py"
    assert new in (line_at(worker.program.source, place) or "")


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("self.head(img.flatten(1))[:, :2]", r"not \(4|9, 2\)"),
        ("self.head(img.flatten(1)).argmax(1)", "must return a tensor of shape"),
        ("[self.head(img.flatten(1))]", "not list"),
    ],
)
def test_model_that_returns_something_else_is_told_the_shape(tiny: Tiny, output: str, told: str) -> None:
    """Before anything is scored."""
    text = f"""
        class ViT(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(64, 3)

            def forward(self, img):
                return {output}

        def train_epoch(model, optimizer, data_loader, loss_history):
            for _ in data_loader:
                optimizer.step()
        """
    with pytest.raises(StudentRaised) as caught:
        tiny(text).trained()
    assert re.search(told, caught.value.problem.message.text) and caught.value.problem.seen == "other_outputs"
    assert "(batch, 3)" in caught.value.problem.message.text


@pytest.mark.parametrize("left", ["eval", "train"])
def test_evaluation_is_in_evaluation_mode_and_training_in_training_mode(tiny: Tiny, left: str) -> None:
    """Whatever the student's loop left behind."""
    text = f"""
        class ViT(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(64, 3)

            def forward(self, img):
                return torch.full((len(img), 3), float(self.training) + 2 * torch.is_grad_enabled())

        def train_epoch(model, optimizer, data_loader, loss_history):
            for _ in data_loader:
                optimizer.step()
            model.train()
            loss_history.append(model(torch.zeros(1, 1, 8, 8))[0, 0].item())
            model.{left}()
        """
    _, epochs = tiny(text).trained()
    assert all_logits(epochs).max() == 0
    assert [epoch.arrays["reported"].tolist() for epoch in epochs] == [[3.0], [3.0]]


def test_three_channels_and_other_sizes_go_through_the_students_transform(tiny: Tiny) -> None:
    """RGB images of 64 x 64, kept in color by a transform that keeps it."""
    worker = tiny(
        """
        color = transforms.Compose([transforms.ToTensor()])
        ViT = lambda: nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 3))
        """,
        train_transform="color",
        test_transform="color",
        optimizer="optim.SGD(model.parameters(), lr=0.001)",
    )
    _, epochs = worker.trained(**train_request(images(6, 64, 64, 3), images(5, 64, 64, 3)))
    assert all_logits(epochs).shape == (2, 5, 3)


def test_gpu_that_is_not_there_is_ours(tiny: Tiny) -> None:
    """It never costs a point."""
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(EngineError, match=r"UnusableGpuError.*`grader doctor` says why.*--device cpu"):
        tiny().trained(device="cuda")


def test_request_before_loading_is_ours(spawn: Callable[[], Any]) -> None:
    """A worker that has loaded nothing says so, and stays."""
    from grader.protocol.frames import FrameLimit
    from grader.protocol.link import Link

    link = Link(spawn())
    try:
        for request in (Weights(0), Train(("a",))):
            with pytest.raises(EngineError, match="The worker failed"):
                link.ask(request, WeightValues, seconds=20, limit=FrameLimit())
    finally:
        link.close()


# --- images -----------------------------------------------------------------------------------------------


def test_random_transform_is_applied_afresh_and_a_fixed_one_once(tiny: Tiny) -> None:
    """A student's augmentation is lost if its first result is kept."""
    text = """
        counts = []

        def counted(image):
            counts.append(1)
            return transform(image)

        def train_epoch(model, optimizer, data_loader, loss_history):
            for images, labels in data_loader:
                loss_history.append(float(images.mean()))
                optimizer.step()
            loss_history.append(float(len(counts)))
        """
    _, epochs = tiny(text, train_transform="counted").trained()
    # 12 training images, none ahead of time but one, on which it is tried
    assert [epoch.arrays["reported"][-1] for epoch in epochs] == [13.0, 25.0]
    flips = "transforms.Compose([transform, transforms.RandomErasing(p=1.0)])"
    _, (first, second) = tiny(text, train_transform=flips).trained()
    assert sorted(first.arrays["reported"][:-1]) != sorted(second.arrays["reported"][:-1])


# --- checkpoints ------------------------------------------------------------------------------------------


def saved(value: Any) -> bytes:
    """The bytes of a checkpoint."""
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def test_checkpoint_that_fits_answers_for_the_images(tiny: Tiny) -> None:
    """With its own weights, in the submitted model, through the test transform."""
    worker = tiny()
    weights = {"head.weight": torch.zeros(3, 64), "head.bias": torch.tensor([1.0, 2.0, 3.0])}
    found = worker.checkpoint(saved(weights))
    assert (found.status, found.fault, found.misfit) == ("fits", "", None)
    np.testing.assert_array_equal(found.arrays["logits"], np.tile([1.0, 2.0, 3.0], (9, 1)).astype(np.float32))


@pytest.mark.parametrize(
    ("data", "status", "why"),
    [
        (saved({"other": torch.zeros(2)}), "mismatch", Misfit(2, 1, 2, "head.weight")),
        (
            saved({"head.weight": torch.zeros(3, 64), "head.bias": torch.zeros(4)}),
            "mismatch",
            Misfit(0, 0, 2, "head.bias", ((4,), (3,))),
        ),
        (np.random.default_rng(1).bytes(3000), "refused", "unreadable"),
        (b"\x80\x02" + b"x" * 100, "refused", "unreadable"),
        (saved(nn.Linear(2, 2)), "whole_model", ""),
        (
            saved({name: torch.zeros(2, device="meta") for name in ("head.weight", "head.bias")}),
            "refused",
            "odd_entry",
        ),
    ],
    ids=["names", "shapes", "noise", "pickle", "whole", "meta"],
)
def test_checkpoint_that_does_not_fit_is_told_why(tiny: Tiny, data: bytes, status: str, why: Any) -> None:
    """And the worker goes on."""
    worker = tiny()
    found = worker.checkpoint(data)
    assert (found.status, dict(found.arrays)) == (status, {})
    assert (found.misfit or found.fault) == why
    assert worker.ask(Build("$model"), Built).parameters


def test_checkpoint_over_its_bound_is_refused(tiny: Tiny) -> None:
    """The bound counts the tensors, not the file."""
    weights = {"head.weight": torch.zeros(3, 64), "head.bias": torch.zeros(3)}
    assert tiny().checkpoint(saved(weights), max_bytes=500).status == "refused"


def test_transform_that_fails_with_a_checkpoint_is_the_students(tiny: Tiny) -> None:
    """As it is in training."""
    weights = {"head.weight": torch.zeros(3, 64), "head.bias": torch.zeros(3)}
    broken = "transforms.Compose([transforms.Normalize((0.5,) * 5, (0.5,) * 5)])"
    worker = tiny(train_transform=broken, test_transform=broken)
    with pytest.raises(StudentRaised, match="TypeError"):
        worker.checkpoint(saved(weights))
    with pytest.raises(StudentRaised, match="TypeError"):
        worker.trained()


# --- values in the place of the script's own ---------------------------------------------------------------


WIDE = """
    class ViT(nn.Module):
        def __init__(self, num_classes=3, width=2, bias=True):
            super().__init__()
            self.first = nn.Linear(64, width, bias=bias)
            self.head = nn.Linear(width, num_classes)

        def forward(self, img):
            return self.head(self.first(img.flatten(1)))

    def fit(model, loader, epochs=1):
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        for epoch in _epochs(range(epochs)):
            train_epoch(model, optimizer, loader, [])
    """


def test_a_script_trains_with_other_values(tiny: Tiny) -> None:
    """Its model is made, and its function called, with those that are given; what they lack stays theirs."""
    worker = tiny(WIDE, script="model = {model}\nfit(model, train_loader)\n", model="ViT(3, 5, bias=False)")
    other = OtherValues({"width": 7, "heads": 4}, "fit", {"epochs": 3, "rate": 0.1})
    _, epochs = worker.trained(other=other)
    assert len(epochs) == 3
    assert epochs[0].made == ModelMade((3, 7, False))  # where it was measured, too
    _, epochs = worker.trained()
    assert len(epochs) == 1
    assert epochs[0].made is None  # the source tells it
