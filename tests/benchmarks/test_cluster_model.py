"""The model of what a class costs on a cluster, where it can be computed by hand."""

import pytest

from benchmarks.cluster_model import Costs, planned

FREE = Costs(start=0, handing=0, recording=0, end=0)


def test_without_costs_equal_submissions_take_the_ideal_time() -> None:
    plan = planned([10.0], 40, nodes=2, places=4, costs=FREE)
    assert (plan.seconds, plan.ideal, plan.waiting) == (50, 50, 0)
    assert plan.node_hours == pytest.approx(2 * 50 / 3600)


def test_one_long_submission_decides_a_small_class() -> None:
    plan = planned([1.0, 1.0, 1.0, 60.0], 4, nodes=4, places=1, costs=FREE)
    assert plan.seconds == plan.ideal == 60


def test_more_places_than_the_coordinator_can_take_gain_nothing() -> None:
    """100 results at two a second: 50 s, however many nodes there are."""
    slow = Costs(start=0, handing=0, recording=0.5, end=0)
    few, many = (planned([1.0], 100, nodes, 1, slow) for nodes in (2, 100))
    assert few.seconds == pytest.approx(1 + 99 * 0.5 + 0.5)
    assert many.seconds == pytest.approx(1 + 100 * 0.5)
    assert many.waiting > 0.9


def test_start_handing_and_end_are_counted_once_each() -> None:
    costs = Costs(start=20, handing=1, recording=0, end=0.1)
    assert planned([9.0], 10, nodes=1, places=2, costs=costs).seconds == pytest.approx(20 + 5 * 10 + 1)


def test_a_class_without_submissions_takes_its_start() -> None:
    assert planned([1.0], 0, nodes=3, places=2, costs=Costs(5, 1, 1, 1)).seconds == 5
