"""Labeled images as a course hands them out: a zip or a folder, with one folder per class.

It reads image files without unpacking anything to disk, decodes them to one size, and keeps decoded
images in a cache, so that a data set is decoded or made once. It also writes such a zip, the same bytes
for the same images. It decides which file shows which class, not which images are for training.
"""

import io
import json
import os
import re
import struct
import tempfile
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Protocol

import numpy as np
from PIL import Image

from grader.domain.errors import UsageError
from grader.kit.splits import LabeledImages

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp")
DEEPEST = 4  # folders above an image: the class folder, and up to three around it
MOST_FILES = 100_000
LARGEST_FILE = 32_000_000  # bytes

REMEDY = "Give the course's zip, or the folder that it unpacks to."


class ImageSource(Protocol):
    """Where image files are.

    Attributes:
        path: The zip or the folder.
        files: The image files' paths within it, with `/`, sorted.
        key: Changes when a file is added, removed or changed.
    """

    @property
    def path(self) -> Path: ...
    @property
    def files(self) -> tuple[str, ...]: ...
    @property
    def key(self) -> str: ...

    def content(self, file: str) -> bytes:
        """The file's bytes.

        Raises:
            UsageError: It cannot be read.
        """
        ...


@contextmanager
def opened_source(path: Path) -> Iterator[ImageSource]:
    """The image files of a zip or a folder.

    Raises:
        UsageError: There is no such path, it is neither, or it cannot be read.
    """
    if path.is_dir():
        yield _folder_source(path)
    elif path.is_file():
        with _opened_zip(path) as archive:
            yield _zip_source(path, archive)
    elif path.exists():
        raise UsageError(f"{path} is neither a zip file nor a folder. {REMEDY}")
    else:
        raise UsageError(f"{path} does not exist. {REMEDY}")


@dataclass(frozen=True)
class _FolderSource:
    path: Path
    files: tuple[str, ...]
    key: str

    def content(self, file: str) -> bytes:
        try:
            with (self.path / file).open("rb") as stream:
                data = stream.read(LARGEST_FILE + 1)
        except OSError as error:
            raise UsageError(f"{file} in {self.path} cannot be read ({error.strerror}).") from error
        return _bounded(data, file, self.path)


@dataclass(frozen=True)
class _ZipSource:
    path: Path
    files: tuple[str, ...]
    key: str
    archive: zipfile.ZipFile

    def content(self, file: str) -> bytes:
        try:
            with self.archive.open(file) as stream:
                data = stream.read(LARGEST_FILE + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise UsageError(f"{file} in {self.path} is damaged. Get the file again.") from error
        except (RuntimeError, NotImplementedError) as error:  # a password; an unusual compression
            raise UsageError(f"{file} in {self.path} cannot be unpacked: {error}.") from error
        return _bounded(data, file, self.path)


def _bounded(data: bytes, file: str, path: Path) -> bytes:
    if len(data) > LARGEST_FILE:
        raise UsageError(f"{file} in {path} is larger than {LARGEST_FILE // 10**6} MB. Take it out.")
    return data


def _is_image(file: str) -> bool:
    parts = PurePosixPath(file).parts
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in parts)
    return not hidden and len(parts) <= DEEPEST + 1 and file.lower().endswith(SUFFIXES)


def _too_many(path: Path) -> UsageError:
    return UsageError(f"{path} holds more than {MOST_FILES} files, so it is not the data set. {REMEDY}")


def _folder_source(path: Path) -> _FolderSource:
    stamps: dict[str, str] = {}
    count = 0
    for folder, folders, files in os.walk(path, followlinks=True):
        inner = Path(folder).relative_to(path)
        folders[:] = (
            sorted(folders) if len(inner.parts) < DEEPEST else []
        )  # and so links cannot go in circles
        count += len(files)
        if count > MOST_FILES:
            raise _too_many(path)
        for file in map((inner / "x").with_name, files):
            if _is_image(file.as_posix()) and (path / file).is_file():
                status = (path / file).stat()
                stamps[file.as_posix()] = f"{status.st_size} {status.st_mtime_ns}"
    described = "\n".join(f"{file} {stamps[file]}" for file in sorted(stamps))
    return _FolderSource(
        path, tuple(sorted(stamps)), sha256(described.encode("utf-8", "replace")).hexdigest()
    )


def _opened_zip(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        if zipfile.is_zipfile(path) or path.suffix.lower() == ".zip":
            raise UsageError(f"{path} is damaged: it cannot be read as a zip file. Get it again.") from error
        raise UsageError(f"{path} is not a zip file. {REMEDY}") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}).") from error


def _zip_source(path: Path, archive: zipfile.ZipFile) -> _ZipSource:
    members = archive.infolist()
    if len(members) > MOST_FILES:
        raise _too_many(path)
    images = {m.filename: m for m in members if not m.is_dir() and _is_image(m.filename)}
    about = path.stat()
    lines = [f"{path.name} {about.st_size} {about.st_mtime_ns}"]
    lines += [f"{file} {images[file].CRC} {images[file].file_size}" for file in sorted(images)]
    key = sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()
    return _ZipSource(path, tuple(sorted(images)), key, archive)


