"""Moodle."""

from grader.lms.moodle.feedback_zip import FEEDBACK_ZIP
from grader.lms.moodle.grade_tables import CLASS_LIST, GRADEBOOK, LMS, WORKSHEET, moodle_name
from grader.lms.system import Lms

MOODLE = Lms(
    name=LMS,
    read_name=moodle_name,
    class_list=CLASS_LIST,
    formats=(WORKSHEET, GRADEBOOK, FEEDBACK_ZIP),
)
