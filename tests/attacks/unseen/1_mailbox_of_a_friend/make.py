"""Moodle's folders: a file is named for the mailbox of a friend who handed in nothing."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from assembling import HERE, assembled


def good(student_id):
    return assembled("", student_id)


def weak(student_id):
    return assembled((HERE / "weak.py").read_text(encoding="utf-8"), student_id)


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


COLUMNS = (
    'Identifier,"Full name","ID number","Email address",Status,Grade,"Maximum Grade","Grade can be changed",'
    '"Last modified (submission)","Last modified (grade)","Feedback comments"'
)


def row(number, student_id, mail, full_name):
    return f'Participant {number},"{full_name}",{student_id},{mail}@uni.example,Submitted,,50.00,Yes,-,-,'


def make(upload, published):
    moodle = upload / "class"
    # the second attachment of one student; the first stays away, so that nothing in it tells the real id
    put(moodle / "Alder Ash_1234525_assignsubmission_file" / "b-birch_Lab8_Homework.py", good("400109121"))
    put(moodle / "Cedar Cork_1234527_assignsubmission_file" / "400109123_Lab8_Homework.py", good("400109123"))
    rows = [
        COLUMNS,
        row(1234525, 400109121, "alder", "Alder Ash"),
        row(1234526, 400109122, "b.birch", "Beech Birch").replace("b.birch", "b-birch"),
        row(1234527, 400109123, "cedar", "Cedar Cork"),
    ]
    put(upload / "Grades.csv", "\n".join(rows) + "\n")
