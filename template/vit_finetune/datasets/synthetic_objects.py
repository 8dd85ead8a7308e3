"""Small colored scenes, 32 x 32, of thirty classes, made by formulas: an embedded substitute for CIFAR-10.

A class is a shape (disk, square, triangle, cross, ring), a texture on it (striped, checked, dotted) and an
arrangement (one large object, or three small ones). Colors, light, places, sizes and turns are drawn for each
image whatever its class, so that neither color nor place tells anything, and a linear classifier on pixels
little more. `CLASSES` are ten of the thirty, chosen so that each of the three is needed to tell them apart;
`OTHERS` are the twenty that are left, for whatever is to be learned before.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grader.kit.image_folders import cached_images, folder_images
from grader.kit.splits import LabeledImages, Splits, split_images

NAME = "synthetic_objects"
TITLE = "Synthetic scenes of textured objects"

SIDE = 32  # pixels
PER_CLASS = 600
CHUNK = 200  # images at once, which bounds the memory
TURN = 0.35  # radians, at most: of a texture, and of an object
INVERTED = 0.35  # share of the images in which objects are dark, on bright ground

Field = NDArray[np.float32]


# --- what the classes are made of: fields in coordinates of the object, of one shape for all arguments ----


def disk(u: Field, v: Field) -> Field:
    """Distance to the edge, negative inside, where the object's radius is 1; so are the others."""
    return np.hypot(u, v) - 0.95


def square(u: Field, v: Field) -> Field:
    return np.maximum(np.abs(u), np.abs(v)) - 0.82


def triangle(u: Field, v: Field) -> Field:
    slanted = 0.5 * v + (math.sqrt(3) / 2) * np.abs(u)
    return np.maximum(slanted, -v) - 0.58


def cross(u: Field, v: Field) -> Field:
    across = np.maximum(np.abs(u) - 1.0, np.abs(v) - 0.36)
    upright = np.maximum(np.abs(u) - 0.36, np.abs(v) - 1.0)
    return np.minimum(across, upright)


def ring(u: Field, v: Field) -> Field:
    return np.abs(np.hypot(u, v) - 0.76) - 0.27


def striped(x: Field, y: Field) -> Field:
    """From -1 to 1, with the period 1; so are the others."""
    return np.sin(2 * math.pi * x) + 0 * y


def checked(x: Field, y: Field) -> Field:
    return np.sin(2 * math.pi * 0.75 * x) * np.sin(2 * math.pi * 0.75 * y) * 1.3


def dotted(x: Field, y: Field) -> Field:
    return np.cos(2 * math.pi * 0.85 * x) + np.cos(2 * math.pi * 0.85 * y) - 0.9


SHAPES: dict[str, Callable[[Field, Field], Field]] = {
    "disk": disk, "square": square, "triangle": triangle, "cross": cross, "ring": ring,
}  # fmt: skip
TEXTURES: dict[str, Callable[[Field, Field], Field]] = {
    "striped": striped, "checked": checked, "dotted": dotted,
}  # fmt: skip


@dataclass(frozen=True)
class Scene:
    """What an image of a class shows.

    Attributes:
        objects: How many, 1 or 3.
    """

    shape: str
    texture: str
    objects: int

    @property
    def name(self) -> str:
        """`striped_disk`, `three_striped_disks`."""
        one = f"{self.texture}_{self.shape}"
        plural = "es" if self.shape == "cross" else "s"
        return one if self.objects == 1 else f"three_{one}{plural}"


SCENES = {
    scene.name: scene
    for shape in SHAPES
    for texture in TEXTURES
    for scene in (Scene(shape, texture, 1), Scene(shape, texture, 3))
}
CLASSES = (
    "striped_disk", "three_striped_disks", "striped_cross", "checked_square", "dotted_triangle",
    "three_dotted_triangles", "three_checked_crosses", "three_dotted_crosses", "checked_ring",
    "three_checked_rings",
)  # fmt: skip
OTHERS = tuple(name for name in SCENES if name not in CLASSES)


# --- the data set -----------------------------------------------------------------------------------------


def load(source: Path | None, *, seed: int, train_share: float = 0.7, cache: Path | None = None) -> Splits:
    """The data set, made or read, and split per class.

    Args:
        source: None makes the images; or a zip or folder of them.
        seed: Of the images and of the split, not negative: another seed gives other images, so that images
            of a secret seed were never seen by anybody.
        train_share: The share of each class that trains, more than 0, less than 1.
        cache: Where the images are kept for the next time; None: nowhere.

    Returns:
        uint8 images, (n, 32, 32, 3), 600 of each of the ten classes.

    Raises:
        UsageError: The source is damaged or incomplete.
    """
    if source is None:
        # the scenes change with this file, so its text belongs to the key
        key = f"{seed}\n{Path(__file__).read_text(encoding='utf-8')}"
        data = cached_images(cache, NAME, key, lambda: made_images(seed))
    else:
        data = folder_images(source, NAME, CLASSES, cache=cache)
    return split_images(NAME, CLASSES, data, seed=seed, train_share=train_share)


