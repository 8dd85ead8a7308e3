"""A class of submissions made from solutions, and the grader at work on it."""

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.submissions.build import behaviors, build

ROOT = Path(__file__).parents[1]
JOBS = 2


def write_submissions(destination: Path, sources: Iterable[str]) -> int:
    """Write a submission of each source, with weights and a report, and return how many there are."""
    pattern = build(behaviors()[0], destination)
    count = 0
    for count, source in enumerate(sources, start=1):
        student_id = str(500_000_000 + count)
        folder = destination / student_id
        folder.mkdir()
        for path in pattern.iterdir():
            place = folder / path.name.replace(pattern.name, student_id)
            if path.suffix == ".py":
                place.write_text(source, encoding="utf-8")
            else:
                shutil.copy(path, place)
    shutil.rmtree(pattern)
    return count


def grading(submissions: Path, out: Path, log: Path, *options: str) -> "subprocess.Popen[bytes]":
    """`grader grade`, started; what it says goes into a file."""
    command = [
        *(sys.executable, "-m", "grader", "grade", str(submissions), "--assignment", "vit_defects"),
        *("--out", str(out), "--jobs", str(JOBS), *options),
    ]
    with log.open("wb") as file:
        return subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=file)


def require_success(code: int, log: Path) -> None:
    """End the benchmark, with what the grader said, unless it came through."""
    if code != 0:
        sys.exit(f"The grader failed:\n{log.read_text(encoding='utf-8')[-2000:]}")
