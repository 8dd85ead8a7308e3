"""How long a student waits: for `grader --help`, the first `grader check`, the next one, and `--watch`."""

import ast
import contextlib
import os
import selectors
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.peers.cost import ToolError
from benchmarks.section import Section, spread, verdict
from grader.course.assignment_file import read_assignment
from grader.course.reference_solution import solved_source
from grader.course.student_template import write_template

ROOT = Path(__file__).parents[1]
ROUNDS = 7
SAVES = 7
PATIENCE = 120.0  # seconds that nothing of this takes
SETTLING = 8.0  # seconds after a check in which a person reads or writes, and the next worker starts
# (what is asked for, its limit in seconds)
HELP, FIRST, ALL = "`grader --help`", "the first finding", "all findings"
NEXT, AGAIN = "all findings of the next check", "all, after a save"
LIMITS = {HELP: 0.3, FIRST: 3.0, ALL: 10.0, NEXT: 1.0, AGAIN: 1.0}
MARK, VERDICT = "✓", "public checks pass"


def measured(rounds: int = ROUNDS, saves: int = SAVES) -> Section:
    """Check the reference solution in a student's folder, as a student does.

    Raises:
        ToolError: It does not pass.
    """
    reference = ROOT / "reference" / "vit_defects"
    with tempfile.TemporaryDirectory(prefix="check-") as scratch:
        folder = Path(scratch)
        write_template(reference, folder)
        solution = solved_source((reference / "solution.py").read_text(encoding="utf-8"), "solution.py")
        homework = folder / "homework.py"
        homework.write_text(solution, encoding="utf-8")
        seconds: dict[str, list[float]] = {name: [] for name in LIMITS}
        imports = _imports(solution)
        checks = sum(spec.public for spec in read_assignment(reference).checks)
        bare, loaded, cold_ended, ended = [], [], [], []
        for _ in range(rounds):
            bare.append(_seconds([sys.executable, "-c", imports], folder))
            seconds[HELP].append(_seconds([sys.executable, "-m", "grader", "--help"], folder))
            first, second, told, whole = _cold(folder, checks)
            seconds[FIRST].append(first)
            loaded.append(second)
            seconds[ALL].append(told)
            cold_ended.append(whole)
        with _warm(folder) as surroundings:
            for _ in range(rounds):
                told, whole = _warm_check(folder, checks, surroundings)
                seconds[NEXT].append(told)
                ended.append(whole)
        seconds[AGAIN] = _after_saves(homework, saves)
    return Section(
        "A student's check",
        f"`grader check homework.py` on the reference solution, {checks} public checks, plots drawn; a new "
        f"process each time (`--no-warm`), {rounds} rounds. Then {rounds} checks that a warm process makes. "
        "The training is tried behind the last finding. Then `--watch`: "
        f"{saves} saves, each by putting another file in its place, {SETTLING:.0f} s after the check before, "
        "until the verdict is printed. The first "
        "finding is about the names in the file, the second says whether it could be loaded. In seconds.",
        ("", "seconds", "asked for"),
        (
            *((name, spread(seconds[name], digits=2), f"{LIMITS[name]:g}") for name in LIMITS),
            ("the second finding", spread(loaded, digits=2), ""),
            ("the end, the training tried", spread(cold_ended, digits=2), ""),
            ("the end of the next check, its training tried", spread(ended, digits=2), ""),
            ("nothing but the homework's own imports, in bare Python", spread(bare, digits=2), ""),
        ),
        tuple(
            verdict(name, statistics.median(seconds[name]), limit, at_most=True, unit="s")
            for name, limit in LIMITS.items()
        ),
    )


def _imports(source: str) -> str:
    """A homework's imports alone."""
    body = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return ast.unparse(ast.Module(body, []))


def _seconds(command: list[str], folder: Path) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def _cold(folder: Path, checks: int) -> tuple[float, float, float, float]:
    """Seconds until the first finding, the second, the last, and the end."""
    started = time.perf_counter()
    with _Running(["check", "--no-warm", "homework.py"], folder) as running:
        seen = [running.seen(f"{MARK} ", started) for _ in range(checks)]
        running.seen(VERDICT, started)
        if running.process.wait(PATIENCE):
            raise ToolError(f"grader check did not pass the reference: {running.text[-500:]}")
        return seen[0], seen[1], seen[-1], time.perf_counter() - started


@contextlib.contextmanager
def _warm(folder: Path) -> Iterator[dict[str, str]]:
    """The environment of checks that a warm process makes, which is there; it ends afterwards."""
    with tempfile.TemporaryDirectory(prefix="warm-") as runtime:
        surroundings = {"XDG_RUNTIME_DIR": runtime, "GRADER_WARM": "1", "CI": ""}
        try:
            # one starts it, and the other waits for it
            for _ in range(2):
                _warm_check(folder, 1, surroundings)
            yield surroundings
        finally:
            command = [sys.executable, "-m", "grader", "check", "--stop"]
            subprocess.run(command, env={**os.environ, **surroundings}, check=True, stdout=subprocess.DEVNULL)


def _warm_check(folder: Path, checks: int, surroundings: dict[str, str]) -> tuple[float, float]:
    """Seconds until a number of findings are printed, and until the end.

    Raises:
        ToolError: It does not pass.
    """
    started = time.perf_counter()
    with _Running(["check", "homework.py"], folder, surroundings) as running:
        seen = [running.seen(f"{MARK} ", started) for _ in range(checks)]
        running.seen(VERDICT, started)
        if running.process.wait(PATIENCE):
            raise ToolError(f"grader check did not pass the reference: {running.text[-500:]}")
        return seen[-1], time.perf_counter() - started


def _after_saves(homework: Path, saves: int) -> list[float]:
    """Seconds from each save to the verdict."""
    found = []
    with _Running(["check", "--watch", "homework.py"], homework.parent) as running:
        running.seen(VERDICT, time.perf_counter())
        for number in range(saves):
            time.sleep(SETTLING)
            other = homework.with_suffix(".new")
            other.write_text(homework.read_text(encoding="utf-8") + f"# {number}\n", encoding="utf-8")
            started = time.perf_counter()
            other.replace(homework)
            found.append(running.seen(VERDICT, started))
        running.process.send_signal(signal.SIGINT)
        if running.process.wait(PATIENCE):
            raise ToolError("grader check --watch did not end cleanly on Ctrl-C.")
    return found


class _Running:
    """A command, whose output is read as it comes."""

    def __init__(
        self, arguments: list[str], folder: Path, surroundings: Mapping[str, str] | None = None
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "grader", *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            env={
                **os.environ,
                "PYTHONUNBUFFERED": "1",
                "PYTHONIOENCODING": "utf-8",
                **(surroundings or {}),
            },
        )
        self.text = ""
        self._read = 0

    def seen(self, wanted: str, since: float) -> float:
        """Seconds until a text is printed behind what was waited for before."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        with selectors.DefaultSelector() as waiting:
            waiting.register(descriptor, selectors.EVENT_READ)
            while (at := self.text.find(wanted, self._read)) < 0:
                piece = os.read(descriptor, 65_536) if waiting.select(PATIENCE) else b""
                if not piece:
                    raise ToolError(f"grader check never printed {wanted!r}: {self.text[-500:]}")
                self.text += piece.decode("utf-8", errors="replace")
        self._read = at + len(wanted)
        return time.perf_counter() - since

    def __enter__(self) -> "_Running":
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()
