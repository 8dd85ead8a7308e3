"""The checks of `vit_defects` treat work as it deserves: all of `grader validate vit_defects`, run once."""

from pathlib import Path

import pytest

from grader.course.locate import located_course
from grader.course.variants import Kind, Variant, composed, variants
from grader.domain.assignment import Assignment
from grader.domain.evidence import Status
from grader.validation.mutation_report import LEAST_NAMED, MutationReport, mutation_report
from grader.validation.trials import Outcome, outcomes, trials
from grader.validation.variant_verdict import Verdict

ROOT = Path(__file__).parents[2]
FORMS = sorted(
    path.stem
    for folder in ("tests/legitimate/vit_defects", "reference/vit_defects/recipes")
    for path in (ROOT / folder).glob("*.py")
)
MISTAKES = sorted(path.stem for path in (ROOT / "reference/vit_defects/mistakes").glob("*.py"))
BROKEN = (
    "class Attention(nn.Module):\n    def __init__(self, *args, **kwargs):\n        raise OSError('no')\n"
)


@pytest.fixture(scope="session")
def tried(assignment: Assignment, solved: str) -> dict[str, Outcome]:
    """What became of every variant, and of an Attention that cannot be constructed, by name."""
    broken = Variant(Kind.TEMPLATE, "broken", "broken", composed(solved, BROKEN))  # it meets every check
    planned = trials(assignment, (*variants(assignment, ROOT), broken))
    found = outcomes(located_course(ROOT, environment={}), assignment, planned, jobs=2)
    return {outcome.variant.name: outcome for outcome in found}


@pytest.fixture(scope="session")
def report(assignment: Assignment, tried: dict[str, Outcome]) -> MutationReport:
    """What `grader validate` makes of them."""
    return mutation_report(assignment, [tried[name] for name in tried if name != "broken"])


@pytest.fixture(scope="session")
def verdicts(report: MutationReport) -> dict[str, Verdict]:
    """The verdicts by the variants' names."""
    return {verdict.outcome.variant.name: verdict for verdict in report.verdicts}


def test_the_reference_passes_every_check(verdicts: dict[str, Verdict], assignment: Assignment) -> None:
    found = verdicts["reference"]
    assert found.wrong == ()
    assert [f.check for f in found.outcome.findings] == [spec.id for spec in assignment.checks]
    assert found.outcome.parameters == 499_462


@pytest.mark.parametrize("form", FORMS)
def test_form_earns_every_point(form: str, verdicts: dict[str, Verdict]) -> None:
    """Correct but unusual work passes every check, and what it is flagged for is what its file says."""
    found = verdicts[form]
    assert (found.wrong, found.notes) == ((), ())
    assert found.outcome.parameters


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_costs_its_component_and_no_other(mistake: str, verdicts: dict[str, Verdict]) -> None:
    """Known wrong work loses points on its own component only, with a message and a place."""
    found = verdicts[mistake]
    assert found.wrong == () and found.detected
    lost = [f for f in found.outcome.findings if f.status is not Status.PASSED]
    assert {(f.component, f.status, f.blame) for f in lost} == {
        (*found.outcome.variant.parts, "failed", "student")
    }
    assert all(f.message and f.where.startswith("homework.py:") for f in lost)


def test_nothing_is_to_be_mended(report: MutationReport) -> None:
    assert report.wrong == ()
    assert len(MISTAKES) >= 45 and len(FORMS) >= 16


def test_mistakes_are_named(verdicts: dict[str, Verdict]) -> None:
    """Nearly every mistake is called by the name of its file."""
    unnamed = {name: verdicts[name].called for name in MISTAKES if not verdicts[name].named}
    assert len(unnamed) <= (1 - LEAST_NAMED) * len(MISTAKES), unnamed


def test_bare_template_fails_as_not_implemented(tried: dict[str, Outcome], assignment: Assignment) -> None:
    """Every check of a part fails with the diagnosis that tells it from wrong work."""
    found = tried["template"]
    assert found.variant.source == (ROOT / "template/vit_defects/homework.py").read_text("utf-8")
    assert [f.check for f in found.findings] == [spec.id for spec in assignment.checks]
    for finding in found.findings:
        if finding.component == "submission":
            assert finding.status == "passed", finding.message
        else:
            assert (finding.status, finding.label) == ("failed", "not_implemented"), finding
            assert finding.where.startswith("homework.py:")
    assert found.parameters is None


def test_functions_do_not_notice_a_broken_class(tried: dict[str, Outcome]) -> None:
    """An Attention that cannot even be constructed costs Attention's points and nobody else's."""
    lost = [f for f in tried["broken"].findings if f.status is not Status.PASSED]
    assert {f.component for f in lost} == {"Attention"}
    assert all("OSError" in f.message for f in lost)
