"""One submission, from its files to its evidence.

It has the source parsed, the checks judged, the model trained and the answers drawn, and collects what
was found. It says whether the homework states the values that were drawn for its student, and whether an
earlier run found out all of this already: what nothing has changed about is not done again. It never
decides about points.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from grader import __version__
from grader.course.composing import source_text
from grader.course.variant_values import marked_values
from grader.domain.analyzed_program import Claim, Note, Program, Statement
from grader.domain.assignment import SUBMISSION, Assignment
from grader.domain.assignment_versions import OWN_VALUES, DrawnValue, Value, python_text
from grader.domain.errors import GraderError, SubmissionError
from grader.domain.evidence import Blame, Evidence, Finding, Status, TrainedModel
from grader.domain.formatting import about_file, file_name_of, named
from grader.domain.program_run import Plan, plan_of
from grader.domain.submission import Intake, Submission
from grader.gradebook import RunRecord
from grader.grading.concurrent_work import GradingStage, Progress, Watcher
from grader.grading.judging import judged
from grader.grading.run import EvidenceBuilder, Run, hidden_seed
from grader.grading.training_stage import train, train_longer
from grader.intake import intake as accepted
from grader.intake.acceptance import accepted_files, contents, contents_of_others
from grader.parser.client.drawn_answers import kept_answers
from grader.parser.client.parsed_files import ParserOpener, parsed

TITLE = "The homework has the values that were drawn for its student."
MOST = 200  # characters of an assignment that is looked at


def values_of(run: Run, submission: Submission) -> dict[str, Value]:
    """What was drawn for whoever handed a submission in: of a team, for the first by id."""
    stated = run.assignment.variant
    student_id = submission.team[0] if submission.team else submission.student_id
    return run.course.values(run.assignment.id, stated, student_id) if stated else {}


def own_values_finding(
    assignment: Assignment, program: Program, values: Mapping[str, Value]
) -> Finding | None:
    """What the source states of the values; None where the assignment marks none on its top level.

    It costs nothing by itself: what follows from another's value fails the checks that depend on it. Only
    another choice of the same value is taken for another's; what students compute is theirs.

    Raises:
        CourseError: A mark in the solution is malformed.
    """
    if not assignment.variant:
        return None
    text = source_text(assignment.folder / "solution.py", "solution.py", assignment.edition)
    variables = {
        each.variable: each.name for each in marked_values(text, "solution.py", values) if each.variable
    }
    if not variables:
        return None
    stated = {value.name: value for value in assignment.variant}
    for variable, name in variables.items():
        last = next((one for one in reversed(program.statements) if one.binds == (variable,)), None)
        found = last and _anothers(last, variable, stated[name], values[name])
        if found:
            return found
    return Finding(OWN_VALUES, SUBMISSION, TITLE, Status.PASSED)


def _anothers(statement: Statement, variable: str, stated: DrawnValue, value: Value) -> Finding | None:
    """What is wrong where a statement gives the variable another choice than the one that was drawn."""
    assigned = re.fullmatch(
        rf"{variable}\s*(?::[^=]*)?=\s*(?P<value>.+)", statement.source[:MOST].strip(), re.DOTALL
    )
    written = _compact(assigned["value"]) if assigned else ""
    others = [choice for choice in stated.choices if choice != value]
    another = next((choice for choice in others if _compact(python_text(choice)) == written), None)
    if another is None:
        return None
    whose = "for each student" if stated.per_student else "for each term"
    return Finding(
        OWN_VALUES,
        SUBMISSION,
        TITLE,
        Status.FAILED,
        Blame.STUDENT,
        message=f"`{variable} = {python_text(another)}` is not what was drawn for you: `{stated.name}` is "
        f"drawn {whose}, and yours is {python_text(value)}.",
        hint=f"Write `{variable} = {python_text(value)}`, as in the copy that was handed out to you.",
        where=str(statement.place),
    )


def _compact(text: str) -> str:
    return "".join(text.split()).replace("'", '"')


# --- finished work ---------------------------------------------------------------------------------------


def is_known(run: Run, found: Evidence, submission: Submission) -> bool:
    """Whether what an earlier run found out is about just this submission: else it must be examined.

    It counts where the submission, the assignment, the drawn values, the engine and the images are the same,
    and was neither a failure of ours nor unofficial.
    """
    return (
        _is_same(run, found, submission)
        and found.variant == values_of(run, submission)
        and found.partial == submission.partial
        # checks alone are asked for: a training that is known already does no harm
        and (run.splits is None or run.splits.are_those_of(found))
        and found.attestation.level != "unofficial"
    )


def may_be_known(run: Run, record: RunRecord, submission: Submission) -> bool:
    """Whether `is_known` may say so, by what can be asked without reading evidence: if not, it will not."""
    never_trained = record.data_digest == ""
    return _is_same(run, record, submission) and (run.splits is None or not never_trained)


def _is_same(run: Run, found: Evidence | RunRecord, submission: Submission) -> bool:
    same = (found.submission_digest, found.assignment_digest, found.engine)
    wanted = (submission.digest, run.assignment.digest, __version__)
    return same == wanted and found.status != "engine_error"


# --- submission run --------------------------------------------------------------------------------------


def examined(
    run: Run, submission: Submission, *, attempt: int, graded_at: datetime, watch: Watcher
) -> EvidenceBuilder:
    """The evidence of one submission, with its pictures. A failure of ours is evidence too.

    Args:
        attempt: Which of the student's attempts it is, 1 for the first: see `attempt_number`.
        graded_at: For the record.
        watch: Told how far it is.
    """
    evidence = Evidence(
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
        variant=values_of(run, submission),
    )
    found = EvidenceBuilder(evidence)
    try:
        _collect(run, submission, found, watch)
    except SubmissionError as error:
        found.add(status="refused", reason=str(error))
    except GraderError as error:
        found.add(status="engine_error", reason=str(error))
    except Exception as error:  # noqa: BLE001 - one submission's failure never touches another's
        found.add(status="engine_error", reason=f"The grader failed: {type(error).__name__}: {error}")
    watch(Progress(submission.student_id, GradingStage.DONE, 1.0))
    return found


def examined_longer(
    run: Run,
    submission: Submission,
    earlier: Evidence,
    images: Mapping[str, bytes],
    *,
    graded_at: datetime,
    watch: Watcher,
) -> EvidenceBuilder:
    """The evidence of a submission whose training gets more time; all else stays as it was found.

    Args:
        earlier: What was found, with a training that our limit stopped.
        images: The pictures that belong to it.
        graded_at: For the record.
        watch: Told how far it is.
    """
    found = EvidenceBuilder(replace(earlier, graded_at=graded_at), dict(images))
    try:
        files = accepted(submission, run.assignment, ParserOpener(run.hosts.parsers))
        if files.code is not None and run.splits is not None:
            program = parsed(
                run.hosts.parsers,
                file_name_of(files.code.name),
                files.code.read_bytes(),
                run.assignment,
                modules=contents(files.modules),
            )
            train_longer(run, run.splits.of(earlier.attempt or 1), program, submission, found, watch)
    except Exception as error:  # noqa: BLE001 - what is known already is kept
        told = f"Training it again with more time failed ({type(error).__name__}: {error})."
        found.add(notes=(*found.evidence.notes, Note(told)))
    watch(Progress(submission.student_id, GradingStage.DONE, 1.0))
    return found


def _collect(run: Run, submission: Submission, found: EvidenceBuilder, watch: Watcher) -> None:
    watch(Progress(submission.student_id, GradingStage.READING))
    # of what is only read, a parser is all that ever opens it; of what runs, the worker has the word
    found.add(attestation=run.hosts.isolation)
    with found.timed("reading"):
        files = accepted(submission, run.assignment, ParserOpener(run.hosts.parsers))
        found.add(
            missing=files.missing,
            refused_files=files.refused,
            files=accepted_files(files),
            notes=tuple(map(Note, files.notes)),
        )
    if files.report is not None:
        with found.timed("pages"):
            found.keep_answers(*kept_answers(ParserOpener(run.hosts.parsers), files.report))
    with found.timed("reading"):
        if files.code is None:
            _without_code(files, found)
            return
        program = parsed(
            run.hosts.parsers,
            file_name_of(files.code.name),
            files.code.read_bytes(),
            run.assignment,
            show=found.show,
            modules=contents(files.modules),
        )
    found.add(
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
    with found.timed("checks"):
        seed = hidden_seed(run.course, submission, "checks")
        _check(run, program, found, seed, watch, contents_of_others(files, run.assignment))
    if run.splits is not None:
        train(run, run.splits.of(found.evidence.attempt or 1), program, files, found, watch)


def _claim_in_report(run: Run, files: Intake) -> Claim | None:
    """The accuracy that the student's report names."""
    report = files.report
    if report is None:
        return None
    return ParserOpener(run.hosts.parsers).claim(report, file_name_of(report.name))


