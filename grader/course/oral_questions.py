"""Reads `questions.toml`: what an assignment asks in oral checks about certain parts.

The engine asks about any code, training and mistake. Only the assignment knows its parts, and what a good
answer about them holds. The file says it for each question, with `{placeholders}` for the numbers that the
student chose. Whatever can never be asked is a mistake in the file, and is reported when the course is read.
This module never chooses a question for a student.
"""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from grader.course.assignment_tables import Text
from grader.course.toml_file import Table, listing, remedy, toml_table
from grader.domain.assignment import Component
from grader.domain.assignment_versions import ONE_EDITION, Edition
from grader.domain.errors import CourseError
from grader.domain.oral_check import OralQuestion
from grader.domain.size_formula import SizeFormula
from grader.files.known_folders import visible

QUESTIONS_FILE = "questions.toml"
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
PART = "part"  # stands for the student's name of the component
# what a homework chooses beside the arguments of its parts, by the names that the engine reads them under
CHOSEN_NUMBERS = ("batch_size", "channels", "epochs", "image_size", "num_classes", "patch_size")
LONGEST = {"text": 320, "note": 420}  # characters: five of each fit on a page


class _QuestionTable(Table):
    """`[[question]]`: one question and what a good answer holds."""

    id: Text
    text: Text
    note: Text
    component: str = ""
    calls: list[Text] = Field(default_factory=list)
    values: dict[Text, Text] = Field(default_factory=dict)
    after: list[Text] = Field(default_factory=list)


class _QuestionsTable(Table):
    question: Annotated[list[_QuestionTable], Field(min_length=1)]


def oral_questions(
    folder: Path, components: Sequence[Component], edition: Edition = ONE_EDITION
) -> tuple[OralQuestion, ...]:
    """The questions of an assignment; empty when it has no such file.

    Args:
        folder: `reference/<id>`.
        components: The parts that questions can be about.
        edition: Some questions belong to some editions only.

    Raises:
        CourseError: The file is malformed, or a question can never be asked.
    """
    if not (folder / QUESTIONS_FILE).exists():
        return ()
    mistakes = [path.stem for path in visible(folder, "mistakes/*.py")]
    questions: dict[str, OralQuestion] = {}
    for table in toml_table(folder / QUESTIONS_FILE, _QuestionsTable, edition).question:
        if table.id in questions:
            raise _fault(table, "is there twice. Remove or rename one.")
        _check(table, components, mistakes)
        questions[table.id] = OralQuestion(
            id=table.id,
            text=" ".join(table.text.split()),
            note=" ".join(table.note.split()),
            component=table.component,
            calls=tuple(table.calls),
            values=tuple(table.values.items()),
            after=tuple(table.after),
        )
    return tuple(questions.values())


def _check(table: _QuestionTable, components: Sequence[Component], mistakes: Sequence[str]) -> None:
    """Check that a question can be asked.

    Raises:
        CourseError: It cannot.
    """
    names = [component.name for component in components if not component.is_file]
    if table.component and table.component not in names:
        advice = remedy(table.component, names, f"There are {listing(names)}.")
        raise _fault(table, f"is about '{table.component}', which is no part in code. {advice}")
    if table.calls and not table.component:
        raise _fault(table, "has 'calls' but no 'component' in whose code they are looked for. Add it.")
    for mistake in table.after:
        if mistake not in mistakes:
            advice = remedy(mistake, mistakes, "Name a file of mistakes/ without '.py'.")
            raise _fault(table, f"comes after '{mistake}', which is not a known mistake. {advice}")
    known = {PART, *CHOSEN_NUMBERS, *(name for each in components for name in _parameters(each))}
    for name, formula in table.values.items():
        if name == PART or not name.isidentifier():
            raise _fault(table, f"computes '{name}', which is taken or no name. Give it another one.")
        try:
            used = SizeFormula.read(formula).names
        except ValueError as error:
            raise _fault(table, f"computes '{name}' by '{formula}': {error}. Fix it.") from None
        _require_known(table, used, known - {PART})
    for key, longest in LONGEST.items():
        text = " ".join(getattr(table, key).split())
        if len(text) > longest:
            raise _fault(table, f"has a {key} of {len(text)} characters. Shorten it to {longest}.")
        _require_known(table, PLACEHOLDER.findall(text), known | set(table.values))
        if not table.component and f"{{{PART}}}" in text:
            raise _fault(table, f"says '{{{PART}}}' but has no 'component'. Add it.")


def _require_known(table: _QuestionTable, names: Collection[str], known: Collection[str]) -> None:
    """Check that each name stands for something.

    Raises:
        CourseError: One does not.
    """
    for name in names:
        if name not in known:
            advice = remedy(name, sorted(known), f"It knows {listing(sorted(known))}.")
            raise _fault(table, f"uses '{name}', which stands for nothing. {advice}")


def _parameters(component: Component) -> list[str]:
    """The names of a stub's parameters."""
    parts = (part.split("=")[0].strip(" *") for part in component.signature.split(","))
    return [part for part in parts if part.isidentifier()]


def _fault(table: _QuestionTable, what: str) -> CourseError:
    return CourseError(f"{QUESTIONS_FILE}: question '{table.id}' {what}")
