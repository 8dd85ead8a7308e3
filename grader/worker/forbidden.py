"""Run-time watch for forbidden parts, however their names were spelled.

The code of a forbidden part itself reports its use to the judge before it does anything else; no list is kept
here. It covers what the assignment's patterns match among imported modules. `grader.protocol.watching` keeps
the reports, and `grader.scoring.forbidden_costs` decides what a use costs.

Tests: tests/worker/test_watch.py, tests/worker/test_components.py
"""

import fnmatch
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

from grader.protocol.replies import WatchedPart, Watching
from grader.worker.parts import Part, forbidden_parts
from grader.worker.prying import listen
from grader.worker.telling import Told, telling
from grader.worker.voice import Lines, asker, voice

_MARK = "grader.worker.until_here"


class ForbiddenWatch:
    """Has every use of a forbidden part told to the judge, from its making on.

    It is a second pair of eyes: the judge also sees the module tree, and the source was searched before.
    What a student's code finds here or changes takes nothing from what is watched already: see `sealed`.
    """

    def __init__(
        self, patterns: Sequence[str], lines: Lines, descriptor: int, say: Callable[[Watching], None]
    ) -> None:
        """Begin to watch what is imported already.

        Args:
            patterns: What is forbidden.
            lines: How lines are told apart.
            descriptor: Where the judge listens.
            say: Sends the judge what is watched.
        """
        self._patterns = tuple(patterns)
        self._say = say
        self._tell = voice(descriptor)
        self._asked_by = asker(lines)
        self._told: list[Told] = []
        self._watched: set[int] = set()  # the `id` of what is watched; none of it is ever collected
        parts = self._cover()
        listen(self._tell, self._asked_by, lines, self._patterns, {part.file for part in parts} - {""})
        self.begin()

    def begin(self) -> None:
        """Forget what was imported so far: an import at the top of a file that nothing uses costs nothing."""
        self._cover()
        sys.modules.pop(_MARK, None)
        sys.modules[_MARK] = ModuleType(_MARK)

    def imported(self) -> None:
        """Tell of the forbidden modules that were imported since the beginning, and watch them too."""
        found = sorted({number for name in _imported_since_mark() for number in self._patterns_of(name)})
        for number in found:
            self._tell(b'{"$kind":"Imported","pattern":%d,"file":"","line":0}' % number)
        if found:
            self._cover()

    def prove(self, token: int, which: int | None = None) -> None:
        """Use the parts in a way that does nothing but let them tell of it.

        Args:
            token: Is told by each part that is still in its place.
            which: Use only one of them, counted round and round.
        """
        first = 0
        place = None if which is None else which % max(self._count, 1)
        for told in self._told:
            if place is None:
                told.prove(token, None)
            elif first <= place < first + told.count:
                told.prove(token, place - first)
            first += told.count

    @property
    def _count(self) -> int:
        return sum(told.count for told in self._told)

    def _patterns_of(self, module: str) -> list[int]:
        """The numbers of the patterns that a module falls under."""
        top = module.partition(".")[0]
        return [
            number
            for number, pattern in enumerate(self._patterns)
            if fnmatch.fnmatchcase(module, pattern) or top == pattern
        ]

    def _cover(self) -> list[Part]:
        """Watch what is imported and was not watched yet; what that is."""
        parts = forbidden_parts(self._patterns, self._watched)
        if parts or not self._told:
            self._told.append(telling(parts, self._count, self._tell, self._asked_by))
            self._watched |= {id(thing) for part in parts for thing in part.things}
            self._say(Watching(tuple(WatchedPart(part.name, part.patterns) for part in parts)))
        return parts


def _imported_since_mark() -> Iterator[str]:
    """The names of the modules that were imported after the mark was set.

    Modules stand in the order of their import. In a fork a look at all of them costs a copy of the memory in
    which their names lie, 11 ms; those behind the mark are few.
    """
    return itertools.takewhile(lambda name: name != _MARK, reversed(sys.modules))
