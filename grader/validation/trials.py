"""What validation runs: versions of a homework whose worth is known, and what became of each."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from grader.analysis.run_time import run_time_uses
from grader.course.variants import Kind, Variant
from grader.domain.assignment import SUBMISSION, Assignment
from grader.domain.drawn_values import Value, first_choices
from grader.domain.errors import GraderError, UsageError
from grader.domain.evidence import Finding
from grader.domain.program import Program
from grader.domain.watch_notes import looks
from grader.validation.check_trace import CheckTrace

if TYPE_CHECKING:
    from grader.grading.judging import Judged
    from grader.judge.examination import Examined

HOMEWORK = "homework.py"


@dataclass(frozen=True)
class Trial:
    """A variant, and what is to be run on it.

    Attributes:
        components: The components whose checks are run; None: all.
        values: What is drawn, by name: the variant is made with it.
    """

    variant: Variant
    components: tuple[str, ...] | None = None
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialOutcome:
    """What became of a trial.

    Attributes:
        findings: One per check that was run.
        parameters: Trainable numbers of the model as the variant configures it; None when it has none.
        forbidden: The forbidden parts that it uses, as `assignment.toml` writes them.
        flagged: The same of those that a person looks at.
        looks: What else a person is asked to look at, in sentences.
        seconds: Wall-clock seconds.
        fault: Why it could not be judged at all, in a sentence; empty when it was.
        traces: How checks ended that raised or printed something, where that was asked for.
    """

    variant: Variant
    findings: tuple[Finding, ...] = ()
    parameters: int | None = None
    forbidden: tuple[str, ...] = ()
    flagged: tuple[str, ...] = ()
    looks: tuple[str, ...] = ()
    seconds: float = 0.0
    fault: str = ""
    traces: tuple[CheckTrace, ...] = ()


Judge = Callable[[Trial], TrialOutcome]
Report = Callable[[TrialOutcome], object]


def chosen(variants: Sequence[Variant], pattern: str | None) -> tuple[Variant, ...]:
    """The variants whose name matches a pattern with `*`; all when there is no pattern.

    Raises:
        UsageError: No name matches.
    """
    found = tuple(v for v in variants if pattern is None or fnmatchcase(v.name, pattern))
    if not found:
        raise UsageError(
            f"--only {pattern}: no variant has such a name. There are reference, template, and the files in "
            "forms/ and mistakes/, without `.py`; quote a pattern, as in --only 'scale_*'."
        )
    return found


def trials(
    assignment: Assignment,
    variants: Sequence[Variant],
    values: Mapping[str, Value] | None = None,
    *,
    thorough: bool = False,
) -> tuple[Trial, ...]:
    """What to run on each variant.

    The reference and the template meet every check, and so does one mistake of every component, which shows
    that the component's failure costs no other component. A form and any other mistake meet the checks of
    their own parts: whatever uses those sees a stand-in. A pair of mistakes meets every check.

    Args:
        values: With which the variants are made; None: each first choice.
        thorough: Every variant meets every check.
    """
    values = first_choices(assignment.variant) if values is None else values
    graded = [component.name for component in assignment.components]
    seen: set[str] = set()
    found = []
    for variant in variants:
        first = variant.kind is Kind.MISTAKE and not seen.issuperset(variant.parts)
        seen.update(variant.parts if first else ())
        if thorough or first or not variant.parts or variant.kind is Kind.PAIR:
            found.append(Trial(variant, None, values))
        else:
            parts = (*(name for name in graded if name in variant.parts), SUBMISSION)
            found.append(Trial(variant, parts, values))
    return tuple(found)


def timed_outcome(judge: Judge, trial: Trial) -> TrialOutcome:
    """The outcome of one trial with its time; a failure of the judge's is an outcome too."""
    started = time.monotonic()
    try:
        found = judge(trial)
    except GraderError as error:
        found = TrialOutcome(trial.variant, fault=str(error))
    return replace(found, seconds=time.monotonic() - started)


def outcome(
    assignment: Assignment, trial: Trial, program: Program, found: "Judged | Examined"
) -> TrialOutcome:
    """What the judge said of a trial, with the forbidden parts seen in the source or at run time."""
    uses = (*program.forbidden, *run_time_uses(assignment, program, program.forbidden, found.watched.reached))
    seen = {use.rule for use in uses if use.reached_from}
    rules = [rule for rule in assignment.forbidden if rule.pattern in seen]
    return TrialOutcome(
        trial.variant,
        found.findings,
        found.parameters,
        tuple(rule.pattern for rule in rules if rule.policy == "forbid"),
        tuple(rule.pattern for rule in rules if rule.policy == "flag"),
        (*(note.text for note in program.notes if note.ask_person), *looks(found.watched)),
    )


def program_of(assignment: Assignment, trial: Trial) -> Program:
    """The program of a variant."""
    from grader.analysis import program

    source = trial.variant.source.encode()
    return program(HOMEWORK, source, assignment.program_rules)


def seed_of(variant: Variant) -> int:
    """The seed of everything random about a variant: from its source, so the same on every run."""
    digest = hashlib.sha256(variant.source.encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF
