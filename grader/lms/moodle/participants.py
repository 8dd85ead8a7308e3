"""The names in a Moodle download of an assignment's submissions.

mod/assign/classes/downloader.php (before that mod/assign/locallib.php) makes the prefix
`[Group-]Full name_12345`, where underscores in names became spaces, so that nobody's name can hold another
number, and the number is the participant's, as in the grading worksheet. With blind marking the name is the
word "Participant" in the site's language; a team's prefix is its name and its number, which is no
participant's (`Team_77`), or a bare default without a number.
Side by side a file is `PREFIX_assignsubmission_file_NAME`; with a folder per student it is
`PREFIX_assignsubmission_file/NAME` (an older Moodle: `PREFIX_assignsubmission_file_/NAME`), and files keep
their own names and sub-folders. Times are not in it: Moodle streams the zip when it is asked for.
"""

import re

from grader.lms.system import DownloadName

LMS = "Moodle"
_NAME = re.compile(r"^(?P<holder>.+?)_assignsubmission_(?:file|onlinetext)(?:_(?P<name>.*))?$")
_PARTICIPANT = re.compile(r"^(?P<called>.*)_(?P<number>\d{1,20})$")


def moodle_name(name: str) -> DownloadName | None:
    """What a name in a Moodle download tells, or None when Moodle did not make it."""
    found = _NAME.match(name)
    if found is None:
        return None
    number = _PARTICIPANT.search(found["holder"])
    if number is None:
        return DownloadName(found["name"] or "", found["holder"], LMS, found["holder"])
    # a group's name may stand before the person's, and changes with the group that was chosen
    return DownloadName(
        name=found["name"] or "",
        holder=found["holder"],
        lms=LMS,
        person=number["number"],
        number=number["number"],
        called=number["called"],
    )
