"""Who may open the console: links, sessions, roles."""

import json
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from grader.domain.errors import UsageError
from grader.web.access import SESSION_LASTS, Access, LinkRefused, StaffRole


@pytest.fixture
def access(tmp_path: Path, clock) -> Access:
    return Access(tmp_path, clock)


def test_a_link_is_exchanged_for_a_session_with_the_role(access):
    secret, session = access.exchanged(access.invite("ta1", StaffRole.HEAD))
    assert (session.person, session.role) == ("ta1", StaffRole.HEAD)
    assert access.session(secret) == session
    assert access.session(secret + "x") is None


def test_a_link_for_once_works_once(access):
    token = access.invite("head", StaffRole.INSTRUCTOR, once=True)
    secret, _ = access.exchanged(token)
    with pytest.raises(LinkRefused):
        access.exchanged(token)
    assert access.session(secret) is not None


def test_changed_guessed_and_expired_links_open_nothing(access, clock):
    token = access.invite("ta1", StaffRole.MARKER)
    name, _, signature = token.partition(".")
    other = access.invite("ta2", StaffRole.HEAD)
    for guess in (
        "",
        "x",
        name,
        f"{name}.",
        f"{name}.{signature[:-2]}AA",
        f"{other.partition('.')[0]}.{signature}",
    ):
        with pytest.raises(LinkRefused):
            access.exchanged(guess)
    clock.moved = timedelta(days=15)
    with pytest.raises(LinkRefused):
        access.exchanged(token)


def test_withdrawing_ends_links_and_sessions_also_from_another_process(access, clock, tmp_path):
    token = access.invite("ta1", StaffRole.MARKER)
    secret, _ = access.exchanged(token)
    kept, _ = access.exchanged(access.invite("ta2", StaffRole.MARKER))
    assert Access(tmp_path, clock).withdraw("ta1") == 1
    assert access.session(secret) is None and access.session(kept) is not None
    with pytest.raises(LinkRefused):
        access.exchanged(token)
    with pytest.raises(UsageError, match="Nobody called 'ta9'"):
        access.withdraw("ta9")


def test_a_session_ends_with_its_time_and_by_signing_out(access, clock):
    secret, _ = access.exchanged(access.invite("ta1", StaffRole.MARKER))
    other, _ = access.exchanged(access.invite("ta1", StaffRole.MARKER))
    access.leave(other)
    assert access.session(other) is None and access.session(secret) is not None
    clock.moved = SESSION_LASTS
    assert access.session(secret) is None


def test_the_file_holds_no_secret_of_a_session_and_only_its_owner_reads_it(access, tmp_path):
    token = access.invite("ta1", StaffRole.MARKER)
    secret, _ = access.exchanged(token)
    file = tmp_path / "console" / "access.json"
    assert secret not in file.read_text() and token not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["sessions"]


def test_people_are_listed_with_their_latest_role(access):
    access.invite("ta1", StaffRole.MARKER)
    access.invite("ta1", StaffRole.HEAD)
    assert access.role_of("ta1") is StaffRole.HEAD and access.role_of("ta2") is None
    assert [one.person for one in access.people()] == ["ta1", "ta1"]
    assert StaffRole.HEAD.includes(StaffRole.MARKER) and not StaffRole.MARKER.includes(StaffRole.HEAD)


def test_a_damaged_file_is_named(access, tmp_path):
    access.invite("ta1", StaffRole.MARKER)
    (tmp_path / "console" / "access.json").write_text("{")
    with pytest.raises(UsageError, match=r"access\.json cannot be read"):
        Access(tmp_path, access.clock).people()


@pytest.mark.parametrize("name", ["", "  ", "x" * 81])
def test_a_person_needs_a_name(access, name):
    with pytest.raises(UsageError, match="A name has"):
        access.invite(name, StaffRole.MARKER)
