"""The learning-rate schedule of an optimizer, found among all objects of the process.

It goes by use: a schedule whose `optimizer` is this one; of nested ones the outermost. A schedule of the
student's own class, not derived from PyTorch's, is not seen. The name is shown to people and decides no
points.

Tests: tests/training/test_replay.py, tests/worker/test_worker_training.py
"""

import gc

import torch
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau


def schedule_of(optimizer: torch.optim.Optimizer) -> str:
    """The class of the schedule of an optimizer, of several the one that holds the others; empty: none."""
    found = [
        one
        for one in gc.get_objects()
        if isinstance(one, LRScheduler | ReduceLROnPlateau) and getattr(one, "optimizer", None) is optimizer
    ]
    held = {id(inner) for one in found for inner in getattr(one, "_schedulers", [])}
    outer = [one for one in found if id(one) not in held]
    return type(outer[-1]).__name__ if outer else ""
