"""Members of the student's own object, for a fake or stand-in that takes its place.

Parts of a homework may know more of each other than their contracts say: `self.patches.count`, `model.pool`.
The own object is made when a member is asked for first; private names are never handed on. The judge decides
which parts are replaced.

Tests: tests/worker/test_components.py
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn


class Genuine:
    """The student's own object, made when a member of it is asked for first."""

    def __init__(self, make: Callable[[], Any] | None) -> None:
        """It is not made yet.

        Args:
            make: Makes it; None: the fake stands in nothing's place.
        """
        self._make = make
        self._made: list[Any] = []

    def member(self, name: str) -> Any:
        """A member of it.

        Raises:
            AttributeError: It has none of that name, or there is no such object. Whatever its constructor
                raises goes through.
        """
        if self._make is None or name.startswith("_"):
            raise AttributeError(name)
        if not self._made:
            # what it draws for its weights is nothing that the part under test would draw
            with torch.random.fork_rng(devices=[]):
                self._made.append(self._make())
        return getattr(self._made[0], name)


NOTHING = Genuine(None)

MakeGenuine = Callable[[tuple[Any, ...], Mapping[str, Any]], Genuine]  # of a constructor's arguments


class InPlaceOfOwn(nn.Module):
    """A module that has the members of the student's own object where it has none itself."""

    _genuine = NOTHING

    def stand_for(self, genuine: Genuine) -> None:
        """From now on it has that object's members, too: not while its own are made, which asks for them."""
        self._genuine = genuine

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError as error:
            genuine: Genuine = self.__dict__.get("_genuine", NOTHING)
            try:
                return genuine.member(name)
            except AttributeError:
                raise error from None
