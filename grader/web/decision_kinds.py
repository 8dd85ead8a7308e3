"""What a form of a decision consists of, and the fields that several forms share."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from grader.results.revision import Revision
from grader.results.session import ClassSession
from grader.web.visits import SentFields


@dataclass(frozen=True)
class DecisionField:
    """A field of a form.

    Attributes:
        hint: How it is filled in.
        is_check: Whether it is a box to tick.
        may_be_empty: Whether leaving it empty says something.
        choices: (What is sent, what is shown) of all that may be chosen; (): anything may be typed.
    """

    name: str
    label: str
    hint: str = ""
    is_check: bool = False
    may_be_empty: bool = False
    choices: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class DecisionForm:
    """A kind of decision.

    Attributes:
        id: In addresses.
        title: What is done, as a button says it.
        advice: What it does, in a sentence or two.
        decide: Takes the decision in a session.
        done: What was done, as a sentence.
        page: The page that it belongs to, by the first part of its address.
        others: What would be done to students whom the form does not name, as a participle: the preview
            lists what would be recorded about each. Empty: the form names everybody.
        after: What is written once it is recorded.
    """

    id: str
    title: str
    advice: str
    fields: tuple[DecisionField, ...]
    decide: Callable[[ClassSession, SentFields], Revision]
    done: str
    page: str = "queue"
    others: str = ""
    after: Callable[[ClassSession, Revision], object] = lambda session, revision: None


WHY = DecisionField("why", "Why", "In a sentence: students and colleagues read it.")
STUDENT = DecisionField("student", "Student")
STUDENTS = DecisionField("student", "Students", "One id, or several with spaces between them.")
SEEN_BY_STAFF = DecisionField("why", "Why", "In a sentence: colleagues read it, students never.")


def sent_student(form: SentFields) -> str:
    """The student whom a form names."""
    return form.text("student").strip()


def sent_students(form: SentFields, field: str = "students") -> tuple[str, ...]:
    """The students whom a form lists, each once."""
    return tuple(dict.fromkeys(re.findall(r"[^\s,;]+", form.text(field))))
