"""The files in which persons may be mentioned, and what becomes of each when they are forgotten.

It knows what the grader writes into a results folder. Other files there are never changed: if they mention a
person, they are told. A folder or file that the gradebook lists as written by the grader, or that is named
for this, is cleaned as a whole. It changes nothing by itself. Tests: `tests/privacy/test_kept_files.py`.
"""

import contextlib
import os
import re
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader.domain.errors import UsageError
from grader.domain.mentions import Mentions
from grader.files import atomic
from grader.files.forgotten_text import TableNames
from grader.gradebook.database import FILE as BOOK
from grader.gradebook.forgotten_rows import WrittenPlace
from grader.grading.recorded_run import FOLDER as GRADING
from grader.privacy.file_cleaning import Cleaned, FileFate, cleaned, names_in
from grader.publishing.exporting import FOLDER as EXPORTS
from grader.publishing.publication_folder import MANIFEST, Manifest
from grader.publishing.push_journal import FOLDER as PUSHED
from grader.publishing.released_class_pages import INSTRUCTORS
from grader.reports.whole_class.similarity_record import FILE as SIMILARITY
from grader.reports.whole_class.similarity_record import PAGE as SIMILARITY_PAGE
from grader.reports.whole_class.similarity_record import TABLE as SIMILARITY_TABLE
from grader.results.class_pages import FILE as PAGES
from grader.results.class_pages import STUDENTS, noted
from grader.results.folder_use import FOLDER as USE
from grader.results.folder_use import RESULTS
from grader.results.kept_scores import FILE as SCORES
from grader.results.oral_sheets import FOLDER as ORAL

NAMED = "file that was named"
UNFINISHED = ".forgetting"  # in the results folder, while the database may hold traces
_CLASS_FILES = {
    "index.html": "page of the class",
    "leaderboard.html": "page of the class",
    "results.json": "results of the class",
    "scores.csv": "results of the class",
    PAGES: "results of the class",
    SCORES: "scores that are kept",
    SIMILARITY: "similar submissions",
    SIMILARITY_PAGE: "similar submissions",
    SIMILARITY_TABLE: "similar submissions",
}
LEFT_BY_KILLED = "what a killed command left"
RECENT = 3600  # seconds in which a command may still be writing what is half-written
LONG_AGO = 7 * 86400  # seconds after which no command uses its temporary folder any more
CONSOLE = "console"  # `grader.web.access`, which is above this package
_FOLDERS = {
    STUDENTS: "page of a student",
    EXPORTS: "export",
    PUSHED: "what was pushed",
    ORAL: "sheet of an oral check",
    CONSOLE: "people of the console",
    GRADING: "record of a grading",
}
_PART = re.compile(r"\.[0-9a-f]{16}\.part")  # what a killed writer left
_DATABASE = re.compile(rf"{re.escape(BOOK)}(-wal|-shm|-journal)?")
_SIZE = 1 << 30  # bytes; a larger file is not read


@dataclass(frozen=True)
class KeptFile:
    """A file that mentions persons, and what becomes of it.

    Attributes:
        kind: What it is, in words.
        other_host: The machine on which it is, if that is another one.
        is_own: Whether a file that goes is about these persons alone. Others go because they can be made
            again, or were left half-written.
    """

    path: Path
    kind: str
    cleaned: Cleaned
    other_host: str = ""
    is_own: bool = True


@dataclass(frozen=True)
class KeptPlaces:
    """Where files may be.

    Attributes:
        results: The folders of results.
        written: Files and folders that are cleaned as a whole, and what they are.
        elsewhere: Those on other machines.
        torn: What killed commands left half-written beside places that they were to write.
    """

    results: tuple[Path, ...]
    written: tuple[tuple[Path, str], ...]
    elsewhere: tuple[WrittenPlace, ...]
    torn: tuple[Path, ...] = ()


