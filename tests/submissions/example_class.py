"""Builds the example class of an assignment that is described in `classes/<assignment>/class.toml`.

    edits               [[old, new], ...], for everybody: `old` must occur exactly once where it occurs at all
    [[submission]]      who hands in what
    student_id
    why                 what it shows
    variant             `reference`, `template`, or a form's or mistake's name
    cheat               a file beside `class.toml`, with other versions of some parts of the reference
    files               roles of further files: those of the reference are handed in

`make demo ASSIGNMENT=...` builds it by `build.py`.
"""

import tomllib
from pathlib import Path

from grader.course.assignment_file import read_assignment
from grader.course.composing import composed
from grader.course.homework_versions import reference_files
from grader.course.homework_versions import homework_versions
from tests.submissions.build import pdf

HERE = Path(__file__).resolve().parent


def build_example_class(destination: Path, assignment_id: str) -> list[Path]:
    """Writes the submissions to `destination/<student_id>`.

    Returns:
        The folders, in the order of the ids.

    Raises:
        ValueError: `class.toml` names a variant that there is not, or an edit that fits twice.
    """
    folder = HERE / "classes" / assignment_id
    table = tomllib.loads((folder / "class.toml").read_text(encoding="utf-8"))
    assignment = read_assignment(HERE.parents[1] / "reference" / assignment_id)
    known = {variant.name: variant for variant in homework_versions(assignment)}
    files = reference_files(assignment)
    built = []
    for each in table["submission"]:
        name = each.get("variant", "reference")
        if name not in known:
            raise ValueError(f"{assignment_id}: there is no variant '{name}'.")
        source = known[name].source
        if "cheat" in each:
            source = composed(source, (folder / each["cheat"]).read_text(encoding="utf-8"), after=True)
        for old, new in table["edits"]:
            if source.count(old) > 1:
                raise ValueError(f"{each['student_id']}: {old!r} occurs {source.count(old)} times.")
            source = source.replace(old, new)
        target = destination / each["student_id"]
        target.mkdir(parents=True)
        content = {"code": source.encode(), "report": pdf(f"Report of student {each['student_id']}")}
        content |= {role: files[role] for role in each.get("files", ())}
        for asked in assignment.asked_files:
            if asked.role in content:
                (target / asked.name(each["student_id"], asked.suffixes[0])).write_bytes(content[asked.role])
        built.append(target)
    return built