# --- image cache -----------------------------------------------------------------------------------------


# Part of every key: raise it when the layout of the file changes.
_LAYOUT = "2"
# Files of one data set, of up to 72 MB each: a source that was changed leaves an older one behind.
_MOST = 3
_DIGITS = 20  # of the digest, in a file's name


def cached_images(
    cache: Path | None, name: str, key: str, made: Callable[[], LabeledImages]
) -> LabeledImages:
    """The images that `made` returns, from the cache if they are there.

    A cached file that is damaged, or belongs to another key, is made anew. If the cache cannot be written
    (full, read-only), nothing is cached: it only saves time. It holds the few most recently used files of a
    data set.

    Args:
        cache: The folder of the cache, made when it is absent; None: no cache.
        name: The data set's name, for the file's name.
        key: Everything that the images depend on: a digest of the source, a seed.
        made: Decodes or makes the images.
    """
    if cache is None:
        return made()
    digest = sha256(f"{_LAYOUT}\n{name}\n{key}".encode()).hexdigest()
    path = cache / f"{name}-{digest[:_DIGITS]}.npz"
    kept = _cached(path, digest)
    if kept is not None:
        with suppress(OSError):
            os.utime(path)  # it was used just now
        return kept
    data = made()
    with suppress(OSError):
        _write_cache(path, digest, data)
        _prune(path, name)
    return data


def _prune(newest: Path, name: str) -> None:
    """Delete the least recently used files, but never the newest one, even if the clock was wrong."""
    others = set(newest.parent.glob(f"{name}-{'?' * _DIGITS}.npz")) - {newest}
    for old in sorted(others, key=lambda file: file.stat().st_mtime_ns, reverse=True)[_MOST - 1 :]:
        old.unlink(missing_ok=True)


def _cached(path: Path, digest: str) -> LabeledImages | None:
    """What the file holds; None when it is absent, damaged or belongs to another key."""
    try:
        # opened here, because numpy does not close a truncated file
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            head = json.loads(file["head"].tobytes())
            data = LabeledImages(tuple(head["names"]), file["labels"], file["images"])
            digest_matches = head["digest"] == digest
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error):
        return None
    fits = len(data.names) == len(data.labels) == len(data.images)
    typed = data.images.dtype == np.uint8 and data.labels.dtype == np.int64
    return data if digest_matches and fits and typed else None


def _write_cache(path: Path, digest: str, data: LabeledImages) -> None:
    """Write the file under a temporary name, then rename it, so that nobody reads half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = json.dumps({"digest": digest, "names": data.names}).encode()
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.stem}-", delete=False) as file:
        written = Path(file.name)
        try:
            np.savez(file, head=np.frombuffer(head, np.uint8), labels=data.labels, images=data.images)
            file.close()
            written.replace(path)
        except BaseException:
            file.close()
            written.unlink(missing_ok=True)
            raise


# --- image zip -------------------------------------------------------------------------------------------


def write_image_zip(destination: Path, data: LabeledImages) -> None:
    """Write the images as PNG files under their names, the same bytes for the same images.

    Args:
        destination: The zip file; its folder is made when it is absent. An existing file is replaced.
        data: The images; a name is `<class>/<file>.png`.

    Raises:
        UsageError: The file cannot be written.
    """
    part = destination.with_name(destination.name + ".part")
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:  # PNG is compressed already
            for name, image in zip(data.names, data.images, strict=True):
                encoded = io.BytesIO()
                Image.fromarray(image).save(encoded, format="PNG", compress_level=6)
                about = zipfile.ZipInfo(name)  # with the earliest date that a zip can hold, not today's
                about.create_system = 3  # Unix, wherever it is written
                about.external_attr = 0o644 << 16
                archive.writestr(about, encoded.getvalue())
        part.replace(destination)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise UsageError(
            f"{destination} cannot be written ({error.strerror}). Choose another place with --out."
        ) from error


# --- image folders ---------------------------------------------------------------------------------------


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

    If all three channels are equal in every image, the images are gray, else all are in color.
    Class folders are at the top or up to three folders down; case, `-`, `_` and blanks in their names do
    not matter. Without class folders, file names give the classes: `tricycle_1.jpg`, `Tr_1.bmp`.
    Images are scaled to the most common size.

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
    labels_by_name = {_spelling(label): label for label in classes}
    folders = {file: _spelling(PurePosixPath(file).parent.name) for file in source.files}
    labels = {file: labels_by_name[folder] for file, folder in folders.items() if folder in labels_by_name}
    if not labels:
        labels_by_name |= short_forms
        starts = {
            file: _spelling(re.sub(r"[-_\s]*\d+$", "", PurePosixPath(file).stem)) for file in source.files
        }
        labels = {file: labels_by_name[start] for file, start in starts.items() if start in labels_by_name}
    counts = Counter(labels.values())
    missing = [label for label in classes if not counts[label]]
    if missing:
        present = [label for label in classes if counts[label]]
        there = f"only the class folders {', '.join(present)}" if present else "no class folders"
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
