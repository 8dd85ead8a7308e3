"""Run-time watch for forbidden parts, however their names were spelled.

It finds what the assignment's patterns name among the imported modules, under all its names; a class without
Python code is left out. The code of each part is replaced by sealed code that reports its use to the judge
before it does anything else; no list is kept here. It can prove that each part is still in its place.
Forbidden modules of a model are seen by `grader.judge.student`, too; functions, and modules outside of a
model, only here. `grader.protocol.worker_reports` keeps the reports, and `grader.scoring.rubric_lines`
decides what a use costs.

Tests: tests/worker/test_components.py, tests/worker/test_watch.py
"""

import itertools
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import CodeType, FunctionType, ModuleType
from typing import Any

from grader.protocol.replies import WatchedPart, Watching
from grader.worker.audit_hook import listen
from grader.worker.name_patterns import matching
from grader.worker.sealed_functions import FILE, Lines, asker, sealed, sealed_code, voice


@dataclass(frozen=True)
class Part:
    """A class, or a function, that is forbidden.

    Attributes:
        thing: The class or function itself.
        name: The first dotted name under which it was found.
        patterns: All patterns that match it.
        places: (module, name) of all places where it was found, and of its home.
        functions: The methods that a class defines itself, or the function; none without Python code.
        names: The functions' names in a class.
        file: Where its code is; empty if it has none.
    """

    thing: Any
    name: str
    patterns: tuple[str, ...]
    places: tuple[tuple[ModuleType, str], ...]
    functions: tuple[FunctionType, ...]
    names: tuple[str, ...]
    file: str

    @property
    def things(self) -> tuple[Any, ...]:
        """It, and what is now in its places."""
        return (self.thing, *(vars(module).get(name) for module, name in self.places))


def forbidden_parts(patterns: Sequence[str], excluded: Collection[int]) -> list[Part]:
    """What the patterns name.

    Args:
        excluded: The `id` of what is left out.
    """
    by_thing: dict[int, list[tuple[str, ModuleType, str, Any]]] = {}
    for pattern in patterns:
        for module, name, thing in _named(pattern):
            if id(thing) not in excluded:
                by_thing.setdefault(id(thing), []).append((pattern, module, name, thing))
    parts = [_part(occurrences) for occurrences in by_thing.values()]
    return [part for part in parts if part.functions or not isinstance(part.thing, type)]


def _part(occurrences: list[tuple[str, ModuleType, str, Any]]) -> Part:
    _, module, name, thing = occurrences[0]
    places = dict.fromkeys((module, name) for _, module, name, _ in occurrences)
    home = getattr(thing, "__self__", None)  # a builtin function's `__self__` is its module
    if isinstance(home, ModuleType) and vars(home).get(name) is thing:
        places[home, name] = None
    functions = dict(_functions(thing))
    return Part(
        thing,
        f"{module.__name__}.{name}",
        tuple(dict.fromkeys(pattern for pattern, *_ in occurrences)),
        tuple(places),
        tuple(functions.values()),
        tuple(functions),
        next((function.__code__.co_filename for function in functions.values()), ""),
    )


def _named(pattern: str) -> Iterator[tuple[ModuleType, str, Any]]:
    """(module, name, thing) of everything that a pattern names."""
    itself = sys.modules.get(pattern)
    if itself is not None:
        yield from _defined(itself)
    module_name, _, last = pattern.rpartition(".")
    module = sys.modules.get(module_name)
    if module is None:
        return
    found = dict(vars(module))
    for name in matching(found, last):
        value = found[name]
        if isinstance(value, ModuleType):
            yield from _defined(value)
        elif callable(value):
            yield module, name, value


def _defined(module: ModuleType) -> Iterator[tuple[ModuleType, str, Any]]:
    """What a module defines itself, or takes from modules inside it: `sklearn.metrics` is made of such."""
    inside = f"{module.__name__}."
    for name, value in list(vars(module).items()):
        home = getattr(value, "__module__", None)
        if callable(value) and isinstance(home, str) and (home == module.__name__ or home.startswith(inside)):
            yield module, name, value


