"""Pages of PDFs as pixels: what stands on them is there, and nothing in them acts."""

import io

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from grader.domain.submission import Undrawn
from grader.parser.messages import LONGEST_SIDE
from grader.parser.service import pdf_pages
from grader.parser.service.pdf_pages import drawn_pages, opened_pdf

RED, WHITE = [255, 0, 0], [255, 255, 255]


def drawn(data: bytes, first: int = 1) -> list:
    """The pages of a PDF."""
    opened = opened_pdf(io.BytesIO(data))
    assert opened.document is not None and opened.undrawn is None
    return list(drawn_pages(opened.document, first))


def ink(page) -> int:
    """How many pixels are not white."""
    return int((page != WHITE).any(-1).sum())


def test_a_page_is_as_large_as_is_asked_for_and_has_its_shape(pdfs):
    [page] = drawn(pdfs.pdf(pdfs.text("hello")))
    assert page.shape == (1200, 900, 3) and page.dtype == np.uint8 and page.flags.c_contiguous
    assert 500 < ink(page) < 20_000


@pytest.mark.parametrize(
    ("box", "shape"),
    [
        ("[0 0 8000 6000]", (900, 1200)),
        ("[0 0 30 60]", (240, 120)),  # a stamp is not blown up
        ("[0 0 3 1000000]", (1200, 1)),
        ("[0 0 3000000000 2000000000]", (800, 1200)),
    ],
)
def test_no_page_is_larger(pdfs, box, shape):
    [page] = drawn(pdfs.pdf(pdfs.text("x"), box=box))
    assert page.shape[:2] == shape and max(page.shape) <= LONGEST_SIDE


def test_pages_come_from_the_one_on_that_is_asked_for(pdfs):
    data = pdfs.pdf(*(f"1 0 0 rg 0 0 {100 * number} 100 re f".encode() for number in range(1, 6)))
    widths = [int((page == RED).all(-1).any(0).sum()) for page in drawn(data, first=3)]
    assert widths == [450, 600, 750]


def test_no_more_than_forty_pages_are_drawn(pdfs):
    assert len(drawn(pdfs.many_pages(100))) == 40


@pytest.mark.parametrize(
    "name", ["Helvetica", "Times-Roman", "Courier", "Symbol", "ArialMT", "Calibri", "Nowhere"]
)
def test_letters_of_fonts_that_are_not_in_the_file_are_drawn(pdfs, name):
    font = f"<< /Type /Font /Subtype /TrueType /BaseFont /{name} /Encoding /WinAnsiEncoding >>"
    [page] = drawn(pdfs.pdf(pdfs.text("hello")).replace(pdfs.FONT.encode(), font.encode()))
    assert ink(page) > 500


def test_persian_letters_of_fonts_in_the_file_are_drawn():
    pages = []
    for text in ("دقت مدل", ""):
        made = io.BytesIO()
        with matplotlib.rc_context({"pdf.fonttype": 42}):
            figure = Figure(figsize=(4, 2))
            figure.text(0.1, 0.5, text, fontsize=30)
            figure.savefig(made, format="pdf")
        pages += drawn(made.getvalue())
    assert ink(pages[0]) > 5_000 and ink(pages[1]) == 0


def filled_form(pdfs) -> bytes:
    """A form with a red field at the top, and a red note below it."""
    red = pdfs.stream(b"1 0 0 rg 0 0 100 30 re f", "/Type /XObject /Subtype /Form /BBox [0 0 100 30]")
    return pdfs.pdf(
        b"",
        catalog="/AcroForm << /Fields [4 0 R] >>",
        page="/Annots [4 0 R 5 0 R]",
        more=[
            "<< /Type /Annot /Subtype /Widget /FT /Tx /F 4 /Rect [50 700 150 730] /AP << /N 6 0 R >> >>",
            "<< /Type /Annot /Subtype /FreeText /F 4 /Rect [50 100 150 130] /AP << /N 6 0 R >> >>",
            red,
        ],
    )


def test_what_was_written_into_fields_and_notes_is_drawn(pdfs):
    """Students answer in a form's fields, or with a pen on a tablet."""
    [page] = drawn(filled_form(pdfs))
    rows = np.flatnonzero((page == RED).all(-1).any(1))
    assert any(rows < 200) and any(rows > 1000)


def test_nothing_of_a_document_can_act(pdfs):
    """No form environment is made, which alone could act, and PDFium has neither JavaScript nor XFA."""
    import pypdfium2

    assert not {"V8", "XFA"} & set(pypdfium2.PDFIUM_INFO.flags)
    for data in (pdfs.script(), pdfs.launch(), filled_form(pdfs)):
        opened = opened_pdf(io.BytesIO(data))
        assert opened.document is not None
        assert [page is not None for page in drawn_pages(opened.document, 1)] == [True]
        assert opened.document.formenv is None


def test_a_password_is_told_and_an_empty_one_needs_no_asking(pdfs):
    data = pdfs.pdf(pdfs.text("hello"))
    assert opened_pdf(io.BytesIO(pdfs.protected(data, "secret"))) == pdf_pages.Opened(
        None, 0, Undrawn.PROTECTED
    )
    [page] = drawn(pdfs.protected(data, ""))
    assert ink(page) > 500


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7\n", b"PK\x03\x04", b"%PDF-1.4\n%%EOF" * 1000])
def test_what_is_no_pdf_is_damaged(data):
    assert opened_pdf(io.BytesIO(data)).undrawn is Undrawn.DAMAGED


def test_a_page_that_is_none_does_not_end_the_others(pdfs):
    data = pdfs.pdf(pdfs.text("first"), pdfs.text("second"), pdfs.text("third"))
    first, second, third = drawn(data.replace(b"4 0 R 6 0 R 8 0 R", b"4 0 R 3 0 R 8 0 R"))
    assert second is None or ink(second) == 0, "by its version"
    assert ink(first) > 500 and ink(third) > 500
