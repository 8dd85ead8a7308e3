"""Moodle's folders: one carries the other's id, whose own file carries none."""

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
    put(moodle / "Alder Ash_1234525_assignsubmission_file" / "400109102_Lab8_Homework.py", weak("400109101"))
    put(moodle / "Beech Birch_1234526_assignsubmission_file" / "homework.py", good("400109102"))
    rows = [COLUMNS, row(1234525, 400109101, "alder", "Alder Ash"), row(1234526, 400109102, "birch", "Beech Birch")]
    put(upload / "Grades.csv", "\n".join(rows) + "\n")
