"""Rigged data for functions that train, measure or draw: inputs whose right answers are known.

Images and tokens are random, and each contains its number, so that it is recognized in a batch, and in a
figure even if it is resized, turned, colored or one of many. Labels and answers are made so that a given
share of them is right. It judges nothing.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

ID_BITS = 10  # that carry an image's number
BLOCK = 4  # pixels per side of a cell of the noise
TINT = 0.3  # the share of the noise by which the channels differ
SIDE = 28
SHAPE = (1, SIDE, SIDE)  # channels, height, width, unless a check says otherwise

Array = Any
Shape = tuple[int, int, int]


def numbered_images(count: int, seed: int, shape: Shape = SHAPE) -> Array:
    """Images of coarse noise, float32 (count, channels, height, width) in [-1, 1], each with its number.

    The signs of the first 10 pixels, row by row, are the number's bits, lowest first. The channels differ,
    but less than the images do: a picture of one channel, or of their mean, shows the image.

    Args:
        count: Fewer than 1024.
        shape: Channels, height and width, of which an image has at least 10 pixels.

    Raises:
        ValueError: There are too many images, or too few pixels.
    """
    _, height, width = shape
    if count >= 2**ID_BITS:
        raise ValueError(f"{count} images: at most {2**ID_BITS - 1} can be numbered.")
    if height * width < ID_BITS:
        raise ValueError(f"Images of {height} x {width}: a number takes {ID_BITS} pixels.")
    images = _coarse_noise(count, seed, shape)
    for bit in range(ID_BITS):
        row, column = divmod(bit, width)
        images[:, :, row, column] = np.where(np.arange(count) >> bit & 1, 0.95, -0.95)[:, None]
    return images


def _coarse_noise(count: int, seed: int, shape: Shape) -> Array:
    channels, height, width = shape
    cells = -(-height // BLOCK), -(-width // BLOCK)
    random = np.random.default_rng(seed)
    coarse = random.uniform(-0.9, 0.9, (count, 1, *cells))
    if channels > 1:
        tint = random.uniform(-0.9, 0.9, (count, channels, *cells))
        coarse = (1 - TINT) * coarse + TINT * tint
    noise: Array = coarse.repeat(BLOCK, axis=2).repeat(BLOCK, axis=3).astype(np.float32)
    return np.ascontiguousarray(noise[:, :, :height, :width])


def image_numbers(images: Array, bits: int = ID_BITS) -> Array:
    """The numbers written in a batch of images, int64 (batch,).

    Args:
        images: (batch, channels, height, width), as they were handed out or scaled by a positive factor.
        bits: How many pixels carry a number.
    """
    pixels = np.asarray(images[:, 0]).reshape(len(images), -1)[:, :bits]
    numbers: Array = (pixels > 0) @ 2 ** np.arange(bits)
    return numbers


def image_number(shown: Array, size: int | tuple[int, int] = SIDE) -> int | None:
    """The number written in a shown image, (height, width[, channels]), at any scale; None if there is none.

    An image that was enlarged by an integer factor is read at the centers of its pixels.

    Args:
        size: Height and width of the images that have numbers; one number where they are equal.
    """
    height, width = (size, size) if isinstance(size, int) else size
    gray = np.asarray(shown, dtype=np.float64)
    if gray.ndim == 3:
        gray = gray[..., 0] if gray.shape[-1] in (1, 3, 4) else gray[0]
    if gray.ndim != 2 or not gray.size:
        return None
    times = gray.shape[0] // height
    if times < 1 or gray.shape != (times * height, times * width):
        return None
    gray = gray[times // 2 :: times, times // 2 :: times]
    low, high = gray.min(), gray.max()
    if not np.isfinite(gray).all() or high <= low:
        return None
    bits = gray.reshape(-1)[:ID_BITS] > (low + high) / 2
    return int((bits * 2 ** np.arange(ID_BITS)).sum())


def numbered_tokens(count: int, seed: int, *, vocabulary: int, length: int) -> Array:
    """Sequences of random tokens, int64 (count, length), each of which begins with its number.

    The first tokens are the digits of the number to the base of the vocabulary, lowest first.

    Args:
        vocabulary: How many tokens there are; a token is from 0 to vocabulary - 1.
        length: Tokens of a sequence; one more than a model's block where targets are the next tokens.

    Raises:
        ValueError: The vocabulary has one token, or the sequences are too short for their numbers.
    """
    digits = _digits(count, vocabulary)
    if length < digits:
        raise ValueError(
            f"Sequences of {length} of {vocabulary} tokens: the numbers of {count} take {digits} tokens."
        )
    tokens = np.random.default_rng(seed).integers(0, vocabulary, (count, length), dtype=np.int64)
    tokens[:, :digits] = np.arange(count)[:, None] // vocabulary ** np.arange(digits) % vocabulary
    return tokens


def token_numbers(tokens: Array, count: int, *, vocabulary: int) -> Array:
    """The numbers with which sequences begin, int64 (batch,); -1 if no sequence has that number.

    Args:
        tokens: Whole numbers, (batch, length); after the number they may be cut off or longer.
        count, vocabulary: Those that the sequences were made with.
    """
    digits = _digits(count, vocabulary)
    sequences = np.asarray(tokens)
    if sequences.shape[1] < digits:
        return np.full(len(sequences), -1)
    first = sequences[:, :digits]
    numbers: Array = first @ vocabulary ** np.arange(digits)
    is_known = ((first >= 0) & (first < vocabulary)).all(axis=1) & (numbers < count)
    return np.where(is_known, numbers, -1)


def _digits(count: int, vocabulary: int) -> int:
    """How many tokens are needed to distinguish this many sequences."""
    if vocabulary < 2:
        raise ValueError(f"A vocabulary of {vocabulary}: two tokens are needed to tell sequences apart.")
    digits = 1
    while vocabulary**digits < count:
        digits += 1
    return digits


# --- rig -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RiggedData:
    """Images with their numbers written into them, labels, and the rigged model's answers for them.

    Attributes:
        batch_sizes: How the loader cuts them.
        class_names: Of the data set.
        arrays: `images` float32 (n, channels, height, width) in [-1, 1], `labels` int64 (n,), and either
            `table` float32 (n, classes), the logits, or `features` float32 (n, k) and `weights` float32
            (k, classes).
        learning_rate: Of the rigged SGD.
    """

    batch_sizes: tuple[int, ...]
    class_names: tuple[str, ...]
    arrays: dict[str, Array]
    learning_rate: float = 0.1
    id_bits: int = ID_BITS

    @property
    def shown(self) -> dict[str, Array]:
        """What the worker gets; it must ask for a model's answer for an image."""
        return {name: value for name, value in self.arrays.items() if name not in ("table", "features")}

    @property
    def rows(self) -> Array:
        """What the rigged model answers, or knows, for each image: the table or the features."""
        return self.arrays["table" if "table" in self.arrays else "features"]

    @cached_property
    def gray(self) -> Array:
        """The images in gray, float64 (n, height, width)."""
        return np.asarray(self.arrays["images"], dtype=np.float64).mean(axis=1)

    @property
    def labels(self) -> Array:
        """int64 (n,)."""
        return self.arrays["labels"]

    @property
    def table(self) -> Array:
        """float32 (n, classes)."""
        return self.arrays["table"]

    @property
    def predictions(self) -> Array:
        """int64 (n,): the classes that the table predicts."""
        return self.table.argmax(axis=1)


