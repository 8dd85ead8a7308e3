"""Image files as courses hand them out: in a zip or in a folder, read without unpacking anything to disk."""

import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Protocol

from grader.domain.errors import UsageError

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp")
DEEPEST = 4  # folders above an image: two around the class folder, and one to spare
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
    seen = 0
    for folder, folders, files in os.walk(path, followlinks=True):
        inner = Path(folder).relative_to(path)
        folders[:] = (
            sorted(folders) if len(inner.parts) < DEEPEST else []
        )  # and so links cannot go in circles
        seen += len(files)
        if seen > MOST_FILES:
            raise _too_many(path)
        for file in map((inner / "x").with_name, files):
            if _is_image(file.as_posix()) and (path / file).is_file():
                about = (path / file).stat()
                stamps[file.as_posix()] = f"{about.st_size} {about.st_mtime_ns}"
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
