"""A folder for each student, made by the students: another one adds a later one in the victim's name."""

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


import os


def make(upload, published):
    moved = upload / "class"
    victim = moved / "400109131" / "400109131_Lab8_Homework.py"
    put(victim, good("400109131"))
    # full-width digits; NFKC makes the victim's id of them
    wide = "".join(chr(ord(digit) + 0xFEE0) for digit in "400109131")
    other = moved / f"{wide} resubmission" / f"{wide}_Lab8_Homework.py"
    put(other, weak("400109131"))
    put(moved / "400109132" / "400109132_Lab8_Homework.py", good("400109132"))
    for path, moment in ((victim, 1_790_000_000), (other, 1_790_100_000)):
        os.utime(path, (moment, moment))
        os.utime(path.parent, (moment, moment))
