"""CIFAR-10 in each of its forms, and one clear sentence for whatever is wrong. Batches are tiny here."""

import io
import pickle
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from grader.domain.errors import UsageError
from grader.kit import Splits

PER_BATCH = 40  # four images of each class
ROOT = Path(__file__).parents[2]
REAL = ROOT.parent / "shared" / "data" / "CIFAR-10-jpeg.zip"
Files = dict[str, bytes]


@pytest.fixture
def cifar10(dataset: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The data set, with batches of 40 images instead of 10,000."""
    module = dataset("cifar10")
    monkeypatch.setattr(module, "BATCH", PER_BATCH)
    monkeypatch.setattr(module, "PARTS", {"train": 20, "test": 4})
    return module


@pytest.fixture(scope="module")
def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    """Pixels, (40, 3072), and labels of the five training batches and the test batch."""
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (6, PER_BATCH, 3072), dtype=np.uint8)
    pixels[5, 0] = pixels[2, 3]  # a test image that trains, too
    return [(own, random.permutation(np.arange(PER_BATCH) % 10)) for own in pixels]


def python_files(batches: list[tuple[np.ndarray, np.ndarray]], names: tuple[str, ...]) -> Files:
    """The official Python files, as Python 2 wrote them: keys are bytes."""
    return {
        name: pickle.dumps({b"data": pixels, b"labels": labels.tolist(), b"batch_label": b"?"}, protocol=2)
        for name, (pixels, labels) in zip(names, batches, strict=True)
    }


def binary_files(batches: list[tuple[np.ndarray, np.ndarray]], names: tuple[str, ...]) -> Files:
    return {
        name: np.concatenate([labels[:, None].astype(np.uint8), pixels], axis=1).tobytes()
        for name, (pixels, labels) in zip(names, batches, strict=True)
    }


def archive(path: Path, files: Files, folder: str = "cifar-10-batches-py") -> Path:
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def unpacked(folder: Path, files: Files) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def image_files(module: ModuleType, batches: list[tuple[np.ndarray, np.ndarray]]) -> Files:
    counts: dict[str, int] = {}
    files = {}
    for number, (pixels, labels) in enumerate(batches):
        for own, label in zip(pixels, labels, strict=True):
            place = f"{'test' if number == 5 else 'train'}/{module.CLASSES[label]}"
            counts[place] = counts.get(place, -1) + 1
            stream = io.BytesIO()
            Image.fromarray(own.reshape(3, 32, 32).transpose(1, 2, 0)).save(stream, "PNG")
            files[f"{place}/{counts[place]:04d}.png"] = stream.getvalue()
    return files


def contents(splits: Splits) -> list[tuple[str, int, bytes]]:
    parts = (
        (splits.train_names, splits.train_labels, splits.train_images),
        (splits.test_names, splits.test_labels, splits.test_images),
    )
    return [
        (name, int(label), image.tobytes())
        for part in parts
        for name, label, image in zip(*part, strict=True)
    ]


def test_every_form_gives_the_same_splits(cifar10, batches, tmp_path: Path) -> None:
    python, binary = python_files(batches, cifar10.PYTHON_FILES), binary_files(batches, cifar10.BINARY_FILES)
    images = unpacked(tmp_path / "images", image_files(cifar10, batches))
    sources = {
        archive(tmp_path / "cifar-10-python.tar.gz", python): "official Python version",
        unpacked(tmp_path / "p" / "cifar-10-batches-py", python).parent: "official Python version",
        archive(tmp_path / "cifar-10-binary.tar.gz", binary): "official binary version",
        unpacked(tmp_path / "b", binary): "official binary version",
        Path(shutil.make_archive(str(tmp_path / "zipped"), "zip", images)): "image files in folders",
        images: "image files in folders",
    }
    found = {source: cifar10.load(source, seed=3, cache=tmp_path / "cache") for source in sources}
    first = contents(next(iter(found.values())))
    for source, form in sources.items():
        assert contents(found[source]) == first, source
        assert cifar10.describe(source) == form
        assert contents(cifar10.load(source, seed=3, cache=tmp_path / "cache")) == first, "from the cache"
    splits = found[images]
    assert splits.train_images.shape == (201, 32, 32, 3) and splits.test_images.shape == (39, 32, 32, 3)
    doubled = [name for name in splits.train_names if name.startswith("test/")]
    assert len(doubled) == 1, "an image of the test part that is also one of training"
    label = cifar10.CLASSES.index(splits.train_names[0].split("/")[1])
    assert splits.train_labels[0] == label
    pixels = next(own for own in zip(*batches[0], strict=True) if own[1] == label)[0]
    at = splits.train_names.index(f"train/{cifar10.CLASSES[label]}/0000")
    np.testing.assert_array_equal(splits.train_images[at], pixels.reshape(3, 32, 32).transpose(1, 2, 0))


def test_a_seed_orders_each_class_of_each_part(cifar10, batches, tmp_path: Path) -> None:
    source = unpacked(tmp_path, python_files(batches, cifar10.PYTHON_FILES))
    one, again, other = (cifar10.load(source, seed=seed) for seed in (1, 1, 2))
    assert one.train_names == again.train_names != other.train_names
    assert sorted(one.train_names) == sorted(other.train_names)


class Hostile:
    def __reduce__(self) -> tuple:
        return (print, ("this must never be printed",))


def faults() -> dict[str, tuple[Callable[..., Path], str]]:
    """What is wrong with a source, and a part of the sentence that tells it."""

    def absent(module, batches, folder: Path) -> Path:
        return folder / "nothing.tar.gz"

    def cut_off(module, batches, folder: Path) -> Path:
        path = archive(folder / "cifar-10-python.tar.gz", python_files(batches, module.PYTHON_FILES))
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        return path

    def no_archive(module, batches, folder: Path) -> Path:
        (folder / "cifar-10-python.tar.gz").write_bytes(b"<html>Not found</html>")
        return folder / "cifar-10-python.tar.gz"

    def other_archive(module, batches, folder: Path) -> Path:
        return archive(folder / "other.tar.gz", {"notes.txt": b"none"})

    def missing_batch(module, batches, folder: Path) -> Path:
        files = python_files(batches, module.PYTHON_FILES)
        del files["data_batch_3"]
        return unpacked(folder, files)

    def shorter_record(module, batches, folder: Path) -> Path:
        files = binary_files(batches, module.BINARY_FILES)
        return unpacked(folder, files | {"test_batch.bin": files["test_batch.bin"][:-5]})

    def shorter_pickle(module, batches, folder: Path) -> Path:
        files = python_files(batches, module.PYTHON_FILES)
        return unpacked(folder, files | {"data_batch_2": files["data_batch_2"][:-500]})

    def hostile(module, batches, folder: Path) -> Path:
        files = python_files(batches, module.PYTHON_FILES)
        return unpacked(folder, files | {"data_batch_1": pickle.dumps({b"data": Hostile()})})

    def hundred(module, batches, folder: Path) -> Path:
        return archive(folder / "cifar-100-python.tar.gz", {"train": b"", "test": b"", "meta": b""})

    def hundred_renamed(module, batches, folder: Path) -> Path:
        files = python_files(batches, module.PYTHON_FILES)
        return unpacked(folder, files | {"data_batch_1": pickle.dumps({b"fine_labels": []})})

    def labels_beyond(module, batches, folder: Path) -> Path:
        files = binary_files(batches, module.BINARY_FILES)
        first = bytes([11]) + files["data_batch_1.bin"][1:]
        return unpacked(folder, files | {"data_batch_1.bin": first})

    def uneven(module, batches, folder: Path) -> Path:
        files = binary_files(batches, module.BINARY_FILES)
        first = files["data_batch_1.bin"]
        return unpacked(folder, files | {"data_batch_1.bin": bytes([(first[0] + 1) % 10]) + first[1:]})

    def fewer_images(module, batches, folder: Path) -> Path:
        files = image_files(module, batches)
        del files["train/cat/0003.png"]
        return unpacked(folder, files)

    def no_parts(module, batches, folder: Path) -> Path:
        files = image_files(module, batches)
        return unpacked(
            folder, {n.removeprefix("train/"): c for n, c in files.items() if n.startswith("train")}
        )

    def larger_images(module, batches, folder: Path) -> Path:
        stream = io.BytesIO()
        Image.fromarray(np.arange(40 * 40 * 3, dtype=np.uint32).astype(np.uint8).reshape(40, 40, 3)).save(
            stream, "PNG"
        )
        return unpacked(folder, dict.fromkeys(image_files(module, batches), stream.getvalue()))

    return {
        "absent": (absent, "nothing.tar.gz does not exist. Give cifar-10-python.tar.gz or"),
        "cut off": (cut_off, "cifar-10-python.tar.gz is damaged or cut off: it cannot be read to its end."),
        "no archive": (no_archive, "cifar-10-python.tar.gz is damaged or cut off"),
        "another archive": (other_archive, "other.tar.gz holds none of the files of CIFAR-10. Give"),
        "a missing batch": (missing_batch, "lacks data_batch_3. Get the file again."),
        "a cut binary file": (shorter_record, "has 122,915 bytes, and should have 122,920."),
        "a cut Python file": (shorter_pickle, "data_batch_2 in "),
        "a hostile pickle": (hostile, "is damaged, or no file of CIFAR-10."),
        "CIFAR-100": (hundred, "is CIFAR-100, and this assignment is about CIFAR-10. Give"),
        "CIFAR-100 renamed": (hundred_renamed, "data_batch_1 in "),
        "labels beyond": (labels_beyond, "has labels that are none of CIFAR-10's."),
        "uneven classes": (uneven, "train images of"),
        "an image less": (fewer_images, "holds 19 images in train/cat, and CIFAR-10 has 20."),
        "no parts": (no_parts, "lies neither in train/ nor in test/."),
        "larger images": (larger_images, "are 40 x 40, and those of CIFAR-10 32 x 32."),
    }  # fmt: skip


@pytest.mark.parametrize("fault", faults())
def test_what_is_wrong_is_told(cifar10, batches, fault: str, tmp_path: Path, capfd) -> None:
    made, told = faults()[fault]
    source = made(cifar10, batches, tmp_path)
    with pytest.raises(UsageError) as raised:
        cifar10.load(source, seed=1)
    assert told in str(raised.value)
    assert capfd.readouterr().out == "", "nothing of a file was executed"


def test_the_images_do_not_come_with_the_course(cifar10) -> None:
    with pytest.raises(UsageError, match="do not come with the course"):
        cifar10.load(None, seed=1)


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_file(), reason="the real images are not on this machine")
def test_the_real_images(dataset: Callable[[str], ModuleType]) -> None:
    splits = dataset("cifar10").load(REAL, seed=42)
    assert (len(splits.train_names), len(splits.test_names)) == (50_000, 10_000)
    assert np.bincount(splits.test_labels).tolist() == [1_000] * 10
