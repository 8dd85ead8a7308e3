"""Gradescope."""

from collections.abc import Sequence

from grader.files.csv_text import CsvText
from grader.lms.gradescope.gradescope_files import (
    LABEL,
    LMS,
    METADATA,
    RESULTS,
    gradescope_name,
    metadata_rows,
    submission_list,
)
from grader.lms.system import ClassListForm, Lms, Metadata, has_columns

_SUBMISSION = "submission id"  # of the table of grades: empty for whoever handed in nothing


def _has_submission(table: CsvText, header: Sequence[str], row: int) -> bool:
    return _SUBMISSION in header and bool(table.cell(row, header.index(_SUBMISSION)))


GRADESCOPE = Lms(
    name=LMS,
    read_name=gradescope_name,
    class_list=ClassListForm(
        is_own=has_columns("sid", "email"), numbers=("sid",), has_submission=_has_submission
    ),
    formats=(RESULTS,),
    metadata=Metadata(METADATA, metadata_rows, submission_list),
    anonymous_label=LABEL,
)
