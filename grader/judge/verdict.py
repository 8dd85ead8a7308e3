"""Verdicts: turns the way in which a check ended into a finding, with status, blame and words.

`AssertionError`, `Mismatch` and a worker's end, time-out or nonsense are the student's; engine errors are
ours; `Undecided` and anything else are the instructor's. It words why a part cannot be used, what was raised
and how a worker ended. Hints for common exceptions go by the words of a message and may be wrong. The student
may have written an exception's message: it never proves that a limit was hit. `grader.scoring` decides what a
finding costs.

Tests: tests/courses/test_provided_files.py, tests/judge/test_examination.py, tests/judge/test_folding.py,
tests/judge/test_verdict.py
"""

import difflib
import re
import traceback
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader.domain.analyzed_program import Program, line_at, place_of
from grader.domain.assignment import CheckSpec
from grader.domain.errors import CourseError, EngineError, SandboxError
from grader.domain.evidence import Blame, Finding, FindingKind, Status
from grader.domain.formatting import as_code, named
from grader.kit import Cause, Mismatch, Undecided
from grader.protocol.deadlines import BusyMachineError
from grader.protocol.error_kinds import RAISED, gap_in_words, is_refused_memory
from grader.protocol.link import StudentRaised, WorkerFault
from grader.protocol.replies import Loaded, Problem
from grader.protocol.worker_reports import error_for_want, not_provided, raised_at, unwritten
from grader.sandbox.process_limits import ProcessLimits

# of other packages: what they lack no student assigns
_NOT_OWN = r"Tensor|ndarray|numpy\.\w+|list|tuple|dict|set|str|int|float|bool|NoneType|function|module"
_HINTS = (
    (
        r"URLError|OfflineModeIsEnabled|Max retries exceeded|ProxyError|name resolution|ConnectError",
        "There is no network where homework is executed, here and where it is graded: nothing is downloaded.",
    ),
    (
        r"does not require grad",
        "backward() has nothing to follow: is the forward pass under torch.no_grad(), or was the graph cut "
        "by .item(), .detach() or argmax?",
    ),
    (
        r"mat1 and mat2 shapes cannot be multiplied|size mismatch",
        "A linear layer was made for a different number of features: compare the last axis of "
        "its input with in_features.",
    ),
    (
        r"[Tt]he size of tensor a \(\d+\) must|Sizes of tensors must match|shape .* is invalid for input",
        "Two shapes do not fit: print x.shape before that line, also for sizes other than the default.",
    ),
    (
        r"Error while processing rearrange|EinopsError",
        "The pattern does not fit the shape: the named axes must multiply to the real ones.",
    ),
    (
        r"expected scalar type|must have the same dtype|[Ee]xpected .*(Float|Double|Long)",
        "Two tensors have different types: labels are int64, everything else float32.",
    ),
    (
        r"a leaf Variable that requires grad",
        "A parameter is changed in place: write y = x + ..., not x += ....",
    ),
    (
        r"modified by an inplace operation",
        "Something that backward() needs was changed in place: write y = x + ..., not x += ....",
    ),
    (
        r"backward through the graph a second time",
        "backward() was called twice for the same loss, or a loss from an earlier batch was kept: use "
        ".item().",
    ),
    (
        rf"'(?!({_NOT_OWN})')[\w.]+' object has no attribute",
        "Is it assigned in __init__, under exactly this name, after super().__init__()?",
    ),
    (r"cannot assign module before|cannot assign parameters before", "Call super().__init__() first."),
    (
        r"only one element tensors can be converted|can only convert",
        "A single number is needed here, but a tensor of several came: reduce it first, "
        "as with mean() or sum().",
    ),
)
# what was called, as in `ViT.forward() missing 1 required positional argument: 'x'`
_CALLED = re.compile(
    r"(\w+)(?:\.\w+)?\(\) (?:got an unexpected keyword|missing \d+ required|takes (?:from )?\d)"
)
_SIGNATURES = "The signatures are the template's: compare the names and the order of the arguments."


def hint_of(kind: str, message: str, graded: Collection[str] = ()) -> str:
    """What to look for when the student's code raised an exception; empty if it is not a common one.

    Args:
        kind: The exception's class name.
        message: Its text.
        graded: The names whose signatures are the template's.
    """
    if (called := _CALLED.match(message)) is not None:
        return _SIGNATURES if called[1] in graded else ""
    text = f"{kind}: {message}"
    return next((hint for pattern, hint in _HINTS if re.search(pattern, text)), "")


# --- fault -----------------------------------------------------------------------------------------------


HAND_IT_IN = "Hand in that file along with this one, or write the part into this file."


def explained(fault: WorkerFault) -> str:
    """What happened to a worker, as a clause: `it did not return within 10 s`."""
    if fault.kind == "time" and fault.seconds is not None:
        return f"it did not return within {fault.seconds:.0f} s"
    if fault.kind in ("time", "death"):
        return str(fault)
    return "it wrote something of its own where only answers to the grader belong"


