"""Reports of a worker about the student's code: what it raised, in words, and what forbidden parts it used.

The words are for a person, and judges and trainings use the same. Code that knows which images are hidden
is reported by an exception's type alone. Notices of forbidden parts are kept where the student's code
cannot take anything back, within bounds. What is said here is believed only as far as the source has such
a place or name. It never decides what a report costs.
"""

import re
from collections.abc import Collection, Sequence

from grader.domain.analyzed_program import LOADING, Place, Program, line_at, place_of
from grader.domain.assignment_files import HUB, PROVIDED, TORCH
from grader.domain.formatting import quoted
from grader.domain.program_run import Pried, ReachedPart, Watched
from grader.protocol.error_kinds import exception_named_in_source
from grader.protocol.frames import ProtocolError
from grader.protocol.replies import (
    HANDED_OUT_BATCH_SIZE,
    MAX_PLACE,
    Imported,
    Notice,
    Problem,
    Reached,
    Seen,
    TrainingPlan,
    Tried,
    WatchedPart,
    Watching,
)

SEEN = {
    "no_module": "what should be the model is not an nn.Module",
    "other_outputs": "the model does not return a tensor of shape (batch, classes)",
    "no_learning_rate": "the learning rate became a number that is not finite",
}

# as the template's stubs raise it
_STUB = re.compile(r"TODO (?P<part>(?P<name>\w+)(?:\.__init__|\.forward)?):")


def raised_at(problem: Problem, program: Program) -> str:
    """The place at which something was raised, if the source has such a line."""
    place = place_of(problem.where)
    return str(place) if place is not None and line_at(program.source, place) is not None else ""


def unwritten(problem: Problem, names: Collection[str]) -> str:
    """The part whose stub raised that it is not implemented, if the exception names a graded part."""
    stub = _STUB.match(problem.message.text)
    return stub["part"] if stub is not None and stub["name"] in names else ""


def not_provided(wanted: str, assignment: str) -> str:
    """That a file of weights is not there, whose files are, and where it would be put, as a clause.

    Whoever executes a homework says it alike: a grade's workers and a student's own machine.

    Args:
        wanted: As a worker says it, in `Problem`; empty: which file may not be told.
        assignment: Its id.
    """
    folder = f"reference/{assignment or '<assignment>'}/{PROVIDED}/"
    file = f"the file {quoted(wanted, MAX_PLACE)}" if wanted else "a file of weights that was asked for"
    if wanted and not _is_download(wanted):
        return (
            f"{file} is not there: only weights that the course provides count, or that this code has "
            f"written before (an instructor would put the file into {folder} and its name into [provided])"
        )
    place = "this place" if wanted else "its place"
    return (
        f"{file} is not provided: only weights that the course provides count, and nothing is downloaded "
        f"(an instructor would put the file into {folder} and {place} into [provided.cache])"
    )


def raised_in_training(problem: Problem, program: Program, *, own: bool = False, assignment: str = "") -> str:
    """The type of what was raised by code that knows which images are hidden, without any of its words.

    Args:
        own: It is the reader's own code on the reader's own machine, where nothing is hidden.
        assignment: Its id.
    """
    if own:
        if problem.wanted:
            return f"{error_for_want(problem)}: {not_provided(problem.wanted, assignment)}"
        return str(problem)
    if problem.seen:
        return f"{problem.type}: {SEEN[problem.seen]}"
    source = "\n".join((program.source or {}).values())
    if problem.wanted:
        # the choice among many files could convey a secret; a name in the source cannot
        is_in_source = _stands_in(problem.wanted, source)
        return (
            f"{error_for_want(problem)}: {not_provided(problem.wanted if is_in_source else '', assignment)}"
        )
    return exception_named_in_source(problem.type, source)


def error_for_want(problem: Problem) -> str:
    """What was raised for want of weights. Which of its errors a library raises depends on the machine."""
    is_known = problem.type == "FileNotFoundError" and not _is_download(problem.wanted)
    return problem.type if is_known else "an error"


def _is_download(wanted: str) -> bool:
    """Whether a file has a place in a cache."""
    return wanted.partition("/")[0] in (TORCH, HUB)


def _stands_in(wanted: str, source: str) -> bool:
    """Whether a source names a file: all of it, or its repository on the hub."""
    parts = wanted.split("/")
    names = ["/".join(parts[1:3]), *parts[3:]] if parts[0] == HUB else parts[-1:]
    usual = ("model.safetensors", "pytorch_model.bin")
    return all(name in source or name in usual for name in names)


def plan_in_words(plan: TrainingPlan | None) -> tuple[str, ...]:
    """What had to be assumed for a training, in sentences."""
    if plan is None:
        return ()
    notes = []
    if "batch_size" in plan.assumed:
        notes.append(f"No batch size was found; the handed-out {HANDED_OUT_BATCH_SIZE} was used.")
    if "transform" in plan.assumed:
        notes.append("No transform was found; the handed-out one was used.")
    if "collate" in plan.assumed:
        notes.append(
            "The training loader's `collate_fn` gives no batch of images of the grader's data set; "
            "PyTorch's own was used."
        )
    return tuple(notes)


# --- watching --------------------------------------------------------------------------------------------


MOST = 200  # of each kind: further ones say nothing new
MOST_PARTS = 2000
MAX_NAME = 200  # characters


class WatchRecord:
    """The notices of one worker. It is only ever added to.

    Attributes:
        stage: What is going on: a component's name, LOADING or TRAINING.
    """

    def __init__(self, patterns: Sequence[str] = (), files: Sequence[str] = ()) -> None:
        """Nothing was reported yet.

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
            ProtocolError: It names a part that is not watched.
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
        patterns = set(self._patterns)
        for part in parts:
            if not part.patterns or not patterns.issuperset(part.patterns):
                raise ProtocolError("what is watched falls under no pattern")
            self._parts.append(WatchedPart(part.name[:MAX_NAME], part.patterns))

    def _part(self, number: int) -> WatchedPart:
        if self._parts is None or not 0 <= number < len(self._parts):
            raise ProtocolError("a part that is not watched is used")
        return self._parts[number]

    def reach(self, part: ReachedPart) -> None:
        """Record that a part was used."""
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
        """Note it unless the part whose turn it was reported the token."""
        if self._parts:
            self._require([token % len(self._parts)], token)

    def require_all(self, token: int) -> None:
        """Note it unless every part reported the token."""
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
        """All that was reported."""
        return Watched(tuple(self._reached.values()), tuple(self._pried), tuple(self._unproven))
