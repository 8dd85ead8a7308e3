"""CIFAR-10 (A. Krizhevsky, 2009): 60,000 colored images, 32 x 32, of ten classes, in each of its forms.

* the official archive `cifar-10-python.tar.gz`, or the folder that it unpacks to;
* the official binary version, `cifar-10-binary.tar.gz`, or its folder;
* image files in `train/<class>/` and `test/<class>/`, in a zip or a folder.

An image's name is its part and its number within the class, `train/cat/0017`, in the official order or in the
order of the file names. Students train on images of the official training part. The official test images are
public, so the grader draws its hidden ones from both parts.
"""

import io
import pickle
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b, sha256
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.domain.errors import UsageError
from grader.kit.image_folders import cached_images, folder_images
from grader.kit.splits import LabeledImages, Splits, stratified_split, taken

NAME = "cifar10"
TITLE = "CIFAR-10"
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

SIDE = 32  # pixels
BATCH = 10_000  # images in an official file
PARTS = {"train": 5_000, "test": 1_000}  # images of each class
PYTHON_FILES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
BINARY_FILES = tuple(f"{name}.bin" for name in PYTHON_FILES)
RECORD = 1 + 3 * SIDE * SIDE  # bytes of a binary image: its label, then red, green and blue
CIFAR100 = {"train", "test", "meta", "train.bin", "test.bin", "fine_label_names.txt"}
LARGEST_FILE = 40_000_000  # bytes; an official one has 31 million
ARCHIVES = (".tar.gz", ".tgz", ".tar")
REMEDY = (
    "Give cifar-10-python.tar.gz or cifar-10-binary.tar.gz, the folder that one of them unpacks to, or a zip "
    "or a folder with images in train/<class>/ and test/<class>/."
)
AGAIN = "Get the file again."

Batch = tuple[NDArray[np.uint8], NDArray[np.int64]]  # (n, 32, 32, 3), (n,)
Reader = Callable[[str], bytes]


def load(source: Path | None, *, seed: int, train_share: float = 0.7, cache: Path | None = None) -> Splits:
    """The data set in its official parts, each in an order of the seed's.

    Args:
        source: The archive, zip or folder. None is an error: the course does not hold the images.
        seed: Of the order within each class: an assignment that takes fewer images takes the first.
        train_share: Not used: the parts are official.
        cache: Where decoded images are kept for the next time; None: nowhere.

    Returns:
        uint8 images, (50,000, 32, 32, 3) and (10,000, 32, 32, 3); a test image with the very pixels of a
        training image is on the training side.

    Raises:
        UsageError: The source is missing, damaged, incomplete, or another data set.
    """
    data = _images(source, cache)
    rows = {name: row for row, name in enumerate(data.names)}
    members: dict[str, dict[str, list[str]]] = {part: {label: [] for label in CLASSES} for part in PARTS}
    for name in data.names:
        part, label, _ = name.split("/")
        members[part][label].append(name)
    # both halves of a split: all images, in the order of the seed
    trained, tested = (
        list(chain(*stratified_split(members[part], seed=seed, train_share=0.5)))
        for part in ("train", "test")
    )
    digests = {name: blake2b(data.images[rows[name]].tobytes(), digest_size=16).digest() for name in rows}
    known = {digests[name] for name in trained}
    moved = [name for name in tested if digests[name] in known]
    train = [rows[name] for name in (*trained, *moved)]
    test = [rows[name] for name in tested if digests[name] not in known]
    return taken(NAME, CLASSES, data, np.array(train, dtype=np.intp), np.array(test, dtype=np.intp))


def describe(source: Path) -> str:
    """Which of its forms a source has, in words.

    Raises:
        UsageError: It has none of them.
    """
    if _is_images(source):
        return "image files in folders"
    with _opened(source) as (files, _):
        return (
            "official Python version"
            if _official(source, files) is PYTHON_FILES
            else "official binary version"
        )