def classified_data(
    class_names: tuple[str, ...],
    batch_sizes: tuple[int, ...],
    *,
    accuracy: float,
    seed: int,
    shape: Shape = SHAPE,
) -> RiggedData:
    """Labels and logits of which about `accuracy` are right, in every class; the classes differ in size.

    The sizes are in the ratio 3 : 4 : 5 : ... for every seed, so that a sum over the wrong axis shows and a
    mistake is reported with the same numbers.
    """
    count, classes = sum(batch_sizes), len(class_names)
    random = np.random.default_rng(seed)
    labels = random.permutation(np.repeat(np.arange(classes), _uneven_sizes(count, classes)))
    predicted = labels.copy()
    for label in range(classes):
        indices = random.permutation(np.flatnonzero(labels == label))
        wrong = indices[: len(indices) - math.ceil(accuracy * len(indices))]
        predicted[wrong] = (label + random.integers(1, max(classes, 2), len(wrong))) % classes
    arrays = {
        "images": numbered_images(count, seed, shape),
        "labels": labels.astype(np.int64),
        "table": _table(predicted, classes, random),
    }
    return RiggedData(batch_sizes, class_names, arrays)


def scored_data(
    class_names: tuple[str, ...],
    batch_sizes: tuple[int, ...],
    *,
    hits: int,
    scale: float,
    seed: int,
    shape: Shape = SHAPE,
) -> RiggedData:
    """Labels and logits of which `hits` random ones are right; `scale` times as large as usual.

    The scale decides how large the loss is, independently of the accuracy.
    """
    count, classes = sum(batch_sizes), len(class_names)
    random = np.random.default_rng(seed)
    labels = random.permutation(np.repeat(np.arange(classes), _uneven_sizes(count, classes)))
    predicted = labels.copy()
    wrong = random.permutation(count)[hits:]
    predicted[wrong] = (labels[wrong] + random.integers(1, max(classes, 2), len(wrong))) % classes
    arrays = {
        "images": numbered_images(count, seed, shape),
        "labels": labels.astype(np.int64),
        "table": np.float32(scale) * _table(predicted, classes, random),
    }
    return RiggedData(batch_sizes, class_names, arrays)


