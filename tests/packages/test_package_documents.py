"""The results in other graders' formats: valid, and with nothing of hidden checks before its time."""

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from packages.schemas import require_valid

from grader.domain.assignment import Assignment, CourseLateDays, Resubmission, Tries
from grader.domain.evidence import Attestation, Blame, Evidence, Finding, Status
from grader.domain.submission import RefusedFile, Role
from grader.packages.earlier_submissions import EarlierSubmission, earlier_submissions, with_earlier
from grader.packages.failed_run import failed_document
from grader.packages.gradescope_results import gradescope_document
from grader.packages.prairielearn_results import MOST_BYTES, prairielearn_document
from grader.packages.submission_metadata import read_metadata, received_at, submission_number
from grader.scoring import score

NOW = datetime(2026, 5, 1, tzinfo=UTC)
DUE = datetime(2026, 5, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
HIDDEN_WORDS = "what a hidden check says <b>"


@pytest.fixture
def evidence(assignment: Assignment) -> Evidence:
    """All checks pass but one hidden and one public one of Attention, and one that the grader failed in."""
    public = next(check for check in assignment.checks if check.public and check.component == "Attention")
    hidden = next(check for check in assignment.checks if not check.public and check.component == "Attention")
    ours = next(check for check in assignment.checks if check.component == "evaluate" and not check.public)

    def finding(check) -> Finding:
        if check.id == ours.id:
            return Finding(
                check.id, check.component, check.title, Status.ERRORED, Blame.ENGINE, message="Ours."
            )
        if check.id not in (public.id, hidden.id):
            return Finding(check.id, check.component, check.title, Status.PASSED)
        words = HIDDEN_WORDS if check.id == hidden.id else "what a public check says"
        cause = hidden.id if check.id == public.id else None
        return Finding(
            check.id,
            check.component,
            check.title,
            Status.FAILED,
            Blame.STUDENT,
            message=words,
            hint="Try `this`.",
            where="homework.py:41",
            because=cause,
        )

    return Evidence(
        "400101200",
        assignment.id,
        "0" * 64,
        NOW,
        findings=tuple(map(finding, assignment.checks)),
        attestation=Attestation("container", {"uid": "200001"}, ("No namespaces.",)),
        not_run=("training",),
    )


@pytest.fixture
def with_tries(assignment: Assignment) -> Assignment:
    """Three submissions before the deadline see what hidden checks found."""
    return replace(assignment, deadline=DUE, tries=Tries(3))


@pytest.fixture
def gradescope(assignment: Assignment, evidence: Evidence) -> Callable:
    def document(
        changed: Evidence | None = None, rules: Assignment = assignment, earlier: tuple = (), **options
    ) -> dict:
        graded = changed or evidence
        points = with_earlier(rules, graded, score(rules, graded), earlier)
        made = gradescope_document(rules, graded, points, seconds=61.2, **options)
        require_valid("gradescope", made)
        return made

    return document


@pytest.fixture
def prairielearn(assignment: Assignment, evidence: Evidence) -> Callable:
    def document(changed: Evidence | None = None, rules: Assignment = assignment) -> dict:
        graded = changed or evidence
        made = prairielearn_document(rules, graded, with_earlier(rules, graded, score(rules, graded), ()))
        require_valid("prairielearn", made)
        return made

    return document


def shown_at_once(document: dict) -> str:
    """All that a student reads before grades are published; the total is not among it."""
    assert any(test["visibility"] != "visible" and "score" in test for test in document["tests"])
    tests = [test for test in document["tests"] if test["visibility"] == "visible"]
    return document["output"] + str([{key: test[key] for key in ("name", "output")} for test in tests])


def shown_to(document: dict) -> str:
    """What a student reads of either document before grades are published."""
    shown = [test for test in document["tests"] if test.get("visibility", "visible") == "visible"]
    return f"{document['output']} {shown}"


def test_who_can_upload_code_alone_is_not_asked_for_more(
    prairielearn: Callable, gradescope: Callable, evidence: Evidence
) -> None:
    """The page of the question takes code and files of the assignment's own roles, and no report."""
    without_report = replace(evidence, missing=(Role.REPORT,), code_file="homework.py")
    assert ".pdf is missing" in gradescope(without_report)["output"]
    document = prairielearn(without_report)
    assert "missing" not in document["message"] and "withheld" not in document["message"]


def test_hidden_checks_wait_until_grades_are_published(gradescope: Callable, assignment: Assignment) -> None:
    document = gradescope()
    at_once = shown_at_once(document)
    assert "hidden check says" not in at_once and "what a public check says" in at_once
    assert "37" not in document["output"].split("Open:")[0]
    public = {check.id for check in assignment.checks if check.public}
    for test in document["tests"]:
        if len(test["tags"]) == 2:
            expected = "visible" if test["tags"][1] in public else "after_published"
            assert test["visibility"] == expected


def test_what_a_hidden_check_causes_is_told_by_itself(gradescope: Callable, evidence: Evidence) -> None:
    folded = next(finding for finding in evidence.findings if finding.because)
    hidden_title = next(finding.title for finding in evidence.findings if finding.check == folded.because)
    assert hidden_title not in shown_at_once(gradescope())


# --- earlier submissions ---------------------------------------------------------------------------------


def test_with_a_try_all_is_shown_at_once(
    gradescope: Callable, evidence: Evidence, with_tries: Assignment
) -> None:
    document = gradescope(replace(evidence, received_at=NOW), with_tries)
    assert {test["visibility"] for test in document["tests"]} == {"visible"}
    assert "Try 1 of 3 with feedback on hidden checks, 2 left." in document["output"]
    assert "hidden check says &lt;b&gt;" in str(document["tests"])


@pytest.mark.parametrize(
    ("came", "earlier", "words"),
    [
        (NOW, [NOW - HOUR, NOW - 2 * HOUR], "Try 3 of 3 with feedback on hidden checks, 0 left."),
        (NOW, [NOW - HOUR, NOW - 2 * HOUR, NOW - 3 * HOUR], "None of the 3 tries"),
        (DUE + HOUR, [], "It came after the deadline: hidden checks are shown when grades are released."),
    ],
)
def test_tries_are_counted_by_the_rule_of_grader_grade(
    gradescope: Callable,
    evidence: Evidence,
    with_tries: Assignment,
    came: datetime,
    earlier: list,
    words: str,
) -> None:
    """What `grader.scoring` says of the same times."""
    before = tuple(EarlierSubmission(moment, str(moment)) for moment in earlier)
    document = gradescope(replace(evidence, received_at=came), with_tries, before)
    assert words in document["output"]
    assert ("hidden check says" in shown_to(document)) == words.startswith("Try 3")


def test_neither_the_same_files_nor_a_failed_run_use_a_try(
    gradescope: Callable, evidence: Evidence, with_tries: Assignment
) -> None:
    same = {"submission_digest": evidence.submission_digest}
    results = [{"extra_data": same}, {"extra_data": {"status": "not_graded"}}, {"extra_data": 5}, None]
    told = [{"submission_time": "2026-04-30T10:00:00+00:00", "results": each} for each in results]
    told += [{**told[2], "autograder_error": True}, {"submission_time": 7}, "nonsense"]
    earlier = earlier_submissions({"previous_submissions": told})
    assert len(earlier) == 3 and earlier_submissions({"previous_submissions": 3}) == ()
    document = gradescope(replace(evidence, received_at=NOW), with_tries, earlier)
    assert "Try 3 of 3" in document["output"]


def test_where_no_time_is_told_hidden_checks_wait(
    gradescope: Callable, prairielearn: Callable, with_tries: Assignment
) -> None:
    for document in (gradescope(rules=with_tries), prairielearn(rules=with_tries)):
        assert "hidden check says" not in shown_to(document)


def test_a_resubmission_is_left_to_grader_grade(
    gradescope: Callable, evidence: Evidence, with_tries: Assignment
) -> None:
    rules = replace(with_tries, resubmission=Resubmission(0.5, days=7))
    late = replace(evidence, received_at=DUE + HOUR)
    before = (EarlierSubmission(NOW, "a"),)
    document = gradescope(late, rules, before)
    assert "score" not in document and "compares the two" in document["output"]
    # without one before the deadline the rule on late work applies, and in time nothing is open
    assert "score" in gradescope(replace(evidence, received_at=NOW), rules, before)
    assert "compares the two" not in gradescope(late, rules)["output"]


def test_late_days_of_the_course_are_left_to_grader_grade(
    gradescope: Callable, evidence: Evidence, with_tries: Assignment
) -> None:
    late_rule = replace(with_tries.late, points_per_day=5.0)
    rules = replace(with_tries, late=late_rule, course_late_days=CourseLateDays(3))
    late = gradescope(replace(evidence, received_at=DUE + HOUR), rules)
    assert "score" not in late and "counts them over all assignments" in late["output"]
    assert "score" in gradescope(replace(evidence, received_at=NOW), rules)
    without = gradescope(replace(evidence, received_at=DUE + HOUR), replace(rules, course_late_days=None))
    assert "points are taken off" in without["output"] and "score" in without


def test_lateness_tells_no_total_before_grades_are_published(
    gradescope: Callable, evidence: Evidence, with_tries: Assignment
) -> None:
    """What hidden checks found is in it. A total below the penalty would show in what is taken off, too."""
    rules = replace(with_tries, late=replace(with_tries.late, points_per_day=60.0), tries=None)
    late = gradescope(replace(evidence, received_at=DUE + HOUR), rules)
    assert "60 points are taken off." in late["output"] and "become" not in late["output"]
    total = score(rules, evidence).total
    assert late["score"] == max(total - 60, 0) and f"{total:g}" not in late["output"]


def test_a_file_that_was_set_aside_is_named_once(gradescope: Callable, evidence: Evidence) -> None:
    aside = RefusedFile("other.py", "other.py: was set aside because homework.py fits the asked name better.")
    output = gradescope(replace(evidence, refused_files=(aside,)))["output"]
    assert output.count("other.py") == 1 and "was set aside" in output


# --- what is open ----------------------------------------------------------------------------------------


def test_what_is_open_is_no_zero_and_has_its_reason(gradescope: Callable) -> None:
    document = gradescope()
    items = {test["tags"][0]: test for test in document["tests"] if len(test["tags"]) == 1}
    assert "score" not in items["training"] and "not run" in items["training"]["output"]
    assert "score" not in items["q6"] and "person" in items["q6"]["output"]
    assert items["visualization"]["score"] == 10.0
    # the grader's own failure costs nothing, and leaves the item open
    assert "score" not in items["evaluation"]
    assert "Open: Evaluation function" in document["output"]


def test_staff_see_the_isolation_and_students_do_not(gradescope: Callable) -> None:
    document = gradescope()
    assert document["extra_data"]["isolation"] == "container"
    assert document["extra_data"]["missing_layers"] == ["No namespaces."]
    assert document["stdout_visibility"] == "hidden"
    assert "namespaces" not in shown_at_once(document)


def test_where_nothing_is_decided_the_file_is_valid_and_no_zero_of_points(
    gradescope: Callable, evidence: Evidence
) -> None:
    refused = replace(evidence, status="refused", reason="homework.py: is not Python.", findings=())
    document = gradescope(refused)
    assert "score" not in document
    assert [test["max_score"] for test in document["tests"] if "score" in test] == [0]
    assert "is not Python" in document["output"]


def test_the_leaderboard_counts_public_checks_and_names_nobody(
    gradescope: Callable, assignment: Assignment, evidence: Evidence
) -> None:
    [line] = gradescope(leaderboard=True)["leaderboard"]
    assert line == {
        "name": "Public checks passed",
        "value": sum(check.public for check in assignment.checks) - 1,
    }
    assert evidence.student_id not in str(gradescope(leaderboard=True))


def test_prairielearn_gets_a_share_of_what_is_decided(prairielearn: Callable) -> None:
    """It tells no times, so that no rule on tries applies."""
    document = prairielearn()
    assert document["gradable"] and 0 < document["score"] < 1
    assert "hidden check says" not in str(document) and "what a public check says" in str(document)


def test_prairielearn_is_told_what_cannot_be_graded(prairielearn: Callable, evidence: Evidence) -> None:
    refused = replace(evidence, status="refused", reason="homework.py: is not Python.", findings=())
    document = prairielearn(refused)
    assert document["gradable"] is False and "not Python" in document["format_errors"][0]


def test_prairielearns_megabyte_is_kept(prairielearn: Callable, evidence: Evidence) -> None:
    long = tuple(replace(finding, message="ü" * 40_000) for finding in evidence.findings)
    document = prairielearn(replace(evidence, findings=long))
    assert len(str(document).encode()) < MOST_BYTES


@pytest.mark.parametrize("kind", ["gradescope", "container", "prairielearn"])
def test_so_is_what_says_that_a_run_failed(kind: str) -> None:
    require_valid(kind, failed_document(kind, "Why."))


@pytest.mark.parametrize(
    "document",
    [{}, {"tests": []}, {"tests": [{"name": "a"}]}, {"score": "1"}, {"score": 1, "visibility": "later"}],
)
def test_the_schema_refuses_what_gradescope_would(document: dict) -> None:
    with pytest.raises(jsonschema.ValidationError):
        require_valid("gradescope", document)


@pytest.mark.parametrize(
    ("text", "moment", "number"),
    [
        ('{"id": 12, "created_at": "2026-05-01T10:00:00.5-07:00"}', "2026-05-01T17:00:00.500000+00:00", "12"),
        ('{"id": "../x", "created_at": "2026-05-01T10:00:00"}', None, "1"),
        ('{"created_at": 5}', None, "1"),
        ("[]", None, "1"),
        ("[" * 100_000, None, "1"),
    ],
)
def test_metadata_is_believed_as_far_as_it_makes_sense(
    tmp_path: Path, text: str, moment: str | None, number: str
) -> None:
    path = tmp_path / "metadata.json"
    path.write_text(text)
    metadata = read_metadata(path)
    received = received_at(metadata)
    assert (received.astimezone(UTC).isoformat() if received else None) == moment
    assert submission_number(metadata) == number


def test_without_metadata_nothing_is_known(tmp_path: Path) -> None:
    assert read_metadata(tmp_path / "none.json") == {}
