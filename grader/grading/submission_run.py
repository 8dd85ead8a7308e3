"""Examines a submission: from its files to its evidence.

It has the source parsed, the checks judged, the model trained and the answers drawn, and collects the
evidence. It says whether the homework states the values that were drawn for its student. It also says
whether an earlier run already found out all of this: what has not changed is not examined again. It never
decides about points.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from grader import __version__
from grader.course.composing import source_text
from grader.course.variant_values import marked_values
from grader.domain.analyzed_program import Claim, Note, Program, Statement
from grader.domain.assignment import SUBMISSION, Assignment
from grader.domain.assignment_versions import DRAWN_VALUES_CHECK, DrawnValue, Value, python_text
from grader.domain.errors import GraderError, SubmissionError
from grader.domain.evidence import Blame, Evidence, Finding, Status, TrainedModel
from grader.domain.formatting import about_file, file_name_of, named
from grader.domain.program_run import Plan, plan_of
from grader.domain.run_facts import RunFacts
from grader.domain.submission import Intake, Submission, View
from grader.grading.concurrent_work import GradingStage, Progress, Watcher
from grader.grading.judging import judged
from grader.grading.run import EvidenceBuilder, Run, RunBasis
from grader.grading.training_stage import train, train_longer
from grader.intake import intake as accepted
from grader.intake.file_roles import accepted_files, contents, contents_of_others
from grader.kit.splits import Examples, Splits
from grader.parser.client.drawn_answers import kept_answers
from grader.parser.client.parsed_files import ParserOpener, parsed_program

TITLE = "The homework has the values that were drawn for its student."
MOST = 200  # characters of an assignment statement that are read


def own_values_finding(
    assignment: Assignment, program: Program, values: Mapping[str, Value]
) -> Finding | None:
    """Whether the source states the student's values; None where the assignment marks none at top level.

    It costs nothing by itself: the checks that depend on a value fail with another student's. Only another
    choice of the same value counts as another student's; values that students compute are their own.

    Raises:
        CourseError: A mark in the solution is malformed.
    """
    if not assignment.variant:
        return None
    text = source_text(assignment.folder / "solution.py", "solution.py", assignment.edition)
    variables = {
        mark.variable: mark.name for mark in marked_values(text, "solution.py", values) if mark.variable
    }
    if not variables:
        return None
    drawn_by_name = {value.name: value for value in assignment.variant}
    for variable, name in variables.items():
        assigning = next(
            (statement for statement in reversed(program.statements) if statement.binds == (variable,)), None
        )
        finding = assigning and _mismatch_finding(assigning, variable, drawn_by_name[name], values[name])
        if finding:
            return finding
    return Finding(DRAWN_VALUES_CHECK, SUBMISSION, TITLE, Status.PASSED)


def _mismatch_finding(statement: Statement, variable: str, drawn: DrawnValue, value: Value) -> Finding | None:
    """The finding if a statement gives the variable another choice than the one that was drawn."""
    assigned = re.fullmatch(
        rf"{variable}\s*(?::[^=]*)?=\s*(?P<value>.+)", statement.source[:MOST].strip(), re.DOTALL
    )
    assigned_text = _compact(assigned["value"]) if assigned else ""
    others = [choice for choice in drawn.choices if choice != value]
    another = next((choice for choice in others if _compact(python_text(choice)) == assigned_text), None)
    if another is None:
        return None
    whose = "for each student" if drawn.per_student else "for each term"
    return Finding(
        DRAWN_VALUES_CHECK,
        SUBMISSION,
        TITLE,
        Status.FAILED,
        Blame.STUDENT,
        message=f"`{variable} = {python_text(another)}` is not what was drawn for you: `{drawn.name}` is "
        f"drawn {whose}, and yours is {python_text(value)}.",
        hint=f"Write `{variable} = {python_text(value)}`, as in the copy that was handed out to you.",
        where=str(statement.place),
    )


def _compact(text: str) -> str:
    return "".join(text.split()).replace("'", '"')


# --- finished work ---------------------------------------------------------------------------------------


def is_known(run: RunBasis, earlier: RunFacts, submission: Submission) -> bool:
    """Whether an earlier run was about exactly this submission; otherwise it must be examined.

    It was if the submission, the assignment, the drawn values, the engine and the images are the same, and if
    it was neither a failure of the engine nor unofficial.
    """
    examined_state = (earlier.submission_digest, earlier.assignment_digest, earlier.engine)
    return (
        examined_state == (submission.digest, run.assignment.digest, __version__)
        and earlier.status != "engine_error"
        and _has_same_values(run, earlier, submission)
        and earlier.partial == submission.partial
        # if only checks are asked for, a training that is already known does no harm
        and (run.splits is None or run.splits.are_those_of(earlier))
        and earlier.isolation != "unofficial"
    )


def _has_same_values(run: RunBasis, earlier: RunFacts, submission: Submission) -> bool:
    if not (run.assignment.variant or earlier.variant):
        return True  # there is nothing to draw, which would draw seeds as well
    return earlier.variant == run.draw(submission).values


# --- submission run --------------------------------------------------------------------------------------


def blank_evidence(run: RunBasis, submission: Submission, *, attempt: int, graded_at: datetime) -> Evidence:
    """What is known of a submission before anything of it is read: see `examined`."""
    return Evidence(
        student_id=submission.student_id,
        assignment_id=run.assignment.id,
        submission_digest=submission.digest,
        graded_at=graded_at,
        received_at=submission.received_at,
        delivery=submission.delivery,
        partial=submission.partial,
        team=submission.team,
        origin=submission.origin,
        measure=run.assignment.measures[0].id,
        not_run=() if run.splits is not None or run.assignment.data is None else ("training",),
        engine=__version__,
        assignment_digest=run.assignment.digest,
        attempt=attempt if run.splits is not None else None,
        data_digest=run.splits.digest(attempt) if run.splits is not None else "",
        variant=dict(run.draw(submission).values),
    )


def examined(
    run: Run, submission: Submission, *, attempt: int, graded_at: datetime, watch: Watcher
) -> EvidenceBuilder:
    """The evidence of a submission, with its pictures. A failure of the engine is evidence too.

    Args:
        attempt: Which of the student's attempts it is, 1 for the first: see `attempt_number`.
        graded_at: For the record.
        watch: Called with the progress.
    """
    builder = EvidenceBuilder(blank_evidence(run, submission, attempt=attempt, graded_at=graded_at))
    try:
        _collect(run, submission, builder, watch)
    except SubmissionError as error:
        builder.add(status="refused", reason=str(error))
    except GraderError as error:
        builder.add(status="engine_error", reason=str(error))
    except Exception as error:  # noqa: BLE001 - one submission's failure never touches another's
        builder.add(status="engine_error", reason=f"The grader failed: {type(error).__name__}: {error}")
    watch(Progress(submission.student_id, GradingStage.DONE, 1.0))
    return builder


def examined_longer(
    run: Run,
    submission: Submission,
    earlier: Evidence,
    images: Mapping[str, bytes],
    *,
    graded_at: datetime,
    watch: Watcher,
) -> EvidenceBuilder:
    """The evidence of a submission whose training gets more time; all else stays as it was.

    Args:
        earlier: The evidence so far, with a training that our limit stopped.
        images: The pictures that belong to it.
        graded_at: For the record.
        watch: Called with the progress.
    """
    builder = EvidenceBuilder(replace(earlier, graded_at=graded_at), dict(images))
    try:
        handed_in = _program_again(run, submission)
        if handed_in is not None and run.splits is not None:
            data = run.splits.of(earlier.attempt or 1)
            train_longer(run, data, handed_in[0], submission, builder, watch)
    except Exception as error:  # noqa: BLE001 - what is already known is kept
        sentence = f"Training it again with more time failed ({type(error).__name__}: {error})."
        builder.add(notes=(*builder.evidence.notes, Note(sentence)))
    watch(Progress(submission.student_id, GradingStage.DONE, 1.0))
    return builder


def trained_on(run: Run, submission: Submission, data: Splits | Examples, checked: Evidence) -> Evidence:
    """The evidence of a submission whose checks were judged, with a training on some data.

    Args:
        run: Its hidden data are left alone.
        data: What it is trained and measured on.
        checked: What is known of the submission so far.

    Raises:
        GraderError: The submission cannot be read again, or the grader failed.
    """
    builder = EvidenceBuilder(replace(checked, not_run=()))
    handed_in = _program_again(run, submission)
    if handed_in is not None:
        train(run, data, *handed_in, builder, lambda _: None)
    return builder.evidence


def _program_again(run: Run, submission: Submission) -> tuple[Program, Intake] | None:
    """The program and the files of a submission that was read before; None if there is no code."""
    files = accepted(submission, run.assignment, ParserOpener(run.hosts.parsers))
    return None if files.code is None else (_program(run, files, files.code), files)


def _program(run: Run, files: Intake, code: Path, show: Callable[[View], None] | None = None) -> Program:
    """The program among accepted files.

    Args:
        show: Called with the file as a person reads it.
    """
    return parsed_program(
        run.hosts.parsers,
        file_name_of(code.name),
        code.read_bytes(),
        run.assignment,
        show=show,
        modules=contents(files.modules),
    )


def _collect(run: Run, submission: Submission, builder: EvidenceBuilder, watch: Watcher) -> None:
    watch(Progress(submission.student_id, GradingStage.READING))
    # what is only read is opened by a parser alone; for what runs, the worker's attestation will replace this
    builder.add(attestation=run.hosts.isolation)
    with builder.timed("reading"):
        files = accepted(submission, run.assignment, ParserOpener(run.hosts.parsers))
        builder.add(
            missing=files.missing,
            refused_files=files.refused,
            files=accepted_files(files),
            notes=tuple(map(Note, files.notes)),
        )
    if files.report is not None:
        with builder.timed("pages"):
            builder.keep_answers(*kept_answers(ParserOpener(run.hosts.parsers), files.report))
    with builder.timed("reading"):
        if files.code is None:
            _without_code(files, builder)
            return
        program = _program(run, files, files.code, builder.show)
    builder.add(
        code_file=program.file,
        near_names=program.near_names,
        omissions=program.omissions,
        forbidden=program.forbidden,
        tuned=program.tuned,
        plan=plan_of(program.script) if run.assignment.data is not None else Plan(),
        further={
            measure.id: TrainedModel(plan_of(program.read_for(measure.id).script))
            for measure in run.assignment.measures[1:]
        },
        source=program.source,
        claim=(program.claim or _claim_in_report(run, files)) if run.assignment.data is not None else None,
        shown_epochs=program.shown_epochs,
        notes=(*map(Note, files.notes), *program.notes),
    )
    with builder.timed("checks"):
        seed = run.draw(submission).checks
        _check(run, program, builder, seed, watch, contents_of_others(files, run.assignment))
    if run.splits is not None:
        train(run, run.splits.of(builder.evidence.attempt or 1), program, files, builder, watch)


def _claim_in_report(run: Run, files: Intake) -> Claim | None:
    """The accuracy that the student's report states."""
    report = files.report
    if report is None:
        return None
    return ParserOpener(run.hosts.parsers).claim(report, file_name_of(report.name))


