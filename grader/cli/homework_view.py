"""How a homework is shown on a terminal: its checks' findings, its program, and what would be trained.

It prints findings as they are made, what was left out of a file, the calls and values of a training, and
the statements that train a model. It also makes the JSON document of `grader check`. It decides the order
and the words. What passes, and what it means for a grade, is decided in `grader.students`.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import click
from rich.status import Status as Spinner

from grader.cli.terminal_page import Page
from grader.cli.verdict_view import (
    part_document,
    show_part_verdict,
    show_verdict,
    unresolved_notes,
    verdict_document,
)
from grader.domain.analyzed_program import ForbiddenUse, Omission, Place, Program, cell_number
from grader.domain.assignment import SUBMISSION, Assignment
from grader.domain.assignment_versions import Value, shown_values
from grader.domain.evidence import Finding, Status
from grader.domain.formatting import as_code, clipped, counted, listed, named, printable, quantity
from grader.domain.measure import Measure, call_in_words
from grader.domain.program_run import Plan, Rehearsal
from grader.domain.submission_result import ReportedCause, reported_causes
from grader.reports.student.code_lines import excerpt
from grader.reports.student.training_texts import plan_rows
from grader.students.own_check import LocalCheck
from grader.students.prospect import Outcome

SHOWN_CELLS = 3  # places in a notebook, for each reason
CODE_WIDTH = 40
AS_THE_LOADERS = "as your code makes the loaders"
OF_A_DEFINITION = 7  # lines of it that are shown
MARKS = {
    Status.PASSED: "passed",
    Status.FAILED: "failed",
    Status.SKIPPED: "skipped",
    Status.ERRORED: "skipped",
}
COMPONENT_TITLES = {SUBMISSION: "The file"}
# the tuned values in the order in which they are shown
MODEL_VALUES = (
    "image_size",
    "patch_size",
    "channels",
    "dim",
    "depth",
    "heads",
    "dim_head",
    "mlp_dim",
    "pool",
)
NUMBER = re.compile(r"[\d(.\-\[]")
OPTIMIZER_VALUES = ("learning_rate", "weight_decay", "momentum", "betas", "label_smoothing")


class CheckView:
    """Findings on the terminal, each component's once its checks are made. A context with a spinner."""

    def __init__(
        self,
        path: Path,
        assignment: Assignment,
        page: Page | None = None,
        values: Mapping[str, Value] | None = None,
        part: str = "",
    ) -> None:
        self._page = page or Page()
        self._path = path
        self._assignment = assignment
        self._values = values or {}
        self._part = part  # the only one that is asked for
        self._program: Program | None = None
        self._waiting: dict[str, list[Finding]] = {}  # component -> findings that are not shown yet
        self._headed = ""  # the component whose findings are being shown
        self._made: Counter[str] = Counter()  # component -> its checks that were made
        self._done = 0
        self._spinner: Spinner | None = None

    def __enter__(self) -> "CheckView":
        self._page.console.print(f"{self._path.name}: {self._assignment.title}", style="bold")
        if self._values:
            self._page.detail(f"The values of this copy: {shown_values(self._values)}")
        if self._page.live:
            self._spinner = self._page.console.status(
                "Starting (the first time, PyTorch is slow to load) ..."
            )
            self._spinner.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._spinner is not None:
            self._spinner.stop()
        for component in tuple(self._waiting):  # whose checks were not all made
            self._show_component(component)

    def read(self, program: Program) -> None:
        """The file was read."""
        self._program = program

    def finding(self, finding: Finding) -> None:
        """Take a new finding; passed checks are shown at once, others once all causes are known."""
        self._done += 1
        self._made[finding.component] += 1
        quiet = finding.status is Status.PASSED and not finding.has_remark
        if quiet and finding.component not in self._waiting:
            self._show_heading(finding.component)
            self._page.item(MARKS[finding.status], finding.title)
        else:
            self._waiting.setdefault(finding.component, []).append(finding)
        asked = sum(spec.component == finding.component for spec in self._assignment.checks)
        if self._made[finding.component] >= asked and finding.component in self._waiting:
            self._show_component(finding.component)
        if self._spinner is not None:
            total = len(self._assignment.checks)
            self._spinner.update(
                f"{self._done} of {total} checks done" if self._done < total else "Looking at the model"
            )

    def _show_heading(self, component: str) -> None:
        if component != self._headed:
            self._headed = component
            self._page.heading(COMPONENT_TITLES.get(component, component))

    def _show_component(self, component: str) -> None:
        """Show the findings of a component: each cause once, with the checks that fail because of it."""
        findings = self._waiting.pop(component)
        lost = [finding for finding in findings if finding.status is not Status.PASSED]
        shown_causes = (
            *reported_causes(lost),
            *reported_causes([finding for finding in findings if finding.has_remark]),
        )
        causes = {cause.finding.check: cause for cause in shown_causes}
        folded = {finding.check for cause in shown_causes for finding in cause.others}
        self._show_heading(component)
        for finding in findings:
            if finding.check in folded:
                continue
            self._page.item(MARKS[finding.status], finding.title)
            if finding.check in causes:
                self._explain(causes[finding.check])

    def _explain(self, cause: ReportedCause) -> None:
        finding = cause.finding
        if finding.is_advice:
            self._page.detail(f"{finding.message} It costs no points.", indent=6)
        elif finding.status is Status.PASSED:
            self._page.detail(f"A person will take a look: {finding.message} It costs no points.", indent=6)
        else:
            style = "red" if finding.status is Status.FAILED else "yellow"
            self._page.detail(finding.message, style=style, indent=6)
        if finding.hint:
            self._page.detail(f"Try: {finding.hint}", indent=6)
        if finding.where:
            source = self._program.source if self._program else None
            self._page.excerpt(
                finding.where, excerpt(source, finding.where, definition=OF_A_DEFINITION), indent=6
            )
        if cause.others:
            self._page.detail(f"{cause.others_in_words}:", style="dim", indent=6)
        for folded in cause.others:
            self._page.detail(folded.title, style="dim", indent=8)

    def show_rest(self, check: LocalCheck, *, details: bool) -> Outcome:
        """Show everything else, and the verdict."""
        page, program = self._page, check.program
        self._show_names(check)
        self._show_forbidden(check)
        if self._part:
            return show_part_verdict(page, check, self._assignment, self._part)
        self._show_plans(check)
        notes = [
            *(note.text for note in program.notes),
            *(
                f"{named(name)} is not installed here; an inert placeholder module took its place."
                for name in check.absent_modules
            ),
        ]
        notes += unresolved_notes(program)
        if notes:
            page.heading("Notes")
            for note in notes:
                page.item("note", note)
        show_omissions(page, program, details=details, replayed=self._assignment.replays_training)
        return show_verdict(page, check, self._assignment)

    def _show_plans(self, check: LocalCheck) -> None:
        show_calls(self._page, self._assignment)
        parameters = check.parameters  # the checks build the first model alone
        for measure in self._assignment.measures:
            if measure.id in check.plans:
                title = f": {measure.title}" if len(check.plans) > 1 else ""
                self._page.heading(f"What would be trained{title}")
                read = check.program.read_for(measure.id)
                self._page.pairs(training_rows(read, parameters, check.plans[measure.id], measure))
            parameters = None

    def _show_names(self, check: LocalCheck) -> None:
        """Show nearly right names that no check has reported."""
        program = check.program
        reported_places = {
            finding.where
            for finding in check.findings
            if finding.component == SUBMISSION and finding.status is Status.FAILED
        }
        near_names = [near for near in program.near_names if str(near.place) not in reported_places]
        if near_names:
            self._page.heading("Names that are nearly right")
        for near in near_names:
            self._page.item(
                "failed", f"{named(near.found)} was taken for `{near.expected}`. Call it `{near.expected}`."
            )
            self._page.code(str(near.place), line_at(program, str(near.place)), indent=6)

    def _show_forbidden(self, check: LocalCheck) -> None:
        program = check.program
        if program.forbidden or check.forbidden:
            self._page.heading("Parts that are not allowed")
        for use in program.forbidden:
            self._page.item("failed" if use.reached_from else "note", self._forbidden_text(use))
            self._page.code(str(use.place), line_at(program, str(use.place)), indent=6)
        for use in check.forbidden:
            self._page.item(
                "failed", f"`{use.name}` was used when your code ran. {self._rule_reason(use.rule)}"
            )
            self._page.code(str(use.place), line_at(program, str(use.place)), indent=6)

    def _forbidden_text(self, use: ForbiddenUse) -> str:
        rule = next((rule for rule in self._assignment.forbidden if rule.pattern == use.rule), None)
        if not use.reached_from:
            return f"{named(use.name)} is there, but no graded part uses it, so it costs nothing."
        if use.in_training and (rule is None or rule.policy == "forbid"):
            sentence = (
                f"{named(use.name)} is used by the training: a person decides what its accuracy is worth."
            )
            return f"{sentence} {self._rule_reason(use.rule)}"
        where = f"{named(use.name)} is used by {listed([f'`{name}`' for name in use.reached_from])}."
        if rule is not None and rule.policy == "flag":
            return f"{where} {rule.reason}"
        cost = f" It costs the points of {rule.costs}." if rule is not None else ""
        return f"{where} {self._rule_reason(use.rule)}{cost}"

    def _rule_reason(self, pattern: str) -> str:
        return next((rule.reason for rule in self._assignment.forbidden if rule.pattern == pattern), "")


