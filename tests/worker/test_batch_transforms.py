"""Random transforms of a batch: the random numbers and the pixels that torchvision gives, image by image."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, Subset
from torchvision import transforms as T
from torchvision.transforms import v2

from grader.worker.batch_steps import stacked
from grader.worker.graded_images import GradedImages, batch_transform

NORMAL = T.Normalize((0.5,), (0.5,))
BATCHED: dict[str, list[Any]] = {
    "a usual augmentation": [
        *(T.RandomHorizontalFlip(), T.RandomVerticalFlip(0.3), T.RandomRotation(15)),
        *(T.ColorJitter(0.2, 0.2), T.ToTensor(), NORMAL),
    ],
    "a rotation by any angle": [T.RandomRotation((-180, 180), fill=7), T.ToTensor()],
    "a rotation by a right angle": [T.RandomRotation((90, 90)), T.ToTensor()],
    "an affine transform": [
        T.RandomAffine(10, translate=(0.1, 0.1), scale=(0.8, 1.2), shear=5, fill=3),
        T.ToTensor(),
    ],
    "a shift": [T.RandomAffine(0, translate=(0.2, 0.1)), T.ToTensor()],
    "a scale": [T.RandomAffine(0, scale=(0.5, 2.0)), T.ToTensor()],
    "an extreme scale": [T.RandomAffine(5, scale=(0.0001, 0.001)), T.ToTensor()],
    "a crop": [T.RandomCrop(12, padding=(1, 2, 3, 4), fill=9), T.ToTensor()],
    "a crop of all": [T.RandomCrop((17, 23)), T.ToTensor()],
    "a crop, mirrored beyond the edge": [
        T.RandomCrop((17, 15), padding=(4, 2), padding_mode="reflect"),
        *(T.RandomHorizontalFlip(), T.ToTensor(), NORMAL),
    ],
    "a crop, repeated beyond the edge": [T.RandomCrop(16, padding=3, padding_mode="edge"), T.ToTensor()],
    "a strong jitter": [T.ColorJitter(0.9, (0.1, 3.0), 0.9), T.ToTensor()],
    "a jitter, then gray": [T.ColorJitter(0.4, 0.4, 0.4), T.Grayscale(3), T.ToTensor()],
    "compositions in one": [T.Compose([T.RandomRotation(5)]), T.Compose([T.ToTensor(), NORMAL])],
}


class Tilted(T.RandomRotation):
    """A student's own: it is not a RandomRotation."""

    def forward(self, img: Any) -> Any:
        """Rotated, and then some."""
        return super().forward(img).transpose(Image.Transpose.FLIP_LEFT_RIGHT)


ONE_BY_ONE: dict[str, list[Any]] = {
    "a hue": [T.ColorJitter(hue=0.1), T.ToTensor()],
    "smoothed": [T.RandomRotation(5, interpolation=T.InterpolationMode.BILINEAR), T.ToTensor()],
    "around a corner": [T.RandomRotation(5, center=(0, 0)), T.ToTensor()],
    "made larger": [T.RandomRotation(5, expand=True), T.ToTensor()],
    "a rotated tensor": [T.ToTensor(), T.RandomRotation(5)],
    "padded where it must be": [T.RandomCrop(60, pad_if_needed=True), T.ToTensor()],
    "a crop that is too large": [T.RandomCrop(60), T.ToTensor()],
    "padded by less than nothing": [T.RandomCrop(5, padding=-1), T.ToTensor()],
    "own code": [lambda image: image, T.ToTensor()],
    "an own class": [Tilted(5), T.ToTensor()],
    "the second version": [v2.RandomRotation(5), T.ToTensor()],
    "no tensor": [T.RandomRotation(5)],
}


def pictures(count: int, bands: int) -> list[Image.Image]:
    """Noise, 17 x 23."""
    shape = (count, 17, 23) if bands == 1 else (count, 17, 23, 3)
    noise = np.random.default_rng(5).integers(0, 256, shape).astype(np.uint8)
    return [Image.fromarray(one) for one in noise]


