"""Canvas: a display name that reads like a user, an attachment and the victim's file."""

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



def make(upload, published):
    # NAME_USER_ATTACHMENT_FILE: the attacker is user 1001 and calls himself "400109142 Lab8 Homework, 42 9999999"
    canvas = upload / "class"
    put(canvas / "birchbeech_42_5001_400109142_Lab8_Homework.py", good("400109142"))
    put(canvas / "ash_42_9999999_1001_6001_400109142_Lab8_Homework.py", weak("400109141"))
    put(canvas / "corkcedar_43_5002_400109143_Lab8_Homework.py", good("400109143"))
    rows = [
        'Student,ID,SIS User ID,SIS Login ID,Section,"Lab 8 (77)"',
        "    Points Possible,,,,,50",
        '"Ash, 42 9999999",1001,400109141,ash,A,',
        '"Birch, Beech",42,400109142,birch,A,',
        '"Cork, Cedar",43,400109143,cork,A,',
    ]
    put(upload / "Grades.csv", "\n".join(rows) + "\n")
