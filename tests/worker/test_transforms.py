"""The grader's images under a student's transform: the same as if it were applied whole, only sooner."""

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms as T
from torchvision.transforms import v2

from grader.worker.graded_images import GradedImages
from grader.worker.transforms import (
    divided,
    handed_out_transform,
    is_deterministic,
    of_pictures,
    without_chance,
)


def images(count: int, *shape: int) -> Any:
    """Gray or RGB noise."""
    return np.random.default_rng(5).integers(0, 255, (count, *shape)).astype(np.uint8)


def test_deterministic_transform_is_applied_once_per_image() -> None:
    """What is known to do the same always is not repeated for every epoch."""
    data = GradedImages(images(3, 9, 9), np.array([2, 0, 1]), ("a", "b", "c"), handed_out_transform(6, 1))
    assert data[0][0] is data[0][0]
    assert data[1][0].shape == (1, 6, 6)
    assert (data.targets, data.classes) == ([2, 0, 1], ["a", "b", "c"])
    assert (data.class_to_idx["b"], data.samples[2][1], len(data)) == (1, 1, 3)
    hidden = GradedImages(images(3, 9, 9), None, ("a",), handed_out_transform(6, 3))
    assert hidden.targets == [0, 0, 0]
    assert hidden.batch(1, 3).shape == (2, 3, 6, 6)


def test_transforms_are_known_as_deterministic_only_where_they_are() -> None:
    """Compositions are as random as their parts; what is unknown counts as random."""
    fixed = T.Compose([T.Resize(8), T.Compose([T.Grayscale()]), T.ToTensor(), T.Normalize((0.5,), (0.5,))])
    assert is_deterministic(fixed)
    assert not is_deterministic(T.Compose([fixed, T.RandomRotation(3)]))
    assert not is_deterministic(T.RandomApply([T.ToTensor()]))
    assert not is_deterministic(T.Lambda(lambda x: x))
    assert not is_deterministic(lambda x: x)
    assert not is_deterministic(type("Resize", (), {})())


