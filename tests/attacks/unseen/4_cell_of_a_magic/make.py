"""Makes a notebook of the homework, with the table of the published images in a cell of its own."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from assembling import published_table


def make(upload, published):
    (file,) = upload.rglob("*_Lab8_Homework.py")
    table = published_table(published)
    rows = [f"{kind} {''.join(map(str, row))}" for kind, rows in enumerate(table) for row in rows]
    texts = ["%%writefile classes.txt\n" + "\n".join(rows), *file.read_text(encoding="utf-8").split("# %%\n")]
    cells = [
        {"cell_type": "code", "execution_count": None, "id": f"c{number}", "metadata": {}, "outputs": [], "source": text}
        for number, text in enumerate(texts)
        if text.strip()
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    file.unlink()
    file.with_suffix(".ipynb").write_text(json.dumps(notebook), encoding="utf-8")
