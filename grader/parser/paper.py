"""The pages of a student's PDF as pictures: drawn in a parser, checked and compressed outside of it.

What the parser sends is pixels. What people look at is made of them here, by Pillow, so that no byte of the
PDF, and none that its parser chose, is in a picture's file.
"""

import contextlib
import hashlib
import io
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image

from grader.domain.answers import ANSWERS_FILE, Answers, DrawnPage, Undrawn
from grader.domain.errors import SubmissionError
from grader.domain.quoting import file_name_of
from grader.intake.archive import MEGABYTE
from grader.intake.pdf_pages import LONGEST, MOST_PAGES, Pixels, drawn_pages, opened_pdf
from grader.parser.opening import OpenedApart
from grader.protocol.frames import Frame, FrameLimit, write_frame
from grader.sandbox.limits import ProcessLimits, address_space

PAGES = "pages"  # what a parser is asked for
# the same as a parser of code may use, so that one spare is ready for both; of this it gives up what is more
# than drawing takes before it sees a byte of the PDF
LIMITS = ProcessLimits(memory_mb=1500, cpu_seconds=30, file_mb=1, scratch_mb=16)
CPU_SECONDS = 15
MEMORY_MB = 800
SECONDS = 90  # of wall-clock time, for all pages
MOST_PARSERS = 5  # one that ends badly costs the page that it was at, not those after it
LARGEST_KEPT = 30 * MEGABYTE
MOST_BYTES = 24 * MEGABYTE  # of all pictures of a PDF
FROM_PARSER = FrameLimit(document=2_000, arrays=3 * LONGEST * LONGEST, values=100)
MOST_COUNTED = 1_000_000  # pages of a PDF

# letters stay sharp, and a page of text takes some 120 kB
_QUALITY, _EFFORT = 75, 2
_LARGE, _LESS = 500_000, 40  # a picture that is larger is made again with less quality: noise, mostly


@dataclass
class _Pages:
    """The pages while they are drawn.

    Attributes:
        next: The number of the page that is drawn next.
        count: How many there are; None before that was told.
    """

    images: dict[str, bytes] = field(default_factory=dict)
    drawn: list[DrawnPage] = field(default_factory=list)
    next: int = 1
    count: int | None = None
    undrawn: Undrawn | None = None

    @property
    def over(self) -> bool:
        """Whether nothing is left to be drawn."""
        return self.undrawn is not None or (
            self.count is not None and self.next > min(self.count, MOST_PAGES)
        )

    def add(self, pixels: Pixels) -> None:
        """Keep the next page."""
        picture = _compressed(pixels)
        if sum(map(len, self.images.values())) + len(picture) > MOST_BYTES:
            self.undrawn = Undrawn.FULL
            return
        page = DrawnPage(self.next, pixels.shape[1], pixels.shape[0])
        self.images[page.image] = picture
        self.drawn.append(page)
        self.next += 1


def kept_answers(opened: OpenedApart, path: Path) -> tuple[Answers, Mapping[str, bytes]]:
    """A PDF that was handed in as people get to see it, and the files that belong to that.

    Whatever is wrong with it is told in `Answers`: it costs nothing and stops nothing.

    Args:
        opened: Where its pages are drawn.
        path: The PDF.
    """
    size, name = path.stat().st_size, file_name_of(path.name)
    with path.open("rb") as file:
        answers = Answers(name, hashlib.file_digest(file, "sha256").hexdigest(), size)
    pages = _drawn(opened, path)
    answers = replace(
        answers,
        pages=pages.count,
        tried=pages.next - 1,
        drawn=tuple(pages.drawn),
        undrawn=pages.undrawn,
    )
    if size > LARGEST_KEPT:
        return answers, pages.images
    return replace(answers, kept=True), {ANSWERS_FILE: path.read_bytes(), **pages.images}


def _drawn(opened: OpenedApart, path: Path) -> _Pages:
    pages = _Pages()
    until = time.monotonic() + SECONDS
    for _ in range(MOST_PARSERS):
        first, seconds = pages.next, math.ceil(until - time.monotonic())
        if seconds <= 0:
            break
        try:
            _draw(opened, path, pages, seconds)
        except SubmissionError:
            if pages.count is None:
                break
            if pages.next == first:
                pages.next += 1  # it ends every parser that begins with it
        if pages.over:
            return pages
    pages.undrawn = Undrawn.ENDED
    return pages


def _draw(opened: OpenedApart, path: Path, pages: _Pages, seconds: int) -> None:
    """Draw the pages from the next one on, as far as one parser comes.

    Raises:
        SubmissionError: It ended badly; the pages before are there.
    """
    job = {"open": PAGES, "first": pages.next}
    answers = opened.answers(path, job, seconds, FROM_PARSER, limits=LIMITS)
    with contextlib.closing(answers):
        for frame in answers:
            match frame.document:
                case {"pages": count} if _is_count(count) and pages.count in (None, count):
                    pages.count = count
                case {"undrawn": str(word)} if pages.count is None and word in set(Undrawn):
                    pages.undrawn = Undrawn(word)
                case {"page": int(number)} if number == pages.next and pages.count and not pages.over:
                    if (pixels := _pixels(frame)) is not None:
                        pages.add(pixels)
                    else:
                        pages.next += 1
                case _:
                    raise SubmissionError(f"{path.name}: drawing it gave no sense.")
            if pages.over:
                return


def _is_count(value: object) -> bool:
    return type(value) is int and 0 < value <= MOST_COUNTED  # a bool is an int, too


def _pixels(frame: Frame) -> Pixels | None:
    """The pixels of a page as a parser tells them; None where it could not draw the page.

    Raises:
        SubmissionError: They are none.
    """
    pixels = frame.arrays.get("pixels")
    if pixels is None:
        return None
    if (
        pixels.dtype == np.uint8
        and pixels.ndim == 3
        and pixels.shape[2] == 3
        and 0 < pixels.shape[0] <= LONGEST
        and 0 < pixels.shape[1] <= LONGEST
    ):
        return pixels
    raise SubmissionError("A page's pixels make no sense.")


def _compressed(pixels: Pixels) -> bytes:
    """A page as WebP."""
    image = Image.fromarray(pixels)
    for quality in (_QUALITY, _LESS):
        made = io.BytesIO()
        image.save(made, "WEBP", quality=quality, method=_EFFORT)
        if made.tell() <= _LARGE:
            break
    return made.getvalue()


# --- in the parser ----------------------------------------------------------------------------------------


def serve_pages(job: dict[str, Any], file: BinaryIO, writer: BinaryIO) -> None:
    """Answer with the pages of a PDF, from the one on that a job names."""
    _give_up_what_is_not_needed()
    found = opened_pdf(file)
    if found.document is None:
        write_frame(writer, Frame({"undrawn": str(found.undrawn)}))
        return
    write_frame(writer, Frame({"pages": min(found.pages, MOST_COUNTED)}))
    for number, pixels in enumerate(drawn_pages(found.document, job["first"]), start=job["first"]):
        write_frame(writer, Frame({"page": number}, {} if pixels is None else {"pixels": pixels}))


def _give_up_what_is_not_needed() -> None:
    import resource  # only where submissions are graded, on Linux

    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    for kind, most in (
        (resource.RLIMIT_CPU, math.ceil(used) + CPU_SECONDS),
        (resource.RLIMIT_AS, address_space() + MEMORY_MB * MEGABYTE),
    ):
        _, hard = resource.getrlimit(kind)
        if hard == resource.RLIM_INFINITY or most < hard:
            resource.setrlimit(kind, (most, most))
