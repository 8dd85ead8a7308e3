"""The files that all pages share: the style of the reports with the console's own, and two scripts."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from grader.reports.typesetting import TEMPLATES as REPORT_TEMPLATES

HTMX = "htmx-2.0.11.min.js"  # as its makers publish it; a test knows its digest
_FOLDER = Path(__file__).parent / "static"
_STYLES = (REPORT_TEMPLATES / "style.css", REPORT_TEMPLATES / "submission.css", _FOLDER / "console.css")


@dataclass(frozen=True)
class StaticFile:
    """A file that does not change while the console runs.

    Attributes:
        kind: Its media type.
        digest: Of its content; a part of its address, so that browsers keep it.
    """

    content: bytes
    kind: str
    digest: str


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Name -> file."""
    script = "text/javascript; charset=utf-8"
    contents = {
        "console.css": (b"\n".join(path.read_bytes() for path in _STYLES), "text/css; charset=utf-8"),
        "console.js": ((_FOLDER / "console.js").read_bytes(), script),
        HTMX: ((_FOLDER / HTMX).read_bytes(), script),
    }
    return {
        name: StaticFile(content, kind, sha256(content).hexdigest()[:16])
        for name, (content, kind) in contents.items()
    }


def static_address(name: str) -> str:
    """The address of a file in a page."""
    return f"/static/{static_files()[name].digest}/{name}"
