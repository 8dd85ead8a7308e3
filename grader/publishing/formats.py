"""The formats of `grader export`: what each LMS reads, and what other programs do."""

from grader.lms import LMSS
from grader.lms.export_format import Format
from grader.publishing.junit import JUNIT

FORMATS: tuple[Format, ...] = (*(one for lms in LMSS for one in lms.formats), JUNIT)
