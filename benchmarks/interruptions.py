"""A class whose grading is killed again and again, with training: it must end as if nothing had happened."""

import json
import random
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.generated_class import JOBS, ROOT, grading, require_success, write_submissions
from benchmarks.section import Section
from datasets.synthetic_steel import made_images
from grader.course.assignment_file import read_assignment
from grader.course.variants import variants
from grader.gradebook import Gradebook
from grader.kit.image_zip import write_image_zip

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
        require_success(_start(folder, folder / "whole").wait(), folder / "log")
        whole_seconds = time.perf_counter() - started
        done, moments = _killed(folder, kills, whole_seconds)
        require_success(_start(folder, folder / "killed").wait(), folder / "log")
        whole, killed = (_told(folder / out / "results.json") for out in ("whole", "killed"))
        with Gradebook(folder / "killed") as book:
            runs = [len(book.runs(student)) for student in book.students()]
    trained = sum(one["training"]["outcome"] == "completed" for one in whole["submissions"])
    same = "are" if whole == killed else "are NOT"
    once = "once" if set(runs) == {1} else f"up to {max(runs)} times"
    return Section(
        "Interruptions",
        f"`grader grade --jobs {JOBS}` on {students} submissions, of which {trained} train for {EPOCHS} "
        f"epochs on {PER_CLASS} small images per class; killed by SIGKILL {kills} times at random moments "
        f"of its first {whole_seconds:.0f} s and begun again each time.",
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
    epochs = f"N_EPOCHS = {EPOCHS}"
    return write_submissions(
        destination, (by_name[name].source.replace("N_EPOCHS = 30", epochs) for name in NAMES)
    )


def _start(folder: Path, out: Path) -> "subprocess.Popen[bytes]":
    data = "--data", str(folder / "images.zip")
    return grading(folder / "class", out, folder / "log", *data)


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