def call_rows(assignment: Assignment) -> list[tuple[str, str]]:
    """The models that are trained by a call, each with its call, as names and values."""
    several = len(assignment.measures) > 1
    return [
        (measure.title if several else "called", call_in_words(measure.call).strip("`"))
        for measure in assignment.measures
        if measure.call is not None
    ]


def show_calls(page: Page, assignment: Assignment) -> None:
    """Print the calls by which the grader trains, where there are any."""
    if rows := call_rows(assignment):
        page.heading("What the grader calls to train")
        page.pairs(rows)


def show_omissions(page: Page, program: Program, *, details: bool, replayed: bool) -> None:
    """Print what is executed neither on loading nor for training, by reason or line by line.

    Args:
        replayed: The grader trains by executing the program's own training.
    """
    omissions = program.omissions
    if not omissions:
        return
    page.heading(f"Left out on loading: {counted(len(omissions), 'statement')}")
    later = ", your loop over epochs when it is trained" if replayed else " with what they need"
    page.detail(f"Definitions are executed on loading{later}; these are not.", indent=2)
    if not details:
        for reason, places in _by_reason(omissions).items():
            page.item("note", f"{reason} ({_listed_places(places)})")
        page.command("Line by line", "grader check --details", indent=2)
        return
    width = max(len(str(omission.place)) for omission in omissions) + 2
    for omission in omissions:
        line = clipped(" ".join(omission.first_line.split()), CODE_WIDTH)
        page.detail(f"{omission.place!s:<{width}}{line:<{CODE_WIDTH + 4}}{omission.reason}", indent=2)


