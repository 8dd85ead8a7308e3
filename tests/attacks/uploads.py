"""Attacks by files: what is handed in, and what must come of it."""

import io
import json
import pickle
import stat
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pdfs

STEM = "{student_id}_Lab8_Homework"
HARMLESS = b"x = 1\n"
READ_APART = "files are read in a locked-down process"
DRAWN_APART = "PDFs are read and drawn in locked-down processes, in which nothing of theirs runs"


@dataclass(frozen=True)
class Upload:
    """One attack by files.

    Attributes:
        number, name, tries, stopped_by, outcome: As of an attack in code.
        files: What is handed in, by name (`$` stands for the prescribed one); made when it is needed.
        says: A regular expression for what the student's report or result must say.
        checkpoint: What is handed in is a checkpoint that is tried with the solution's model.
        page: A regular expression for what the page with the PDF's pages must say; empty: there is none.
    """

    number: int
    name: str
    tries: str
    stopped_by: str
    outcome: str
    says: str
    files: Callable[[], Mapping[str, bytes]]
    checkpoint: bool = False
    page: str = ""

    @property
    def student_id(self) -> str:
        """Who hands it in."""
        return f"4002{self.number:05}"


def zipped(*entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip with entries that may have any name, twice too."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for entry, content in entries:
            archive.writestr(entry, content)
    return stream.getvalue()


def link(name: str) -> zipfile.ZipInfo:
    """The entry of a symbolic link."""
    entry = zipfile.ZipInfo(name)
    entry.create_system = 3
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


def tar_with_links() -> bytes:
    """A tar with a path that leads outside, a link and a device."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, kind in (
            ("../../evil.py", tarfile.REGTYPE),
            ("l", tarfile.SYMTYPE),
            ("d", tarfile.BLKTYPE),
        ):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            archive.addfile(entry, io.BytesIO())
    return stream.getvalue()


def bomb() -> bytes:
    """A zip of a megabyte that unpacks to a gigabyte."""
    return zipped(*((f"{number}.bin", bytes(100_000_000)) for number in range(10)))


def nested(depth: int = 30) -> bytes:
    """Zips within zips."""
    content = HARMLESS
    for _ in range(depth):
        content = zipped(("inner.zip", content))
    return content


def lying_sizes() -> bytes:
    """A zip whose directory says that a large entry is small."""
    raw = bytearray(zipped((f"{STEM}.py", bytes(50_000_000))))
    struct.pack_into("<L", raw, raw.index(b"PK\x01\x02") + 24, 10)
    return bytes(raw)


def notebook(*sources: str, outputs: list[Any] | None = None) -> bytes:
    """A notebook of code cells."""
    cells = [
        {
            "cell_type": "code",
            "metadata": {},
            "source": source,
            "outputs": outputs or [],
            "execution_count": 1,
        }
        for source in sources
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


SCRIPT = [{"output_type": "display_data", "metadata": {}, "data": {"text/html": "<script>alert(1)</script>"}}]


class Evil:
    """What runs a command when it is unpickled."""

    def __reduce__(self) -> Any:
        import os

        return os.system, ("echo planted-0 > /tmp/unpickled",)


def checkpoint(value: Any) -> bytes:
    """A file as torch.save writes it."""
    import torch

    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


def endless_tensor() -> bytes:
    """A checkpoint of two kilobytes with a tensor of terabytes: all its elements are one number."""
    import torch

    return checkpoint({"weight": torch.zeros(1).as_strided((2**40,), (0,))})


def deflated() -> bytes:
    """A checkpoint whose parts are compressed: small as a file, large in memory."""
    return zipped(("a/data.pkl", pickle.dumps({})), ("a/data/0", bytes(300_000_000)), ("a/version", b"3"))


def deep_pickle() -> bytes:
    """A checkpoint of lists within lists."""
    content = b"\x80\x02" + b"(" * 200_000 + b"l" * 200_000 + b"."
    return zipped(("a/data.pkl", content), ("a/version", b"3\n"), method=zipfile.ZIP_STORED)


def overlong_png() -> bytes:
    """A picture that says that it is a PDF behind its first bytes."""
    return b"%PDF-1.7\n" + zlib.compress(bytes(10_000_000)) + b"/OpenAction << /JS (app.alert(1)) >>"


def with_code(content: bytes) -> Callable[[], Mapping[str, bytes]]:
    return lambda: {f"{STEM}.py": content}


def with_pdf(made: Callable[[], bytes]) -> Callable[[], Mapping[str, bytes]]:
    return lambda: {f"{STEM}.py": HARMLESS, f"{STEM}.pdf": made()}


def with_archive(made: Callable[[], bytes]) -> Callable[[], Mapping[str, bytes]]:
    return lambda: {f"{STEM}.zip": made()}


def with_checkpoint(made: Callable[[], bytes]) -> Callable[[], Mapping[str, bytes]]:
    return lambda: {f"{STEM}.pth": made()}


SLIPS = (
    "../../slipped.py",
    "/tmp/slipped.py",
    "a/../../../slipped.py",
    "..\\..\\slipped.py",
    "C:\\slipped.py",
)
CONFIGURATION = ("conftest.py", "sitecustomize.py", "usercustomize.py", "pytest.ini", "setup.py", "torch.py")

UPLOADS = (
    Upload(
        31,
        "shadow_module",
        "Hands in a torch.py, numpy.py and random.py to be imported in the place of the libraries",
        "files named like libraries are not taken, and nothing is imported from a submission's folder",
        "refused",
        r"torch\.py: .*library",
        lambda: {f"{STEM}.py": HARMLESS, **dict.fromkeys(("torch.py", "numpy.py", "random.py"), b"exit()")},
    ),
    Upload(
        59,
        "pickled_command",
        "Hands in a checkpoint that runs a command when it is unpickled",
        "only weights are loaded, in a worker",
        "refused",
        "whole pickled object",
        with_checkpoint(lambda: checkpoint(Evil())),
        checkpoint=True,
    ),
    Upload(
        60,
        "endless_tensor",
        "Hands in a checkpoint of two kilobytes that claims terabytes by a stride of zero",
        "what tensors claim is compared with what they hold, in a worker",
        "refused",
        "claim more memory",
        with_checkpoint(endless_tensor),
        checkpoint=True,
    ),
    Upload(
        61,
        "zip_slip",
        "Hands in a zip whose names lead outside of its folder",
        "names are judged before anything is written",
        "refused",
        "points outside",
        with_archive(lambda: zipped(*((name, HARMLESS) for name in SLIPS), (f"{STEM}.py", HARMLESS))),
    ),
    Upload(
        62,
        "zipped_link",
        "Hands in a zip with a link to a secret file",
        "links are not unpacked",
        "refused",
        "is a link",
        with_archive(lambda: zipped((link("notes.txt"), b"/etc/passwd"), (f"{STEM}.py", HARMLESS))),
    ),
    Upload(
        63,
        "tar",
        "Hands in a tar with paths that lead outside, links and devices",
        "only zips are unpacked",
        "refused",
        r"\.tar: ",
        lambda: {f"{STEM}.tar": tar_with_links()},
    ),
    Upload(
        64,
        "archive_bomb",
        "Hands in a zip of a megabyte that unpacks to a gigabyte",
        "sizes and ratios are bounded",
        "refused",
        "would unpack to|times larger|at most",
        with_archive(bomb),
    ),
    Upload(
        65,
        "shell_lines",
        "Hands in a notebook with shell lines, magics and scripts in its outputs",
        "cells are read as text: no kernel runs, outputs are not looked at",
        "nothing happens",
        "%%bash|shell",
        lambda: {
            f"{STEM}.ipynb": notebook(
                "!touch /tmp/slipped.py",
                "%%bash\ntouch /tmp/slipped.py",
                "%run evil.py",
                "x = 1",
                outputs=SCRIPT,
            )
        },
    ),
    Upload(
        66,
        "deep_source",
        "Hands in a source of a hundred thousand nested parentheses",
        READ_APART,
        "refused",
        "not correct Python|nested|failed",
        with_code(b"x = " + b"(" * 100_000 + b")" * 100_000),
    ),
    Upload(
        101,
        "compressed_weights",
        "Hands in a checkpoint whose parts are compressed to a thousandth",
        "checkpoints may hold stored parts only",
        "refused",
        "compressed",
        with_checkpoint(deflated),
    ),
    Upload(
        102,
        "deep_pickle",
        "Hands in a checkpoint of two hundred thousand nested lists",
        "the worker alone dies",
        "refused",
        "cannot be read|failed|no state_dict",
        with_checkpoint(deep_pickle),
        checkpoint=True,
    ),
    Upload(
        103,
        "configuration",
        "Hands in files that configure Python or pytest",
        "files named like configuration are not taken",
        "refused",
        r"conftest\.py: .*configuration",
        lambda: {f"{STEM}.py": HARMLESS, **dict.fromkeys(CONFIGURATION, b"import os; os._exit(0)")},
    ),
    Upload(
        104,
        "deep_notebook",
        "Hands in a notebook of JSON nested a hundred thousand times",
        READ_APART,
        "refused",
        "nested|not a notebook|failed|cannot be read",
        lambda: {f"{STEM}.ipynb": b"[" * 100_000 + b"]" * 100_000},
    ),
    Upload(
        105,
        "null_bytes",
        "Hands in a source with NUL bytes, lone surrogates and half of an encoding",
        READ_APART,
        "refused",
        r"Homework\.py: ",
        with_code(b"x = 1\0\n\xed\xa0\x80\xff\xfe\x00"),
    ),
    Upload(
        106,
        "same_names",
        "Hands in a zip that holds one name several times, in several spellings",
        "the first of equal names counts",
        "refused",
        "twice",
        with_archive(
            lambda: zipped(*((name, HARMLESS) for name in (f"{STEM}.py", f"{STEM}.py", f"{STEM}.PY")))
        ),
    ),
    Upload(
        107,
        "nested_archives",
        "Hands in thirty zips within each other",
        "zips within zips are unpacked once, within one bound",
        "refused",
        r"zip",
        with_archive(nested),
    ),
    Upload(
        108,
        "lying_sizes",
        "Hands in a zip whose directory lies on sizes",
        "what comes out is counted",
        "refused",
        "damaged|larger|cannot|says",
        with_archive(lying_sizes),
    ),
    Upload(
        109,
        "markup_in_names",
        "Hands in files with markup, terminal codes and formulas in their names",
        "names are escaped where they are shown",
        "refused",
        "img src",
        lambda: {f"{STEM}.py": HARMLESS, "<img src=x onerror=alert(1)>.txt": b"x", "=cmd|'x'!A1.csv": b"x"},
    ),
    Upload(
        110,
        "active_report",
        "Hands in a PDF that is none, with scripts and a compressed bomb",
        DRAWN_APART,
        "nothing happens",
        r"Homework\.py|checkpoint",
        lambda: {f"{STEM}.py": HARMLESS, f"{STEM}.pdf": overlong_png()},
        page="damaged",
    ),
    *(
        Upload(
            number,
            name,
            tries,
            stopped_by,
            "nothing happens",
            r"Homework\.py|checkpoint",
            with_pdf(made),
            page=page,
        )
        for number, name, tries, stopped_by, made, page in (
            (
                190,
                "pdf_scripts",
                "Hands in a PDF that runs scripts when it is opened, shown, filled in or printed",
                "nothing can run in the process that draws it: no JavaScript, no forms",
                pdfs.script,
                'alt="Page 1 of 1"',
            ),
            (
                191,
                "pdf_launch",
                "Hands in a PDF that starts a shell, fetches a page and shows a file of the machine",
                "no action is followed, and the process that draws it may start and fetch nothing",
                pdfs.launch,
                'alt="Page 1 of 1"',
            ),
            (
                192,
                "pdf_huge_page",
                "Hands in a PDF with a page as large as a country",
                "1,200 pixels on the longer side",
                pdfs.huge_page,
                'alt="Page 1 of 1" width="1200" height="800"',
            ),
            (
                193,
                "pdf_tree_loop",
                "Hands in a PDF whose pages are within themselves",
                DRAWN_APART,
                pdfs.tree_loop,
                "could not be drawn",
            ),
            (
                194,
                "pdf_bomb",
                "Hands in a PDF of some kilobytes with a page that unpacks to a gigabyte",
                "memory and processor time of the process that draws it; the page is not shown",
                pdfs.bomb,
                "Page 1 could not be drawn",
            ),
            (
                195,
                "pdf_laughs",
                "Hands in a PDF with drawings that each draw the next ten times, between two honest pages",
                "memory and processor time of the process that draws it; the others are shown",
                pdfs.laughs,
                "Page 2 could not be drawn",
            ),
            (
                196,
                "pdf_picture_bomb",
                "Hands in a PDF with a picture of 3,600 million pixels",
                DRAWN_APART,
                pdfs.picture_bomb,
                'alt="Page 1 of 1"',
            ),
            (
                197,
                "pdf_many_pages",
                "Hands in a PDF of 100,000 pages",
                "40 pages are drawn",
                pdfs.many_pages,
                "100000.pages; the first 40 are shown",
            ),
            (
                198,
                "pdf_embedded_file",
                "Hands in a PDF with a program in it",
                "no file is taken out of it",
                pdfs.embedded_file,
                'alt="Page 1 of 1"',
            ),
            (
                199,
                "pdf_truncated",
                "Hands in half of a PDF, with nested arrays by the hundred thousand",
                DRAWN_APART,
                lambda: pdfs.truncated(pdfs.deep_arrays()),
                "damaged|could not be drawn",
            ),
        )
    ),
)
