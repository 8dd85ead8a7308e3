"""Trains a submission by calling its function; a second worker measures the trained model.

The worker that trains is given the training data alone, as arguments made from the assignment's values and
data. The trained model leaves it as data: its numbers. They go into a new model in a worker where nothing was
trained and which sees only hidden inputs. If a PyTorch module is trained on images, this is also done after
every pass over the training loader. `called_record` decides what is kept.
"""

import contextlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from grader.domain.analyzed_program import TRAINING
from grader.domain.errors import EngineError, Interruption, SandboxError
from grader.domain.evidence import TrainingOutcome
from grader.domain.measure import placeholders_in
from grader.protocol.frames import FrameLimit, ProtocolError
from grader.protocol.link import Link, StudentRaised, WorkerFault
from grader.protocol.replies import EpochDone, Invoked, Loaded, Stepped
from grader.protocol.requests import MOST_STATE, STATE, Invoke
from grader.protocol.trees import Node, Packer, TooMuch, Unpacker
from grader.training.called_record import CalledRecord
from grader.training.examples import SEEN, some_of_each
from grader.training.training_job import REPLY_LIMIT, CalledJob, FinalModel, Measured, Report, Workers

VALIDATION_SHARE = 0.1  # of the training data, if the function is given data for validation
MOST_BYTES = 3_000_000_000  # of a data set


class Arguments:
    """The arguments of the calls of one training.

    Attributes:
        arrays: Those of all nodes made so far.
        training_rows: The rows of the training data that it is trained on, int64 (n,).
    """

    def __init__(self, job: CalledJob, model: int | None = None) -> None:
        """Nothing is packed yet.

        Args:
            model: The model's handle, if there is one.
        """
        self._job, self._model = job, model
        self._packer = Packer(_nothing_else, most_bytes=MOST_BYTES)
        rows = np.arange(len(job.examples.train_inputs))
        training, validation = rows, rows[:0]
        if any(name.startswith("validation_") for name in placeholders_in(job.call.given)):
            shuffled = np.random.default_rng(job.seed).permutation(rows)
            kept = max(round(VALIDATION_SHARE * len(rows)), 1)
            training, validation = np.sort(shuffled[kept:]), np.sort(shuffled[:kept])
        self.training_rows = training
        self._rows = {
            **dict.fromkeys(("{inputs}", "{targets}", "{batches}"), training),
            **dict.fromkeys(
                ("{validation_inputs}", "{validation_targets}", "{validation_batches}"), validation
            ),
        }

    @property
    def arrays(self) -> dict[str, Any]:
        """The arrays of all that was packed."""
        return self._packer.arrays

    def nodes(self, values: Mapping[str, Any]) -> dict[str, Node]:
        """The nodes of some arguments, by name, with the values of their placeholders."""
        return {name: self.node(value) for name, value in values.items()}

    def node(self, value: Any) -> Node:
        """The node of a value from the assignment."""
        match value:
            case "{model}":
                return {"thing": self._model}
            case "{seed}":
                return self._job.seed % 2**31
            case "{device}":
                return {"device": self._job.device, "memory_mb": self._job.gpu_memory_mb}
            case "{inputs}" | "{validation_inputs}":
                return self._inputs(self._rows[value])
            case "{targets}" | "{validation_targets}":
                return self._targets(self._rows[value], tensors=self._job.call.tensors)
            case "{batches}" | "{validation_batches}":
                return self._batches(self._rows[value], shuffled=value == "{batches}")
            case Mapping():
                return {"dict": [[name, self.node(item)] for name, item in value.items()]}
            case list():
                return {"list": [self.node(item) for item in value]}
        return self._packer.node(value)

    def numbers(self, weights: Any) -> Node:
        """The node of a trained model's numbers, a tree of arrays."""
        return self._packer.node(weights)

    def asked(self, inputs: Any) -> Node:
        """The node of inputs that are asked about, (n, ...)."""
        scaled = self._job.scaled
        node = self._packer.array_node(inputs, tensor=self._job.call.tensors or scaled)
        if not scaled:
            return node
        return {"scaled": node, **self._channels} if self._job.call.standardized else {"scaled": node}

    def as_fed(self, images: Any) -> Any:
        """Images as a model is fed them, float32 (n, channels, height, width).

        Args:
            images: uint8, of the same shape.
        """
        shares: Any = images.astype(np.float32) / 255
        if not self._job.call.standardized:
            return shares
        mean, deviation = (
            np.array(self._channels[name], dtype=np.float32).reshape(-1, 1, 1)
            for name in ("mean", "deviation")
        )
        return (shares - mean) / deviation

    @cached_property
    def _channels(self) -> dict[str, list[float]]:
        """Mean and standard deviation of each channel of the training images, as shares of one."""
        images = self._job.examples.train_inputs.astype(np.float32) / 255
        return {
            "mean": images.mean(axis=(0, 2, 3)).tolist(),
            "deviation": np.maximum(images.std(axis=(0, 2, 3)), 1e-3).tolist(),
        }

    def _inputs(self, rows: Any) -> Node:
        return self.asked(self._job.examples.train_inputs[rows])

    def _targets(self, rows: Any, *, tensors: bool) -> Node:
        targets = self._job.examples.train_targets
        return None if targets is None else self._packer.array_node(targets[rows], tensor=tensors)

    def _batches(self, rows: Any, *, shuffled: bool) -> Node:
        count, size = len(rows), self._job.call.batch_size
        described = {
            "inputs": self._inputs(rows),
            "targets": self._targets(rows, tensors=True),
            "sizes": self._packer.node([min(size, count - start) for start in range(0, count, size)]),
            "classes": self._packer.node(list(self._job.classes)),
            "shuffled": shuffled,
        }
        return {"batches": {"dict": [[name, node] for name, node in described.items()]}}


