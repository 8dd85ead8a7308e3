"""The names in a Canvas download of an assignment's submissions.

lib/content_zipper.rb makes `NAME[_LATE]_USER_ATTACHMENT_FILE`, where NAME is the sortable name in small
letters without anything but word characters; anonymous submissions are `[LATE_]anon_ID_ATTACHMENT_FILE`; a
text is `NAME[_LATE]_USER_text.html`, an address `..._link.html`. Only the newest submission of a user is in
it. A name that a student uses again gets `-1`, ... (`make_unique_filename` in app/models/attachment.rb), and
attachments are numbered in the order of their upload.
"""

import re

from grader.intake.handed_in import HandedIn

_USER = r"(?:(?P<user>\d{2,20})|anon_(?P<anonym>[A-Za-z0-9]{3,12}))"
_UPLOAD = re.compile(
    rf"^(?:(?P<who>\w+?)_)??(?P<late>LATE_)?{_USER}_"
    r"(?:(?P<attachment>\d{2,20})_(?P<name>.*\D.*)|(?P<entry>(?:text|link)\.html))$"
)


def canvas_name(name: str) -> HandedIn | None:
    """What a name in a Canvas download tells, or None when Canvas did not make it."""
    found = _UPLOAD.match(name)
    if found is None or (found["who"] is None and found["anonym"] is None):
        return None
    holder = f"anon_{found['anonym']}" if found["anonym"] else f"{found['who']}_{found['user']}"
    return HandedIn(
        name=found["name"] or found["entry"],
        holder=holder,
        lms="Canvas",
        person=found["anonym"] or found["user"],
        late=found["late"] is not None,
        order=int(found["attachment"] or 0),
    )
