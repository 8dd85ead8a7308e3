"""Whose fault it is, in words."""

import difflib
import re

from grader.domain.program import Program
from grader.judge.known_errors import hint_of
from grader.kit import Mismatch
from grader.protocol.link import StudentRaised, WorkerFault
from grader.protocol.replies import Loaded, Problem
from grader.sandbox.limits import ProcessLimits

BROKEN_CELL = "is not correct Python"  # what the analysis says of a cell that it had to set aside


# how the limits that end nothing show themselves: limit -> in the exception's type and words
SIGNS = (
    ("memory", r"^MemoryError|(?:can't|[Cc]annot|[Cc]ould not|not enough) .*memory"),
    ("file_size", r"\[Errno 27\]"),
    ("disk", r"\[Errno 28\]"),
    ("writing", r"PytorchStreamWriter failed|inline_container.*unexpected pos"),
    ("open_files", r"\[Errno 24\]"),
    ("processes", r"can't start new thread"),
)


def explained(fault: WorkerFault) -> str:
    """What happened to a worker, as a clause: `it did not return within 10 s`."""
    if fault.kind == "time" and fault.seconds is not None:
        return f"it did not return within {fault.seconds:.0f} s"
    if fault.kind in ("time", "death"):
        return str(fault)
    return "it wrote something of its own where only answers to the grader belong"


def limit_hit(problem: Problem, granted: ProcessLimits | None) -> str:
    """The limit that an exception of the student's is due to, to stand behind it: `; it used more than ...`.

    Args:
        granted: What holds the worker; None where nothing does.
    """
    said = f"{problem.type}: {problem.message}"
    limit = next((limit for limit, sign in SIGNS if re.search(sign, said)), None)
    return f"; {granted.exceeded(limit)}" if granted is not None and limit is not None else ""


def cannot_be_had(
    name: str,
    kind: str,
    found: str | None,
    program: Program,
    loaded: Loaded,
    granted: ProcessLimits | None = None,
) -> Mismatch:
    """Why a graded name cannot be used, as a Mismatch."""
    place = (program.defined or {}).get(name)
    if found is not None:
        return Mismatch(
            f"`{name}` should be a {kind}, but it is something else.", where=str(place) if place else ""
        )
    for problem in loaded.problems:
        if place is not None and problem.where:
            reason = f"{problem.type}: {problem.message}{limit_hit(problem, granted)}"
            return Mismatch(
                f"`{name}` could not be loaded: {reason}.",
                hint="The rest of the file was loaded all the same; mend this line first.",
                where=problem.where,
            )
    if place is not None:
        return Mismatch(f"`{name}` is defined, but it could not be loaded.", where=str(place))
    broken = next((left for left in program.omissions if BROKEN_CELL in left.reason), None)
    if broken is not None:
        return Mismatch(
            f"There is no `{name}`; {broken.place} was left out: {broken.reason}.",
            hint="Mend that cell first, then restart and run everything once.",
            diagnosis="broken_cell",
            where=str(broken.place),
        )
    similar = difflib.get_close_matches(name, [n for s in program.statements for n in s.binds], 1, 0.6)
    hint = f"There is a `{similar[0]}`: is it meant?" if similar else "Keep the template's names."
    return Mismatch(f"The file defines no {kind} `{name}`.", hint=hint, diagnosis="missing_name")


def explained_mismatch(
    raised: StudentRaised, component: str, label: str, granted: ProcessLimits | None = None
) -> Mismatch:
    """What the student's code raised, as a Mismatch."""
    problem = raised.problem
    if problem.type == "NotImplementedError":
        part = problem.message.removeprefix("TODO").strip().split(":")[0] or component
        return Mismatch(
            f"`{part[:80]}` is not implemented yet.",
            hint="Replace the `raise NotImplementedError` line by your code.",
            diagnosis="not_implemented",
            where=problem.where,
        )
    line = f" at `{problem.line}`" if problem.line else ""
    return Mismatch(
        f"`{label}` raised {problem.type}: {problem.message or 'no message'}{line}"
        f"{limit_hit(problem, granted)}.",
        hint=hint_of(problem.type, problem.message),
        where=problem.where,
    )
