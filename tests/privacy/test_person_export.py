"""`grader export-person`: all about the person, nothing about others; it is forgotten with the person."""

import io
import json
import zipfile
from pathlib import Path

import pytest

from tests.privacy.conftest import HER, HERS, LINES, MATE, NAME, THIRD, found_in, said


@pytest.mark.slow
def test_the_person_gets_all_and_nobody_elses(surrounded: Path, tmp_path: Path) -> None:
    before = {
        path: path.read_bytes()
        for path in surrounded.rglob("*")
        if path.is_file() and path.suffix != ".sqlite"
    }
    target = tmp_path / "hers.zip"
    told = said("export-person", surrounded, HER, "--to", target)
    assert told.startswith(f"{target}: ") and "about 400101204" in told
    assert {path: path.read_bytes() for path in before} == before
    with zipfile.ZipFile(target) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    page = files["index.html"].decode()
    assert "ask for a person to look" in page and "Marks, comments and decisions" in page
    assert LINES[HER][7] in files[f"work/vit_defects-{HER}-1/code.txt"].decode()
    records = json.loads(files["records.json"])
    assert {row["student_id"] for row in records["decisions"]} == {HER} and records["totals"]
    assert records["runs"][0]["evidence"]["evidence"]["origin"]["person"] == NAME
    assert any(name.endswith("report.html") for name in files)
    assert f"{HER},another-student" in files["mentions/similarity.csv.json"].decode()
    ours = b"".join(content for name, content in files.items() if not name.startswith("pages/"))
    for other in (MATE, THIRD, LINES[MATE][3], "Ann Other", "ta1"):
        assert other.encode() not in ours, other
    # what was handed out is forgotten as well
    said("forget", surrounded, HER, "--yes")
    assert not target.exists() and not any(found_in(tmp_path, HERS).values())


def test_who_is_not_known_and_a_file_that_is_there(results: Path) -> None:
    assert (
        said("export-person", results, "9", code=2)
        == f"error: {results}: nothing is kept about '9'. See scores.csv.\n"
    )
    said("export-person", results, MATE)
    place = results / "exports" / f"person-{MATE}.zip"
    assert zipfile.is_zipfile(io.BytesIO(place.read_bytes()))
    assert (
        said("export-person", results, MATE, code=2)
        == f"error: {place} is there already. Give another --to.\n"
    )


def test_sheets_of_several_and_half_written_files_are_nobodys_own(results: Path, tmp_path: Path) -> None:
    """Forgetting a person removes them, as they can be made again; others' lines are in them."""
    others_line = f"{THIRD} did not write: {LINES[THIRD][3]}"
    for name, text in {
        "oral/notes.html": f"<p>{HER}</p><p>{others_line}</p>",
        f"oral/students/{HER}/notes.html": f"<p>{HER}</p>",
        ".grading/run.json": json.dumps([{"student_id": HER, "stage": "checks"}, {"said": others_line}]),
        f".{'a' * 16}.part": others_line,
    }.items():
        (results / name).parent.mkdir(parents=True, exist_ok=True)
        (results / name).write_text(text, "utf-8")
    said("export-person", results, HER, "--to", tmp_path / "hers.zip")
    with zipfile.ZipFile(tmp_path / "hers.zip") as archive:
        files = {name: archive.read(name).decode("utf-8", "replace") for name in archive.namelist()}
    assert not [name for name, content in files.items() if LINES[THIRD][3] in content]
    assert files[f"pages/oral/students/{HER}/notes.html"] == f"<p>{HER}</p>"
    assert json.loads(files["mentions/.grading/run.json.json"]) == [{"student_id": HER, "stage": "checks"}]
