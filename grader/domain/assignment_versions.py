"""The differences between copies of an assignment: its edition, its drawn values, and the seeds.

An edition is what an instructor chooses for the whole class. Drawn values, such as a number of heads, are
chosen by a key: for a term, or for each student, from the choices in `[variant]` of an assignment. Seeds are
HMAC-SHA256 of their purpose, so that only the holder of the key can compute them. `grader.course.locate`
draws the values, `grader.grading.run` computes the seeds, and a training only receives its own. Where a value
stands in a file, `grader.course` decides.
"""

import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from grader.domain.errors import CourseError


@dataclass(frozen=True)
class Edition:
    """The instructor's choices for the whole class, by `edition` in `assignment.toml`.

    Attributes:
        chosen: One choice of each line of `editions` in `assignment.toml`: ("laptop", "full").
        all_choices: Every choice, of all lines.
        left_out: The components that only other editions have.
    """

    chosen: tuple[str, ...] = ()
    all_choices: tuple[str, ...] = ()
    left_out: frozenset[str] = frozenset()


ONE_EDITION = Edition()  # for an assignment that has no others


# --- seeds -----------------------------------------------------------------------------------------------


# replaces the secret on a student's own machine: values drawn there are always the same, and not secret
PUBLIC_KEY = "vit-grader: a student's own machine"


def keyed_number(key: str, *about: str | int, bits: int = 256) -> int:
    """A number that depends only on the key and its subject; one does not reveal another.

    Args:
        key: The course's secret, or `PUBLIC_KEY`.
        about: The purpose and what it is about; only the last of these parts may contain a colon.
        bits: The number is less than 2**bits, and not negative.
    """
    digest = hmac.digest(key.encode(), ":".join(map(str, about)).encode(), "sha256")
    return int.from_bytes(digest, "big") >> (256 - bits)


def submission_seed(key: str, purpose: str, digest: str, run: int = 1, *, bits: int = 63) -> int:
    """The seed of one purpose for one submission.

    Args:
        key: See `keyed_number`.
        purpose: `checks`, `order`, `training`, ...
        digest: The submission's.
        run: Which of several runs for the same purpose, 1-based: their seeds are in no order.
        bits: 63 for what a worker must not guess; 31 for a seed that it is given, which any random
            generator accepts.
    """
    return keyed_number(key, purpose, digest, run, bits=bits)


def training_seed(key: str, digest: str, run: int = 1, measure_id: str = "") -> int:
    """The seed of a training, which its worker is given; that of one run does not reveal the others.

    Args:
        key, digest, run: See `submission_seed`.
        measure_id: The measure's id, for any model but the first.
    """
    return submission_seed(key, f"training {measure_id}".strip(), digest, run, bits=31)


# --- drawn values ----------------------------------------------------------------------------------------


Scalar = bool | int | float | str
Value = Scalar | tuple[Scalar, ...]

# the check that the grader itself makes: whether a homework states the values that were drawn for it
DRAWN_VALUES_CHECK = "own_values"


@dataclass(frozen=True)
class DrawnValue:
    """A named value, and the choices that it is drawn from.

    Attributes:
        name: A Python name: `heads`.
        choices: Different values of one kind, at least one; all of them are equally likely.
        per_student: Whether it is drawn for each student, and not once for the term.
    """

    name: str
    choices: tuple[Value, ...]
    per_student: bool = False


