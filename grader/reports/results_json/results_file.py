"""`results.json`: written and read one submission at a time, so that a large class needs no more memory."""

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.formatting import about_file, printable
from grader.domain.score import Score
from grader.domain.submission import Download, Fate
from grader.reports.results_json.filled_records import submission_record
from grader.reports.results_json.results_schema import (
    DownloadedFileRecord,
    DownloadRecord,
    LackingRecord,
    ResultsDocument,
)

_FIRST, _LAST = "  {", "  }"  # the lines around a submission


def submission_text(evidence: Evidence, score: Score) -> str:
    """The lines of one submission as they are in the file, without the comma that may follow."""
    record = submission_record(evidence, score).model_dump(mode="json")
    if not evidence.variant:
        del record["variant"]
    return f"  {_json_text(record, indent='  ')}"


def results_text(
    assignment: Assignment,
    results: Iterable[tuple[Evidence, Score]],
    download: DownloadRecord | None = None,
    downloads: Sequence[DownloadRecord] = (),
    *,
    text_of: Callable[[Evidence, Score], str] = submission_text,
) -> Iterator[str]:
    """The text of the file for what was found and scored, in pieces; whole points have no fraction.

    Args:
        results: Sorted by student.
        download: What became of the files of all downloads together.
        downloads: What became of the files of each download, by `download_record`.
        text_of: Returns what `submission_text` would return for a result.
    """
    document = _json_text(
        ResultsDocument(
            assignment=assignment.id,
            max=assignment.maximum,
            submissions=[],
            download=download,
            downloads=list(downloads),
        ).model_dump(mode="json")
    )
    # this cannot be part of a string, in which its quotes would be escaped
    before, between, after = document.partition('"submissions": []')
    assert between
    yield before
    yield '"submissions": ['
    separator = ""
    for evidence, score in results:
        yield f"{separator}\n{text_of(evidence, score)}"
        separator = ","
    end = "\n ]" if separator else "]"
    yield f"{end}{after}\n"


def submission_entries(path: Path) -> Generator[tuple[str, str], None, None]:
    """(student's id, lines) of each submission in a file that `results_text` made.

    Raises:
        OSError, ValueError: It cannot be read, or is something else; what was yielded before that is valid.
    """
    lines: list[str] = []
    for line, within in _lines(path):
        if within:
            lines.append(line)
        if within and line.startswith(_LAST):
            text = "".join(lines).rstrip("\n").removesuffix(",")
            yield _student_id(text), text
            lines = []


def text_without_submissions(path: Path) -> str:
    """The text of a file that `results_text` made, without its submissions.

    Raises:
        OSError, UnicodeDecodeError: It cannot be read.
    """
    return "".join(line for line, within in _lines(path) if not within)


def _lines(path: Path) -> Iterator[tuple[str, bool]]:
    """Each line with its end, and whether it belongs to a submission."""
    within = False
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            within = within or line.rstrip("\n") == _FIRST
            yield line, within
            within = within and not line.startswith(_LAST)


def _student_id(text: str) -> str:
    # the first field alone: to read it all takes ten times as long
    _, _, fields = text.partition("\n")
    field, _, _ = fields.partition("\n")
    match json.loads(f"{{{field.removesuffix(',')}}}"):
        case {"student_id": str(student_id)}:
            return student_id
    raise ValueError("not a submission")


def download_record(download: Download) -> DownloadRecord:
    """The account of a download, as the document holds it."""
    counts = Counter[Fate]()
    for file in download.files:
        counts[file.fate] += file.count
    return DownloadRecord(
        source=printable(download.source),
        matched=counts[Fate.MATCHED],
        superseded=counts[Fate.SUPERSEDED],
        refused=counts[Fate.REFUSED],
        files=[
            DownloadedFileRecord(
                name=printable(file.name),
                fate=file.fate.value,
                student_id=file.student_id,
                reason=about_file(file.name, file.reason),
                count=file.count,
            )
            for file in download.files
        ],
        notes=[printable(note) for note in download.notes],
        lacking=[
            LackingRecord(
                student_id=printable(lacking.student_id), lms=lacking.lms, upload=printable(lacking.upload)
            )
            for lacking in download.lacking
        ],
    )


def results_schema() -> dict[str, Any]:
    """The JSON schema of `results.json`."""
    schema = ResultsDocument.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def results_schema_text() -> str:
    """The schema as the text of `docs/results.schema.json`."""
    return json.dumps(results_schema(), ensure_ascii=False, indent=2) + "\n"


def _json_text(value: Any, *, indent: str = "") -> str:
    """The text of JSON data with an indent of 1; texts are made printable, and 35.0 is written as 35.

    Args:
        value: The data.
        indent: What stands before each line but the first.

    Raises:
        ValueError: A number is not finite, which JSON does not know.
    """
    # several times faster than `json`, which indents in Python
    text = to_json(_printable_data(value), indent=1).decode("utf-8")
    return text.replace("\n", f"\n{indent}")


def _printable_data(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: _printable_data(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_printable_data(item) for item in value]
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        raise ValueError(f"{value} cannot be written as JSON")
    return int(value) if value.is_integer() else value


if __name__ == "__main__":  # `python -m grader.reports.results_json.results_file > docs/results.schema.json`
    sys.stdout.write(results_schema_text())
