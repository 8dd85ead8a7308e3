"""The console under load: simulated markers, a large class, and a server that is killed again and again.

Each marker asks for the next submission, thinks, and saves a mark with a comment of its own, question after
question; when the server is away, they look whether the mark was kept and save it again otherwise, as people
do. At the end every mark that the server confirmed must be in the gradebook once. Environment variables, for
another try:

    SUBMISSIONS, MARKERS, MINUTES, KILLS    1000, 30, 5 and 20 if left out
    THINKING                                seconds for a mark, 3 if left out
"""

import http.client
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.generated_class import ROOT
from benchmarks.section import Section, verdict
from grader.course.assignment_file import read_assignment
from grader.domain.assignment import Assignment
from grader.domain.edit import Marked
from grader.domain.evidence import Evidence, Finding, Status, Training, TrainingOutcome
from grader.domain.score import Total
from grader.gradebook import Gradebook
from grader.results.class_pages import write_pages
from grader.scoring import score
from grader.web.access import Access, StaffRole

SUBMISSIONS, MARKERS, MINUTES, KILLS = 1000, 30, 5.0, 20
THINKING = 3.0  # seconds that a marker takes for a mark, on average
ASKED_NEXT = 200.0  # milliseconds
SEED = 7
_AWAY = 0.5  # seconds between tries while the server is away
_LINK = re.compile(r"http://[^/]+:(\d+)/enter/")


@dataclass
class Measured:
    """What the markers saw; filled by all of them.

    Attributes:
        next_ms, save_ms: Of each answer, in milliseconds.
        waited_ms: Of what was asked while the server was away: the time until it was there again.
        confirmed: The comments of the marks that the server confirmed.
        tried: The comments of all marks that were sent.
        refused: Answers that were neither a page nor a redirection.
        away: How often the server was away.
    """

    next_ms: list[float] = field(default_factory=list)
    save_ms: list[float] = field(default_factory=list)
    waited_ms: list[float] = field(default_factory=list)
    confirmed: set[str] = field(default_factory=set)
    tried: set[str] = field(default_factory=set)
    refused: Counter[int] = field(default_factory=Counter)
    away: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def measured() -> Section:
    """Markers at work for some minutes, while the server is killed at random moments."""
    submissions, markers = int(_setting("SUBMISSIONS", SUBMISSIONS)), int(_setting("MARKERS", MARKERS))
    minutes, kills = _setting("MINUTES", MINUTES), int(_setting("KILLS", KILLS))
    assignment = read_assignment(ROOT / "reference" / "vit_defects")
    thinking = _setting("THINKING", THINKING)
    with tempfile.TemporaryDirectory(prefix="grader-benchmark-") as scratch:
        out = Path(scratch) / "results"
        make_class(assignment, out, submissions)
        seen = _marked(out, markers, minutes * 60, kills, targets=targets_of(assignment), thinking=thinking)
        with Gradebook(out) as book:
            kept = Counter(edit.comment for edit in book.edits() if isinstance(edit, Marked))
    lost = [comment for comment in seen.confirmed if not kept[comment]]
    doubled = [comment for comment, count in kept.items() if count > 1]
    strange = [comment for comment in kept if comment not in seen.tried]
    return Section(
        "Console under load",
        f"{submissions} submissions, {markers} simulated markers for {minutes:g} minutes, each taking "
        f"{thinking:g} s for a mark on average; the server got SIGKILL {kills} times at random moments and "
        f"was started again at once. The markers found it away {seen.away} times.",
        ("", "n", "median, ms", "99th percentile, ms", "longest, ms"),
        (
            _row("next submission, drawn", seen.next_ms),
            _row("mark saved", seen.save_ms),
            _row("next submission, where the server was away meanwhile", seen.waited_ms),
        ),
        (
            verdict(
                "Median of the next submission", _middle(seen.next_ms), ASKED_NEXT, at_most=True, unit="ms"
            ),
            f"Of {len(seen.confirmed)} confirmed marks, {len(lost)} are lost and {len(doubled)} doubled; "
            f"{len(strange)} are in the gradebook that nobody sent.",
            f"Answers that were an error: {sum(seen.refused.values())}.",
        ),
    )


