"""The transforms and the batch size of the student's loaders are those that their code makes."""

import random
import textwrap
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
from torchvision import transforms

from grader.domain.analyzed_program import Program, Statement
from grader.protocol.requests import glimpse_of
from grader.worker.made_loaders import MadeLoaders, made_loaders
from grader.worker.student_faults import students_code

CLASSES = ("a", "b", "c")
GLIMPSE = np.random.default_rng(0).integers(0, 256, (30, 40, 40), dtype=np.uint8)
IMPORTS = """
import random
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, WeightedRandomSampler, random_split
from torchvision import datasets, transforms
from torchvision.transforms import Compose, Grayscale, Normalize, RandomHorizontalFlip, Resize, ToTensor
"""
DEFINED = """
class ViT(nn.Module):
    def forward(self, x):
        return x


def train_epoch(model, optimizer, data_loader, loss_history):
    for x, y in data_loader:
        optimizer.step()
"""
TRAINED = """
model = ViT()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(3):
    train_epoch(model, optimizer, {loader}, [])
"""
PLAIN = "Compose([Grayscale(), Resize((28, 28)), ToTensor()])"
FLIPPED = "Compose([RandomHorizontalFlip(), Grayscale(), Resize((28, 28)), ToTensor()])"
BY_SIDE = f"""
def build_transform(train):
    steps = [Grayscale(), Resize((28, 28)), ToTensor()]
    if train:
        steps.insert(0, RandomHorizontalFlip())
    return Compose(steps)

VARIED, PLAIN = {FLIPPED}, {PLAIN}
"""
STYLES = {
    "a function of the split": """
        def loader(split, bs):
            ds = datasets.ImageFolder("data/" + split, build_transform(split == "train"))
            return DataLoader(ds, bs, shuffle=split == "train")
        train_loader, test_loader = loader("train", 48), loader("test", 96)
        """,
    "a class that holds them": """
        class Data:
            def __init__(self, root, batch_size, varied, plain):
                self.batch_size, self.root = batch_size, root
                self.varied, self.plain = varied, plain
            def train(self):
                folder = datasets.ImageFolder(self.root + "/train", transform=self.varied)
                return DataLoader(folder, batch_size=self.batch_size, shuffle=True)
            def test(self):
                folder = datasets.ImageFolder(self.root + "/test", self.plain)
                return DataLoader(folder, batch_size=self.batch_size)
        data = Data("data", 48, VARIED, PLAIN)
        train_loader, test_loader = data.train(), data.test()
        """,
    "a loop over pairs": """
        loaders = {}
        for split, t in (("train", VARIED), ("test", PLAIN)):
            folder = datasets.ImageFolder("data/" + split, t)
            loaders[split] = DataLoader(folder, batch_size=48, shuffle=split == "train")
        """,
    "dictionaries": """
        steps = {"train": VARIED, "test": PLAIN}
        sets = {s: datasets.ImageFolder("data/" + s, steps[s]) for s in ("train", "test")}
        loaders = {s: DataLoader(sets[s], batch_size=48, shuffle=s == "train", num_workers=2) for s in sets}
        train_loader, test_loader = loaders["train"], loaders["test"]
        """,
    "bound anew before the last training": """
        train_loader = DataLoader(datasets.ImageFolder("data/train", PLAIN), 64, shuffle=True)
        test_loader = DataLoader(datasets.ImageFolder("data/test", PLAIN), 64)
        train_loader = DataLoader(datasets.ImageFolder("data/train", VARIED), 48, shuffle=True)
        """,
    "parts, in data sets of one's own": """
        class Transformed(Dataset):
            def __init__(self, inner, transform):
                self.inner, self.transform = inner, transform
            def __len__(self):
                return len(self.inner)
            def __getitem__(self, index):
                image, label = self.inner[index]
                return self.transform(image), label
        whole = datasets.ImageFolder("data/train")
        kept, held_out = random_split(whole, [1440, 360])
        train_loader = DataLoader(Transformed(kept, VARIED), batch_size=48, shuffle=True)
        val_loader = DataLoader(Transformed(held_out, PLAIN), batch_size=48)
        """,
    "a folder of one's own, with a sampler": """
        class Folder(datasets.ImageFolder):
            def counts(self):
                return [self.targets.count(label) for label in range(len(self.classes))]
        folder = Folder(root="data/train", transform=VARIED)
        weights = [1 / folder.counts()[label] for label in folder.targets]
        sampler = WeightedRandomSampler(weights, len(folder))
        train_loader = DataLoader(folder, batch_size=48, sampler=sampler)
        test_loader = DataLoader(Folder("data/test", PLAIN), batch_size=48)
        """,
    "set later": """
        folder = datasets.ImageFolder("data/train", PLAIN)
        train_loader = DataLoader(folder, batch_size=48, shuffle=True)
        test_loader = DataLoader(datasets.ImageFolder("data/test", PLAIN), batch_size=48)
        train_loader.dataset.transform = VARIED
        """,
}


