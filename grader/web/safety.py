"""What every request passes before a page is asked: from whom it came, under which name, and how often.

It also gives every answer its headers. It never decides what a person may see (`visits` does).
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Pages load from here alone. Pictures in a notebook's outputs are part of the page, as `data:`.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=()",
    "Cache-Control": "no-store",
}
MOST_BYTES = 256 * 1024  # of a form


@dataclass
class Attempts:
    """How often links were tried lately, by peer and altogether; answers in several threads may ask at once.

    Attributes:
        most, most_of_all: In a window of so many seconds.
        clock: Seconds that never go back.
    """

    most: int = 10
    most_of_all: int = 200
    seconds: float = 60.0
    clock: Callable[[], float] = time.monotonic
    _times: deque[tuple[float, str]] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def allowed(self, peer: str) -> bool:
        """Whether this peer may try once more; the try is noted."""
        now = self.clock()
        with self._lock:
            while self._times and self._times[0][0] <= now - self.seconds:
                self._times.popleft()
            of_peer = sum(who == peer for _, who in self._times)
            if len(self._times) >= self.most_of_all or of_peer >= self.most:
                return False
            self._times.append((now, peer))
            return True

    def forgive(self, peer: str) -> None:
        """Forget the tries of a peer whose link was good."""
        with self._lock:
            self._times = deque((when, who) for when, who in self._times if who != peer)


@dataclass(frozen=True)
class Gate:
    """The first of the application: it answers what must not get further, and sets the headers.

    Attributes:
        hosts: The names under which the pages are reached; a page of another site that lets its name point
            to this machine is refused by them.
        proxies: The peers that may connect; (): all.
        encrypted: Whether browsers reach it by https.
        pages: What it stands before, as the beginning of a sentence about it.
    """

    app: ASGIApp
    hosts: frozenset[str]
    proxies: tuple[str, ...] = ()
    encrypted: bool = False
    pages: str = "The console is"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there are no web sockets here

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._set_headers(MutableHeaders(scope=message))
            await send(message)

        refused = self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, sent)
            return
        await self.app(scope, _bounded(receive), sent)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        if self.proxies and peer_of(scope) not in self.proxies:
            return PlainTextResponse(f"{self.pages} reached through a proxy only.\n", 403)
        if headers.getlist("host") != [headers.get("host", "")] or headers["host"].lower() not in self.hosts:
            return PlainTextResponse(f"{self.pages} not known under this name.\n", 421)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            return PlainTextResponse("That is too much for one form.\n", 413)
        return None

    def _set_headers(self, headers: MutableHeaders) -> None:
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        if self.encrypted:
            headers["Strict-Transport-Security"] = "max-age=31536000"


def peer_of(scope: MutableMapping[str, Any]) -> str:
    """The address that a request came from, as the socket knows it; no header is believed."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def who_tries(scope: MutableMapping[str, Any], proxies: Sequence[str], token: str) -> str:
    """By what tries of links are counted: the peer, or the link where all come from one address.

    Behind a proxy, one who guesses must not keep the others out.
    """
    return token[:64] if proxies else peer_of(scope)


def is_from_own_page(headers: Mapping[str, str], own: frozenset[str]) -> bool:
    """Whether a form was sent by one of our own pages.

    Under `no-referrer`, browsers send the origin of a form as `null`; then they say themselves whether the
    page is of the same origin, which no page can feign.

    Args:
        own: The origins of these pages.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if site is not None and site != "same-origin":
        return False
    if origin is None or origin == "null":
        return site == "same-origin"
    return origin.lower() in own


def _bounded(receive: Receive) -> Receive:
    """`receive`, which ends a body that is longer than it says or may be."""
    size = 0

    async def received() -> Message:
        nonlocal size
        message = await receive()
        if message["type"] == "http.request":
            size += len(message.get("body", b""))
            if size > MOST_BYTES:
                return {"type": "http.disconnect"}
        return message

    return received