def _images(source: Path | None, cache: Path | None) -> LabeledImages:
    if source is None:
        raise UsageError(f"The images of {TITLE} do not come with the course. {REMEDY}")
    if _is_images(source):
        return _numbered(folder_images(source, NAME, CLASSES, cache=cache), source)
    with _opened(source) as (files, read):
        names = _official(source, files)
        stamps = "\n".join(f"{path} {stamp}" for path, stamp in sorted(files.items()))
        key = sha256(stamps.encode("utf-8", "replace")).hexdigest()
        return cached_images(cache, NAME, key, lambda: _batches(source, files, names, read))


# --- images in folders ------------------------------------------------------------------------------------


def _is_images(source: Path) -> bool:
    """Whether the source is a zip, or a folder in which no official file lies."""
    if source.is_dir():
        return not any(
            path.name in (*PYTHON_FILES, *BINARY_FILES, *CIFAR100) for path in _files_below(source)
        )
    return source.is_file() and not source.name.lower().endswith(ARCHIVES) and not tarfile.is_tarfile(source)


def _numbered(found: LabeledImages, source: Path) -> LabeledImages:
    """The images by part and number, once each part is known to be whole."""
    if found.images.shape[1:] != (SIDE, SIDE, 3):
        height, width = found.images.shape[1:3]
        raise UsageError(
            f"The images in {source} are {height} x {width}, and those of {TITLE} 32 x 32. {REMEDY}"
        )
    rows: dict[str, dict[str, list[int]]] = {part: {label: [] for label in CLASSES} for part in PARTS}
    for row, name in enumerate(found.names):
        part = PurePosixPath(name).parts[-3].lower() if name.count("/") >= 2 else ""
        if part not in rows:
            raise UsageError(f"{name} in {source} lies neither in train/ nor in test/. {REMEDY}")
        rows[part][CLASSES[int(found.labels[row])]].append(row)
    names, order = [], []
    for part, expected in PARTS.items():
        for label, own in rows[part].items():
            if len(own) != expected:
                raise UsageError(
                    f"{source} holds {len(own):,} images in {part}/{label}, and {TITLE} has {expected:,}. "
                    "Get the images again."
                )
            names += [f"{part}/{label}/{number:04d}" for number in range(expected)]
            order += own  # the rows are sorted by the files' names
    return LabeledImages(tuple(names), found.labels[order], found.images[order])


# --- official files ---------------------------------------------------------------------------------------


def _files_below(folder: Path) -> Iterator[Path]:
    """The files of a folder and of the folders in it."""
    for path in sorted(folder.iterdir()):
        if path.is_file():
            yield path
        elif path.is_dir():
            yield from (inner for inner in sorted(path.iterdir()) if inner.is_file())


@contextmanager
def _opened(source: Path) -> Iterator[tuple[dict[str, str], Reader]]:
    """The files of an archive or a folder: path -> what changes when it does; and what reads one of them."""
    if source.is_dir():
        paths = {path.relative_to(source).as_posix(): path for path in _files_below(source)}
        yield {name: _stamp(path) for name, path in paths.items()}, lambda name: _bounded(paths[name])
        return
    if not source.exists():
        raise UsageError(f"{source} does not exist. {REMEDY}")
    about = _stamp(source)
    try:
        with tarfile.open(source) as archive:
            members = {member.name: member for member in archive if member.isfile()}
            yield (
                {name: f"{about} {member.size}" for name, member in members.items()},
                lambda name: _member(archive, members[name]),
            )
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise UsageError(f"{source} is damaged or cut off: it cannot be read to its end. {AGAIN}") from error


def _stamp(path: Path) -> str:
    about = path.stat()
    return f"{about.st_size} {about.st_mtime_ns}"


def _bounded(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LARGEST_FILE + 1)


def _member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return file.read(LARGEST_FILE + 1) if file is not None else b""


def _official(source: Path, files: dict[str, str]) -> Sequence[str]:
    """The names of the files of the form that is there, all of which are."""
    there = {PurePosixPath(path).name for path in files}
    for form in (PYTHON_FILES, BINARY_FILES):
        if there.isdisjoint(form):
            continue
        missing = [name for name in form if name not in there]
        if missing:
            raise UsageError(f"{source} lacks {', '.join(missing)}. {AGAIN}")
        return form
    if len(there & CIFAR100) >= 2:
        raise UsageError(f"{source} is CIFAR-100, and this assignment is about {TITLE}. {REMEDY}")
    raise UsageError(f"{source} holds none of the files of {TITLE}. {REMEDY}")


