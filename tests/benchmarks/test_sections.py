"""The sections of RESULTS.md, from figures that are given."""

import sys

import pytest

from benchmarks.__main__ import run
from benchmarks.peers.comparison import Turn, section
from benchmarks.peers.cost import Cost, ToolError, cost
from benchmarks.section import write


def turn(nbgrader: float, otter: float, equal: float, everything: float) -> Turn:
    """A turn in which a further submission costs so many seconds; ours twice as much with one job."""
    ours = {
        (name, jobs): Cost(seconds * (2 if jobs == 1 else 1), 2 * seconds)
        for name, seconds in (("equal_work", equal), ("vit_defects", everything))
        for jobs in (1, 2)
    }
    started = {"equal_work": Cost(5, 5), "vit_defects": Cost(6, 6)}
    return Turn(Cost(3.6, 3.6), Cost(nbgrader, nbgrader), Cost(otter, otter), ours, started)


def test_ratios_are_medians_of_turns_with_their_spread():
    turns = [turn(2.0, 7.0, 0.1, 0.5), turn(2.0, 8.0, 0.2, 0.25), turn(3.0, 6.0, 0.1, 0.5)]
    found = section(turns, notebooks=24)
    rows = {row[0]: row[1:] for row in found.rows}
    assert rows["grader, equal work, --jobs 2"][0] == "0.100 (0.100 to 0.200)"
    assert rows["grader, equal work, --jobs 2"][-2:] == ("20.0 (10.0 to 30.0)", "60.0 (40.0 to 70.0)")
    assert rows["grader, equal work, --jobs 1"][-2] == "10.0 (5.0 to 15.0)", "what one job costs is shown too"
    assert rows["grader, all our checks, --jobs 2"][-2] == "6.0 (4.0 to 8.0)"
    assert rows["nbgrader autograde"][:3] == (
        "2.000 (2.000 to 3.000)",
        "2.000 (2.000 to 3.000)",
        "3.6 (3.6 to 3.6)",
    )
    assert [sentence.endswith("holds.") for sentence in found.verdicts] == [True, True, False, False]
    assert "10.0 times less than nbgrader's and 30.0 times less than Otter's" in found.verdicts[-1]
    assert "nbgrader 0.9.6, otter-grader 7.0.0" in found.text


def test_what_falls_short_is_said():
    found = section([turn(1.0, 4.0, 0.1, 0.5)], notebooks=24)
    assert all("falls short" in sentence for sentence in found.verdicts[:3])


def test_a_section_takes_the_place_of_the_one_before(tmp_path):
    results = tmp_path / "RESULTS.md"
    for otter in (7.0, 9.0):
        write(section([turn(2.0, otter, 0.1, 0.5)], notebooks=24), "Measured.", results)
    text = results.read_text(encoding="utf-8")
    assert text.count("## Beside nbgrader and Otter") == 1 and "9.000" in text and "7.000" not in text


def test_what_cannot_be_measured_stops_nothing_else(tmp_path):
    """The others are measured and written; all verdicts are told again, and what is missing."""

    def missing():
        raise ToolError("nbgrader ended with exit code 1")

    def ended():
        sys.exit("grader ended with exit code 1")

    found = section([turn(1.0, 4.0, 0.1, 0.5)], notebooks=24)
    results = tmp_path / "RESULTS.md"
    told = run({"one": missing, "two": lambda: found, "three": ended, "four": lambda: found}, results)
    missed = ["one: nbgrader ended with exit code 1", "three: grader ended with exit code 1"]
    assert told == ([*found.verdicts, *found.verdicts], missed)
    assert found.text in results.read_text(encoding="utf-8")


def test_a_further_submission_costs_what_it_adds():
    further = Cost(50, 100).further(Cost(4, 8), 24)
    assert (further.wall, further.cpu) == (2.0, 4.0)
    with pytest.raises(ToolError, match="Run it again when the machine is idle"):
        Cost(3, 100).further(Cost(4, 8), 24)


def test_the_cost_of_a_command_has_its_childrens_processor_time(tmp_path):
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}], check=True)"
    found = cost([sys.executable, "-c", parent], folder=tmp_path)
    assert found.cpu >= 0.3 and found.wall >= 0.3


def test_a_command_that_fails_is_told_with_what_it_said(tmp_path):
    with pytest.raises(ToolError, match=r"ended with 3:\nno such luck"):
        cost([sys.executable, "-c", "print('no such luck'); raise SystemExit(3)"], folder=tmp_path)
