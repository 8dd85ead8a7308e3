"""One page of every kind, as a course would have it: written into a folder, with all links between them."""

import base64
import importlib.util
import io
import json
import sys
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import ModuleType

import numpy as np
from PIL import Image

from grader.analysis.view import viewed
from grader.domain.term_total import CourseSection, PartState, TermPart, TermPlan, TermTotal
from grader.files.stored_records import VIEW_FILE, view_bytes
from grader.reports.results_json.results_schema import DownloadedFileRecord, DownloadRecord, RosterRecord
from grader.reports.student.student_pages import attention_page, student_pages
from grader.reports.whole_class.class_page import class_page, leaderboard_page
from grader.reports.whole_class.similarity_page import similarity_page
from grader.reports.whole_class.similarity_record import similarity_record
from grader.reports.whole_class.term_page import TermColumn, term_page
from grader.similarity.compared_pairs import Comparison, compared
from grader.similarity.compared_work import SampledWeights, Work
from grader.similarity.normalized_code import given_forms, read_code
from grader.similarity.pictures import notebook_figures

TESTS = Path(__file__).resolve().parents[1]
CLASS_SIZE = 40
COMPARED = 26


@dataclass(frozen=True)
class SamplePages:
    """Where the pages are.

    Attributes:
        reports: What the submission is about -> its report.
        submissions: The pages of handed-in code: a notebook's and a script's.
    """

    reports: dict[str, Path]
    submissions: dict[str, Path]
    classes: dict[str, Path]
    leaderboard: Path
    attention: Path
    similarity: Path
    term: Path

    def of_every_kind(self) -> dict[str, Path]:
        """Name -> page."""
        return {
            **{f"report of {name}": page for name, page in self.reports.items()},
            **{f"submission as {name}": page for name, page in self.submissions.items()},
            **{f"class of {name}": page for name, page in self.classes.items()},
            "leaderboard": self.leaderboard,
            "attention": self.attention,
            "similarity": self.similarity,
            "term": self.term,
        }


def written_pages(folder: Path) -> SamplePages:
    """Write the pages into a folder."""
    examples, large = _module("reports/example_class"), _module("reports/large_class")
    assignment = replace(examples.an_assignment(), leaderboard=True)
    results = examples.a_class(assignment)
    reports, submissions = {}, {}
    for name, one in results.items():
        view = viewed(*_handed_in(name, examples.SOURCE, examples.a_drawing()))
        files = {**one.images, VIEW_FILE: view_bytes(view)}
        evidence = replace(one.evidence, code_file=view.file)
        made = student_pages(assignment, evidence, one.score, files, examples.WHEN)
        for page, content in made.items():
            _write(folder / "students" / evidence.student_id / page, content)
        reports[name] = folder / "students" / evidence.student_id / "report.html"
        if name in ("good", "missing_scale"):
            submissions["a notebook" if name == "good" else "a script"] = reports[name].with_name(
                "submission.html"
            )
    one = results["missing_scale"]
    attention = attention_page(assignment, one.evidence, images=one.images, generated_at=examples.WHEN)
    assert attention is not None
    comparison = a_comparison()
    found = similarity_record(assignment.id, comparison, examples.WHEN)
    notes = ("notes.txt: It is not among the files that the assignment asks for.",)
    whole = large.a_large_class(examples, assignment, CLASS_SIZE)
    small = [(one.evidence, one.score) for one in results.values()]
    pages = {
        "attention.html": attention,
        "leaderboard.html": leaderboard_page(assignment, whole, generated_at=examples.WHEN),
        "term.html": a_term(examples.WHEN),
        "similarity.html": similarity_page(assignment, comparison, notes=notes, generated_at=examples.WHEN),
    }
    for name, pairs in (("index.html", whole), ("small.html", small), ("empty.html", [])):
        pages[name] = class_page(
            assignment,
            pairs,
            links={score.student_id: f"students/{score.student_id}/report.html" for _, score in pairs},
            generated_at=examples.WHEN,
            attention={pairs[0][1].student_id: "attention.html"} if pairs else {},
            download=_a_download([score.student_id for _, score in pairs]),
            similarity=found,
        )
    for page, text in pages.items():
        _write(folder / page, text.encode("utf-8"))
    return SamplePages(
        reports,
        submissions,
        {"40": folder / "index.html", "9": folder / "small.html", "nobody": folder / "empty.html"},
        folder / "leaderboard.html",
        folder / "attention.html",
        folder / "similarity.html",
        folder / "term.html",
    )


