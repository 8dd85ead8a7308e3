"""Points on three spirals that wind around each other: no line tells them apart."""

import numpy as np

from grader.kit import Examples

NAME = "rings"
TITLE = "Points on three spirals"
TRAIN, TEST = 1500, 900


def load(source, *, seed, train_share=0.7, cache=None):
    """The points of a seed: float64 (n, 2), with labels 0, 1 and 2."""
    random = np.random.default_rng(seed)
    points, labels = _points(random, TRAIN + TEST)
    return Examples(NAME, points[:TRAIN], labels[:TRAIN], points[TRAIN:], labels[TRAIN:])


def _points(random, count):
    labels = random.integers(0, 3, count)
    along = random.uniform(0.15, 1.0, count)
    angle = 2 * np.pi * labels / 3 + 4.0 * along + random.normal(0, 0.25, count)
    return np.stack([along * np.cos(angle), along * np.sin(angle)], axis=1), labels
