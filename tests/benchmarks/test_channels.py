"""The benchmark of the channels between workers: what it computes, and that it hears what is there."""

import sys

import pytest

from benchmarks import channels
from benchmarks.channels import KNOWN, Received, decoded, entropy
from grader.domain.errors import SandboxError
from grader.sandbox.host_client import Host


def test_a_rate_is_that_of_a_binary_symmetric_channel():
    assert entropy(0.5) == 1 and entropy(0.0) == 0
    assert Received(errors=0.0, bits=500, seconds=2).rate == 250
    assert Received(errors=0.11, bits=500, seconds=1).rate == pytest.approx(250, rel=0.01)
    assert Received(errors=0.52, bits=500, seconds=1).rate == 0
    # a receiver that hears everything the wrong way round hears it all the same
    assert Received(errors=1.0, bits=500, seconds=1).rate == 500


def test_the_border_is_learned_from_the_known_bits():
    known = [0, 1] * 4
    assert decoded([5, 1] * 4 + [1, 5, 4], known) == [1, 0, 0]
    assert decoded([1, 5] * 4 + [1, 5, 4], known) == [0, 1, 1]


@pytest.mark.skipif(sys.platform != "linux", reason="the layers need Linux")
def test_names_are_heard_and_locks_are_not():
    path = f"{channels.HERE}:{channels.HERE.parent}"
    try:
        host = Host.start("channel_worker", env={"PYTHONPATH": path})
    except SandboxError as error:
        pytest.skip(f"this machine gives too little isolation: {error}")
    with host, host.spawn(channels.LIMITS) as sender, host.spawn(channels.LIMITS) as receiver:
        pair = channels.Pair(sender, receiver)
        known = channels._channels()
        heard = known["names that were looked up"].message(pair, 0)
        locked = known["locks of files (closed)"].message(pair, 0)
        numbered = known["numbers of pipes (closed)"].message(pair, 0.001)
    assert heard.bits == channels.BITS > KNOWN
    assert heard.rate > 0
    assert locked.rate == numbered.rate == 0 or min(locked.errors, numbered.errors) > 0.4