def raised(problem: Problem, program: Program, granted: ProcessLimits | None, *, assignment: str = "") -> str:
    """What was raised, as a clause: `RuntimeError: “shapes differ” at `x = self.proj(x)``.

    The student may have written the exception's message: a limit is known to have been hit only if it ended
    the process. If a limited resource was refused, the limit is mentioned too.

    Args:
        program: Its line is shown.
        granted: The worker's limits; None if it has none.
        assignment: Its id.
    """
    place = place_of(problem.where)
    line = line_at(program.source, place) if place is not None else None
    at_line = f" at {as_code(line)}" if line else ""
    if problem.wanted:
        return f"{error_for_want(problem)}{at_line}: {not_provided(problem.wanted, assignment)}"
    limit = f"; {granted.in_words(problem.resource)}" if granted is not None and problem.resource else ""
    return f"{problem}{at_line}{limit}"


def cannot_be_had(
    name: str,
    kind: str,
    actual_kind: str | None,
    program: Program,
    loaded: Loaded,
    granted: ProcessLimits | None = None,
    *,
    assignment: str = "",
) -> Mismatch:
    """Why a graded name cannot be used, as a Mismatch."""
    error = _cannot_be_had(name, kind, actual_kind, program, loaded, granted, assignment)
    error.cause, error.concerns = Cause.NOT_LOADED, name
    return error


def _cannot_be_had(
    name: str,
    kind: str,
    actual_kind: str | None,
    program: Program,
    loaded: Loaded,
    granted: ProcessLimits | None,
    assignment: str,
) -> Mismatch:
    place = (program.defined or {}).get(name)
    if module := _absent_module(name, program, loaded):
        return Mismatch(_not_handed_in(name, module), hint=HAND_IT_IN, where=str(place) if place else "")
    if actual_kind is not None:
        return Mismatch(
            f"`{name}` should be a {kind}, but it is something else.", where=str(place) if place else ""
        )
    for problem in loaded.problems:
        where = raised_at(problem, program)
        if place is not None and where:
            return Mismatch(
                f"`{name}` could not be loaded: {raised(problem, program, granted, assignment=assignment)}.",
                hint="The rest of the file was loaded all the same; fix this line first.",
                where=where,
            )
    if place is not None:
        return Mismatch(f"`{name}` is defined, but it could not be loaded.", where=str(place))
    broken = next((omission for omission in program.omissions if omission.broken), None)
    if broken is not None:
        return Mismatch(
            f"There is no `{name}`; {broken.place} was left out: {broken.reason}.",
            hint="Fix that cell first, then restart and run everything once.",
            diagnosis=FindingKind.BROKEN_CELL,
            where=str(broken.place),
        )
    similar = difflib.get_close_matches(name, [n for s in program.statements for n in s.binds], 1, 0.6) or [
        n for s in program.statements if s.kind != "import" for n in s.binds if _abbreviates(name, n)
    ]
    hint = (
        f"There is a {named(similar[0])}: is that the one you mean?"
        if similar
        else "Keep the template's names."
    )
    return Mismatch(f"The file defines no {kind} `{name}`.", hint=hint, diagnosis=FindingKind.MISSING_NAME)


def _abbreviates(short: str, name: str) -> bool:
    """Whether one name abbreviates another: `ViT` and `VisionTransformer` have the same capitals."""
    capitals = [letter for letter in short if letter.isupper()]
    return (
        len(capitals) > 1
        and len(short) < len(name)
        and [letter for letter in name if letter.isupper()] == capitals
        and name.startswith(short[0])
    )


def _not_handed_in(name: str, module: str) -> str:
    return (
        f"`{name}` is imported from `{module}`, but no file {module}.py was handed in, and no library of "
        "that name is installed here."
    )


def _absent_module(name: str, program: Program, loaded: Loaded) -> str:
    """The module that a graded name is imported from, if it is missing; else empty."""
    absent = {module.partition(".")[0] for module in loaded.absent_modules}
    binding = [line.source for line in program.statements if name in line.binds] if absent else []
    match = re.match(r"from\s+(\w+)", binding[-1].strip()) if binding else None
    return match[1] if match and match[1] in absent else ""


def _absent_within(component: str, program: Program, loaded: Loaded | None) -> Iterator[tuple[str, str]]:
    """(Graded name, module) of what a part uses and imports from a missing module."""
    if loaded is None or not loaded.absent_modules:
        return
    source = "\n".join(statement.source for statement in program.statements if component in statement.binds)
    for name in loaded.kinds:
        module = _absent_module(name, program, loaded)
        if module and name != component and re.search(rf"\b{name}\b", source):
            yield name, module