def _table(predicted: Array, classes: int, random: np.random.Generator) -> Array:
    """Logits float32 (n, classes), the largest for the predicted class."""
    table = random.normal(0.0, 1.0, (len(predicted), classes)).astype(np.float32)
    margins = random.uniform(0.3, 2.5, len(predicted)).astype(np.float32)
    table[np.arange(len(predicted)), predicted] = table.max(axis=1) + margins
    return table


def _uneven_sizes(count: int, classes: int) -> Array:
    """How many images each class has, (classes,): they add up to `count`."""
    parts = np.arange(classes) + 3
    ends = np.round(count * parts.cumsum() / parts.sum()).astype(int)
    return np.diff(ends, prepend=0)


def trainable_data(
    class_names: tuple[str, ...],
    batch_sizes: tuple[int, ...],
    *,
    features: int,
    seed: int,
    scale: float = 1.0,
    shape: Shape = SHAPE,
) -> RiggedData:
    """Labels and features of a linear model that can be trained.

    Args:
        features: How many each image has.
        scale: How large they are: the larger they are, the larger is the loss. The learning rate depends on
            it.
    """
    count, classes = sum(batch_sizes), len(class_names)
    random = np.random.default_rng(seed)
    arrays = {
        "images": numbered_images(count, seed, shape)
        if count < 2**ID_BITS
        else _plain_images(count, seed, shape),
        "labels": random.integers(0, classes, count).astype(np.int64),
        "features": random.normal(0.0, scale, (count, features)).astype(np.float32),
        "weights": random.normal(0.0, 0.5, (features, classes)).astype(np.float32),
    }
    return RiggedData(batch_sizes, class_names, arrays, 0.1 / scale**2)


def _plain_images(count: int, seed: int, shape: Shape) -> Array:
    random = np.random.default_rng(seed)
    return random.uniform(-1.0, 1.0, (count, *shape)).astype(np.float32)


# --- recognition -----------------------------------------------------------------------------------------


FEWEST = 7  # cells per side of a picture: rigged images are coarse noise, which survives resizing
FEWEST_CELLS = 4  # per side of our own images: fewer may be similar to another image's by chance
LIKENESS = 0.8  # the correlation of an image with itself in another form; with another image it is near 0
MOST_PIXELS = 160_000  # of a picture that is searched
MOST_TIMES = 4  # how much larger an image may be shown


def images_within(run: Any, data: RiggedData) -> int:
    """How many of the loader's images can be recognized in a run's figures.

    It may take seconds: only for what cannot be distinguished otherwise.
    """
    ours = data.gray
    recognized: set[int] = set()
    for figure in run.figures:
        for axes in figure.axes:
            for number in (*axes.images, *axes.heat_maps):
                channels = _channels(run.arrays[f"image{number}"])
                if channels is not None:
                    alone = _image_shown(channels, ours)
                    recognized |= {alone} if alone is not None else _among_others(channels.mean(axis=0), ours)
    return len(recognized)


