"""The formats of `grader export`: what each LMS reads."""

from grader.lms import LMSS
from grader.lms.export_format import Format

FORMATS: tuple[Format, ...] = tuple(one for lms in LMSS for one in lms.formats)
