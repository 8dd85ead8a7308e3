"""The formats of `grader export`: what each LMS reads."""

from grader.lms import LMSS
from grader.lms.export_format import ExportFormat

FORMATS: tuple[ExportFormat, ...] = tuple(export_format for lms in LMSS for export_format in lms.formats)
