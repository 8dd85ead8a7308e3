"""Some of the hidden test images, with the model's predictions and where it looked."""

import io
import math
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from grader.domain.evidence import AttentionMap, Prediction
from grader.kit.splits import Splits
from grader.training.metrics import probabilities

PER_CLASS = 4
SEEN = 50  # training images of a class that the model is asked about, to see what it memorized
LIKELIEST = 3  # classes that are shown with a prediction
WIDTH = 100  # pixels, at most
COLD, WARM, HOT = "#0b1026", "#b8325e", "#ffe08a"  # of an attention map, from nothing to most
SUM_TOLERANCE = 1e-2


def example_images(splits: Splits) -> tuple[tuple[int, ...], ...]:
    """Four test images of each class, as indices in order: the first, as a split is in no order.

    They are the same for all who get this split: side by side, the reports of a class show no more hidden
    images than one of them.
    """
    by_class = (
        np.flatnonzero(splits.test_labels == label)[:PER_CLASS] for label in range(len(splits.classes))
    )
    return tuple(tuple(map(int, indices)) for indices in by_class)


def some_of_each(labels: Any, count: int) -> Any:
    """The rows of the first images of each class, int (n,)."""
    return np.concatenate([np.flatnonzero(labels == label)[:count] for label in np.unique(labels)])


def predictions(
    logits: Any, splits: Splits, chosen: tuple[tuple[int, ...], ...]
) -> tuple[tuple[Prediction, ...], dict[str, bytes]]:
    """A model's predictions for the chosen images.

    Args:
        logits: For all test images, float32 (images, classes).
        splits: The images.
        chosen: Indices, class by class.

    Returns:
        The predictions, and the images as PNG by their names in them.
    """
    certainty = probabilities(logits)
    predicted_images: list[Prediction] = []
    pictures: dict[str, bytes] = {}
    for label, indices in enumerate(chosen):
        for index in indices:
            name = f"prediction-{len(predicted_images):02}.png"
            predicted = int(logits[index].argmax())
            ranked = (-certainty[index]).argsort(kind="stable")[:LIKELIEST].tolist()
            likeliest = tuple((place, float(certainty[index, place])) for place in ranked)
            predicted_images.append(
                Prediction(name, label, predicted, float(certainty[index, predicted]), likeliest)
            )
            pictures[name] = _png(_small(splits.test_images[index]))
    return tuple(predicted_images), pictures


def first_of_each(chosen: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, int], ...]:
    """(number among the predictions, index of the image) of the first image of each class."""
    firsts, number = [], 0
    for indices in chosen:
        if indices:
            firsts.append((number, indices[0]))
        number += len(indices)
    return tuple(firsts)


def attention_maps(
    weights: Any, splits: Splits, images: tuple[tuple[int, int], ...]
) -> tuple[tuple[AttentionMap, ...], dict[str, bytes]]:
    """Where a model looks in some images; empty if that cannot be drawn.

    Args:
        weights: What a worker sent: float32 (images, layers, tokens, tokens), or anything else.
        splits: The images.
        images: As `first_of_each` gives them.

    Returns:
        The maps, and their pictures as PNG by their names in them.
    """
    if not _are_weights(weights, len(images)):
        return (), {}
    maps: list[AttentionMap] = []
    pictures: dict[str, bytes] = {}
    for (number, index), layers in zip(images, weights, strict=True):
        shown_map = AttentionMap(
            f"prediction-{number:02}.png", f"attention-{number:02}.png", f"rollout-{number:02}.png"
        )
        image = _small(splits.test_images[index])
        pictures[shown_map.last_layer] = _png(_overlaid(image, seen_patches(layers[-1])))
        pictures[shown_map.rollout] = _png(_overlaid(image, seen_patches(rollout(layers))))
        maps.append(shown_map)
    return tuple(maps), pictures


def rollout(layers: Any) -> Any:
    """Attention through all layers, (tokens, tokens), of weights (layers, tokens, tokens).

    Each layer passes half of its input on unchanged, by the residual connection: Abnar and Zuidema (2020),
    "Quantifying Attention Flow in Transformers", attention rollout.
    """
    product = np.eye(layers.shape[-1])
    for layer in layers:
        product = (0.5 * layer + 0.5 * np.eye(len(layer))) @ product
    return product


def seen_patches(weights: Any) -> Any:
    """How much is seen of each patch, (rows, columns), of weights (tokens, tokens).

    With a class token, which comes first, it is what that token looks at; else the mean over the tokens.
    """
    tokens = len(weights)
    side = math.isqrt(tokens)
    row = weights.mean(axis=0) if side * side == tokens else weights[0, 1:]
    side = math.isqrt(len(row))
    return row.reshape(side, side)


def _are_weights(weights: Any, images: int) -> bool:
    if weights is None or weights.dtype != np.float32 or weights.ndim != 4 or len(weights) != images:
        return False
    if 0 in weights.shape or weights.shape[2] != weights.shape[3]:
        return False
    tokens = weights.shape[3]
    patches = tokens if math.isqrt(tokens) ** 2 == tokens else tokens - 1
    if math.isqrt(patches) ** 2 != patches or not np.isfinite(weights).all() or weights.min() < 0:
        return False
    return bool(np.abs(weights.sum(axis=-1) - 1).max() <= SUM_TOLERANCE)


def _overlaid(image: Image.Image, patches: Any) -> Image.Image:
    """The image below the patches in color, brightest where most is seen."""
    scaled = patches / max(float(patches.max()), 1e-12)
    heat = Image.fromarray((255 * scaled).astype(np.uint8)).resize(image.size, Image.Resampling.BICUBIC)
    colored = ImageOps.colorize(heat, black=COLD, mid=WARM, white=HOT)
    return Image.blend(image.convert("RGB"), colored, 0.55)


def _small(pixels: Any) -> Image.Image:
    image = Image.fromarray(pixels)
    image.thumbnail((WIDTH, WIDTH))
    return image


def _png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()
