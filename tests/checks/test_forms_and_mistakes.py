"""The checks of `vit_defects` treat work as it deserves: all of `grader validate vit_defects`, run once.

A few of the forms and a mistake of each component are tried at every change; all of them where one of the
slow tests is asked for.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from grader.course.homework_versions import HomeworkVersion, Kind, composed, homework_versions
from grader.course.locate import located_course
from grader.domain.assignment import Assignment
from grader.domain.evidence import Status
from grader.language.sentences import is_clause
from grader.language.translation import language
from grader.validation.mutation_report import LEAST_NAMED, MutationReport, VersionVerdict, mutation_report
from grader.validation.trials import TrialOutcome, outcomes, trials
from tests.english_left import english_left
from tests.warm_hosts import WarmHosts

ROOT = Path(__file__).parents[2]
FORMS = sorted(
    path.stem
    for folder in ("reference/vit_defects/forms", "reference/vit_defects/recipes")
    for path in (ROOT / folder).glob("*.py")
)
MISTAKES = sorted(path.stem for path in (ROOT / "reference/vit_defects/mistakes").glob("*.py"))
QUICK = {
    *("attention_convolutions", "loops_with_progress", "transformer_recursive"),
    *("confusion_transposed", "feed_forward_no_activation", "labels_exchanged", "loss_wrong_divisor"),
    *("missing_scale", "missing_zero_grad", "no_attention_residual", "no_positions", "post_norm"),
}
ALWAYS = ("reference", "template")
BROKEN = (
    "class Attention(nn.Module):\n    def __init__(self, *args, **kwargs):\n        raise OSError('no')\n"
)


def tried_when_asked(names: Sequence[str]) -> list[Any]:
    """Parameters of a test, of which most are slow."""
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


@pytest.fixture(scope="module")
def known(assignment: Assignment) -> tuple[HomeworkVersion, ...]:
    """All variants."""
    return homework_versions(assignment)


@pytest.fixture(scope="module")
def tried(
    request: pytest.FixtureRequest,
    assignment: Assignment,
    known: tuple[HomeworkVersion, ...],
    solved: str,
    warm_hosts: WarmHosts,
) -> dict[str, TrialOutcome]:
    """What became of every variant, and of an Attention that cannot be constructed, by name."""
    slow = any(
        item.path == request.path and item.get_closest_marker("slow") for item in request.session.items
    )
    every = [each for each in known if slow or each.name in {*QUICK, *ALWAYS}]
    broken = HomeworkVersion(
        Kind.TEMPLATE, "broken", "broken", composed(solved, BROKEN)
    )  # it meets every check
    with warm_hosts.shared():
        planned = trials(assignment, (*every, broken))
        found = outcomes(located_course(ROOT, environment={}), assignment, planned, jobs=2)
    return {outcome.version.name: outcome for outcome in found}


@pytest.fixture(scope="module")
def report(assignment: Assignment, tried: dict[str, TrialOutcome]) -> MutationReport:
    """What `grader validate` makes of them."""
    return mutation_report(assignment, [tried[name] for name in tried if name != "broken"])


@pytest.fixture(scope="module")
def verdicts(report: MutationReport) -> dict[str, VersionVerdict]:
    """The verdicts by the variants' names."""
    return {verdict.outcome.version.name: verdict for verdict in report.verdicts}


def test_the_reference_passes_every_check(
    verdicts: dict[str, VersionVerdict], assignment: Assignment
) -> None:
    found = verdicts["reference"]
    assert found.wrong == ()
    assert [f.check for f in found.outcome.findings] == [spec.id for spec in assignment.checks]
    assert found.outcome.parameters == 499_462


@pytest.mark.parametrize("form", tried_when_asked(FORMS))
def test_form_earns_every_point(form: str, verdicts: dict[str, VersionVerdict]) -> None:
    """Correct but unusual work passes every check, and what it is flagged for is what its file says."""
    found = verdicts[form]
    assert (found.wrong, found.notes) == ((), ())
    assert found.outcome.parameters


@pytest.mark.parametrize("mistake", tried_when_asked(MISTAKES))
def test_mistake_costs_its_component_and_no_other(mistake: str, verdicts: dict[str, VersionVerdict]) -> None:
    """Known wrong work loses points on its own component only, with a message and a place."""
    found = verdicts[mistake]
    assert found.wrong == () and found.detected
    lost = [f for f in found.outcome.findings if f.status is not Status.PASSED]
    assert {(f.component, f.status, f.blame) for f in lost} == {
        (*found.outcome.version.parts, "failed", "student")
    }
    assert all(f.message and f.where.startswith("homework.py:") for f in lost)


@pytest.mark.slow
def test_nothing_is_to_be_mended(report: MutationReport) -> None:
    assert report.wrong == ()
    assert len(MISTAKES) >= 45 and len(FORMS) >= 16


@pytest.mark.slow
def test_mistakes_are_named(verdicts: dict[str, VersionVerdict]) -> None:
    """Nearly every mistake is called by the name of its file."""
    unnamed = {name: verdicts[name].called for name in MISTAKES if not verdicts[name].named}
    assert len(unnamed) <= (1 - LEAST_NAMED) * len(MISTAKES), unnamed


def test_what_is_said_is_told_in_persian(tried: dict[str, TrialOutcome]) -> None:
    """Of what students read, only code is left as it is; of all mistakes where slow tests are asked for."""
    pytest.importorskip("babel")
    persian = language("fa", [ROOT / "reference/vit_defects/language"])
    texts = {text for found in tried.values() for f in found.findings for text in (f.message, f.hint)}
    said = sorted(filter(is_clause, texts))
    assert len(said) > len(QUICK)
    assert {text: left for text in said if (left := english_left(text, persian))} == {}


def test_bare_template_fails_as_not_implemented(
    tried: dict[str, TrialOutcome], assignment: Assignment
) -> None:
    """Every check of a part fails with the diagnosis that tells it from wrong work."""
    found = tried["template"]
    assert found.version.source == (ROOT / "template/vit_defects/homework.py").read_text("utf-8")
    assert [f.check for f in found.findings] == [spec.id for spec in assignment.checks]
    for finding in found.findings:
        if finding.component == "submission":
            assert finding.status == "passed", finding.message
        else:
            assert (finding.status, finding.label) == ("failed", "not_implemented"), finding
            assert finding.where.startswith("homework.py:")
    assert found.parameters is None


def test_functions_do_not_notice_a_broken_class(tried: dict[str, TrialOutcome]) -> None:
    """An Attention that cannot even be constructed costs Attention's points and nobody else's."""
    lost = [f for f in tried["broken"].findings if f.status is not Status.PASSED]
    assert {f.component for f in lost} == {"Attention"}
    assert all("OSError" in f.message for f in lost)


def test_one_mistake_of_each_component_is_tried_at_every_change(
    assignment: Assignment, known: tuple[HomeworkVersion, ...]
) -> None:
    assert {each.name for each in known} > QUICK
    tried = {
        part for each in known if each.kind is Kind.MISTAKE and each.name in QUICK for part in each.parts
    }
    assert tried == {component.name for component in assignment.components}
