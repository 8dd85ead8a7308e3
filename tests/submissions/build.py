"""Builds the uploads that are described in the folders beside this file.

Each folder is one upload and what must come of it (`upload.toml`):

    why                 what it shows, in a sentence
    [upload]
    student_id          who hands it in
    demo                true: it belongs to the class that `make demo` grades
    base                `solution` (the reference without its marks), `template` (what students receive), or a
                        file of the folder. A `.cells` file holds notebook cells: `# %%` and
                        `# %% [markdown]` begin a cell, and `#: ` lines are its saved output
    format              `py` or `ipynb`
    edits               [[old, new], ...]: `old` must occur exactly once
    [upload.modules]    file = [names]: top-level definitions that lie in a module, and are imported from it
    leave_out           roles that are not handed in: `report`, `checkpoint`, `code`
    checkpoint          `solution` (weights of the reference's model, the default), `own` (of the model in its
                        own code) or `other` (of a model that has nothing to do with it)
    [expected]          what must come of it: `status`, `failing` (components), `diagnosis`, ...

Nothing of a submission is executed here, except the model's classes of those that say `checkpoint = "own"`.
Weights are as initialized, not trained. Building is deterministic.

    python tests/submissions/build.py DESTINATION                 builds the demo class
    python tests/submissions/build.py DESTINATION ASSIGNMENT      that of another assignment: `example_class.py`
"""

import ast
import functools
import io
import json
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grader.course.reference_solution import homework_source, solved_source
from grader.course.student_template import notebook

HERE = Path(__file__).resolve().parent
ASSIGNMENT = "vit_defects"
SOLUTION = HERE.parents[1] / "reference" / ASSIGNMENT / "solution.py"
STEM = "{student_id}_Lab8_Homework"
REFERENCE_ID = "400101200"
_MODEL_LIBRARIES = {"torch", "einops", "math"}


def described(behavior: Path) -> dict[str, Any]:
    """What `upload.toml` of an upload's folder says."""
    return tomllib.loads((behavior / "upload.toml").read_text(encoding="utf-8"))


def behaviors(demo_only: bool = False) -> list[Path]:
    """The folders of the uploads, in the order of the student ids."""
    found = [(described(path.parent)["upload"], path.parent) for path in HERE.glob("*/upload.toml")]
    chosen = [(upload["student_id"], path) for upload, path in found if upload.get("demo") or not demo_only]
    return [path for _, path in sorted(chosen)]


def build(behavior: Path, destination: Path) -> Path:
    """Writes one upload's files to `destination/<student_id>` and returns that folder.

    Raises:
        ValueError: `upload.toml` asks for something that cannot be built.
    """
    upload = described(behavior)["upload"]
    stem = STEM.format(student_id=upload["student_id"])
    source = _source(behavior, upload)
    left_out = upload.get("leave_out", [])
    folder = destination / str(upload["student_id"])
    folder.mkdir(parents=True, exist_ok=True)
    modules: dict[str, str] = {}
    if upload.get("modules"):
        source, modules = _in_modules(source, upload["modules"])
    for name, text in modules.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    if "code" not in left_out:
        text = _notebook(source, behavior.name) if upload["format"] == "ipynb" else source
        (folder / f"{stem}.{upload['format']}").write_text(text, encoding="utf-8", newline="\n")
    if "checkpoint" not in left_out:
        (folder / f"{stem}.pth").write_bytes(_checkpoint(upload.get("checkpoint", "solution"), source))
    if "report" not in left_out:
        (folder / f"{stem}.pdf").write_bytes(pdf(f"Report of student {upload['student_id']}"))
    return folder


def build_class(destination: Path, names: Sequence[str] | None = None) -> list[Path]:
    """Builds several uploads below `destination`.

    Args:
        destination: The class's folder; it is created.
        names: The uploads' folder names; None: those of the demo.

    Returns:
        The folders written, one per student, in the order of the ids.
    """
    chosen = [path for path in behaviors(demo_only=names is None) if names is None or path.name in names]
    return [build(path, destination) for path in chosen]


def pdf(line: str) -> bytes:
    """A PDF of one page with one line of plain ASCII text."""
    escaped = line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)").encode("ascii")
    content = b"BT /F1 14 Tf 72 770 Td (" + escaped + b") Tj ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out = b"%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    return out + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (size, table, size, len(out))
    )


def _source(behavior: Path, upload: dict[str, Any]) -> str:
    """The upload's code, as a script with cell markers."""
    base = upload["base"]
    name = f"reference/{ASSIGNMENT}/solution.py"
    if base == "solution":
        source = solved_source(SOLUTION.read_text(encoding="utf-8"), name)
    elif base == "template":
        source = homework_source(SOLUTION.read_text(encoding="utf-8"), name)
    else:
        source = (behavior / base).read_text(encoding="utf-8")
    for old, new in upload.get("edits", []):
        if (count := source.count(old)) != 1:
            raise ValueError(
                f"{behavior.name}/upload.toml: {old!r} occurs {count} times in the base, not once."
            )
        source = source.replace(old, new)
    return source.replace(REFERENCE_ID, upload["student_id"])


