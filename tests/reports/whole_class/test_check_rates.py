from dataclasses import replace

import pytest

from grader.domain.evidence import FindingKind, Status
from grader.domain.score import Waiver
from grader.reports.whole_class.class_statistics import check_rates, point_biserial


@pytest.fixture(scope="module")
def class_with(examples, assignment, class_results):
    """The number of students, and check -> the numbers of those who fail it: (Evidence, Score) of each."""
    score = class_results["good"].score

    def made(students, failing, **changes):
        found = []
        for number in range(students):
            own = {
                check: {"status": Status.FAILED, **changes} for check, who in failing.items() if number in who
            }
            evidence = replace(
                examples.base(str(number), assignment), findings=examples.findings(assignment, own)
            )
            found.append((evidence, replace(score, student_id=str(number))))
        return found

    return made


def rate_of(assignment, pairs, check):
    return next(rate for rate in check_rates(assignment, pairs) if rate.check == check)


def test_check_rates_leave_out_what_could_not_be_decided(assignment, pairs):
    rates = {rate.check: rate for rate in check_rates(assignment, pairs)}
    scale = rates["attention_matches_oracle"]
    assert (scale.passed, scale.failed, scale.unwritten) == (4, 3, 1)
    assert scale.share == pytest.approx(4 / 7) and scale.failed_share == pytest.approx(2 / 6)
    labels = rates["predictions_name_labels"]
    assert (labels.passed, labels.failed, labels.errored) == (4, 1, 2)
    assert labels.share == pytest.approx(4 / 5)


def test_the_lowest_pass_rate_comes_first(assignment, pairs):
    shares = [rate.share for rate in check_rates(assignment, pairs) if rate.share is not None]
    assert shares == sorted(shares) and shares[0] < shares[-1]


def test_point_biserial_is_the_correlation_by_hand():
    # by Pearson's formula: covariance 1 / 10 of passed and rest over 0.5 * 0.2
    passed = [True, False] * 5
    rest = [0.8, 0.4] * 5
    assert point_biserial(passed, rest) == pytest.approx(1.0)
    mixed = [0.8, 0.4, 0.4, 0.8, 0.8, 0.4, 0.4, 0.8, 0.8, 0.4]
    # three of the five who passed do well elsewhere, and two of the five who failed
    assert point_biserial(passed, mixed) == pytest.approx(0.2)
    assert point_biserial([not one for one in passed], mixed) == pytest.approx(-0.2)


def test_too_few_students_give_no_coefficient():
    assert point_biserial([True, False] * 4, [0.8, 0.4] * 4) is None
    assert point_biserial([True] * 18 + [False] * 2, [0.8] * 18 + [0.4] * 2) is None
    assert point_biserial([True, False] * 10, [0.5] * 20) is None


def test_a_check_does_not_correlate_with_itself(assignment, class_with):
    """Only one check is ever failed: nothing else differs, so that it tells nothing about the rest."""
    pairs = class_with(20, {"vit_pools_mean": range(10)})
    assert rate_of(assignment, pairs, "vit_pools_mean").discrimination is None
    weak = {"vit_takes_channels": range(10), "evaluate_averages_loss": range(10)}
    pairs = class_with(20, {"vit_pools_mean": range(10), **weak})
    assert rate_of(assignment, pairs, "vit_pools_mean").discrimination == pytest.approx(1)
    pairs = class_with(20, {"vit_pools_mean": range(10, 20), **weak})
    turned = rate_of(assignment, pairs, "vit_pools_mean")
    assert turned.discrimination == pytest.approx(-1) and turned.dull


def test_a_check_is_suspect_when_over_40_percent_of_those_who_wrote_the_part_fail_it(assignment, class_with):
    def suspect(students, failing, **changes):
        pairs = class_with(students, {"vit_pools_mean": range(failing)}, **changes)
        return rate_of(assignment, pairs, "vit_pools_mean").suspect

    assert suspect(10, 5) and not suspect(10, 4)
    assert not suspect(4, 4), "of four students, two are not a crowd"
    assert not suspect(10, 9, kind=FindingKind.NOT_IMPLEMENTED), (
        "what is not written says nothing of the check"
    )


def test_a_waived_check_is_told_and_no_longer_suspect(assignment, class_with):
    pairs = [
        (evidence, replace(score, waived=(("vit_pools_mean", Waiver("ta1", "not asked for")),)))
        for evidence, score in class_with(10, {"vit_pools_mean": range(8)})
    ]
    rate = rate_of(assignment, pairs, "vit_pools_mean")
    assert (rate.failed, rate.waived, rate.suspect) == (8, "ta1: not asked for", False)