def _without_code(files: Intake, builder: EvidenceBuilder) -> None:
    """Nothing to run: refused if a code file was refused or nothing else was given; else only missing."""
    suffixes = (".py", ".ipynb", ".zip")
    reasons = [
        about_file(file.name, file.reason) for file in files.refused if file.name.lower().endswith(suffixes)
    ]
    if files.submission.partial:
        reasons += [about_file(file.name, file.reason) for file in files.refused] or [
            "It holds no code: give the .py or .ipynb file."
        ]
    if reasons:
        builder.add(status="refused", reason=reasons[0])


def _check(
    run: Run,
    program: Program,
    builder: EvidenceBuilder,
    seed: int,
    watch: Watcher,
    files: Mapping[str, bytes],
) -> None:
    total, done = len(run.assignment.checks), 0
    student_id = builder.evidence.student_id
    watch(Progress(student_id, GradingStage.CHECKS, 0.0, f"0 of {total}"))

    def report(finding: Finding) -> None:
        nonlocal done
        done += 1
        watch(Progress(student_id, GradingStage.CHECKS, done / max(total, 1), f"{done} of {total}"))

    values = builder.evidence.variant
    own_values = own_values_finding(run.assignment, program, values)
    result = judged(
        run.hosts.judges,
        run.hosts.workers,
        program,
        run.assignment,
        seed=seed,
        report=report,
        values=values,
        files=files,
    )
    builder.images |= result.images
    absent = tuple(
        Note(f"{named(name)} is not installed here; an inert placeholder module took its place.")
        for name in result.absent_modules
    )
    builder.add(
        findings=(*result.findings, *filter(None, [own_values])),
        parameters=result.parameters,
        layers=result.layers,
        figures=result.figures,
        notes=(*builder.evidence.notes, *absent, *result.notes),
        attestation=result.attestation or builder.evidence.attestation,
    )
    builder.add_watched(run.assignment, program, result.watched)
