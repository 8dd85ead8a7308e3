"""The edition of an assignment that a course hands out: one of several tracks, all of its parts or some."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Edition:
    """What an instructor chose for the whole class, by `edition` in `assignment.toml`.

    Attributes:
        chosen: One choice of each line of `editions`: ("laptop", "full").
        known: Every choice, of all lines.
        left_out: The components that only other editions have.
    """

    chosen: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    left_out: frozenset[str] = frozenset()


ONE_EDITION = Edition()  # of an assignment that has no others
