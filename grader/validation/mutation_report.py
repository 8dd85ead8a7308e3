"""Interprets the outcomes of a validation: a verdict on each version, and a report on the checks.

It decides whether the checks treat a version correctly. It also says what is wrong with the checks of the
whole assignment, sentence by sentence: components that nobody can lose points for, checks that never fail,
and missing kinds of versions. It runs nothing.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor

from grader.course.course_files import file_text
from grader.course.homework_versions import Kind
from grader.domain.assignment import Assignment
from grader.domain.evidence import Blame, Finding, FindingKind, Status
from grader.domain.formatting import clipped, counted, listed
from grader.domain.submission_result import reported_causes
from grader.files.known_folders import visible
from grader.validation.trials import TrialOutcome

_MESSAGE = 200  # characters of a finding's message that a sentence quotes


@dataclass(frozen=True)
class VersionVerdict:
    """The verdict on an outcome.

    Attributes:
        word: In a word or two: `full`, `detected`, `missed`, ...
        called: The diagnoses of a mistake's own failed checks, or the policies by which a form is flagged or
            advised.
        failed: The checks that did not pass.
        wrong: Sentences on why validation does not pass.
        notes: Sentences that do not prevent it from passing.
    """

    outcome: TrialOutcome
    word: str
    called: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def detected(self) -> bool:
        """Whether a check of the mistake's own component failed."""
        return any(failed(f) and f.component in self.outcome.version.parts for f in self.outcome.findings)

    @property
    def named(self) -> bool:
        """Whether one of these checks called the mistake by its name."""
        return self.outcome.version.name in self.called

    @property
    def messages(self) -> int:
        """The number of messages that are shown, after folding."""
        lost = _not_passed(self.outcome)
        return sum(
            len(reported_causes([finding for finding in lost if finding.component == component]))
            for component in {finding.component for finding in lost}
        )

    @property
    def costs_others(self) -> bool:
        """Whether a check of another component did not pass; one that broke costs nothing."""
        parts = self.outcome.version.parts
        return any(f.component not in parts and not is_broken(f) for f in _not_passed(self.outcome))


def verdict(assignment: Assignment, outcome: TrialOutcome) -> VersionVerdict:
    """The verdict on an outcome."""
    if outcome.fault:
        sentence = f"{outcome.version.file}: {outcome.version.name} could not be judged. {outcome.fault}"
        return VersionVerdict(outcome, "not judged", wrong=(sentence,))
    match outcome.version.kind:
        case Kind.REFERENCE | Kind.FORM:
            return _of_right_work(outcome)
        case Kind.TEMPLATE:
            return _of_template(assignment, outcome)
        case Kind.MISTAKE:
            return _of_mistake(outcome)
        case Kind.PAIR:
            return _of_pair(outcome)
        case Kind.ODD:
            return _of_odd(outcome)


def _of_right_work(outcome: TrialOutcome) -> VersionVerdict:
    """The verdict on the reference or a legitimate form: every check must pass."""
    version, lost = outcome.version, _not_passed(outcome)
    form = version.kind is Kind.FORM
    flags = tuple(dict.fromkeys((*_policies(outcome, advised=False), *outcome.flagged)))
    advice = tuple(dict.fromkeys(_policies(outcome, advised=True)))
    remedy = "Fix the check, or delete the file." if form else "Fix the check or the solution."
    wrong = tuple(
        f"{version.file}: {finding.check} ({finding.component}) {_how(finding)}: {brief(finding)} {remedy}"
        for finding in lost
        if not is_broken(finding)
    )
    wrong += tuple(
        f"{version.file}: it uses `{name}`, which assignment.toml forbids. Write it another way."
        for name in outcome.forbidden
    )
    notes = tuple(
        f"{version.file}: it earns every point, but a person is asked to look ({flag}). "
        f"If that is meant, add a line `Policy: {flag}` to its docstring."
        for flag in flags
        if form and flag not in version.policies
    )
    notes += tuple(
        f"{version.file}: it earns every point, but is advised otherwise ({name}). "
        f"If that is meant, add a line `Policy: {name}` to its docstring."
        for name in advice
        if form and name not in version.policies
    )
    notes += tuple(f"{version.file}: a person is asked to look. {look}" for look in outcome.looks)
    if outcome.forbidden or any(finding.status in (Status.FAILED, Status.SKIPPED) for finding in lost):
        word = "loses"
    elif lost:
        word = "undecided"
    else:
        word = ("flagged" if flags else "advised" if advice else "full marks") if form else "full"
    called = (*flags, *advice) if form else ()
    return VersionVerdict(outcome, word, called, tuple(finding.check for finding in lost), wrong, notes)


