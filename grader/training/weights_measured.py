"""Asking a worker in which nothing was trained what the trained weights are worth."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from grader.domain.errors import Interruption
from grader.domain.program import TRAINING, Program
from grader.protocol.frames import FrameLimit
from grader.protocol.link import StudentRaised, WorkerProcess
from grader.protocol.plain_values import ModelMade
from grader.protocol.recipe_gaps import gap_in_words
from grader.protocol.replies import Answered, Loaded, Measurable, Module
from grader.protocol.requests import MOST_STATE, STATE, Answer, Load, MeasureModel
from grader.training.training_job import REPLY_LIMIT, Job

STATE_LIMIT = FrameLimit(document=2_000_000, arrays=MOST_STATE + 64_000_000)


class BuiltOnceOnly(Interruption):
    """The model was built where it trained, and cannot be built again; the message says why, as a clause."""


class Measurer:
    """A worker that holds the student's model as its source configures it."""

    def __init__(self, process: WorkerProcess, job: Job, load: Load, arrays: Mapping[str, Any]) -> None:
        """Nothing is asked yet: it is loaded with the first question, while training goes on.

        Args:
            process: The worker.
            job: What is trained.
            load: What is executed there: the same as where it is trained.
            arrays: `train_labels` and `test_images` of MeasureModel.
        """
        self.link = job.linked(process)
        self._job = job
        self._load = load
        self._arrays = arrays
        self._built: Measurable | None = None
        limits = job.limits
        # training itself ends at its limit; then all test images pass the model once more
        self._until = (
            time.monotonic() + limits.training_seconds + limits.load_seconds + 6 * limits.call_seconds
        )

    @property
    def program(self) -> Program:
        """What was analyzed of the source."""
        return self._job.program

    def modules(self, made: ModelMade | None) -> Sequence[Module]:
        """The tree of the model that the source builds.

        Args:
            made: What it was made with, as the worker tells it with the first epoch, where the source alone
                does not.

        Raises:
            BuiltOnceOnly: It cannot be built here.
            WorkerFault: The worker hung, died or talked nonsense.
            EngineError: The worker's own code failed.
        """
        if self._built is None:
            if made is not None and not made.is_small:
                raise BuiltOnceOnly("it was made with more than can be told")
            self._built = self._measurable(made)
        return self._built.modules

    def _measurable(self, made: ModelMade | None) -> Measurable:
        job, share = self._job, self._job.gpu_memory_mb
        measure = MeasureModel(
            self._load.class_names, job.device, job.seed, share and share // 4, made, arrays=self._arrays
        )
        try:
            self.link.ask(self._load, Loaded, seconds=job.limits.load_seconds, limit=REPLY_LIMIT)
            self.link.watch.stage = TRAINING
            return self.link.ask(measure, Measurable, seconds=self._left, limit=REPLY_LIMIT)
        except StudentRaised as raised:
            raise BuiltOnceOnly(f"{self._kind(raised)} where it was built again") from raised

    def answered(
        self,
        state: Mapping[str, Any],
        *,
        attention_of: tuple[int, ...] = (),
        inputs_of: tuple[int, ...] = (),
        probe: Any = None,
        seen: Any = None,
    ) -> Answered:
        """What the model answers with these weights.

        Args:
            state: Parameters and buffers by name.
            attention_of, inputs_of: Test images in the worker's order: see Answer.
            probe: Inputs for which it is to answer too, float32; None: there are none.
            seen: Images that it was trained on, uint8, for which it is to answer too.

        Raises:
            BuiltOnceOnly: It cannot be built here.
            StudentRaised: The model raised.
            WorkerFault: The worker hung, died or talked nonsense.
            EngineError: The worker's own code failed.
        """
        arrays = {STATE + name: value for name, value in state.items()}
        if probe is not None:
            arrays["probe"] = probe
        if seen is not None:
            arrays["seen"] = seen
        request = Answer(attention_of, inputs_of, arrays)
        return self.link.ask(request, Answered, seconds=self._left, limit=REPLY_LIMIT)

    def _kind(self, raised: StudentRaised) -> str:
        if raised.gap:
            return gap_in_words(raised.gap, self.program.recipe)
        return self._job.raised(raised.problem)

    @property
    def _left(self) -> float:
        return max(self._until - time.monotonic(), 1.0)

    def close(self) -> None:
        """End the worker."""
        self.link.close()