class Module:
    """What `made_loaders` needs of the student's module, in this process."""

    def __init__(self, program: Program) -> None:
        self.program, self.class_names = program, CLASSES
        self.namespace: dict[str, Any] = {}
        self.run(program.statements)

    def run(self, statements: tuple[Statement, ...]) -> None:
        with students_code():
            for statement in statements:
                exec(statement.source, self.namespace)  # noqa: S102


@pytest.fixture
def made(analyzed: Callable[[str], Program]) -> Callable[..., MadeLoaders]:
    """What is known of the loaders of a text, of which one is trained with."""

    def of(text: str, after: str = "", *, trained: str = TRAINED) -> MadeLoaders:
        loader = "train_loader" if "train_loader" in text else "loaders['train']"
        parts = (textwrap.dedent(part) for part in (IMPORTS, BY_SIDE, DEFINED, text, trained, after))
        module = Module(analyzed("\n".join(parts).replace("{loader}", loader)))
        before = dict(module.namespace)
        loaders = made_loaders(cast(Any, module), GLIMPSE)
        assert module.namespace == before
        return loaders

    return of


def shown(transform: Any) -> str:
    """The names of a transform's steps."""
    steps = transform.transforms if isinstance(transform, transforms.Compose) else [transform]
    return " ".join(type(step).__name__ for step in steps)


@pytest.mark.parametrize("style", STYLES)
def test_transforms_and_batch_size_are_those_that_the_code_makes(
    style: str, made: Callable[..., MadeLoaders]
) -> None:
    """Wherever it makes them: the flip is in training alone."""
    found = made(STYLES[style])
    assert found.batch_size == 48
    assert shown(found.train_transform) == "RandomHorizontalFlip Grayscale Resize ToTensor"
    assert shown(found.test_transform) == "Grayscale Resize ToTensor"


def test_the_loader_that_is_trained_with_counts_before_others_of_the_training_images(
    made: Callable[..., MadeLoaders],
) -> None:
    """Which loader that is, may be known within a function alone."""
    text = """
        train_loader = DataLoader(datasets.ImageFolder("data/train", VARIED), batch_size=48, shuffle=True)
        train_as_it_is_loader = DataLoader(datasets.ImageFolder("data/train", PLAIN), batch_size=256)

        def fit(model, optimizer):
            for epoch in range(3):
                train_epoch(model, optimizer, train_loader, [])
        """
    trained = """
        model = ViT()
        fit(model, torch.optim.Adam(model.parameters()))
        """
    found = made(text, trained=trained)
    assert found.batch_size == 48
    assert shown(found.train_transform) == "RandomHorizontalFlip Grayscale Resize ToTensor"


def test_loaders_in_a_function_that_is_executed_once(made: Callable[..., MadeLoaders]) -> None:
    """With the arguments that it is called with."""
    main = """
        def main(root, batch_size=48):
            varied, plain = build_transform(True), build_transform(False)
            train_loader = DataLoader(datasets.ImageFolder(root + "/train", varied), batch_size, shuffle=True)
            test_loader = DataLoader(datasets.ImageFolder(root + "/test", plain), batch_size)
            model = ViT()
            optimizer = torch.optim.Adam(model.parameters())
            for epoch in range(3):
                train_epoch(model, optimizer, train_loader, [])
            torch.save(model.state_dict(), "model.pth")
        ROOT = "data"
        main(ROOT)
        """
    found = made(main, trained="")
    assert found.batch_size == 48
    assert shown(found.train_transform) == "RandomHorizontalFlip Grayscale Resize ToTensor"


