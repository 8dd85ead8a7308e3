"""What a worker told of forbidden parts, kept where the student's code cannot take anything back."""

from collections.abc import Sequence

from grader.domain.program import LOADING, Place
from grader.domain.watch import Pried, ReachedPart, Watched
from grader.protocol.frames import ProtocolError
from grader.protocol.replies import Imported, Notice, Reached, Seen, Tried, WatchedPart, Watching

MOST = 200  # of each kind: what comes on top says nothing new
MOST_PARTS = 2000
MAX_NAME = 200  # characters


class WatchRecord:
    """The notices of one worker. It is only ever added to.

    Attributes:
        stage: What is going on: a component's name, LOADING or TRAINING.
    """

    def __init__(self, patterns: Sequence[str] = (), files: Sequence[str] = ()) -> None:
        """Nothing was told yet.

        Args:
            patterns: What is forbidden: nothing else is believed to be.
            files: The student's files: places are in these.
        """
        self.stage = LOADING
        self._patterns = tuple(patterns)
        self._files = frozenset(files)
        self._parts: list[WatchedPart] | None = None
        self._reached: dict[tuple[str, str, str], ReachedPart] = {}
        self._pried: dict[Pried, None] = {}
        self._unproven: dict[str, None] = {}
        self._tried: set[tuple[int, int]] = set()

    def take(self, notice: Notice) -> None:
        """Keep a notice.

        Raises:
            ProtocolError: It speaks of a part that is not watched.
        """
        match notice:
            case Watching(parts):
                self._watch(parts)
            case Reached(number, inside, file, line):
                part, around = self._part(number), self._part(inside) if inside >= 0 else None
                name, within = (around.name, around.patterns) if around else ("", ())
                self.reach(
                    ReachedPart(part.name, part.patterns, name, within, self.stage, self._place(file, line))
                )
            case Imported(number, file, line):
                if self.stage == LOADING:
                    return  # an import at the top of a file that nothing uses costs nothing
                if not 0 <= number < len(self._patterns):
                    raise ProtocolError("a pattern that does not exist is imported")
                pattern = self._patterns[number]
                self.reach(ReachedPart(pattern, (pattern,), "", (), self.stage, self._place(file, line)))
            case Tried(number, token):
                if len(self._tried) < MOST_PARTS:
                    self._tried.add((number, token))
            case Seen(prying, file, line):
                if len(self._pried) < MOST:
                    self._pried[Pried(prying, self._place(file, line), self.stage)] = None

    def _watch(self, parts: Sequence[WatchedPart]) -> None:
        self._parts = self._parts or []
        if len(self._parts) + len(parts) > MOST_PARTS:
            raise ProtocolError("too many parts are watched")
        known = set(self._patterns)
        for part in parts:
            if not part.patterns or not known.issuperset(part.patterns):
                raise ProtocolError("what is watched falls under no pattern")
            self._parts.append(WatchedPart(part.name[:MAX_NAME], part.patterns))

    def _part(self, number: int) -> WatchedPart:
        if self._parts is None or not 0 <= number < len(self._parts):
            raise ProtocolError("a part that is not watched is used")
        return self._parts[number]

    def reach(self, part: ReachedPart) -> None:
        """Keep that a part was used."""
        if len(self._reached) < MOST:
            self._reached.setdefault((part.name, part.inside, part.stage), part)

    def _place(self, file: str, line: int) -> Place | None:
        return Place(file, line) if file in self._files and 0 < line < 10**6 else None

    # --- trials -------------------------------------------------------------------------------------------

    @property
    def has_parts(self) -> bool:
        """Whether anything is watched."""
        return bool(self._parts)

    def require_one(self, token: int) -> None:
        """Note it unless the part whose turn it was told the token."""
        if self._parts:
            self._require([token % len(self._parts)], token)

    def require_all(self, token: int) -> None:
        """Note it unless every part told the token."""
        if self._parts is None and self._patterns:
            self.miss()
        self._require(range(len(self._parts or ())), token)

    def miss(self) -> None:
        """Note that the watch could not be tried at this stage."""
        self._unproven[self.stage] = None

    def _require(self, numbers: Sequence[int], token: int) -> None:
        if any((number, token) not in self._tried for number in numbers):
            self.miss()
        self._tried.clear()

    @property
    def watched(self) -> Watched:
        """All that was told."""
        return Watched(tuple(self._reached.values()), tuple(self._pried), tuple(self._unproven))