def kept_places(out: Path, recorded: Iterable[WrittenPlace], also: Sequence[Path]) -> KeptPlaces:
    """The places of a class.

    Args:
        recorded: By the gradebook.
        also: Those that the operator names.

    Raises:
        UsageError: Nothing is at a place that is named.
    """
    for path in also:
        if not path.exists():
            raise UsageError(f"{path}: there is no such file or folder. Correct --also.")
    host, own_book = socket.gethostname(), _books_of(out)
    results = [out.resolve()]
    written: dict[Path, str] = {}
    elsewhere = []
    torn: dict[Path, None] = {}
    named = [WrittenPlace(host, path.resolve(), NAMED) for path in also]
    for place in (*recorded, *named):
        if place.host != host:
            elsewhere.append(place)
            continue
        books = _books_of(place.path)
        if place.kind != NAMED and own_book and books and own_book.isdisjoint(books):
            continue  # what was written there was moved, and another class has its place now
        torn |= dict.fromkeys(_torn_beside(place.path))
        if (place.path / BOOK).exists() or place.kind == RESULTS:
            results.append(place.path)
        elif place.path.exists():
            written[place.path] = place.kind
    inside = (*results, *written)
    return KeptPlaces(
        tuple(dict.fromkeys(results)),
        tuple(written.items()),
        tuple(dict.fromkeys(elsewhere)),
        tuple(path for path in torn if not any(path.is_relative_to(place) for place in inside)),
    )


def _books_of(place: Path) -> frozenset[str]:
    """The gradebooks that results or a publication in a folder are of, by `Gradebook.identity`."""
    before, books = noted(place), set()
    if before is not None:
        books.add(before.book)
    with contextlib.suppress(OSError, ValueError):
        books.add(Manifest.model_validate_json((place / MANIFEST).read_bytes()).book)
    return frozenset(books)


def _torn_beside(place: Path) -> list[Path]:
    """What a killed command left half-written beside a file or folder that it was to write."""
    try:
        return sorted(path for path in place.parent.glob(".*.part") if _PART.fullmatch(path.name))
    except OSError:  # the folder may not be read
        return []


def with_names(places: KeptPlaces, mentions: Mentions) -> Mentions:
    """The mentions, with the names that tables among the files give the persons beside their ids.

    A name that a table gives somebody else as well identifies nobody: it is no mention.
    """
    found = TableNames()
    for path, name, kind in _files(places):
        if kind and name.lower().endswith((".csv", ".tsv", ".xls")) and path.stat().st_size < _SIZE:
            found |= names_in(name, path.read_bytes(), mentions)
    others = Mentions(frozenset(), found.others)
    names = mentions.names | found.theirs
    return replace(mentions, names=frozenset(name for name in names if not others.are_whole(name)))


def kept_files(places: KeptPlaces, mentions: Mentions) -> list[KeptFile]:
    """The files that mention the persons, with what becomes of each, in order of their paths.

    Raises:
        UsageError: A file cannot be read.
    """
    found = []
    for path, name, kind in _files(places):
        is_part = _PART.fullmatch(path.name) is not None
        kind = LEFT_BY_KILLED if is_part else kind
        is_own = name.partition("/")[0] in (STUDENTS, ORAL) and _is_of_person(name, mentions) and not is_part
        goes_with_others = not is_own and (is_part or _is_made_again(path, name, mentions))
        if is_own or goes_with_others:
            fate = Cleaned(FileFate.GOES)
        elif not kind:
            fate = _others(path, name, mentions)
        else:
            fate = cleaned(name, _content(path), mentions)
        if fate.fate is not FileFate.STAYS:
            what = kind or "file that the grader did not write"
            found.append(KeptFile(path, what, fate, is_own=not goes_with_others))
    found += _torn(places, mentions)
    found += _left_by_killed(mentions)
    for place in places.elsewhere:
        left = Cleaned(FileFate.LEFT, why=f"it was written on the machine {place.host}")
        found.append(KeptFile(place.path, place.kind, left, place.host))
    return found


def stands_as_id(places: KeptPlaces, student_id: str) -> bool:
    """Whether a folder is named by an id, or a record of results has it: it is no mere word."""
    recorded = re.compile(rb'"student_id":\s*"' + re.escape(student_id.encode()) + b'"')
    return any(
        student_id in {*name.split("/")[:-1]} - {*_FOLDERS, INSTRUCTORS} or recorded.search(_content(path))
        for path, name, _ in _files(places)
    )


