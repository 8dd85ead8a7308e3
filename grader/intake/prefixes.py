"""What learning management systems put before the names of files."""

from pathlib import PurePosixPath

from grader.intake.canvas import canvas_name
from grader.intake.gradescope import gradescope_name
from grader.intake.handed_in import HandedIn
from grader.intake.moodle import moodle_name


def handed_in(name: str) -> HandedIn:
    """What a file's or a folder's name in a download tells.

    Args:
        name: As it is in the download.
    """
    return moodle_name(name) or canvas_name(name) or gradescope_name(name) or HandedIn(name)


def nameless(path: str) -> str:
    """A path in a download with the numbers of people in the place of the names that an LMS puts before them.

    Args:
        path: Of folders and a file, as they are in the download.
    """
    return PurePosixPath(*map(_nameless, PurePosixPath(path).parts)).as_posix() if path else path


def _nameless(name: str) -> str:
    handed = handed_in(name)
    return name.replace(f"{handed.called}_", "", 1) if handed.called else name
