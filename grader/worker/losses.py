"""Reported losses of the graded training function, wherever it puts them.

A heuristic: numbers appended to a list argument, else returned, else printed after `loss`. Other numbers in
these places are taken for losses too; where there are none the result is empty. Only curves that people see
depend on them: points come from what `grader.training` measures.

Tests: tests/worker/test_worker_training.py
"""

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from grader.worker.program import quiet


def reported_losses(appended: list[Any], returned: Any, printed: str) -> Any:
    """The losses that train_epoch reported, float64: from the history, else returned, else printed."""
    values = [_number(value) for value in appended[:10_000]] or [_number(returned)]
    found = [value for value in values if value is not None]
    if not found:
        match = re.findall(r"loss\D{0,12}(\d+\.\d+)", printed[-20_000:], flags=re.IGNORECASE)
        found = [float(value) for value in match]
    return np.array(found, dtype=np.float64)


def _number(value: Any) -> float | None:
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return float(value) if math.isfinite(float(value)) else None
    return None


class LossWatch:
    """A train_epoch that tells what it reported.

    Attributes:
        running: It is at work.
        returned: Called when it has returned.
    """

    def __init__(self, function: Callable[..., Any] | None) -> None:
        self.running = False
        self.returned: Callable[[], None] = lambda: None
        self._function = function
        self._reported: list[float] = []

    def watched(self) -> Callable[..., Any]:
        """The function; it is called, and answers, as before."""

        real = self._function

        @functools.wraps(real or reported_losses)
        def watched_function(*args: Any, **kwargs: Any) -> Any:
            lists = [value for value in (*args, *kwargs.values()) if isinstance(value, list)]
            before = [len(each) for each in lists]
            self.running = True
            with quiet() as printed:
                returned = real(*args, **kwargs) if real is not None else None
            self.running = False
            appended = [v for each, length in zip(lists, before, strict=True) for v in each[length:]]
            self._reported += reported_losses(appended, returned, printed.getvalue()).tolist()
            self.returned()
            return returned

        return watched_function

    def taken(self) -> Any:
        """The losses since they were taken last, float64 (numbers,)."""
        found, self._reported = np.array(self._reported, dtype=np.float64), []
        return found
