"""The pages of a student's PDF as pictures and text: drawn and read in a parser, checked and compressed here.

The parser sends pixels. What people look at is made from them here, by Pillow, so that no byte of the PDF,
and none that its parser chose, is in a picture's file.
"""

import contextlib
import hashlib
import io
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from PIL import Image

from grader.domain.errors import SubmissionError
from grader.domain.formatting import file_name_of
from grader.domain.limits import MEGABYTE
from grader.domain.submission import ANSWERS_FILE, ANSWERS_TEXT_FILE, Answers, DrawnPage, Undrawn
from grader.parser.client.parsed_files import ParserOpener
from grader.parser.messages import (
    LONGEST_SIDE,
    MOST_COUNTED,
    MOST_PAGE_TEXT,
    MOST_PAGES,
    PAGE,
    PAGE_LIMITS,
    FileRequest,
    Pixels,
)
from grader.protocol.frames import Frame

SECONDS = 90  # of wall-clock time, for all pages
MOST_PARSERS = 5  # one that ends badly costs the page that it was drawing, not those after it
LARGEST_KEPT = 30 * MEGABYTE
MOST_BYTES = 24 * MEGABYTE  # of all pictures of a PDF

# letters stay sharp, and a page of text takes some 120 kB
_QUALITY, _EFFORT = 75, 2
_LARGE, _LESS = 500_000, 40  # a larger picture, mostly noise, is made again with less quality


@dataclass
class _Pages:
    """The pages while they are drawn.

    Attributes:
        texts: Page -> its text.
        next: The number of the page that is drawn next.
        count: How many pages there are; None until the parser has said so.
    """

    images: dict[str, bytes] = field(default_factory=dict)
    drawn: list[DrawnPage] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)
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


def kept_answers(opener: ParserOpener, path: Path) -> tuple[Answers, Mapping[str, bytes]]:
    """A submitted PDF as people get to see it, and the files that belong to it.

    Whatever is wrong with it is recorded in `Answers`: it costs nothing and stops nothing.

    Args:
        opener: Opens the parsers in which its pages are drawn.
        path: The PDF.
    """
    size, name = path.stat().st_size, file_name_of(path.name)
    with path.open("rb") as file:
        answers = Answers(name, hashlib.file_digest(file, "sha256").hexdigest(), size)
    pages = _drawn(opener, path)
    answers = replace(
        answers,
        pages=pages.count,
        tried=pages.next - 1,
        drawn=tuple(pages.drawn),
        undrawn=pages.undrawn,
    )
    files = dict(pages.images)
    if any(pages.texts.values()):
        files[ANSWERS_TEXT_FILE] = json.dumps(pages.texts, ensure_ascii=False).encode("utf-8")
    if size > LARGEST_KEPT:
        return answers, files
    return replace(answers, kept=True), {ANSWERS_FILE: path.read_bytes(), **files}


def _drawn(opener: ParserOpener, path: Path) -> _Pages:
    pages = _Pages()
    until = time.monotonic() + SECONDS
    for _ in range(MOST_PARSERS):
        begun_at, seconds = pages.next, math.ceil(until - time.monotonic())
        if seconds <= 0:
            break
        try:
            _draw(opener, path, pages, seconds)
        except SubmissionError:
            if pages.count is None:
                break
            if pages.next == begun_at:
                pages.next += 1  # this page ends every parser that begins with it
        if pages.over:
            return pages
    pages.undrawn = Undrawn.ENDED
    return pages


def _draw(opener: ParserOpener, path: Path, pages: _Pages, seconds: int) -> None:
    """Draw the pages from the next one on, as far as one parser gets.

    Raises:
        SubmissionError: It ended badly; the earlier pages are kept.
    """
    request = {"open": FileRequest.PAGES, "first": pages.next}
    answers = opener.answers(path, request, seconds, PAGE, limits=PAGE_LIMITS)
    came = 0  # the page that came last
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
                    came = number
                case {"text": str(text), "of": int(number)} if number == came and came not in pages.texts:
                    pages.texts[number] = text.encode("utf-8", "replace").decode("utf-8")[:MOST_PAGE_TEXT]
                case _:
                    raise SubmissionError(f"{path.name}: drawing it gave no usable answer.")
            if pages.undrawn is not None or (pages.over and came in pages.texts):
                return


def _is_count(value: object) -> bool:
    return type(value) is int and 0 < value <= MOST_COUNTED  # a bool is an int, too


def _pixels(frame: Frame) -> Pixels | None:
    """The pixels of a page as a parser sent them; None if it could not draw the page.

    Raises:
        SubmissionError: They are not the pixels of a page.
    """
    pixels = frame.arrays.get("pixels")
    if pixels is None:
        return None
    if (
        pixels.dtype == np.uint8
        and pixels.ndim == 3
        and pixels.shape[2] == 3
        and 0 < pixels.shape[0] <= LONGEST_SIDE
        and 0 < pixels.shape[1] <= LONGEST_SIDE
    ):
        return pixels
    raise SubmissionError("A page's pixels make no sense.")


def _compressed(pixels: Pixels) -> bytes:
    """A page as WebP."""
    image = Image.fromarray(pixels)
    for quality in (_QUALITY, _LESS):
        file = io.BytesIO()
        image.save(file, "WEBP", quality=quality, method=_EFFORT)
        if file.tell() <= _LARGE:
            break
    return file.getvalue()