def _batches(source: Path, files: dict[str, str], names: Sequence[str], read: Reader) -> LabeledImages:
    """All images, by part and number."""
    paths = {PurePosixPath(path).name: path for path in files}
    decode = _unpickled if names is PYTHON_FILES else _from_records
    batches = [decode(read(paths[name]), f"{name} in {source}") for name in names]
    images = np.concatenate([images for images, _ in batches])
    labels = np.concatenate([labels for _, labels in batches])
    counts = {part: dict.fromkeys(CLASSES, 0) for part in PARTS}
    found = []
    for row, label in enumerate(labels.tolist()):
        part = "train" if row < BATCH * (len(names) - 1) else "test"
        found.append(f"{part}/{CLASSES[label]}/{counts[part][CLASSES[label]]:04d}")
        counts[part][CLASSES[label]] += 1
    for part, expected in PARTS.items():
        for label, count in counts[part].items():
            if count != expected:
                raise UsageError(
                    f"{source} has {count:,} {part} images of {label}, and {TITLE} has {expected:,}. {AGAIN}"
                )
    order = np.argsort(np.array(found), kind="stable")
    return LabeledImages(tuple(found[row] for row in order), labels[order], images[order])


def _from_records(content: bytes, file: str) -> Batch:
    """The images of a binary file."""
    if len(content) != BATCH * RECORD:
        raise UsageError(f"{file} has {len(content):,} bytes, and should have {BATCH * RECORD:,}. {AGAIN}")
    records = np.frombuffer(content, dtype=np.uint8).reshape(BATCH, RECORD)
    return _images_of(records[:, 1:]), _labels_of(records[:, 0], file)


def _unpickled(content: bytes, file: str) -> Batch:
    """The images of a Python file, from which nothing but numbers, texts and arrays is taken."""
    try:
        found = _ArraysOnly(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # a pickle may raise anything
        raise UsageError(f"{file} is damaged, or no file of {TITLE}. {AGAIN}") from error
    keys = found if isinstance(found, dict) else {}
    if b"fine_labels" in keys:
        raise UsageError(f"{file} is of CIFAR-100, and this assignment is about {TITLE}. {REMEDY}")
    pixels, labels = keys.get(b"data"), keys.get(b"labels")
    whole = (
        isinstance(pixels, np.ndarray) and pixels.dtype == np.uint8 and pixels.shape == (BATCH, RECORD - 1)
    )
    if not whole or not isinstance(labels, list) or len(labels) != BATCH:
        raise UsageError(f"{file} does not hold {BATCH:,} images with their labels. {AGAIN}")
    return _images_of(pixels), _labels_of(np.array(labels), file)


class _ArraysOnly(pickle.Unpickler):
    """Loads what numpy's arrays are made of, and refuses everything else: a pickle can run any program."""

    def find_class(self, module: str, name: str) -> Any:
        """The class or function of that name.

        Raises:
            pickle.UnpicklingError: It is none of an array's.
        """
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            return np.empty(0).__reduce__()[0]  # wherever this version of numpy has it
        if (module, name) in (("numpy", "ndarray"), ("numpy", "dtype")):
            return getattr(np, name)
        if (module, name) == ("_codecs", "encode"):
            return _encoded
        raise pickle.UnpicklingError(f"{module}.{name} does not belong here")


def _encoded(text: str, encoding: str) -> bytes:
    return text.encode("latin1")


def _images_of(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(n, 3072), the channels one after the other -> (n, 32, 32, 3)."""
    return np.ascontiguousarray(pixels.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1))


def _labels_of(labels: NDArray[Any], file: str) -> NDArray[np.int64]:
    if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0 or labels.max() >= len(CLASSES):
        raise UsageError(f"{file} has labels that are none of {TITLE}'s. {REMEDY}")
    return labels.astype(np.int64)
