"""The metadata of a Gradescope export: `submission_metadata.yml` beside one folder for each submission.

Gradescope documents the export only by what it writes; as several published readers of it agree, the file
maps each folder (`submission_123`) to `:submitters:` (a list of `:name:`, `:sid:`, `:email:`),
`:created_at:`, `:score:` and `:history:` (earlier attempts, which are not in the export). Ruby wrote it, so
keys keep their colon, and results may carry tags of Ruby's own. Students choose the strings in it: it is read
where archives are, apart from everything else, and what comes back is judged again.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, BinaryIO

import yaml

from grader.domain.errors import SubmissionError
from grader.files.names import displayable
from grader.lms.submission_list import ListedSubmission, SubmissionList, submissions_in_time
from grader.lms.system import MOST_ROWS, DownloadName, Row

LMS = "Gradescope"
METADATA = "submission_metadata.yml"
MOST_MEGABYTES = 32
MOST_SUBMITTERS = 20
LONGEST_NAME = 100
DEEPEST = 30  # collections within collections


LABEL = re.compile(r"submission_\d+")
_FOLDER = re.compile(r"submission_(\d{1,20})")


def gradescope_name(name: str) -> DownloadName | None:
    """What the name of a folder of an export tells: its number is the submission's, not the student's."""
    found = _FOLDER.fullmatch(name)
    return DownloadName("", name, LMS, found[1]) if found else None


def metadata_rows(file: BinaryIO, name: str) -> list[Row]:
    """What the metadata says. This runs where a hostile file does no harm.

    Args:
        file: The YAML file.
        name: Its name, for the sentences.

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
        raise SubmissionError(f"{name}{where}: {_NOT_WHAT}") from error
    if not isinstance(document, dict) or len(document) > MOST_ROWS:
        raise SubmissionError(f"{name}: {_NOT_WHAT}")
    return [_row(str(folder), entry) for folder, entry in document.items() if isinstance(entry, Mapping)]


_NOT_WHAT = "is not the list of submissions that Gradescope writes. Export them again, or remove the file."


def listed_submission(row: Any) -> ListedSubmission | None:
    """A row, judged again by the side that believes nothing; None for one that says nothing useful."""
    match row:
        case [str(folder), list(students), str(moment), int(earlier), list(names)]:
            pairs = {
                displayable(one)[:64].strip(): displayable(name).strip()
                for one, name in zip(students[:MOST_SUBMITTERS], names, strict=False)
                if isinstance(one, str) and isinstance(name, str)
            }
            pairs.pop("", None)
            return ListedSubmission(
                folder, tuple(pairs), _parsed(moment), max(earlier, 0), tuple(pairs.values())
            )
        case _:
            return None


def submission_list(rows: Sequence[Row]) -> SubmissionList:
    """What the rows of the metadata tell, those that make no sense left out."""
    return submissions_in_time(LMS, (one for one in map(listed_submission, rows) if one is not None))


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
    for one in submitters[:MOST_SUBMITTERS] if isinstance(submitters, list) else ():
        # an id without quotes is a number to YAML
        if isinstance(one, Mapping) and isinstance(sid := one.get(":sid"), str | int) and str(sid).strip():
            name = one.get(":name")
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
    """The safe loader, for which a tag that it does not know is no more than its plain value."""


def _untagged(loader: Any, _: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


_Loader.add_multi_constructor("!", _untagged)
