"""Attacks on whose work it is: classes in which one student hands in files as if they were another's."""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass

ATTACKER, VICTIM = "400101201", "400101202"
HONEST, HOSTILE = (
    2,
    3,
)  # what the code multiplies by: twice is asked for, and a third of the checks misses that
MOODLE = (
    "Identifier,Full name,ID number,Email address,Grade,Maximum Grade,Last modified (grade)\n"
    f"Participant 111,Alpha One,{ATTACKER},alpha@uni.example,,4,-\n"
    f"Participant 222,Omega Two,{VICTIM},omega@uni.example,,4,-\n"
)
CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Doubling (7)\n    Points Possible,,,,,4\n"
    f'"One, Alpha",7001,{ATTACKER},alpha,A,\n"Two, Omega",42,{VICTIM},omega,A,\n'
)
METADATA = "".join(
    f"submission_{number}:\n  :submitters:{whose}\n  :created_at: 2026-01-31 12:00:00 Z\n"
    for number, whose in (
        (1, f"\n  - :sid: '{VICTIM}'\n  - :sid: '400101203'"),
        (2, f"\n  - :sid: '{ATTACKER}'"),
        (3, " []"),
    )
)
Files = Mapping[str, int | str | Mapping[str, int]]
"""Path in a download -> the factor of the code in it, a text, or what is in an archive."""


@dataclass(frozen=True)
class Impostor:
    """One attack by names.

    Attributes:
        number, name, tries, stopped_by, outcome: As of an attack in code.
        downloads: What is graded, one after the other, into one folder of results.
        listed: The list of the class is given.
        canvas: The LMS is Canvas; else Moodle's worksheet is filled.
        robbed: What the other student has in the LMS's table then: the points of the own work, or nothing.
    """

    number: int
    name: str
    tries: str
    stopped_by: str
    outcome: str
    downloads: tuple[Files, ...]
    listed: bool = False
    canvas: bool = False
    robbed: str = ""


def moodle(person: str, number: int, *names: str, factor: int) -> dict[str, int]:
    """What a participant handed in, as Moodle packs it."""
    return {f"{person}_{number}_assignsubmission_file/{name}": factor for name in names}


def zipped(files: Mapping[str, bytes], year: int) -> bytes:
    """A zip whose files have times of a year."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), content)
    return stream.getvalue()


FIRST = moodle("Alpha One", 111, f"{VICTIM}_homework.py", factor=HOSTILE)
SECOND = moodle("Omega Two", 222, f"{VICTIM}_homework.py", factor=HONEST)
NOBODYS = "of uploads that carry one id, and of which the LMS says nothing, none gets it"

IMPOSTORS = (
    Impostor(
        120,
        "other_number",
        "Names its files with another student's number",
        "the LMS's own number and its list of the class outrank the names of files",
        "nothing happens",
        ({**FIRST, **SECOND},),
        listed=True,
        robbed="4",
    ),
    Impostor(
        121,
        "same_number",
        "Does so where no list of the class is given, to be the first in the alphabet",
        NOBODYS,
        "a person looks",
        ({**FIRST, **SECOND},),
    ),
    Impostor(
        122,
        "nearly_the_number",
        "Writes another student's number so that it becomes that number when it is cleaned",
        "an id that has to be cleaned is not the one that was asked for",
        "a person looks",
        ({f"-{VICTIM}_homework.py": HOSTILE, f"{VICTIM}_homework.py": HONEST},),
    ),
    Impostor(
        123,
        "later_upload",
        "Hands in under another student's number later, in a download of its own",
        "the gradebook knows which upload a result is of",
        "a person looks",
        (SECOND, FIRST),
    ),
    Impostor(
        124,
        "chosen_name",
        "Chooses a name in Canvas in which another user's number stands",
        "of several pairs of numbers in a name none is believed",
        "nothing happens",
        (
            {
                f"onealpha_42_9999999_7001_100045_{VICTIM}_homework.py": HOSTILE,
                f"zornzoe_42_100012_{VICTIM}_homework.py": HONEST,
            },
        ),
        canvas=True,
        robbed="4",
    ),
    Impostor(
        125,
        "number_of_the_lms",
        "Names its files with the number that the LMS gave another student, who handed in nothing",
        "an id in a name is not compared with the LMS's own numbers",
        "nothing happens",
        (moodle("Alpha One", 111, "x_222_homework.py", "222_homework.py", factor=HOSTILE),),
    ),
    Impostor(
        126,
        "own_section",
        "Hands in a folder of files for several others, so that it looks like a section of the class",
        "one id in several places is several uploads",
        "a person looks",
        (
            {
                f"m/{VICTIM}_homework.py": HOSTILE,
                "m/400101203_homework.py": HOSTILE,
                f"{VICTIM}/homework.py": HONEST,
                "400101203/homework.py": HONEST,
            },
        ),
    ),
    Impostor(
        127,
        "archive_beside",
        "Puts an archive with times of the future beside another student's file, under the same number",
        "without an LMS different files for one purpose are not one student's",
        "a person looks",
        ({f"{VICTIM}_homework.py": HONEST, f"{VICTIM}.zip": {f"{VICTIM}_homework.py": HOSTILE}},),
    ),
    Impostor(
        128,
        "teams_member",
        "Names its files with the number of a team's member on Gradescope",
        "metadata outranks the names of files",
        "nothing happens",
        (
            {
                "submission_metadata.yml": METADATA,
                "submission_1/homework.py": HONEST,
                f"submission_2/{VICTIM}_homework.py": HOSTILE,
                f"submission_3/{VICTIM}_homework.py": HOSTILE,
            },
        ),
        robbed="4",
    ),
    Impostor(
        129,
        "id_of_ours",
        "Names its files with the id under which another student's upload is listed",
        "such ids are nobody's",
        "nothing happens",
        (
            {
                **moodle("Alpha One", 111, "moodle-222_homework.py", factor=HOSTILE),
                **moodle("Omega Two", 222, "homework.py", factor=HONEST),
            },
        ),
        robbed="4",
    ),
)
