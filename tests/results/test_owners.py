"""Whose work it is: what the LMS knows outranks names of files, and of two with one id nobody gets it.

Through the command line. What a submission is worth is told by its text here, so that no worker is needed;
`test_owners_graded.py` does the same with workers.
"""

import contextlib
import csv
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from grader import __version__
from grader.cli import cli
from grader.domain.analyzed_program import Note
from grader.domain.evidence import Attestation, Blame, Evidence, Finding, Status
from grader.domain.submission import Submission
from grader.grading.run import EvidenceBuilder
from grader.intake.unpacking import HERE

GOOD, BAD = "x = 2\n", "x = 3\n"
A, Z = "400101201", "400101202"  # the attacker's number, and the number of the one who is robbed
HEADER = "Identifier,Full name,ID number,Email address,Grade,Maximum Grade,Last modified (grade)\n"
SHEET = (
    HEADER + f"Participant 111,Alpha One,{A},alpha@uni.example,,4,-\n"
    f"Participant 222,Omega Two,{Z},omega@uni.example,,4,-\n"
    "Participant 333,Beta Three,400101203,beta@uni.example,,4,-\n"
)
MAILS = HEADER.replace("ID number,", "") + (
    "Participant 111,Alpha One,alpha@uni.example,,4,-\nParticipant 222,Omega Two,omega@uni.example,,4,-\n"
)


def moodle(person: str, number: int, *names: str, text: str = GOOD) -> dict[str, str]:
    """What a participant handed in, as Moodle packs it."""
    return {f"{person}_{number}_assignsubmission_file/{name}": text for name in names}


FULL_WIDTH = {ord(one): ord(one) + 0xFEE0 for one in "0123456789"}
BOTH = {
    **moodle("Alpha One", 111, f"{Z}_homework.py", text=BAD),
    **moodle("Omega Two", 222, f"{Z}_homework.py"),
    **moodle("Beta Three", 333, "400101203_homework.py"),
}


class Desk:
    """A results folder, and commands about it."""

    def __init__(self, folder: Path, course: Path) -> None:
        self.folder, self.out = folder, folder / "out"
        self._course = course
        self._count = 0

    def say(self, *words: object, code: int = 0) -> str:
        """Run a command; what it prints."""
        result = CliRunner().invoke(
            cli, ["--course", str(self._course), *map(str, words)], prog_name="grader"
        )
        assert result.exit_code == code, result.output
        return result.output

    def grade(self, files: Mapping[str, str | bytes], *more: object, packed: bool = False) -> str:
        """Grade a download with these files."""
        self._count += 1
        root = self.folder / f"download{self._count}"
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        if packed:
            (root.with_suffix(".zip")).write_bytes(zipped(files))
            root = root.with_suffix(".zip")
        return self.say("grade", root, "--assignment", "tiny", "--no-train", "--out", self.out, *more)

    def sheet(self, text: str = SHEET) -> Path:
        """A worksheet of the LMS."""
        path = self.folder / "Grades.csv"
        path.write_text(text, "utf-8")
        return path

    def exported(self, text: str = SHEET, *more: str) -> dict[str, str]:
        """Participant -> the grade in the worksheet."""
        self.told = self.say("export", "moodle-worksheet", self.out, "--into", self.sheet(text), *more)
        rows = csv.DictReader(io.StringIO((self.out / "exports/Grades.csv").read_text("utf-8")))
        return {row["Identifier"].rpartition(" ")[2]: row["Grade"] for row in rows}

    def results(self) -> dict[str, dict[str, Any]]:
        """What results.json says, by id."""
        document = json.loads((self.out / "results.json").read_text("utf-8"))
        return {one["student_id"]: one for one in document["submissions"]}

    def download(self) -> dict[str, Any]:
        """The account of the files in results.json."""
        found: dict[str, Any] = json.loads((self.out / "results.json").read_text("utf-8"))["download"]
        return found

    def totals(self) -> dict[str, float]:
        """What scores.csv says, by id."""
        rows = csv.DictReader(io.StringIO((self.out / "scores.csv").read_text("utf-8")))
        return {row["student_id"]: float(row["total"]) for row in rows}

    def held(self) -> set[str]:
        """The ids of the submissions of which nobody knows whose they are."""
        return {student_id for student_id, one in self.results().items() if one["held"]}

    @property
    def page(self) -> str:
        """The class page."""
        return (self.out / "index.html").read_text("utf-8")


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


@pytest.fixture
def examined() -> list[str]:
    """The ids of the submissions that were examined, in order."""
    return []


@pytest.fixture
def desk(tiny_course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examined: list[str]) -> Desk:
    """A course with a small assignment, in which a text says what it is worth."""

    @contextlib.contextmanager
    def nothing(*_: object, **__: object) -> Iterator[None]:
        yield None

    def examine(
        run: Any, submission: Submission, *, attempt: int, graded_at: Any, watch: Any
    ) -> EvidenceBuilder:
        examined.append(submission.student_id)
        good = any(file.read_text("utf-8") == GOOD for file in submission.files)
        status, blame = (Status.PASSED, None) if good else (Status.FAILED, Blame.STUDENT)
        findings = tuple(
            Finding(s.id, s.component, s.title, status, blame, message="" if good else "It is wrong.")
            for s in run.assignment.checks
        )
        evidence = Evidence(
            submission.student_id,
            "tiny",
            submission.digest,
            graded_at,
            origin=submission.origin,
            notes=tuple(map(Note, submission.notes)),
            findings=findings,
            attestation=Attestation("strict"),
            engine=__version__,
            assignment_digest=run.assignment.digest,
        )
        return EvidenceBuilder(evidence, {})

    monkeypatch.setattr("grader.grading.grade_class.running_parsers", nothing)
    monkeypatch.setattr("grader.grading.examiner.running_hosts", nothing)
    monkeypatch.setattr("grader.grading.grade_class.ParserOpener", lambda _: HERE)
    monkeypatch.setattr("grader.grading.examiner.examined", examine)
    monkeypatch.setenv("GRADER_BY", "ta1")
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)
    return Desk(tmp_path, tiny_course)