class StudentValues(Mapping[str, Value | list[Scalar]]):
    """The values of one submission's student by name; a tuple is given as a list, as in the solution."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Value | list[Scalar]:
        """The value of a name.

        Raises:
            CourseError: Nothing of that name is drawn.
        """
        if name not in self._values:
            known = ", ".join(f"'{choice}'" for choice in self._values) or "nothing"
            raise CourseError(
                f"A check asks for the variant's '{name}', but [variant] has {known}. Correct the name, or "
                f"state it in [variant.{name}]."
            )
        value = self._values[name]
        return list(value) if isinstance(value, tuple) else value

    def __contains__(self, name: object) -> bool:
        """Whether something of that name is drawn."""
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        """The names, as they are stated."""
        return iter(self._values)

    def __len__(self) -> int:
        """How many values there are."""
        return len(self._values)


def drawn_values(
    key: str, assignment_id: str, stated: Sequence[DrawnValue], term: str, student_id: str = ""
) -> dict[str, Value]:
    """The values of an assignment, each a choice that only the key decides.

    The number of the choice of a term is HMAC-SHA256(key, "variant:<assignment>:<name>:<term>") modulo the
    number of choices. With n of them, none is likelier than another by more than n / 2**256. The choices of
    a student are drawn with a key of their own: see `students_key` and `values_of_student`.

    Args:
        key: The course's secret.
        term: Without a colon.
        student_id: In any case. Empty: values that are drawn for each student have their first choice.
    """
    values = {
        value.name: _choice(value, key, "variant", assignment_id, value.name, term)
        for value in stated
        if not value.per_student
    }
    values |= values_of_student(students_key(key, assignment_id, term), stated, student_id)
    return {value.name: values[value.name] for value in stated}


def students_key(key: str, assignment_id: str, term: str) -> str:
    """What the values of all students are drawn with, of one assignment in one term, hexadecimal.

    A package that grades elsewhere holds it in place of the key, which cannot be worked out from it. It is
    HMAC-SHA256(key, "students:<assignment>:<term>").

    Args:
        key: The course's secret.
        term: Without a colon.
    """
    return f"{keyed_number(key, 'students', assignment_id, term):064x}"


def values_of_student(key: str, stated: Sequence[DrawnValue], student_id: str) -> dict[str, Value]:
    """Those values that are drawn for each student.

    The number of a choice is HMAC-SHA256(key, "<name>:<student id>") modulo the number of choices.

    Args:
        key: See `students_key`.
        student_id: In any case. Empty: each value has its first choice.
    """
    return {
        value.name: _choice(value, key, value.name, student_id.casefold()) if student_id else value.choices[0]
        for value in stated
        if value.per_student
    }


def _choice(value: DrawnValue, key: str, *about: str) -> Value:
    return value.choices[keyed_number(key, *about) % len(value.choices)]


@dataclass(frozen=True)
class PackedValues:
    """The values of one assignment and term, where the course's secret is not: in a package.

    Attributes:
        of_term: What was drawn for all.
        key: What the values of each student are drawn with: see `students_key`. Empty: none is drawn so.
    """

    of_term: Mapping[str, Value]
    key: str = field(default="", repr=False)

    def of(self, stated: Sequence[DrawnValue], student_id: str) -> dict[str, Value]:
        """The values of a student.

        Args:
            student_id: As for `drawn_values`.
        """
        values = {**self.of_term, **values_of_student(self.key, stated, student_id)}
        return {value.name: values[value.name] for value in stated}


def first_choices(stated: Sequence[DrawnValue]) -> dict[str, Value]:
    """Every value at its first choice."""
    return {value.name: value.choices[0] for value in stated}


def each_choice(stated: Sequence[DrawnValue]) -> Iterator[dict[str, Value]]:
    """All first choices, then each other choice of each value, with all others at their first."""
    first = first_choices(stated)
    if stated:
        yield first
    for value in stated:
        for choice in value.choices[1:]:
            yield {**first, value.name: choice}


def frozen_value(value: object) -> Value:
    """A value as a file holds it, with a tuple in place of a list."""
    return tuple(value) if isinstance(value, list) else value  # type: ignore[return-value]


def python_text(value: Value) -> str:
    """A value as Python source: `4`, `True`, `"same"`, `[4, 8]`."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(python_text, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def shown_value(value: Value) -> str:
    """A value as people read it: a text as it is, anything else as in Python."""
    return value if isinstance(value, str) else python_text(value)


def shown_values(values: Mapping[str, Value]) -> str:
    """Values in a line: `heads = 4, padding = same`."""
    return ", ".join(f"{name} = {shown_value(value)}" for name, value in values.items())
