"""A picture of a data set: some training images of each class, for a person to look at."""

from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from grader.kit import Splits

TILE = 120  # pixels, width and height of an image
GAP = 8
MARGIN = 40
LABELS = 190  # width of the column of class names
HEADER = 96
ROW_GAP = 14

PAPER = (255, 255, 255)
INK = (28, 32, 38)
GRAY = (110, 118, 129)
LINE_COLOR = (222, 226, 231)


def write_preview(splits: Splits, destination: Path, *, per_class: int = 8) -> None:
    """Write a PNG with a row of training images for each class.

    The images are spread evenly over the class's training images in their order, so that the same splits
    give the same picture.

    Args:
        splits: The data set.
        destination: The PNG file; its folder is made when it is absent.
        per_class: Images in a row, at least 1; a class that has fewer leaves the rest of its row empty.
    """
    columns = max(1, per_class)
    classes = len(splits.classes)
    width = 2 * MARGIN + LABELS + columns * TILE + (columns - 1) * GAP
    height = HEADER + classes * TILE + (classes - 1) * ROW_GAP + MARGIN
    sheet = Image.new("RGB", (max(width, 560), height), PAPER)
    pen = ImageDraw.Draw(sheet)
    _draw_header(pen, splits, sheet.width)
    for label, name in enumerate(splits.classes):
        top = HEADER + label * (TILE + ROW_GAP)
        chosen = np.flatnonzero(splits.train_labels == label)
        _draw_label(pen, name, top, len(chosen), int((splits.test_labels == label).sum()))
        shown = np.linspace(0, len(chosen) - 1, min(columns, len(chosen))).round().astype(int)
        for column, row in enumerate(chosen[shown].tolist()):
            left = MARGIN + LABELS + column * (TILE + GAP)
            sheet.paste(_tile(splits.train_images[row]), (left, top))
    encoded = BytesIO()
    sheet.save(encoded, format="PNG", optimize=True)
    destination.parent.mkdir(parents=True, exist_ok=True)
    destination.write_bytes(encoded.getvalue())


def _draw_header(pen: ImageDraw.ImageDraw, splits: Splits, width: int) -> None:
    rows, columns = splits.train_images.shape[1:3]
    kind = "gray" if splits.train_images.ndim == 3 else "color"
    counts = (
        f"{len(splits.train_images):,} training and {len(splits.test_images):,} test images, "
        f"{columns} x {rows} pixels, {kind}"
    )
    pen.text((MARGIN, 40), splits.name, INK, font=ImageFont.load_default(size=28), anchor="ls")
    pen.text((MARGIN, 64), counts, GRAY, font=ImageFont.load_default(size=15), anchor="ls")
    pen.line((MARGIN, 78, width - MARGIN, 78), LINE_COLOR, 1)


def _draw_label(pen: ImageDraw.ImageDraw, name: str, top: int, training: int, test: int) -> None:
    """The class's name, as large as the column allows, above its counts."""
    size = 19
    room = LABELS - 20
    font = ImageFont.load_default(size=size)
    while pen.textlength(name, font=font) > room and size > 10:
        size -= 1
        font = ImageFont.load_default(size=size)
    while pen.textlength(name, font=font) > room:
        name = name.rstrip(".")[:-1] + "..."
    middle = top + TILE // 2
    pen.text((MARGIN, middle - 2), name, INK, font=font, anchor="ls")
    counts = f"{training} train, {test} test"
    pen.text((MARGIN, middle + 20), counts, GRAY, font=ImageFont.load_default(size=14), anchor="ls")


def _tile(image: NDArray[np.uint8]) -> Image.Image:
    """The image, (height, width) or (height, width, 3), fitted into a square without distortion."""
    picture = Image.fromarray(image).convert("RGB")
    scale = TILE / max(picture.size)
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    small = min(picture.size) < TILE / 3  # enlarged pixels should look like pixels
    fitted = picture.resize(size, Image.Resampling.NEAREST if small else Image.Resampling.LANCZOS)
    tile = Image.new("RGB", (TILE, TILE), PAPER)
    tile.paste(fitted, ((TILE - size[0]) // 2, (TILE - size[1]) // 2))
    return tile
