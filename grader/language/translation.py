"""A language: its catalogs, and how a sentence reads in it, with the parts that stay untranslated.

Catalogs are `.po` files, as gettext uses them and Poedit opens them: the engine's, the course's and the
assignment's. This module decides which entry fits a sentence. It never decides which sentences a page
shows.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from gettext import c2py
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

from grader.domain.errors import CourseError, UsageError
from grader.language.sentences import (
    Pattern,
    filled,
    marks,
    pattern,
    placeholders_in_code,
    sentences,
    unmarked,
)

# around the untranslated parts of a translation: private characters, which no sentence of ours contains
BEGIN, END = "\ue000", "\ue001"
_DEEPEST = 5  # sentences within sentences
_LONGEST = 4_000  # characters of a sentence that is looked up
_MOST = 40  # sentences of a text that are looked up
_REMEMBERED = 20_000  # texts
_NUMBER = re.compile(r"\d+")
_OPENERS = (", ", "; ", "(")  # which begin what is added to a sentence
_CLAUSE = re.compile(r", |; | (?=\()")
_NAMES = re.compile(r"[\w.]+(?:, [\w.]+)+", re.ASCII)
_COMMA = {"ltr": ", ", "rtl": "، "}  # between names
_LEFT = re.compile(f"{BEGIN}([^{BEGIN}{END}]*){END}")


@dataclass(frozen=True)
class Piece:
    """A piece of a text, as a page shows it.

    Attributes:
        text: In the language, where `translated`, with untranslated parts between BEGIN and END; otherwise
            the English that was given.
        translated: Whether it is in the language.
    """

    text: str
    translated: bool


@dataclass(frozen=True)
class Message:
    """An entry of a catalog.

    Attributes:
        forms: The English sentence, and its plural where it has one.
        translations: One for each number that the language distinguishes; a single one without plural.
        is_pattern: Whether its `{names}` are placeholders.
    """

    forms: tuple[str, ...]
    translations: tuple[str, ...]
    is_pattern: bool = False

    @cached_property
    def names_in_code(self) -> frozenset[str]:
        """The placeholders that stand in code, in English or in the translation: what fills them stays."""
        return frozenset(
            name for text in (*self.forms, *self.translations) for name in placeholders_in_code(text)
        )


def _is_prose(text: str) -> bool:
    """Whether untranslated words are prose, rather than a list of names or numbers."""
    items = unmarked(text).split(",")
    return any(sum(not _NUMBER.search(word) for word in item.strip().split(" ")) > 1 for item in items)


def _is_closed(text: str) -> bool:
    """Whether each bracket is closed: a list is not divided within a call, such as `f(x, y)`."""
    return all(text.count(opened) == text.count(closed) for opened, closed in ("()", "[]", "{}"))


def _words(untranslated: Sequence[str]) -> int:
    return sum(len(words.split()) for words in untranslated)


def _of_germanic(number: int) -> int:
    return int(number != 1)


@dataclass(frozen=True)
class Language:
    """A language that pages are written in.

    Attributes:
        code: As in `<html lang>`: `fa`.
        direction: `ltr` or `rtl`.
        messages: The entries of its catalogs; later ones win.
        form: Which translation a number takes.
    """

    code: str = "en"
    direction: str = "ltr"
    messages: tuple[Message, ...] = field(default=(), repr=False)
    form: Callable[[int], int] = field(default=_of_germanic, repr=False, compare=False)

    @property
    def is_english(self) -> bool:
        """Whether sentences are shown as they were made."""
        return self.code == "en" and not self.messages

    @cached_property
    def _exact(self) -> Mapping[str, Message]:
        return {form: message for message in self.messages for form in message.forms}

    @cached_property
    def _patterns(self) -> Sequence[tuple[Pattern, Message]]:
        made: dict[str, tuple[Pattern, Message]] = {}
        for message in self.messages:
            if message.is_pattern:
                for form in message.forms:
                    if (shape := pattern(form)) is not None:
                        made[form] = (shape, message)
        return sorted(made.values(), key=lambda pair: pair[0].rank)

    @cached_property
    def _clauses(self) -> Sequence[tuple[Pattern, Message]]:
        return [pair for pair in self._patterns if pair[0].literals[0].startswith(_OPENERS)]

    def gettext(self, message: str) -> str:
        """The translation of a fixed text; the text itself where there is none."""
        entry = self._exact.get(message)
        return entry.translations[0] if entry is not None else message

    def ngettext(self, singular: str, plural: str, number: int) -> str:
        """The translation of a fixed text with a number."""
        entry = self._exact.get(singular)
        if entry is None or entry.forms[-1] != plural:
            return singular if number == 1 else plural
        return self._of_number(entry, number)

    def pieces(self, text: str) -> tuple[Piece, ...]:
        """A composed text in the language, piece by piece; what has no translation stays as it is.

        An exact entry wins over an entry with placeholders. Of the latter, one that says something by itself
        wins over one that only orders its values. Then the one that leaves the fewest words untranslated
        wins, then the one whose own words begin first, then the one with the most words of its own. Values of
        placeholders are translated where they are sentences of ours themselves. A sentence and the clauses
        added to it are looked up apart where that leaves fewer words untranslated.
        """
        if self.is_english or not text.strip() or len(text) > _LONGEST or BEGIN in text or END in text:
            return (Piece(text, False),)
        return self._pieces(text, 0)

    def translated(self, text: str) -> str:
        """The same as one plain text, without marks."""
        joined = " ".join(piece.text for piece in self.pieces(text))
        return joined.replace(BEGIN, "").replace(END, "") if not self.is_english else text

    def _pieces(self, text: str, depth: int) -> tuple[Piece, ...]:
        parts = sentences(text)
        if len(parts) > _MOST:
            return (Piece(text, False),)
        made: list[Piece] = []
        begin = 0
        while begin < len(parts):
            for end in range(len(parts), begin, -1):
                run = " ".join(parts[begin:end])
                translation = self._looked_up(run, depth, alone=end == begin + 1)
                if translation is not None:
                    made.append(Piece(translation, True))
                    begin = end
                    break
            else:
                if made and not made[-1].translated:
                    made[-1] = Piece(f"{made[-1].text} {parts[begin]}", False)
                else:
                    made.append(Piece(parts[begin], False))
                begin += 1
        if len(parts) > 1 and not any(piece.translated for piece in made):
            translation_of_all = self._looked_up(text, depth, alone=True)
            if translation_of_all is not None:
                return (Piece(translation_of_all, True),)
        return tuple(made)

    @cached_property
    def _known(self) -> dict[tuple[str, int, bool], str | None]:
        return {}

    def _looked_up(self, text: str, depth: int, *, alone: bool) -> str | None:
        """The translation of a text as a whole; None where there is none.

        Each is found once: the parts of a sentence come up again and again.

        Args:
            alone: The text is one sentence, so that a value may contain the end of one.
        """
        key, known = (text, depth, alone), self._known
        try:
            return known[key]
        except KeyError:
            found = self._found(text, depth, alone=alone)
        if len(known) > _REMEMBERED:  # other threads may look up at the same time
            known.clear()
        known[key] = found
        return found

    def _found(self, text: str, depth: int, *, alone: bool) -> str | None:
        exact = self._exact.get(text)
        if exact is not None and not (exact.is_pattern and pattern(text)):
            return exact.translations[0]
        quoted, best, best_rank = marks(text), None, (True, _LONGEST, 0)
        for shape, message in self._patterns:  # the most specific first
            values = shape.match(text, quoted)
            if values is None or (shape.orders and not all(map(_is_closed, values.values()))):
                continue
            if not (alone or all(len(sentences(value)) == 1 for value in values.values())):
                continue
            shown = self._shown(message, values, depth)
            untranslated = [words for value in shown.values() for words in _LEFT.findall(value)]
            if shape.orders and any(map(_is_prose, untranslated)):
                continue
            # a pattern that begins with words of its own is preferred
            first = 0 if shape.literals[0] else len(values[shape.names[0]])
            rank = (shape.orders, _words(untranslated), first)
            if rank < best_rank:
                number = next(
                    (int(digits[0]) for value in values.values() if (digits := _NUMBER.match(value))), 1
                )
                best, best_rank = filled(self._of_number(message, number), shown), rank
        if best is not None and not best_rank[1]:
            return best
        tailed = self._with_tail(text, depth)
        if best is None or (tailed is not None and _words(_LEFT.findall(tailed)) < best_rank[1]):
            return tailed
        return best

    def _with_tail(self, text: str, depth: int) -> str | None:
        """The translation of a sentence with added clauses (`..., 35 not run`), if there is one."""
        quoted = marks(text)
        places = [
            clause.start()
            for clause in _CLAUSE.finditer(text)
            if clause.start() and not quoted.within(clause.start())
        ]
        for position in reversed(places[-_MOST:]):
            tail = self._clause(text[position:].removesuffix("."), depth)
            head = self._looked_up(text[:position], depth, alone=True) if tail is not None else None
            if tail is not None and head is not None:
                return f"{head}{tail}{'.' if text.endswith('.') else ''}"
        return None

    def _clause(self, text: str, depth: int) -> str | None:
        """The translation of a clause that begins with a comma, a semicolon or a bracket."""
        space, text = (" ", text.strip()) if text.startswith(" ") else ("", text)
        fixed = self._exact.get(text)
        if fixed is not None and not fixed.is_pattern:
            return space + fixed.translations[0]
        quoted = marks(text)
        for shape, message in self._clauses:
            values = shape.match(text, quoted)
            if values is not None:
                shown = self._shown(message, values, depth)
                return space + filled(message.translations[0], shown)
        return None

    def _shown(self, message: Message, values: Mapping[str, str], depth: int) -> dict[str, str]:
        """What fills the placeholders of a message."""
        return {
            name: f"{BEGIN}{value}{END}" if name in message.names_in_code else self._shown_value(value, depth)
            for name, value in values.items()
        }

    def _shown_value(self, value: str, depth: int) -> str:
        """A placeholder's value: translated where it is a text of ours, else marked as untranslated."""
        if depth < _DEEPEST and not value.isnumeric():
            words = value.strip(" ")  # a clause before or after others has a space there
            made = self._pieces(words, depth + 1)
            if any(piece.translated for piece in made):
                shown = (piece.text if piece.translated else f"{BEGIN}{piece.text}{END}" for piece in made)
                before, _, after = value.partition(words)
                return f"{before}{' '.join(shown)}{after}"
        if _NAMES.fullmatch(value):  # one by one, or the list would run against the sentence
            return _COMMA[self.direction].join(f"{BEGIN}{name}{END}" for name in value.split(", "))
        return f"{BEGIN}{value}{END}"

    def _of_number(self, message: Message, number: int) -> str:
        if len(message.forms) < 2:
            return message.translations[0]
        return message.translations[min(self.form(number), len(message.translations) - 1)]