@pytest.mark.parametrize("bands", [1, 3])
@pytest.mark.parametrize("name", BATCHED)
def test_a_batch_is_what_its_images_are_one_by_one(name: str, bands: int) -> None:
    """Not a pixel differs, and the next random number is the same."""
    transform, values = T.Compose(BATCHED[name]), pictures(40, bands)
    batched = batch_transform(transform, values)
    assert batched is not None
    for seed in range(5):
        torch.manual_seed(seed)
        wanted, then = torch.stack([transform(value) for value in values]), torch.rand(1)
        torch.manual_seed(seed)
        assert torch.equal(batched(stacked(values)), wanted) and torch.rand(1) == then


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_what_cannot_be_done_at_once_is_left_as_it_is(name: str) -> None:
    """Nothing is guessed."""
    assert batch_transform(T.Compose(ONE_BY_ONE[name]), pictures(4, 3)) is None


def test_a_batch_that_would_differ_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a torchvision or a Pillow that does something else than the ones we know."""
    values, transform = pictures(12, 1), T.Compose([T.ColorJitter(0.5), T.ToTensor()])
    assert batch_transform(transform, values) is not None
    monkeypatch.setattr(T.functional, "adjust_brightness", lambda image, factor: image)
    assert batch_transform(transform, values) is None


def test_to_find_out_uses_no_random_numbers() -> None:
    """A training gives the same with and without."""
    torch.manual_seed(3)
    wanted = torch.rand(1)
    torch.manual_seed(3)
    batch_transform(T.Compose(BATCHED["a usual augmentation"]), pictures(12, 1))
    assert torch.rand(1) == wanted


class OneByOne(Dataset[Any]):
    """Items of a folder, each transformed when it is asked for."""

    def __init__(self, images: Any, transform: Any) -> None:
        self.images, self.transform = images, transform

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Any:
        return self.transform(Image.fromarray(self.images[index]).convert("RGB")), index


@pytest.mark.parametrize("subset", [False, True])
def test_a_loader_delivers_what_it_would_from_a_folder(subset: bool) -> None:
    """In the same order, with the same random numbers, for two epochs."""
    images = np.random.default_rng(5).integers(0, 256, (50, 20, 20)).astype(np.uint8)
    usual = [T.Resize(12), T.Grayscale(), *BATCHED["a usual augmentation"]]
    delivered = []
    for dataset in (
        GradedImages(images, np.arange(50), ("a",), T.Compose(usual)),
        OneByOne(images, T.Compose(usual)),
    ):
        torch.manual_seed(3)
        loader = DataLoader(Subset(dataset, range(5, 45)) if subset else dataset, batch_size=16, shuffle=True)
        delivered.append([batch for _ in range(2) for batch in loader])
    assert len(delivered[0]) == len(delivered[1]) == (6 if subset else 8)
    for (got, numbers), (wanted, others) in zip(*delivered, strict=True):
        assert torch.equal(got, wanted) and torch.equal(numbers, others)


def augmented() -> tuple[GradedImages, Any]:
    """Six images, and the transform that is made for each."""
    images = np.random.default_rng(5).integers(0, 256, (6, 20, 20)).astype(np.uint8)
    transform = T.Compose([T.Resize(12), T.Grayscale(), T.RandomRotation(9), T.ToTensor()])
    return GradedImages(images, np.arange(6), ("a",), transform), transform


def delivered(data: GradedImages, indices: list[Any]) -> list[Any]:
    """What a loader gets of them, from the same random numbers."""
    torch.manual_seed(3)
    return data.items(indices)


def one_by_one(data: GradedImages, indices: list[int]) -> list[Any]:
    """What the transform makes of each, from the same random numbers."""
    torch.manual_seed(3)
    return [data.transform(data._opened(index)) for index in indices]


def test_whatever_counts_as_an_index_is_one() -> None:
    """Numbers of numpy and PyTorch, and from the end."""
    data, _ = augmented()
    assert data._batched is not None
    got = delivered(data, [torch.tensor(2), np.int64(3), -1])
    wanted = one_by_one(data, [2, 3, 5])
    assert all(torch.equal(one, other) for (one, _), other in zip(got, wanted, strict=True))
    assert [label for _, label in got] == [2, 3, 5]
    assert data.items([]) == []
    with pytest.raises(IndexError):
        data[6]
    with pytest.raises(IndexError):
        data.items([6])


class Inverted(Dataset[Any]):
    """A student's data set around another one, which hands on what it does not have itself."""

    def __init__(self, inner: GradedImages) -> None:
        self.inner = inner

    def __getitem__(self, index: int) -> Any:
        image, label = self.inner[index]
        return 1 - image, label

    def __len__(self) -> int:
        return len(self.inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner"], name)


class InvertedInOtherWords(Inverted):
    """The same, by a function that has another name."""

    __getattr__ = lambda self, name: getattr(self.__dict__["inner"], name)  # noqa: E731


class InvertedImages(GradedImages):
    """One that is derived from the grader's."""

    def __init__(self, inner: GradedImages) -> None:
        self.__dict__.update(inner.__dict__)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image, label = super().__getitem__(index)
        return 1 - image, label


@pytest.mark.parametrize("kind", [Inverted, InvertedInOtherWords, InvertedImages])
def test_what_a_data_set_around_it_does_is_not_passed_by(kind: Callable[[GradedImages], Any]) -> None:
    """Whatever it hands on: also inside of a subset."""
    data, _ = augmented()
    around = kind(data)
    assert around.classes == ["a"]
    for one, other in ((around, data), (Subset(around, [4, 1]), Subset(data, [4, 1]))):
        batches = []
        for dataset in (one, other):
            torch.manual_seed(3)
            batches.append(next(iter(DataLoader(dataset, batch_size=6)))[0])
        assert torch.equal(batches[0], 1 - batches[1])


def turned_further(data: GradedImages) -> None:
    """Another parameter of a part that chance is left to."""
    data.transform.transforms[2].degrees = [40.0, 50.0]


def made_smaller(data: GradedImages) -> None:
    """Another parameter of a part that is done once."""
    data.transform.transforms[0].size = 7


def one_more(data: GradedImages) -> None:
    """A part more."""
    data.transform.transforms.append(T.Normalize((0.5,), (0.5,)))


def another(data: GradedImages) -> None:
    """Another transform altogether."""
    data.transform = T.Compose([T.Resize(9), T.RandomVerticalFlip(), T.ToTensor()])


@pytest.mark.parametrize("change", [turned_further, made_smaller, one_more, another])
def test_a_change_of_the_transform_counts_from_then_on(change: Any) -> None:
    """As for training that begins easily and becomes harder."""
    data, _ = augmented()
    before = delivered(data, [0, 1, 2])
    change(data)
    after, wanted = delivered(data, [0, 1, 2]), one_by_one(data, [0, 1, 2])
    assert all(torch.equal(one, other) for (one, _), other in zip(after, wanted, strict=True))
    assert not any(torch.equal(one, other) for (one, _), (other, _) in zip(before, after, strict=True))
    torch.manual_seed(3)
    assert torch.equal(data[0][0], wanted[0])


def test_a_transform_that_changes_all_the_time_is_applied_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is done once for the next batch only."""
    monkeypatch.setattr("grader.worker.graded_images.MOST_CHANGES", 2)
    data, transform = augmented()
    for degrees in range(20, 26):
        transform.transforms[2].degrees = [float(degrees), 30.0]
        got, wanted = delivered(data, [0, 1]), one_by_one(data, [0, 1])
        assert all(torch.equal(one, other) for (one, _), other in zip(got, wanted, strict=True))
    assert data._kept is None and data._batched is None


def test_large_images_are_transformed_one_by_one() -> None:
    """In a batch they take longer, and more memory."""
    transform = T.Compose([T.RandomRotation(9), T.ToTensor()])
    noise = np.random.default_rng(5).integers(0, 256, (4, 90, 90)).astype(np.uint8)
    assert batch_transform(transform, [Image.fromarray(one) for one in noise]) is None
    assert batch_transform(transform, [Image.fromarray(one[:80, :80]) for one in noise]) is not None


@pytest.mark.parametrize("name", BATCHED)
def test_a_batch_can_be_sent_to_a_loaders_process(name: str) -> None:
    """Also where processes are started anew, as on Windows and macOS."""
    values = pictures(9, 3)
    batched = batch_transform(T.Compose(BATCHED[name]), values)
    again = pickle.loads(pickle.dumps(batched))  # noqa: S301 - our own
    made = []
    for one in (batched, again):
        torch.manual_seed(3)
        made.append(one(stacked(values)))
    assert torch.equal(*made)
