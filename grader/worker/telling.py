"""Forbidden parts made to report their own use: their code is replaced by sealed code that reports first.

It computes the replacement, and proofs that each part is still in its place. `parts` finds what is forbidden,
and `grader.scoring.forbidden_costs` decides what a report costs.

Tests: tests/worker/test_watch.py
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from grader.worker.parts import Part
from grader.worker.sealed import FILE, sealed, sealed_code

NOTHING = -1  # in the place of a part's number


@dataclass(frozen=True)
class Told:
    """Parts that tell.

    Attributes:
        count: How many.
        prove: Has them tell a token: all, or one of them.
    """

    count: int
    prove: Callable[[int, int | None], None]


def telling(
    parts: Sequence[Part], first: int, tell: Callable[[bytes], None], asked_by: Callable[..., Any]
) -> Told:
    """Have parts tell.

    Args:
        parts: Which; none of them does already.
        first: The number of the first of them.
        tell: Writes a document to the judge, sealed.
        asked_by: Finds for whom a frame works, sealed.
    """
    challenge = type("Challenge", (int,), {})
    numbers = {f"{FILE}{first + place}": first + place for place in range(len(parts))}
    entries = []
    for place, part in enumerate(parts):
        number = first + place
        used = sealed(
            _used,
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
    return Told(len(parts), sealed(_prove, "prove", entries=tuple(entries), challenge=challenge))


_Entry = tuple[
    tuple[tuple[Mapping[str, Any], str, Any], ...], tuple[tuple[FunctionType, CodeType], ...], FunctionType
]
"""(what stands where, what code is whose, a function that tells)."""


def _entry(part: Part, number: int, used: FunctionType) -> _Entry:
    """Have one part tell, and by what it is seen that it does."""
    functions, standing = part.functions, part.thing
    for function in functions:
        _tell_first(function, number, used)
    if not functions:
        standing = _stand_in(part, number, used)
        functions = (standing,)
    places: list[tuple[Mapping[str, Any], str, Any]] = [
        (vars(module), name, standing) for module, name in part.places
    ]
    if isinstance(standing, type):
        places += [(vars(standing), name, vars(standing)[name]) for name in part.names]
    return tuple(places), tuple((function, function.__code__) for function in functions), functions[0]


def _tell_first(function: FunctionType, number: int, used: FunctionType) -> None:
    """Put code into a function that tells, and then does what the function did."""
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


def _stand_in(part: Part, number: int, used: FunctionType) -> FunctionType:
    """A function in the places of a part that has no code of Python's."""
    name = part.name.rpartition(".")[2]
    function = sealed(_trampoline, str(number), used=used, original=part.thing)
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = part.name.removesuffix(f".{name}"), part.thing.__doc__
    for module, place in part.places:
        setattr(module, place, function)
    return function


# --- templates --------------------------------------------------------------------------------------------


def _trampoline(*args: Any, **kwargs: Any) -> Any:
    used: Any = "sealed:used"
    original: Any = "sealed:original"
    if used(args):
        return None
    return original(*args, **kwargs)


def _used(args: tuple[Any, ...]) -> bool:
    """Tell; true where it was only a trial."""
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
    if inside is None:
        inside = "sealed:nothing"
    if inside != part:  # a part that uses itself is used already
        tell(b'{"$kind":"Reached","part":%d,"inside":%d,"file":%b,"line":%d}' % (part, inside, file, line))
    return False


def _prove(token: int, which: int | None) -> None:
    entries: Any = "sealed:entries"
    challenge: Any = "sealed:challenge"
    if which is not None:
        entries = entries[which : which + 1]
    for places, codes, function in entries:
        whole = True
        for namespace, name, standing in places:
            whole = whole and namespace.get(name) is standing
        for each, code in codes:
            whole = whole and each.__code__ is code
        if whole:
            function(challenge(token))
