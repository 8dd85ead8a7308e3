"""The batches of images that a call was given are read, whatever gives them."""

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from grader.analysis import program
from grader.domain.assignment import Assignment, Component
from grader.judge.student import Student
from grader.kit import Fake, batches, image_batches
from grader.kit.given_images import FIRST
from grader.protocol.link import WorkerProcess

SOURCE = """
import itertools
import numpy as np
import torch


class Numbered:
    def __init__(self, loader, times=1):
        self.found = list(loader) * times

    def __len__(self):
        return len(self.found)

    def __getitem__(self, number):
        return self.found[number]


class Steps:
    def __init__(self, loader):
        self.found = itertools.cycle(list(loader))

    def __next__(self):
        return next(self.found)


class Endless:
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        return Steps(self.loader)


class Itself:
    def __iter__(self):
        return self

    def __next__(self):
        return self


class Moved:
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        for images, labels in self.loader:
            yield images, labels


WAYS = {
    "a loader": lambda loader: loader,
    "a list": list,
    "a tuple": tuple,
    "a dictionary": lambda loader: {"validation": list(loader)},
    "batches that are dictionaries": lambda loader: [{"image": x, "label": y} for x, y in loader],
    "a generator": lambda loader: (batch for batch in loader),
    "an object with __iter__": Moved,
    "an object with __getitem__": Numbered,
    "a tensor": lambda loader: torch.cat([x for x, _ in loader]),
    "an array": lambda loader: torch.cat([x for x, _ in loader]).numpy(),
    "images one by one": lambda loader: [(image, label) for x, y in loader for image, label in zip(x, y)],
    "many batches": lambda loader: Numbered(loader, times=40),
    "a loader without an end": Endless,
    "an iterator without an end": lambda loader: itertools.cycle(list(loader)),
    "an iterator of itself": lambda loader: Itself(),
    "very many numbers": lambda loader: [0.0] * 60_000,
    "labels": lambda loader: [y for _, y in loader],
    "a number": lambda loader: 3,
    "nothing": lambda loader: None,
    "a list in itself": lambda loader: [[[[[[[x for x, _ in loader]]]]]]],
}


def evaluate(model, given):
    return 0.5


def handed_on(model, loader, way):
    return evaluate(model, WAYS[way](loader))
"""
ONCE = (
    *("a loader", "a list", "a tuple", "a dictionary", "batches that are dictionaries", "a generator"),
    *("an object with __iter__", "an object with __getitem__", "a tensor", "an array", "images one by one"),
)


@pytest.fixture
def given(assignment: Assignment, spawn: Callable[[], WorkerProcess]) -> Iterator[Callable[[str], list[Any]]]:
    """What is read of a way to hand images on."""
    components = tuple(
        Component(name, "function", signature)
        for name, signature in (("evaluate", "model, given"), ("handed_on", "model, loader, way"))
    )
    with_parts = replace(assignment, components=components, forbidden=(), measures=())
    rules = replace(assignment.program_rules, components=components, forbidden=(), further={})
    found = program("homework.py", textwrap.dedent(SOURCE).encode(), rules)
    student = Student(spawn, found, with_parts, seed=3)

    def of(way: str) -> list[Any]:
        loader = batches(IMAGES, torch.arange(5), (2, 2, 1))
        fakes = {"evaluate": Fake.script([0.5])}
        [call] = student.call("handed_on", Fake.script([0.0]), loader, way, replace=fakes).calls_of(
            "evaluate"
        )
        return image_batches(student, call)

    yield of
    student.close()


IMAGES = torch.arange(5.0).view(5, 1, 1, 1).expand(5, 2, 4, 3).contiguous()


@pytest.mark.parametrize("way", ONCE)
def test_all_images_are_read(given: Callable[[str], list[Any]], way: str) -> None:
    assert torch.equal(torch.cat(given(way)), IMAGES)


@pytest.mark.parametrize("way", ["many batches", "a loader without an end"])
def test_of_many_batches_the_first_ones_are_read(given: Callable[[str], list[Any]], way: str) -> None:
    found = given(way)
    assert len(found) == FIRST
    assert torch.equal(torch.cat(found[:3]), IMAGES)


@pytest.mark.parametrize(
    "way",
    [
        *("labels", "a number", "nothing", "a list in itself"),
        *("an iterator without an end", "an iterator of itself", "very many numbers"),
    ],
)
def test_what_holds_no_images_gives_none(given: Callable[[str], list[Any]], way: str) -> None:
    assert given(way) == []
