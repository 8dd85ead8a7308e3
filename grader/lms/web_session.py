"""Requests to an LMS: patient with rate limits and lost connections, and silent about the token.

It waits and repeats a request that the LMS did not carry out because of a rate limit (429, or Canvas's 403
"Rate Limit Exceeded"), for as long as `Retry-After` says. After a server's error or a lost connection it
repeats only what may be done twice; about anything else it says that the reply was lost. It sends tokens
over HTTPS only, except to this machine itself, and follows no redirect, which could lead elsewhere.

How Canvas limits requests: https://developerdocs.instructure.com/services/canvas/basics/file.throttling
(every answer states `X-Rate-Limit-Remaining`, and older versions refuse with 403 instead of 429).
`Retry-After`: RFC 9110, section 10.2.3. Tests: `tests/lms/test_web_session.py`.
"""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from grader.domain.errors import UsageError
from grader.domain.formatting import printable
from grader.lms.online_assignment import LmsUnavailable, ReplyLost

EXTRA = "push"
TIMEOUTS = (10.0, 90.0)  # seconds to connect, and between two parts of an answer
MOST_TRIES = 8
LONGEST_WAIT = 900.0  # seconds that `Retry-After` may ask for
_LONGEST_PAUSE = 60.0  # seconds between two tries of our own
# Canvas refills 10 units a second up to 700; one request costs a few
LOW_QUOTA, REFILL = 50.0, 10.0  # units; units per second
_HIDDEN = "[token]"
_LONGEST_REASON = 200  # characters of an LMS's own words
_RATE_LIMITED = "rate limit exceeded"


def require_packages() -> None:
    """Check that what reaches an LMS is installed.

    Raises:
        UsageError: It is not.
    """
    missing = [name for name in ("requests", "canvasapi") if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"{' and '.join(missing)}, which `grader push` needs, is not installed. "
            f"Install it: pip install 'vit-grader[{EXTRA}]'"
        )


