"""Tells what a grader made of a generated class: each of its students is honest and right.

    python tests/honest/generated.py CLASS
    grader grade CLASS --assignment vit_defects --data synthetic --out OUT --jobs 2       (or --no-train)
    python tests/honest/report.py OUT [--count 100] [--seed 1]

Counted are the submissions that are held (not graded, or with an item that is a rule's to decide and is not
decided), those that ask a person to look, and those that lose points in a decided item. A checkpoint that was
not handed in does not count, because the generator leaves it out by default; nor does the accuracy, since
nobody here trains for long. Notes are told by themselves, because most of them ask nobody to do anything.
"""

import argparse
import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from generated import Student, students

ROOT = Path(__file__).resolve().parents[2]
MEASURED = "training"


def items_of_persons() -> set[str]:
    """The ids of the items that a person marks."""
    text = (ROOT / "template" / "vit_defects" / "assignment.toml").read_text(encoding="utf-8")
    return {item["id"] for item in tomllib.loads(text)["rubric"] if item.get("by") == "person"}


def held(submission: dict[str, Any], by_persons: set[str]) -> list[str]:
    """Why the submission has no grade yet."""
    found = []
    without_checkpoint = submission["status"] == "incomplete" and submission["missing"] == ["checkpoint"]
    if submission["status"] != "graded" and not without_checkpoint:
        found.append(f"status {submission['status']}: {submission['reason']}")
    found += [
        f"{item['id']} is {item['state']}: {item['reason']}"
        for item in submission["items"]
        if item["id"] not in by_persons and item["state"] not in ("decided", "not_run")
    ]
    found += [f"{item} was not run" for item in submission["not_run"] if item != MEASURED]
    return found


def looks(submission: dict[str, Any]) -> list[str]:
    """What a person is asked to look at."""
    found = []
    for finding in submission["findings"]:
        if finding["status"] == "passed" and finding["message"]:
            found.append(f"{finding['check']}: {finding['message']}")
        elif finding["status"] not in ("passed", "failed"):
            found.append(f"{finding['check']} {finding['status']}: {finding['message']}")
    # what no graded part reaches is recorded, and asks nobody
    reached = [part for part in submission["forbidden"] if part["reached_from"]]
    found += [f"forbidden part {part['name']} ({part['where']})" for part in reached]
    if submission["lower_run"]:
        found.append(f"lower run: {submission['lower_run']}")
    if submission["checkpoint"]["status"] not in ("fits", "missing", "not_tried"):
        found.append(f"checkpoint {submission['checkpoint']['status']}: {submission['checkpoint']['reason']}")
    return found


def losses(submission: dict[str, Any], by_persons: set[str]) -> list[str]:
    """Where points are lost by a rule, and by which checks."""
    found = []
    for item in submission["items"]:
        if item["id"] in by_persons or item["id"] == MEASURED or item["points"] is None:
            continue
        if item["points"] < item["max"]:
            found.append(f"{item['id']} {item['points']} of {item['max']}: {item['reason']}")
    if found:
        failed = [finding for finding in submission["findings"] if finding["status"] == "failed"]
        found += [f"{f['check']}: {f['message']} {f['where']}".rstrip() for f in failed]
    return found


def told(title: str, found: dict[str, list[str]], members: dict[str, Student], brief: bool) -> list[str]:
    """A part of the report: the number, then each submission with its sentences and pieces."""
    lines = [f"{title}: {len(found)}"]
    for student_id, sentences in found.items():
        lines.append(f"  {student_id}")
        lines += [f"    {' '.join(sentence.split())}" for sentence in sentences]
        if not brief and student_id in members:
            lines.append(f"    made of: {' '.join(members[student_id].pieces())}")
    return lines


def suspects(chosen: set[str], members: dict[str, Student]) -> list[str]:
    """The pieces that these submissions have more often than the class has."""
    among = Counter(piece for student_id in chosen for piece in members[student_id].pieces())
    whole = Counter(piece for member in members.values() for piece in member.pieces())
    risen = {
        piece: count / whole[piece]
        for piece, count in among.items()
        if count > 1 and count / whole[piece] > max(0.5, 2 * len(chosen) / len(members))
    }
    ordered = sorted(risen, key=lambda piece: (-risen[piece], -among[piece]))
    return [f"    {piece}: {among[piece]} of the {whole[piece]} that have it" for piece in ordered[:8]]


def main() -> None:
    parser = argparse.ArgumentParser(description="What a grader made of a generated class.")
    parser.add_argument("results", type=Path, help="the folder of results.json")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--brief", action="store_true", help="without the pieces of each submission")
    asked = parser.parse_args()
    members = {member.student_id: member for member in students(asked.count, asked.seed)}
    submissions = json.loads((asked.results / "results.json").read_text(encoding="utf-8"))["submissions"]
    by_persons = items_of_persons()

    print(f"{len(submissions)} submissions, {len(members)} were made.")
    missing = sorted(set(members) - {submission["student_id"] for submission in submissions})
    if missing:
        print("without a result:", ", ".join(missing))
    parts = {
        "held": {s["student_id"]: held(s, by_persons) for s in submissions},
        "a person is asked to look": {s["student_id"]: looks(s) for s in submissions},
        "points lost in a decided item": {s["student_id"]: losses(s, by_persons) for s in submissions},
    }
    for title, found in parts.items():
        kept = {student_id: sentences for student_id, sentences in found.items() if sentences}
        print("\n".join(["", *told(title, kept, members, asked.brief)]))
        risen = suspects(set(kept) & set(members), members)
        if risen:
            print("\n".join(["  pieces that stand out:", *risen]))
    noted: dict[str, list[str]] = {}
    for submission in submissions:
        unreached = [part["name"] for part in submission["forbidden"] if not part["reached_from"]]
        for note in [*submission["notes"], *(f"{name} is outside of the graded parts" for name in unreached)]:
            # the same sentence of several students, but for the place
            alike = re.sub(
                r"^(\S+_Homework\.py:\d+|In \[.*?\], line \d+ \(cell \d+\)): ", "", " ".join(note.split())
            )
            noted.setdefault(alike, []).append(submission["student_id"])
    print(f"\nnotes: {len({student for found in noted.values() for student in found})}")
    for note, found in sorted(noted.items(), key=lambda entry: -len(entry[1])):
        print(f"  {len(found)} x {note}\n      {' '.join(found[:8])}{' ...' * (len(found) > 8)}")

    trained = Counter(s["training"]["outcome"] for s in submissions if s["training"])
    print(
        "\ntraining:", ", ".join(f"{outcome} {number}" for outcome, number in trained.most_common()) or "none"
    )
    for submission in submissions:
        training = submission["training"]
        if training and training["outcome"] != "not_run" and (training["rebuilt"] or training["reason"]):
            sentence = f"{training['outcome']}: {training['reason']} {training['where']}"
            print(f"  {submission['student_id']} {'rebuilt ' * training['rebuilt']}{sentence}")


if __name__ == "__main__":
    main()
