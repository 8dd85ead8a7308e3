"""A class of 120 uploads in the format of each LMS, with everything that goes wrong in real ones.

Deterministic, tiny, and without names of people: a student is a number. What must become of every single file
is written beside the file, so that the account of the download can be compared with it.
"""

import io
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from grader.domain.submission import Fate

SIZE = 120
EARLY, LATER = (2026, 1, 30, 12, 0, 0), (2026, 1, 31, 18, 0, 0)
CODE, PDF = b"x = 1\n", b"%PDF-1.7\n"
M, S, R = Fate.MATCHED, Fate.SUPERSEDED, Fate.REFUSED


@dataclass(frozen=True)
class Own:
    """A file by the student's own name for it.

    Attributes:
        fate: What must become of it.
        words: What the reason must say; empty: nothing needs to be said.
        accepted: What the reason must say for which the submission does not accept it; empty: it does.
        nameless: The name does not say whose it is: side by side with others' files it is nobody's.
        never: Side by side with others' files, the words of the refusal, whosever it is.
        inside: What must become of the entries of an archive.
    """

    name: str
    content: bytes = CODE
    fate: Fate = M
    words: str = ""
    accepted: str = ""
    nameless: bool = False
    never: str = ""
    modified: tuple[int, int, int, int, int, int] = EARLY
    inside: tuple["Own", ...] = ()


@dataclass
class Generated:
    """A class's upload, and what must become of it.

    Attributes:
        entries: Path -> (content, time of modification).
        files: Path -> (fate, student id or None, words of the reason).
        refusals: Student id -> the words for which files of the submission are not accepted.
        kinds: Student id -> the oddity's name.
        late: Ids of the students whom the LMS marks as late.
        notes: Words that must be in the notes about the whole.
        held: Id of a submission of which nobody knows whose it is -> how its reason begins.
    """

    entries: dict[str, tuple[bytes, tuple[int, ...]]] = field(default_factory=dict)
    files: dict[str, tuple[Fate, str | None, str]] = field(default_factory=dict)
    refusals: dict[str, list[str]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    held: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, own: Own, student_id: str | None) -> None:
        """A file at `path` of the download, of which is expected what `own` says."""
        self.entries[path] = (own.content, own.modified)
        self.expect(path, own, student_id)
        for inner in own.inside:
            self.expect(f"{path}/{inner.name}", inner, student_id)

    def add_owner_edits(self, before: str, after: str) -> None:
        """What was one student's is expected under another id."""
        self.files = {
            path: (fate, after if who == before else who, words)
            for path, (fate, who, words) in self.files.items()
        }
        self.kinds[after] = self.kinds.pop(before)

    def expect(self, path: str, own: Own, student_id: str | None) -> None:
        """Only what is expected: the file is inside of an archive, or is there already."""
        self.files[path] = (own.fate, student_id, own.words)
        if own.accepted and student_id is not None and own.fate is M:
            self.refusals.setdefault(student_id, []).append(own.accepted)


