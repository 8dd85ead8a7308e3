"""Explanations of faults: why a part cannot be had, what was raised, how a worker ended.

It decides the words, the place and the diagnosis of a `Mismatch`. A missing name gets a similar one as a
hint, by spelling only. What an exception says is the student's: it never proves that a limit was hit.
`verdict` decides whose fault a finding is.

Tests: tests/judge/test_verdict.py, tests/judge/test_examination.py, tests/courses/test_provided_files.py
"""

import difflib
import re
from collections.abc import Iterator

from grader.domain.evidence import FindingKind
from grader.domain.program import Program, line_at, place_of
from grader.domain.quoting import as_code, named
from grader.judge.known_errors import hint_of
from grader.kit import Cause, Mismatch
from grader.protocol.link import StudentRaised, WorkerFault
from grader.protocol.raised import error_for_want, not_provided, raised_at, unwritten
from grader.protocol.recipe_gaps import RAISED, gap_in_words
from grader.protocol.replies import Loaded, Problem
from grader.sandbox.limits import ProcessLimits

HAND_IT_IN = "Hand that file in beside this one, or write the part into this file."


def explained(fault: WorkerFault) -> str:
    """What happened to a worker, as a clause: `it did not return within 10 s`."""
    if fault.kind == "time" and fault.seconds is not None:
        return f"it did not return within {fault.seconds:.0f} s"
    if fault.kind in ("time", "death"):
        return str(fault)
    return "it wrote something of its own where only answers to the grader belong"


def raised(problem: Problem, program: Program, granted: ProcessLimits | None, *, assignment: str = "") -> str:
    """What was raised, as a clause: `RuntimeError: “shapes differ” at `x = self.proj(x)``.

    What the exception says is the student's, whatever it says: that a limit was hit is known only of a
    process that it ended. Where something was refused that is limited, the limit is told beside it.

    Args:
        program: Whose line is shown.
        granted: What holds the worker; None where nothing does.
        assignment: Its id.
    """
    place = place_of(problem.where)
    line = line_at(program.source, place) if place is not None else None
    at = f" at {as_code(line)}" if line else ""
    if problem.wanted:
        return f"{error_for_want(problem)}{at}: {not_provided(problem.wanted, assignment)}"
    limit = f"; {granted.in_words(problem.resource)}" if granted is not None and problem.resource else ""
    return f"{problem}{at}{limit}"


def cannot_be_had(
    name: str,
    kind: str,
    found: str | None,
    program: Program,
    loaded: Loaded,
    granted: ProcessLimits | None = None,
    *,
    assignment: str = "",
) -> Mismatch:
    """Why a graded name cannot be used, as a Mismatch."""
    error = _cannot_be_had(name, kind, found, program, loaded, granted, assignment)
    error.cause, error.concerns = Cause.NOT_LOADED, name
    return error


def _cannot_be_had(
    name: str,
    kind: str,
    found: str | None,
    program: Program,
    loaded: Loaded,
    granted: ProcessLimits | None,
    assignment: str,
) -> Mismatch:
    place = (program.defined or {}).get(name)
    if module := _absent_module(name, program, loaded):
        return Mismatch(_not_handed_in(name, module), hint=HAND_IT_IN, where=str(place) if place else "")
    if found is not None:
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
    broken = next((left for left in program.omissions if left.broken), None)
    if broken is not None:
        return Mismatch(
            f"There is no `{name}`; {broken.place} was left out: {broken.reason}.",
            hint="Fix that cell first, then restart and run everything once.",
            diagnosis=FindingKind.BROKEN_CELL,
            where=str(broken.place),
        )
    similar = difflib.get_close_matches(name, [n for s in program.statements for n in s.binds], 1, 0.6)
    hint = f"There is a {named(similar[0])}: is it meant?" if similar else "Keep the template's names."
    return Mismatch(f"The file defines no {kind} `{name}`.", hint=hint, diagnosis=FindingKind.MISSING_NAME)


def _not_handed_in(name: str, module: str) -> str:
    return (
        f"`{name}` is imported from `{module}`, but no file {module}.py was handed in, and no library of "
        "that name is installed here."
    )


def _absent_module(name: str, program: Program, loaded: Loaded) -> str:
    """The module that a graded name is imported from, if it is not there; else empty."""
    absent = {each.partition(".")[0] for each in loaded.stand_ins}
    binding = [each.source for each in program.statements if name in each.binds] if absent else []
    found = re.match(r"from\s+(\w+)", binding[-1].strip()) if binding else None
    return found[1] if found and found[1] in absent else ""


def _absent_within(component: str, program: Program, loaded: Loaded | None) -> Iterator[tuple[str, str]]:
    """(Graded name, module) of what a part uses and is imported from a module that is not there."""
    if loaded is None or not loaded.stand_ins:
        return
    own = "\n".join(each.source for each in program.statements if component in each.binds)
    for name in loaded.kinds:
        module = _absent_module(name, program, loaded)
        if module and name != component and re.search(rf"\b{name}\b", own):
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
        loaded: What is there of the program; None: it is not loaded.
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
            hint="Replace the `raise NotImplementedError` line by your code.",
            diagnosis=FindingKind.NOT_IMPLEMENTED,
            where=where,
            cause=Cause.NOT_IMPLEMENTED,
            concerns=part.partition(".")[0],
        )
    return Mismatch(
        f"`{label}` raised {raised(problem, program, granted, assignment=assignment)}.",
        hint="" if problem.wanted else hint_of(problem.type, problem.message.text),
        where=where,
        cause=Cause.RAISED if where else None,  # without a line nobody knows whether it is the same
        concerns=f"{problem.type} at {where}",
    )


def _first_cause(problem: Problem, program: Program, loaded: Loaded | None) -> Problem:
    """What was raised on loading for want of weights, where a name that is not there came of it."""
    missing = re.search(r"name '(\w+)' is not defined", problem.message.text)
    if problem.type != "NameError" or missing is None or loaded is None:
        return problem
    for earlier in loaded.problems:
        if earlier.wanted and missing[1] in _bound_at(earlier.where, program):
            return earlier
    return problem


def _bound_at(where: str, program: Program) -> frozenset[str]:
    """The names that the statement at a line would bind."""
    place = place_of(where)
    found: set[str] = set()
    if place is None:
        return frozenset()
    for statement in program.statements:
        within = place.line - statement.place.line
        if statement.place.file == place.file and 0 <= within <= statement.source.count("\n"):
            found.update(statement.binds)
    return frozenset(found)
