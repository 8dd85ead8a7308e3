"""Canvas."""

from grader.lms.canvas.canvas_files import ANONYMOUS, CLASS_LIST, GRADEBOOK, LMS, canvas_name, read_together
from grader.lms.system import Lms

CANVAS = Lms(
    name=LMS,
    read_name=canvas_name,
    class_list=CLASS_LIST,
    formats=(GRADEBOOK,),
    read_together=read_together,
    anonymous_label=ANONYMOUS,
)