def explained_mismatch(
    fault: StudentRaised,
    component: str,
    label: str,
    program: Program,
    loaded: Loaded | None = None,
    granted: ProcessLimits | None = None,
    *,
    assignment: str = "",
) -> Mismatch:
    """What the student's code raised, as a Mismatch.

    Args:
        label: What was called, in our words.
        loaded: What was loaded of the program; None: it is not loaded.
        assignment: Its id.
    """
    problem = _first_cause(fault.problem, program, loaded)
    where = raised_at(problem, program)
    for name, module in _absent_within(component, program, loaded):
        return Mismatch(
            f"`{component}` uses `{name}`. {_not_handed_in(name, module)}",
            hint=HAND_IT_IN,
            where=str((program.defined or {}).get(name, "")),
        )
    if fault.gap and fault.gap not in RAISED:
        return Mismatch(f"`{label}` cannot be made: {gap_in_words(fault.gap, program.recipe)}.")
    if problem.type == "NotImplementedError":
        part = unwritten(problem, program.defined or {}) or component
        return Mismatch(
            f"`{part}` is not implemented yet.",
            hint="Replace the `raise NotImplementedError` line with your code.",
            diagnosis=FindingKind.NOT_IMPLEMENTED,
            where=where,
            cause=Cause.NOT_IMPLEMENTED,
            concerns=part.partition(".")[0],
        )
    return Mismatch(
        f"`{label}` raised {raised(problem, program, granted, assignment=assignment)}.",
        hint="" if problem.wanted else hint_of(problem.type, problem.message.text, program.defined or {}),
        where=where,
        cause=Cause.RAISED if where else None,  # without a line it is not known whether it is the same
        concerns=f"{problem.type} at {where}",
    )


def left_out(problem: Problem, component: str, program: Program) -> str:
    """Why a part lacks a name that a line of the file would bind, as a sentence; empty if that is not why.

    Whoever runs the whole file has such a value, as of `counts = len(train_set)`.
    """
    missing = _missing_name(problem)
    if not missing:
        return ""
    bound = program.unexecuted(missing)
    if bound is None:
        return ""
    place, reason = bound
    return (
        f"`{component}` uses {named(missing)}, which is bound at {place}. The checks do not execute that "
        f"line: {reason}."
    )


def _missing_name(problem: Problem) -> str:
    missing = re.search(r"name '(\w+)' is not defined", problem.message.text)
    return missing[1] if missing is not None and problem.type == "NameError" else ""


def _first_cause(problem: Problem, program: Program, loaded: Loaded | None) -> Problem:
    """What was raised on loading for want of weights, if that is why a name is missing."""
    missing = _missing_name(problem)
    for earlier in loaded.problems if missing and loaded is not None else ():
        if earlier.wanted and missing in _bound_at(earlier.where, program):
            return earlier
    return problem


def _bound_at(where: str, program: Program) -> frozenset[str]:
    """The names that the statement at a line would bind."""
    place = place_of(where)
    names: set[str] = set()
    if place is None:
        return frozenset()
    for statement in program.statements:
        within = place.line - statement.place.line
        if statement.place.file == place.file and 0 <= within <= statement.source.count("\n"):
            names.update(statement.binds)
    return frozenset(names)


# --- verdict ---------------------------------------------------------------------------------------------


MAX_MESSAGE = 3000  # characters: it may contain a worker's words
SEVERITY = [Status.ERRORED, Status.FAILED, Status.SKIPPED, Status.PASSED]


