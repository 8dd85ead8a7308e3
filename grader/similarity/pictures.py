"""The pictures in a notebook's outputs and in a report, known by their pixels."""

import base64
import binascii
import hashlib
import io
import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
from PIL import Image
from pypdf import PdfReader

from grader.analysis.notebook import cell_names
from grader.similarity.compared_work import MOST_FIGURES, PREVIEW, ComparedPicture

MOST_PAGES = 60
MOST_PIXELS = 16_000_000
LEAST_SIDE = 48  # pixels: logos and formulas are smaller
_KINDS = ("image/png", "image/jpeg", "png", "jpeg")  # the last two in formats of notebooks before 4


def warm() -> None:
    """Load what reading the first picture would load."""
    Image.init()


def notebook_figures(data: bytes) -> Iterator[ComparedPicture]:
    """The pictures in a notebook's outputs; a file that is not a notebook has none.

    Call it where a hostile file can do no harm.
    """
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return
    cells = _cells(content)
    for cell_name, cell in zip(cell_names(cells), cells, strict=True):
        for picture in _pictures(cell):
            figure = _figure(picture, cell_name)
            if figure is not None:
                yield figure


def report_figures(file: BinaryIO) -> Iterator[ComparedPicture]:
    """The pictures on a PDF's pages; what cannot be read is left out.

    Call it where a hostile file can do no harm.
    """
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(file, strict=False)
        if reader.is_encrypted:
            reader.decrypt("")
        pages = list(reader.pages[:MOST_PAGES])
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a damaged file has no pages
        return
    for number, page in enumerate(pages, start=1):
        try:
            names = list(page.images.keys())[:MOST_FIGURES]
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - whatever is wrong with one page, the others may be fine
            continue
        for name in names:
            try:
                figure = _figure(page.images[name].data, f"report, page {number}")
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - as above, with a picture
                continue
            if figure is not None:
                yield figure


def _cells(content: Any) -> list[Any]:
    """All cells of a notebook of any format."""
    if not isinstance(content, dict):
        return []
    sheets = content.get("worksheets") if isinstance(content.get("worksheets"), list) else [content]
    return [
        cell
        for sheet in sheets or ()
        if isinstance(sheet, dict) and isinstance(sheet.get("cells"), list)
        for cell in sheet["cells"]
    ]


def _pictures(cell: Any) -> Iterator[bytes]:
    outputs = cell.get("outputs") if isinstance(cell, dict) else None
    for output in outputs if isinstance(outputs, list) else ():
        if not isinstance(output, dict):
            continue
        by_kind = output.get("data") if isinstance(output.get("data"), dict) else output
        for kind in _KINDS:
            value = by_kind.get(kind) if isinstance(by_kind, dict) else None
            text = (
                "".join(part for part in value if isinstance(part, str)) if isinstance(value, list) else value
            )
            if isinstance(text, str):
                try:
                    yield base64.b64decode(text)
                except (binascii.Error, ValueError):
                    continue


def _figure(data: bytes, where: str) -> ComparedPicture | None:
    """The picture, or None if it cannot be read, or is too small or too large to tell anything."""
    try:
        with warnings.catch_warnings(), Image.open(io.BytesIO(data)) as image:
            warnings.simplefilter("ignore")
            width, height = image.size
            if min(width, height) < LEAST_SIDE or width * height > MOST_PIXELS:
                return None
            pixels = image.convert("RGB")
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - Pillow fails in many ways on what is not a picture
        return None
    if pixels.getcolors(1):
        return None  # one color: an empty plot tells nothing
    # PDFs may hold a picture upside down and turn it when it is drawn (matplotlib's do)
    flipped = pixels.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
    digest = hashlib.sha256(f"{width}x{height}\0".encode())
    digest.update(min(pixels.tobytes(), flipped.tobytes()))
    pixels.thumbnail((PREVIEW, PREVIEW))
    return ComparedPicture(digest.hexdigest(), where, width, height, np.asarray(pixels, dtype=np.uint8))