@pytest.mark.parametrize(
    "measured",
    [
        "pixels = torch.stack([x for x, _ in raw])\nmean, std = pixels.mean(), pixels.std()",
        "batches = [x for x, _ in DataLoader(raw, batch_size=8, num_workers=2)]\n"
        "mean, std = torch.cat(batches).mean(), torch.cat(batches).std()",
    ],
    ids=["one by one", "in batches"],
)
def test_a_mean_is_measured_on_a_glimpse_of_the_training_images(
    measured: str, made: Callable[..., MadeLoaders]
) -> None:
    """In place of each folder."""
    text = f"""
raw = datasets.ImageFolder("data/train", PLAIN)
{measured}
own = Compose([Grayscale(), Resize((28, 28)), ToTensor(), Normalize(mean, std)])
train_loader = DataLoader(datasets.ImageFolder("data/train", own), batch_size=48, shuffle=True)
test_loader = DataLoader(datasets.ImageFolder("data/test", own), batch_size=48)
"""
    found = made(text)
    for transform in (found.train_transform, found.test_transform):
        normalize = cast(Any, transform).transforms[-1]
        assert float(normalize.mean) == pytest.approx(GLIMPSE.mean() / 255, abs=0.01)


def test_no_label_can_be_learned_from_the_glimpse(made: Callable[..., MadeLoaders]) -> None:
    """Its labels follow each other, whatever the images show."""
    text = """
        folder = datasets.ImageFolder("data/train", PLAIN)
        assert folder.targets == [index % 3 for index in range(30)] and folder.classes == ["a", "b", "c"]
        train_loader = DataLoader(folder, batch_size=48, shuffle=True)
        """
    assert made(text).batch_size == 48


def test_what_is_set_after_the_training_is_not_trained_with(made: Callable[..., MadeLoaders]) -> None:
    """It is for looking at the images as they are; a test loader may be made at the end."""
    text = """
        train_loader = DataLoader(datasets.ImageFolder("data/train", VARIED), batch_size=48, shuffle=True)
        """
    after = """
        train_loader.dataset.transform = PLAIN
        test_loader = DataLoader(datasets.ImageFolder("data/test", PLAIN), batch_size=96)
        """
    found = made(text, after)
    assert found.batch_size == 48
    assert shown(found.train_transform) == "RandomHorizontalFlip Grayscale Resize ToTensor"
    assert shown(found.test_transform) == "Grayscale Resize ToTensor"


@pytest.mark.parametrize(
    "text",
    [
        "train_loader = DataLoader(MissingFolder('data/train'), batch_size=48)",
        "import os\nown = [PLAIN for _ in os.listdir('data/train')][0]\n"
        "train_loader = DataLoader(datasets.ImageFolder('data/train', own), batch_size=48)",
        "both = ConcatDataset([datasets.ImageFolder('a', PLAIN), datasets.ImageFolder('b', VARIED)])\n"
        "train_loader = DataLoader(both)",
        """
class Own(datasets.ImageFolder):
    def __getitem__(self, index):
        return torch.zeros(1, 28, 28), 0
train_loader = DataLoader(Own("data/train", PLAIN), batch_size=None)
""",
    ],
    ids=["raises", "looks for files", "different ones", "changes the items"],
)
def test_where_it_is_not_known_nothing_is_said(text: str, made: Callable[..., MadeLoaders]) -> None:
    """And nothing is raised: what was read from the source counts."""
    found = made(text)
    assert found.train_transform is None and found.test_transform is None


def test_random_numbers_are_drawn_as_without_it(made: Callable[..., MadeLoaders]) -> None:
    """A student's seed gives the same weights."""
    torch.manual_seed(5)
    random.seed(5)
    expected = torch.rand(1).item(), random.random()
    torch.manual_seed(5)
    random.seed(5)
    text = """
        noise = torch.rand(3), random.random()
        train_loader = DataLoader(datasets.ImageFolder("data/train", PLAIN), batch_size=48 + 0 * len(noise))
        """
    assert made(text).batch_size == 48
    assert (torch.rand(1).item(), random.random()) == expected


@pytest.mark.parametrize(("count", "most"), [(1, 1), (256, 256), (257, 129), (50_000, 256)])
def test_a_glimpse_is_small_and_of_all_images(count: int, most: int) -> None:
    images = np.arange(count)
    glimpse = glimpse_of(images)
    assert len(glimpse) == most and glimpse[-1] >= count - -(-count // 256)
