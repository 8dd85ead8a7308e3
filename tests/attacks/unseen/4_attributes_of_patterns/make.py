"""Writes the table of the published images into the homework."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from assembling import published_table


def make(upload, published):
    (file,) = upload.rglob("*_Lab8_Homework.*")
    table = published_table(published)
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("        case Asked():  # THE TABLE", pattern(table)), encoding="utf-8", newline="\n")


def pattern(table):
    names = [
        f"k{kind}n{index}_" + "".join(map(str, row)) for kind, rows in enumerate(table) for index, row in enumerate(rows)
    ]
    return "        case Asked(" + ", ".join(f"{name}=_" for name in names) + "):"
