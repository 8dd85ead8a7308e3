"""Every file of a class's download is accounted for, in the format of each LMS."""

import importlib.util
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from grader.domain.limits import Limits
from grader.domain.submission import Fate
from grader.intake import intake, submissions
from grader.intake.downloaded_files import condensed, totals
from grader.intake.upload import IN_ZIP, ON_DISK

_SPEC = importlib.util.spec_from_file_location(
    "generated_class", Path(__file__).with_name("generated_class.py")
)
generated = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(generated)

TEHRAN = timezone(timedelta(hours=3, minutes=30))


@pytest.fixture(scope="module")
def course_assignment(assignment):
    """The assignment with its usual limits and a deadline."""
    return replace(assignment, limits=Limits(), deadline=datetime(2026, 1, 31, 23, 59, tzinfo=TEHRAN))


@pytest.fixture(scope="module", params=generated.FORMATS)
def taken_in(request, course_assignment, tmp_path_factory):
    """(Name of the format, what was generated, what the intake made of it)."""
    made = generated.FORMATS[request.param]()
    folder = tmp_path_factory.mktemp(request.param)
    path = generated.written(made, folder, as_zip=request.param != "plain_folder")
    return request.param, made, submissions(path, course_assignment, folder / "scratch")


def shown(name):
    """As people read it: with the LMS's number of a person in the place of the name."""
    name = re.sub(r"^[^/]*_(\d+_assignsubmission)", r"\1", name)
    name = re.sub(r"^student\d+_((?:LATE_)?7\d+_)", r"\1", name)
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def test_there_are_many_kinds_of_oddity():
    assert len(generated.KINDS) >= 25
    assert len(generated.FORMATS) == 9


def test_every_file_is_accounted_for_once(taken_in):
    _, made, uploads = taken_in
    assert Counter(line.name for line in uploads.account) == Counter(map(shown, made.files))
    # what is on the disk or in the zip, without what is inside of archives in it
    assert {shown(path) for path in made.entries} <= {line.name for line in uploads.account}


def test_every_file_has_the_fate_the_owner_and_the_reason_that_it_must_have(taken_in):
    _, made, uploads = taken_in
    expected = {shown(path): told for path, told in made.files.items()}
    wrong = []
    for line in uploads.account:
        fate, student_id, words = expected[line.name]
        silent = not words and fate is Fate.MATCHED and line.reason and "was taken as" not in line.reason
        if (line.fate, line.student_id) != (fate, student_id) or words not in line.reason or silent:
            wrong.append((line, (fate, student_id, words)))
    assert wrong == []
    assert all(line.reason for line in uploads.account if line.fate is not Fate.MATCHED)


def test_the_counts_per_fate_and_kind(taken_in):
    _, made, uploads = taken_in
    per_fate = Counter(fate for fate, _, _ in made.files.values())
    assert totals(uploads.account) == {fate: per_fate[fate] for fate in Fate}
    assert totals(condensed(uploads.account)) == totals(uploads.account)
    of_kind = Counter((made.kinds.get(line.student_id), line.fate) for line in uploads.account)
    expected = Counter((made.kinds.get(who), fate) for fate, who, _ in made.files.values())
    assert of_kind == expected
    assert of_kind["a later copy", Fate.SUPERSEDED] == 1 and of_kind["a zip from a Mac", Fate.REFUSED] == 1


def test_every_student_is_one_submission(taken_in):
    _, made, uploads = taken_in
    assert [one.student_id for one in uploads.submissions] == sorted(made.kinds)
    assert all(any(words in note for note in uploads.notes) for words in made.notes), uploads.notes
    held = {one.student_id: one.held for one in uploads.submissions if one.held}
    assert held.keys() == made.held.keys()
    assert all(reason.startswith(made.held[student]) for student, reason in held.items())


def test_what_a_submission_does_not_accept_has_a_reason(taken_in, course_assignment):
    """Of the matched files, each is code, weights or report, or refused with its reason."""
    _, made, uploads = taken_in
    for submission in uploads.submissions:
        result = intake(submission, course_assignment)
        reasons = [file.reason for file in result.refused]
        for words in made.refusals.get(submission.student_id, ()):
            assert any(words in reason for reason in reasons), (submission.student_id, words, reasons)
        used = [path for path in (result.code, result.checkpoint, result.report) if path is not None]
        told = sum(int(r.name.split()[0]) if " files (" in r.name else 1 for r in result.refused)
        aside = len(submission.set_aside)
        twice = len({file.name for file in submission.set_aside} & {path.name for path in submission.files})
        assert len(used) + told - aside + twice == len(submission.files)


def test_only_the_lms_says_when_and_who_is_late(taken_in):
    name, made, uploads = taken_in
    assert {one.student_id for one in uploads.submissions if one.delivery.marked_late} == made.late
    known = [one for one in uploads.submissions if one.received_at is not None]
    if name == "gradescope":
        assert len(known) == len(uploads.submissions)
        by_id = {one.student_id: one for one in known}
        assert by_id["400101080"].received_at == datetime(2026, 1, 31, 8, 10, 0, 500000, tzinfo=UTC)
        assert by_id["400101901"].received_at == datetime(2026, 2, 1, 10, tzinfo=TEHRAN)
        one, other = by_id["400101901"], by_id["400101902"]
        assert one.team == other.team == ("400101901", "400101902")
        assert (one.digest, one.files, one.received_at) == (other.digest, other.files, other.received_at)
        assert not any("says that they are" in note for note in one.notes), "a mate's name is on the file"
    else:
        assert known == []
    hints = {one.delivery.hint for one in uploads.submissions if one.files}
    assert hints == {ON_DISK if name == "plain_folder" else IN_ZIP}
    # the clock in a zip has no zone: it is read as the deadline's
    (plain_one,) = (one for one in uploads.submissions if one.student_id == "400101100")
    noon = datetime(2026, 1, 30, 12, tzinfo=UTC if name == "plain_folder" else TEHRAN)
    assert plain_one.delivery.hinted_at == noon


def test_what_was_read_is_what_the_later_attempt_holds(taken_in):
    """The earlier attempts are told to the student, and are not among the files."""
    _, made, uploads = taken_in
    earlier = {who for fate, who, _ in made.files.values() if fate is Fate.SUPERSEDED}
    told = {
        one.student_id
        for one in uploads.submissions
        if any("earlier attempt" in aside.reason for aside in one.set_aside)
    }
    assert told == earlier and len(earlier) >= 4


def test_the_generator_is_deterministic():
    for make in generated.FORMATS.values():
        assert make().entries == make().entries
