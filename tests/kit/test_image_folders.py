"""Images are decoded as they are: gray stays gray, color stays color."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from grader.kit.image_folders import folder_images

CLASSES = ("a", "b")


def encoded(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()


def picture(seed: int, mode: str, size: tuple[int, int] = (6, 5)) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(pixels).convert(mode)


@pytest.fixture
def zipped(tmp_path: Path):
    """A zip of two images in each of two classes."""

    def of(*images: Image.Image) -> Path:
        path = tmp_path / "data.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for number, image in enumerate(images):
                archive.writestr(f"{CLASSES[number % 2]}/{number}.png", encoded(image))
        return path

    return of


def test_color_stays_color(zipped) -> None:
    images = [picture(seed, "RGB") for seed in range(4)]
    found = folder_images(zipped(*images), "colored", CLASSES)
    assert found.images.shape == (4, 5, 6, 3) and found.names == ("a/0.png", "a/2.png", "b/1.png", "b/3.png")
    np.testing.assert_array_equal(found.images[1], np.asarray(images[2]))


def test_three_equal_channels_are_gray(zipped) -> None:
    images = [picture(seed, "L").convert("RGB") for seed in range(4)]
    found = folder_images(zipped(*images), "gray", CLASSES)
    assert found.images.shape == (4, 5, 6)
    np.testing.assert_array_equal(found.images[0], np.asarray(images[0])[..., 0])


def test_one_image_in_color_makes_all_so(zipped) -> None:
    images = [picture(0, "L"), picture(1, "P"), picture(2, "LA"), picture(3, "RGBA", (9, 9))]
    found = folder_images(zipped(*images), "mixed", CLASSES)
    assert found.images.shape == (4, 5, 6, 3)
    np.testing.assert_array_equal(found.images[0], np.asarray(images[0])[..., None].repeat(3, axis=2))