def finding(
    spec: CheckSpec, error: BaseException | None, *, where: str = "", seconds: float = 0.0
) -> Finding:
    """The finding of a check.

    Args:
        error: What it raised; None if it passed.
        where: The component's place in the student's file, unless the error knows a better one.

    Returns:
        `AssertionError` and `Mismatch` are the student's, and so are a worker's death, time-out or
        nonsense; an EngineError is ours; `Undecided` and anything else are the instructor's. Messages
        never contain pytest's own representation of a failure.
    """

    def found(
        status: Status,
        blame: Blame,
        message: str,
        hint: str = "",
        *,
        place: str = where,
        diagnosis: str | None = None,
        kind: FindingKind | None = None,
    ) -> Finding:
        return Finding(
            check=spec.id,
            component=spec.component,
            title=spec.title,
            status=status,
            blame=blame,
            diagnosis=diagnosis,
            message=message[:MAX_MESSAGE],
            hint=hint,
            where=place,
            seconds=seconds,
            kind=kind,
        )

    if error is None:
        return Finding(spec.id, spec.component, spec.title, Status.PASSED, seconds=seconds)
    if isinstance(error, Mismatch):
        saw = error.diagnosis if isinstance(error.diagnosis, FindingKind) else None
        return found(
            Status.FAILED,
            Blame.STUDENT,
            error.message,
            error.hint,
            place=error.where or where,
            diagnosis=error.diagnosis if saw is None else None,
            kind=saw,
        )
    if isinstance(error, WorkerFault):
        message = f"The check could not be finished: {explained(error)}."
        hints = {
            "time": "Look for a loop that never ends, or for work that grows with the number of calls.",
            "death": "The program ended in the middle: look for exit calls and for very large tensors.",
        }
        kinds = {"time": FindingKind.HANGS, "death": FindingKind.DIES, "nonsense": FindingKind.NONSENSE}
        return found(Status.FAILED, Blame.STUDENT, message, hints.get(error.kind, ""), kind=kinds[error.kind])
    if isinstance(error, AssertionError):
        return found(Status.FAILED, Blame.STUDENT, _authors_message(error) or spec.title)
    if isinstance(error, Undecided):
        sentence = f"A person must look at this: {error}"
        return found(Status.ERRORED, Blame.INSTRUCTOR, sentence, kind=FindingKind.UNDECIDED)
    if is_refused_memory(error):
        message = "The judge's own memory was not enough for the answers of the submission's code."
        return found(Status.ERRORED, Blame.ENGINE, f"{message} It costs no points.")
    if isinstance(error, EngineError):
        return found(Status.ERRORED, Blame.ENGINE, f"{error} It costs no points.", kind=_kind_of_ours(error))
    if isinstance(error, CourseError):  # its message is ours; other exceptions' may be the student's
        message = f"The check itself failed ({spec.file}): {error} It costs no points."
        return found(Status.ERRORED, Blame.INSTRUCTOR, message)
    file = _line_of(spec, error)
    return found(
        Status.ERRORED,
        Blame.INSTRUCTOR,
        f"The check itself failed ({type(error).__name__} in {file}). It costs no points.",
    )


def _kind_of_ours(error: EngineError) -> FindingKind | None:
    if isinstance(error, BusyMachineError):
        return FindingKind.BUSY_MACHINE
    return FindingKind.NO_PROCESS if isinstance(error, SandboxError) else None


def _line_of(spec: CheckSpec, error: BaseException) -> str:
    """The check's file, with the line that an error came from if it came from one: `test_parts.py:41`."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).name == spec.file]
    return f"{spec.file}:{lines[-1]}" if lines else spec.file


def shown(spec: CheckSpec) -> Finding:
    """A check that was not run, because other checks have passed that show what it asks for."""
    return Finding(spec.id, spec.component, spec.title, Status.PASSED, because=spec.shown_by[0])


def skipped(
    spec: CheckSpec,
    reason: str,
    *,
    where: str = "",
    blame: Blame = Blame.STUDENT,
    because: str | None = None,
) -> Finding:
    """A check that was not tried, with the reason.

    Args:
        because: The check that has the cause, if one has it.
    """
    status = Status.SKIPPED if blame is Blame.STUDENT else Status.ERRORED
    return Finding(
        spec.id, spec.component, spec.title, status, blame, None, reason, "", where, because=because
    )


@dataclass(frozen=True)
class PolicyNote:
    """What the course's policy says of code that is unusual but not a mistake in itself.

    Attributes:
        policy: The key in [policies] of assignment.toml.
        is_advice: The student reads it; otherwise a person looks at it.
        sentence: What the code does and what the handout asks for.
        hint: What to try.
        look_for: Kinds of code that mark the line, as of a known mistake.
    """

    policy: str
    is_advice: bool
    sentence: str
    hint: str = ""
    look_for: str = ""


def decisive(notes: Sequence[PolicyNote]) -> PolicyNote | None:
    """The note that a finding is named after: the first for a person, else the first advice."""
    return min(notes, key=lambda note: note.is_advice, default=None)


def noted(result: Finding, notes: Sequence[PolicyNote], where: str) -> Finding:
    """A finding that passed, with what a person should look at, or else with what would be better.

    Args:
        where: The line in the student's file.
    """
    first = decisive(notes)
    if result.status is not Status.PASSED or first is None:
        return result
    of_a_kind = [note.sentence for note in notes if note.is_advice == first.is_advice]
    return replace(
        result,
        kind=FindingKind.ADVICE if first.is_advice else None,
        policy=first.policy,
        message=" ".join(dict.fromkeys(of_a_kind)),
        hint=first.hint if first.is_advice else "",
        where=where,
    )


def worst(findings: Sequence[Finding]) -> Finding:
    """The worst of a parametrized check's findings; if all passed, one with a remark, a person's first."""
    return min(
        findings,
        key=lambda result: (SEVERITY.index(result.status), not result.flagged, not result.is_advice),
    )


def _authors_message(error: AssertionError) -> str:
    """The message that the check's author wrote, without what pytest's rewriting adds."""
    text = str(error).split("\nassert ")[0]
    return "" if text.startswith("assert ") else text
