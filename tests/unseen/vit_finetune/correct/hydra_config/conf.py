"""The configuration: nested dataclasses, overrides by path, and objects made from `_target_`.

What Hydra and OmegaConf do, as far as this project needs it. Nothing in here is about images.
"""

import dataclasses
import importlib
from dataclasses import dataclass, field
from typing import Any


# --- schema -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """Something to be made: `_target_` is the import path, `kwargs` its arguments."""

    _target_: str
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Mixing:
    alpha: float = 0.3
    p_mixup: float = 0.25
    p_cutmix: float = 0.25
    p_flip: float = 0.5


@dataclass(frozen=True)
class Stage:
    """One stage of training.

    Attributes:
        learn: Which parts learn, by patterns on roles: 'head', 'norm', 'blocks.0' ... and 'stem'; a role is
            matched as the shell matches file names.
        lr: The rate at the beginning.
        patience: None: no early stopping.
    """

    learn: tuple[str, ...]
    lr: float
    optimizer: Node
    schedule: Node
    mixing: Mixing | None = None
    patience: int | None = None


@dataclass(frozen=True)
class Config:
    seed: int = 20
    criterion: Node = Node("torch.nn.CrossEntropyLoss", {"label_smoothing": 0.05})
    head: Stage = Stage(
        learn=("head",),
        lr=3e-3,
        optimizer=Node("torch.optim.AdamW", {"weight_decay": 0.0}),
        schedule=Node("torch.optim.lr_scheduler.ConstantLR", {"factor": 1.0}),
    )
    full: Stage = Stage(
        learn=("*",),
        lr=3e-4,
        optimizer=Node("torch.optim.AdamW", {"weight_decay": 0.05}),
        schedule=Node("torch.optim.lr_scheduler.CosineAnnealingLR", {"T_max": "${epochs}", "eta_min": 0.0}),
        mixing=Mixing(),
        patience=5,
    )


# --- tools ------------------------------------------------------------------------------------------------


def override(config, **values):
    """A copy with other values: `override(config, full__lr=1e-4)`; two underscores stand for the dot."""
    for path, value in values.items():
        config = _set(config, path.split("__"), value)
    return config


def _set(node, path, value):
    name, *rest = path
    new = _set(getattr(node, name), rest, value) if rest else value
    return dataclasses.replace(node, **{name: new})


def instantiate(node: Node, *args, variables: dict[str, Any] | None = None, **kwargs):
    """Imports the target and calls it; '${name}' is replaced by a variable."""
    module, _, name = node._target_.rpartition(".")
    made = getattr(importlib.import_module(module), name)
    return made(*args, **_resolved(node.kwargs, variables or {}), **kwargs)


def _resolved(kwargs, variables):
    def value_of(value):
        if isinstance(value, str) and value.startswith("${") and value.endswith("}"):
            return variables[value[2:-1]]
        return value

    return {name: value_of(value) for name, value in kwargs.items()}
