"""The text of a report, page by page."""

import logging
from typing import BinaryIO

from pypdf import PdfReader

MOST_PAGES = 60
MOST_TEXT = 400_000  # characters in all


def report_pages(file: BinaryIO) -> tuple[str, ...]:
    """The text of a PDF's pages; a page that cannot be read is empty, and so is a scanned one.

    Args:
        file: The PDF, seekable.
    """
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    pages: list[str] = []
    left = MOST_TEXT
    try:
        reader = PdfReader(file, strict=False)
        if reader.is_encrypted:
            reader.decrypt("")
        for page in reader.pages[:MOST_PAGES]:
            try:
                text = page.extract_text()[:left]
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - whatever is wrong with a page, the others may do
                text = ""
            left -= len(text)
            pages.append(text)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a damaged file has no pages
        return tuple(pages)
    return tuple(pages)