def zipped(files: Mapping[str, tuple[bytes, tuple[int, ...]]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of path -> (content, time of modification)."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for path, (content, modified) in files.items():
            entry = zipfile.ZipInfo(path, modified)  # type: ignore[arg-type]
            entry.compress_type = method
            archive.writestr(entry, content)
    return stream.getvalue()


WEIGHTS = zipped({"a/data.pkl": (b"weights", EARLY)}, zipfile.ZIP_STORED)


def packed(name: str, *inside: Own, fate: Fate = M, words: str = "was unpacked") -> Own:
    """An archive of a student's own."""
    content = zipped({one.name: (one.content, one.modified) for one in inside})
    return Own(name, content, fate, words, inside=tuple(_flat(inside, "")))


def _flat(inside: tuple[Own, ...], before: str) -> Iterator[Own]:
    for one in inside:
        yield replace(one, name=before + one.name, inside=())
        yield from _flat(one.inside, f"{before}{one.name}/")


def checkpoint(stem: str) -> Own:
    """The weights."""
    return Own(f"{stem}.pth", WEIGHTS)


def report(stem: str) -> Own:
    """The report."""
    return Own(f"{stem}.pdf", PDF)


def ordinary(stem: str, *others: Own) -> list[Own]:
    """The weights and the report under the asked names, and other files."""
    return [checkpoint(stem), report(stem), *others]


TAKEN = "was taken as"
EARLIER = "is an earlier attempt"
FULL_WIDTH = {ord(one): ord(one) + 0xFEE0 for one in map(chr, range(0x21, 0x7F))}
PERSIAN = {ord(str(digit)): 0x06F0 + digit for digit in range(10)}

# name of the oddity -> the files of a student, by the student's id and the asked stem
KINDS: dict[str, Callable[[str, str], list[Own]]] = {
    "a notebook": lambda i, s: ordinary(s, Own(f"{s}.ipynb")),
    "small letters": lambda i, s: ordinary(s, Own(f"{i}_lab8_homework.py", words=TAKEN)),
    "a browser's copy": lambda i, s: ordinary(s, Own(f"{s} (1).py", words=TAKEN)),
    "the weights by the id alone": lambda i, s: [
        Own(f"{s}.py"),
        report(s),
        Own(f"{i}.pth", WEIGHTS, words=TAKEN),
    ],
    "a suffix in capitals": lambda i, s: ordinary(s, Own(f"{s}.IPYNB", words=TAKEN)),
    "full-width letters": lambda i, s: ordinary(s, Own(f"{s}.py".translate(FULL_WIDTH), words=TAKEN)),
    "Persian digits": lambda i, s: ordinary(s, Own(f"{s}.py".translate(PERSIAN), words=TAKEN)),
    "an invisible mark": lambda i, s: ordinary(s, Own(f"\u200f{s}.py", words=TAKEN)),
    "spaces for underscores": lambda i, s: ordinary(s, Own(f"{i} Lab8 Homework.py", words=TAKEN)),
    "hyphens for underscores": lambda i, s: ordinary(s, Own(f"{i}-Lab8-Homework.py", words=TAKEN)),
    "the id behind": lambda i, s: ordinary(s, Own(f"Homework_{i}.py", words=TAKEN)),
    "a later copy": lambda i, s: ordinary(
        s,
        Own(f"{s}.py", fate=S, words=EARLIER),
        Own(f"{s} (1).py", words=TAKEN, modified=LATER),
    ),
    "a second version": lambda i, s: ordinary(
        s, Own(f"{s}.py", fate=S, words=EARLIER), Own(f"{s}_v2.py", words=TAKEN)
    ),
    "a copy that is older": lambda i, s: ordinary(
        s, Own(f"{s}.py", modified=LATER), Own(f"{s} (1).py", fate=S, words="modification time")
    ),
    "two forms of the code": lambda i, s: ordinary(
        s, Own(f"{s}.py"), Own(f"{s}.ipynb", accepted="fits the asked name better")
    ),
    "a document": lambda i, s: ordinary(s, Own(f"{s}.py"), Own(f"{s}.docx", accepted="was not asked for")),
    "a hidden suffix": lambda i, s: ordinary(s, Own(f"{s}.py.txt", accepted="was not asked for")),
    "empty code": lambda i, s: ordinary(s, Own(f"{s}.py", b"", accepted="is empty")),
    "a report that is none": lambda i, s: [
        Own(f"{s}.py"),
        checkpoint(s),
        Own(f"{s}.pdf", b"PK\x03\x04", accepted="is not a PDF"),
    ],
    "weights that are none": lambda i, s: [
        Own(f"{s}.py"),
        report(s),
        Own(f"{s}.pth", b"text", accepted="is a text file"),
    ],
    "a configuration file": lambda i, s: ordinary(
        s,
        Own(f"{s}.py"),
        Own("conftest.py", accepted="configuration file", never="configuration file"),
    ),
    "a library's name": lambda i, s: ordinary(
        s,
        Own(f"{s}.py"),
        Own("torch.py", accepted="name of a library", never="name of a library"),
    ),
    "no id in any name": lambda i, s: [
        Own("homework.py", words=TAKEN, nameless=True),
        Own("weights.pth", WEIGHTS, words=TAKEN, nameless=True),
    ],
    "one name without the id": lambda i, s: ordinary(s, Own("Lab8_Homework.py", words=TAKEN, nameless=True)),
    "no report": lambda i, s: [Own(f"{s}.py"), checkpoint(s)],
    "a report alone": lambda i, s: [report(s)],
    "a zip of all": lambda i, s: [packed(f"{s}.zip", *ordinary(s, Own(f"{s}.py")))],
    "a zip in a zip": lambda i, s: [
        packed(f"{i}.zip", report(s), packed("code.zip", Own(f"{s}.py"), checkpoint(s)))
    ],
    "a zip with a data set": lambda i, s: [
        packed(
            f"{i}.zip",
            *ordinary(s, Own(f"{s}.py")),
            *(Own(f"data/{n}.jpg", accepted="files like" if n == 0 else "") for n in range(30)),
        )
    ],
    "a zip from a Mac": lambda i, s: [
        packed(
            f"{i}.zip",
            *ordinary(s, Own(f"{s}.py")),
            Own(f"__MACOSX/._{s}.py", fate=R, words="made by the computer"),
        )
    ],
    "a zip that points outside": lambda i, s: [
        packed(
            f"{i}.zip",
            *ordinary(s, Own(f"{s}.py")),
            Own("../../evil.py", fate=R, words="outside the archive"),
        )
    ],
    "a damaged zip": lambda i, s: [
        Own(f"{i}.zip", b"PK\x03\x04 and then nothing", fate=R, words="cannot be opened as a zip")
    ],
    "an empty zip": lambda i, s: [report(s), packed(f"{i}.zip", fate=R, words="holds no file")],
    "another packer": lambda i, s: ordinary(
        s, Own(f"{i}.rar", b"Rar!", accepted="not an archive that can be")
    ),
    "two zips, the later counts": lambda i, s: [
        packed(f"{i}.zip", Own(f"{s}.py"), fate=S, words=EARLIER),
        replace(packed(f"{i} (1).zip", *ordinary(s, Own(f"{s}.py"))), modified=LATER),
    ],
}
_KIND_LIST = list(KINDS.items())


def student(number: int) -> tuple[str, str, str, list[Own]]:
    """(Id, stem, name of the oddity, files) of one student of the class."""
    student_id = str(400_101_000 + number)
    stem = f"{student_id}_Lab8_Homework"
    if number < len(_KIND_LIST):
        kind, files = _KIND_LIST[number]
        # an earlier archive is not opened
        made = [replace(one, inside=()) if one.fate is S else one for one in files(student_id, stem)]
        return student_id, stem, kind, made
    return student_id, stem, "nothing odd", ordinary(stem, Own(f"{stem}.py"))


# (the student's number, the own name, the running number of the upload) -> the path
Layout = Callable[[int, str, int], str]


def _class(made: Generated, path: Layout, label: Callable[[int], str], *, alone: bool = False) -> Generated:
    """All students' files, laid out.

    Args:
        label: The id of a student in whose files there is none.
        alone: Files lie side by side, and nothing but their names says whose they are.
    """
    upload = 10_000
    for number in range(SIZE):
        student_id, _, kind, files = student(number)
        listed = label(number) if kind == "no id in any name" else student_id
        made.kinds[listed] = kind
        for own in files:
            upload += 1
            if alone and own.nameless:
                own = replace(own, fate=R, words="does not say whose it is")
            if alone and own.never:
                own = replace(own, fate=R, words=own.never)
            nobody = alone and (own.nameless or own.never)
            made.add(path(number, own.name, upload), own, None if nobody else listed)
        if alone and kind == "no id in any name":
            del made.kinds[listed]
    return made


def _litter(made: Generated, before: str = "") -> Generated:
    """What belongs to nobody."""
    clutter = Own("", fate=R, words="made by the computer")
    made.add(f"{before}.DS_Store", clutter, None)
    made.add(f"{before}Thumbs.db", clutter, None)
    made.add(f"{before}notes.txt", Own("", fate=R, words="does not say whose it is"), None)
    return made


def moodle_flat() -> Generated:
    """Files side by side, each with the name and number of the participant before it."""
    made = _class(
        Generated(),
        lambda n, name, _: f"Student {n}_{5000 + n}_assignsubmission_file_{name}",
        lambda n: f"moodle-{5000 + n}",
    )
    text = Own("", accepted="was not asked for")
    made.add("Student 50_5050_assignsubmission_onlinetext_onlinetext.html", text, "400101050")
    made.notes.append("carry no student id")
    return _litter(made)


def moodle_folders() -> Generated:
    """A folder per student; the text that was typed in is in a folder of its own."""
    made = _class(
        Generated(),
        lambda n, name, _: f"Student {n}_{5000 + n}_assignsubmission_file{'_' * (n % 2)}/{name}",
        lambda n: f"moodle-{5000 + n}",
    )
    text = Own("", accepted="was not asked for")
    made.add("Student 50_5050_assignsubmission_onlinetext/onlinetext.html", text, "400101050")
    # of two people who give one id nobody gets it, and a person is asked
    made.add("Student 700_5700_assignsubmission_file/400101060_Lab8_Homework.py", Own(""), "moodle-5700")
    made.kinds["moodle-5700"] = "two people with one id"
    made.add_owner_edits("400101060", "moodle-5060")
    made.held = {
        "moodle-5060": "Its files carry the id 400101060, and so do those of moodle-5700.",
        "moodle-5700": "Its files carry the id 400101060, and so do those of moodle-5060.",
    }
    made.notes.append("carry no student id")
    return _litter(made)


def moodle_blind() -> Generated:
    """Blind marking: participants are numbers."""
    return _litter(
        _class(
            Generated(),
            lambda n, name, _: f"Participant_{5000 + n}_assignsubmission_file_{name}",
            lambda n: f"moodle-{5000 + n}",
        )
    )


def moodle_groups() -> Generated:
    """A group's name before that of the person, not always the same one, and a team without a number."""
    unnamed = list(KINDS).index("no id in any name")
    made = _class(
        Generated(),
        lambda n, name, u: (
            f"Group {1 if n == unnamed else u % 3}-Student {n}_{5000 + n}_assignsubmission_file_{name}"
        ),
        lambda n: f"moodle-{5000 + n}",
    )
    made.add("Default group_assignsubmission_file_400101900_Lab8_Homework.py", Own(""), "400101900")
    made.kinds["400101900"] = "a team without a number"
    return _litter(made)


def canvas() -> Generated:
    """Names without spaces, late marks, numbers of users and uploads, and resubmission suffixes."""
    made = _class(
        Generated(),
        lambda n, name, u: f"student{n}{'_LATE' * (n % 10 == 0)}_{7000 + n}_{u}_{name}",
        lambda n: f"canvas-{7000 + n}",
    )
    made.late = {i for i in made.kinds if i.startswith("400101") and int(i) % 10 == 0}
    # the later upload counts, whatever the marks and times say
    stem = "400101070_Lab8_Homework"
    made.expect(_of(made, f"{stem}.py"), Own("", fate=S, words="Canvas received later"), "400101070")
    made.add(f"student70_LATE_7070_99001_{stem}-1.py", Own("", words=TAKEN), "400101070")
    made.kinds["400101070"] = "uploaded again"
    made.add("student71_7071_text.html", Own("", accepted="was not asked for"), "400101071")
    made.kinds["400101071"] = "a text typed in"
    # by the number of the upload, not by the time in the zip
    made.files[_of(made, "400101013_Lab8_Homework.py")] = (S, "400101013", "Canvas received later")
    made.files[_of(made, "400101013_Lab8_Homework (1).py")] = (M, "400101013", TAKEN)
    return _litter(made)


def canvas_anonymous() -> Generated:
    """Anonymous grading: a short id of letters and digits instead of name and number."""
    made = _class(
        Generated(),
        lambda n, name, u: f"{'LATE_' * (n % 10 == 0)}anon_A{n:03}z_{u}_{name}",
        lambda n: f"anon_A{n:03}z",
    )
    made.late = {i for i in made.kinds if i.startswith("400101") and int(i) % 10 == 0}
    made.files[_of(made, "400101013_Lab8_Homework.py")] = (S, "400101013", "Canvas received later")
    made.files[_of(made, "400101013_Lab8_Homework (1).py")] = (M, "400101013", TAKEN)
    return _litter(made)


def gradescope() -> Generated:
    """A folder per submission, and the list of who handed in what and when."""
    root = "assignment_77_export"
    made = _class(
        Generated(),
        lambda n, name, _: f"{root}/submission_{90_000_000 + n}/{name}",
        lambda n: str(400_101_000 + n),  # the LMS knows
    )
    listed: dict[str, tuple[list[str], str, int]] = {
        f"submission_{90_000_000 + n}": ([str(400_101_000 + n)], f"2026-01-31 {n % 24:02}:10:00.5 Z", n % 3)
        for n in range(SIZE)
    }
    # an earlier submission of the same student, a pair, one that is not there, one without an id
    for folder, students, moment in (
        ("submission_80000001", ["400101080"], "2026-01-20 08:00:00 Z"),
        ("submission_80000002", ["400101901", "400101902"], "'2026-02-01T10:00:00+03:30'"),
        ("submission_80000003", ["400101903"], "2026-01-20 08:00:00 Z"),
        ("submission_80000004", [], "2026-01-20 08:00:00"),
    ):
        listed[folder] = (students, moment, 0)
    stem = "400101080_Lab8_Homework"
    old = Own("", fate=S, words="Gradescope received later")
    made.add(f"{root}/submission_80000001/{stem}.py", old, "400101080")
    made.add(f"{root}/submission_80000001/{stem}.pdf", old, "400101080")
    made.kinds["400101080"] = "handed in twice"
    made.add(f"{root}/submission_80000002/400101902_Lab8_Homework.py", Own(""), "400101901")
    made.kinds["400101901"] = made.kinds["400101902"] = "a pair"
    made.add(f"{root}/submission_80000004/homework.py", Own("", words=TAKEN), "submission_80000004")
    made.kinds["submission_80000004"] = "unknown to the LMS"
    made.notes += [
        "400101901: handed in together with 400101902",
        "submission_80000003 of 400101903 is listed by Gradescope but is not in the export",
        "submission_80000004: Gradescope knows no student id",
    ]
    text = "".join(
        f"{folder}:\n  :submitters:{'' if students else ' []'}\n"
        + "".join(
            f"  - :name: Student {one}\n    :sid: '{one}'\n    :email: {one}@example.org\n"
            for one in students
        )
        + f"  :created_at: {moment}\n  :score: 0.0\n"
        + f"  :history:{' []' if not earlier else ''}\n"
        + "".join("  - :created_at: 2026-01-19 08:00:00 Z\n    :score: 0.0\n" for _ in range(earlier))
        for folder, (students, moment, earlier) in listed.items()
    )
    read = Own("", text.encode(), words="was read")
    made.add(f"{root}/submission_metadata.yml", read, None)
    return _litter(made, f"{root}/")


def plain_folder() -> Generated:
    """Files side by side with nothing but their names, and some students in folders."""
    made = _class(Generated(), lambda n, name, _: name, lambda n: "", alone=True)
    return _litter(_apart(made, ""))


def plain_zip() -> Generated:
    """A zip of a folder of the same."""
    made = _class(Generated(), lambda n, name, _: f"class/{name}", lambda n: "", alone=True)
    outside = Own("", fate=R, words="outside the archive")
    made.add("../../etc/evil.py", outside, None)
    return _litter(_apart(made, "class/"), "class/")


def _apart(made: Generated, before: str) -> Generated:
    """Students in folders; two attempts of one in two folders, and of one in two archives that differ."""
    nobody = "upload-400101034_1_zip_and_1_more-3c9953c8"
    made.add_owner_edits("400101034", nobody)
    made.held[nobody] = "“400101034 (1).zip” and 400101034.zip may be one student's attempts"
    for number in (910, 911):
        stem = f"400101{number}_Lab8_Homework"
        made.add(f"{before}400101{number}/{stem}.py", Own(""), f"400101{number}")
        made.add(f"{before}400101{number}/deep/er/{stem}.pdf", Own("", PDF), f"400101{number}")
        made.kinds[f"400101{number}"] = "a folder of one's own"
    old = "400101912_Lab8_Homework"
    made.add(f"{before}400101912/{old}.py", Own("", fate=S, words=EARLIER), "400101912")
    made.add(f"{before}400101912 (1)/{old}.py", Own("", modified=LATER), "400101912")
    made.kinds["400101912"] = "two folders, the later counts"
    for number in (913, 914):
        made.add(f"{before}section B/400101{number}/homework.py", Own("", words=TAKEN), f"400101{number}")
        made.kinds[f"400101{number}"] = "a section"
    return made


def _of(made: Generated, name: str) -> str:
    """The path of the one file whose own name this is."""
    (path,) = (path for path in made.entries if path.endswith(f"_{name}"))
    return path


FORMATS: dict[str, Callable[[], Generated]] = {
    made.__name__: made
    for made in (
        moodle_flat,
        moodle_folders,
        moodle_blind,
        moodle_groups,
        canvas,
        canvas_anonymous,
        gradescope,
        plain_folder,
        plain_zip,
    )
}


def written(made: Generated, folder: Path, *, as_zip: bool) -> Path:
    """The upload on the disk: a zip, or a folder whose files have their times."""
    if as_zip:
        path = folder / "download.zip"
        path.write_bytes(zipped(made.entries))
        return path
    for name, (content, modified) in made.entries.items():
        path = folder / "download" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        moment = datetime(*modified, tzinfo=UTC).timestamp()  # type: ignore[misc, arg-type]
        os.utime(path, (moment, moment))
    return folder / "download"
