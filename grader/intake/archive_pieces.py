"""What is asked of an archive, and the pieces that it comes in; whoever reads them opens no archive."""

from dataclasses import dataclass

from grader.domain.submission import RefusedFile

CHUNK = 1 << 20  # bytes of a piece, at most


@dataclass(frozen=True)
class Caps:
    """How much an archive may hold.

    Attributes:
        total_bytes: Of all files unpacked.
        file_bytes: Of one file unpacked.
        entries: How many files and folders.
        ratio: How many times larger than packed a file of more than a megabyte may be; deflate reaches 1,032.
    """

    total_bytes: int
    file_bytes: int
    entries: int = 20_000
    ratio: int = 300


@dataclass(frozen=True)
class Begun:
    """An entry begins; its content follows in chunks of bytes.

    Attributes:
        modified: Its time of modification in seconds since 1970, of a clock whose zone a zip does not tell;
            0 where there is none.
    """

    name: str
    modified: int = 0


@dataclass(frozen=True)
class Ended:
    """The entry that had begun is over: whole, or with the reason why it is to be forgotten."""

    reason: str | None = None


Piece = Begun | bytes | Ended | RefusedFile
