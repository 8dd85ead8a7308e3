"""Gradescope: an upload without a student id is named for somebody whom Gradescope knows."""

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



def entry(folder, student_id):
    known = f"'{student_id}'" if student_id else "''"
    return (
        f"{folder}:\n  :submitters:\n  - :name: N{folder[-1]}\n    :sid: {known}\n    :email: n{folder[-1]}@uni.example\n"
        "  :created_at: 2026-11-20 10:00:00 Z\n  :score: 0\n  :history: []\n"
    )


def make(upload, published):
    export = upload / "class" / "assignment_export"
    put(export / "submission_1001" / "400109152_Lab8_Homework.py", weak("400109151"))
    put(export / "submission_2002" / "homework_final.py", good("400109152"))
    put(export / "submission_3003" / "400109153_Lab8_Homework.py", good("400109153"))
    put(
        export / "submission_metadata.yml",
        "---\n" + entry("submission_1001", "") + entry("submission_2002", "400109152") + entry("submission_3003", "400109153"),
    )
