"""What a host and its client say to each other: one JSON object per packet of a local socket."""

import json
import os
import socket
from collections.abc import Sequence
from typing import Any

from grader.domain.errors import EngineError

MOST_BYTES = 65_536


def listening_socket(path: str) -> socket.socket:
    """A socket that clients connect to by its path."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen(128)
    return listener


def send(connection: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send one message, with file descriptors if any.

    Raises:
        OSError: The other side is gone.
    """
    packed = json.dumps(message).encode()
    if len(packed) > MOST_BYTES:
        raise EngineError(f"A message of {len(packed)} bytes to a host is too long.")
    if descriptors:
        socket.send_fds(connection, [packed], list(descriptors))
    else:
        connection.send(packed)


def received(connection: socket.socket, descriptors: int = 0) -> tuple[dict[str, Any] | None, list[int]]:
    """The next message and its file descriptors; None when the other side has closed.

    Raises:
        OSError: The other side is gone, or did not answer within the socket's time-out.
        EngineError: What arrived is not a message.
    """
    packed, received_fds, _, _ = socket.recv_fds(connection, MOST_BYTES, descriptors)
    for descriptor in received_fds:
        os.set_inheritable(descriptor, False)  # Python's function takes flags, and leaves them out
    if not packed:
        return None, received_fds
    try:
        message = json.loads(packed)
    except ValueError as error:
        raise EngineError("A host and its client do not understand each other.") from error
    if not isinstance(message, dict):
        raise EngineError("A host and its client do not understand each other.")
    return message, received_fds