def _nothing_else(value: Any) -> Node:
    raise TypeError(f"a {type(value).__name__} is not a value of assignment.toml")


# --- called training -------------------------------------------------------------------------------------


WEIGHTS_LIMIT = FrameLimit(document=8_000_000, arrays=MOST_STATE + 64_000_000)
ASKED_AT_ONCE = 256  # examples
STATE_DICT = "state_dict"
NO_NUMBERS = "The trained model answers with something other than a tensor or an array of numbers."


class NotUsable(Interruption):
    """What the student's code gave is not what is needed; the message says what, as a sentence."""


def called_training(workers: Workers, job: CalledJob, report: Report = lambda _: None) -> Measured:
    """Train the submission by its own function, and measure the model.

    Args:
        report: Called with each pass over the training loader, if the passes can be seen.
    """
    record = CalledRecord(job, report)
    with contextlib.ExitStack() as stack:
        trainer = job.linked(workers())
        stack.callback(trainer.close)
        answering = trainer
        try:
            loaded_for(trainer, job)
            record.loaded = True
            weights = trained_by(trainer, job, _Passes(workers, job, record, stack).take)
            record.trained()
            _prove_watch(trainer, job)
            answering = measurer = job.linked(workers())
            stack.callback(measurer.close)
            loaded_for(measurer, job)
            asked = _AskedModel(measurer, job)
            outputs = asked.outputs(weights)
            record.take(outputs, asked.seen_accuracy(), final_model(job, weights, outputs))
            _prove_watch(measurer, job)
        except StudentRaised as raised:
            answering.close()  # what the kernel says about its memory is known once it has ended
            record.fail(raised, answering.process.ending())
        except NotUsable as error:
            record.end(TrainingOutcome.FAILED, str(error))
        except WorkerFault as fault:
            record.give_up(fault)
        except SandboxError:  # nothing is known of the submission: the next run examines it again
            raise
        except EngineError as error:
            record.end(TrainingOutcome.UNKNOWN, str(error))
    watched = trainer.watch.watched
    if answering is not trainer:
        watched = watched | answering.watch.watched
    return replace(record.measured(), attestation=trainer.process.attestation, watched=watched)


def loaded_for(link: Link, job: CalledJob) -> None:
    """Load the program, which must define what is called."""
    loaded = link.ask(job.load(job.classes), Loaded, seconds=job.limits.load_seconds, limit=REPLY_LIMIT)
    for name in (job.call.model, job.call.function):
        if name not in loaded.kinds:
            raise NotUsable(f"There is nothing to train yet: `{name}` is not there.")
    link.watch.stage = TRAINING


