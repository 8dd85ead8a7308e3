"""The pages of a PDF: as text, and as pixels drawn by PDFium.

Nothing in the PDF is active: no form, no script, no link. A page that cannot be read has no text, and one
that cannot be drawn is reported as such. The other end decides what becomes of text and pixels.
"""

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from pypdf import PdfReader

from grader.domain.limits import MEGABYTE
from grader.domain.submission import Undrawn
from grader.intake.archive_pieces import CHUNK
from grader.parser.messages import LONGEST_SIDE, MOST_COUNTED, MOST_PAGE_TEXT, MOST_PAGES, Pixels
from grader.protocol.frames import Frame
from grader.sandbox.process_limits import address_space

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument


MOST_TEXT_PAGES = 60
MOST_TEXT = 400_000  # characters in all


def report_pages(file: BinaryIO) -> tuple[str, ...]:
    """The text of a PDF's pages; a page that cannot be read is empty, and so is a scanned one.

    Args:
        file: The PDF, seekable.
    """
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    pages: list[str] = []
    letters_left = MOST_TEXT
    try:
        reader = PdfReader(file, strict=False)
        if reader.is_encrypted:
            reader.decrypt("")
        for page in reader.pages[:MOST_TEXT_PAGES]:
            try:
                text = page.extract_text()[:letters_left]
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - whatever is wrong with one page, the others may be fine
                text = ""
            letters_left -= len(text)
            pages.append(text)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a damaged file has no pages
        return tuple(pages)
    return tuple(pages)


# --- pdf pages -------------------------------------------------------------------------------------------


CPU_SECONDS = 15
MEMORY_MB = 800
_LARGEST_SCALE = 4.0  # pixels per point: a stamp is not drawn as large as a sheet


@dataclass(frozen=True)
class Opened:
    """A PDF that is open, or why it is not."""

    document: "PdfDocument | None"
    pages: int
    undrawn: Undrawn | None = None


def page_answers(first: int, file: BinaryIO) -> Iterator[Frame]:
    """The answers with the pages of a PDF, from the first one wanted (1-based) on."""
    _lower_limits()
    opened = opened_pdf(file)
    if opened.document is None:
        yield Frame({"undrawn": str(opened.undrawn)})
        return
    yield Frame({"pages": min(opened.pages, MOST_COUNTED)})
    for number, pixels in enumerate(drawn_pages(opened.document, first), start=first):
        yield Frame({"page": number}, {} if pixels is None else {"pixels": pixels})
        # after the picture, so that a page whose text ends the parser is drawn all the same
        yield Frame({"text": _text(opened.document, number), "of": number})


def _lower_limits() -> None:
    import resource  # only where submissions are graded, on Linux

    used_seconds = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    for kind, limit in (
        (resource.RLIMIT_CPU, math.ceil(used_seconds) + CPU_SECONDS),
        (resource.RLIMIT_AS, address_space() + MEMORY_MB * MEGABYTE),
    ):
        _, hard = resource.getrlimit(kind)
        if hard == resource.RLIM_INFINITY or limit < hard:
            resource.setrlimit(kind, (limit, limit))


def opened_pdf(file: BinaryIO) -> Opened:
    """A PDF, which is first read to its end; no password is tried except the empty one."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(_content(file))
    except pypdfium2.PdfiumError as error:
        protected = error.err_code in (pypdfium2.raw.FPDF_ERR_PASSWORD, pypdfium2.raw.FPDF_ERR_SECURITY)
        return Opened(None, 0, Undrawn.PROTECTED if protected else Undrawn.DAMAGED)
    # no `init_forms()`: without it a document's scripts and actions have nothing to act on
    count = len(document)
    return Opened(document, count) if count > 0 else Opened(None, 0, Undrawn.DAMAGED)


def drawn_pages(document: "PdfDocument", first: int, last: int = MOST_PAGES) -> Iterator[Pixels | None]:
    """The pages from the first one wanted on, in order; None for one that cannot be drawn.

    Args:
        first: The first page that is drawn, 1-based.
        last: The last page that is drawn, 1-based.
    """
    for number in range(first, min(len(document), last) + 1):
        yield _drawn(document, number)


def warm() -> None:
    """Load what drawing the first page would load: PDFium, and the list of the machine's fonts."""
    import io

    opened = opened_pdf(io.BytesIO(_SAMPLE))
    assert opened.document is not None, "the sample is a PDF"
    with opened.document as document:
        assert [page is not None for page in drawn_pages(document, 1)] == [True]


def _drawn(document: "PdfDocument", number: int) -> Pixels | None:
    import pypdfium2

    try:
        page = _flat(document, number - 1)
        scale = _scale(*page.get_size())
        # annotations are drawn: on a tablet, they are what was written
        bitmap: Any = page.render(scale=scale, rev_byteorder=True, may_draw_forms=False) if scale else None
        if bitmap is None:
            return None
        # sides are rounded up
        return np.ascontiguousarray(bitmap.to_numpy()[:LONGEST_SIDE, :LONGEST_SIDE, :3])
    except (pypdfium2.PdfiumError, ValueError, OverflowError):
        return None


def _text(document: "PdfDocument", number: int) -> str:
    """The text of a page, as far as the PDF has it as text; empty for a scan."""
    import pypdfium2

    try:
        page = document[number - 1].get_textpage()
        count = min(page.count_chars(), MOST_PAGE_TEXT)
        text = page.get_text_range(0, count) if count > 0 else ""
    except (pypdfium2.PdfiumError, ValueError, OverflowError):
        return ""
    # a lone surrogate cannot be sent
    return text[:MOST_PAGE_TEXT].encode("utf-8", "replace").decode("utf-8")


def _flat(document: "PdfDocument", index: int) -> Any:
    """A page with the contents of form fields drawn on it: the fields are never active."""
    import pypdfium2.raw

    page = document[index]
    if document.get_formtype() == pypdfium2.raw.FORMTYPE_NONE:
        return page
    pypdfium2.raw.FPDFPage_Flatten(page, pypdfium2.raw.FLAT_NORMALDISPLAY)
    page.close()
    return document[index]


def _scale(width: float, height: float) -> float:
    """Pixels per point; 0 for a page that has no size."""
    longer = max(width, height)
    if not (math.isfinite(longer) and min(width, height) > 0):
        return 0.0
    return min(LONGEST_SIDE / longer, _LARGEST_SCALE)


def _content(file: BinaryIO) -> bytes:
    parts = []
    while part := file.read(CHUNK):
        parts.append(part)
    return b"".join(parts)


# a line in a font that is neither in the file nor one that every reader has
_SAMPLE = b"""%PDF-1.4
1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj
2 0 obj <</Type /Pages /Kids [3 0 R] /Count 1>> endobj
3 0 obj <</Type /Page /Parent 2 0 R /MediaBox [0 0 100 50] /Contents 4 0 R
  /Resources <</Font <</F <</Type /Font /Subtype /TrueType /BaseFont /Somefont>> >> >> >> endobj
4 0 obj <</Length 32>> stream
BT /F 12 Tf 10 20 Td (warm) Tj ET
endstream endobj
trailer <</Root 1 0 R>>
%%EOF"""
