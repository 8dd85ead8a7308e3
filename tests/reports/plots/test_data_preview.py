"""The picture grid of a data set."""

import numpy as np
import pytest
from PIL import Image

from grader.kit import Splits
from grader.reports.plots import data_preview as preview
from grader.reports.plots.data_preview import write_preview


def splits_of(per_class=10, classes=("bright", "dark_and_a_very_long_name_for_a_class"), shape=(40, 40)):
    n = per_class * len(classes)
    labels = np.repeat(np.arange(len(classes), dtype=np.int64), per_class)
    images = np.empty((n, *shape), dtype=np.uint8)
    for row in range(n):
        images[row] = 200 - 100 * labels[row]
    names = tuple(str(row) for row in range(n))
    test = tuple(f"t{row}" for row in range(n))
    return Splits("toy", classes, images, labels, names, images, labels, test)


def opened(path):
    with Image.open(path) as sheet:
        sheet.load()
        return sheet


def tile(sheet, row, column):
    """The mean color of a tile."""
    left = preview.MARGIN + preview.LABELS + column * (preview.TILE + preview.GAP)
    top = preview.HEADER + row * (preview.TILE + preview.ROW_GAP)
    pixels = np.asarray(sheet)[top : top + preview.TILE, left : left + preview.TILE]
    return pixels.reshape(-1, 3).mean(axis=0)


def test_a_row_of_images_for_each_class(tmp_path):
    write_preview(splits_of(), tmp_path / "new" / "grid.png", per_class=5)
    sheet = opened(tmp_path / "new" / "grid.png")
    assert sheet.format == "PNG" and sheet.mode == "RGB"
    for column in range(5):
        np.testing.assert_array_equal(tile(sheet, 0, column), 200)
        np.testing.assert_array_equal(tile(sheet, 1, column), 100)
    beside = np.asarray(sheet)[:, preview.MARGIN : preview.MARGIN + preview.LABELS - 10]
    assert (beside[preview.HEADER :] < 128).any()  # names are written
    gap = np.asarray(sheet)[
        preview.HEADER :,
        preview.MARGIN + preview.LABELS - 10 : preview.MARGIN + preview.LABELS,
    ]
    assert (gap == 255).all()  # and a long one does not run into its images


def test_a_small_class_leaves_its_row_free(tmp_path):
    write_preview(splits_of(per_class=2), tmp_path / "grid.png", per_class=8)
    sheet = opened(tmp_path / "grid.png")
    assert (tile(sheet, 0, 1) == 200).all() and (tile(sheet, 0, 2) == 255).all()


@pytest.mark.parametrize("shape", [(1, 1), (28, 28, 3), (60, 20), (300, 200, 3)])
def test_sizes_and_channels(tmp_path, shape):
    write_preview(splits_of(shape=shape), tmp_path / "grid.png", per_class=1)
    assert opened(tmp_path / "grid.png").width >= 560


def test_images_keep_their_proportions(tmp_path):
    write_preview(splits_of(shape=(60, 20)), tmp_path / "grid.png", per_class=1)
    expected = (200 * 40 + 255 * 80) / 120
    np.testing.assert_allclose(tile(opened(tmp_path / "grid.png"), 0, 0), expected)


def test_the_same_splits_give_the_same_bytes(tmp_path):
    for name in ("one.png", "two.png"):
        write_preview(splits_of(), tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
