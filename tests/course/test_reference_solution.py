"""The reference solution of vit_defects, apart from the checks: its size, its recipe, its functions."""

import ast
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SOLUTION = Path(__file__).resolve().parents[2] / "reference" / "vit_defects" / "solution.py"
SETTINGS = {"BATCH_SIZE", "N_EPOCHS", "WARMUP_EPOCHS", "device", "model", "optimizer", "scheduler"}


def solution_names(**changed: Any) -> dict[str, Any]:
    """What the solution defines, without its slow imports and without the statements that need the data."""
    names: dict[str, Any] = {"__name__": "solution"}
    for node in ast.parse(SOLUTION.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            wanted = str(module).split(".")[0] in {"torch", "einops", "math"}
        elif isinstance(node, ast.Assign):
            wanted = ast.unparse(node.targets[0]) in SETTINGS - set(changed)
        else:
            wanted = isinstance(node, ast.ClassDef | ast.FunctionDef)
        if wanted:
            exec(compile(ast.Module([node], []), str(SOLUTION), "exec"), names)  # noqa: S102 - our own file
        names |= changed
    return names


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    return solution_names(device=torch.device("cpu"))


def test_default_configuration_has_499462_parameters(names: dict[str, Any]) -> None:
    assert sum(p.numel() for p in names["model"].parameters()) == 499_462
    assert names["model"](torch.randn(3, 1, 28, 28)).shape == (3, 6)


def test_recipe_is_thirty_epochs_of_adamw_with_warm_up_and_cosine(names: dict[str, Any]) -> None:
    assert isinstance(names["optimizer"], torch.optim.AdamW)
    assert (names["N_EPOCHS"], names["BATCH_SIZE"]) == (30, 64)
    rates = [1e-3 * names["learning_rate_factor"](epoch) for epoch in range(names["N_EPOCHS"])]
    assert rates.index(max(rates)) == names["WARMUP_EPOCHS"] and max(rates) == pytest.approx(1e-3)
    assert rates[0] == pytest.approx(2.5e-4) and 0 < rates[-1] < 1e-5


def test_schedule_stands_any_number_of_epochs() -> None:
    for epochs in (1, 3, 4):
        factor = solution_names(N_EPOCHS=epochs, device=torch.device("cpu"))["learning_rate_factor"]
        assert all(math.isfinite(factor(epoch)) for epoch in range(epochs + 1))


@pytest.mark.parametrize("shape", [(5, 1, 28, 28), (2, 3, 4, 6), (1, 1, 1, 1)])
def test_augment_keeps_the_shape_and_varies_the_images(names: dict[str, Any], shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    images = torch.randn(shape)
    kept = images.clone()
    varied = names["augment"](images)
    assert varied.shape == shape and torch.equal(images, kept)
    assert not torch.equal(varied, images)


def test_train_epoch_takes_a_step_per_batch_and_notes_every_hundredth_loss(
    names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 6)).eval()
    loader = DataLoader(TensorDataset(torch.randn(202, 1, 4, 4), torch.randint(0, 6, (202,))), batch_size=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    history: list[float] = []
    names["train_epoch"](model, optimizer, loader, history)
    assert model.training
    assert len(history) == 2 and all(isinstance(loss, float) for loss in history)
    assert {int(state["step"]) for state in optimizer.state.values()} == {101}
    assert capsys.readouterr().out.count("\n") == 2


def test_evaluate_averages_over_images_although_the_last_batch_is_smaller(
    names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(0.5), torch.nn.Linear(16, 6)).train()
    images, labels = torch.randn(9, 1, 4, 4), torch.randint(0, 6, (9,))
    history: list[float] = []
    names["evaluate"](model, DataLoader(TensorDataset(images, labels), batch_size=4), history)
    assert not model.training
    scores = model(images)
    assert history == [pytest.approx(F.cross_entropy(scores, labels).item(), rel=1e-5)]
    assert f"{(scores.argmax(1) == labels).sum()}/9" in capsys.readouterr().out
