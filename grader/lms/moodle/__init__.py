"""Moodle."""

from grader.lms.moodle.feedback_zip import FEEDBACK_ZIP
from grader.lms.moodle.gradebook_table import GRADEBOOK
from grader.lms.moodle.participants import LMS, moodle_name
from grader.lms.moodle.worksheet import CLASS_LIST, WORKSHEET
from grader.lms.system import Lms

MOODLE = Lms(
    name=LMS,
    read_name=moodle_name,
    class_list=CLASS_LIST,
    formats=(WORKSHEET, GRADEBOOK, FEEDBACK_ZIP),
)
