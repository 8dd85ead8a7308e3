"""The names in a Canvas download of an assignment's submissions.

lib/content_zipper.rb makes `NAME[_LATE]_USER_ATTACHMENT_FILE`, where NAME is the sortable name in small
letters without anything but word characters; anonymous submissions are `[LATE_]anon_ID_ATTACHMENT_FILE`; a
text is `NAME[_LATE]_USER_text.html`, an address `..._link.html`. Only the newest submission of a user is in
it. A name that a student uses again gets `-1`, ... (`make_unique_filename` in app/models/attachment.rb), and
attachments are numbered in the order of their upload.

Underscores and digits may be in a NAME, which people choose (`Doe, John__42__99` becomes `doejohn_42_99`: the
zipper takes numbers out once only), and in a FILE. Which of several pairs of numbers are Canvas's own then
cannot be read from one name.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader.lms.system import DownloadName, Together

LMS = "Canvas"
ANONYMOUS = re.compile(r"anon_[a-z0-9]{3,12}", re.IGNORECASE)
_USER = r"(?:(?P<user>\d{2,20})|anon_(?P<anonym>[A-Za-z0-9]{3,12}))"
_UPLOAD = re.compile(
    rf"^(?:(?P<who>\w+?)_)??(?P<late>LATE_)?{_USER}_"
    r"(?:(?P<attachment>\d{2,20})_(?P<name>.*\D.*)|(?P<entry>(?:text|link)\.html))$"
)
# any further pair of numbers, or the number of a text: Canvas's own, if what stands before it is a NAME
_PAIR = re.compile(
    r"_(?=(?P<user>[1-9]\d{1,19})_(?:(?P<attachment>[1-9]\d{1,19})_.*\D|(?:text|link)\.html$))"
)
MOST_CONTESTED = 0.25  # of the users: a rule by which more of them are in doubt is no good
TOLERANCES = (2, 1, 0)  # digits


def canvas_name(name: str) -> DownloadName | None:
    """What a name in a Canvas download tells by its first numbers, or None when Canvas did not make it."""
    found = _UPLOAD.match(name)
    if found is None or (found["who"] is None and found["anonym"] is None):
        return None
    holder = f"anon_{found['anonym']}" if found["anonym"] else f"{found['who']}_{found['user']}"
    return DownloadName(
        name=found["name"] or found["entry"],
        holder=holder,
        lms=LMS,
        person=holder if found["anonym"] else found["user"],
        number=found["user"] or "",
        called=found["who"] or "",
        late=found["late"] is not None,
        order=int(found["attachment"] or 0),
    )


@dataclass(frozen=True)
class _Reading:
    """A way to read a name: the numbers that would be Canvas's own."""

    user: str
    attachment: str


@dataclass(frozen=True)
class _Name:
    """A name with all ways to read it, the usual one first."""

    name: str
    told: DownloadName
    readings: Sequence[_Reading]

    @property
    def user(self) -> str:
        """The user by the usual reading, with the name, as it stands in all of that user's files."""
        return self.told.holder or ""


def read_together(files: Mapping[str, Path]) -> Together:
    """What the names of the files of one folder tell together: of some, that they tell no user."""
    return Together(contested(files))


def contested(names: Iterable[str]) -> dict[str, DownloadName]:
    """The names of a download that may be another user's, each with what it tells all the same: no user.

    That is so where a further pair of numbers has as many digits as Canvas's numbers have in the names of the
    others; where two files have one number of an attachment; and, among the others, where one number has two
    users' names.

    Args:
        names: Of all files that lie side by side.
    """
    known = [
        _Name(name, told, _readings(name)) for name in names if (told := canvas_name(name)) and told.number
    ]
    doubtful = {one.name: one for one in [*_by_digits(known), *_by_attachment(known)]}
    doubtful |= {one.name: one for one in _by_user([one for one in known if one.name not in doubtful])}
    return {
        name: replace(one.told, person=f"{one.user}?", number="", order=0) for name, one in doubtful.items()
    }


def _readings(name: str) -> Sequence[_Reading]:
    first = _UPLOAD.match(name)
    assert first is not None, "Canvas made it"
    begins = first.start("user")
    more = [
        _Reading(found["user"], found["attachment"] or "")
        for found in _PAIR.finditer(name)
        if found.start("user") > begins
    ]
    return [_Reading(first["user"] or "", first["attachment"] or ""), *more]


def _by_digits(known: Sequence[_Name]) -> Sequence[_Name]:
    """Those in which a further pair looks like Canvas's own, by the loosest rule that doubts only a few."""
    users = {len(one.readings[0].user) for one in known}
    attachments = {len(one.readings[0].attachment) for one in known}
    most = max(1, MOST_CONTESTED * len({one.user for one in known}))
    for tolerance in TOLERANCES:
        found = [
            one
            for one in known
            if any(
                _near(len(reading.user), users, tolerance)
                and (not reading.attachment or _near(len(reading.attachment), attachments, tolerance))
                for reading in one.readings[1:]
            )
        ]
        if len({one.user for one in found}) <= most:
            return found
    return []


def _near(length: int, lengths: Iterable[int], tolerance: int) -> bool:
    return any(abs(length - other) <= tolerance for other in lengths)


def _by_attachment(known: Sequence[_Name]) -> Iterator[_Name]:
    """Those that share an attachment's number, of which each file has its own."""
    numbers = Counter(one.readings[0] for one in known if one.readings[0].attachment)
    yield from (one for one in known if numbers[one.readings[0]] > 1 and len(one.readings) > 1)


def _by_user(known: Sequence[_Name]) -> Iterator[_Name]:
    """Those whose number has two users' names."""
    called: dict[str, set[str]] = {}
    for one in known:
        called.setdefault(one.readings[0].user, set()).add(one.told.called)
    yield from (one for one in known if len(called[one.readings[0].user]) > 1)
