"""Names of weights as the model itself has them, without the prefixes of wrappers.

It goes by the prefixes of `torch.compile` and of `DataParallel` and its kin, if every name has one.
`measuring` decides whether the weights fit.

Tests: tests/worker/test_checkpoint.py
"""

from collections.abc import Mapping
from typing import TypeVar

Value = TypeVar("Value")

# torch.compile; nn.DataParallel, DistributedDataParallel and AveragedModel
PREFIXES = ("_orig_mod.", "module.")
OWN = frozenset({"n_averaged"})  # AveragedModel's


def unwrapped_names(weights: Mapping[str, Value]) -> dict[str, Value]:
    """The weights without what wrappers put before every name, and without what is the wrapper's own."""
    found = dict(weights)
    while True:
        names = found.keys() - OWN
        prefix = next((each for each in PREFIXES if names and all(n.startswith(each) for n in names)), None)
        if prefix is None:
            return found
        found = {name.removeprefix(prefix): found[name] for name in found if name in names}