def _functions(thing: Any) -> Iterator[tuple[str, FunctionType]]:
    """The function, or those that a class defines itself: an inherited one belongs to other classes too."""
    if isinstance(thing, FunctionType):
        yield thing.__name__, thing
    elif isinstance(thing, type):
        for name, value in vars(thing).items():
            function = getattr(value, "__func__", value)
            if isinstance(function, FunctionType) and _is_own(function, thing):
                yield name, function


def _is_own(function: FunctionType, kind: type) -> bool:
    return function.__module__ == kind.__module__ and function.__qualname__.startswith(
        f"{kind.__qualname__}."
    )


# --- reporting -------------------------------------------------------------------------------------------


NOTHING = -1  # in place of a part's number


@dataclass(frozen=True)
class ReportingParts:
    """Parts that report their use.

    Attributes:
        count: How many.
        prove: Has them report a token: all, or one of them.
    """

    count: int
    prove: Callable[[int, int | None], None]


def made_reporting(
    parts: Sequence[Part], first: int, tell: Callable[[bytes], None], asked_by: Callable[..., Any]
) -> ReportingParts:
    """Make parts report their use.

    Args:
        parts: Which; none of them reports already.
        first: The number of the first of them.
        tell: Writes a document to the judge, sealed: see `sealed_functions`.
        asked_by: Finds on behalf of which code a frame runs, sealed.
    """
    challenge = type("Challenge", (int,), {})
    numbers = {f"{FILE}{first + place}": first + place for place in range(len(parts))}
    entries = []
    for place, part in enumerate(parts):
        number = first + place
        used = sealed(
            _report_use,
            "used",
            part=number,
            kind=type,
            challenge=challenge,
            frame=sys._getframe,
            asked_by=asked_by,
            numbers=numbers.get,
            nothing=NOTHING,
            tell=tell,
        )
        entries.append(_entry(part, number, used))
    return ReportingParts(len(parts), sealed(_prove, "prove", entries=tuple(entries), challenge=challenge))


_Entry = tuple[
    tuple[tuple[Mapping[str, Any], str, Any], ...], tuple[tuple[FunctionType, CodeType], ...], FunctionType
]
"""((namespace, name, expected value), (function, its code), a function that reports)."""


def _entry(part: Part, number: int, used: FunctionType) -> _Entry:
    """Make one part report its use; returns what `_prove` compares to see whether it still does."""
    functions, expected = part.functions, part.thing
    for function in functions:
        _tell_first(function, number, used)
    if not functions:
        expected = _fake(part, number, used)
        functions = (expected,)
    places: list[tuple[Mapping[str, Any], str, Any]] = [
        (vars(module), name, expected) for module, name in part.places
    ]
    if isinstance(expected, type):
        places += [(vars(expected), name, vars(expected)[name]) for name in part.names]
    return tuple(places), tuple((function, function.__code__) for function in functions), functions[0]


def _tell_first(function: FunctionType, number: int, used: FunctionType) -> None:
    """Give a function code that reports first, and then does what the function did."""
    code = function.__code__
    original = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    original.__kwdefaults__ = function.__kwdefaults__
    instead = sealed_code(_trampoline, str(number), used=used, original=original)
    # a function's code must have as many free variables as the function has cells
    function.__code__ = instead.replace(
        co_freevars=code.co_freevars, co_name=code.co_name, co_qualname=code.co_qualname
    )


def _fake(part: Part, number: int, used: FunctionType) -> FunctionType:
    """A function that replaces a part without Python code."""
    name = part.name.rpartition(".")[2]
    function = sealed(_trampoline, str(number), used=used, original=part.thing)
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = part.name.removesuffix(f".{name}"), part.thing.__doc__
    for module, place in part.places:
        setattr(module, place, function)
    return function


# --- templates of sealed functions: texts like "sealed:used" stand for values that `sealed` puts in ---------


def _trampoline(*args: Any, **kwargs: Any) -> Any:
    used: Any = "sealed:used"
    original: Any = "sealed:original"
    if used(args):
        return None
    return original(*args, **kwargs)


def _report_use(args: tuple[Any, ...]) -> bool:
    """Report a use; true if it was only a trial."""
    kind: Any = "sealed:kind"
    challenge: Any = "sealed:challenge"
    tell: Any = "sealed:tell"
    part: Any = "sealed:part"
    if args and kind(args[0]) is challenge:
        tell(b'{"$kind":"Tried","part":%d,"token":%d}' % (part, args[0]))
        return True
    frame: Any = "sealed:frame"
    asked_by: Any = "sealed:asked_by"
    inside, file, line = asked_by(frame(2), "sealed:numbers")
    if inside is True:
        return False
    if inside is None:
        inside = "sealed:nothing"
    if inside != part:  # if a part calls itself, the first call was reported
        tell(b'{"$kind":"Reached","part":%d,"inside":%d,"file":%b,"line":%d}' % (part, inside, file, line))
    return False


