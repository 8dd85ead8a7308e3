"""Requests to an LMS wait when they are asked to, repeat only what may be done twice, and tell no token."""

import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from grader.domain.errors import UsageError
from grader.lms.online_assignment import LmsUnavailable, ReplyLost
from grader.lms.web_session import WebSession, site_address
from tests.fake_lms import TOKEN, Answer, FakeCanvas, answer, served

pytest.importorskip("requests")

from requests.exceptions import SSLError


class Desk:
    """A session with a fake, and how long it slept."""

    def __init__(self, lms: FakeCanvas, url: str) -> None:
        self.lms, self.slept = lms, []
        self.web = WebSession(url, TOKEN, sleep=self.slept.append)

    def first(self, *answers: Answer | str) -> None:
        queue = list(answers)
        self.lms.fault = lambda _: queue.pop(0) if queue else None

    def get(self) -> int:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return self.web.get(f"{self.lms.url}/api/v1/users/self", headers=headers).status_code


@pytest.fixture
def desk() -> Iterator[Desk]:
    lms = FakeCanvas(["1"])
    with served(lms) as url:
        yield Desk(lms, url)


@pytest.mark.parametrize(
    ("refusal", "slept"),
    [
        (lambda: answer({}, 429, **{"Retry-After": "7"}), (7, 7)),
        (lambda: answer({}, 429, **{"Retry-After": in_a_while(20)}), (15, 21)),
        (lambda: answer({}, 429), (0.7, 1)),
        (lambda: (403, {}, b"403 Forbidden (Rate Limit Exceeded)\n"), (0.7, 1)),
        (lambda: answer({}, 500), (0.7, 1)),
        (lambda: "lost", (0.7, 1)),
    ],
)
def test_it_waits_and_goes_on(
    desk: Desk, refusal: Callable[[], Answer | str], slept: tuple[float, float]
) -> None:
    desk.first(refusal())
    assert desk.get() == 200 and len(desk.lms.requests) == 2
    [seconds] = desk.slept
    assert slept[0] <= seconds <= slept[1]


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (
            ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"),
            "not valid, so nothing",
        ),
        (ssl.SSLEOFError(8, "[SSL: UNEXPECTED_EOF_WHILE_READING] EOF occurred"), "the connection was lost"),
    ],
)
def test_only_a_certificate_that_is_not_valid_is_called_so(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, cause: Exception, told: str
) -> None:
    """Other errors of TLS come in the midst of a request, too, as from a server that is overloaded."""
    sent = desk.web._session.request

    def fails_once(*words: Any, **options: Any) -> Any:
        monkeypatch.setattr(desk.web._session, "request", sent)
        raise SSLError(cause)

    monkeypatch.setattr(desk.web._session, "request", fails_once)
    with pytest.raises((LmsUnavailable, ReplyLost), match=told):
        desk.web.put(f"{desk.lms.url}/api/v1/users/self")
    monkeypatch.setattr(desk.web._session, "request", fails_once)
    if isinstance(cause, ssl.SSLEOFError):
        assert desk.get() == 200 and len(desk.slept) == 1
    else:
        with pytest.raises(LmsUnavailable, match=told):
            desk.get()


def in_a_while(seconds: int) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


def test_each_pause_is_longer_until_it_gives_up(desk: Desk) -> None:
    desk.lms.fault = lambda _: answer({}, 429)
    with pytest.raises(LmsUnavailable, match=r"rate limit after 8 tries\. Run the command again later"):
        desk.get()
    assert len(desk.slept) == 8 and desk.slept[:6] == sorted(desk.slept[:6])


def test_nobody_waits_for_hours(desk: Desk) -> None:
    desk.first(answer({}, 429, **{"Retry-After": "7200"}))
    with pytest.raises(LmsUnavailable, match="asks to wait 120 minutes"):
        desk.get()
    assert desk.slept == []


def test_a_quota_that_is_nearly_used_up_is_spared(desk: Desk) -> None:
    desk.first(
        answer({}, **{"X-Rate-Limit-Remaining": "30.5"}), answer({}, **{"X-Rate-Limit-Remaining": "600"})
    )
    desk.get()
    desk.get()
    assert desk.slept == [pytest.approx(1.95)]


@pytest.mark.parametrize("fault", [answer({}, 502), "lost"])
def test_what_must_not_be_done_twice_is_not_repeated(desk: Desk, fault: Answer | str) -> None:
    desk.first(fault)
    with pytest.raises(ReplyLost):
        desk.web.put(f"{desk.lms.url}/api/v1/users/self")
    assert len(desk.lms.requests) == 1


def test_a_refused_write_may_be_repeated(desk: Desk) -> None:
    desk.first(answer({}, 429))
    assert desk.web.put(f"{desk.lms.url}/anything").status_code == 401
    assert len(desk.lms.requests) == 2


def test_a_server_that_is_not_there_is_named(desk: Desk) -> None:
    with pytest.raises(LmsUnavailable, match=r"127.0.0.1:9 cannot be reached after 8 tries"):
        WebSession("http://127.0.0.1:9", TOKEN, sleep=desk.slept.append).put("http://127.0.0.1:9/x")


def test_the_token_does_not_follow_elsewhere(desk: Desk) -> None:
    desk.first((302, {"Location": "http://127.0.0.1:9/login"}, b""))
    with pytest.raises(LmsUnavailable, match="sends elsewhere"):
        desk.get()
    with pytest.raises(UsageError, match="over which anybody could read"):
        desk.web.get("http://elsewhere.example.edu/x")


@pytest.mark.parametrize(
    ("given", "means"),
    [
        ("https://lms.example.edu/", "https://lms.example.edu"),
        ("https://example.edu/moodle", "https://example.edu/moodle"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://[::1]", "http://[::1]"),
        ("http://lms.example.edu", None),
        ("http://127.0.0.1.example.edu", None),
        ("lms.example.edu", None),
        ("https://me:secret@lms.example.edu", None),
        ("https://lms.example.edu?token=1", None),
        ("file:///etc/passwd", None),
        ("https://x:y:z", None),
    ],
)
def test_tokens_travel_encrypted(given: str, means: str | None) -> None:
    if means is not None:
        assert site_address(given, "It") == means
    else:
        with pytest.raises(UsageError, match=r"^It "):
            site_address(given, "It")


def test_the_token_is_not_shown(desk: Desk) -> None:
    assert TOKEN not in repr(desk.web)
    assert desk.web.redacted(f"bad \n token {TOKEN}!") == "bad token [token]!"
