"""An assignment in an LMS that is reached over the network: its students, what stands there, what is sent.

Each LMS has a module that makes an `OnlineAssignment` of its web services. What stands there may have been
sent by us or entered by people; telling these apart is up to `grader.publishing`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from grader.domain.errors import Interruption, UsageError


class LmsUnavailable(UsageError):
    """The LMS takes nothing: it cannot be reached, or refuses the token, the course or the assignment."""


class StudentRefused(Interruption):
    """The LMS refused what was sent for one student. The message is the LMS's reason, as a clause."""


class ReplyLost(Interruption):
    """A request that changes something got no answer: nobody knows whether it was carried out."""


NOT_UNDERSTOOD = (ValueError, KeyError, TypeError, AttributeError)
"""What reading an answer of another form than the documented one raises."""


def not_understood(site: str, what: str, lms: str) -> LmsUnavailable:
    """That an LMS answers otherwise than its documentation says.

    Args:
        what: It was asked for.
        lms: The name of the LMS.
    """
    return LmsUnavailable(
        f"{site}: {what}: the answer is none of {lms}'s, or of another version, so nothing more is sent. "
        "Check the address, and whether a browser shows the course there."
    )


@dataclass(frozen=True)
class OnlineStudent:
    """A student of the course in the LMS.

    Attributes:
        key: The LMS's own key of the user, by which grades are sent.
        number: The LMS's own number in the names of downloaded files; empty if it is not known.
        ids: What may be the student's id here: an ID number, a login, an e-mail address.
        person: The name.
    """

    key: str
    number: str
    ids: tuple[str, ...]
    person: str = ""


@dataclass(frozen=True)
class PostedComment:
    """A comment that stands in the LMS.

    Attributes:
        key: The LMS's own key of it.
        files: The names of the attached files.
        is_mine: Whether the token's owner wrote it.
    """

    key: str
    text: str
    files: tuple[str, ...] = ()
    is_mine: bool = True


@dataclass(frozen=True)
class Standing:
    """What stands in the LMS for one student.

    Attributes:
        points: The grade; None if there is none.
        version: Differs after every change; empty if the LMS states none, and `comments` are compared.
        comments: Everybody's: a colleague may have pushed with another token.
        is_mine: Whether the token's owner graded last, as far as the LMS says.
        keep: Why the grade must stay as it is, as a clause; empty if it may change.
        attempt: The number of the student's attempt that it is about, where each has its own grade.
    """

    points: float | None = None
    version: str = ""
    comments: tuple[PostedComment, ...] = ()
    is_mine: bool = True
    keep: str = ""
    attempt: int = 0


NOTHING_THERE = Standing()


@dataclass(frozen=True)
class ReportFile:
    """The report as it is attached.

    Attributes:
        name: It differs for different reports.
    """

    name: str
    content: bytes


@dataclass(frozen=True)
class GradeDelivery:
    """What is sent for one student.

    Attributes:
        key: `OnlineStudent.key`.
        points: In points of the LMS.
        report: None: there is none, or the LMS takes none here.
    """

    key: str
    points: float
    comment: str
    report: ReportFile | None = None


class OnlineAssignment(Protocol):
    """An assignment in an LMS, over the network.

    Attributes:
        lms: The name of the LMS, as people write it.
        title: Of the assignment there.
        maximum: Of its grades there, in points.
        remarks: What a person should know about it before anything is sent.
        takes_reports: Whether reports can be attached.
    """

    lms: str
    title: str
    maximum: float
    remarks: tuple[str, ...]
    takes_reports: bool

    def students(self) -> Sequence[OnlineStudent]:
        """The students of the course.

        Raises:
            LmsUnavailable: The LMS does not say.
        """

    def standings(self) -> Mapping[str, Standing]:
        """What stands there, by the students' keys; students without a grade may be left out.

        Raises:
            LmsUnavailable: The LMS does not say.
        """

    def standing(self, key: str) -> Standing:
        """What stands there for one student now.

        Raises:
            LmsUnavailable: The LMS does not say.
        """

    def deliver(self, delivery: GradeDelivery) -> Standing:
        """Send a grade, a comment and a report, and return what stands there then.

        Raises:
            StudentRefused: The LMS does not take it.
            ReplyLost: Nobody knows whether it took it.
            LmsUnavailable: It takes nothing more.
        """
