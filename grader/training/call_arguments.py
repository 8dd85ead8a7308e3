"""What the functions that train and answer are called with: nodes of the assignment's values and data."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from grader.protocol.trees import Node, Packer
from grader.training.training_job import CalledJob

VALIDATION_SHARE = 0.1  # of the training data, where the function is given data for validation
MOST_BYTES = 3_000_000_000  # of a data set


class Arguments:
    """The arguments of the calls of one training.

    Attributes:
        arrays: Those of all nodes that were made so far.
        training_rows: Of the training data, those that it is trained on, int64 (n,).
    """

    def __init__(self, job: CalledJob, model: int | None = None) -> None:
        """Nothing is packed yet.

        Args:
            model: The model's handle, where there is one.
        """
        self._job, self._model = job, model
        self._packer = Packer(_nothing_else, most_bytes=MOST_BYTES)
        rows = np.arange(len(job.examples.train_inputs))
        training, validation = rows, rows[:0]
        if "'{validation_" in str(job.call.given):
            shuffled = np.random.default_rng(job.seed).permutation(rows)
            kept = max(round(VALIDATION_SHARE * len(rows)), 1)
            training, validation = np.sort(shuffled[kept:]), np.sort(shuffled[:kept])
        self.training_rows = training
        self._rows = {
            **dict.fromkeys(("{inputs}", "{targets}", "{batches}"), training),
            **dict.fromkeys(
                ("{validation_inputs}", "{validation_targets}", "{validation_batches}"), validation
            ),
        }

    @property
    def arrays(self) -> dict[str, Any]:
        """The arrays of all that was packed."""
        return self._packer.arrays

    def nodes(self, given: Mapping[str, Any]) -> dict[str, Node]:
        """The nodes of some arguments, by name; each placeholder has become what it stands for."""
        return {name: self.node(value) for name, value in given.items()}

    def node(self, value: Any) -> Node:
        """The node of a value of the assignment's."""
        match value:
            case "{model}":
                return {"thing": self._model}
            case "{seed}":
                return self._job.seed % 2**31
            case "{device}":
                return {"device": self._job.device}
            case "{inputs}" | "{validation_inputs}":
                return self._inputs(self._rows[value])
            case "{targets}" | "{validation_targets}":
                return self._targets(self._rows[value], tensors=self._job.call.tensors)
            case "{batches}" | "{validation_batches}":
                return self._batches(self._rows[value], shuffled=value == "{batches}")
            case Mapping():
                return {"dict": [[name, self.node(each)] for name, each in value.items()]}
            case list():
                return {"list": [self.node(each) for each in value]}
        return self._packer.node(value)

    def numbers(self, weights: Any) -> Node:
        """The node of a trained model's numbers, a tree of arrays."""
        return self._packer.node(weights)

    def asked(self, inputs: Any) -> Node:
        """The node of inputs that are asked about, (n, ...)."""
        scaled = self._job.scaled
        node = self._packer.array_node(inputs, tensor=self._job.call.tensors or scaled)
        if not scaled:
            return node
        return {"scaled": node, **self._channels} if self._job.call.standardized else {"scaled": node}

    @cached_property
    def _channels(self) -> dict[str, list[float]]:
        """Mean and standard deviation of each channel of the training images, as shares of one."""
        images = self._job.examples.train_inputs.astype(np.float32) / 255
        return {
            "mean": images.mean(axis=(0, 2, 3)).tolist(),
            "deviation": np.maximum(images.std(axis=(0, 2, 3)), 1e-3).tolist(),
        }

    def _inputs(self, rows: Any) -> Node:
        return self.asked(self._job.examples.train_inputs[rows])

    def _targets(self, rows: Any, *, tensors: bool) -> Node:
        targets = self._job.examples.train_targets
        return None if targets is None else self._packer.array_node(targets[rows], tensor=tensors)

    def _batches(self, rows: Any, *, shuffled: bool) -> Node:
        count, size = len(rows), self._job.call.batch_size
        described = {
            "inputs": self._inputs(rows),
            "targets": self._targets(rows, tensors=True),
            "sizes": self._packer.node([min(size, count - start) for start in range(0, count, size)]),
            "classes": self._packer.node(list(self._job.classes)),
            "shuffled": shuffled,
        }
        return {"batches": {"dict": [[name, node] for name, node in described.items()]}}


def _nothing_else(value: Any) -> Node:
    raise TypeError(f"a {type(value).__name__} is not a value of assignment.toml")
