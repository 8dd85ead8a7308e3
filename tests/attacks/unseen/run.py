"""Hands in each variant of an attack, grades it by the real command line, and tells what came of it.

    python tests/attacks/unseen/run.py                        all of them
    python tests/attacks/unseen/run.py 2_globals_restored 6   some, by their names or the points of the issue
    python tests/attacks/unseen/run.py --no-train             only those that need no training

Each folder beside this file is one variant. Its `attack.toml` says

    point               of the issue that it belongs to
    tries               what it tries, in a sentence
    trains              true: it is graded with training, on images that were published (the synthetic ones)
    published           true: its `make.py` needs these images, although it is not trained
    jobs                submissions at once
    graded              which file of the upload is graded; by default all of it
    roster              which file of the upload is the list of the class
    components_only     true: the rubric has only items that checks decide, and only code is handed in, so
                        that grades are final without a person's marks
    routine             causes of the class page's queue that hold nothing, and are not enough here
    honest_points       item -> what the honest parts deserve
    also_fine           what else may come of it
    [[upload]]          student_id, code (statements that differ from `base.py`, see `assembling.py`), and
                        file: where it lies in the upload; `make(upload, published)` of `make.py` does more
    [[step]]            command: what is done after grading; {out}, {upload} and {to} are folders
    [[forbidden_outcome]]
        kind = "points"     of this student's item are decided and more than more_than, and nobody is asked
        kind = "undecided"  this student's item is not decided, although the honest work would be
        kind = "text"       this pattern stands in places: report, class, results, terminal
        kind = "voice"      this phrase stands outside of quotation marks and code in the report or the
                            reasons, or over 80 of its characters stand there at all
        kind = "picture"    an attention picture of the report shows the pattern (a string of 0 and 1)
        kind = "row"        in the table `file`, the row with `key` has another value in `column` than
                            `allowed`
        kind = "zip"        in the zip `file`, an entry whose name has `entry` holds the text `pattern`
        kind = "listed"     somebody's record under `student` is another's work: a finding has `pattern`
        kind = "missing"    this student has not `points` for this item, or a person is asked about it
        kind = "lost"       fewer than at_least submissions have `points` for this item
        unless_asked        true: it is not a gain where a person is asked about this student

The outcomes: `held: nothing gained`, `a person is asked`, `GAINED: ...`, or `BROKEN: ...` where it could
not be tried at all.
"""

import argparse
import csv
import html
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE))

from assembling import STEM, assembled  # noqa: E402 - a neighbor, whatever the working directory

ASSIGNMENT = "vit_defects"
# causes of the class page's queue that say nothing of what was handed in
ROUTINE = {
    *("marks", "partial", "boundary", "not-run", "incomplete", "late", "late-unknown", "unofficial"),
    *("handed-in-nothing", "suspect-checks", "similar"),
}
LOOK = re.compile(r"a person (should look|decides|will take a look|looks|is asked)", re.IGNORECASE)
MOST_QUOTED = 80
OPENING, CLOSING = "“«‹‘„", "”»›’"


@dataclass
class Tried:
    """What grading a variant left behind."""

    folder: Path
    attack: dict[str, Any]
    terminal: str = ""
    results: dict[str, Any] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        """The results' folder."""
        return self.folder / "results"

    def submission(self, student_id: str) -> dict[str, Any]:
        """A student's record; empty where there is none."""
        found = (one for one in self.results.get("submissions", ()) if one["student_id"] == student_id)
        return next(found, {})

    def item(self, student_id: str, item: str) -> dict[str, Any]:
        """A rubric item of a student; empty where there is none."""
        found = (one for one in self.submission(student_id).get("items", ()) if one["id"] == item)
        return next(found, {})

    def students(self) -> list[str]:
        """Whom the outcome is about."""
        named = [one["student_id"] for one in self.attack.get("upload", ())]
        return named or [one["student"] for one in self.attack["forbidden_outcome"]]

    def asked(self, student_id: str) -> list[str]:
        """Why a person is asked about a student, in a few words each."""
        why = []
        record = self.submission(student_id)
        for item in record.get("items", ()):
            by_person = item["reason"] == "A person marks this."
            if item["state"] == "awaiting" and not by_person:
                why.append(f"{item['id']} awaits a person")
        why += [f"note: {note[:90]}" for note in record.get("notes", ()) if LOOK.search(note)]
        page = self.out / "index.html"
        text = page.read_text(encoding="utf-8") if page.is_file() else ""
        routine = ROUTINE | set(self.attack.get("routine", ()))
        alone = len(self.results.get("submissions", ())) < 2
        for cause, section in re.findall(
            r'<div class="cause[^"]*" id="([^"]+)">(.*?)</div>', text, re.DOTALL
        ):
            # another's line may name the student, which says something only of one who has no line
            named = f"students/{student_id}/" if record else student_id
            if cause not in routine and (alone or named in section):
                why.append(f"in the queue: {cause}")
        return why


