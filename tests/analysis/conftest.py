"""What the analysis tests share: the assignment's components and rules, sources, and a plain executor."""

import contextlib
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import nbformat
import pytest

from grader.analysis import program
from grader.domain.analyzed_program import DATA_NAME, EPOCHS_NAME, Program
from grader.domain.assignment import Component, ProgramRules
from grader.domain.assignment_rules import ForbiddenRule

COMPONENTS = (
    Component("Attention", "class", "dim, heads=4, dim_head=64, dropout=0."),
    Component("ViT", "class", "*, image_size, patch_size, num_classes, dim, depth, heads, mlp_dim"),
    Component("train_epoch", "function", "model, optimizer, data_loader, loss_history"),
    Component("evaluate", "function", "model, data_loader, loss_history"),
)
PATTERNS = (
    "torchvision.models.vit*",
    "torchvision.models.vision_transformer",
    "timm",
    "transformers",
    "torch.nn.Transformer*",
    "torch.nn.MultiheadAttention",
    "torch.nn.functional.scaled_dot_product_attention",
    "grader",
)
RULES = tuple(ForbiddenRule(pattern, "forbid", "model", "Not allowed.") for pattern in PATTERNS)


@pytest.fixture(scope="session")
def analyzed() -> Callable[..., Program]:
    """The program of a source: text (dedented) or bytes."""

    def of(source: str | bytes, name: str = "homework.py") -> Program:
        data = textwrap.dedent(source).encode() if isinstance(source, str) else source
        return program(name, data, ProgramRules(COMPONENTS, RULES))

    return of


@pytest.fixture(scope="session")
def notebook() -> Callable[..., bytes]:
    """A notebook of format 4 with the given cells; those that begin with `# ` and a capital are text."""

    def of(*cells: str) -> bytes:
        made = nbformat.v4.new_notebook()
        for cell in cells:
            text = textwrap.dedent(cell).strip("\n")
            new = nbformat.v4.new_markdown_cell if text.startswith("## ") else nbformat.v4.new_code_cell
            made.cells.append(new(text))
        return nbformat.writes(made).encode()

    return of


@pytest.fixture(scope="session")
def loaded() -> Callable[[Program], dict[str, Any]]:
    """The names after the program's statements were executed, with the line numbers of the origin."""

    def of(made: Program) -> dict[str, Any]:
        namespace: dict[str, Any] = {"__name__": "homework"}
        for statement in made.statements:
            exec(compile(statement.source, str(statement.place), "exec"), namespace)  # noqa: S102
        return namespace

    return of


@pytest.fixture(scope="session")
def cooked(loaded: Callable[[Program], dict[str, Any]]) -> Callable[[Program], dict[str, Any]]:
    """What the recipe and the script make until the first epoch begins: model, optimizer, schedule, ..."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    class Data(dict[str, Any]):
        def of(self, role: str, *told: object) -> Any:
            return self[role]

    class Begun(Exception):
        """The first loop over epochs begins."""

    def of(made: Program) -> dict[str, Any]:
        recipe, names = made.recipe, loaded(made)
        for near in made.near_names:
            names[near.expected] = names[near.found]
        data = TensorDataset(torch.zeros(12, 1, 28, 28), torch.zeros(12))
        data.classes = list("abcdef")  # type: ignore[attr-defined]
        loader = DataLoader(data, batch_size=2)
        by_role = {
            "train_loader": loader,
            "test_loader": loader,
            "class_names": list("abcdef"),
            "num_classes": 6,
        }
        by_role |= {"train_dataset": data, "test_dataset": data}

        def run(statements: Any) -> None:
            for statement in statements:
                exec(compile(statement.source, str(statement.place), "exec"), names)  # noqa: S102

        def value(expression: str | None) -> Any:
            return None if expression is None else eval(expression, names)  # noqa: S307

        run(recipe.statements)
        found = {
            key: value(getattr(recipe, key)) for key in ("train_transform", "test_transform", "batch_size")
        }
        names |= {name: by_role[role] for name, role in (made.roles or {}).items() if role in by_role}
        run(recipe.after_data)
        found["model"] = value(recipe.model)

        def begun(iterated: Any) -> Any:
            frame = sys._getframe(1)
            there = {**frame.f_globals, **frame.f_locals}
            kinds = {"optimizer": torch.optim.Optimizer, "scheduler": torch.optim.lr_scheduler.LRScheduler}
            for key, kind in kinds.items():
                found[key] = next((one for one in reversed(there.values()) if isinstance(one, kind)), None)
            found["epochs"] = len(iterated)
            raise Begun

        names |= {name: by_role[role] for name, role in made.script.data.items() if role in by_role}
        names |= {DATA_NAME: Data(by_role), EPOCHS_NAME: begun}
        with contextlib.suppress(Begun):
            run(made.script.statements)
        return found

    return of
