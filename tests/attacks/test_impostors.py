"""Attacks on whose work it is: the whole command line, from a download to the LMS's table."""

import csv
import io
import json

import pytest

CODE = """from torch import nn


class Doubler(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return {} * x
"""


@pytest.fixture
def say(tiny_course, grader, monkeypatch):
    """Run a command with the hosts that are there: `say("grade", ...)`, what it prints."""
    monkeypatch.setenv("GRADER_BY", "ta1")
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)

    def said(*words: object) -> str:
        done = grader("--course", tiny_course, *words)
        assert done.exit_code == 0, done.output
        return done.output

    return said


def written(files, root, zipped):
    """A download on the disk."""
    for name, what in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, int):
            path.write_text(CODE.format(what))
        elif isinstance(what, str):
            path.write_text(what)
        else:
            path.write_bytes(
                zipped({one: CODE.format(factor).encode() for one, factor in what.items()}, 2099)
            )
    return root


def test_an_impostor_takes_nobodys_place(impostor, say, attack_modules, tmp_path):
    known = attack_modules("impostors")
    out, table = tmp_path / "out", tmp_path / "table.csv"
    table.write_text(known.CANVAS if impostor.canvas else known.MOODLE, "utf-8")
    for number, files in enumerate(impostor.downloads):
        download = written(files, tmp_path / f"download{number}", known.zipped)
        listed = ("--roster", table) if impostor.listed else ()
        say("grade", download, "--assignment", "tiny", "--no-train", "--out", out, *listed)
    told = say("export", "canvas" if impostor.canvas else "moodle-worksheet", out, "--into", table)
    rows = csv.DictReader(io.StringIO((out / "exports/table.csv").read_text("utf-8")))
    number, grade = ("SIS User ID", "Doubling (7)") if impostor.canvas else ("ID number", "Grade")
    grades = {row[number]: row[grade] for row in rows}
    results = {
        one["student_id"]: one for one in json.loads((out / "results.json").read_text())["submissions"]
    }
    held = {student_id for student_id, one in results.items() if one["held"]}
    assert grades[known.VICTIM] == impostor.robbed
    assert all(student_id in told for student_id in held)
    if impostor.outcome == "nothing happens":
        assert known.VICTIM not in results or results[known.VICTIM]["total"] == 4
        assert not held or "submission_metadata.yml" in impostor.downloads[0]
    else:
        page = (out / "index.html").read_text("utf-8")
        assert known.VICTIM not in results and len(held) >= 2
        assert 'id="owner"' in page and all(student_id in page for student_id in held)