def _prove(token: int, which: int | None) -> None:
    entries: Any = "sealed:entries"
    challenge: Any = "sealed:challenge"
    if which is not None:
        entries = entries[which : which + 1]
    for places, codes, function in entries:
        is_intact = True
        for namespace, name, expected in places:
            is_intact = is_intact and namespace.get(name) is expected
        for inner, code in codes:
            is_intact = is_intact and inner.__code__ is code
        if is_intact:
            function(challenge(token))


# --- forbidden -------------------------------------------------------------------------------------------


_MARK = "grader.worker.until_here"  # a module without content that divides `sys.modules`


class ForbiddenWatch:
    """Has every use of a forbidden part reported to the judge from now on.

    It is a second pair of eyes: the judge also sees the module tree, and the source was searched before.
    Whatever a student's code finds or changes here, what is watched stays watched: see `sealed`.
    """

    def __init__(
        self, patterns: Sequence[str], lines: Lines, descriptor: int, say: Callable[[Watching], None]
    ) -> None:
        """Begin to watch what is imported already.

        Args:
            patterns: What is forbidden.
            lines: How lines are distinguished.
            descriptor: Where the judge listens.
            say: Sends the judge what is watched.
        """
        self._patterns = tuple(patterns)
        self._say = say
        self._tell = voice(descriptor)
        self._asked_by = asker(lines)
        self._reporting: list[ReportingParts] = []
        self._watched: set[int] = set()  # the `id` of what is watched, which is never collected
        parts = self._cover()
        listen(self._tell, self._asked_by, lines, self._patterns, {part.file for part in parts} - {""})
        self.begin()

    def begin(self) -> None:
        """Forget what was imported so far, at the top of files: an import that nothing uses costs nothing."""
        self._cover()
        sys.modules.pop(_MARK, None)
        sys.modules[_MARK] = ModuleType(_MARK)

    def imported(self) -> None:
        """Report the forbidden modules that were imported since `begin`, and watch them too."""
        numbers = sorted({number for name in _imported_since_mark() for number in self._patterns_of(name)})
        for number in numbers:
            self._tell(b'{"$kind":"Imported","pattern":%d,"file":"","line":0}' % number)
        if numbers:
            self._cover()

    def prove(self, token: int, which: int | None = None) -> None:
        """Use the parts in a way that has no effect except their reports.

        Args:
            token: Is reported by each part that is still in its place.
            which: Use only one of them: this number, modulo their count.
        """
        first = 0
        place = None if which is None else which % max(self._count, 1)
        for reporters in self._reporting:
            if place is None:
                reporters.prove(token, None)
            elif first <= place < first + reporters.count:
                reporters.prove(token, place - first)
            first += reporters.count

    @property
    def _count(self) -> int:
        return sum(reporters.count for reporters in self._reporting)

    def _patterns_of(self, module: str) -> list[int]:
        """The numbers of the patterns that a module falls under."""
        top = module.partition(".")[0]
        return [
            number
            for number, pattern in enumerate(self._patterns)
            if fnmatchcase(module, pattern) or top == pattern
        ]

    def _cover(self) -> list[Part]:
        """Watch what is imported and not watched yet, and return it."""
        parts = forbidden_parts(self._patterns, self._watched)
        if parts or not self._reporting:
            self._reporting.append(made_reporting(parts, self._count, self._tell, self._asked_by))
            self._watched |= {id(thing) for part in parts for thing in part.things}
            self._say(Watching(tuple(WatchedPart(part.name, part.patterns) for part in parts)))
        return parts


def _imported_since_mark() -> Iterator[str]:
    """The names of the modules that were imported after the mark was set.

    Modules are in the order of their import. In a fork, looking at all of them copies the memory that holds
    their names, which takes 11 ms; few come after the mark.
    """
    return itertools.takewhile(lambda name: name != _MARK, reversed(sys.modules))
