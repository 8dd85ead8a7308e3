"""The limits of an archive, and the pieces in which it is read; their reader never opens the archive."""

from dataclasses import dataclass

from grader.domain.submission import RefusedFile

CHUNK = 1 << 20  # the most bytes in a piece


@dataclass(frozen=True)
class Caps:
    """How much an archive may hold.

    Attributes:
        total_bytes: Of all files, unpacked.
        file_bytes: Of one file, unpacked.
        entries: How many files and folders.
        ratio: How many times larger a file of more than a megabyte may become; deflate reaches 1,032.
    """

    total_bytes: int
    file_bytes: int
    entries: int = 20_000
    ratio: int = 300


@dataclass(frozen=True)
class Begun:
    """An entry begins; its content follows in chunks of bytes.

    Attributes:
        modified: Its time of modification in seconds since 1970, by a clock whose zone a zip does not state;
            0 if there is none.
    """

    name: str
    modified: int = 0


@dataclass(frozen=True)
class Ended:
    """The current entry is over: complete, or with the reason why it is to be discarded."""

    reason: str | None = None


Piece = Begun | bytes | Ended | RefusedFile
