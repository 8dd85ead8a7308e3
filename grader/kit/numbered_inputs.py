"""Rigged images and tokens: random, and each has its number written into it, so that it is recognized."""

from typing import Any

import numpy as np

ID_BITS = 10  # that carry an image's number
BLOCK = 4  # pixels per side of a cell of the noise
TINT = 0.3  # the share of the noise in which the channels differ
SIDE = 28
SHAPE = (1, SIDE, SIDE)  # channels, height, width: where a check does not say

Array = Any
Shape = tuple[int, int, int]


def numbered_images(count: int, seed: int, shape: Shape = SHAPE) -> Array:
    """Images of coarse noise, float32 (count, channels, height, width) in [-1, 1], each with its number.

    The signs of the first 10 pixels, row by row, are the number's bits, lowest first. The channels differ,
    but less than the images do: whoever shows one of them, or their mean, shows the image.

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
    """The number written in a shown image, (height, width[, channels]), whatever its scale; else None.

    An image that was enlarged by a whole number is read at the middle of its pixels.

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
    """The numbers with which sequences begin, int64 (batch,); -1 where that is the number of none.

    Args:
        tokens: Whole numbers, (batch, length); what is behind the number may be cut off or be longer.
        count, vocabulary: As they were made with.
    """
    digits = _digits(count, vocabulary)
    given = np.asarray(tokens)
    if given.shape[1] < digits:
        return np.full(len(given), -1)
    first = given[:, :digits]
    numbers: Array = first @ vocabulary ** np.arange(digits)
    known = ((first >= 0) & (first < vocabulary)).all(axis=1) & (numbers < count)
    return np.where(known, numbers, -1)


def _digits(count: int, vocabulary: int) -> int:
    """How many tokens tell so many sequences apart."""
    if vocabulary < 2:
        raise ValueError(f"A vocabulary of {vocabulary}: two tokens are needed to tell sequences apart.")
    digits = 1
    while vocabulary**digits < count:
        digits += 1
    return digits
