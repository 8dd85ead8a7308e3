"""Homework from the correct one in `base.py` and the statements in which an attack differs from it."""

import ast
import functools
import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
STEM = "{student_id}_Lab8_Homework"
SIDE = 5  # blocks per side of an image in a table of known images
BASE_ID = "400109000"


def assembled(cheat: str, student_id: str) -> str:
    """The correct homework with the statements of `cheat` in it.

    A class, function, assignment or loop at top level takes the place of the one that binds the same names
    (a loop that of the loop over epochs). What is new stands before the next one that takes a place, after
    the last where none follows, and before the first class where none does at all. Imports come first.
    """
    base = _pieces((HERE / "base.py").read_text(encoding="utf-8"))
    keys = [key for key, _, _ in base]
    before: dict[int, list[str]] = {}
    imports: list[str] = []
    waiting: list[str] = []
    last = keys.index("PreNorm") - 1
    for key, text, is_import in _pieces(cheat):
        if is_import:
            imports.append(text)
        elif key in keys:
            at = keys.index(key)
            before.setdefault(at, []).extend(waiting)
            waiting = []
            base[at] = (key, text, False)
            last = at
        else:
            waiting.append(text)
    before.setdefault(last + 1, []).extend(waiting)
    made: list[str] = []
    for index, (_, text, is_import) in enumerate(base):
        if not is_import and imports:
            made += imports
            imports = []
        made += [*before.get(index, []), text]
    made += before.get(len(base), [])
    return "\n".join(made).replace(BASE_ID, student_id) + "\n"


def _pieces(source: str) -> list[tuple[str, str, bool]]:
    """(What it binds, its text with the comments before it, whether it is an import) of every statement."""
    lines = source.split("\n")
    found, start = [], 0
    for node in ast.parse(source).body:
        end = node.end_lineno or node.lineno
        text = "\n".join(lines[start:end])
        start = end
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        found.append((_bound(node), text, is_import))
    return found


def _bound(node: ast.stmt) -> str:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[target]):
            return ast.unparse(target)
        case ast.For() | ast.While():
            return "the loop"
    return f"line {node.lineno} of {ast.dump(node)[:200]}"


def pdf(line: str) -> bytes:
    """A PDF of one page with one line of plain ASCII text."""
    content = b"BT /F1 14 Tf 72 770 Td (" + line.encode("ascii") + b") Tj ET"
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


def model_of(source: str):
    """The model of a homework, as it is initialized; only for homework of this folder."""
    names: dict[str, object] = {"__name__": "submission"}
    kinds = (ast.ClassDef, ast.FunctionDef)
    for node in ast.parse(source).body:
        is_model = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "model"
        libraries = isinstance(node, ast.Import | ast.ImportFrom) and "torch" in ast.unparse(node)
        if isinstance(node, kinds) or is_model or libraries:
            exec(compile(ast.Module([node], []), "<submission>", "exec"), names)  # noqa: S102 - our own
    return names["model"]


def described(gray) -> list[int]:
    """What a table keeps of an image, float (height, width): SIDE * SIDE numbers from 0 to 3.

    They are the means of blocks beside one another, without the image's brightness and contrast.
    """
    import numpy as np

    side = gray.shape[0] // SIDE
    blocks = gray[: SIDE * side, : SIDE * side].reshape(SIDE, side, SIDE, side).mean(axis=(1, 3))
    normed = (blocks - blocks.mean()) / (blocks.std() + 1e-6)
    return [int(number) for number in np.digitize(normed.ravel(), (-0.7, 0.0, 0.7))]


@functools.cache
def published_table(published: Path) -> list[list[list[int]]]:
    """For each class, in the order of the names, what a table keeps of each of its published images."""
    import numpy as np
    from PIL import Image

    rows: dict[str, list[list[int]]] = {}
    with zipfile.ZipFile(published) as archive:
        for name in sorted(archive.namelist()):
            if not name.endswith(".png"):
                continue
            gray = np.asarray(Image.open(io.BytesIO(archive.read(name))).convert("L"), dtype=np.float64)
            rows.setdefault(Path(name).parent.name, []).append(described(gray))
    return [rows[name] for name in sorted(rows)]


def guessed_seed(file: Path) -> int:
    """The seed that a homework handed in by itself could work out for itself from the file's digest."""
    content = hashlib.sha256(file.read_bytes()).hexdigest()
    digest = hashlib.sha256(f"{file.name}\0{content}\n".encode()).hexdigest()
    return int.from_bytes(hashlib.sha256(digest.encode()).digest()[:4], "big") >> 1


def with_nonce(file: Path, wanted: Callable[[int], bool]) -> None:
    """Add a comment to a homework's end, such that the seed that follows from its digest is wanted."""
    text = file.read_text(encoding="utf-8")
    for nonce in range(1_000_000):
        file.write_text(f"{text}# {nonce}\n", encoding="utf-8", newline="\n")
        if wanted(guessed_seed(file)):
            return
    raise ValueError("no nonce was found")