def _prove_watch(link: Link, job: CalledJob) -> None:
    """Test whether every watched part still reports its use."""
    link.prove_watch(secrets.randbelow(2**31), seconds=job.limits.load_seconds, limit=REPLY_LIMIT)


def trained_by(link: Link, job: CalledJob, take: Callable[[EpochDone | Stepped], None]) -> Any:
    """The numbers of the trained model, a tree of arrays.

    Args:
        take: Called with each pass over the training loader, if the passes can be seen, and with how many
            steps were taken.

    Raises:
        NotUsable, StudentRaised, WorkerFault, EngineError: There are no such numbers.
    """
    call, model = job.call, None
    if "model" in placeholders_in(call.given):
        model = _new_model(link, job)
    arguments = Arguments(job, model)
    nodes = arguments.nodes(call.given)
    request = Invoke(call.function, kwargs=nodes, seed=job.seed, arrays=arguments.arrays)
    if model is not None and job.splits is not None:
        request = replace(request, passes_of=model, trainer=job.trainer)
    seconds = job.limits.training_seconds
    replies = (EpochDone, Stepped, Invoked)
    for message in link.conversation(request, replies, seconds=seconds, limit=WEIGHTS_LIMIT):
        if isinstance(message, Invoked):
            reply = message
            break
        take(message)
    if model is None:
        model = _handle(reply, f"`{call.function}` returned", "the trained model")
    return _weights(link, job, model)


def _new_model(link: Link, job: CalledJob) -> int:
    """The handle of a new model."""
    arguments = Arguments(job)
    nodes = arguments.nodes(job.call.arguments)
    request = Invoke(job.call.model, kwargs=nodes, seed=job.seed, arrays=arguments.arrays)
    reply = _invoked(link, request, job, job.limits.load_seconds)
    return _handle(reply, f"`{job.call.model}` gave", "a model")


def _handle(reply: Invoked, what: str, expected: str) -> int:
    match reply.value:
        case {"thing": int(handle)} if 0 <= handle < 2**31:
            return handle
    raise NotUsable(f"{what} something that is not an object; it should be {expected}.")


def _weights(link: Link, job: CalledJob, model: int) -> Any:
    member = job.call.weights or STATE_DICT
    request = Invoke(handle=model, action="get", member=member, seed=job.seed)
    reply = _invoked(link, request, job, job.limits.load_seconds)
    if "thing" in (reply.value if isinstance(reply.value, Mapping) else ()):  # a method: call it
        request = Invoke(handle=model, member=member, seed=job.seed)
        reply = _invoked(link, request, job, job.limits.load_seconds)
    try:
        weights = Unpacker(reply.arrays, _no_array, tensors=False).value(reply.value)
    except ProtocolError as error:
        raise NotUsable(
            f"`{member}` of the trained model holds something other than tensors and arrays."
        ) from error
    if isinstance(weights, TooMuch):
        raise NotUsable(f"`{member}` of the trained model holds more than can be taken over.")
    return weights


SHOWN_AGAIN = 8  # hidden images that a judge is shown with the trained model


def final_model(job: CalledJob, weights: Any, outputs: Any) -> FinalModel | None:
    """What a judge needs to look at the trained model again; None if it does not classify images by itself.

    Args:
        weights: The numbers of the trained model.
        outputs: What it answers for the hidden inputs, (n, ...).
    """
    call = job.call
    is_state = isinstance(weights, dict) and all(isinstance(value, np.ndarray) for value in weights.values())
    is_plain = not (call.weights or call.answers or call.answers_with or placeholders_in(call.arguments))
    if job.splits is None or not (is_state and is_plain and job.scaled) or outputs.ndim != 2:
        return None
    rows = some_of_each(job.splits.test_labels, 1)[:SHOWN_AGAIN]
    inputs = Arguments(job).as_fed(job.examples.test_inputs[rows])
    return FinalModel(weights, inputs, outputs[rows].astype(np.float32))


