"""Rigged images within what a plotting function shows: resized, turned, colored, or many in one picture."""

from typing import Any

import numpy as np

from grader.kit.numbered_inputs import BLOCK
from grader.kit.rig import RiggedData

Array = Any
FEWEST = 7  # cells per side of a picture: rigged images are coarse noise, of which a resized one keeps them
FEWEST_CELLS = 4  # per side of our own images: fewer are like another image's by chance
LIKENESS = 0.8  # the correlation of an image with itself in another form; that of another image is near 0
MOST_PIXELS = 160_000  # of a picture that is searched
MOST_TIMES = 4  # as large as it is


def images_within(run: Any, data: RiggedData) -> int:
    """How many of the loader's images can be recognized in what a run's figures show.

    It takes up to seconds: for what could not be told apart otherwise.
    """
    ours = data.gray
    found: set[int] = set()
    for figure in run.figures:
        for axes in figure.axes:
            for number in (*axes.images, *axes.heat_maps):
                channels = _channels(run.arrays[f"image{number}"])
                if channels is not None:
                    alone = _alone(channels, ours)
                    found |= {alone} if alone is not None else _among_others(channels.mean(axis=0), ours)
    return len(found)


def _channels(values: Array) -> Array | None:
    """A picture as (channels, height, width), at most three; None when it is too small to be one."""
    values = np.nan_to_num(np.asarray(values, dtype=np.float64))
    if values.ndim == 2:
        values = values[None]
    elif values.ndim == 3 and values.shape[0] not in (1, 3, 4):
        values = np.moveaxis(values, -1, 0)
    if values.ndim != 3 or min(values.shape[1:]) < FEWEST:
        return None
    return values[:3]


def _alone(channels: Array, ours: Array) -> int | None:
    """Which image a picture is, whatever its size, its colors and which side is up."""
    cells = min(ours.shape[1:]) // BLOCK
    if cells < FEWEST_CELLS or min(channels.shape[1:]) < cells:
        return None
    shown = np.stack([_means(channel, cells) for channel in channels])
    known = np.stack([_means(image, cells) for image in ours])
    best = [_likeness(shown, known, turns, flips) for turns in range(4) for flips in (False, True)]
    number = int(np.argmax(np.max(best, axis=0)))
    return number if np.max(best) > LIKENESS else None


def _means(image: Array, cells: int) -> Array:
    """The means of as many parts of an image, in rows and in columns."""
    rows, columns = (np.linspace(0, side, cells + 1).astype(int) for side in image.shape)
    sums = np.add.reduceat(np.add.reduceat(image, rows[:-1], axis=0), columns[:-1], axis=1)
    return sums / np.outer(np.diff(rows), np.diff(columns))


def _likeness(shown: Array, known: Array, turns: int, flips: bool) -> Array:
    """How well each known image is a sum of the channels shown: the multiple correlation, (images,)."""
    turned = np.rot90(shown[..., ::-1] if flips else shown, turns, axes=(1, 2)).reshape(len(shown), -1)
    columns = np.stack([*turned, np.ones(turned.shape[1])], axis=1)
    targets = known.reshape(len(known), -1).T
    rest = targets - columns @ np.linalg.lstsq(columns, targets, rcond=None)[0]
    share: Array = 1 - rest.var(axis=0) / np.maximum(targets.var(axis=0), 1e-12)
    return np.sqrt(np.clip(share, 0, 1))


def _among_others(picture: Array, ours: Array) -> set[int]:
    """Which images stand somewhere in a picture, in their own size or a whole number of times as large."""
    for times in range(1, MOST_TIMES + 1):
        small = picture[times // 2 :: times, times // 2 :: times]
        fits = all(side >= own for side, own in zip(small.shape, ours.shape[1:], strict=True))
        if fits and small.size <= MOST_PIXELS:
            found = _standing_in(small, ours)
            if found:
                return found
    return set()


def _standing_in(picture: Array, ours: Array) -> set[int]:
    """Which images, or their negatives, correlate with the picture at some place of it."""
    transformed, window = np.fft.rfft2(picture), np.ones(ours.shape[1:]) / ours[0].size
    means = _windows(transformed, window, picture.shape)
    squares = _windows(np.fft.rfft2(picture * picture), window, picture.shape)
    spread = np.sqrt(np.maximum(squares - means**2, 0))
    flat = spread < 1e-3 * max(float(picture.std()), 1e-12)
    spread[flat] = np.inf
    found = set()
    for number, image in enumerate(ours):
        pattern = (image - image.mean()) / (image.std() * image.size)
        if bool((np.abs(_windows(transformed, pattern, picture.shape)) > LIKENESS * spread).any()):
            found.add(number)
    return found


def _windows(transformed: Array, pattern: Array, shape: tuple[int, int]) -> Array:
    """The sum of pattern times picture over each window of the pattern's size within the picture."""
    product = np.fft.irfft2(transformed * np.conj(np.fft.rfft2(pattern, shape)), shape)
    return product[: shape[0] - pattern.shape[0] + 1, : shape[1] - pattern.shape[1] + 1]