def _torn(places: KeptPlaces, mentions: Mentions) -> Iterator[KeptFile]:
    """What killed commands left half-written of the persons' work, beside what they were to write."""
    for top in places.torn:
        for path in _walk(top) if top.is_dir() else [top]:
            name = path.relative_to(top.parent).as_posix()
            content = _content(path)
            is_half_a_zip = path == top and content.startswith(b"PK")  # which cannot be searched
            if not (is_half_a_zip or mentions.are_in_path(name) or mentions.are_in_bytes(content)):
                continue
            is_own = mentions.are_in_path(name) and not mentions.names_others(name)
            fate = Cleaned(FileFate.GOES)
            if time.time() - path.stat().st_mtime < RECENT:
                why = "it is half-written, perhaps by a command that still runs: remove it if none does"
                fate = Cleaned(FileFate.LEFT, why=why)
            yield KeptFile(path, LEFT_BY_KILLED, fate, is_own=is_own)


def _left_by_killed(mentions: Mentions) -> Iterator[KeptFile]:
    """What commands that were killed long ago left of the persons' work in the system's temporary folder."""
    oldest = time.time() - LONG_AGO
    for folder in sorted(Path(tempfile.gettempdir()).glob("grader-*")):
        try:
            stat = folder.stat()
            if stat.st_mtime > oldest or (hasattr(os, "getuid") and stat.st_uid != os.getuid()):
                continue
            for path in _walk(folder):
                name = path.relative_to(folder).as_posix()
                is_own = mentions.are_in_path(name) and not mentions.names_others(name)
                if mentions.are_in_path(name) or mentions.are_in_bytes(path.read_bytes()):
                    yield KeptFile(path, LEFT_BY_KILLED, Cleaned(FileFate.GOES), is_own=is_own)
        except OSError:  # it is somebody else's, or gone
            continue


def _is_of_person(name: str, mentions: Mentions) -> bool:
    return any(map(mentions.are_whole, name.split("/")[1:-1]))


def _is_made_again(path: Path, name: str, mentions: Mentions) -> bool:
    """Whether it mentions one of them, and can be made again without them: sheets of oral checks, and records
    of gradings.
    """
    return name.partition("/")[0] in (ORAL, GRADING) and mentions.are_in_bytes(_content(path))


def _others(path: Path, name: str, mentions: Mentions) -> Cleaned:
    """A file in the results folder that the grader did not write: it is read, and never changed."""
    found = cleaned(name, _content(path), mentions)
    if found.fate is FileFate.STAYS:
        return found
    return Cleaned(
        FileFate.LEFT, why=found.why or "the grader did not write it: name it with --also to clean it"
    )


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # gone since it was listed
        return b""
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}). Nothing was forgotten.") from None


def _files(places: KeptPlaces) -> Iterator[tuple[Path, str, str]]:
    """(file, its path below the place, what it is; empty: the grader did not write it), each once."""
    seen: set[Path] = set()
    written_in = {path for path, _ in places.written}
    for out in places.results:
        for path in _walk(out):
            name = path.relative_to(out).as_posix()
            first = name.partition("/")[0]
            if _DATABASE.fullmatch(name) or first in (USE, UNFINISHED) or path in seen:
                continue
            if written_in.intersection((path, *path.parents)):
                continue
            seen.add(path)
            yield path, name, (_FOLDERS.get(first) if "/" in name else _CLASS_FILES.get(name)) or ""
    for place, kind in places.written:
        for path in _walk(place) if place.is_dir() else [place]:
            if path not in seen and not _DATABASE.fullmatch(path.name):
                seen.add(path)
                yield path, path.relative_to(place).as_posix() if place.is_dir() else path.name, kind


def _walk(folder: Path) -> Iterator[Path]:
    for at, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(at, name) for name in sorted(names))


# --- doing it --------------------------------------------------------------------------------------------


def carry_out(files: Sequence[KeptFile], mentions: Mentions) -> list[tuple[KeptFile, str]]:
    """Remove files, and write those that change; returns those that could not be, each with the reason."""
    failed = []
    for file in files:
        try:
            if file.cleaned.fate is FileFate.GOES:
                file.path.unlink(missing_ok=True)
                if mentions.are_in(file.path.parent.name):
                    with contextlib.suppress(OSError):  # it holds other files
                        file.path.parent.rmdir()
            elif file.cleaned.fate is FileFate.CHANGES:
                mode = file.path.stat().st_mode & 0o777
                atomic.write(file.path, file.cleaned.content)
                file.path.chmod(mode)
        except OSError as error:
            failed.append((file, error.strerror or type(error).__name__))
        except UsageError as error:
            failed.append((file, str(error).rstrip(".")))
    return failed


def by_kind(files: Iterable[KeptFile]) -> dict[str, int]:
    """Kind -> how many files."""
    return dict(Counter(file.kind for file in files))