def made_images(seed: int, *, classes: Sequence[str] = CLASSES, per_class: int = PER_CLASS) -> LabeledImages:
    """The images of a seed, sorted by name; `per_class` fewer are the first of these.

    Args:
        seed: Not negative.
        classes: Names of `SCENES`, in the order of the labels.
        per_class: Images of each class.
    """
    names = [f"{name}/{name}_{number:04d}.png" for name in classes for number in range(1, per_class + 1)]
    labels = np.repeat(np.arange(len(classes), dtype=np.int64), per_class)
    images = np.concatenate([scenes(SCENES[name], per_class, seed) for name in classes])
    order = sorted(range(len(names)), key=names.__getitem__)
    return LabeledImages(tuple(names[row] for row in order), labels[order], images[order])


def scenes(scene: Scene, count: int, seed: int) -> NDArray[np.uint8]:
    """Images of a class, (count, 32, 32, 3), which depend on its name and the seed alone."""
    entropy = np.random.SeedSequence([seed, *scene.name.encode()])
    rng = np.random.Generator(np.random.PCG64(entropy))
    made = [_drawn(scene, rng) for _ in range(-(-count // CHUNK))]
    return np.concatenate(made)[:count]


def _drawn(scene: Scene, rng: np.random.Generator) -> NDArray[np.uint8]:
    """CHUNK images, (CHUNK, 32, 32, 3)."""
    count, pixels = CHUNK, np.arange(SIDE, dtype=np.float32) - (SIDE - 1) / 2
    x, y = pixels[None, None, :], pixels[None, :, None]
    ground, first, second = _colors(rng, count)
    slope = rng.uniform(-0.012, 0.012, (count, 2, 3)).astype(np.float32)
    light = slope[:, None, None, 0] * x[..., None] + slope[:, None, None, 1] * y[..., None]
    picture = ground[:, None, None, :] + light
    picture = picture + 0.05 * _blurred(rng.standard_normal((count, SIDE, SIDE, 1)).astype(np.float32))
    # one texture for all objects of a scene, in its own turn and grain
    angle, period = _column(rng.uniform(-TURN, TURN, count)), _column(rng.uniform(4.4, 5.2, count))
    phase_x, phase_y = (_column(rng.uniform(0, 1, count)) for _ in range(2))
    along = (x * np.cos(angle) + y * np.sin(angle)) / period + phase_x
    athwart = (y * np.cos(angle) - x * np.sin(angle)) / period + phase_y
    share = 0.5 + 0.5 * np.clip(2.5 * TEXTURES[scene.texture](along, athwart), -1, 1)
    surface = first[:, None, None, :] * share[..., None] + second[:, None, None, :] * (1 - share[..., None])
    for center_x, center_y, radius in _places(scene.objects, rng, count):
        turn = _column(rng.uniform(-TURN, TURN, count))
        u = ((x - center_x) * np.cos(turn) + (y - center_y) * np.sin(turn)) / radius
        v = ((y - center_y) * np.cos(turn) - (x - center_x) * np.sin(turn)) / radius
        inside = np.clip(0.5 - SHAPES[scene.shape](u, v) * radius, 0, 1)[..., None]
        picture = picture * (1 - inside) + surface * inside
    picture = picture + rng.normal(0.0, 0.025, picture.shape).astype(np.float32)
    return np.asarray(np.clip(np.rint(picture * 255), 0, 255), dtype=np.uint8)


def _column(values: NDArray[np.float64]) -> Field:
    return values.astype(np.float32)[:, None, None]


def _colors(rng: np.random.Generator, count: int) -> tuple[Field, Field, Field]:
    """Of the ground and of the two parts of the texture, each (count, 3): dark, bright, and between.

    In some images it is the other way round, so that brightness alone tells little.
    """
    drawn = rng.uniform(0.08, 0.92, (count, 12, 3, 3)).astype(np.float32)
    pairs = ((0, 1), (0, 2), (1, 2))
    apart = np.min([np.abs(drawn[:, :, a] - drawn[:, :, b]).sum(axis=-1) for a, b in pairs], axis=0)
    chosen = drawn[np.arange(count), apart.argmax(axis=1)]
    chosen = chosen * np.array([[0.35], [0.35], [0.3]], np.float32) + np.array(
        [[0.0], [0.65], [0.3]], np.float32
    )
    inverted = rng.random(count) < INVERTED
    chosen[inverted] = 1 - chosen[inverted]
    return chosen[:, 0], chosen[:, 1], chosen[:, 2]


def _places(objects: int, rng: np.random.Generator, count: int) -> list[tuple[Field, Field, Field]]:
    """Centers, from the middle, and radii of the objects, in pixels: one anywhere, or three apart."""
    if objects == 1:
        radius = rng.uniform(8.5, 11.5, count)
        room = SIDE / 2 - radius
        across, down = (rng.uniform(-1, 1, count) * room for _ in range(2))
        return [(_column(across), _column(down), _column(radius))]
    turn, places = rng.uniform(0, 2 * math.pi, count), []
    for number in range(objects):
        radius, angle = rng.uniform(5.2, 6.4, count), turn + 2 * math.pi * number / objects
        far = rng.uniform(8.6, 9.6, count)
        places.append((_column(far * np.cos(angle)), _column(far * np.sin(angle)), _column(radius)))
    return places


def _blurred(noise: Field) -> Field:
    """Noise whose neighbors are alike, of about the same size."""
    total = sum(np.roll(noise, (down, across), axis=(1, 2)) for down in (-1, 0, 1) for across in (-1, 0, 1))
    return np.asarray(total / 3.0, dtype=np.float32)
