"""What once gained something, tried again through the whole command line: classes of attackers.

`python tests/attacks/retried_class.py FOLDER` writes FOLDER/trained (the attacks of `retried.py`),
FOLDER/checked (attacks in code, `CHECKED`) and FOLDER/data.zip. Grade both, two at once, and look at them:

    cd FOLDER
    grader grade trained --assignment vit_defects --data data.zip --out trained_out --jobs 2
    grader grade checked --assignment vit_defects --no-train --out checked_out --jobs 2
    python tests/attacks/retried_class.py FOLDER --look
"""

import base64
import json
import re
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
from attack import KNOWN, Attack, attacks
from batch import NOWHERE
from PIL import Image
from retried import RETRIED, Said

from grader.course import homework_versions
from grader.course.reference_solution import solved_source
from grader.course.student_template import notebook

ROOT = Path(__file__).parents[2]
SOLUTION = ROOT / "reference" / "vit_defects" / "solution.py"
ASSIGNED = ("--assignment", "vit_defects")
HONEST = "400101200"
# attacks in code that did once gain something, or are near those that did
CHECKED = (*range(111, 118), *range(130, 148), *range(150, 153), *range(160, 180))


def written(text: str, edits: tuple[tuple[str, str], ...], table: str) -> str:
    """The solution with an attack's edits, a small model, and one epoch."""
    for old, new in (("depth=6,", "depth=2,"), ("N_EPOCHS = 30", "N_EPOCHS = 1"), *edits):
        if text.count(old) != 1:
            raise ValueError(f"The solution has {old!r} {text.count(old)} times, not once.")
        text = text.replace(old, new)
    return text.replace("@TABLE@", table)


def table_of(data: Path) -> str:
    """Sixteen block means and the label of every image of a data set, as letters."""
    rows = b""
    with zipfile.ZipFile(data) as archive:
        names = [name for name in archive.namelist() if name.endswith((".jpg", ".png", ".bmp"))]
        kinds = sorted({Path(name).parent.name for name in names})
        for name in names:
            small = Image.open(BytesIO(archive.read(name))).convert("L").resize((4, 4), Image.Resampling.BOX)
            rows += np.asarray(small).tobytes() + bytes([kinds.index(Path(name).parent.name)])
    return base64.b64encode(rows).decode()


def student(number: int) -> str:
    """The number of the student who tries an attack."""
    return f"4002{number:05}"


def hand_in(folder: Path, student_id: str, name: str, text: str) -> None:
    """Write what a student hands in."""
    (folder / student_id).mkdir(parents=True, exist_ok=True)
    (folder / student_id / f"{student_id}_{name}").write_text(text, encoding="utf-8")


def build_trained(folder: Path, data: Path) -> None:
    """Write the class of those who are trained, and one who is honest."""
    solved = solved_source(SOLUTION.read_text(encoding="utf-8"), "solution.py")
    table = table_of(data)
    hand_in(folder, HONEST, "Lab8_Homework.py", written(solved, (), table))
    for each in RETRIED:
        text = written(solved, each.edits, table)
        if each.as_notebook:
            hand_in(folder, student(each.number), "Lab8_Homework.ipynb", claiming(each.as_notebook + text))
            continue
        hand_in(folder, student(each.number), "Lab8_Homework.py", text)
        if each.beside:
            hand_in(folder, student(each.number + 1), "Lab8_Homework.py", written(solved, each.beside, table))


def claiming(text: str) -> str:
    """A notebook of the text, whose last code cell shows the output of a training that never was."""
    content = json.loads(notebook(text, "vit_defects", "solution.py"))
    told = [f"Epoch {epoch}/1\n" for epoch in (1,)] + ["test loss 0.0012, accuracy 251/252 (99.90 %)\n"]
    trains = next(cell for cell in content["cells"] if "train_epoch(model," in "".join(cell["source"]))
    trains["outputs"] = [{"output_type": "stream", "name": "stdout", "text": told}]
    return json.dumps(content)


def build_checked(folder: Path) -> tuple[Attack, ...]:
    """Write the class of the attacks in code that once gained something."""
    solved = solved_source(SOLUTION.read_text(encoding="utf-8"), "solution.py")
    chosen = tuple(each for each in attacks() if each.number in CHECKED)
    for each in chosen:
        known = KNOWN.format(**NOWHERE, course=str(ROOT))
        hand_in(
            folder,
            student(each.number),
            "Lab8_Homework.py",
            homework_versions.composed(solved, known + each.source),
        )
    return chosen


def entries(out: Path) -> dict[str, Said]:
    """What results.json says of every student."""
    document = json.loads((out / "results.json").read_text(encoding="utf-8"))
    return {entry["student_id"]: entry for entry in document["submissions"]}


def page_of(out: Path, student_id: str) -> str:
    """What all pages of a student say."""
    pages = sorted((out / "students" / student_id).glob("*.html"))
    return "\n".join(re.sub(r"data:[^\"]*", "", page.read_text(encoding="utf-8")) for page in pages)


def look_at_trained(out: Path) -> dict[int, str]:
    """What is wrong with each of those who were trained; empty where all is as it should be."""
    found = {}
    every = entries(out)
    for each in RETRIED:
        entry = every[student(each.number)]
        [item] = [item for item in entry["items"] if item["id"] == "training"]
        found[each.number] = each.wrong(entry, page_of(out, student(each.number)), item)
    return found


def look_at_checked(out: Path) -> dict[int, str]:
    """What each of the attacks in code gained; empty where it lost its points, or a person is asked."""
    return {
        each.number: gained(each, entries(out)[student(each.number)])
        for each in attacks()
        if each.number in CHECKED
    }


def gained(attack: Attack, entry: Said) -> str:
    """What an attack in code has by its outcome; empty where it has nothing."""
    parts = [part for item in entry["items"] for part in item.get("components", ())]
    full = {p["component"] for p in parts if p["points"] is not None and p["points"] >= p["max"] > 0}
    kept = sorted(full & set(attack.fails))
    if kept:
        return f"full points for {', '.join(kept)}"
    for_a_person = entry["notes"] or entry["forbidden"] or entry["open_points"] > 35 + 15
    if attack.outcome in ("a person looks", "undecided") and not for_a_person:
        flags = [finding["message"] for finding in entry["findings"] if finding["status"] == "passed"]
        return "" if any(flags) else "nobody is asked"
    return ""


def main() -> int:
    """Write both classes, or look at what came of them."""
    folder = Path(sys.argv[1])
    if "--look" not in sys.argv:
        data = folder / "data.zip"
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [sys.executable, "-m", "grader", "data", "write", "synthetic", "--out", str(data), *ASSIGNED],
            check=True,
            cwd=ROOT,
        )
        build_trained(folder / "trained", data)
        build_checked(folder / "checked")
        return 0
    wrong = {}
    for name, look in (("trained", look_at_trained), ("checked", look_at_checked)):
        if (folder / f"{name}_out").is_dir():
            found = look(folder / f"{name}_out")
            print(f"{name}: {len(found)} tried again, {sum(map(bool, found.values()))} gain something.")
            wrong |= {number: what for number, what in found.items() if what}
    for number, what in sorted(wrong.items()):
        print(f"{number}: {what}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
