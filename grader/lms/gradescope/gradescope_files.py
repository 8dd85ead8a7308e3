"""Reads the metadata of Gradescope's export, and writes `results.json` like an autograder.

Gradescope does not document the export (`submission_metadata.yml` beside one folder for each submission).
Several published readers agree that the file maps each folder (`submission_123`) to `:submitters:` (a list
of `:name:`, `:sid:`, `:email:`), `:created_at:`, `:score:` and `:history:` (earlier attempts, which are not
in the export). Ruby wrote it, so keys keep their colon, and results may carry Ruby's own tags. Students
choose the strings in it: it is parsed in the sandboxed parser, and the result is validated again here.

By the autograder specifications, in `results.json` `score` at the top overrides the tests' sum; a test
has `score`, `max_score`, `name`, `number`, `output`, `tags`, `status` (`passed`, `failed`) and
`visibility`. As long as a scored test is hidden, the student's total is hidden too.
A package that runs within Gradescope writes its own file: `grader.packages.gradescope_results`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, BinaryIO

import yaml

from grader.domain.errors import SubmissionError
from grader.domain.evidence import Evidence, Finding, Status
from grader.domain.formatting import points, printable
from grader.domain.score import Score, ScoreLine
from grader.files.file_names import displayable
from grader.lms.export_format import Export, ExportData, ExportFormat, Grade, Option
from grader.lms.system import (
    MOST_ROWS,
    DownloadName,
    ListedSubmission,
    Row,
    SubmissionList,
    submissions_sorted_by_time,
)

FILE = "results.json"
HIDDEN = "hidden"
VISIBILITY = Option(
    "visibility",
    "When students see it.",
    values=(HIDDEN, "after_due_date", "after_published", "visible"),
    default="after_published",
)


def gradescope(export_data: ExportData) -> Export:
    """A `<student>/results.json` for each student whose grade is known."""
    grades, visibility = export_data.grades, export_data.choices.others[VISIBILITY.name]
    by_student = {score.student_id: (evidence, score) for evidence, score in export_data.results}
    points_by_student = {
        student_id: grade.points for student_id, grade in grades.items() if grade.points is not None
    }
    files = {
        f"{student_id}/{FILE}": gradescope_results(*by_student[student_id], grades[student_id], visibility)
        for student_id in points_by_student
    }
    left_out = [
        f"{grade.student_id}: is left out ({grade.reason})"
        for grade in grades.values()
        if grade.points is None
    ]
    return Export(files, len(files), tuple(left_out), {} if visibility == HIDDEN else points_by_student)


def gradescope_results(evidence: Evidence, score: Score, grade: Grade, visibility: str) -> bytes:
    """One student's `results.json`: the rubric items with their points, then every check, without points."""
    tests = [*_items(score, visibility), *_checks(evidence, _waiver_reasons(score), visibility)]
    lines = [f"{points(grade.points)} of {points(score.maximum)} points."]
    if score.late is not None and score.late.penalty:
        lines.append(score.late.reason)
    if score.reason:
        lines.append(score.reason)
    document = {
        "score": grade.points,
        "output": printable("\n".join(lines)),
        "visibility": visibility,
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {
            "student_id": score.student_id,
            "max_score": score.maximum,
            "submission_digest": evidence.submission_digest,
        },
    }
    return (json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode("utf-8")


def _items(score: Score, visibility: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(score.lines, 1):
        test = {
            "name": printable(line.title),
            "number": str(number),
            "score": line.points,
            "max_score": line.maximum,
            "output": printable("\n".join(_line_texts(line))),
            "tags": [line.id],
            "visibility": visibility,
        }
        # when a person decides on a total, an item may be left without points
        yield {key: value for key, value in test.items() if value is not None}


def _line_texts(line: ScoreLine) -> Iterator[str]:
    if line.reason:
        yield line.reason
    for share in line.components:
        yield f"{share.component}: {points(share.points)} of {points(share.maximum)}. {share.reason}".rstrip()
    for part in line.parts:
        yield f"{part.title}: {points(part.points)} of {points(part.maximum)}"
        yield from part.comments
    yield from line.comments


def _waiver_reasons(score: Score) -> dict[str, str]:
    """Check -> why it was waived for the class."""
    return {check: waiver.why for check, waiver in score.waived}


def _checks(evidence: Evidence, waived: dict[str, str], visibility: str) -> Iterator[dict[str, Any]]:
    titles = {finding.check: finding.title for finding in evidence.findings if finding.check not in waived}
    for finding in evidence.findings:
        cause = titles.get(finding.because or "", "")
        test: dict[str, Any] = {
            "name": printable(f"{finding.component}: {finding.title}"),
            "output": printable("\n".join(sentences(finding, waived.get(finding.check, ""), cause))),
            "tags": [finding.component, finding.check],
            "visibility": visibility,
        }
        if finding.status is Status.PASSED or finding.check in waived:
            test["status"] = "passed"
        elif finding.status is Status.FAILED:
            test["status"] = "failed"
        # a check that was not tried, or failed through the grader's fault, gets no status
        yield test


def sentences(finding: Finding, waived: str = "", cause: str = "") -> Iterator[str]:
    """What a student reads about a check, line by line.

    Args:
        waived: Why it was waived for the class, if it was.
        cause: The title of a check that failed for the same reason and shows the message instead.
    """
    if waived:
        yield f"Given back to the whole class: {waived}"
    if cause:
        yield f"For the same reason as: {cause}"
        return
    if finding.message:
        yield f"{finding.where}: {finding.message}" if finding.where else finding.message
    if finding.hint:
        yield finding.hint


RESULTS = ExportFormat(
    name="gradescope",
    help="""Write a Gradescope results.json for each student.

    Each is in the student's own folder. It lists the rubric's items from the results folder OUT with their
    points, then every check without points.

    \b
    Example:
      grader export gradescope results --visibility visible
    """,
    write=gradescope,
    options=(VISIBILITY,),
    noun="students",
    several=f"*/{FILE}",
)


# --- metadata --------------------------------------------------------------------------------------------


LMS = "Gradescope"
METADATA = "submission_metadata.yml"
MOST_MEGABYTES = 32
MOST_SUBMITTERS = 20
LONGEST_NAME = 100
DEEPEST = 30  # nested lists and mappings


LABEL = re.compile(r"submission_\d+")
_FOLDER = re.compile(r"submission_(\d{1,20})")


def gradescope_name(name: str) -> DownloadName | None:
    """What a folder's name in an export says: its number is the submission's, not the student's."""
    match = _FOLDER.fullmatch(name)
    return DownloadName("", name, LMS, match[1]) if match else None


def metadata_rows(file: BinaryIO, name: str) -> list[Row]:
    """The rows of the metadata. This runs where a hostile file can do no harm.

    Args:
        file: The YAML file.
        name: Its name, for the messages.

    Returns:
        [folder, ids of the submitters, moment or "", number of earlier attempts, their names] of each.

    Raises:
        SubmissionError: It is too large, or is not what Gradescope writes.
    """
    content = file.read(MOST_MEGABYTES * 10**6 + 1)
    if len(content) > MOST_MEGABYTES * 10**6:
        raise SubmissionError(
            f"{name}: is larger than {MOST_MEGABYTES} MB. Export fewer submissions at a time."
        )
    try:
        _require_shallow(content)
        document = yaml.load(content, Loader=_Loader)  # a safe loader, see below
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise SubmissionError(f"{name}{where}: {_NOT_A_LIST}") from error
    if not isinstance(document, dict) or len(document) > MOST_ROWS:
        raise SubmissionError(f"{name}: {_NOT_A_LIST}")
    return [_row(str(folder), entry) for folder, entry in document.items() if isinstance(entry, Mapping)]


_NOT_A_LIST = "is not the list of submissions that Gradescope writes. Export them again, or remove the file."


def listed_submission(row: Any) -> ListedSubmission | None:
    """A row of the parser's answer, validated by the trusted side; None for one without anything useful."""
    match row:
        case [str(folder), list(students), str(moment), int(earlier), list(names)]:
            pairs = {
                displayable(student_id)[:64].strip(): displayable(name).strip()
                for student_id, name in zip(students[:MOST_SUBMITTERS], names, strict=False)
                if isinstance(student_id, str) and isinstance(name, str)
            }
            pairs.pop("", None)
            return ListedSubmission(
                folder, tuple(pairs), _parsed(moment), max(earlier, 0), tuple(pairs.values())
            )
        case _:
            return None


def submission_list(rows: Sequence[Row]) -> SubmissionList:
    """The submissions in the rows of the metadata, without malformed ones."""
    return submissions_sorted_by_time(
        LMS, (submission for submission in map(listed_submission, rows) if submission is not None)
    )


def _require_shallow(content: bytes) -> None:
    """Refuse what nests so deeply that building it would use up the stack, which libyaml does not guard."""
    depth = 0
    for event in yaml.parse(content, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise ValueError


def _row(folder: str, entry: Mapping[Any, Any]) -> Row:
    history = entry.get(":history")
    earlier = len(history) if isinstance(history, list) else 0
    people = list(_people(entry.get(":submitters")))
    ids, names = [student_id for student_id, _ in people], [name for _, name in people]
    return [folder[:200], ids, _moment(entry.get(":created_at")), earlier, names]


def _people(submitters: Any) -> Iterator[tuple[str, str]]:
    """(id, name) of each submitter with an id."""
    for submitter in submitters[:MOST_SUBMITTERS] if isinstance(submitters, list) else ():
        # an id without quotes is a number to YAML
        if (
            isinstance(submitter, Mapping)
            and isinstance(sid := submitter.get(":sid"), str | int)
            and str(sid).strip()
        ):
            name = submitter.get(":name")
            yield str(sid).strip()[:64], name.strip()[:LONGEST_NAME] if isinstance(name, str) else ""


def _moment(value: Any) -> str:
    """A moment as ISO 8601 text, or empty; without a zone it is UTC, as YAML 1.1 has it."""
    if isinstance(value, str):
        value = _parsed(value)
    if not isinstance(value, datetime):
        return "" if not isinstance(value, date) else _moment(datetime(value.year, value.month, value.day))
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()


def _parsed(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text.strip().replace(" UTC", "+00:00"))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader, which ignores unknown tags and keeps the plain values."""


def _untagged(loader: Any, _: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


_Loader.add_multi_constructor("!", _untagged)
