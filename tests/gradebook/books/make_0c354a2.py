"""Makes a gradebook with the code of commit 0c354a2, and what that code told of it. Run by that code alone:

    git worktree add /tmp/old 0c354a2
    PYTHONPATH=/tmp/old python tests/gradebook/books/make_0c354a2.py

It writes `0c354a2.sql` (all of the book) and `0c354a2.json` (what became of each student) beside itself.
"""

import json
import sqlite3
import tempfile
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from grader.pipeline.recording import outcome
from grader.pipeline.revision import results_now
from small import ASSIGNMENT, CHECKS, DUE

from grader.domain.analyzed_program import Claim, Omission, Place
from grader.domain.edit import Edit, EditKind
from grader.domain.evidence import Blame, Epoch, Evidence, Finding, Status, Training, TrainingOutcome
from grader.domain.score import Total
from grader.domain.submission import Delivery, RefusedFile, Role
from grader.gradebook import Gradebook

HERE = Path(__file__).parent
FAILED, STUDENT = Status.FAILED, Blame.STUDENT
LOOK = "homework.py:3: the program's constants hold about 9.1 kB of data; a person should look why."
TRAINED = Training(TrainingOutcome.COMPLETED, accuracy=0.7, interval=(0.66, 0.74), planned_epochs=2)
hours = count()


def now() -> datetime:
    return DUE + timedelta(days=2, hours=next(hours))


def evidence(student: str, changed: dict[str, Finding] = {}, **fields: Any) -> Evidence:  # noqa: B006
    findings = tuple(
        changed.get(spec.id, Finding(spec.id, spec.component, spec.title, Status.PASSED)) for spec in CHECKS
    )
    given = {
        "received_at": DUE - timedelta(hours=3),
        "training": TRAINED,
        "source": {"homework.py": "x = 1\n"},
    }
    return Evidence(student, "small", f"digest-{student}", now(), findings=findings, **{**given, **fields})


def found(check: str, status: Status, diagnosis: str | None, message: str, **more: Any) -> dict[str, Finding]:
    component = next(spec.component for spec in CHECKS if spec.id == check)
    blame = more.pop("blame", STUDENT if status is FAILED else None)
    return {check: Finding(check, component, check, status, blame, diagnosis, message, where="homework.py:1")}


KINDS = {
    **found("oracle", FAILED, "not_implemented", "`Attention` is not implemented yet."),
    **found("shape", FAILED, "missing_scale", "The scores are not scaled."),
    **found("logits", Status.PASSED, "fixed_positions", "The positions are fixed; learn them."),
    **found("learns", Status.ERRORED, "undecided", "A person must look: it is odd.", blame=Blame.INSTRUCTOR),
}
HANGS = found("learns", FAILED, "hangs", "The check could not be finished: it did not return within 10 s.")
STOPPED = Training(
    TrainingOutcome.BUDGET, reason="After 2 epochs our time limit ended it.",
    epochs=(Epoch(1, 1.0, 1.1, 0.4, 0.1, 3.0),),
)  # fmt: skip
CLASS = (
    evidence("400101201"),
    evidence(
        "400101202", KINDS, notes=("Magics were not executed.", LOOK),
        claim=Claim(0.85, "cell 12", "Test accuracy: 85%"),
        omissions=(Omission(Place("cell 3", 1), "x = (1", "the cell is not correct Python (x)"),),
        refused_files=(RefusedFile("notes.docx", "It is not among the files that the assignment asks for."),),
    ),
    evidence("400101203", HANGS, training=STOPPED, received_at=DUE + timedelta(days=2)),
    evidence("400101204", missing=(Role.REPORT,)),
    evidence("400101205", missing=(Role.REPORT,)),
    evidence("400101206"),
    evidence("400101207"),
    evidence("400101208", received_at=None, delivery=Delivery(marked_late=True)),
    evidence("400101209", received_at=DUE + timedelta(days=3)),
    evidence("400101210", found("scale", FAILED, "missing_scale", "Not scaled.")),
)  # fmt: skip
LATER = (
    evidence("400101206", HANGS),  # the same files gave less: the first run counts
    replace(evidence("400101207", HANGS), submission_digest="digest-later"),  # a later attempt gives less
)


