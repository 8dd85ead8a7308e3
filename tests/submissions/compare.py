"""Holds two graders against each other: where do their `results.json` of the same uploads differ?

    python tests/submissions/compare.py BEFORE AFTER [--but FIELD]...

BEFORE and AFTER are results folders of `grader grade`. What differs between any two runs (when it was, how
long it took, what the operator's machine projected, which user ids it gave) is left out. For the same hidden images, both must be
graded into books with the same salt: copy the gradebook of an empty run, as `empty_book` makes it, into both
folders first. The exit status is 1 if anything else differs.

    python tests/submissions/compare.py --empty-book FOLDER
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ANY_TWO_RUNS = {"graded_at", "seconds", "projected_seconds", "received_hint", "uid"}
SHOWN = 160  # characters of a value


def differences(before: Any, after: Any, but: set[str], path: str = "") -> Iterator[str]:
    """What differs between two JSON values, one line each, by its path."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            if key not in but:
                absent = "(absent)"
                yield from differences(before.get(key, absent), after.get(key, absent), but, f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, pair in enumerate(zip(before, after, strict=True)):
            yield from differences(*pair, but, f"{path}[{_name(pair[0], number)}]")
    elif before != after:
        yield f"{path}: {_short(before)} -> {_short(after)}"


def _name(value: Any, number: int) -> str:
    """How an entry of a list is called: by its own id where it has one."""
    for key in ("student_id", "check", "id", "component", "name"):
        if isinstance(value, dict) and isinstance(value.get(key), str):
            return str(value[key])
    return str(number)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else text[:SHOWN] + " ..."


def empty_book(folder: Path) -> None:
    """Make the gradebook of a results folder in which nothing is graded yet."""
    from grader.gradebook import Gradebook

    with Gradebook(folder, assignment_id="vit_defects") as book:
        book.class_salt()


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--but", action="append", default=[], metavar="FIELD", help="leave this field out")
    parser.add_argument("--empty-book", type=Path, metavar="FOLDER", help="make a gradebook with a salt")
    given = parser.parse_args()
    if given.empty_book is not None:
        empty_book(given.empty_book)
        return 0
    if len(given.folders) != 2:
        parser.error("give two results folders, BEFORE and AFTER")
    before, after = (json.loads((folder / "results.json").read_text("utf-8")) for folder in given.folders)
    lines = list(differences(before, after, ANY_TWO_RUNS | set(given.but)))
    print("\n".join(lines) or f"No difference in {len(before['submissions'])} submissions.")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
