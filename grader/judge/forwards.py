"""Forward passes of a rigged model: answered here, and therefore known.

It decides whether a request for images makes sense; else the worker is at fault. The modes are what the
worker says. The checks decide whether the passes are right.

Tests: tests/worker/test_rigged_runs.py, tests/judge/test_lies.py
"""

from grader.judge.believed import nonsense
from grader.kit.rig import RiggedData
from grader.protocol.replies import ForwardPass
from grader.protocol.requests import Rows

MAX_PASSES = 2000  # that are remembered; more are answered
MAX_IMAGES = 20_000  # of one pass


class ForwardRecord:
    """Answers a rigged model's forward passes, and remembers them.

    Attributes:
        forwards: In order. The images are what was answered; the modes are what the worker says.
    """

    def __init__(self, data: RiggedData) -> None:
        self.forwards: list[ForwardPass] = []
        self._rows = data.rows

    def rows(self, forward: ForwardPass) -> Rows:
        """What the model needs of its images.

        Raises:
            WorkerFault: It asks for what is not there.
        """
        ids = forward.images
        if forward.size != len(ids) or len(ids) > MAX_IMAGES:
            raise nonsense()
        if any(not 0 <= number < len(self._rows) for number in ids):
            raise nonsense()
        if len(self.forwards) < MAX_PASSES:
            self.forwards.append(forward)
        return Rows({"rows": self._rows[list(ids)]})
