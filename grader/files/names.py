"""Names that somebody else chose, written as ids, as names of files and as text that may be shown."""

import hashlib
import re
import unicodedata

LONGEST_PLAIN = 200  # bytes; what is longer stays as it is


def plain(name: str) -> str:
    """The name in ordinary letters and digits: neither full-width, nor other digits, nor invisible marks.

    Args:
        name: A file's name, without folders.
    """
    letters = (
        str(unicodedata.decimal(letter)) if unicodedata.category(letter) == "Nd" else letter
        for letter in unicodedata.normalize("NFKC", name)
        if unicodedata.category(letter) != "Cf"
    )
    made = " ".join("".join(letters).split())
    # a full-width slash or dot becomes one that means something to the file system
    usable = made not in ("", ".", "..") and not re.search(r"[/\\\0]", made)
    return made if usable and len(made.encode("utf-8", "replace")) <= LONGEST_PLAIN else name


def sanitized(label: str) -> str:
    """`label` as an id: letters, digits, `-` and `_`, never empty, at most 64 of them."""
    plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
    kept = re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_-")[:64]
    if kept:
        return kept
    return "student-" + hashlib.sha256(label.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def displayable(name: str) -> str:
    """A name of a file or a person as it may be shown: what cannot be printed as `?`, and not too long."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:120]