def edit(
    kind: EditKind, student: str | None = None, target: str = "", value: float | None = None, **more: Any
) -> Edit:
    return Edit(kind, "ta1", now(), f"Why {kind.value}.", student, target, value, **more)


def edits() -> list[Edit]:
    return [
        edit(EditKind.WAIVE, target="scale"),
        edit(EditKind.WAIVE, target="shape"),
        edit(EditKind.UNWAIVE, target="shape"),
        edit(EditKind.MARK, "400101201", "q6", 3.0, comment="Good.", remarks=(("cite", "Cite it."),)),
        edit(EditKind.MARK, "400101201", "q6", 3.5, comment="Better."),
        edit(EditKind.MARK, "400101201", "q10.patches", 2.0),
        edit(EditKind.MARK, "400101201", "q10.token", 1.25),
        edit(EditKind.MARK, "400101202", "training", 11.0),
        edit(EditKind.MARK, "400101202", "training", None),
        edit(EditKind.MARK, "400101202", "q10.token", 2.5),
        edit(EditKind.CLAIM, "400101202", value=0.72),
        edit(EditKind.CLAIM, "400101201", value=0.99),
        edit(EditKind.CLAIM, "400101201"),
        edit(EditKind.RECEIVED, "400101203", "digest-400101203", (DUE + timedelta(hours=30)).timestamp()),
        edit(EditKind.NO_GRADE, "400101204"),
        edit(EditKind.NO_GRADE, "400101205"),
        edit(EditKind.WAIVE_MISSING, "400101205"),
        edit(EditKind.RUN, "400101210", value=1.0),
        edit(EditKind.IN_TIME, "400101208", "digest-400101208"),
        edit(EditKind.EXTENSION, "400101209", value=(DUE + timedelta(days=2)).timestamp()),
        edit(EditKind.RECEIVED, "400101201", "digest-400101201", (DUE + timedelta(days=9)).timestamp()),
        edit(EditKind.RECEIVED, "400101201", "digest-400101201"),
    ]


def keep(book: Gradebook, one: Evidence, **more: Any) -> None:
    made = outcome(ASSIGNMENT, book, one, who="ta1", now=now(), allow_lower=False)
    total = Total.of(made.score, who="ta1", when=now(), cause="grade")
    book.record(one, {}, who="ta1", total=total, edits=made.edits)


def told(book: Gradebook) -> dict[str, Any]:
    return {
        one.evidence.student_id: {
            "status": one.score.status,
            "total": one.score.total,
            "after_lateness": one.score.late.total_after if one.score.late else None,
            "decided": one.score.decided,
            "awaiting": one.score.awaiting,
            "closed": one.score.closed,
            "claim": one.score.claim.accuracy if one.score.claim else None,
            "lines": {line.id: [line.points, line.state, line.floor] for line in one.score.lines},
            "components": {
                own.component: [own.points, own.passed, own.total]
                for line in one.score.lines
                for own in line.components
            },
            "lower": [one.score.lower.kept, one.score.lower.reason] if one.score.lower else None,
            "runs": list(book.runs(one.evidence.student_id)),
            "counting": book.counting(one.evidence.student_id),
        }
        for one in results_now(ASSIGNMENT, book.snapshot())
    }


with tempfile.TemporaryDirectory() as folder:
    with Gradebook(Path(folder), assignment_id="small") as book:
        for one in CLASS:
            keep(book, one)
        keep(book, evidence("400101210", HANGS))
        decided = edits()
        snapshot = book.snapshot()
        assert book.append(decided, [], after=snapshot.state)
        totals = [
            Total.of(one.score, who="ta1", when=now(), cause="marks import")
            for one in results_now(ASSIGNMENT, book.snapshot())
        ]
        assert book.append([], totals, after=book.snapshot().state)
        for one in LATER:
            keep(book, one)
        (HERE / "0c354a2.json").write_text(json.dumps(told(book), indent=1) + "\n")
    raw = sqlite3.connect(Path(folder) / "gradebook.sqlite")
    (HERE / "0c354a2.sql").write_text("\n".join(raw.iterdump()) + "\n")
    raw.close()