def site_address(text: str, what: str) -> str:
    """The address of an LMS, without a slash at its end.

    Args:
        what: Where it was given, to begin a sentence.

    Raises:
        UsageError: It is no address, or a token would travel unencrypted.
    """
    parts = urlsplit(text.strip())
    try:
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(f"{what} is no address of a site. Give one such as https://lms.example.edu")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError(
            f"{what} holds more than the address of a site. Give one such as https://lms.example.edu"
        )
    if parts.scheme == "http" and not is_this_machine(host):
        raise UsageError(
            f"{what} begins with http://, over which anybody could read the token. Give the https:// address."
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def is_this_machine(host: str) -> bool:
    """Whether a host is the machine itself."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass
class WebSession:
    """Requests to one site.

    Attributes:
        site: Its address, as `site_address` gives it.
        token: Shown nowhere.
        sleep: Waits for some seconds.
        on_wait: Called before a longer wait, with the seconds and the reason.
    """

    site: str
    token: str = field(repr=False)
    sleep: Callable[[float], None] = time.sleep
    on_wait: Callable[[float, str], None] = lambda *_: None
    _session: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        import requests

        # its debug messages hold the end of the token, and what students' comments say
        logging.getLogger("canvasapi.requester").disabled = True
        self._session = requests.Session()
        self._session.auth = lambda request: request  # not from ~/.netrc
        self._session.trust_env = not is_this_machine(urlsplit(self.site).hostname or "")

    def get(self, url: str, **options: Any) -> Any:
        """The response to a request that only reads."""
        return self.request("GET", url, repeatable=True, **options)

    def post(self, url: str, **options: Any) -> Any:
        """The response to a request that adds something.

        Raises:
            ReplyLost: Nobody knows whether it was carried out.
        """
        return self.request("POST", url, **options)

    def put(self, url: str, **options: Any) -> Any:
        """The response to a request that changes something.

        Raises:
            ReplyLost: Nobody knows whether it was carried out.
        """
        return self.request("PUT", url, **options)

    def request(self, method: str, url: str, *, repeatable: bool = False, **options: Any) -> Any:
        """The response to a request, after as many tries as it takes.

        Args:
            url: Of the site itself, or one that the site named.
            repeatable: It may be carried out twice.

        Raises:
            LmsUnavailable: The site cannot be reached, or still refuses after many tries.
            ReplyLost: It may not be carried out twice, and nobody knows whether it was.
        """
        import requests

        site_address(urlsplit(url)._replace(query="", fragment="").geturl(), "An address that the LMS named")
        problem = ""
        for attempt in range(MOST_TRIES):
            try:
                response = self._session.request(
                    method, url, timeout=TIMEOUTS, allow_redirects=False, **options
                )
            except (requests.exceptions.ConnectTimeout, requests.exceptions.ProxyError):
                problem = "cannot be reached"  # nothing was sent, so it may be tried again
            except (requests.exceptions.RequestException, OSError) as error:
                if "CERTIFICATE_VERIFY_FAILED" in repr(error):
                    raise LmsUnavailable(
                        f"{self.site}: its certificate is not valid, so nothing was sent. Check the address."
                    ) from None
                if not (repeatable or _never_connected(error)):
                    raise ReplyLost("the connection was lost") from None
                problem = "cannot be reached"
            else:
                if (limited := _asked_wait(response)) is not None:
                    problem = "still refuses because of its rate limit"
                    self._wait(limited if limited >= 0 else _pause(attempt), "its rate limit")
                    continue
                if response.status_code < 500:
                    self._spare_quota(response)
                    return self._settled(response, options)
                if not repeatable:
                    raise ReplyLost(f"the server failed (status {response.status_code})")
                problem = f"fails (status {response.status_code})"
            self._wait(_pause(attempt), problem)
        raise LmsUnavailable(
            f"{self.site} {problem} after {MOST_TRIES} tries. Run the command again later: it goes on."
        )

    def redacted(self, text: object) -> str:
        """An LMS's own words for a message: short, printable, and without the token."""
        words = " ".join(str(text).split())
        return printable(words.replace(self.token, _HIDDEN))[:_LONGEST_REASON]

    def _settled(self, response: Any, options: Any) -> Any:
        if 300 <= response.status_code < 400 and not options.get("files"):
            raise LmsUnavailable(
                f"{self.site} sends elsewhere, and the token does not follow. "
                "Give the address that a browser shows there, with --url."
            )
        return response

    def _spare_quota(self, response: Any) -> None:
        """Wait until a quota that is nearly used up has grown again."""
        try:
            remaining = float(response.headers.get("X-Rate-Limit-Remaining", "inf"))
        except ValueError:
            return
        if remaining < LOW_QUOTA:
            self._wait(min((LOW_QUOTA - remaining) / REFILL, _LONGEST_PAUSE), "its rate limit")

    def _wait(self, seconds: float, reason: str) -> None:
        if seconds > LONGEST_WAIT:
            raise LmsUnavailable(
                f"{self.site} asks to wait {seconds / 60:.0f} minutes, because of its rate limit. "
                "Run the command again then: it goes on."
            )
        self.on_wait(seconds, reason)
        self.sleep(seconds)


def _never_connected(error: Exception) -> bool:
    """Whether a connection was refused, so that nothing was sent."""
    return "NewConnectionError" in repr(error) or "NameResolutionError" in repr(error)


def _pause(attempt: int) -> float:
    """Seconds before the next try: twice as long each time, spread so that clients do not return at once."""
    return min(_LONGEST_PAUSE, 2.0**attempt) * random.uniform(0.75, 1.0)


def _asked_wait(response: Any) -> float | None:
    """Seconds that a rate limit asks for; -1 if it names none; None if the response is no such refusal."""
    is_canvas_limit = response.status_code == 403 and _RATE_LIMITED in response.text[:500].casefold()
    if response.status_code != 429 and not is_canvas_limit:
        return None
    text = response.headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return -1.0
    return max(0.0, (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds())