def _by_reason(omissions: Sequence[Omission]) -> dict[str, list[Place]]:
    places: dict[str, list[Place]] = {}
    for omission in omissions:
        places.setdefault(omission.reason, []).append(omission.place)
    return places


def _listed_places(places: Sequence[Place]) -> str:
    """`lines 3, 4 and 7` for a script; `In [4], line 2 (cell 9); ... and 3 more` for a notebook."""
    if len({place.file for place in places}) == 1 and cell_number(places[0].file) is None:
        return f"line{'s' if len(places) > 1 else ''} {listed([str(place.line) for place in places])}"
    shown = "; ".join(map(str, places[:SHOWN_CELLS]))
    return shown if len(places) <= SHOWN_CELLS else f"{shown} and {len(places) - SHOWN_CELLS} more"


def line_at(program: Program | None, where: str) -> str:
    """The line of the student's source at a place; empty when it is not known."""
    lines = excerpt(program.source if program else None, where, definition=2)
    marked = next((index for index, line in enumerate(lines) if line.marked), None)
    if marked is None:
        return ""
    text = lines[marked].text.strip()
    if text.endswith("(") and marked + 1 < len(lines):
        text += lines[marked + 1].text.strip()  # the first line of a longer call says nothing by itself
    return text


def training_rows(
    program: Program, parameters: int | None, plan: Plan, measure: Measure | None = None
) -> list[tuple[str, str]]:
    """What the grader would train, and how, as names and values."""
    recipe = program.recipe
    tuned = {value.name: value.value for value in program.tuned}
    built = [f"{quantity(parameters)} parameters"] if parameters is not None else []
    values = [f"{name} {tuned[name]}" for name in MODEL_VALUES if name in tuned]
    rows = [("model", ", ".join([*built, *values]) or "it is built when it is trained")]
    tried_optimizers = (
        ", ".join(dict.fromkeys(s.optimizer for s in plan.rehearsal.stages)) if plan.rehearsal else ""
    )
    unknown = "none was found" if plan.rehearsal else "a trial of the training shows it"
    optimizer = tuned.get("optimizer") or tried_optimizers or unknown
    settings = [
        f"{name.replace('_', ' ')} {_value_text(tuned[name])}" for name in OPTIMIZER_VALUES if name in tuned
    ]
    rows.append(("optimizer", ", ".join([optimizer, *settings])))
    tried = plan.rehearsal or Rehearsal()
    by_loaders = AS_THE_LOADERS if recipe.loading.statements else ""
    batch = str(tried.batch_size or "") or tuned.get("batch_size") or _one_line(recipe.batch_size)
    batch = batch or by_loaders or "not found: 64, as handed out"
    rows.append(("batch size", batch))
    by_loaders = by_loaders if tried.has_transform or plan.rehearsal is None else ""
    transform = tuned.get("transform") or _one_line(recipe.train_transform) or by_loaders
    transform = transform or "not found: as handed out"
    rows.append(("transform", transform))
    return [*rows, *plan_rows(plan, program.file, measure)]


