"""Six textures that look like the defects of hot-rolled steel strip, made by formulas: the embedded default.

Their classes, size and layout are those of `neu_cls`, and so are the habits of each defect: brightness,
light, grain, direction. The classes overlap in brightness and differ in structure, which a linear classifier
on pixels cannot see (about 50 % at 28 x 28) and a small ViT can (about 90 %).
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grader.kit.image_folders import cached_images, folder_images
from grader.kit.splits import LabeledImages, Splits, split_images

NAME = "synthetic_steel"
TITLE = "Synthetic steel surface defects"
CLASSES = ("crazing", "inclusion", "patches", "pitted_surface", "rolled-in_scale", "scratches")

SIDE = 200  # pixels
PER_CLASS = 140

Field = NDArray[np.float64]


def load(source: Path | None, *, seed: int, train_share: float = 0.7, cache: Path | None = None) -> Splits:
    """The data set, made or read, and split per class.

    Args:
        source: None makes the images; or a zip or folder as `write` makes it.
        seed: Of the images and of the split, not negative: another seed gives other images, so that images
            of a secret seed were never seen by anybody.
        train_share: The share of each class that trains, more than 0, less than 1.
        cache: Where the images are kept for the next time; None: nowhere.

    Returns:
        uint8 images, (n, 200, 200), 140 of each class.

    Raises:
        UsageError: The source is damaged or incomplete.
    """
    if source is None:
        # the textures change with this file, so its text belongs to the key
        key = f"{seed}\n{Path(__file__).read_text(encoding='utf-8')}"
        data = cached_images(cache, NAME, key, lambda: made_images(seed))
    else:
        data = folder_images(source, NAME, CLASSES, cache=cache)
    return split_images(NAME, CLASSES, data, seed=seed, train_share=train_share)


def made_images(seed: int, *, per_class: int = PER_CLASS) -> LabeledImages:
    """The images of a seed, sorted by name; `per_class` fewer are the first of these.

    Args:
        seed: Not negative.
        per_class: Images of each class.
    """
    made = {
        f"{label}/{label}_{number}.png": (index, label, number)
        for index, label in enumerate(CLASSES)
        for number in range(1, per_class + 1)
    }
    names = tuple(sorted(made))
    # Once a large block was freed, glibc keeps what is freed later instead of returning each array to the
    # system, which takes half of the time.
    large = np.empty(2**24, dtype=np.uint8)
    del large
    images = np.empty((len(names), SIDE, SIDE), dtype=np.uint8)
    for row, name in enumerate(names):
        _, label, number = made[name]
        images[row] = made_image(label, number, seed)
    labels = np.array([made[name][0] for name in names], dtype=np.int64)
    return LabeledImages(names, labels, images)


def made_image(label: str, number: int, seed: int) -> NDArray[np.uint8]:
    """One image, (200, 200), which depends on its class, number and seed alone."""
    entropy = np.random.SeedSequence([seed, CLASSES.index(label), number])
    rng = np.random.Generator(np.random.PCG64(entropy))
    texture = TEXTURES[label]
    level = min(max(rng.normal(*texture.level), 30.0), 225.0)
    tilt, uneven = texture.light
    direction = rng.uniform(0.0, 2.0 * math.pi)
    slope = np.linspace(-1.0, 1.0, SIDE)
    ramp = slope[None, :] * math.cos(direction) + slope[:, None] * math.sin(direction)
    light = tilt * rng.uniform(0.6, 1.6) * ramp + uneven * swell(rng, 3, 3)
    gray = level + light + rng.uniform(0.85, 1.2) * texture.field(rng)
    return np.asarray(np.clip(np.rint(gray), 0, 255), dtype=np.uint8)


# --- what the textures are made of -----------------------------------------------------------------------


@functools.cache
def _frequencies() -> tuple[Field, Field]:
    """Vertical (200, 1) and horizontal (1, 101) frequencies, in cycles per pixel."""
    down, across = np.fft.fftfreq(SIDE), np.fft.rfftfreq(SIDE)
    return down.astype(np.float64)[:, None], across.astype(np.float64)[None, :]


def grain(rng: np.random.Generator, along: float, athwart: float | None = None, angle: float = 0.0) -> Field:
    """White noise blurred by a Gaussian, (200, 200), with mean 0 and standard deviation 1.

    The transfer function of a Gaussian blur with standard deviation s is exp(-2 pi^2 s^2 f^2).

    Args:
        rng: Source of randomness.
        along: Standard deviation of the blur in the grain's direction, in pixels.
        athwart: The same across it; None: like `along`.
        angle: Of the grain's direction against the horizontal, in radians.
    """
    v, u = _frequencies()
    athwart = along if athwart is None else athwart
    in_direction = along * (u * math.cos(angle) + v * math.sin(angle))
    across = athwart * (v * math.cos(angle) - u * math.sin(angle))
    transfer = np.exp(-2.0 * math.pi**2 * (in_direction**2 + across**2))
    transfer[0, 0] = 0.0
    # a sum of so many frequencies is Gaussian whatever each is drawn from, and this is drawn fastest
    white = rng.random((2, SIDE, SIDE // 2 + 1)) - 0.5
    field = np.fft.irfft2((white[0] + 1j * white[1]) * transfer, s=(SIDE, SIDE))
    return np.asarray(field / field.std())


@functools.cache
def _interpolation(knots: int) -> Field:
    """(200, knots): the weights that carry values at evenly spaced knots smoothly to every pixel."""
    places = np.linspace(-0.5, SIDE + 0.5, knots)
    distance = (np.arange(SIDE)[:, None] - places[None, :]) / (places[1] - places[0])
    weights = np.exp(-0.5 * (distance / 0.6) ** 2)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def wave(rng: np.random.Generator, knots: int) -> Field:
    """A smooth random curve, (200,), mean 0, deviation somewhat below 1."""
    return np.asarray(_interpolation(knots) @ rng.standard_normal(knots))


def bands(rng: np.random.Generator, knots: int) -> Field:
    """Vertical bands as the rolls leave them, (1, 200), mean 0, standard deviation 1."""
    row = wave(rng, knots)
    return np.asarray(((row - row.mean()) / row.std())[None, :])


def swell(rng: np.random.Generator, down: int, across: int) -> Field:
    """Smooth noise from `down` x `across` knots, (200, 200), mean 0, standard deviation 1."""
    field = _interpolation(down) @ rng.standard_normal((down, across)) @ _interpolation(across).T
    return np.asarray((field - field.mean()) / field.std())


def step(field: Field, width: float) -> Field:
    """A soft step from 0 to 1 where the field crosses 0: the logistic function of `field / width`."""
    return np.asarray(0.5 + 0.5 * np.tanh(field * (0.5 / width)))


# --- the textures: gray values around 0, (200, 200), the rolling direction upright ------------------------


def crazing(rng: np.random.Generator) -> Field:
    """A net of fine dark cracks, mostly across the rolling direction, on rough metal."""
    angle = rng.normal(0.0, 0.12)
    relief = grain(rng, rng.uniform(8.0, 12.0), rng.uniform(3.5, 5.0), angle)
    steepness = np.hypot(*np.gradient(relief))
    distance = np.abs(relief) / (steepness + 0.02)  # in pixels, to where the relief is 0: a crack
    cracks = np.exp(-0.5 * (distance / rng.uniform(0.9, 1.4)) ** 2)
    gaps = swell(rng, 22, 16) + 0.5 * swell(rng, 4, 4) - rng.uniform(-0.6, 0.1)
    rough = 0.7 * grain(rng, 0.7) + 0.6 * grain(rng, 3.5, 1.2, angle + rng.normal(0.25, 0.2))
    strength = rng.uniform(0.8, 1.3)
    metal = 26.0 * strength * rough + rng.uniform(4.0, 12.0) * bands(rng, 9)
    return np.asarray(metal - 75.0 * strength * cracks * step(gaps, 0.25))


def inclusion(rng: np.random.Generator) -> Field:
    """Dark streaks and spots of slag, drawn out in the rolling direction, on smooth banded metal."""
    y, x = np.arange(SIDE, dtype=np.float64)[:, None], np.arange(SIDE, dtype=np.float64)[None, :]
    ragged = np.clip(1.0 + 0.5 * grain(rng, 1.2, 5.0), 0.05, None)
    sway = 5.0 * wave(rng, 7)[:, None]
    slag = np.zeros((SIDE, SIDE))
    for _ in range(int(rng.integers(4, 11))):
        half_length = rng.uniform(8.0, 70.0)
        half_width = rng.uniform(2.0, 4.0) + half_length * rng.uniform(0.0, 0.14)
        middle, center = rng.uniform(5.0, SIDE - 5.0, 2)
        taper = 1.0 - ((y - middle) / half_length) ** 2
        outline = taper * ragged - np.abs(x - center - sway) / half_width
        slag = np.maximum(slag, step(outline, 0.12) * rng.uniform(0.5, 1.0))
    metal = 1.6 * grain(rng, 0.8) + 3.0 * grain(rng, 0.8, 12.0) + rng.uniform(12.0, 22.0) * bands(rng, 6)
    return metal - rng.uniform(50.0, 85.0) * slag


def patches(rng: np.random.Generator) -> Field:
    """Large dark blotches with ragged edges on rough bright metal."""
    shape = swell(rng, int(rng.integers(4, 7)), int(rng.integers(5, 9)))
    ragged = shape + 0.16 * grain(rng, 4.0) + 0.10 * grain(rng, 1.5)
    blotch = step(ragged - rng.uniform(0.1, 0.7), rng.uniform(0.06, 0.2))
    rough = 0.8 * grain(rng, 0.8) + 0.5 * grain(rng, 0.6, 5.0)
    metal = 17.0 * rough * (1.0 - 0.55 * blotch) + rng.uniform(4.0, 16.0) * bands(rng, 10)
    return metal - rng.uniform(90.0, 140.0) * blotch


def pitted_surface(rng: np.random.Generator) -> Field:
    """Many small dark pits, unevenly spread, on smooth metal."""
    size = rng.uniform(1.6, 2.4)
    depth = grain(rng, size, size * rng.uniform(1.0, 1.5)) + 0.7 * swell(rng, 4, 4)
    pits = step(depth - rng.uniform(1.3, 1.8), 0.2)
    metal = 2.5 * grain(rng, 0.8) + rng.uniform(1.0, 5.0) * bands(rng, 8)
    return metal - rng.uniform(45.0, 90.0) * pits


def rolled_in_scale(rng: np.random.Generator) -> Field:
    """Coarse dark flecks of scale in clusters, each with a bright rim, on streaky metal."""
    angle = rng.normal(0.0, 0.1)
    flecks = grain(rng, rng.uniform(4.5, 6.0), rng.uniform(1.8, 2.3), angle)
    scale = step(flecks + 0.6 * swell(rng, 5, 5) - rng.uniform(0.9, 1.3), 0.2)
    rim = np.clip(np.roll(scale, 3, axis=0) - scale, 0.0, None)
    slant = rng.choice((-1.0, 1.0)) * rng.uniform(0.1, 0.5)
    streaks = 7.0 * grain(rng, 4.0, 0.8, angle + slant) + 4.0 * grain(rng, 0.7)
    return streaks - rng.uniform(65.0, 95.0) * scale + 45.0 * rim + 4.0 * bands(rng, 7)


def scratches(rng: np.random.Generator) -> Field:
    """Thin bright lines, nearly parallel, often with one wide scuffed strip, on smooth dark metal."""
    y = np.arange(SIDE, dtype=np.float64)[:, None] - SIDE / 2
    x = np.arange(SIDE, dtype=np.float64)[None, :]
    tilt = rng.normal(0.0, 0.03)
    bright = np.zeros((SIDE, SIDE))
    for number in range(int(rng.integers(4, 11))):
        wide = number == 0 and rng.random() < 0.75
        half_width = rng.uniform(4.0, 9.0) if wide else rng.choice((0.7, 1.2, 2.0))
        edge = half_width * (1.0 + 0.12 * wave(rng, 24)[:, None])
        path = rng.uniform(8.0, SIDE - 8.0) + (tilt + rng.normal(0.0, 0.015)) * y
        path = path + rng.normal(0.0, 1.5) * (y / 100.0) ** 2
        half_length = SIDE if wide else rng.uniform(40.0, 200.0)
        ends = step(half_length - np.abs(y - rng.uniform(-100.0, 100.0)), 5.0)
        pressure = np.clip(0.8 + 0.3 * wave(rng, 16), 0.2, 1.2)[:, None]
        line = step(edge - np.abs(x - path), 0.5) * ends * pressure
        bright = np.maximum(bright, line * rng.uniform(0.7, 1.0))
    bright *= np.clip(0.85 + 0.2 * grain(rng, 0.6, 7.0), 0.3, 1.3)
    metal = 2.0 * grain(rng, 0.8) + 3.0 * grain(rng, 0.8, 9.0) + rng.uniform(1.0, 6.0) * bands(rng, 14)
    field = metal + rng.uniform(120.0, 190.0) * bright
    return field.T if rng.random() < 0.2 else field


@dataclass(frozen=True)
class Texture:
    """How a class looks.

    Attributes:
        field: Draws its structure.
        level: Mean and standard deviation of the gray value of its metal, from image to image.
        light: Gray values by which the light changes: from the middle to the brighter edge, and unevenly.
    """

    field: Callable[[np.random.Generator], Field]
    level: tuple[float, float]
    light: tuple[float, float]


TEXTURES = {
    "crazing": Texture(crazing, level=(174.0, 22.0), light=(4.0, 6.0)),
    "inclusion": Texture(inclusion, level=(110.0, 19.0), light=(10.0, 6.0)),
    "patches": Texture(patches, level=(182.0, 22.0), light=(8.0, 6.0)),
    "pitted_surface": Texture(pitted_surface, level=(184.0, 20.0), light=(34.0, 14.0)),
    "rolled-in_scale": Texture(rolled_in_scale, level=(146.0, 20.0), light=(4.0, 6.0)),
    "scratches": Texture(scratches, level=(78.0, 19.0), light=(8.0, 8.0)),
}
