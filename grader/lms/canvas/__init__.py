"""Canvas."""

from grader.lms.canvas.attachments import ANONYMOUS, LMS, canvas_name, read_together
from grader.lms.canvas.gradebook_columns import CLASS_LIST, GRADEBOOK
from grader.lms.system import Lms

CANVAS = Lms(LMS, canvas_name, CLASS_LIST, (GRADEBOOK,), read_together, label_without_name=ANONYMOUS)
