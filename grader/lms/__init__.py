"""The learning management systems that the grader knows: their file names, class lists and grade tables.

Another one needs a module of its own and a line in `LMSS`; downloads, class lists and `grader export` are
built from it.
"""

from grader.lms.blackboard import BLACKBOARD
from grader.lms.canvas import CANVAS
from grader.lms.export_format import ExportFormat
from grader.lms.gradescope import GRADESCOPE
from grader.lms.moodle import MOODLE

LMSS = (MOODLE, CANVAS, GRADESCOPE, BLACKBOARD)
"""All of them. If several could have made a name, the first is taken."""

FORMATS: tuple[ExportFormat, ...] = tuple(export_format for lms in LMSS for export_format in lms.formats)
"""The formats of `grader export`: what each LMS reads."""
