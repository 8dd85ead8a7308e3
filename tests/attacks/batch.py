"""A class of 30 in which every third submission attacks: `python tests/attacks/batch.py FOLDER`.

It writes FOLDER/attacked (all 30) and FOLDER/honest (the 20 that do not attack). Grade both, and compare:

    grader grade FOLDER/attacked --assignment vit_defects --no-train --out FOLDER/with
    grader grade FOLDER/honest --assignment vit_defects --no-train --out FOLDER/without
    python tests/attacks/batch.py FOLDER --compare
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from attack import KNOWN, attacks

from grader.course import homework_versions
from grader.course.reference_solution import solved_source

ROOT = Path(__file__).parents[2]
SIZE = 30
# a secret's path, an exit, a stopped clock, memory, a flood, a deaf loop, a crash, early replies, a patched
# worker, a class that never ends
CHOSEN = (2, 19, 27, 49, 51, 53, 57, 68, 73, 81)
NOWHERE = {"secret_file": "/etc/shadow", "neighbor": "/tmp", "results": "/tmp", "host_pid": 1}


def build(folder: Path) -> None:
    """Write both classes: the solution and known mistakes, and among them the attackers."""
    reference = ROOT / "reference" / "vit_defects"
    solved = solved_source((reference / "solution.py").read_text(encoding="utf-8"), "solution.py")
    known = KNOWN.format(**NOWHERE, course=str(ROOT))
    hostile = [
        homework_versions.composed(solved, known + each.source) for each in attacks() if each.number in CHOSEN
    ]
    mistakes = sorted((reference / "mistakes").glob("*.py"))[:: SIZE // 5]
    wrong = [
        homework_versions.composed(solved, path.read_text(encoding="utf-8"), after=True) for path in mistakes
    ]
    for number in range(SIZE):
        attacks_here = number % 3 == 2
        text = hostile[number // 3] if attacks_here else solved if number % 2 else wrong[number // 2]
        student_id = f"4003{number:05}"
        for place in ("attacked",) if attacks_here else ("attacked", "honest"):
            own = folder / place / student_id
            own.mkdir(parents=True)
            (own / f"{student_id}_Lab8_Homework.py").write_text(text, encoding="utf-8")


def entries(results: Path) -> dict[str, Any]:
    """What results.json says of every student, without what differs from run to run."""
    document = json.loads(results.read_text(encoding="utf-8"))
    found = {}
    for entry in document["submissions"]:
        for passing in ("graded_at", "seconds"):
            entry.pop(passing, None)
        for finding in entry["findings"]:
            finding.pop("seconds", None)
        entry["sandbox"] = entry["sandbox"]["level"]
        found[entry["student_id"]] = entry
    return found


def differences(attacked: Path, honest: Path) -> list[str]:
    """The honest students whose results differ between two results.json."""
    with_attackers, without = entries(attacked), entries(honest)
    return [student_id for student_id, entry in without.items() if with_attackers.get(student_id) != entry]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    if "--compare" in sys.argv:
        pages = folder / "with" / "results.json", folder / "without" / "results.json"
        found = differences(*pages)
        total = len(entries(pages[0])), len(entries(pages[1]))
        print(f"{total[0]} and {total[1]} submissions graded; {len(found)} honest results differ. {found}")
        sys.exit(bool(found))
    for name in ("attacked", "honest"):
        shutil.rmtree(folder / name, ignore_errors=True)
    build(folder)
    print(f"{folder}/attacked and {folder}/honest are written.")