def _policies(outcome: TrialOutcome, *, advised: bool) -> Iterator[str]:
    """The policies by which checks that passed give advice, or ask a person."""
    for finding in outcome.findings:
        if finding.policy and finding.is_advice is advised:
            yield finding.policy


def _of_template(assignment: Assignment, outcome: TrialOutcome) -> VersionVerdict:
    """The verdict on the bare template: it must not pass any check that carries points."""
    wrong = []
    for component in carried(assignment):
        component_findings = [finding for finding in outcome.findings if finding.component == component]
        passed = [finding.check for finding in component_findings if finding.status is Status.PASSED]
        undecided = [
            finding.check
            for finding in component_findings
            if finding.status is Status.ERRORED and not is_broken(finding)
        ]
        if passed:
            wrong.append(
                f"The bare template passes {listed(passed)} of {component}, which carries points. "
                f"Let the check need what students write."
            )
        if undecided:
            wrong.append(
                f"The bare template leaves {listed(undecided)} of {component} undecided. "
                "Let the check fail for it."
            )
    lost = tuple(finding.check for finding in _not_passed(outcome))
    return VersionVerdict(outcome, "earns points" if wrong else "0", (), lost, tuple(wrong))


def _of_mistake(outcome: TrialOutcome) -> VersionVerdict:
    """The verdict on a known mistake: only checks of its own component must fail, and one must name it."""
    version, lost = outcome.version, _not_passed(outcome)
    [component] = version.parts
    component_findings = [finding for finding in lost if finding.component == component]
    foreign_findings = [
        finding for finding in lost if finding.component != component and not is_broken(finding)
    ]
    called = tuple(
        dict.fromkeys(finding.label for finding in component_findings if failed(finding) and finding.label)
    )
    wrong, notes = [], []
    undecided = [
        finding.check
        for finding in component_findings
        if finding.status is Status.ERRORED and not is_broken(finding)
    ]
    detected = any(failed(finding) for finding in component_findings)
    if not detected and undecided:
        wrong.append(
            f"{version.file}: no check of {component} fails, and {listed(undecided)} asks a person. "
            "Make a check notice it, or delete the file."
        )
    elif not detected and not any(is_broken(finding) for finding in component_findings):
        wrong.append(
            f"{version.file}: {component} passes every check. Make a check notice it, or delete the file."
        )
    elif undecided:
        notes.append(f"{version.file}: {listed(undecided)} cannot be decided, so a person is asked.")
    for other in dict.fromkeys(finding.component for finding in foreign_findings):
        checks = [finding.check for finding in foreign_findings if finding.component == other]
        wrong.append(
            f"{version.file}: it is a mistake of {component}, but costs {other} too ({listed(checks)}). "
            f"Judge {other} with a fake in place of {component}."
        )
    if detected and version.name not in called:
        name = f"called {listed(called)}" if called else "not named"
        notes.append(
            f"{version.file}: it is detected, but {name}. Let a check recognize it: "
            f'raise reference.named("{version.name}").'
        )
    word = "missed" if not detected else "costs others" if foreign_findings else "detected"
    return VersionVerdict(
        outcome, word, called, tuple(finding.check for finding in lost), tuple(wrong), tuple(notes)
    )


