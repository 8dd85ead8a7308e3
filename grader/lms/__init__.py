"""The learning management systems that the grader knows: their names of files, their lists, their grades.

A further one is a module of its own and a line in `LMSS`; downloads, lists of the class and `grader export`
are built from it.
"""

from grader.lms.blackboard import BLACKBOARD
from grader.lms.canvas import CANVAS
from grader.lms.gradescope import GRADESCOPE
from grader.lms.moodle import MOODLE

LMSS = (MOODLE, CANVAS, GRADESCOPE, BLACKBOARD)
"""All of them. Where several could have made a name, the first did."""
