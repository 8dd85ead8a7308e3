"""A model of what a class costs on a cluster: how long it takes, and where the coordinator becomes the limit.

A run is played with given times of its submissions. Places on nodes take the next submission when they are
free, as the coordinator hands them out; each result then waits for the coordinator, which records one at a
time. Nothing is random.
"""

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Costs:
    """What a run costs besides the examination of its submissions.

    Attributes:
        start: Seconds until nodes are ready.
        handing: Seconds between two submissions of one place: packing, sending, answering.
        recording: Seconds of the coordinator for each result, one after the other.
        end: Seconds per submission for the files of the class, at the end.
    """

    start: float
    handing: float
    recording: float
    end: float


@dataclass(frozen=True)
class Planned:
    """How a run comes out.

    Attributes:
        seconds: From its start to its end.
        ideal: Seconds if nothing but the nodes' own work took time: of the busiest place at best.
        node_hours: Of all nodes together.
        waiting: Share of the time in which places wait for the coordinator, 0 to 1.
    """

    seconds: float
    ideal: float
    node_hours: float
    waiting: float


def planned(times: Sequence[float], count: int, nodes: int, places: int, costs: Costs) -> Planned:
    """How a class of `count` submissions comes out.

    Args:
        times: Seconds that submissions took, used again and again.
        nodes: How many there are.
        places: Of each node: submissions at once.
        costs: Everything else.
    """
    work = list(itertools.islice(itertools.cycle(times), count))
    free = [costs.start] * (nodes * places)
    heapq.heapify(free)
    recorded = costs.start
    results = []
    for seconds in work:
        done = heapq.heappop(free) + costs.handing + seconds
        results.append(done)
        heapq.heappush(free, done)
    for done in sorted(results):
        recorded = max(recorded, done) + costs.recording
    ready = max(results, default=costs.start)
    total = recorded + costs.end * count
    ideal = max(sum(work) / (nodes * places), max(work, default=0.0))
    return Planned(total, ideal, nodes * total / 3600, max(recorded - ready, 0.0) / total)