class _Passes:
    """Measures the model after each pass, in a worker that does nothing else.

    What cannot be measured on the way is not reported: the model at the end counts.
    """

    def __init__(
        self, workers: Workers, job: CalledJob, record: CalledRecord, stack: contextlib.ExitStack
    ) -> None:
        self._workers, self._job, self._record, self._stack = workers, job, record, stack
        self._asked: _AskedModel | None = None
        self._given_up = False

    def take(self, done: EpochDone | Stepped) -> None:
        """Measure the model after a pass."""
        if isinstance(done, Stepped):
            self._record.note_steps(done)
            return
        self._record.note_pass()
        if self._given_up:
            return
        try:
            if self._asked is None:
                link = self._job.linked(self._workers())
                self._stack.callback(link.close)
                loaded_for(link, self._job)
                self._asked = _AskedModel(link, self._job)
            weights = {
                name.removeprefix(STATE): value
                for name, value in done.arrays.items()
                if name.startswith(STATE)
            }
            self._record.take_pass(done, self._asked.outputs(weights))
        except (StudentRaised, NotUsable, WorkerFault, EngineError):
            self._given_up = True


class _AskedModel:
    """A model in a worker where nothing was trained, which answers for the hidden inputs."""

    def __init__(self, link: Link, job: CalledJob) -> None:
        self._link, self._job = link, job
        self._model = _new_model(link, job)
        self._order = np.arange(len(job.examples.test_inputs))
        if job.order_seed is not None:
            self._order = np.random.default_rng(job.order_seed).permutation(self._order)

    def outputs(self, weights: Any) -> Any:
        """What the model answers with these numbers for the hidden inputs, (n, ...)."""
        job, limits, arguments = self._job, self._job.limits, Arguments(self._job, self._model)
        fill = Invoke(
            handle=self._model,
            action="fill",
            member=job.call.weights or STATE_DICT,
            args=(arguments.numbers(weights),),
            seed=job.seed,
            arrays=arguments.arrays,
        )
        _invoked(self._link, fill, job, limits.load_seconds)
        outputs = self._outputs_in_batches(job.examples.test_inputs[self._order])
        ours = np.empty_like(outputs)
        ours[self._order] = outputs
        return ours

    def seen_accuracy(self) -> float | None:
        """The accuracy for some unchanged training images, 0 to 1; None if there are none."""
        splits = self._job.splits
        if splits is None:
            return None
        rows = Arguments(self._job).training_rows
        rows = rows[some_of_each(splits.train_labels[rows], SEEN)]
        outputs = self._outputs_in_batches(self._job.examples.train_inputs[rows])
        if outputs.shape != (len(rows), len(splits.classes)):
            return None
        return float((outputs.argmax(axis=1) == splits.train_labels[rows]).mean())

    def _outputs_in_batches(self, inputs: Any) -> Any:
        parts = [
            self._outputs_of(inputs[start : start + ASKED_AT_ONCE])
            for start in range(0, len(inputs), ASKED_AT_ONCE)
        ]
        if len({(part.shape[1:], part.dtype) for part in parts}) > 1:
            raise NotUsable("The trained model gives outputs of different shapes for different batches.")
        return np.concatenate(parts)

    def _outputs_of(self, inputs: Any) -> Any:
        """The outputs of a batch, (n, ...)."""
        job, asked = self._job, Arguments(self._job, self._model)
        node, further = asked.asked(inputs), asked.nodes(job.call.answers_with)
        request = Invoke(
            handle=self._model,
            member=job.call.answers,
            args=(node,),
            kwargs=further,
            training=False,
            seed=job.seed,
            arrays=asked.arrays,
        )
        return _outputs(_invoked(self._link, request, job, job.limits.call_seconds), len(inputs))


def _outputs(reply: Invoked, count: int) -> Any:
    """A batch of outputs, (count, ...)."""
    try:
        outputs = Unpacker(reply.arrays, _no_array, tensors=False).value(reply.value)
    except ProtocolError as error:
        raise NotUsable(NO_NUMBERS) from error
    if not isinstance(outputs, np.ndarray) or not outputs.ndim or outputs.dtype.kind not in "fiub":
        raise NotUsable(NO_NUMBERS)
    if len(outputs) != count:
        raise NotUsable(f"For {count} inputs the trained model gives {len(outputs)} outputs.")
    return outputs


def _invoked(link: Link, request: Invoke, job: CalledJob, seconds: float) -> Invoked:
    return link.ask(request, Invoked, seconds=seconds, limit=WEIGHTS_LIMIT)


def _no_array(node: dict[str, Any]) -> Any:
    raise ProtocolError("a tree holds something that is not a value")
