"""Moodle's folders: a file's name holds the number that Moodle gave to another."""

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
    put(moodle / "Alder Ash_1234525_assignsubmission_file" / "Birch_1234526_Lab8_Homework.py", weak("400109111"))
    put(moodle / "Cedar Cork_1234527_assignsubmission_file" / "400109113_Lab8_Homework.py", good("400109113"))
    rows = [
        COLUMNS,
        row(1234525, 400109111, "alder", "Alder Ash"),
        row(1234526, 400109112, "birch", "Beech Birch"),
        row(1234527, 400109113, "cedar", "Cedar Cork"),
    ]
    put(upload / "Grades.csv", "\n".join(rows) + "\n")
