"""What a worker told of forbidden parts is kept as it was told, within bounds, and only what can be."""

import pytest

from grader.domain.analyzed_program import LOADING, TRAINING, Place
from grader.domain.program_run import Pried, Prying, ReachedPart, Watched
from grader.protocol.frames import ProtocolError
from grader.protocol.replies import Imported, Reached, Seen, Tried, WatchedPart, Watching
from grader.protocol.worker_reports import MOST, MOST_PARTS, WatchRecord

PARTS = (WatchedPart("a.B", ("a.B",)), WatchedPart("a.C", ("a.*",)))


@pytest.fixture
def record() -> WatchRecord:
    """A record of a worker that watches two parts."""
    made = WatchRecord(("a.B", "a.*"), ("homework.py",))
    made.take(Watching(PARTS))
    return made


def test_each_use_is_kept_once_for_each_stage(record: WatchRecord) -> None:
    for stage in ("Attention", "Attention", TRAINING):
        record.stage = stage
        record.take(Reached(0, -1, "homework.py", 3))
        record.take(Reached(0, 1, "elsewhere.py", 3))
    own = ReachedPart("a.B", ("a.B",), "", (), "Attention", Place("homework.py", 3))
    inside = ReachedPart("a.B", ("a.B",), "a.C", ("a.*",), "Attention", None)
    reached = record.watched.reached
    assert reached[:2] == (own, inside)
    assert [part.stage for part in reached] == ["Attention", "Attention", TRAINING, TRAINING]


def test_an_import_while_loading_costs_nothing(record: WatchRecord) -> None:
    record.take(Imported(1, "", 0))
    assert record.watched == Watched()
    record.stage = "ViT"
    record.take(Imported(1, "", 0))
    assert [(part.name, part.stage) for part in record.watched.reached] == [("a.*", "ViT")]


@pytest.mark.parametrize(
    "notice",
    [
        Reached(2, -1, "", 0),
        Reached(-1, -1, "", 0),
        Reached(0, 2, "", 0),
        Imported(2, "", 0),
        Imported(-1, "", 0),
        Watching((WatchedPart("b", ("b",)),)),
        Watching((WatchedPart("b", ()),)),
        Watching(PARTS * MOST_PARTS),
    ],
)
def test_what_is_not_watched_is_no_notice(record: WatchRecord, notice: object) -> None:
    record.stage = "ViT"
    with pytest.raises(ProtocolError):
        record.take(notice)  # type: ignore[arg-type]


def test_a_flood_is_kept_in_part(record: WatchRecord) -> None:
    for number in range(3 * MOST):
        record.stage = f"stage {number}"
        record.take(Reached(0, -1, "", 0))
        record.take(Seen(Prying.FRAMES, "homework.py", number))
        record.take(Tried(0, number))
    assert len(record.watched.reached) == len(record.watched.pried) == MOST


def test_where_it_pried(record: WatchRecord) -> None:
    record.take(Seen(Prying.MEMORY, "homework.py", 7))
    record.take(Seen(Prying.MEMORY, "/etc/passwd", 7))
    assert record.watched.pried == (
        Pried(Prying.MEMORY, Place("homework.py", 7), LOADING),
        Pried(Prying.MEMORY, None, LOADING),
    )


def test_the_trial_of_all(record: WatchRecord) -> None:
    for number in (0, 1):
        record.take(Tried(number, 5))
    record.require_all(5)
    assert record.watched.unproven == ()
    record.require_all(5)  # what was told for another trial does not count
    assert record.watched.unproven == (LOADING,)


def test_the_trial_of_one(record: WatchRecord) -> None:
    record.take(Tried(1, 7))
    record.require_one(7)  # 7 % 2: it is the second's turn
    assert record.watched.unproven == ()
    record.stage = "ViT"
    record.take(Tried(0, 7))
    record.require_one(7)
    assert record.watched.unproven == ("ViT",)


def test_a_worker_that_never_says_what_it_watches_is_not_trusted() -> None:
    silent = WatchRecord(("a.B",))
    silent.require_all(1)
    assert silent.watched.unproven == (LOADING,)
    nothing_forbidden = WatchRecord()
    nothing_forbidden.require_all(1)
    nothing_forbidden.require_one(1)
    assert nothing_forbidden.watched == Watched()
