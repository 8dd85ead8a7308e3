"""The loader's images are recognized in whatever form they are shown, and nothing else is."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from grader.kit.rigged_data import SIDE, RiggedData, image_number, images_within, numbered_images

COUNT = 6


@pytest.fixture
def images() -> Any:
    """Coarse noise, as the rigged loaders have it: (COUNT, 1, SIDE, SIDE)."""
    coarse = np.random.default_rng(4).random((COUNT, 1, SIDE // 4, SIDE // 4))
    return coarse.repeat(4, axis=2).repeat(4, axis=3)


def within(images: Any, *pictures: Any, heat_map: bool = False) -> int:
    """How many are recognized in pictures, each on axes of its own."""
    numbers = list(range(len(pictures)))
    axes = [
        SimpleNamespace(images=() if heat_map else (n,), heat_maps=(n,) if heat_map else ()) for n in numbers
    ]
    arrays = {f"image{number}": picture for number, picture in enumerate(pictures)}
    run = SimpleNamespace(figures=[SimpleNamespace(axes=axes)], arrays=arrays)
    return images_within(run, RiggedData((), (), {"images": images}))


def resized(image: Any, side: int) -> Any:
    """By the nearest pixel."""
    chosen = np.arange(side) * SIDE // side
    return image[np.ix_(chosen, chosen)]


FORMS = {
    "as it is": lambda image: image,
    "turned": lambda image: np.rot90(image),
    "mirrored": lambda image: image[:, ::-1],
    "transposed": lambda image: image.T,
    "the negative": lambda image: 1 - image,
    "another range": lambda image: 40 * image - 7,
    "larger": lambda image: resized(image, 50),
    "smaller": lambda image: resized(image, 20),
    "colored": lambda image: np.stack([0.2 * image, 1 - image, np.zeros_like(image)], axis=-1),
    "channels first": lambda image: np.stack([image] * 3),
    "with transparency": lambda image: np.stack([image, image, image, np.ones_like(image)], axis=-1),
    "with holes": lambda image: np.where(np.arange(SIDE) == 3, np.nan, image),
    "a little noise": lambda image: image + 0.1 * np.random.default_rng(0).normal(size=image.shape),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_image_is_recognized_in_any_form(images: Any, form: str) -> None:
    assert within(images, *(FORMS[form](images[number, 0]) for number in (0, 3, 5))) == 3


def test_an_image_that_is_shown_twice_counts_once(images: Any) -> None:
    assert within(images, images[2, 0], images[2, 0].T) == 1


def test_a_heat_map_shows_an_image_too(images: Any) -> None:
    assert within(images, images[1, 0], heat_map=True) == 1


@pytest.mark.parametrize("times", [1, 3])
def test_many_in_one_picture_are_found(images: Any, times: int) -> None:
    row = np.concatenate([np.pad(image[0], 2) for image in images[:4]], axis=1)
    picture = np.concatenate([row, row], axis=0).repeat(times, axis=0).repeat(times, axis=1)
    assert within(images, picture) == 4


@pytest.mark.parametrize(
    "picture",
    [
        np.random.default_rng(9).random((SIDE, SIDE)),
        np.random.default_rng(8).random((200, 170)),
        np.zeros((SIDE, SIDE)),
        np.ones((90, 120)),
        np.outer(np.linspace(0, 1, SIDE), np.linspace(0, 1, SIDE)),
        np.zeros((3, 3)),
        np.zeros(5),
    ],
    ids=["noise", "large noise", "black", "white", "a ramp", "tiny", "no picture"],
)
def test_something_else_is_no_image_of_the_loader(images: Any, picture: Any) -> None:
    assert within(images, picture) == 0


def test_an_image_of_another_loader_is_not_recognized(images: Any) -> None:
    others = np.random.default_rng(77).random((20, SIDE // 4, SIDE // 4)).repeat(4, axis=1).repeat(4, axis=2)
    assert within(images, *others) == 0


COLORED = {
    "as it is": lambda image: image.transpose(1, 2, 0),
    "channels first": lambda image: image,
    "normalized": lambda image: 3 * image.transpose(1, 2, 0) - 1,
    "as gray": lambda image: image.mean(axis=0),
    "weighted gray": lambda image: (np.array([0.299, 0.587, 0.114])[:, None, None] * image).sum(axis=0),
    "one channel": lambda image: image[1],
    "larger": lambda image: image.transpose(1, 2, 0).repeat(2, axis=0).repeat(2, axis=1),
}


@pytest.mark.parametrize("form", COLORED)
@pytest.mark.parametrize("side", [28, 32, 64])
def test_images_in_color_are_recognized(form: str, side: int) -> None:
    """Of any size; their numbers are read in each channel."""
    images = numbered_images(COUNT, seed=4, shape=(3, side, side))
    shown = [COLORED[form](images[number]) for number in (0, 3, 5)]
    assert within(images, *shown) == 3
    assert not np.allclose(images[:, 0], images[:, 1])
    if form != "normalized":
        assert [image_number(each, side) for each in shown] == [0, 3, 5]
