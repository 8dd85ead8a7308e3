"""Who works on a results folder: those who grade, decide or serve share it, and forgetting has it alone.

The lock ends with the process that holds it, however that ends. It says nothing about who writes pages:
`class_pages` has a lock for that. Tests: `tests/privacy/test_forgetting.py`.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from grader.domain.errors import ReadOnlyBook, UsageError
from grader.files import atomic
from grader.files.folder_lock import locked_folder
from grader.gradebook import Gradebook

FOLDER = ".use"  # in the folder of the results
# the kinds of what the grader writes about a class, as the gradebook lists them
RESULTS, PUBLICATION, EXPORT, SHEET, PERSON = (
    "results",
    "publication",
    "export",
    "marking sheet",
    "personal data",
)


def note_written(book: Gradebook, paths: Sequence[Path], kind: str) -> None:
    """Note what is about to be written outside the results folder, unless the gradebook may only be read.

    Raises:
        UsageError: The gradebook cannot be used.
    """
    with contextlib.suppress(ReadOnlyBook):
        book.note_places(paths, kind)


def make_noted_folder(
    books: Iterable[Gradebook], folder: Path, names: Iterable[str], kind: str, *, remedy: str
) -> None:
    """Make a folder for files, and note it; of one that is there, note the files alone.

    Forgetting cleans what is noted as a whole, and what else lies in such a folder is not the grader's.

    Args:
        names: Of the files that are about to be written, with `/` between the parts.
        remedy: What to do if the folder cannot be made, as a sentence.

    Raises:
        UsageError: It cannot be made, or a gradebook cannot be used.
    """
    places = [folder / name for name in names] if folder.exists() else [folder]
    atomic.make_folder(folder, remedy=remedy)
    for book in books:
        note_written(book, places, kind)


@contextlib.contextmanager
def in_use(out: Path) -> Iterator[None]:
    """Keep forgetting away from a results folder while it is graded, changed or served.

    Raises:
        UsageError: Persons are being forgotten in it now.
    """
    place = _place(out)
    if place is None:
        yield
        return
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked_folder(place, exclusive=False, wait=False))
        except BlockingIOError:
            raise UsageError(
                f"{out}: persons are being forgotten in it. Wait until `grader forget` has ended."
            ) from None
        yield


@contextlib.contextmanager
def used_alone(out: Path) -> Iterator[None]:
    """Have a results folder alone.

    Raises:
        UsageError: Somebody grades, changes, serves or pushes it now.
    """
    place = _place(out)
    with contextlib.ExitStack() as held:
        # pushes hold the lock on their own folder; graders of older versions that on the students'
        folders = [place, *(out / name for name in ("students", "pushed"))]
        for folder in folders:
            if folder is None or not folder.is_dir():
                continue
            try:
                held.enter_context(locked_folder(folder, wait=False))
            except BlockingIOError:
                raise UsageError(
                    f"{out} is in use: it is being graded, changed, served or pushed. Wait until that "
                    "has ended, or end it. Nothing was forgotten."
                ) from None
        yield


def _place(out: Path) -> Path | None:
    """The folder that is locked; None if there are no results, or it may only be read."""
    place = out / FOLDER
    if not place.is_dir():
        if not any((out / name).exists() for name in ("students", "gradebook.sqlite")):
            return None
        try:
            place.mkdir(exist_ok=True)
        except OSError:
            return None
    return place
