"""What learning management systems put before the names of files."""

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