def _of_pair(outcome: TrialOutcome) -> VersionVerdict:
    """The verdict on two mistakes: only checks of their components must fail, and give no other name."""
    version, lost = outcome.version, _not_passed(outcome)
    wrong = [
        f"{version.file}: {component} passes every check beside the other mistake. Make a check notice it."
        for component in version.parts
        if not any(finding.component == component for finding in lost)
    ]
    notes = [
        f"{version.file}: {finding.check} of {component} asks a person: {brief(finding)}"
        for component in version.parts
        for finding in lost
        if finding.component == component
        and finding.kind is FindingKind.UNDECIDED
        and not any(failed(other) and other.component == component for other in lost)
    ]
    blamed = [
        finding for finding in lost if finding.component not in version.parts and not is_broken(finding)
    ]
    wrong += [
        f"{version.file}: {finding.check} of {finding.component} {_how(finding)}, and has no mistake: "
        f"{brief(finding)}"
        for finding in blamed
    ]
    called = tuple(dict.fromkeys(finding.label for finding in lost if failed(finding) and finding.label))
    wrong += [
        f"{version.file}: {finding.check} calls it {finding.label}, which it is not: {brief(finding)}"
        for finding in lost
        if failed(finding) and finding.label and finding.label not in version.planted and not finding.because
    ]
    word = "costs others" if blamed else "mistaken" if wrong else "told apart"
    return VersionVerdict(
        outcome, word, called, tuple(finding.check for finding in lost), tuple(wrong), tuple(notes)
    )


def _of_odd(outcome: TrialOutcome) -> VersionVerdict:
    """The verdict on an odd part: whatever its checks say of it, they must not break."""
    lost = _not_passed(outcome)
    broken = [finding for finding in lost if is_broken(finding)]
    word = "breaks a check" if broken else "fails" if any(map(failed, lost)) else "asks" if lost else "passes"
    called = tuple(dict.fromkeys(finding.label for finding in lost if failed(finding) and finding.label))
    shown = tuple(finding.check for finding in broken or lost)
    return VersionVerdict(outcome, word, called, shown)


def carried(assignment: Assignment) -> dict[str, float]:
    """The components that carry points -> their points."""
    shares = [item.components for item in assignment.rubric if item.components]
    return {name: points for share in shares for name, points in share.items() if points > 0}


def _not_passed(outcome: TrialOutcome) -> list[Finding]:
    return [finding for finding in outcome.findings if finding.status is not Status.PASSED]


def failed(finding: Finding) -> bool:
    """Whether the check says that the code is wrong."""
    return finding.status is Status.FAILED


def is_broken(finding: Finding) -> bool:
    """Whether the check itself or the grader failed; leaving something to a person is not a failure."""
    return finding.status is Status.ERRORED and finding.kind is not FindingKind.UNDECIDED


def _how(finding: Finding) -> str:
    return "cannot be decided" if finding.status is Status.ERRORED else "does not pass"


def brief(finding: Finding) -> str:
    """A finding's message, on one line and not too long."""
    return clipped(" ".join(finding.message.split()), _MESSAGE)


# --- mutation report -------------------------------------------------------------------------------------


LEAST_NAMED = 0.9  # the share of mistakes that must be named


@dataclass(frozen=True)
class MutationReport:
    """The report of a validation.

    Attributes:
        wrong: Sentences on everything that must be fixed.
        notes: Further sentences.
    """

    verdicts: tuple[VersionVerdict, ...]
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
            f"{verdict.outcome.version.name} {verdict.word}"
            for verdict in self.verdicts
            if verdict.outcome.version.kind in (Kind.REFERENCE, Kind.TEMPLATE)
        ]
        if forms := self._of(Kind.FORM):
            full = sum(verdict.word in ("full marks", "advised", "flagged") for verdict in forms)
            parts.append(f"forms {full} of {len(forms)} at full marks")
        if mistakes := self._of(Kind.MISTAKE):
            detected = sum(verdict.detected for verdict in mistakes)
            named = sum(verdict.named for verdict in mistakes)
            share = floor(100 * named / len(mistakes))
            parts.append(f"mistakes {detected} of {len(mistakes)} detected, {named} named ({share} %)")
            parts.append(f"{sum(verdict.costs_others for verdict in mistakes)} cost another component")
            mean = sum(verdict.messages for verdict in mistakes) / len(mistakes)
            parts.append(f"{mean:.2f} messages for a mistake")
        if odd := self._of(Kind.ODD):
            broken = sum(verdict.word == "breaks a check" for verdict in odd)
            tried = counted(len(odd), "odd part")
            parts.append(
                f"checks break for {broken} of {tried}" if broken else f"no check breaks for {tried}"
            )
        if pairs := self._of(Kind.PAIR):
            right = sum(not verdict.wrong for verdict in pairs)
            parts.append(f"pairs of mistakes {right} of {len(pairs)} told as what they are, and nothing else")
        return "; ".join(parts)

    def _of(self, kind: Kind) -> list[VersionVerdict]:
        return [verdict for verdict in self.verdicts if verdict.outcome.version.kind is kind]


