"""Attacks by code: each in the correct solution, followed by an honest submission in the same hosts.

What hangs or fills the memory is in `test_slow_attacks.py`, so that the two can run side by side.
"""

import os
from pathlib import Path

import pytest

GROUP = "quick"


def test_an_attack_gains_nothing(attack, comes_to_nothing):
    comes_to_nothing(attack)


@pytest.mark.slow
def test_what_an_attack_finds_would_be_seen(judged_text, with_attack, planted, told):
    """The way in which attacks tell what they found, tried with something that is found."""
    half = len(planted.token) // 2
    source = f"""
def evaluate(model, data_loader, loss_history):
    raise ValueError(planted({planted.token[:half]!r} + {planted.token[half:]!r}))
"""
    found = judged_text(with_attack(source), ("evaluate",))
    assert planted.token in told(*found)


def test_every_secret_is_where_the_attacks_look(planted):
    """Outside of the sandbox, all that is sought can be read."""
    for name in ("secret_file", "course", "neighbor"):
        path = Path(planted.names[name])
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        assert any(planted.token in file.read_text("utf-8") for file in files), name
    assert planted.token in os.environ.values()
