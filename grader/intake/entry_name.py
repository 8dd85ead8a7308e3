"""The names of an archive's entries: which of them may become files."""

import unicodedata
from collections.abc import Iterator
from pathlib import PurePosixPath

DEEPEST = 12  # folders within folders
LONGEST = 200  # bytes of one part of a path


def parts_of(name: str) -> tuple[str, ...]:
    """The folders and the file that an entry's name stands for, whichever slashes it is written with."""
    return PurePosixPath(name.replace("\\", "/")).parts


def name_fault(name: str) -> str | None:
    """Why no file may have an entry's name, as the end of a sentence, or None."""
    parts = parts_of(name)
    if not parts or parts[0].startswith("/") or ".." in parts or parts[0].endswith(":"):
        return "points outside of the archive and was not unpacked. Pack the files from within their folder."
    if any(len(part.encode("utf-8", "replace")) > LONGEST for part in parts) or len(parts) > DEEPEST:
        return "has a name that is too long or lies too deep. Rename it, or pack it nearer to the top."
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
        return "has control characters in its name. Rename it."
    return None


class Taken:
    """The names that are in use, as they compare where letters' case does not count."""

    def __init__(self) -> None:
        self._keys: set[str] = set()

    def collision(self, name: str) -> str | None:
        """Why a file of this name cannot be written beside those before it, or None."""
        *folders, file = _prefixes(parts_of(name))
        if file in self._keys or file + "/" in self._keys or any(f[:-1] in self._keys for f in folders):
            return "is in the archive twice, or has the name of a folder. Only the first was unpacked."
        return None

    def add(self, name: str) -> None:
        """Note that a file of this name, and the folders that it lies in, are there."""
        self._keys.update(_prefixes(parts_of(name)))


def _prefixes(parts: tuple[str, ...]) -> Iterator[str]:
    """`a/`, `a/b/`, `a/b/c` for a path of three parts, as they compare."""
    folded = [unicodedata.normalize("NFC", part).casefold() for part in parts]
    for index in range(1, len(folded)):
        yield "/".join(folded[:index]) + "/"
    yield "/".join(folded)
