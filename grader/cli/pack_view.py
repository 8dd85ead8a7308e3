"""How packed files are shown: each with what was verified, and the verdict."""

from pathlib import Path

from grader.cli.homework_view import show_calls, show_omissions, training_rows
from grader.cli.terminal_page import Page
from grader.cli.verdict_view import verdict
from grader.domain.analyzed_program import Program
from grader.domain.formatting import listed
from grader.domain.program_run import plan_of
from grader.domain.submission import Role
from grader.students.packing import Package, PackedFile
from grader.students.prospect import Outcome, prospect

TITLES: dict[str, str] = {Role.CODE: "code", Role.CHECKPOINT: "weights", Role.REPORT: "report"}
PROOFS: dict[str, str] = {
    Role.CODE: "it can be read",
    Role.CHECKPOINT: "they fit the model in your code",
    Role.REPORT: "it is a PDF",
}


def show_package(packed: Package, *, zipped: bool) -> None:
    """Print each file with what was found about it, and the verdict."""
    page = Page()
    page.item("passed", f"id       {packed.student_id}")
    for file in packed.files:
        _show_file(page, file, _title(file), _proof(packed, file))
    for file in packed.modules:
        _show_file(page, file, "module", "your code imports it, so hand it in under this name")
    if packed.archive is not None:
        page.item("passed", f"zip      {packed.archive}")
    elif zipped:
        page.item("skipped", "zip      not made, because not everything is in order")
    if packed.program is not None:
        show_calls(page, packed.assignment)
        if packed.assignment.replays_training:
            page.heading("What will be trained")
            page.pairs(_training_rows(packed, packed.program))
        show_omissions(page, packed.program, details=False, replayed=packed.assignment.replays_training)
    page.verdict(packed.complete and is_right(packed), _verdict_text(packed))


def is_right(packed: Package) -> bool:
    """Whether the public checks, where they were made, found nothing wrong."""
    check = packed.checked
    return check is None or prospect(packed.assignment, check).outcome is Outcome.RIGHT


def _training_rows(packed: Package, program: Program) -> list[tuple[str, str]]:
    """What would be trained first, and what a trial of it showed."""
    check, measure = packed.checked, packed.assignment.measures[0]
    plan = check.plans.get(measure.id) if check is not None else None
    parameters = check.parameters if check is not None else None
    return training_rows(program, parameters, plan or plan_of(program.script), measure)


def _proof(packed: Package, file: PackedFile) -> str:
    """What was verified about a file that is fine."""
    if file.role == Role.CHECKPOINT and not packed.trains:
        return "it holds weights"
    return PROOFS.get(file.role, "it is there")


def _title(file: PackedFile) -> str:
    title = TITLES.get(file.role, file.role)
    return f"{title} ({file.title})" if file.title else title


def _show_file(page: Page, file: PackedFile, what: str, shown: str) -> None:
    title = f"{what:<8} "
    if file.target is None:
        page.item("failed", f"{title}{file.name}")
    else:
        kind = "skipped" if file.problem else "passed"
        proof = "" if file.problem else f": {shown}"
        source = (
            f" (from {file.source.name})" if file.source and file.source.name != Path(file.name).name else ""
        )
        page.item(kind, f"{title}{file.name}{source}{proof}")
    if file.problem:
        page.detail(file.problem, style="yellow" if file.target else "red", indent=13)
    for note in file.notes:
        page.detail(note, style="dim", indent=13)


def _complete_sentence(packed: Package) -> str:
    """A sentence saying that everything is there, and what the checks found."""
    check = packed.checked
    if check is None:
        return f"Everything is in {packed.folder}. The public checks were not run."
    sentence = verdict(check, prospect(packed.assignment, check))
    if is_right(packed):
        return f"Everything is in {packed.folder}. {sentence}"
    return f"Everything is in {packed.folder}, but the work is not right yet: {sentence} See: grader check."


def _verdict_text(packed: Package) -> str:
    if packed.complete:
        return f"{_complete_sentence(packed)} Hand in {'the zip' if packed.archive else 'these files'}."
    absent = [f"no {_title(file)}" for file in packed.files if file.target is None]
    absent += [f"no {file.name}" for file in packed.modules if file.target is None]
    if absent:
        text = f"Not complete: {', '.join(absent)}."
        if any(file.target is None and file.needed for file in (*packed.files, *packed.modules)):
            text += " If one file is missing, there is no grade."
    else:
        unverified = [f"the {_title(file)} ({file.name})" for file in packed.files if file.problem]
        text = f"Not verified: {listed(unverified)}, for the reason above."
    done = [file for file in (*packed.files, *packed.modules) if file.target is not None]
    return f"{text} What is fine is in {packed.folder}." if done else text