def _channels(values: Array) -> Array | None:
    """A picture as (channels, height, width), with at most three channels; None if it is too small."""
    values = np.nan_to_num(np.asarray(values, dtype=np.float64))
    if values.ndim == 2:
        values = values[None]
    elif values.ndim == 3 and values.shape[0] not in (1, 3, 4):
        values = np.moveaxis(values, -1, 0)
    if values.ndim != 3 or min(values.shape[1:]) < FEWEST:
        return None
    return values[:3]


def _image_shown(channels: Array, ours: Array) -> int | None:
    """Which image a picture shows, in any size, colors and orientation."""
    cells = min(ours.shape[1:]) // BLOCK
    if cells < FEWEST_CELLS or min(channels.shape[1:]) < cells:
        return None
    shown = np.stack([_means(channel, cells) for channel in channels])
    originals = np.stack([_means(image, cells) for image in ours])
    best = [_likeness(shown, originals, turns, flips) for turns in range(4) for flips in (False, True)]
    number = int(np.argmax(np.max(best, axis=0)))
    return number if np.max(best) > LIKENESS else None


def _means(image: Array, cells: int) -> Array:
    """The means of the cells of an image, with this many per side."""
    rows, columns = (np.linspace(0, side, cells + 1).astype(int) for side in image.shape)
    sums = np.add.reduceat(np.add.reduceat(image, rows[:-1], axis=0), columns[:-1], axis=1)
    return sums / np.outer(np.diff(rows), np.diff(columns))


def _likeness(shown: Array, originals: Array, turns: int, flips: bool) -> Array:
    """How well each of our images is a sum of the shown channels: the multiple correlation, (images,)."""
    turned = np.rot90(shown[..., ::-1] if flips else shown, turns, axes=(1, 2)).reshape(len(shown), -1)
    columns = np.stack([*turned, np.ones(turned.shape[1])], axis=1)
    targets = originals.reshape(len(originals), -1).T
    rest = targets - columns @ np.linalg.lstsq(columns, targets, rcond=None)[0]
    share: Array = 1 - rest.var(axis=0) / np.maximum(targets.var(axis=0), 1e-12)
    return np.sqrt(np.clip(share, 0, 1))


def _among_others(picture: Array, ours: Array) -> set[int]:
    """Which images occur in a picture, in their own size or enlarged by an integer factor."""
    for times in range(1, MOST_TIMES + 1):
        small = picture[times // 2 :: times, times // 2 :: times]
        fits = all(side >= own_side for side, own_side in zip(small.shape, ours.shape[1:], strict=True))
        if fits and small.size <= MOST_PIXELS:
            numbers = _images_in_picture(small, ours)
            if numbers:
                return numbers
    return set()


def _images_in_picture(picture: Array, ours: Array) -> set[int]:
    """Which images, or their negatives, correlate with the picture somewhere in it."""
    transformed, window = np.fft.rfft2(picture), np.ones(ours.shape[1:]) / ours[0].size
    means = _windows(transformed, window, picture.shape)
    squares = _windows(np.fft.rfft2(picture * picture), window, picture.shape)
    spread = np.sqrt(np.maximum(squares - means**2, 0))
    flat = spread < 1e-3 * max(float(picture.std()), 1e-12)
    spread[flat] = np.inf
    numbers = set()
    for number, image in enumerate(ours):
        pattern = (image - image.mean()) / (image.std() * image.size)
        if bool((np.abs(_windows(transformed, pattern, picture.shape)) > LIKENESS * spread).any()):
            numbers.add(number)
    return numbers


def _windows(transformed: Array, pattern: Array, shape: tuple[int, int]) -> Array:
    """The sum of pattern times picture over each window of the pattern's size within the picture."""
    product = np.fft.irfft2(transformed * np.conj(np.fft.rfft2(pattern, shape)), shape)
    return product[: shape[0] - pattern.shape[0] + 1, : shape[1] - pattern.shape[1] + 1]