# --- building ---------------------------------------------------------------------------------------------


def variants() -> dict[str, dict[str, Any]]:
    """What there is to try, by name."""
    found = sorted(HERE.glob("*/attack.toml"), key=lambda path: (int(path.parent.name.split("_")[0]), path))
    return {path.parent.name: tomllib.loads(path.read_text(encoding="utf-8")) for path in found}


def built(name: str, attack: dict[str, Any], folder: Path, published: Path | None) -> Path:
    """Writes a variant's upload; what of it is graded."""
    upload = folder / "upload"
    upload.mkdir(parents=True)
    for one in attack.get("upload", ()):
        student_id = one["student_id"]
        cheat = (HERE / name / one["code"]).read_text(encoding="utf-8") if "code" in one else ""
        file = upload / one.get("file", f"{STEM.format(student_id=student_id)}.py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(assembled(cheat, student_id), encoding="utf-8", newline="\n")
    if (HERE / name / "make.py").is_file():
        spec = importlib.util.spec_from_file_location(f"make_{name}", HERE / name / "make.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.make(upload, published)
    inside = list(upload.iterdir())
    graded = attack.get("graded")
    if graded:
        return upload / graded
    return inside[0] if len(inside) == 1 and inside[0].is_file() else upload


def course_of_components(folder: Path) -> Path:
    """The course with a rubric of only what checks decide, and code alone to hand in."""
    course = folder / "course"
    course.mkdir()
    shutil.copy(ROOT / "course.toml", course)
    for inside in ("datasets", "reference"):
        shutil.copytree(ROOT / inside, course / inside, ignore=shutil.ignore_patterns("__pycache__"))
    path = course / "reference" / ASSIGNMENT / "assignment.toml"
    text = path.read_text(encoding="utf-8")
    head, *tables = re.split(r"(?m)^(?=\[\[|\[(?!rubric\.))", text)
    kept = [
        table
        for table in tables
        if not table.startswith("[[rubric]]") or ("by =" not in table and "measured =" not in table)
    ]
    kept = [re.sub(r"(?m)^(checkpoint|report) = .*\n", "", t) if "[files" in t else t for t in kept]
    path.write_text(head + "".join(kept), encoding="utf-8")
    path.with_name("comments.toml").unlink(missing_ok=True)  # about items that are not there
    return course


def published_images(folder: Path) -> Path:
    """The images that the course handed out, as a zip."""
    path = folder / "published.zip"
    if not path.is_file():
        _grader(ROOT, "data", "write", "synthetic", "--out", str(path), "--assignment", ASSIGNMENT)
    return path


def _grader(course: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "grader", "--course", str(course), *arguments]
    environment = {
        **os.environ,
        "GRADER_SECRET": "of a class that is made up",
        "GRADER_BY": "head",
        "COLUMNS": "200",
    }
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1800, check=False
    )
    return done.returncode, done.stdout + done.stderr


def tried(name: str, attack: dict[str, Any], folder: Path, published: Path | None) -> Tried:
    """Hand in a variant and grade it."""
    made = Tried(folder, attack)
    graded = built(name, attack, folder, published)
    course = course_of_components(folder) if attack.get("components_only") else ROOT
    how = ["--data", str(published)] if attack.get("trains") else ["--no-train"]
    roster = [*("--roster", str(folder / "upload" / attack["roster"]))] if "roster" in attack else []
    jobs = ["--jobs", str(attack.get("jobs", 1))]
    arguments = [
        "grade",
        str(graded),
        "--assignment",
        ASSIGNMENT,
        "--out",
        str(made.out),
        *how,
        *jobs,
        *roster,
    ]
    code, text = _grader(course, *arguments)
    made.terminal = f"$ grader grade: {code}\n{text}"
    (folder / "to").mkdir()
    places = {"out": str(made.out), "upload": str(folder / "upload"), "to": str(folder / "to")}
    for step in attack.get("step", ()):
        arguments = [part.format(**places) for part in step["command"]]
        code, text = _grader(course, *arguments)
        made.terminal += f"$ grader {' '.join(step['command'][:2])}: {code}\n{text}"
    path = made.out / "results.json"
    made.results = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    (folder / "terminal.txt").write_text(made.terminal, encoding="utf-8")
    return made


# --- judging ----------------------------------------------------------------------------------------------


def gains(made: Tried) -> Iterator[str]:
    """What of the forbidden came of a variant."""
    for forbidden in made.attack["forbidden_outcome"]:
        student_id = forbidden.get("student") or made.students()[0]
        asked = made.students() if made.attack["point"] == 9 else [student_id]
        if forbidden.get("unless_asked", forbidden["kind"] == "points") and any(map(made.asked, asked)):
            continue
        yield from KINDS[forbidden["kind"]](made, forbidden, student_id)


def _points(made: Tried, forbidden: dict[str, Any], student_id: str) -> Iterator[str]:
    item = made.item(student_id, forbidden["item"])
    if item.get("state") == "decided" and item["points"] > forbidden["more_than"] + 1e-6:
        honest = made.attack.get("honest_points", {}).get(forbidden["item"], "?")
        yield f"{student_id}: {item['points']:g} of {item['max']:g} for {item['id']} (honest: {honest})"


def _undecided(made: Tried, forbidden: dict[str, Any], student_id: str) -> Iterator[str]:
    item = made.item(student_id, forbidden["item"])
    if item.get("state") == "awaiting":
        yield f"{student_id}: {item['id']} awaits a person: {item['reason'][:160]}"


def _text(made: Tried, forbidden: dict[str, Any], student_id: str) -> Iterator[str]:
    for place in forbidden["places"]:
        for where, text in _texts(made, place, student_id):
            if found := re.search(forbidden["pattern"], text):
                yield f"{where}: {found[0][:100]!r}"


def _texts(made: Tried, place: str, student_id: str) -> Iterator[tuple[str, str]]:
    if place == "report":
        path = made.out / "students" / student_id / "report.html"
        if path.is_file():
            yield "the student's report", html.unescape(path.read_text(encoding="utf-8"))
    elif place == "class":
        path = made.out / "index.html"
        if path.is_file():
            yield "the class page", html.unescape(path.read_text(encoding="utf-8"))
    elif place == "results":
        yield "results.json", json.dumps(made.results, ensure_ascii=False)
    else:
        yield "the terminal", made.terminal


def _voice(made: Tried, forbidden: dict[str, Any], student_id: str) -> Iterator[str]:
    phrase = forbidden["phrase"]
    path = made.out / "students" / student_id / "report.html"
    texts = [("the student's report", _read(path.read_text(encoding="utf-8")))] if path.is_file() else []
    record = made.submission(student_id)
    said = [record.get("reason", ""), *record.get("notes", ()), record.get("training", {}).get("reason", "")]
    said += [item["reason"] for item in record.get("items", ())]
    said += [finding["message"] for finding in record.get("findings", ())]
    texts += [("results.json", _quoted_code(one)) for one in said]
    told: set[str] = set()
    for where, text in texts:
        for found in re.finditer(re.escape(phrase[:24]), text):
            shown = _common(text[found.start() :], phrase)
            if len(shown) > MOST_QUOTED:
                told.add(f"{where}: {len(shown)} characters of the student's: {shown[:60]!r} ...")
            elif not _within_quotes(text, found.start()):
                told.add(f"{where}, not quoted: {text[max(found.start() - 50, 0) : found.start() + 60]!r}")
    yield from sorted(told)


def _common(one: str, other: str) -> str:
    length = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    return one[: min(len(one), len(other)) if length is None else length]


def _read(page: str) -> str:
    """A page as a person reads it, where code and quotations stand between quotation marks."""
    page = re.sub(r"(?s)<(style|script|svg|pre)\b.*?</\1>", " ", page)
    # what looks like a quotation mark within an element of its own ends nothing
    page = re.sub(r"(?s)<(code|q|samp)\b[^>]*>(.*?)</\1>", lambda found: f"“{_plain(found[2])}”", page)
    return html.unescape(re.sub(r"<[^>]+>", " ", page))


def _plain(inside: str) -> str:
    inside = html.unescape(re.sub(r"<[^>]+>", " ", inside))
    return html.escape(re.sub(f"[{OPENING}{CLOSING}\"'`]", "", inside))


def _quoted_code(text: str) -> str:
    """A text whose code stands between quotation marks, of which there are none within it: as in `_read`."""
    pieces = text.split("`")
    inside = re.compile(f"[{OPENING}{CLOSING}\"']")
    return "".join(f"“{inside.sub('', piece)}”" if index % 2 else piece for index, piece in enumerate(pieces))


def _within_quotes(text: str, start: int) -> bool:
    """Whether the last quotation that was opened in the sentences before is still open."""
    before = text[max(start - 300, 0) : start]
    opened = max((before.rfind(mark) for mark in OPENING), default=-1)
    closed = max((before.rfind(mark) for mark in CLOSING), default=-1)
    plain = before.rstrip().endswith(("'", '"'))
    return opened > closed or plain


def _picture(made: Tried, forbidden: dict[str, Any], student_id: str) -> Iterator[str]:
    import base64

    import numpy as np
    from PIL import Image

    pattern = np.array([float(bit) for bit in forbidden["pattern"]])
    side = round(len(pattern) ** 0.5)
    folder = made.out / "students" / student_id
    path = folder / "report.html"
    page = path.read_text(encoding="utf-8") if path.is_file() else ""
    pictures = [
        base64.b64decode(data) for data in re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", page)
    ]
    pictures += [one.read_bytes() for one in folder.rglob("*.png")]
    best = 0.0
    for content in pictures:
        picture = Image.open(io.BytesIO(content)).convert("RGB").resize((side, side), Image.Resampling.BOX)
        for channel in np.asarray(picture, dtype=np.float64).reshape(-1, 3).T:
            if channel.std() > 0:
                best = max(best, abs(float(np.corrcoef(channel, pattern)[0, 1])))
    if best > 0.75:
        yield f"a picture of the report shows the student's pattern (correlation {best:.2f})"


def _row(made: Tried, forbidden: dict[str, Any], _: str) -> Iterator[str]:
    path = made.folder / "to" / forbidden["file"]
    if not path.is_file():
        return
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    column = next(i for i, name in enumerate(rows[0]) if forbidden["column"].casefold() in name.casefold())
    for row in rows[1:]:
        if forbidden["key"] in row:
            value = row[column].strip()
            fine = any(_same(value, allowed) for allowed in forbidden["allowed"])
            if not fine:
                yield f"{path.name}: the row of {forbidden['key']} has {value or 'nothing'}"


def _same(value: str, allowed: Any) -> bool:
    try:
        return abs(float(value) - float(allowed)) < 0.01
    except ValueError:
        return value == str(allowed)


def _zip(made: Tried, forbidden: dict[str, Any], _: str) -> Iterator[str]:
    path = made.folder / "to" / forbidden["file"]
    if not path.is_file():
        return
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            text = html.unescape(archive.read(name).decode("utf-8", "replace"))
            if forbidden["entry"] in name and re.search(forbidden["pattern"], text):
                yield f"{path.name}: {name} holds what is another's"


def _listed(made: Tried, forbidden: dict[str, Any], student_id: str) -> Iterator[str]:
    for finding in made.submission(student_id).get("findings", ()):
        if re.search(forbidden["pattern"], finding["message"]):
            yield f"{student_id}: is graded by another's file ({finding['message'][:60]})"
            return


def _missing(made: Tried, forbidden: dict[str, Any], student_id: str) -> Iterator[str]:
    item = made.item(student_id, forbidden["item"])
    if item.get("state") != "decided" or item["points"] != forbidden["points"]:
        yield f"{student_id}: does not have {forbidden['points']} points for {forbidden['item']}, but waits"
    yield from (f"{student_id}: {why}" for why in made.asked(student_id))


def _lost(made: Tried, forbidden: dict[str, Any], _: str) -> Iterator[str]:
    items = [made.item(one["student_id"], forbidden["item"]) for one in made.results["submissions"]]
    count = sum(item.get("points") == forbidden["points"] for item in items)
    if count < forbidden["at_least"]:
        yield f"{count} submissions have {forbidden['points']} points for {forbidden['item']}: one was lost"


KINDS: dict[str, Callable[[Tried, dict[str, Any], str], Iterator[str]]] = {
    "points": _points,
    "undecided": _undecided,
    "text": _text,
    "voice": _voice,
    "picture": _picture,
    "row": _row,
    "zip": _zip,
    "listed": _listed,
    "missing": _missing,
    "lost": _lost,
}


def facts(made: Tried) -> list[str]:
    """What results.json says of the items that the variant is about."""
    items = {one["item"] for one in made.attack["forbidden_outcome"] if "item" in one}
    items |= set(made.attack.get("honest_points", ()))
    found = []
    for student_id in dict.fromkeys(made.students()):
        record = made.submission(student_id)
        if not record:
            found.append(f"{student_id}: no result under this id")
            continue
        for item in record["items"]:
            if item["id"] in items:
                points = "-" if item["points"] is None else f"{item['points']:g}"
                found.append(f"{student_id} {item['id']}: {item['state']}, {points} of {item['max']:g}")
        accuracy, runs = record["measurements"]["test_accuracy"], record["measurements"]["test_accuracy_runs"]
        if accuracy is not None:
            several = f" ({', '.join(f'{run:.3f}' for run in runs)})" if runs else ""
            found.append(f"{student_id} accuracy: {accuracy:.3f}{several}")
        found += [f"{student_id} {why}" for why in dict.fromkeys(made.asked(student_id))]
    return found


def outcome(made: Tried) -> str:
    """What came of a variant, in a word."""
    if not made.results.get("submissions"):
        why = re.search(r"(?i)error.*", made.terminal)
        return f"BROKEN: {why[0][:150] if why else 'there are no results'}"
    gained = list(gains(made))
    if gained:
        return "GAINED: " + "; ".join(gained[:4])
    if any(made.asked(student_id) for student_id in made.students()):
        return "a person is asked"
    return "held: nothing gained"


def main() -> int:
    """Tries the variants that were asked for; 1 where one gained something."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", help="variants, or points of the issue; by default all")
    parser.add_argument("--no-train", action="store_true", help="only those that need no training")
    parser.add_argument("--keep", type=Path, help="a folder for what is made; by default a temporary one")
    options = parser.parse_args()
    every = variants()
    chosen = {
        name: attack
        for name, attack in every.items()
        if (not options.names or {name, str(attack["point"])} & set(options.names))
        and not (options.no_train and attack.get("trains"))
    }
    if not chosen:
        parser.error("no variant has this name: " + ", ".join(every))
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as temporary:
        base = (options.keep or Path(temporary)).resolve()
        base.mkdir(parents=True, exist_ok=True)
        for name, attack in chosen.items():
            needs_images = attack.get("trains") or attack.get("published")
            published = published_images(base) if needs_images else None
            folder = base / name
            shutil.rmtree(folder, ignore_errors=True)
            made = tried(name, attack, folder, published)
            told = outcome(made)
            counts[told.partition(":")[0]] = counts.get(told.partition(":")[0], 0) + 1
            print(f"{name:34} {told}", flush=True)
            for fact in facts(made):
                print(f"{'':34}   {fact}", flush=True)
    print(", ".join(f"{number} x {told}" for told, number in sorted(counts.items())))
    return 1 if counts.get("GAINED") or counts.get("BROKEN") else 0


if __name__ == "__main__":
    sys.exit(main())
