"""What the outcomes of a validation mean: what is wrong with the checks, sentence by sentence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor

from grader.course.variants import Kind
from grader.domain.assignment import Assignment
from grader.domain.evidence import Blame
from grader.domain.formatting import counted, listed
from grader.validation.trials import TrialOutcome
from grader.validation.variant_verdict import VariantVerdict, carried, failed, is_broken, said, verdict

LEAST_NAMED = 0.9  # the share of the mistakes that must be called by their names


@dataclass(frozen=True)
class MutationReport:
    """What a validation found out.

    Attributes:
        wrong: Sentences: all that must be fixed.
        notes: Sentences: what else is to be known.
    """

    verdicts: tuple[VariantVerdict, ...]
    wrong: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong

    @property
    def summary(self) -> str:
        """The figures in a line."""
        parts = [
            f"{verdict.outcome.variant.name} {verdict.word}"
            for verdict in self.verdicts
            if verdict.outcome.variant.kind in (Kind.REFERENCE, Kind.TEMPLATE)
        ]
        if forms := self._of(Kind.FORM):
            full = sum(verdict.word in ("full marks", "flagged") for verdict in forms)
            parts.append(f"forms {full} of {len(forms)} at full marks")
        if mistakes := self._of(Kind.MISTAKE):
            detected = sum(verdict.detected for verdict in mistakes)
            named = sum(verdict.named for verdict in mistakes)
            share = floor(100 * named / len(mistakes))
            parts.append(f"mistakes {detected} of {len(mistakes)} detected, {named} named ({share} %)")
            parts.append(f"{sum(verdict.costs_others for verdict in mistakes)} cost another component")
            mean = sum(verdict.messages for verdict in mistakes) / len(mistakes)
            parts.append(f"{mean:.2f} messages for a mistake")
        if pairs := self._of(Kind.PAIR):
            right = sum(not verdict.wrong for verdict in pairs)
            parts.append(f"pairs of mistakes {right} of {len(pairs)} told as what they are, and nothing else")
        return "; ".join(parts)

    def _of(self, kind: Kind) -> list[VariantVerdict]:
        return [verdict for verdict in self.verdicts if verdict.outcome.variant.kind is kind]


def mutation_report(
    assignment: Assignment, outcomes: Sequence[TrialOutcome], *, complete: bool = True
) -> MutationReport:
    """Judge the outcomes.

    Args:
        complete: These are all variants of the assignment: then it is told what none of them shows.
    """
    verdicts = tuple(verdict(assignment, outcome) for outcome in outcomes)
    wrong = [*_broken(assignment, outcomes)]
    wrong += [sentence for each in verdicts for sentence in each.wrong]
    wrong += _too_few_named(verdicts)
    notes = [sentence for each in verdicts for sentence in each.notes]
    if complete:
        wrong += _blind_components(assignment, outcomes)
        notes += _silent_checks(assignment, outcomes)
        notes += _missing_kinds(assignment, {outcome.variant.kind for outcome in outcomes})
    return MutationReport(verdicts, tuple(wrong), tuple(notes))


def _broken(assignment: Assignment, outcomes: Sequence[TrialOutcome]) -> Iterator[str]:
    """Checks that failed themselves, or could not be run, each once."""
    for spec in assignment.checks:
        hit = [(o.variant, f) for o in outcomes for f in o.findings if f.check == spec.id and is_broken(f)]
        if not hit:
            continue
        variant, found = hit[0]
        times = f" and {counted(len(hit) - 1, 'other variant')}" if len(hit) > 1 else ""
        if found.blame is Blame.ENGINE:
            how, remedy = "could not be run on", "Run it again, with fewer --jobs."
        else:
            how, remedy = "breaks on", "Fix the check."
        yield f"checks/{spec.file}: {spec.id} {how} {variant.name}{times}. {said(found)} {remedy}"


def _too_few_named(verdicts: Sequence[VariantVerdict]) -> Iterator[str]:
    mistakes = [each for each in verdicts if each.outcome.variant.kind is Kind.MISTAKE]
    named = sum(each.named for each in mistakes)
    if named < LEAST_NAMED * len(mistakes):
        yield (
            f"Only {named} of {counted(len(mistakes), 'mistake')} are called by their names; at least "
            f"{LEAST_NAMED:.0%} must be. Let checks recognize more of them by reference.named(...)."
        )


def _blind_components(assignment: Assignment, outcomes: Sequence[TrialOutcome]) -> Iterator[str]:
    """Components whose points nobody can lose."""
    wrong_work = [o for o in outcomes if o.variant.kind in (Kind.TEMPLATE, Kind.MISTAKE)]
    noticed = {f.component for o in wrong_work for f in o.findings if failed(f)}
    judged = {spec.component for spec in assignment.checks}
    for component, points in carried(assignment).items():
        carries = f"{component} carries {points:g} of the points"
        if component not in judged:
            yield f"{carries}, but no check judges it. Write one, or give its points to another component."
        elif component not in noticed:
            yield (
                f"{carries}, but none of its checks fails for a mistake or for the bare template. "
                f"Make one fail, and add a mistake that shows it."
            )


def _missing_kinds(assignment: Assignment, kinds: set[Kind]) -> Iterator[str]:
    if Kind.FORM not in kinds:
        yield (
            f"There are no legitimate forms: correct but unusual work in reference/{assignment.id}/forms/ "
            "would show that no check asks for more than it should."
        )
    if Kind.MISTAKE not in kinds:
        yield (
            f"There are no mistakes: wrong work in reference/{assignment.id}/mistakes/ would show that the "
            "checks notice it."
        )


def _silent_checks(assignment: Assignment, outcomes: Sequence[TrialOutcome]) -> Iterator[str]:
    """Checks that no mistake shows to be able to fail."""
    mistakes = [outcome for outcome in outcomes if outcome.variant.kind is Kind.MISTAKE]
    failing = {found.check for outcome in mistakes for found in outcome.findings if failed(found)}
    for component in assignment.components:
        own = [spec.id for spec in assignment.checks if spec.component == component.name]
        silent = [check for check in own if check not in failing]
        if mistakes and silent:
            yield f"No mistake of {component.name} ever fails {listed(silent, len(silent))}."
