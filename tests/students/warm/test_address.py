"""Where a warm process is asked, by a local socket or by a port."""

import socket
import sys
import threading

import pytest

from grader.students.warm.address import HAS_LOCAL_SOCKETS, Messages, Unanswered, WarmAddress, tell

WAYS = [True, False] if HAS_LOCAL_SOCKETS else [True]


@pytest.fixture(params=WAYS, ids=lambda by_port: "port" if by_port else "local socket")
def address(request, tmp_path):
    return WarmAddress(tmp_path, "one", request.param)


def served(listener):
    """One message is answered with the same."""

    def serve():
        connection, _ = listener.accept()
        with connection:
            tell(connection, Messages(connection).next())

    threading.Thread(target=serve, daemon=True).start()


def test_a_message_goes_there_and_back(address):
    with address.lock as lock:
        assert lock.taken()
        listener, secret = address.listener()
        with listener:
            served(listener)
            connection, told = address.connected(20)
            with connection:
                assert told == secret and bool(secret) == address.by_port
                tell(connection, {"text": "ü\n"})
                messages = Messages(connection)
                assert messages.next() == {"text": "ü\n"}
                with pytest.raises(Unanswered):
                    messages.next()


def test_what_a_killed_process_left_is_no_address(address):
    with pytest.raises(OSError):
        address.connected(1)
    listener, _ = address.listener()
    listener.close()
    with pytest.raises(OSError):
        address.connected(1)
    with address.lock as lock:
        assert lock.taken() and address.pid() is not None
        again, _ = address.listener()  # in its place
        with again:
            address.connected(20)[0].close()
        address.close()
    assert address.pid() is None
    with pytest.raises(OSError):
        address.connected(1)
    assert [path.name for path in address.folder.iterdir()] == ["one.lock"]


def test_a_port_is_believed_only_while_its_process_lives(tmp_path):
    """Another program may listen there by now, and would be told the environment."""
    address = WarmAddress(tmp_path, "one", by_port=True)
    listener, _ = address.listener()
    with listener:
        with pytest.raises(ConnectionRefusedError):
            address.connected(1)
        with address.lock as lock:
            assert lock.taken()
            address.connected(1)[0].close()
            (tmp_path / "one.port").write_text("{}")
            with pytest.raises(Unanswered):
                address.connected(1)


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such modes")
def test_only_the_user_can_read_the_secret(tmp_path):
    address = WarmAddress(tmp_path, "one", by_port=True)
    listener, _ = address.listener()
    listener.close()
    assert (tmp_path / "one.port").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not HAS_LOCAL_SOCKETS, reason="it has no local sockets")
def test_a_path_that_is_too_long_for_a_socket_is_no_address(tmp_path):
    with pytest.raises(OSError, match="too long"):
        WarmAddress(tmp_path / ("x" * 100), "one").require()


@pytest.mark.parametrize("sent", [b"", b"{", b"{}", b"[1]\n", b"no JSON\n", b"\xff\n"])
def test_what_is_no_message_is_no_answer(sent):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(sent)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(Unanswered):
            Messages(ours).next()