ENGLISH = Language()


# --- po files --------------------------------------------------------------------------------------------


CATALOGS = Path(__file__).parent / "catalogs"
FOLDER = "language"  # of a course or of an assignment, with catalogs of its own
_FROM_THE_RIGHT = frozenset({"ar", "arc", "ckb", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi"})


def available(*folders: Path) -> tuple[str, ...]:
    """The codes of the languages that reports can be written in, English first.

    Args:
        folders: Folders with catalogs besides the engine's, such as a course's.
    """
    codes = {path.stem for folder in (CATALOGS, *folders) for path in folder.glob("*.po")}
    return ("en", *sorted(codes - {"en"}))


def require_language(code: str, source: str, *folders: Path) -> None:
    """Refuse a language without a catalog, or whose catalog cannot be read here.

    Args:
        code: As the course names it.
        source: Where it names it, to begin a sentence: `course.toml: 'language'`.
        folders: Folders with catalogs besides the engine's.

    Raises:
        CourseError: There is no such catalog.
        UsageError: Babel, which reads catalogs, is not installed.
    """
    codes = available(*folders)
    if code not in codes:
        choices = ", ".join(f"'{choice}'" for choice in codes)
        raise CourseError(
            f"{source} is '{code}', and there is no catalog {code}.po. Choose one of {choices}, or put a "
            f"catalog into {folders[0] if folders else CATALOGS}."
        )
    if code != ENGLISH.code and find_spec("babel") is None:
        raise UsageError(
            f"{source} is '{code}', and Babel, which reads the catalog, is not installed. "
            "Install it: pip install 'vit-grader[language]'"
        )


def language(code: str, folders: Sequence[Path] = ()) -> Language:
    """The language of a code, with the translations of the engine, the course and the assignment.

    Args:
        code: `en` is the language in which sentences are composed.
        folders: Folders with further catalogs; later ones win.

    Raises:
        CourseError: A catalog is not a `.po` file.
        UsageError: Babel is not installed.
    """
    if code == ENGLISH.code:
        return ENGLISH
    paths = [folder / f"{code}.po" for folder in (CATALOGS, *folders)]
    dated_paths = tuple((path, path.stat().st_mtime_ns) for path in paths if path.is_file())
    return _read(code, dated_paths)


@cache
def _read(code: str, paths: tuple[tuple[Path, int], ...]) -> Language:
    """The language in its files, whose times of modification are part of the cache's key."""
    messages: list[Message] = []
    rule = "n != 1"
    for path, _ in paths:
        messages += _messages(path)
        rule = _plural_rule(path) or rule
    direction = "rtl" if code.partition("-")[0].partition("_")[0] in _FROM_THE_RIGHT else "ltr"
    return Language(code, direction, tuple(messages), c2py(rule))


def _messages(path: Path) -> Iterator[Message]:
    """The translated entries of a catalog, without those marked as fuzzy."""
    try:
        from babel.messages.pofile import PoFileError, read_po
    except ImportError:
        raise UsageError(
            f"{path.name} cannot be read: Babel is not installed. "
            "Install it: pip install 'vit-grader[language]'"
        ) from None
    try:
        catalog = read_po(BytesIO(path.read_bytes().removeprefix(BOM_UTF8)), abort_invalid=True)
    except (OSError, ValueError, LookupError, PoFileError) as error:
        raise CourseError(f"{path} is not a catalog ({error}). Open it in Poedit, and save it.") from None
    for entry in catalog:
        forms = (entry.id,) if isinstance(entry.id, str) else tuple(entry.id)
        texts = (entry.string,) if isinstance(entry.string, str) else tuple(entry.string or ("",))
        if forms[0] and all(texts) and not entry.fuzzy:
            yield Message(forms, texts, "python-brace-format" in entry.flags)


def _plural_rule(path: Path) -> str:
    """Which number takes which translation, as the catalog's header says in C."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():  # a rule is in ASCII
        if line.startswith('"Plural-Forms:'):
            rule = line.partition("plural=")[2].partition(";")[0].strip()
            try:
                c2py(rule or "0")
            except ValueError as error:
                raise CourseError(f"{path}: {error}, in 'Plural-Forms'. Correct it in Poedit.") from None
            return rule
        if line.startswith("#:"):
            break
    return ""
