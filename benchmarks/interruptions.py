"""A class whose grading is killed again and again, with training: it must end as if nothing had happened."""

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.section import Section
from datasets.synthetic_steel import made_images
from grader.course.assignment_file import read_assignment
from grader.course.variants import variants
from grader.gradebook import Gradebook
from grader.kit.image_zip import write_image_zip
from tests.submissions.build import behaviours, build

ROOT = Path(__file__).parents[1]
KILLS = 20
SEED = 5  # of the moments
PER_CLASS = 10  # images
EPOCHS = 3
NAMES = ("reference", "attention_list_of_heads", "missing_scale", "attention_residual")
# what differs between two runs although nothing happened: times, and the user that a worker was
VARIES = ("graded_at", "seconds", "projected_seconds", "uid")


def measured(kills: int = KILLS) -> Section:
    """An undisturbed run, and one that gets SIGKILL at random moments and is begun again each time."""
    with tempfile.TemporaryDirectory(prefix="grader-benchmark-") as scratch:
        folder = Path(scratch)
        students = _generate(folder / "class")
        write_image_zip(folder / "images.zip", made_images(0, per_class=PER_CLASS))
        started = time.perf_counter()
        if _graded(folder, folder / "whole") != 0:
            sys.exit(f"The grader failed:\n{(folder / 'log').read_text(encoding='utf-8')[-2000:]}")
        whole_seconds = time.perf_counter() - started
        done, moments = _killed(folder, kills, whole_seconds)
        if _graded(folder, folder / "killed") != 0:
            sys.exit(f"The grader failed:\n{(folder / 'log').read_text(encoding='utf-8')[-2000:]}")
        whole, killed = (_told(folder / out / "results.json") for out in ("whole", "killed"))
        with Gradebook(folder / "killed") as book:
            runs = [len(book.runs(student)) for student in book.students()]
    trained = sum(one["training"]["outcome"] == "completed" for one in whole["submissions"])
    same = "are" if whole == killed else "are NOT"
    once = "once" if set(runs) == {1} else f"up to {max(runs)} times"
    return Section(
        "Interruptions",
        f"`grader grade --jobs 2` on {students} submissions, of which {trained} train for {EPOCHS} epochs on "
        f"{PER_CLASS} small images per class; killed by SIGKILL {kills} times at random moments of its first "
        f"{whole_seconds:.0f} s and begun again each time.",
        ("", "submissions in the book"),
        tuple((f"killed after {at:.1f} s", str(count)) for at, count in zip(moments, done, strict=True)),
        (
            f"Apart from times and the workers' user ids, the results {same} those of an undisturbed run.",
            f"Each submission is in the book {once}.",
        ),
    )


def _generate(destination: Path) -> int:
    assignment = read_assignment(ROOT / "reference" / "vit_defects")
    by_name = {one.name: one for one in variants(assignment, ROOT)}
    pattern = build(behaviours()[0], destination)
    for number, name in enumerate(NAMES):
        student_id = str(500_000_000 + number)
        folder = destination / student_id
        folder.mkdir()
        for path in pattern.iterdir():
            place = folder / path.name.replace(pattern.name, student_id)
            if path.suffix == ".py":
                source = by_name[name].source.replace("N_EPOCHS = 30", f"N_EPOCHS = {EPOCHS}")
                place.write_text(source, encoding="utf-8")
            else:
                shutil.copy(path, place)
    shutil.rmtree(pattern)
    return len(NAMES)


def _start(folder: Path, out: Path) -> "subprocess.Popen[bytes]":
    command = [
        *(sys.executable, "-m", "grader", "grade", str(folder / "class"), "--assignment", "vit_defects"),
        *("--data", str(folder / "images.zip"), "--out", str(out), "--jobs", "2"),
    ]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)


def _graded(folder: Path, out: Path) -> int:
    return _start(folder, out).wait()


def _killed(folder: Path, kills: int, within: float) -> tuple[list[int], list[float]]:
    """How many submissions were in the book after each kill, and when it came."""
    random_moments, done, moments = random.Random(SEED), [], []
    for number in range(kills):
        process = _start(folder, folder / "killed")
        moment = random_moments.uniform(0.1, within)
        try:
            process.wait(timeout=moment)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with Gradebook(folder / "killed", assignment_id="vit_defects") as book:
            done.append(len(book.students()))
        moments.append(moment)
        print(f"  {number + 1} of {kills}: killed after {moment:.1f} s, {done[-1]} in the book", flush=True)
    return done, moments


def _told(path: Path) -> Any:
    """What a results.json says, without what varies."""

    def lasting(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: lasting(value) for key, value in part.items() if key not in VARIES}
        return list(map(lasting, part)) if isinstance(part, list) else part

    return lasting(json.loads(path.read_text(encoding="utf-8")))
