"""Training a submission by calling what it wrote, and asking the trained model in a worker of its own.

The worker that trains is given the training data alone. What the model has become is data: its numbers, which
go into a model made anew where nothing was trained and nothing but hidden inputs is ever seen.
"""

import contextlib
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from grader.domain.errors import EngineError, Interruption
from grader.domain.evidence import TrainingOutcome
from grader.domain.program import TRAINING
from grader.protocol.frames import FrameLimit, ProtocolError
from grader.protocol.link import Link, StudentRaised, WorkerFault
from grader.protocol.replies import Invoked, Loaded
from grader.protocol.requests import MOST_STATE, Invoke
from grader.protocol.trees import TooMuch, Unpacker
from grader.training.call_arguments import Arguments
from grader.training.called_record import CalledRecord
from grader.training.training_job import REPLY_LIMIT, CalledJob, Measured, Workers

WEIGHTS_LIMIT = FrameLimit(document=8_000_000, arrays=MOST_STATE + 64_000_000)
ASKED_AT_ONCE = 256  # examples
STATE_DICT = "state_dict"
NO_NUMBERS = "The trained model answers with something else than a tensor or an array of numbers."


class _NotUsable(Interruption):
    """What the student's code gave is not what is needed; the message says what, as a sentence."""


def called_training(workers: Workers, job: CalledJob) -> Measured:
    """Train the submission by its own function, and measure the model."""
    record = CalledRecord(job)
    with contextlib.ExitStack() as stack:
        trainer = job.linked(workers())
        stack.callback(trainer.close)
        answering = trainer
        try:
            _load(trainer, job)
            record.loaded = True
            weights = _trained(trainer, job, record)
            _prove_watch(trainer, job)
            answering = measurer = job.linked(workers())
            stack.callback(measurer.close)
            _load(measurer, job)
            record.take(_answers(measurer, job, weights))
            _prove_watch(measurer, job)
        except StudentRaised as raised:
            answering.close()  # what the kernel says of its memory is known when it has ended
            record.fail(raised, answering.process.ending())
        except _NotUsable as error:
            record.end(TrainingOutcome.FAILED, str(error))
        except WorkerFault as fault:
            record.give_up(fault)
        except EngineError as error:
            record.end(TrainingOutcome.UNKNOWN, str(error))
    watched = trainer.watch.watched
    if answering is not trainer:
        watched = watched | answering.watch.watched
    return replace(record.measured(), attestation=trainer.process.attestation, watched=watched)


def _load(link: Link, job: CalledJob) -> None:
    loaded = link.ask(job.load(job.classes), Loaded, seconds=job.limits.load_seconds, limit=REPLY_LIMIT)
    for name in (job.call.model, job.call.function):
        if name not in loaded.kinds:
            raise _NotUsable(f"There is nothing to train yet: `{name}` is not there.")
    link.watch.stage = TRAINING


def _prove_watch(link: Link, job: CalledJob) -> None:
    """Try whether all that is watched still tells that it is used."""
    link.prove_watch(secrets.randbelow(2**31), seconds=job.limits.load_seconds, limit=REPLY_LIMIT)


def _trained(link: Link, job: CalledJob, record: CalledRecord) -> Any:
    """The numbers of the trained model, a tree of arrays."""
    call, model = job.call, None
    if "'{model}'" in str(call.given):
        model = _made(link, job)
    arguments = Arguments(job, model)
    nodes = arguments.nodes(call.given)
    request = Invoke(call.function, kwargs=nodes, seed=job.seed, arrays=arguments.arrays)
    reply = _invoked(link, request, job, job.limits.training_seconds)
    record.trained()
    if model is None:
        model = _handle(reply, f"`{call.function}` returned", "the trained model")
    return _weights(link, job, model)