SMALL, GRAY, TENSOR, FLIP = T.Resize(12), T.Grayscale(), T.ToTensor(), T.RandomHorizontalFlip()
# what it is -> (its parts, how many of them are done once, how many each time)
COMPOSED: dict[str, tuple[list[Any], int, int]] = {
    "flips before the tensor": ([SMALL, GRAY, FLIP, T.RandomVerticalFlip(0.3), TENSOR], 3, 2),
    "a flip, then normalized": ([SMALL, FLIP, TENSOR, T.Normalize(0.5, 0.5)], 3, 1),
    "a flip before a resize": ([GRAY, FLIP, SMALL, TENSOR], 1, 3),
    "a rotation before the tensor": ([SMALL, T.RandomRotation(30), GRAY, TENSOR], 1, 3),
    "erasing in place": ([TENSOR, T.RandomErasing(1.0, inplace=True)], 1, 1),
    "compositions in one": ([T.Compose([SMALL, FLIP]), T.Compose([TENSOR])], 2, 1),
    "own code": ([SMALL, TENSOR, lambda image: image.mul_(2.0 + torch.rand(1))], 2, 1),
    "nothing certain": ([FLIP, T.RandomCrop(8), TENSOR], 0, 3),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_a_random_transform_gives_what_it_gives_when_applied_whole(name: str) -> None:
    """With the same random numbers, whatever of it is done once, and in every epoch."""
    parts, once, each = COMPOSED[name]
    transform = T.Compose(parts)
    steps = divided(transform)
    assert [len(getattr(step, "transforms", ())) for step in (steps.once, steps.each)] == [once, each]
    pictures = images(6, 16, 16)
    data = GradedImages(pictures, None, ("a",), transform)
    torch.manual_seed(3)
    got = [data[index][0] for index in (*range(6), *range(6))]
    torch.manual_seed(3)
    wanted = [transform(Image.fromarray(one).convert("RGB")) for one in (*pictures, *pictures)]
    assert all(torch.equal(one, other) for one, other in zip(got, wanted, strict=True))
    assert len({tuple(one.flatten().tolist()) for one in wanted}) > 6 or name == "own code", (
        "chance is at work"
    )


def test_images_that_would_fill_the_memory_are_transformed_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half transformed they may be much larger than as they came."""
    monkeypatch.setattr("grader.worker.graded_images.MOST_BYTES", 6 * 16 * 16 * 3 - 1)
    random = T.Compose([T.Resize(16), T.RandomHorizontalFlip(), T.ColorJitter(), T.ToTensor()])
    data = GradedImages(images(6, 16, 16), None, ("a",), random)
    assert data._kept is None and data[0][0].shape == (3, 16, 16)


SURE = [SMALL, GRAY, TENSOR]
RANDOM: dict[str, Any] = {
    "a rotation": T.Compose([SMALL, T.RandomRotation(90), GRAY, TENSOR]),
    "a composition in one": T.Compose([T.Compose([SMALL, T.RandomRotation(90)]), GRAY, TENSOR]),
    "the second version's": v2.Compose([SMALL, v2.ColorJitter(0.5), GRAY, TENSOR]),
    "an elastic one": T.Compose([SMALL, GRAY, T.ElasticTransform(9.0, sigma=1.0), TENSOR]),
}


@pytest.mark.parametrize("name", RANDOM)
def test_measured_images_meet_no_chance(name: str) -> None:
    """A student's one transform, augmentation and all, serves for the test images too."""
    [picture] = images(1, 24, 24)
    certain = without_chance(RANDOM[name], picture)
    given = Image.fromarray(picture).convert("RGB")
    assert torch.equal(certain(given), T.Compose(SURE)(given))
    assert torch.equal(certain(given), certain(given))


def test_a_transform_that_needs_its_chance_keeps_it() -> None:
    """Without it, the images would have another shape."""
    [picture] = images(1, 24, 24)
    grown = T.Compose([SMALL, T.RandomRotation((45, 45), expand=True), GRAY, TENSOR])
    assert without_chance(grown, picture) is grown


class Centered:
    """A student's own step, which takes tensors alone."""

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        """Around 0."""
        return image - torch.tensor(0.5)


def test_a_transform_that_takes_tensors_is_given_them() -> None:
    """As a data set of the student's own does; one that takes pictures is what it was."""
    image = images(1, 6, 6, 3)[0]
    picture = Image.fromarray(image)
    for own in (Centered(), T.Compose([Centered(), T.CenterCrop(4)])):
        made = of_pictures(own, image)
        assert torch.allclose(made(picture), own(T.ToTensor()(picture)))
    plain = T.Compose([T.ToTensor(), Centered()])
    assert of_pictures(plain, image) is plain


class Mirrored:
    """A student's own step, which takes arrays alone."""

    def __call__(self, pixels: Any) -> Any:
        """Left is right."""
        return np.pad(pixels, ((1, 1), (0, 0), (0, 0)))[1 : 1 + pixels.shape[0], ::-1].copy()


def test_steps_that_take_arrays_are_given_them() -> None:
    """A data set of the student's own that holds arrays does its steps in their order."""
    image = images(1, 6, 6, 3)[0]
    made = of_pictures([Mirrored(), T.ToTensor()], image)
    assert torch.equal(made(Image.fromarray(image)), T.ToTensor()(image[:, ::-1].copy()))


@pytest.mark.parametrize(("channels", "shape"), [(1, (1, 6, 6)), (3, (3, 6, 6)), (None, (3, 6, 6))])
def test_gray_pictures_are_given_where_the_model_takes_one_channel(
    channels: int | None, shape: tuple[int, ...]
) -> None:
    """A data set of the student's own may open them so; a transform that grays them is what it was."""
    image = images(1, 6, 6)[0]
    picture = Image.fromarray(image).convert("RGB")
    made = of_pictures(T.Compose([T.ToTensor(), Centered()]), image, channels)(picture)
    assert made.shape == shape
    assert torch.equal(made[0], (T.ToTensor()(image) - 0.5)[0])
    own = T.Compose([T.Grayscale(), T.ToTensor()])
    assert of_pictures(own, image, 1) is own


def test_a_transform_that_takes_nothing_stays_as_it_is() -> None:
    """What is wrong with it shows where it is applied."""
    image = images(1, 6, 6, 3)[0]
    broken = T.Normalize((0.5,) * 5, (0.5,) * 5)
    assert of_pictures(broken, image) is broken