def _setting(name: str, default: float) -> float:
    return float(os.environ.get(name) or default)


def targets_of(assignment: Assignment) -> list[str]:
    """What people mark of everybody."""
    by_person = [item for item in assignment.rubric if item.by_person]
    return [target for item in by_person for target in item.targets]


def make_class(assignment: Assignment, out: Path, submissions: int) -> None:
    """A graded class of right submissions, with its pages."""
    now = datetime.now(UTC).replace(microsecond=0)
    passed = tuple(Finding(one.id, one.component, one.title, Status.PASSED) for one in assignment.checks)
    code = "import torch\n" * 200
    with Gradebook(out) as book:
        for number in range(submissions):
            evidence = Evidence(
                student_id=f"4{number:08}",
                assignment_id=assignment.id,
                submission_digest=f"{number:064x}",
                graded_at=now,
                code_file="homework.py",
                source={"homework.py": code},
                findings=passed,
                training=Training(TrainingOutcome.COMPLETED, accuracy=0.7),
            )
            total = Total.of(score(assignment, evidence), who="ta1", when=now, cause="grade")
            book.record(evidence, {}, who="ta1", total=total)
        write_pages(assignment, book, out, now)


# --- server ----------------------------------------------------------------------------------------------


@dataclass
class _Server:
    """The console as a process, which is killed and started again at the same port."""

    out: Path
    port: int = 0
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and return when it listens."""
        command = [sys.executable, "-m", "grader", "serve", str(self.out), "--by", "head"]
        command += ["--port", str(self.port), "--course", str(ROOT)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := _LINK.search(line):
                self.port = int(found[1])
                self.process.stdout.close()
                return
        raise SystemExit("The console did not start.")

    def end(self, kind: signal.Signals) -> None:
        """Send it a signal, and wait until it is gone."""
        assert self.process is not None
        self.process.send_signal(kind)
        self.process.wait()


def _marked(
    out: Path, markers: int, seconds: float, kills: int, *, targets: Sequence[str], thinking: float
) -> Measured:
    """What the markers saw of a server that was killed now and then.

    Args:
        targets: What they mark, one after the other.
        thinking: Seconds that a marker takes for a mark, on average.
    """
    seen, server, dice = Measured(), _Server(out), random.Random(SEED)
    access = Access(out, lambda: datetime.now(UTC))
    server.start()
    tokens = {f"ta{number}": access.invite(f"ta{number}", StaffRole.MARKER) for number in range(markers)}
    until = time.monotonic() + seconds
    threads = []
    for name, token in tokens.items():
        marker = _Marker(name, server.port, random.Random(f"{SEED} {name}"), seen, until, thinking)
        threads.append(threading.Thread(target=marker.work, args=(token, targets), name=name))
    for thread in threads:
        thread.start()
    begun = time.monotonic()
    for moment in sorted(dice.uniform(0.1, 0.95) * seconds for _ in range(kills)):
        time.sleep(max(begun + moment - time.monotonic(), 0))
        server.end(signal.SIGKILL)
        server.start()
    for thread in threads:
        thread.join()
    server.end(signal.SIGINT)
    return seen


# --- markers ---------------------------------------------------------------------------------------------


@dataclass
class _Answer:
    status: int
    text: str
    location: str
    cookie: str


class _Marker:
    """Somebody who marks one question after the other until the time is over."""

    def __init__(
        self, name: str, port: int, dice: random.Random, seen: Measured, until: float, thinking: float
    ) -> None:
        self._name, self._port, self._dice, self._seen, self._until = name, port, dice, seen, until
        self._thinking = thinking
        self._waits = 0  # how often this one found the server away
        self._connection: http.client.HTTPConnection | None = None
        self._cookie = ""

    def work(self, token: str, targets: Sequence[str]) -> None:
        """Come by the link, mark, and leave."""
        try:
            self._cookie = self._asked("GET", f"/enter/{token}").cookie
            for target in targets:
                self._mark(target)
        finally:
            if self._connection is not None:
                self._connection.close()

    def _mark(self, target: str) -> None:
        """Mark a question until the time is over, or nothing of it is left."""
        after, number = "", 0
        while time.monotonic() < self._until:
            number += 1
            begun, waits = time.perf_counter(), self._waits
            address = self._asked("GET", f"/questions/{target}/next?after={after}").location
            page = self._asked("GET", address)
            self._note(self._seen.next_ms if waits == self._waits else self._seen.waited_ms, begun)
            handle = address.rpartition("/")[2]
            if "?" in handle:
                return  # everything is marked
            time.sleep(self._dice.expovariate(1 / self._thinking))
            self._save(page.text, address, f"{self._name} number {number} of {target}")
            after = handle

    def _save(self, page: str, address: str, comment: str) -> None:
        """Save a mark until the server confirms it, or another one stands there."""
        while True:
            version = re.search(r'name="version" value="(\d+)"', page)
            token = re.search(r'name="csrf" value="([^"]+)"', page)
            if version is None or token is None:
                return  # the page was an error, and is counted as one
            fields = {"csrf": token[1], "version": version[1], "points": self._dice.choice("012")}
            with self._seen.lock:
                self._seen.tried.add(comment)
            begun = time.perf_counter()
            answer = self._sent("POST", f"{address}/save", {**fields, "comment": comment, "then": "stay"})
            if answer is not None and answer.status == 303:
                self._note(self._seen.save_ms, begun)
                with self._seen.lock:
                    self._seen.confirmed.add(comment)
                return
            if answer is not None:
                if answer.status != 409:  # a colleague was faster
                    self._count(answer.status)
                return
            page = self._asked("GET", address).text
            if comment in page.partition('id="mark"')[0]:
                with self._seen.lock:
                    self._seen.confirmed.add(comment)  # it stands, although nobody said so
                return

    def _note(self, times: list[float], begun: float) -> None:
        with self._seen.lock:
            times.append(1000 * (time.perf_counter() - begun))

    def _count(self, status: int) -> None:
        with self._seen.lock:
            self._seen.refused[status] += 1

    def _asked(self, method: str, address: str) -> _Answer:
        """An answer, also if the server has to be waited for."""
        while True:
            answer = self._sent(method, address, {})
            if answer is None or answer.status == 429:
                time.sleep(_AWAY if answer is None else 10 * _AWAY)
                continue
            if answer.status >= 400:
                self._count(answer.status)
            return answer

    def _sent(self, method: str, address: str, fields: dict[str, str]) -> _Answer | None:
        """An answer; None: the server is away, or went away meanwhile."""
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
            origin = f"http://127.0.0.1:{self._port}"
            headers = {"Cookie": self._cookie, "Origin": origin, "Sec-Fetch-Site": "same-origin"}
            if fields:
                headers["Content-Type"] = "application/x-www-form-urlencoded"
            self._connection.request(method, address, urlencode(fields) if fields else None, headers)
            answer = self._connection.getresponse()
            text = answer.read().decode()
            cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
            return _Answer(answer.status, text, answer.getheader("location") or "", cookie)
        except (OSError, http.client.HTTPException):
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            self._waits += 1
            with self._seen.lock:
                self._seen.away += 1
            return None


def _middle(values: list[float]) -> float:
    return statistics.median(values) if values else float("nan")


def _row(what: str, values: list[float]) -> tuple[str, ...]:
    if len(values) < 2:
        return (what, str(len(values)), "–", "–", "–")
    late = statistics.quantiles(values, n=100)[98]
    return (what, str(len(values)), f"{_middle(values):.0f}", f"{late:.0f}", f"{max(values):.0f}")
