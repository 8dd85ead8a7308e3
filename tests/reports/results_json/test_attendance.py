"""The list of the class held against who handed in: in results.json and on the class page."""

import json
from pathlib import Path

from grader.domain.submission import AccountedFile, Download, Fate, Origin
from grader.lms.matching import Candidate
from grader.lms.roster import read_roster
from grader.reports.results_json.filled_records import attended, roster_record
from grader.reports.results_json.results_file import download_record, results_text
from grader.reports.whole_class.class_page import class_page

WORKSHEET = (
    "Identifier,Full name,ID number,Email address,Status,Grade,Maximum grade\n"
    "Participant 11,Alpha One,400101204,alpha@uni.example,Submitted,,100\n"
    "Participant 12,Kappa Seven,,kappa@uni.example,No submission,,100\n"
    "Participant 13,,,,No submission,,100\n"
)


def listed(folder: Path, content: str | bytes):
    path = folder / "list.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_roster(path)


def those(*student_ids: str) -> list[Candidate]:
    return [Candidate(student_id) for student_id in student_ids]


def account(roster=None, *files: AccountedFile):
    return download_record(Download(tuple(files))).model_copy(update={"roster": roster})


def test_results_are_found_on_the_list_by_any_of_its_columns(tmp_path: Path) -> None:
    """By an ID number, by an e-mail address, and by the number of a participant without either."""
    roster = listed(tmp_path, WORKSHEET)
    record = roster_record(roster, those("400101204", "Participant_13", "someone"))
    assert record.students == ["400101204", "Participant_13", "kappa"]
    found = attended(account(record), those("400101204", "Participant_13", "someone")).roster
    assert (found.missing, found.unlisted) == (["kappa"], ["someone"])


def test_zeros_that_a_spreadsheet_dropped_make_nobody_missing(tmp_path: Path) -> None:
    roster = roster_record(listed(tmp_path, "student_id\n12345\n67\n"), those("0012345"))
    found = attended(account(roster), those("0012345")).roster
    assert (found.missing, found.unlisted) == (["67"], [])


def test_results_under_usernames_are_on_blackboards_list(tmp_path: Path) -> None:
    """Whatever id the list itself gives them."""
    text = "Username,Student ID,Lab 8 [Total Pts: 100 Score] |7\nsone,400101204,\nstwo,,\nsthree,400101206,\n"
    everybody = [Candidate(one, Origin(key=f"id:{one}")) for one in ("sone", "stwo")]
    record = roster_record(listed(tmp_path, text), everybody)
    found = attended(account(record), everybody).roster
    assert (found.students, found.missing) == (["400101206", "sone", "stwo"], ["400101206"])


def test_a_row_that_may_be_two_students_makes_neither_of_them_missing(tmp_path: Path) -> None:
    roster = listed(tmp_path, "student_id,email\n400101204,kappa@uni.example\n")
    record = roster_record(roster, those("400101204", "kappa"))
    assert record.notes == ["list.csv, row 2: fits 400101204 and kappa."]
    found = attended(account(record), those("400101204", "kappa")).roster
    assert (found.missing, found.unlisted) == ([], [])


def test_whoever_comes_later_is_not_missing_any_more(tmp_path: Path) -> None:
    download = account(roster_record(listed(tmp_path, "student_id\n1\n2\n3\n"), those("1")))
    assert attended(download, those("1")).roster.missing == ["2", "3"]
    assert attended(download, those("1", "3")).roster.missing == ["2"]
    refused = AccountedFile("2.rar", Fate.REFUSED, "2", "2.rar: is not a zip.")
    assert attended(account(download.roster, refused), those("1")).roster.missing == ["3"]


def test_without_a_list_nobody_is_missing() -> None:
    assert attended(None, those("1")) is None
    assert attended(account(), those("1")).roster is None


def test_the_class_page_and_the_results_name_who_is_missing(
    tmp_path: Path, assignment, pairs, examples
) -> None:
    everybody = [score.student_id for _, score in pairs]
    text = "student_id\n" + "\n".join([*everybody[1:], "400109001", "400109002"]) + "\n"
    download = account(roster_record(listed(tmp_path, text), those(*everybody)))
    download = attended(download, those(*everybody))
    found = json.loads("".join(results_text(assignment, pairs, download)))["download"]["roster"]
    assert found["missing"] == ["400109001", "400109002"] and found["unlisted"] == everybody[:1]
    page = class_page(assignment, pairs, links={}, generated_at=examples.WHEN, download=download)
    assert (
        '<b>2</b> <a href="#handed-in-nothing">' in page
        and 'id="handed-in-nothing"' in page
        and 'id="unlisted"' in page
    )
    assert "400109002" in page
