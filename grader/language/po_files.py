"""Catalogues: `.po` files, as gettext has them and Poedit opens them, read into a `Language`."""

from collections.abc import Iterator, Sequence
from functools import cache
from gettext import c2py
from importlib.util import find_spec
from pathlib import Path

from grader.domain.errors import CourseError, UsageError
from grader.language.translation import ENGLISH, Language, Message

CATALOGUES = Path(__file__).parent / "catalogues"
FOLDER = "language"  # of a course or of an assignment, with catalogues of its own
_FROM_THE_RIGHT = frozenset({"ar", "arc", "ckb", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi"})


def available(*folders: Path) -> tuple[str, ...]:
    """The codes of the languages that reports can be written in, English first.

    Args:
        folders: With catalogues beside the engine's: a course's own.
    """
    found = {path.stem for folder in (CATALOGUES, *folders) for path in folder.glob("*.po")}
    return ("en", *sorted(found - {"en"}))


def require_language(code: str, source: str, *folders: Path) -> None:
    """Refuse a language that no catalogue translates to, or that cannot be read here.

    Args:
        code: As the course names it.
        source: Where it names it, as a sentence begins: `course.toml: 'language'`.
        folders: With catalogues beside the engine's.

    Raises:
        CourseError: There is no such catalogue.
        UsageError: Babel, which reads catalogues, is not installed.
    """
    known = available(*folders)
    if code not in known:
        choices = ", ".join(f"'{each}'" for each in known)
        raise CourseError(
            f"{source} is '{code}', and there is no catalogue {code}.po. Choose one of {choices}, or put a "
            f"catalogue into {folders[0] if folders else CATALOGUES}."
        )
    if code != ENGLISH.code and find_spec("babel") is None:
        raise UsageError(
            f"{source} is '{code}', and Babel, which reads the catalogue, is not installed. "
            "Install it: pip install 'vit-grader[language]'"
        )


def language(code: str, folders: Sequence[Path] = ()) -> Language:
    """The language of a code, with what the engine, the course and the assignment translate.

    Args:
        code: `en` is the language that sentences are made in.
        folders: With further catalogues; what a later one says wins.

    Raises:
        CourseError: A catalogue is not a `.po` file.
        UsageError: Babel is not installed.
    """
    if code == ENGLISH.code:
        return ENGLISH
    paths = [folder / f"{code}.po" for folder in (CATALOGUES, *folders)]
    known = tuple((path, path.stat().st_mtime_ns) for path in paths if path.is_file())
    return _read(code, known)


@cache
def _read(code: str, paths: tuple[tuple[Path, int], ...]) -> Language:
    """The language as its files were at a time, which tells them from what they are later."""
    messages: list[Message] = []
    rule = "n != 1"
    for path, _ in paths:
        messages += _messages(path)
        rule = _plural_rule(path) or rule
    direction = "rtl" if code.partition("-")[0].partition("_")[0] in _FROM_THE_RIGHT else "ltr"
    return Language(code, direction, tuple(messages), c2py(rule))


def _messages(path: Path) -> Iterator[Message]:
    """What a catalogue translates; what is marked as fuzzy is not."""
    try:
        from babel.messages.pofile import PoFileError, read_po
    except ImportError:
        raise UsageError(
            f"{path.name} cannot be read: Babel is not installed. "
            "Install it: pip install 'vit-grader[language]'"
        ) from None
    try:
        with path.open("rb") as file:
            catalog = read_po(file, abort_invalid=True)
    except (OSError, ValueError, PoFileError) as error:
        raise CourseError(f"{path} is not a catalogue ({error}). Open it in Poedit, and save it.") from None
    for entry in catalog:
        forms = (entry.id,) if isinstance(entry.id, str) else tuple(entry.id)
        texts = (entry.string,) if isinstance(entry.string, str) else tuple(entry.string or ("",))
        if forms[0] and all(texts) and not entry.fuzzy:
            yield Message(forms, texts, "python-brace-format" in entry.flags)


def _plural_rule(path: Path) -> str:
    """Which number takes which translation, as the catalogue's head says it in C."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith('"Plural-Forms:'):
            return line.partition("plural=")[2].partition(";")[0].strip()
        if line.startswith("#:"):
            break
    return ""
