"""What was seen of a submission's code while it ran: the forbidden parts that it used, and where it pried."""

from dataclasses import dataclass
from enum import StrEnum

from grader.domain.program import Place


class Prying(StrEnum):
    """What no homework needs to do, and what could hide from the watch that a forbidden part is used."""

    DYNAMIC_CODE = "dynamic_code"  # text or code objects are executed
    CODE_OBJECTS = "code_objects"  # the code of a function is read, made or replaced
    FRAMES = "frames"  # the frames of running functions are looked at, or traced
    OBJECTS = "objects"  # the collector is asked for objects
    UNPICKLING = "unpickling"  # pickled data names what is to be called
    LIBRARY_SOURCE = "library_source"  # a library's file is opened
    SECOND_COPY = "second_copy"  # a module with forbidden parts is executed again
    MEMORY = "memory"  # memory is reached past Python


@dataclass(frozen=True)
class Pried:
    """One place at which running code pried.

    Attributes:
        place: The student's line; None where it cannot be told.
        stage: When it happened: a component's name, LOADING or TRAINING.
    """

    kind: Prying
    place: Place | None
    stage: str


@dataclass(frozen=True)
class ReachedPart:
    """A forbidden part that running code used.

    Attributes:
        name: Its dotted name.
        patterns: The patterns of `assignment.toml` that it falls under.
        inside: The forbidden part whose own code used it; empty when the student's code did, as far as can be
            told.
        within: The patterns that `inside` falls under.
        stage: As of `Pried`.
        place: The student's line; None where it cannot be told.
    """

    name: str
    patterns: tuple[str, ...]
    inside: str
    within: tuple[str, ...]
    stage: str
    place: Place | None = None


@dataclass(frozen=True)
class Watched:
    """What the watch in the workers of one submission told.

    Attributes:
        reached: Each part once for each that used it inside.
        pried: Each kind once for each place.
        unproven: The stages after which the watch did not stand a trial: what was used then is not known.
    """

    reached: tuple[ReachedPart, ...] = ()
    pried: tuple[Pried, ...] = ()
    unproven: tuple[str, ...] = ()

    def __or__(self, other: "Watched") -> "Watched":
        """What either told."""
        return Watched(
            tuple(dict.fromkeys((*self.reached, *other.reached))),
            tuple(dict.fromkeys((*self.pried, *other.pried))),
            tuple(dict.fromkeys((*self.unproven, *other.unproven))),
        )


NOTHING_SEEN = Watched()
