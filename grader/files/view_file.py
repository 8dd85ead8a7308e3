"""The compressed view of a handed-in file, which the gradebook keeps beside the pictures."""

import gzip
from collections.abc import Mapping

from grader.domain.submission import View
from grader.files.typed_json import validator

VIEW_FILE = "submission.view"


def view_bytes(view: View) -> bytes:
    """A view as bytes; the same view gives the same bytes."""
    return gzip.compress(validator(View).dump_json(view), compresslevel=3, mtime=0)


def view_in(files: Mapping[str, bytes]) -> View | None:
    """The view among the files that belong to a student's evidence; None if there is none.

    It is also None if another version of the grader wrote it in another format.
    """
    try:
        view: View = validator(View).validate_json(gzip.decompress(files.get(VIEW_FILE, b"")))
    except (OSError, EOFError, ValueError):
        return None
    return view