def _without_code(files: Intake, found: EvidenceBuilder) -> None:
    """Nothing to run: refused when a code file was, or when nothing else was given; else only missing."""
    suffixes = (".py", ".ipynb", ".zip")
    reasons = [
        about_file(file.name, file.reason) for file in files.refused if file.name.lower().endswith(suffixes)
    ]
    if files.submission.partial:
        reasons += [about_file(file.name, file.reason) for file in files.refused] or [
            "It holds no code: give the .py or .ipynb file."
        ]
    if reasons:
        found.add(status="refused", reason=reasons[0])


def _check(
    run: Run,
    program: Program,
    found: EvidenceBuilder,
    seed: int,
    watch: Watcher,
    files: Mapping[str, bytes],
) -> None:
    total, done = len(run.assignment.checks), 0
    student_id = found.evidence.student_id
    watch(Progress(student_id, GradingStage.CHECKS, 0.0, f"0 of {total}"))

    def report(finding: Finding) -> None:
        nonlocal done
        done += 1
        watch(Progress(student_id, GradingStage.CHECKS, done / max(total, 1), f"{done} of {total}"))

    values = found.evidence.variant
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
    found.images |= result.images
    absent = tuple(
        Note(f"{named(name)} is not installed here; an inert stand-in took its place.")
        for name in result.stand_ins
    )
    found.add(
        findings=(*result.findings, *filter(None, [own_values])),
        parameters=result.parameters,
        layers=result.layers,
        figures=result.figures,
        notes=(*found.evidence.notes, *absent, *result.notes),
        attestation=result.attestation or found.evidence.attestation,
    )
    found.add_watched(run.assignment, program, result.watched)