def _in_modules(source: str, wanted: dict[str, list[str]]) -> tuple[str, dict[str, str]]:
    """The source without some of its definitions, and the modules that hold them instead."""
    tree, lines = ast.parse(source), source.split("\n")
    imports = "\n".join(
        ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)
    )
    modules, moved = {}, set()
    for file, names in wanted.items():
        texts = [imports]
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            bound = {getattr(node, "name", None), *(getattr(target, "id", None) for target in targets)}
            if bound & set(names):
                texts.append(ast.unparse(node))
                moved |= set(range(node.lineno - 1, node.end_lineno or node.lineno))
        modules[file] = "\n\n\n".join(texts) + "\n"
    own = "\n".join(
        f"from {file.removesuffix('.py').replace('/', '.')} import {', '.join(names)}"
        for file, names in wanted.items()
    )
    kept = [line for number, line in enumerate(lines) if number not in moved]
    place = max(number for number, line in enumerate(kept) if line.startswith(("import ", "from ")))
    return "\n".join([*kept[: place + 1], own, *kept[place + 1 :]]), modules


def _notebook(source: str, name: str) -> str:
    """A notebook as it is after a run: execution counts, and the `#: ` lines as saved output."""
    content = json.loads(notebook(source, name, name))
    runs = 0
    for cell in content["cells"]:
        if cell["cell_type"] != "code":
            continue
        runs += 1
        printed = [line[3:].rstrip("\n") + "\n" for line in cell["source"] if line.startswith("#: ")]
        kept = "".join(line for line in cell["source"] if not line.startswith("#: ")).rstrip("\n")
        cell["source"] = kept.splitlines(keepends=True)
        cell["execution_count"] = runs
        if printed:
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": printed}]
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _checkpoint(kind: str, source: str) -> bytes:
    if kind == "solution":
        return _weights(_source(HERE, {"base": "solution", "student_id": REFERENCE_ID}))
    if kind == "own":
        return _weights(source)
    if kind == "other":
        return _foreign_weights()
    raise ValueError(f"checkpoint = {kind!r}: choose 'solution', 'own' or 'other'.")


@functools.cache
def _foreign_weights() -> bytes:
    """Weights that fit no ViT."""
    import torch

    buffer = io.BytesIO()
    torch.save({"layer1.weight": torch.zeros(8, 1, 3, 3), "layer1.bias": torch.zeros(8)}, buffer)
    return buffer.getvalue()


@functools.cache
def _weights(source: str) -> bytes:
    """The weights of the source's model as it is initialized, as `torch.save` writes them."""
    import torch

    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in source.split("\n")]
    tree = ast.parse("\n".join(lines))
    kept = [kept for node in tree.body if (kept := _part_of_the_model(node)) is not None]
    classes = [node.name for node in kept if isinstance(node, ast.ClassDef)]
    built = [
        call
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "model"
        for call in ast.walk(node.value)
        if isinstance(call, ast.Call) and ast.unparse(call.func) in classes
    ]
    if not built:
        raise ValueError("The source has no line 'model = ViT(...)'.")
    names: dict[str, Any] = {"__name__": "submission"}
    exec(compile(ast.Module(kept, []), "<submission>", "exec"), names)  # noqa: S102 - our own examples
    buffer = io.BytesIO()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = eval(compile(ast.Expression(built[0]), "<submission>", "eval"), names)  # noqa: S307 - as above
        torch.save(model.state_dict(), buffer)
    return buffer.getvalue()


def _part_of_the_model(node: ast.stmt) -> ast.stmt | None:
    """The statement, if a model may need it: a class, a constant, an import (without slow libraries)."""
    if isinstance(node, ast.Import):
        node.names = [alias for alias in node.names if alias.name.split(".")[0] in _MODEL_LIBRARIES]
        return node if node.names else None
    if isinstance(node, ast.ImportFrom):
        return node if (node.module or "").split(".")[0] in _MODEL_LIBRARIES else None
    if isinstance(node, ast.Assign):
        return node if isinstance(node.value, ast.Constant) else None
    return node if isinstance(node, ast.ClassDef) else None


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("Say where to: python tests/submissions/build.py DESTINATION [ASSIGNMENT]")
    if sys.argv[2:] in ([], [ASSIGNMENT]):
        made = build_class(Path(sys.argv[1]))
    else:
        sys.path.insert(0, str(HERE.parents[1]))
        from tests.submissions.example_class import build_example_class

        made = build_example_class(Path(sys.argv[1]), sys.argv[2])
    print(f"{len(made)} example submissions are in {sys.argv[1]}.")