def a_term(when: datetime) -> str:
    """A course page with all that there is: groups, ranges, somebody at risk, late days, no section."""
    plan = TermPlan({"lab1": 40, "final_project": 60}, 50, sections=(CourseSection("A", ("ta1", "ta2")),))
    decided = TermPart("lab1", 40, PartState.DECIDED, 10, 10, 40, 25, 100, group="G1", peer_weight=0.5)
    other = replace(decided, low=36, high=36, grade=90, handed_in_by="400101204", peer_weight=1.2)
    later = TermPart("final_project", 60, PartState.NOT_GRADED, 0, 60, 0, missing="is not graded yet")
    marked = replace(later, state=PartState.OPEN, low=12.5, high=30, judged=40, missing="awaiting report")
    nothing = replace(later, state=PartState.NOTHING, missing="nothing came")
    totals = [
        TermTotal("400101204", "A", (decided, nothing), 50, 3),
        TermTotal("400101205", "A", (other, marked), 50, 0),
        TermTotal("400101206", "", (other, later), 50, 2, listed=False),
    ]
    columns = [
        TermColumn("lab1", "The first lab", 40, "3 results", "index.html", {"400101204": "index.html"}),
        TermColumn("final_project", "final_project", 60, "not graded yet", "", {}),
    ]
    remarks = ["400101206 is not in the file of students."]
    return term_page(
        "Deep Learning", "2026-fall", plan, columns, totals, remarks=remarks, late_days=3, generated_at=when
    )


def a_comparison() -> Comparison:
    """A class of 26 compared: solutions of few forms, so that many pairs share some of them; with copies."""
    solutions = _module("similarity/solutions")
    given = given_forms(read_code("homework.py", solutions.template().encode()))
    numbers = np.random.default_rng(3)
    pixels = numbers.integers(0, 256, (90, 120, 3), dtype=np.uint8)
    figure = tuple(notebook_figures(json.dumps(_shown([_png(pixels)])).encode()))
    weights = SampledWeights((80_000,), ("ab" * 32,), numbers.normal(size=(1, 64)).astype(np.float32))
    works = []
    for at, choice in enumerate(solutions.choices(COMPARED - 3, seed=4)):
        text = solutions.solution(choice)
        name, data = f"4001{13_000 + 37 * at:05d}", text.encode()
        works.append(
            Work(
                name,
                code=read_code("homework.py", data),
                weights=weights if at in (2, 5) else None,
                figures=figure if at in (3, 5) else (),
                left_out=("Nothing was accepted as report, so it was not compared.",) if at == 7 else (),
            )
        )
        if at in (0, 1, 6):
            copy = solutions.as_notebook(solutions.disguised(text))
            works.append(Work(f"40019999{at}", before=at == 6, code=read_code("copy.ipynb", copy.encode())))
    return compared(works, given=given)


def _a_download(ids: list[str]) -> DownloadRecord:
    files = [
        DownloadedFileRecord(
            name="a/notes.docx", fate="refused", student_id=None, reason="Nobody's.", count=1
        ),
        DownloadedFileRecord(
            name="b_1.py",
            fate="superseded",
            student_id="400110000",
            reason="A later attempt counts.",
            count=2,
        ),
        DownloadedFileRecord(
            name="c.py", fate="matched", student_id="400110037", reason="Its name is another.", count=1
        ),
    ]
    roster = RosterRecord(
        source="Participants.csv",
        students=sorted([*ids[1:], "400199990", "400199991"]),
        missing=["400199990", "400199991"],
        unlisted=ids[:1],
        notes=["Row 7 fits two students."],
    )
    return DownloadRecord(
        matched=80, superseded=2, refused=1, files=files, notes=["c.py: Find out whose it is."], roster=roster
    )


def _handed_in(name: str, source: str, drawing: bytes) -> tuple[str, bytes]:
    """A notebook with text, outputs, errors and pictures for the flawless one; else the script."""
    if name != "good":
        return "homework.py", source.encode()
    text = "# My ViT\n\n### First\n\n**Bold**, [a link](https://example.org)\n\n1. a\n\n|a|b|\n|-|-|\n|1|2|"
    return "homework.ipynb", json.dumps(
        {
            "nbformat": 4,
            "cells": [
                {"cell_type": "markdown", "source": text},
                *({"cell_type": "code", "source": one, "outputs": []} for one in source.split("\n\n\n")),
                *_shown([drawing])["cells"],
            ],
        }
    ).encode()


def _shown(pictures: list[bytes]) -> dict:
    head, row = "<tr><th></th><th>loss</th></tr>", "<tr><th>0</th><td>1.2</td></tr>"
    frame = f"<table><thead>{head}</thead><tbody>{row}</tbody></table>"
    outputs = [
        {"output_type": "display_data", "data": {"image/png": base64.b64encode(one).decode("ascii")}}
        for one in pictures
    ]
    outputs += [
        {"output_type": "stream", "name": "stdout", "text": "epoch 1: 0.512\n" * 60},
        {"output_type": "stream", "name": "stderr", "text": "a warning\n"},
        {"output_type": "display_data", "data": {"text/html": frame, "text/plain": "  loss"}},
        {
            "output_type": "error",
            "ename": "E",
            "evalue": "x",
            "traceback": ["\x1b[0;31mE\x1b[0m: \x1b[1;33mx"],
        },
    ]
    return {"cells": [{"cell_type": "code", "source": "plt.show()", "outputs": outputs}]}


def _png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _module(path: str) -> ModuleType:
    """A module of another folder of tests."""
    spec = importlib.util.spec_from_file_location(f"sample_{Path(path).name}", TESTS / f"{path}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