# --- what the LMS knows ------------------------------------------------------------------


def test_the_list_of_the_class_says_whose_it_is_whatever_files_are_named(desk: Desk) -> None:
    """D1: both get their own results, and nobody waits."""
    told = desk.grade(BOTH, "--roster", desk.sheet())
    assert desk.totals() == {A: 0, Z: 4, "400101203": 4} and desk.held() == set()
    assert f"note: {A}: Files are named for {Z}, and Moodle says that they are {A}'s." in told
    assert desk.exported() == {"111": "0", "222": "4", "333": "4"}
    note = f"Files are named for {Z}, and Moodle says that they are {A}'s."
    assert note in desk.results()[A]["notes"] and desk.results()[Z]["notes"] == []


def test_a_list_that_lies_in_the_download_says_it_as_well(desk: Desk) -> None:
    desk.grade({**BOTH, "Grades.csv": SHEET})
    assert desk.totals() == {A: 0, Z: 4, "400101203": 4} and desk.held() == set()


def test_what_the_list_said_is_known_without_it(desk: Desk, examined: list[str]) -> None:
    desk.grade(BOTH, "--roster", desk.sheet())
    desk.grade(BOTH)
    assert desk.totals() == {A: 0, Z: 4, "400101203": 4} and desk.held() == set()
    assert len(examined) == 3


def test_a_list_that_is_given_later_ends_the_waiting(desk: Desk, examined: list[str]) -> None:
    desk.grade(BOTH)
    assert desk.held() == {"moodle-111", "moodle-222"}
    desk.grade(BOTH, "--roster", desk.sheet())
    assert desk.totals() == {A: 0, Z: 4, "400101203": 4} and desk.held() == set()
    assert len(examined) == 3, "nothing is examined again"
    assert sorted(path.name for path in (desk.out / "students").iterdir()) == [A, Z, "400101203"]
    assert "The LMS says whose it is." in desk.say("history", desk.out, Z)


def test_the_number_of_the_folder_decides_in_the_worksheet(desk: Desk) -> None:
    """Who handed in nothing gets nothing, though somebody else's files are named so."""
    desk.grade(moodle("Alpha One", 111, f"{Z}_homework.py"))
    assert desk.held() == set()
    assert desk.exported() == {"111": "4", "222": "", "333": ""}
    desk.say("export", "feedback-zip", desk.out)
    with zipfile.ZipFile(desk.out / "exports/feedback.zip") as archive:
        assert archive.namelist() == ["Alpha One_111_assignfeedback_file_report.html"]


def test_an_id_that_the_list_says_is_anothers_is_not_the_uploads(desk: Desk) -> None:
    """Participant 444 is not on the list, and the number in the files is Omega's, who handed in nothing."""
    desk.grade(moodle("New Comer", 444, f"{Z}_homework.py"), "--roster", desk.sheet())
    assert desk.held() == {"moodle-444"}
    assert desk.exported() == {"111": "", "222": "", "333": ""}
    assert "row 3 (Participant 222): nobody has said whose moodle-444 is" in desk.told


def test_a_list_that_knows_one_of_two(desk: Desk) -> None:
    """The one whom it knows does not wait."""
    desk.grade({**BOTH, **moodle("New Comer", 444, f"{Z}_homework.py")}, "--roster", desk.sheet())
    assert desk.held() == {"moodle-444"}
    assert desk.exported() == {"111": "0", "222": "4", "333": "4"}


def test_a_list_without_numbers_of_students_tells_people_apart(desk: Desk) -> None:
    """By addresses; and by Moodle's number alone, where the list has no more."""
    desk.grade(BOTH, "--roster", desk.sheet(MAILS))
    assert desk.totals() == {"alpha": 0, "omega": 4, "400101203": 4} and desk.held() == set()
    assert desk.exported(MAILS) == {"111": "0", "222": "4"}
    numbers = (
        "Identifier,Grade,Maximum Grade,Last modified (grade)\nParticipant 111,,4,-\nParticipant 222,,4,-\n"
    )
    assert desk.exported(numbers) == {"111": "0", "222": "4"}


def test_an_address_of_somebody_else_is_no_id_of_ones_own(desk: Desk) -> None:
    desk.grade(moodle("Alpha One", 111, "omega_homework.py"), "--roster", desk.sheet(MAILS))
    assert desk.totals() == {"alpha": 4}
    assert desk.exported(MAILS) == {"111": "4", "222": ""}


def test_a_list_of_ids_alone_tells_nothing_of_two_uploads(desk: Desk) -> None:
    roster = desk.folder / "class.csv"
    roster.write_text(f"student_id\n{A}\n{Z}\n400101203\n")
    told = desk.grade(BOTH, "--roster", roster)
    assert desk.held() == {"moodle-111", "moodle-222"}
    assert "class.csv: 1 of 3 students handed in nothing." in told, "Alpha; Omega's may be one of the two"
    assert "Not listed in class.csv" not in desk.page


