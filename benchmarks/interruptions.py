"""A class whose grading is killed again and again, with training: it must end as if nothing had happened."""

import json
import random
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.generated_class import JOBS, ROOT, grading, require_success, write_submissions
from benchmarks.section import Section
from datasets.synthetic_steel import made_images
from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import homework_versions
from grader.gradebook import Gradebook
from grader.kit.image_folders import write_image_zip

KILLS = 20
SEED = 5  # of the moments
PER_CLASS = 10  # images
EPOCHS = 3
NAMES = ("reference", "attention_list_of_heads", "missing_scale", "attention_residual")
# what differs between two runs although nothing happened: times, and the user that a worker was
VARIES = ("graded_at", "seconds", "projected_seconds", "uid")


@dataclass(frozen=True)
class Kill:
    """What was there when a run was killed.

    Attributes:
        out: The folder of its results: a new one whenever a class was graded to its end.
        seconds: After its beginning.
        done: Submissions in the gradebook.
    """

    out: str
    seconds: float
    done: int


def measured(kills: int = KILLS) -> Section:
    """An undisturbed run, and runs that get SIGKILL at random moments and are begun again each time."""
    with tempfile.TemporaryDirectory(prefix="grader-benchmark-") as scratch:
        folder = Path(scratch)
        students = _generate(folder / "class")
        write_image_zip(folder / "images.zip", made_images(0, per_class=PER_CLASS))
        started = time.perf_counter()
        require_success(_start(folder, "whole").wait(), folder / "log")
        seconds = time.perf_counter() - started
        killed = _killed(folder, kills, seconds)
        outs = list(dict.fromkeys(kill.out for kill in killed))
        require_success(_start(folder, outs[-1]).wait(), folder / "log")
        whole = _lasting_results(folder / "whole" / "results.json")
        same = sum(_lasting_results(folder / out / "results.json") == whole for out in outs)
        runs = [count for out in outs for count in _runs(folder / out)]
    trained = sum(one["training"]["outcome"] == "completed" for one in whole["submissions"])
    once = "once" if set(runs) == {1} else f"up to {max(runs)} times"
    return Section(
        "Interruptions",
        f"`grader grade --jobs {JOBS}` on {students} submissions, of which {trained} train for {EPOCHS} "
        f"epochs on {PER_CLASS} small images per class: {seconds:.0f} s when nothing happens. Killed by "
        f"SIGKILL {kills} times, each at a random moment of the first {seconds:.0f} s of a run, and begun "
        "again; a class that came to its end before is followed by a new one.",
        ("class", "killed after, s", "submissions in its gradebook then"),
        tuple((str(outs.index(one.out) + 1), f"{one.seconds:.1f}", str(one.done)) for one in killed),
        (
            f"Apart from times and the workers' user ids, the results of {same} of {len(outs)} classes are "
            "those of an undisturbed run.",
            f"Each submission is in its gradebook {once}.",
        ),
    )


def _generate(destination: Path) -> int:
    assignment = read_assignment(ROOT / "reference" / "vit_defects")
    by_name = {one.name: one for one in homework_versions(assignment)}
    epochs = f"N_EPOCHS = {EPOCHS}"
    return write_submissions(
        destination, (by_name[name].source.replace("N_EPOCHS = 30", epochs) for name in NAMES)
    )


def _start(folder: Path, out: str) -> "subprocess.Popen[bytes]":
    data = "--data", str(folder / "images.zip")
    return grading(folder / "class", folder / out, folder / "log", *data)


def _killed(folder: Path, kills: int, within: float) -> list[Kill]:
    """Start and kill until it was done so often; a run that ends sooner begins the next class."""
    moments, number, killed = random.Random(SEED), 1, list[Kill]()
    while len(killed) < kills:
        out, moment = f"killed{number}", moments.uniform(0.1, within)
        process = _start(folder, out)
        try:
            require_success(process.wait(timeout=moment), folder / "log")
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed.append(Kill(out, moment, len(_runs(folder / out))))
            print(f"  {len(killed)} of {kills}: {killed[-1]}", flush=True)
        else:
            number += 1
    return killed


def _runs(out: Path) -> list[int]:
    """How many runs of each submission its gradebook has."""
    with Gradebook(out, assignment_id="vit_defects") as book:
        return [len(book.runs(student)) for student in book.students()]


def _lasting_results(path: Path) -> Any:
    """What a results.json says, without what varies."""

    def lasting(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: lasting(value) for key, value in part.items() if key not in VARIES}
        return list(map(lasting, part)) if isinstance(part, list) else part

    return lasting(json.loads(path.read_text(encoding="utf-8")))
