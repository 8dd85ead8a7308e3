"""Labeled images from one folder per class: which file shows which class, decoded to one size."""

import io
import re
import struct
import warnings
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

import numpy as np
from PIL import Image

from grader.domain.errors import UsageError
from grader.kit.image_cache import cached_images
from grader.kit.image_source import REMEDY, SUFFIXES, ImageSource, opened_source
from grader.kit.splits import LabeledImages

LARGEST_IMAGE = 16_000_000  # pixels
MOST_PIXELS = 1_000_000_000  # values of all images together: three a pixel in color

# What Pillow raises over files that are cut off or are not images, by format.
_UNDECODABLE = (
    OSError, SyntaxError, ValueError, TypeError, IndexError, EOFError, struct.error, zlib.error,
    Image.DecompressionBombError, Image.DecompressionBombWarning,
)  # fmt: skip


def folder_images(
    source: Path | None,
    name: str,
    classes: Sequence[str],
    *,
    short_forms: Mapping[str, str] | None = None,
    cache: Path | None = None,
) -> LabeledImages:
    """The images of a zip or a folder that holds one folder per class, gray or in color as they are.

    Images that say the same in all three channels are gray; where one does not, all are in color.
    Class folders stand at the top or one or two folders down; case, `-`, `_` and blanks in their names do
    not matter. Without class folders, files are told apart by their names: `tricycle_1.jpg`, `Tr_1.bmp`.
    Images of another size than most have are scaled to the size that most have.

    Args:
        source: The zip (read in place, never unpacked to disk) or the folder; None, because none was
            given, is an error.
        name: The data set's name, for the cache and for messages.
        classes: Class names in the order of the labels.
        short_forms: How files without class folders begin, in lower case -> class name.
        cache: Where decoded images are kept; None: nowhere.

    Returns:
        Images sorted by name; a name is `<class>/<file>`, with the folders around the class folders in
        front of it only where those differ.

    Raises:
        UsageError: The source is missing or damaged, an image in it is, or classes or images are missing.
    """
    if source is None:
        raise UsageError(f"The images of {name} do not come with the course. {REMEDY}")
    with opened_source(source) as files:
        labels = _labels(files, classes, short_forms or {})
        key = "\n".join((*classes, files.key))
        return cached_images(cache, name, key, lambda: _decoded(files, labels, classes))


def _spelling(text: str) -> str:
    return re.sub(r"[-_\s]+", "_", text.strip()).lower()


def _labels(source: ImageSource, classes: Sequence[str], short_forms: Mapping[str, str]) -> dict[str, str]:
    """File -> class, for the files that show one of the classes; checked to be complete."""
    if not source.files:
        raise UsageError(f"{source.path} holds no images ({', '.join(SUFFIXES)}). {REMEDY}")
    known = {_spelling(label): label for label in classes}
    folders = {file: _spelling(PurePosixPath(file).parent.name) for file in source.files}
    labels = {file: known[folder] for file, folder in folders.items() if folder in known}
    if not labels:
        known |= short_forms
        starts = {
            file: _spelling(re.sub(r"[-_\s]*\d+$", "", PurePosixPath(file).stem)) for file in source.files
        }
        labels = {file: known[start] for file, start in starts.items() if start in known}
    counts = Counter(labels.values())
    missing = [label for label in classes if not counts[label]]
    if missing:
        found = [label for label in classes if counts[label]]
        there = f"only the class folders {', '.join(found)}" if found else "no class folders"
        raise UsageError(f"{source.path} has {there}; missing: {', '.join(missing)}. {REMEDY}")
    for label in classes:
        if counts[label] < 2:
            raise UsageError(
                f"{source.path} holds one image of class '{label}', but a split needs at least 2. "
                "Add images to its folder."
            )
    return labels


def _names(labels: Mapping[str, str], path: Path) -> dict[str, str]:
    """Name within the data set -> file."""
    around = {file: PurePosixPath(file).parent.parent.as_posix() for file in labels}
    alike = len(set(around.values())) == 1
    names: dict[str, str] = {}
    for file, label in labels.items():
        prefix = "" if alike or around[file] == "." else f"{around[file]}/"
        name = f"{prefix}{label}/{PurePosixPath(file).name}"
        if name in names:
            raise UsageError(f"{path} holds {name} twice, as {names[name]} and {file}. Take one of them out.")
        names[name] = file
    return names


def _decoded(source: ImageSource, labels: Mapping[str, str], classes: Sequence[str]) -> LabeledImages:
    files = _names(labels, source.path)
    names = sorted(files)
    pictures: list[Image.Image] = []
    pixels = 0
    for name in names:
        picture = _picture(source, files[name])
        pixels += picture.width * picture.height * len(picture.getbands())
        if pixels > MOST_PIXELS:
            most = f"more than {MOST_PIXELS:,} pixels in all, colored ones counted three times"
            raise UsageError(f"The images in {source.path} have {most}. Scale them down.")
        pictures.append(picture)
    size = Counter(picture.size for picture in pictures).most_common(1)[0][0]
    mode = "RGB" if any(picture.mode == "RGB" for picture in pictures) else "L"
    bands = (3,) if mode == "RGB" else ()
    images = np.empty((len(names), size[1], size[0], *bands), dtype=np.uint8)
    for row, picture in enumerate(pictures):
        alike = picture.convert(mode)
        same = picture.size == size
        images[row] = np.asarray(alike if same else alike.resize(size, Image.Resampling.BILINEAR))
    order = {label: index for index, label in enumerate(classes)}
    return LabeledImages(
        names=tuple(names),
        labels=np.array([order[labels[files[name]]] for name in names], dtype=np.int64),
        images=images,
    )


def _picture(source: ImageSource, file: str) -> Image.Image:
    content = source.content(file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content)) as opened:
                deep = opened.mode.startswith(("I", "F"))  # `convert` would clip those to white
                if not deep and opened.width * opened.height <= LARGEST_IMAGE:
                    return _gray_or_color(opened)
    except _UNDECODABLE as error:
        raise UsageError(
            f"{file} in {source.path} is damaged or not an image. Get the file again, or take it out."
        ) from error
    if deep:
        raise UsageError(f"{file} in {source.path} has more than 8 bits a channel. Save it with 8 bits.")
    raise UsageError(f"{file} in {source.path} has more than {LARGEST_IMAGE:,} pixels. Scale it down.")


def _gray_or_color(picture: Image.Image) -> Image.Image:
    """The picture with one channel, or with three where they differ."""
    if picture.mode in ("1", "L", "LA", "La"):
        return picture.convert("L")
    colored = picture.convert("RGB")
    red, green, blue = colored.split()
    return colored.convert("L") if red.tobytes() == green.tobytes() == blue.tobytes() else colored