def mutation_report(
    assignment: Assignment,
    outcomes: Sequence[TrialOutcome],
    itself_wrong: Sequence[str] = (),
    *,
    complete: bool = True,
) -> MutationReport:
    """Judge the outcomes.

    Args:
        itself_wrong: Sentences on what is wrong with the assignment, whatever is handed in.
        complete: Whether these are all versions of the assignment, so that gaps are reported too.
    """
    verdicts = tuple(verdict(assignment, outcome) for outcome in outcomes)
    wrong = [*_broken(assignment, outcomes), *_unknown_mistakes(assignment), *itself_wrong]
    wrong += [sentence for one_verdict in verdicts for sentence in one_verdict.wrong]
    wrong += _too_few_named(verdicts)
    notes = [sentence for one_verdict in verdicts for sentence in one_verdict.notes]
    if complete:
        wrong += _blind_components(assignment, outcomes)
        notes += _silent_checks(assignment, outcomes)
        notes += _missing_kinds(assignment, {outcome.version.kind for outcome in outcomes})
    return MutationReport(verdicts, tuple(wrong), tuple(notes))


def _broken(assignment: Assignment, outcomes: Sequence[TrialOutcome]) -> Iterator[str]:
    """Sentences about checks that broke or could not be run, one for each check."""
    for spec in assignment.checks:
        hit = [(o.version, f) for o in outcomes for f in o.findings if f.check == spec.id and is_broken(f)]
        if not hit:
            continue
        version, finding = hit[0]
        times = f" and {counted(len(hit) - 1, 'other version')}" if len(hit) > 1 else ""
        if finding.blame is Blame.ENGINE:
            how, remedy = "could not be run on", "Run it again, with fewer --jobs."
        else:
            how = "breaks on"
            remedy = f"Fix the check; --only {version.name} --debug shows what it raised."
        yield f"checks/{spec.file}: {spec.id} {how} {version.name}{times}. {brief(finding)} {remedy}"


def _unknown_mistakes(assignment: Assignment) -> Iterator[str]:
    """Sentences about names by which checks would call a mistake that has no file, and break."""
    for folder in ("checks", "trained", "oracle", ""):
        for path in visible(assignment.folder / folder, "*.py" if folder else "oracle.py"):
            for line, name in _mistakes_named(file_text(path, path.name)):
                if not (assignment.folder / "mistakes" / f"{name}.py").is_file():
                    yield (
                        f"{path.relative_to(assignment.folder).as_posix()}:{line}: it names the mistake "
                        f"{name}, and there is no mistakes/{name}.py. Write it, or correct the name."
                    )


def _mistakes_named(text: str) -> Iterator[tuple[int, str]]:
    """(line, name) of each `reference.named("name")`; names that are put together are not read."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(ast.Attribute(ast.Name("reference"), "named"), [ast.Constant(str(name)), *_]):
                yield node.lineno, name


def _too_few_named(verdicts: Sequence[VersionVerdict]) -> Iterator[str]:
    mistakes = [mistake for mistake in verdicts if mistake.outcome.version.kind is Kind.MISTAKE]
    named = sum(mistake.named for mistake in mistakes)
    if named < LEAST_NAMED * len(mistakes):
        yield (
            f"Only {named} of {counted(len(mistakes), 'mistake')} are called by their names; at least "
            f"{LEAST_NAMED:.0%} must be. Let checks recognize more of them by reference.named(...)."
        )


def _blind_components(assignment: Assignment, outcomes: Sequence[TrialOutcome]) -> Iterator[str]:
    """Sentences about components whose points nobody can lose."""
    wrong_work = [o for o in outcomes if o.version.kind in (Kind.TEMPLATE, Kind.MISTAKE)]
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
    """Sentences about checks that never fail for any mistake."""
    mistakes = [outcome for outcome in outcomes if outcome.version.kind is Kind.MISTAKE]
    failing = {finding.check for outcome in mistakes for finding in outcome.findings if failed(finding)}
    for component in assignment.components:
        check_ids = [spec.id for spec in assignment.checks if spec.component == component.name]
        silent = [check for check in check_ids if check not in failing]
        if mistakes and silent:
            yield f"No mistake of {component.name} ever fails {listed(silent, len(silent))}."
