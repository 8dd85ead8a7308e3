"""Sending a request, receiving a reply: messages over frames.

What a worker says is validated strictly: no coercion, no missing fields, and only the kinds of reply that
the request allows.
"""

from dataclasses import fields, replace
from typing import Any, BinaryIO, TypeVar

from pydantic import ValidationError

from grader.files.stored_records import validator
from grader.protocol import replies, requests
from grader.protocol.frames import Frame, FrameLimit, ProtocolError, Readable, read_frame, write_frame

KIND_KEY = "$kind"
REQUESTS: tuple[type[Any], ...] = requests.Request.__args__
REPLIES: tuple[type[Any], ...] = replies.Reply.__args__
NOTICES: tuple[type[Any], ...] = replies.Notice.__args__  # may come unasked, before a reply
ARRAYS_FIELD = "arrays"

_ALL_KINDS = (*REQUESTS, *REPLIES, *NOTICES, requests.Rows, requests.FakeAnswer)
_DOCUMENT_FIELDS: dict[type[Any], frozenset[str]] = {
    kind: frozenset(part.name for part in fields(kind)) - {ARRAYS_FIELD} for kind in _ALL_KINDS
}

Message = TypeVar("Message")


def prepare_validators() -> None:
    """Make the validators of all kinds of messages, once, in a process that forks others."""
    for kind in _ALL_KINDS:
        validator(kind)


def send(stream: BinaryIO, message: Any) -> None:
    """Write one message, a request or a reply.

    Raises:
        ClosedError: The other side is gone.
    """
    kind = type(message)
    document = validator(kind).dump_python(message, mode="json", exclude={ARRAYS_FIELD})
    write_frame(stream, Frame({KIND_KEY: kind.__name__, **document}, getattr(message, ARRAYS_FIELD, {})))


def receive(stream: Readable, allowed: tuple[type[Message], ...], limit: FrameLimit) -> Message:
    """The next message, which must be of an allowed kind.

    Raises:
        ClosedError: The other side is gone.
        ProtocolError: It is malformed, too large, or of another kind.
    """
    frame = read_frame(stream, limit)
    name = frame.document.pop(KIND_KEY, None)
    for kind in allowed:
        if kind.__name__ == name:
            break
    else:
        raise ProtocolError(f"a message of the kind {str(name)[:40]!r} was not expected")
    if not frame.document.keys() <= _DOCUMENT_FIELDS[kind]:  # nor `arrays`: they come beside the document
        raise ProtocolError(f"a {kind.__name__} message has fields that it should not have")
    try:
        # the text as it came: reading it decided that it is JSON, and which keys it has
        message: Message = validator(kind).validate_json(frame.text, strict=True)
    except (ValidationError, ValueError, RecursionError) as error:
        raise ProtocolError(f"a {kind.__name__} message is malformed") from error
    if frame.arrays:
        if not hasattr(message, ARRAYS_FIELD):
            raise ProtocolError(f"a {kind.__name__} message carries no arrays")
        message = replace(message, arrays=dict(frame.arrays))  # type: ignore[type-var]
    return message