def _value_text(written: str) -> str:
    """A number as it is; an expression in its place as code, since its value is known only in training."""
    return written if NUMBER.match(written) else as_code(written)


def check_document(path: Path, assignment: Assignment, check: LocalCheck, part: str = "") -> dict[str, Any]:
    """The results of a check as JSON data, for programs; findings have the keys of results.json.

    Args:
        part: The only part that was asked for; the assignment then has its checks alone. Empty: all parts.
    """
    program = check.program
    grade = part_document(check, assignment, part) if part else verdict_document(check, assignment)
    return {
        "assignment": assignment.id,
        "file": path.name,
        "passed": check.passed,
        **grade,
        "findings": [
            {
                "check": finding.check,
                "component": finding.component,
                "status": finding.status.value,
                "blame": finding.blame.value if finding.blame else None,
                "diagnosis": finding.label,
                "message": finding.message,
                "where": finding.where,
                "title": finding.title,
                "hint": finding.hint,
                "because": finding.because,
            }
            for finding in check.findings
        ],
        "parameters": check.parameters,
        "plans": {
            measure.id: dict(plan_rows(check.plans[measure.id], program.read_for(measure.id).file, measure))
            for measure in assignment.measures
            if measure.id in check.plans
        },
        "tuned": [{"name": v.name, "value": v.value, "where": str(v.place)} for v in program.tuned],
        "near_names": [
            {"expected": near.expected, "found": near.found, "where": str(near.place)}
            for near in program.near_names
        ],
        "forbidden": [
            {
                "rule": use.rule,
                "name": use.name,
                "where": str(use.place),
                "reached_from": list(use.reached_from),
            }
            for use in program.forbidden
        ],
        "left_out": [
            {"where": str(omission.place), "line": omission.first_line, "reason": omission.reason}
            for omission in program.omissions
        ],
        "notes": list(program.notes),
    }


def _one_line(text: str | None) -> str:
    return " ".join(text.split()) if text else ""


# --- program view ----------------------------------------------------------------------------------------


NUMBER_WIDTH = 5


def show_program(program: Program, plan: Plan, path: Path, model: str, *, code: bool) -> None:
    """Print what trains the model that counts, and what is left alone.

    Args:
        path: The path of the file.
        model: What people call the model, where several are measured.
        code: Also print the statements.
    """
    page = Page()
    page.heading(f"{path.name}: what trains the {model or 'model that counts'}")
    page.pairs(training_rows(program, None, plan))
    for omission in plan.left_alone:
        page.detail(f"{omission.place}  {omission.first_line}", style="dim", indent=2)
    if code:
        page.heading("Executed to train")
        shown = path.name
        for statement in program.script.statements:
            if statement.place.file != shown:
                shown = statement.place.file
                page.detail(shown, style="dim", indent=0)
            for number, line in enumerate(statement.source.split("\n"), start=statement.place.line):
                if line.strip():
                    click.echo(printable(f"{number:{NUMBER_WIDTH}}  {line}"))
