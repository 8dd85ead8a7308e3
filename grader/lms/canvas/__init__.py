"""Canvas."""

from grader.lms.canvas.attachments import ANONYMOUS, LMS, canvas_name, read_together
from grader.lms.canvas.gradebook_columns import CLASS_LIST, GRADEBOOK
from grader.lms.system import Lms

CANVAS = Lms(
    name=LMS,
    read_name=canvas_name,
    class_list=CLASS_LIST,
    formats=(GRADEBOOK,),
    read_together=read_together,
    label_without_name=ANONYMOUS,
)
