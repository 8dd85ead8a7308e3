"""Records as they are sent or stored: their validators, and the compressed view of a handed-in file.

Each validator is made once, which takes as long as using it 100 times.
"""

import gzip
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from grader.domain.submission import View

_made: dict[Any, TypeAdapter[Any]] = {}


def validator(kind: Any) -> TypeAdapter[Any]:
    """The validator of a type.

    A process that forks others asks for it beforehand, so that all of them have it.
    """
    if kind not in _made:
        _made[kind] = TypeAdapter(kind)
    return _made[kind]


# --- view of a handed-in file ----------------------------------------------------------------------------


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