METADATA = (
    f"submission_1:\n  :submitters:\n  - :sid: '{Z}'\n    :name: Omega Two\n  - :sid: '400101203'\n"
    "  :created_at: 2026-01-31 12:00:00 Z\n"
    f"submission_2:\n  :submitters:\n  - :sid: '{A}'\n    :name: Alpha One\n"
    "  :created_at: 2026-01-31 12:00:00 Z\n"
    "submission_3:\n  :submitters: []\n  :created_at: 2026-01-31 12:00:00 Z\n"
)


def test_metadata_outranks_names_and_who_is_unknown_to_it_waits(desk: Desk) -> None:
    """A team's member is not robbed either."""
    for victim in (Z, "400101203"):
        desk.grade(
            {
                "submission_metadata.yml": METADATA,
                f"submission_1/{Z}_homework.py": GOOD,
                f"submission_2/{victim}_homework.py": BAD,
                f"submission_3/{victim}_homework.py": BAD,
            }
        )
        assert desk.totals() == {A: 0, Z: 4, "400101203": 4, "submission_3": 0}
        assert desk.held() == {"submission_3"}
    assert "Omega Two" in desk.page and "Omega" not in (desk.out / "results.json").read_text("utf-8")


@pytest.mark.parametrize("listed", [False, True], ids=["by names", "by the class list"])
def test_the_lms_gives_each_of_a_group_their_own_grade_and_report(desk: Desk, listed: bool) -> None:
    """Moodle knows who of them sent it, and by that number nothing is the other's."""
    groups = desk.folder / "groups.csv"
    groups.write_text(f"group,student_id\nG1,{A}\nG1,{Z}\n")
    more = ("--roster", desk.sheet()) if listed else ()
    desk.grade(moodle("Alpha One", 111, f"{A}_homework.py"), "--groups", groups, *more)
    assert desk.totals() == {A: 4, Z: 4} and desk.held() == set()
    assert desk.exported() == {"111": "4", "222": "4", "333": ""}
    assert f"{Z}: is left out" in desk.say("export", "feedback-zip", desk.out)
    desk.say("export", "feedback-zip", desk.out, "--into", desk.sheet())
    with zipfile.ZipFile(desk.out / "exports/feedback.zip") as archive:
        names = [name.partition("_assignfeedback")[0] for name in archive.namelist()]
        assert names == ["Alpha One_111", "Omega Two_222"]
        reports = [archive.read(name).decode() for name in archive.namelist()]
    assert [[one for one in (A, Z) if one in text] for text in reports] == [[A], [Z]]


# --- where it does not: nobody gets the id ------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("first", ["Alpha One", "Zzz Zzz"])
def test_of_two_uploads_with_one_id_nobody_gets_it(desk: Desk, packed: bool, first: str) -> None:
    """Whoever is first in any order; each is in the queue under the name of its upload."""
    files = {
        **moodle(first, 111, f"{Z}_homework.py", text=BAD),
        **moodle("Omega Two", 222, f"{Z}_homework.py"),
        **moodle("Beta Three", 333, "400101203_homework.py"),
    }
    told = desk.grade(files, packed=packed)
    assert (
        f"held: {first}_111 (moodle-111): Its files carry the id {Z}, and so do those of moodle-222" in told
    )
    assert desk.totals() == {"400101203": 4, "moodle-111": 0, "moodle-222": 4}
    assert desk.held() == {"moodle-111", "moodle-222"}
    page = desk.page
    assert 'id="owner"' in page and f"{first}_111: Its files carry" in page and "Omega Two_222: Its" in page
    assert desk.exported() == {"111": "", "222": "", "333": "4"}
    assert "moodle-222 (Omega Two_222): is left out until `grader owner` says whose it is." in desk.told
    assert "row 3 (Participant 222): nobody has said whose moodle-111 and moodle-222 are" in desk.told


def test_exports_feedback_and_publications_leave_out_just_those(desk: Desk) -> None:
    desk.grade(BOTH)
    for words in (
        ("feedback-zip",),
        ("feedback-zip", "--into", desk.sheet()),
        ("gradescope",),
        ("moodle-gradebook",),
    ):
        told = desk.say("export", words[0], desk.out, *words[1:])
        assert ": 1 " in told and "moodle-111 (Alpha One_111): is left out" in told, told
        assert "moodle-222 (Omega Two_222): is left out" in told
    with zipfile.ZipFile(desk.out / "exports/feedback.zip") as archive:
        assert archive.namelist() == ["Beta Three_333_assignfeedback_file_report.html"]
    told = desk.say("publish", desk.out, "--to", desk.folder / "published")
    assert "the pages of 1 students" in told and "moodle-222 (Omega Two_222): is left out" in told
    assert [path.name for path in (desk.folder / "published/students").iterdir()] == ["400101203"]
    everything = b"".join(path.read_bytes() for path in (desk.out / "exports").rglob("*.*"))
    assert Z.encode() not in everything


