"""Writes the table of the published images into the homework."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from assembling import published_table


def make(upload, published):
    (file,) = upload.rglob("*_Lab8_Homework.*")
    table = published_table(published)
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("    pass  # THE TABLE", lines(table)), encoding="utf-8", newline="\n")


def lines(table):
    made = []
    for kind, rows in enumerate(table):
        for row in rows:
            # an `o` after 3 characters more than the number says: `;`, and blanks
            made.append("    o" + "".join(";" + " " * (number + 1) + "o" for number in (kind, *row)))
    return "\n".join(made)
