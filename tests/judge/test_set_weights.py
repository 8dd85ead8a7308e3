"""Weights that a check sets travel with its next question, and count as set from then on."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.judge.student import Student
from grader.kit import Mismatch, same
from grader.protocol.frames import Frame

SHARED = """
import torch
from torch import nn
shared = nn.Linear(3, 3)
class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.net = shared
    def forward(self, x):
        return self.net(x)
class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1).expand(dim))
    def forward(self, x):
        return self.scale * x
"""


@pytest.fixture
def student(
    tampered: Callable[..., Any],
    spawn: Callable[[], Any],
    analyzed: Callable[[str], Program],
    assignment: Assignment,
    solved: str,
) -> Iterator[Callable[[], Student]]:
    """A student whose answers are counted, by kind, in `student.answers`."""
    students: list[Any] = []

    def made(text: str = solved) -> Student:
        answers: list[str] = []

        def counted(frame: Frame) -> Frame:
            answers.append(str(frame.document.get("$kind")))
            return frame

        students.append(Student(lambda: tampered(spawn(), counted), analyzed(text), assignment, seed=1))
        students[-1].answers = answers
        return students[-1]

    yield made
    for one in students:
        one.close()


def asked(student: Any) -> list[str]:
    """The answers since the last time, but for notices."""
    kinds = [kind for kind in student.answers if kind in ("Built", "Called", "WeightValues", "Done")]
    student.answers.clear()
    return kinds


def test_setting_weights_is_no_question_of_its_own(student: Callable[..., Any]) -> None:
    one = student()
    part = one.build("FeedForward", 4, 6)
    x = one.tensor(2, 4)
    asked(one)
    before = part.weights()
    moved = part.randomize()
    assert asked(one) == ["WeightValues"] * 2
    assert all(torch.equal(part.weights()[name], value) for name, value in moved.items())
    assert asked(one) == []
    first = part(x)
    part.set_weights({name: 0 * value for name, value in moved.items()})
    part.set_weights(before)
    second = part(x)
    assert asked(one) == ["Called"] * 2
    assert not same(first, second)
    part.set_weights(moved)
    assert same(part(x), first)


def test_what_is_returned_or_set_can_be_changed_afterwards(student: Callable[..., Any]) -> None:
    one = student()
    part = one.build("FeedForward", 4, 6)
    x = one.tensor(2, 4)
    first, held = part(x), part.weights()
    part.set_weights(held)
    for value in (*held.values(), *part.weights().values()):
        value.zero_()
    part.set_weights(part.weights())
    assert same(part(x), first)


def test_a_question_about_another_part_comes_later(student: Callable[..., Any]) -> None:
    """Parts may share weights."""
    one = student(SHARED)
    first, second = one.build("FeedForward", 3, 3), one.build("FeedForward", 3, 3)
    x = one.tensor(2, 3)
    weights = second.weights()
    first.set_weights({name: 0 * value for name, value in weights.items()})
    assert not any(bool(value.any()) for value in second.weights().values())
    first.set_weights(weights)
    assert same(second(x), first(x)) and bool(second(x).any())


def test_weights_that_cannot_be_set_fail_the_check_that_sets_them(student: Callable[..., Any]) -> None:
    one = student(SHARED)
    norm = one.build("PreNorm", 3, None)
    norm.set_weights({"scale": torch.rand(3)})
    with pytest.raises(Mismatch, match="PreNorm"):
        one.settle()
    one.settle()
    assert one.build("FeedForward", 3, 3)(one.tensor(2, 3)).shape == (2, 3)