ATTACKS: dict[str, dict[str, str | bytes]] = {
    "an id that has to be sanitized": {f"-{Z}_homework.py": BAD, f"{Z}_homework.py": GOOD},
    "underscores around it": {f"_{Z}_homework.py": BAD, f"{Z}_homework.py": GOOD},
    "two folders": {f"a/{Z}_homework.py": BAD, f"b/{Z}_homework.py": GOOD},
    "other letters": {"a/ＡＢ１２_homework.py": BAD, "b/ab12_homework.py": GOOD},
    "capitals": {"a/AB12_homework.py": BAD, "b/ab12_homework.py": GOOD},
    "a sloppy name beside an exact one": {f"a/{Z}_homework.py": BAD, f"b/{Z}-Homework (1).py": GOOD},
    "the number alone": {f"a/{Z}_homework.py": BAD, f"b/My {Z}.py": GOOD},
    "two archives": {
        "a.zip": zipped({f"{Z}_homework.py": BAD}),
        "b.zip": zipped({f"deep/{Z}_homework.py": GOOD}),
    },
    "an archive in an archive": {
        "a.zip": zipped({"more.zip": zipped({f"{Z}_homework.py": BAD})}),
        "b/b.py": "",
        f"b/{Z}_homework.py": GOOD,
    },
    "a folder and a file": {f"a/{Z}_homework.py": BAD, f"{Z}_homework.py": GOOD},
    "two sections": {
        f"one/{Z}_homework.py": BAD,
        "one/400101299_homework.py": GOOD,
        f"two/{Z}_homework.py": GOOD,
        "two/400101298_homework.py": GOOD,
    },
    "a folder that looks like a section": {
        f"m/{Z}_homework.py": BAD,
        "m/400101204_homework.py": BAD,
        f"{Z}/homework.py": GOOD,
        "400101204/homework.py": GOOD,
    },
}