def _made(link: Link, job: CalledJob) -> int:
    """The handle of a model that is new."""
    arguments = Arguments(job)
    nodes = arguments.nodes(job.call.arguments)
    request = Invoke(job.call.model, kwargs=nodes, seed=job.seed, arrays=arguments.arrays)
    reply = _invoked(link, request, job, job.limits.load_seconds)
    return _handle(reply, f"`{job.call.model}` gave", "a model")


def _handle(reply: Invoked, what: str, expected: str) -> int:
    match reply.value:
        case {"thing": int(handle)} if 0 <= handle < 2**31:
            return handle
    raise _NotUsable(f"{what} something that is no object; it should be {expected}.")


def _weights(link: Link, job: CalledJob, model: int) -> Any:
    member = job.call.weights or STATE_DICT
    request = Invoke(handle=model, action="get", member=member, seed=job.seed)
    reply = _invoked(link, request, job, job.limits.load_seconds)
    if "thing" in (reply.value if isinstance(reply.value, Mapping) else ()):  # a method: it is called
        request = Invoke(handle=model, member=member, seed=job.seed)
        reply = _invoked(link, request, job, job.limits.load_seconds)
    try:
        weights = Unpacker(reply.arrays, _no_array, tensors=False).value(reply.value)
    except ProtocolError as error:
        raise _NotUsable(
            f"`{member}` of the trained model holds something else than tensors and arrays."
        ) from error
    if isinstance(weights, TooMuch):
        raise _NotUsable(f"`{member}` of the trained model holds more than can be taken over.")
    return weights


def _answers(link: Link, job: CalledJob, weights: Any) -> Any:
    """What the model answers for the hidden inputs with these numbers, (n, ...)."""
    call, limits = job.call, job.limits
    model = _made(link, job)
    arguments = Arguments(job, model)
    fill = Invoke(
        handle=model,
        action="fill",
        member=call.weights or STATE_DICT,
        args=(arguments.numbers(weights),),
        seed=job.seed,
        arrays=arguments.arrays,
    )
    _invoked(link, fill, job, limits.load_seconds)
    inputs, found = job.examples.test_inputs, []
    order = np.arange(len(inputs))
    if job.order_seed is not None:
        order = np.random.default_rng(job.order_seed).permutation(order)
    for start in range(0, len(order), ASKED_AT_ONCE):
        rows = order[start : start + ASKED_AT_ONCE]
        asked = Arguments(job, model)
        node, further = asked.asked(inputs[rows]), asked.nodes(call.answers_with)
        request = Invoke(
            handle=model,
            member=call.answers,
            args=(node,),
            kwargs=further,
            training=False,
            seed=job.seed,
            arrays=asked.arrays,
        )
        found.append(_outputs(_invoked(link, request, job, limits.call_seconds), len(rows)))
    if len({(part.shape[1:], part.dtype) for part in found}) > 1:
        raise _NotUsable("The trained model gives outputs of different shapes for different batches.")
    outputs = np.concatenate(found)
    ours = np.empty_like(outputs)
    ours[order] = outputs
    return ours


def _outputs(reply: Invoked, count: int) -> Any:
    """A batch of outputs, (count, ...)."""
    try:
        outputs = Unpacker(reply.arrays, _no_array, tensors=False).value(reply.value)
    except ProtocolError as error:
        raise _NotUsable(NO_NUMBERS) from error
    if not isinstance(outputs, np.ndarray) or not outputs.ndim or outputs.dtype.kind not in "fiub":
        raise _NotUsable(NO_NUMBERS)
    if len(outputs) != count:
        raise _NotUsable(f"For {count} inputs the trained model gives {len(outputs)} outputs.")
    return outputs


def _invoked(link: Link, request: Invoke, job: CalledJob, seconds: float) -> Invoked:
    return link.ask(request, Invoked, seconds=seconds, limit=WEIGHTS_LIMIT)


def _no_array(node: dict[str, Any]) -> Any:
    raise ProtocolError("a tree holds something that is no value")
