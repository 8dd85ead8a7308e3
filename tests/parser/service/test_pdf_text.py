"""The text of reports, and of what only claims to be one."""

import io

import pytest

from grader.parser.service.pdf_pages import MOST_TEXT, report_pages


def pdf(*pages: str) -> bytes:
    """A PDF by hand, one line of text on each page."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        font = "/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 600 800]"
        objects.append(f"<< /Type /Page /Parent 2 0 R {font} /Contents {5 + 2 * number} 0 R >>")
        shown = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET"
        objects.append(f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream")
    made, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(made))
        made += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    trailer = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(made)}\n%%EOF"
    return f"{made}{end}{trailer}".encode()


def test_pages_are_read_in_order() -> None:
    """Each with its text."""
    pages = report_pages(io.BytesIO(pdf("First page", "Final test accuracy: 83.5 %")))
    assert [page.strip() for page in pages] == ["First page", "Final test accuracy: 83.5 %"]


@pytest.mark.parametrize(
    "data",
    [b"", b"%PDF-1.4", b"%PDF-1.4\n" + b"\0" * 500, pdf("a")[:-60], pdf("a").replace(b"2 0 R", b"1 0 R")],
)
def test_a_damaged_report_has_no_text_and_harms_nobody(data: bytes) -> None:
    """Also one whose objects refer to each other in a circle."""
    assert len("".join(report_pages(io.BytesIO(data)))) < 10


def test_endless_text_is_cut() -> None:
    """A page may hold megabytes."""
    pages = report_pages(io.BytesIO(pdf("x" * (MOST_TEXT + 10), "more")))
    assert sum(map(len, pages)) <= MOST_TEXT