SIDE_BY_SIDE: dict[str, dict[str, str | bytes]] = {
    "full-width digits": {f"{Z}_homework.py": GOOD, f"{Z}_homework.py".translate(FULL_WIDTH): BAD},
    "other capitals": {f"{Z}_homework.py": GOOD, f"{Z}_Homework.py": BAD},
    "other separators": {f"{Z}_homework.py": GOOD, f"{Z}-homework.py": BAD},
    "an archive with a later time": {f"{Z}_homework.py": GOOD, f"{Z}.zip": zipped({f"{Z}_homework.py": BAD})},
    "an exact name beside a folder": {f"{Z}/homework.py": GOOD, f"{Z}_homework.py": BAD},
    "an archive beside a folder": {f"{Z}/homework.py": GOOD, f"{Z}.zip": zipped({f"{Z}_homework.py": BAD})},
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("files", SIDE_BY_SIDE.values(), ids=SIDE_BY_SIDE)
def test_where_the_name_is_all_that_tells_it_must_be_clear(desk: Desk, files: dict[str, str | bytes]) -> None:
    desk.grade({**files, "400101203_homework.py": GOOD})
    assert Z not in desk.results() and desk.held() == desk.results().keys() - {"400101203"}
    assert desk.exported() == {"111": "", "222": "", "333": "4"}


HONEST: dict[str, tuple[dict[str, str | bytes], set[str]]] = {
    "a folder, an archive and a file": (
        {f"{Z}/homework.py": GOOD, f"{Z}.zip": zipped({"notes.txt": "x"}), f"{Z}_more.txt": "x"},
        {Z},
    ),
    "a file and the same in an archive": (
        {f"{Z}_homework.py": GOOD, f"{Z}.zip": zipped({f"{Z}_homework.py": GOOD})},
        {Z},
    ),
    "copies by a browser": ({f"{Z}_homework.py": GOOD, f"{Z}_homework (1).py": GOOD}, {Z}),
    "two folders with the same": ({f"{Z}/homework.py": GOOD, f"{Z} (1)/homework.py": GOOD}, {Z}),
    "attempts in one's folder": ({f"{Z}/homework.py": BAD, f"{Z}/homework (1).py": GOOD}, {Z}),
    "a folder for each kind of file": (
        {f"{kind}/{one}_homework.{kind}": GOOD for kind in ("py", "txt") for one in (A, Z)},
        {A, Z},
    ),
    "a folder with an older version": ({"homework.py": GOOD, "old/1/homework.py": GOOD}, {"download1"}),
    "another's name on one file": (
        {
            f"s/{Z}_homework.py": GOOD,
            f"s/{Z}_notes.py": GOOD,
            "s/400101203.txt": "x",
            "t/400101203_homework.py": GOOD,
        },
        {Z, "400101203"},
    ),
    "names of a folder that are not ids": (
        {f"20260131/{Z}_homework.py": GOOD, f"20260130/{A}_homework.py": GOOD},
        {A, Z},
    ),
    "sections": (
        {f"section {n}/{400101200 + 10 * n + i}_homework.py": GOOD for n in (1, 2) for i in (1, 2)},
        {"400101211", "400101212", "400101221", "400101222"},
    ),
    "the word of the handout": (
        {**moodle("A", 111, "StudentID_homework.py"), **moodle("B", 222, "StudentID_homework.py")},
        {"moodle-111", "moodle-222"},
    ),
    "one date in two names": (
        {
            **moodle("A", 111, "hw 20260131.py"),
            **moodle("B", 222, "lab_20260131.py"),
            **moodle("C", 333, "400101203_homework.py"),
        },
        {"moodle-111", "moodle-222", "400101203"},
    ),
    "files side by side by Moodle": (
        {
            f"Group 1-Alpha One_111_assignsubmission_file_{A}_homework.py": GOOD,
            f"Group 2-Alpha One_111_assignsubmission_file_{A}_notes.txt": "x",
            "Default group_assignsubmission_file_400101203_homework.py": GOOD,
        },
        {A, "400101203"},
    ),
    "Canvas": (
        {f"doe{n}_{1000000 + n}_{98765000 + n}_{400101200 + n}_homework.py": GOOD for n in range(1, 13)},
        {str(400101200 + n) for n in range(1, 13)},
    ),
    "Canvas with numbers of one length": (
        {f"doe{n}_{20000000 + n}_{98765000 + n}_{40010120 + n}_homework.py": GOOD for n in range(1, 9)},
        {str(40010120 + n) for n in range(1, 9)},
    ),
    "anonymous on Canvas": (
        {f"anon_aB{n}_{1000 + n}_homework.py": GOOD for n in (1, 2)},
        {"anon_aB1", "anon_aB2"},
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("files", "ids"), HONEST.values(), ids=HONEST)
def test_honest_work_waits_for_nobody(desk: Desk, files: dict[str, str | bytes], ids: set[str]) -> None:
    desk.grade(files)
    assert desk.held() == set() and desk.results().keys() == ids
    assert all(one["total"] == 4 for one in desk.results().values())


def test_a_list_with_other_numbers_than_files_have_changes_no_id(desk: Desk) -> None:
    """The course asks for one number in names and its LMS knows another: Moodle's own tells who it is."""
    own = {
        **moodle("Alpha One", 111, f"{A}_homework.py"),
        **moodle("Omega Two", 222, f"{Z}_homework.py"),
    }
    other = SHEET.replace(A, "s-17").replace(Z, "s-18")
    desk.grade(own, "--roster", desk.sheet(other))
    assert desk.results().keys() == {A, Z} and desk.held() == set()
    assert desk.exported(other) == {"111": "4", "222": "4", "333": ""}
    desk.out = desk.folder / "out2"
    desk.grade(BOTH, "--roster", desk.sheet(other.replace("400101203", "s-19")))
    assert desk.totals() == {"s-17": 0, "s-18": 4, "400101203": 4} and desk.held() == set()


def test_a_slip_of_the_pen_is_set_right_by_the_list(desk: Desk) -> None:
    files = {**BOTH, **moodle("Alpha One", 111, "40010120_homework.py")}
    del files[f"Alpha One_111_assignsubmission_file/{Z}_homework.py"]
    desk.grade(files, "--roster", desk.sheet())
    assert desk.totals() == {A: 4, Z: 4, "400101203": 4}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("person", ["Team", "Participant", "Default group", "222"])
def test_a_name_in_moodle_does_not_hide_the_number(desk: Desk, person: str) -> None:
    """Omega handed in nothing, and the list of the class knows who did."""
    desk.grade(moodle(person, 111, f"{Z}_homework.py"), "--roster", desk.sheet())
    assert desk.totals() == {A: 4}
    assert desk.exported() == {"111": "4", "222": "", "333": ""}


def test_who_calls_themselves_anonymous_is_nobody_else(desk: Desk) -> None:
    desk.grade(
        {
            f"anon_142_7001_12345_{Z}_homework.py": BAD,
            f"fivedelta_142_12346_{Z}_homework.py": GOOD,
            "birkbob_7002_12347_400101203_homework.py": GOOD,
        }
    )
    totals = desk.totals()
    assert totals.pop(Z) == totals.pop("400101203") == 4 and list(totals.values()) == [0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("files", ATTACKS.values(), ids=ATTACKS)
def test_an_id_that_two_uploads_carry_is_nobodys(desk: Desk, files: dict[str, str | bytes]) -> None:
    told = desk.grade(files)
    listed = desk.results()
    assert not {Z, Z.lower(), "ab12", "AB12", "400101204"} & listed.keys(), listed.keys()
    assert len(desk.held()) >= 2 and told.count("held: ") == len(desk.held())
    assert all(student_id.startswith("upload-") for student_id in desk.held())
    assert desk.exported()["222"] == "" and desk.exported()["111"] == ""


def test_a_folder_with_a_students_number_is_that_students(desk: Desk) -> None:
    """Not of those for whom the files in it are named, and no section."""
    desk.grade(
        {
            f"{A}/{Z}_homework.py": BAD,
            f"{A}/400101203_homework.py": BAD,
            f"{Z}/{Z}_homework.py": GOOD,
            "400101203.zip": zipped({"400101204_homework.py": GOOD}),
        }
    )
    assert desk.totals() == {A: 0, Z: 4, "400101203": 4} and desk.held() == set()


def test_a_real_student_with_a_number_behind_the_id_keeps_it(desk: Desk) -> None:
    desk.grade({**BOTH, **moodle("Eve Ernst", 444, f"{Z}-2_homework.py")})
    assert desk.totals() == {"400101203": 4, "moodle-111": 0, "moodle-222": 4, f"{Z}-2": 4}
    assert desk.held() == {"moodle-111", "moodle-222"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["moodle-222", "Moodle-222", "upload-x-12345678", "submission_2"])
def test_ids_of_our_own_are_nobodys(desk: Desk, name: str) -> None:
    desk.grade({**BOTH, **moodle("Eve Ernst", 444, f"{name}_homework.py", text=BAD)})
    assert desk.totals() == {"400101203": 4, "moodle-111": 0, "moodle-222": 4, "moodle-444": 0}
    assert desk.exported() == {"111": "", "222": "", "333": "4"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["222", "x_222", "Omega_Two_222", "Participant_222", "Participant 222"])
def test_a_number_of_the_lms_in_a_name_is_nobodys(desk: Desk, name: str) -> None:
    desk.grade(moodle("Alpha One", 111, f"{name}_homework.py"))
    assert desk.exported() == {"111": "4", "222": "", "333": ""}
    desk.out = desk.folder / "out2"
    desk.grade({f"a/{name}_homework.py": GOOD})
    assert desk.exported() == {"111": "", "222": "", "333": ""}


def test_a_name_that_somebody_chose_is_nobodys_id(desk: Desk) -> None:
    """Alpha calls herself by Omega's number: her row is hers, and Omega's is Omega's."""
    desk.grade({f"{Z}_homework.py": GOOD, f"{A}_homework.py": BAD})
    assert desk.exported(SHEET.replace("Alpha One", Z)) == {"111": "0", "222": "4", "333": ""}


@pytest.mark.parametrize(
    "prefix",
    ["sixepsilon_42_9999999_7001", "sixepsilon_42_7001", "fivedelta_42_9999999_7001", "fivedelta_42_7001"],
)
def test_a_name_in_canvas_does_not_make_anothers_upload(desk: Desk, prefix: str) -> None:
    """`Six, Epsilon__42__9999999`: the first pair of numbers is not Canvas's own."""
    desk.grade(
        {
            f"{prefix}_100045_{Z}_homework.py": BAD,
            f"{prefix}_100046_homework.py": BAD,
            f"fivedelta_42_100012_{Z}_homework.py": GOOD,
            "birkbob_7002_100013_400101203_homework.py": GOOD,
            "coal_7003_100014_2026_10_31_400101204.py": GOOD,
        }
    )
    results = desk.results()
    assert results["400101203"]["total"] == 4
    assert all(one["total"] == 4 for student_id, one in results.items() if student_id in (Z, "canvas-42"))
    assert sum(one["total"] == 0 for one in results.values()) == 1, "his files stay together, and apart"
    book = (
        "Student,ID,SIS User ID,SIS Login ID,Section,Doubling (7)\n    Points Possible,,,,,4\n"
        f'"Five, Delta",42,{Z},delta,A,\n'
        f'"Six, Epsilon",7001,{A},epsilon,A,\n"Three, Beta",7002,400101203,beta,A,\n'
    )
    path = desk.folder / "canvas.csv"
    path.write_text(book)
    desk.say("export", "canvas", desk.out, "--into", path)
    rows = csv.DictReader(io.StringIO((desk.out / "exports/canvas.csv").read_text("utf-8")))
    grades = {row["ID"]: row["Doubling (7)"] for row in rows}
    assert grades["7002"] == "4" and grades["42"] in ("4", "") and grades["7001"] in ("0", "")


# --- later ------------------------------------------------------------------


def test_a_students_own_later_attempt_is_no_second_person(desk: Desk) -> None:
    first = moodle("Omega Two", 222, f"{Z}_homework.py", text=BAD)
    desk.grade(first)
    desk.grade({**moodle("Omega Two", 222, f"{Z}_homework.py", f"{Z}_homework (1).py")})
    assert desk.totals() == {Z: 4} and desk.held() == set()
    desk.grade(moodle("Omega Two", 222, "400101205_homework.py"))
    assert desk.totals() == {"400101205": 4}, "she corrects the number in her files"
    assert "The names of its files say whose it is." in desk.say("history", desk.out, "400101205")
    desk.out = desk.folder / "flat"
    desk.grade({f"{Z}_homework.py": BAD})
    desk.grade({f"{Z}_homework.py": GOOD, f"{Z}.txt": "more"})
    assert desk.totals() == {Z: 4} and desk.held() == set()


def test_a_later_upload_by_somebody_else_does_not_take_an_id(desk: Desk) -> None:
    """A second download into the same results."""
    desk.grade(moodle("Omega Two", 222, f"{Z}_homework.py"))
    assert desk.totals() == {Z: 4}
    told = desk.grade(moodle("Alpha One", 111, f"{Z}_homework.py", text=BAD))
    assert "held: Alpha One_111 (moodle-111)" in told
    assert desk.totals() == {"moodle-111": 0, "moodle-222": 4}
    assert desk.held() == {"moodle-111", "moodle-222"}
    assert desk.exported() == {"111": "", "222": "", "333": ""}
    assert not (desk.out / "students" / Z).exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("how", ["folder", "file", "flat", "another section"])
def test_whose_it_is_by_the_lms_is_not_asked_again(desk: Desk, how: str) -> None:
    desk.grade(moodle("Omega Two", 222, f"{Z}_homework.py"), "--roster", desk.sheet())
    name = f"{Z}_homework.py"
    later = {
        "folder": f"late/{name}",
        "file": name,
        "flat": name,
        "another section": f"Alpha_999_assignsubmission_file/{name}",
    }
    if how == "file":
        path = desk.folder / name
        path.write_text(BAD)
        desk.say("grade", path, "--assignment", "tiny", "--no-train", "--out", desk.out)
    else:
        desk.grade({later[how]: BAD, "400101203_homework.py": GOOD})
    assert desk.totals()[Z] == 4 and len(desk.held()) == 1
    assert desk.exported()["222"] == "4"


@pytest.mark.parametrize("copied", [GOOD, BAD], ids=["copied", "the template"])
@pytest.mark.parametrize("mailed", [False, True], ids=["folders", "one by an LMS"])
def test_the_same_files_under_another_id_are_somebody_elses(desk: Desk, copied: str, mailed: bool) -> None:
    """Sections are downloaded one after the other; hers stays, with her mark, and nothing of it is his."""
    first = moodle("Alpha One", 111, "homework.py", text=copied) if mailed else {}
    desk.grade({f"{Z}/homework.py": copied, "400101203/homework.py": "x = 5\n", **first})
    desk.say("marks", "set", desk.out, Z, "model", "3.5", "--why", "Fine.", "--allow-lower")
    before = desk.totals()
    desk.grade({f"{A}/homework.py": copied, "400101209/homework.py": "x = 6\n"})
    assert desk.totals() == {**before, A: 4 if copied == GOOD else 0, "400101209": 0}
    assert desk.held() == set() and "owner" not in desk.say("history", desk.out, Z)


def test_what_was_packed_anew_is_the_same_upload(desk: Desk, examined: list[str]) -> None:
    desk.grade({"delta/x.txt": "", f"delta/{Z}_homework.py": GOOD, "b/400101203_homework.py": GOOD})
    desk.grade({"delta m/x.txt": "", f"delta m/{Z}_homework.py": GOOD, "b/400101203_homework.py": GOOD})
    assert desk.totals() == {Z: 4, "400101203": 4} and desk.held() == set() and len(examined) == 2


def test_the_same_place_in_another_download_is_another_upload(desk: Desk) -> None:
    desk.grade({"1/400101201_homework.py": GOOD, "2/400101202_homework.py": GOOD})
    desk.grade({"1/400101203_homework.py": BAD, "2/400101204_homework.py": BAD})
    assert desk.totals() == {A: 4, Z: 4, "400101203": 0, "400101204": 0} and desk.held() == set()


# --- a person says whose it is ------------------------------------------------------------------


def test_a_person_says_whose_each_is(desk: Desk, examined: list[str]) -> None:
    desk.grade(BOTH)
    told = desk.say("owner", desk.out, "moodle-222", Z, "--why", "I asked her.", "--by", "head")
    assert told.endswith(f"Omega Two_222 is {Z}'s. 1 total changed.\n")
    assert desk.totals() == {Z: 4, "400101203": 4, "moodle-111": 0} and desk.held() == {"moodle-111"}
    assert desk.results()[Z]["owner"] == "head: I asked her."
    assert desk.exported() == {"111": "", "222": "4", "333": "4"}
    desk.say("owner", desk.out, "alpha one_111", A, "--why", "A slip of the pen.")
    assert desk.exported() == {"111": "0", "222": "4", "333": "4"} and desk.held() == set()
    assert "it is 400101202's. I asked her" in desk.say("history", desk.out, Z)
    assert 'id="owner"' not in desk.page
    assert sorted(path.name for path in (desk.out / "students").iterdir()) == [A, Z, "400101203"]
    assert {one["student_id"] for one in desk.download()["files"]} == {A, Z, "400101203"}
    before = desk.totals()
    desk.grade(BOTH)
    assert desk.totals() == before and desk.held() == set() and len(examined) == 3
    changed = {**BOTH, **moodle("Omega Two", 222, f"{Z}_homework.py", "notes.txt")}
    desk.grade(changed)
    assert desk.totals() == before and examined[3:] == [Z], "a later attempt is hers as well"


def test_what_a_person_said_is_changed_and_taken_back(desk: Desk) -> None:
    desk.grade(BOTH)
    desk.say("owner", desk.out, "moodle-222", A, "--why", "x")
    assert desk.totals()[A] == 4
    desk.say("owner", desk.out, A, Z, "--why", "No, hers.")
    assert desk.totals() == {Z: 4, "400101203": 4, "moodle-111": 0}
    told = desk.say("owner", desk.out, Z, "none", "--why", "Not sure.")
    assert "nobody knows whose it is. It is listed as moodle-222." in told
    assert desk.held() == {"moodle-111", "moodle-222"} and Z not in desk.totals()
    desk.grade(BOTH, "--roster", desk.sheet())
    assert desk.held() == {"moodle-222"}, "a person's word outweighs the list"
    assert desk.exported() == {"111": "0", "222": "", "333": "4"}
    history = desk.say("history", desk.out, "moodle-222")
    assert history.count("owner  ta1") == 4 and "it is not known whose it is" in history
    assert desk.say("owner", desk.out, "moodle-222", Z, "--why", "y").startswith(Z)
    assert desk.say("owner", desk.out, Z, Z, "--why", "y") == "So it is already. 0 totals changed.\n"


def test_marks_follow_a_submission_to_its_owner(desk: Desk) -> None:
    desk.grade(BOTH)
    desk.say("marks", "set", desk.out, "moodle-222", "model", "3", "--why", "Copied.", "--allow-lower")
    desk.say("owner", desk.out, "moodle-222", Z, "--why", "x")
    assert desk.totals()[Z] == 3
    sheet = desk.folder / "marks.csv"
    sheet.write_text("student_id,item,points,comment\nmoodle-222,model,3.5,Seen.\n")
    desk.say("marks", "import", desk.out, sheet)
    assert desk.totals()[Z] == 3.5, "a sheet that was written before still counts"


def test_a_second_upload_of_a_student_takes_the_firsts_place(desk: Desk) -> None:
    """By mail, and worse: that is said, and only done when it is meant."""
    desk.grade(moodle("Omega Two", 222, f"{Z}_homework.py"), "--roster", desk.sheet())
    mail = {f"mail/{Z}_homework.py": BAD, "mail/x.txt": "", "400101203_homework.py": GOOD}
    desk.grade(mail)
    (late,) = desk.held()
    words = ("owner", desk.out, late, Z, "--why", "By mail.")
    # what she was told is hers, whichever of the two counts
    desk.say("publish", desk.out, "--to", desk.out.parent / "published", "--partial")
    assert f"{Z} has a submission already: Omega Two_222 (moodle-222)." in desk.say(*words, code=2)
    assert "would fall" in desk.say(*words, "--instead", code=2) and desk.totals()[Z] == 4
    told = desk.say(*words, "--instead", "--allow-lower")
    assert f"Omega Two_222, which was {Z}'s, no longer counts." in told
    assert desk.totals() == {Z: 0, "400101203": 4} and desk.held() == set()
    desk.grade({**moodle("Omega Two", 222, f"{Z}_homework.py"), **mail})
    assert desk.totals() == {Z: 0, "400101203": 4} and desk.held() == set()
    desk.say("owner", desk.out, "moodle-222", Z, "--why", "The first counts.", "--instead")
    assert desk.totals()[Z] == 4


def test_whose_place_is_taken_by_a_persons_word_waits(desk: Desk) -> None:
    """Only the names of the files said that it was hers."""
    desk.grade(moodle("Alpha One", 111, f"{Z}_homework.py"))
    desk.grade(moodle("Omega Two", 222, "homework.py"))
    told = desk.say("owner", desk.out, "moodle-222", Z, "--why", "It is.", "--instead")
    assert f"Alpha One_111, which was {Z}'s, is listed as moodle-111, and nobody knows whose it is." in told
    assert desk.totals() == {Z: 4, "moodle-111": 4} and desk.held() == {"moodle-111"}


def test_who_is_meant_must_be_clear(desk: Desk) -> None:
    desk.grade({"submission_metadata.yml": METADATA, "submission_1/homework.py": GOOD})

    def refused(upload: str, student_id: str) -> str:
        return desk.say("owner", desk.out, upload, student_id, "--why", "z", code=2)

    assert f"There are 2 uploads 'submission_1': {Z}, 400101203." in refused("submission_1", A)
    assert "The gradebook has no upload 'nobody'" in refused("nobody", A)
    for wrong in ("a b", "moodle-7", "../x", "", f"-{A}x/"):
        told = desk.say("owner", desk.out, "--why", "z", "--", Z, wrong, code=2)
        assert f"'{wrong}' cannot be a student's id." in told
    assert "--why is empty" in desk.say("owner", desk.out, "x", A, "--why", " ", code=2)


# --- names ------------------------------------------------------------------


def test_names_are_for_staff(desk: Desk) -> None:
    """On the terminal, the class page, in its queue and in exports; in sheets on request; nowhere else."""
    told = desk.grade({**BOTH, **moodle("Gamma Four", 444, "homework.py")})
    names = ("Alpha One", "Omega Two", "Beta Three", "Gamma Four")
    assert all(name in told and name in desk.page for name in names)
    desk.say("publish", desk.out, "--to", desk.folder / "published", "--partial")
    pages = b"".join(path.read_bytes() for path in (desk.folder / "published/students").rglob("*.html"))
    own = b"".join(path.read_bytes() for path in (desk.out / "students").rglob("*.html"))
    files = b"".join((desk.out / name).read_bytes() for name in ("results.json", "scores.csv"))
    for name in names:
        for part in (name, name.replace(" ", "_"), name.split()[0]):
            assert part.encode() not in pages + own + files, part


# --- attempts that only names tell of ---------------------------------------------------------------------

RIVALS = {
    "a mark of a copy": (f"{Z}_homework.py", f"{Z}_homework (1).py"),
    "a version": (f"{Z}_homework.py", f"{Z}_homework_v2.py"),
    "folders": (f"{Z}/homework.py", f"{Z} (1)/homework.py"),
    "a folder in other digits": (f"{Z}/homework.py", f"{Z.translate(FULL_WIDTH)} resubmission/homework.py"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("names", RIVALS.values(), ids=RIVALS)
def test_what_may_be_ones_attempts_or_anothers_work_takes_nobodys_place(
    desk: Desk, names: tuple[str, str]
) -> None:
    """A name and a time can be chosen by anybody: a person is asked, and the answer holds for these files."""
    mine, later = names
    desk.grade({mine: GOOD, "400101203_homework.py": GOOD})
    assert desk.held() == set() and Z in desk.results()
    both = {mine: GOOD, later: BAD, "400101203_homework.py": GOOD}
    desk.grade(both)
    (held,) = desk.held()
    told = desk.results()[held]["held"]
    assert "may be one student's attempts or several people's" in told
    assert "400101203" not in desk.held() and held in desk.page
    said = desk.say("owner", desk.out, held, Z, "--why", "He says so.", "--instead")
    assert desk.held() == set(), said
    desk.grade(both)
    assert desk.held() == set() and Z in desk.results()
    desk.grade({**both, later: "x = 5\n"})
    assert len(desk.held()) == 1
