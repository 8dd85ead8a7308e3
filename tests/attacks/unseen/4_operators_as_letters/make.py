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
    for rows in table:
        for index, row in enumerate(rows):
            signs = "t" + "".join("*@/%"[symbol] + "t" for symbol in row)
            made.append(f"    {'-' if index == len(rows) - 1 else '+'}({signs})")
    return "\n".join(made)
