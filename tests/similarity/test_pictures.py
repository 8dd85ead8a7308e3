"""Pictures in notebooks and reports, known by their pixels."""

import io
import json

from matplotlib.figure import Figure
from PIL import Image

from grader.similarity.pictures import notebook_figures, report_figures


def notebook(*values):
    """A notebook whose cells have these outputs."""
    cells = [{"cell_type": "code", "outputs": [{"data": {"image/png": value}}]} for value in values]
    return json.dumps({"cells": cells, "nbformat": 4}).encode()


def test_a_picture_is_known_in_any_format_of_its_pixels(picture, in_base64):
    """Packed otherwise, in lines, or as BMP: the pixels count, and the place is told."""
    again = io.BytesIO()
    Image.open(io.BytesIO(picture(1))).save(again, "PNG", compress_level=0)
    in_lines = in_base64(picture(1, "BMP"))
    told = list(
        notebook_figures(
            notebook(in_base64(picture(1)), in_base64(again.getvalue()), [in_lines[:100], in_lines[100:]])
        )
    )
    assert [one.where for one in told] == ["In [ ], cell 1", "In [ ], cell 2", "In [ ], cell 3"]
    assert len({one.digest for one in told}) == 1
    (other,) = notebook_figures(notebook(in_base64(picture(2))))
    assert other.digest != told[0].digest


def test_a_picture_of_a_report_is_that_of_a_notebook(picture, in_base64):
    """The same plot in the PDF, where it is packed without loss (as matplotlib does)."""
    report = io.BytesIO()
    figure = Figure()
    figure.add_axes((0, 0, 1, 1)).imshow(Image.open(io.BytesIO(picture(1))), interpolation="none")
    figure.savefig(report, format="pdf")
    (told,) = report_figures(report)
    (shown,) = notebook_figures(notebook(in_base64(picture(1))))
    assert told.where == "report, page 1"
    assert (told.width, told.height) == (120, 90)
    assert told.digest == shown.digest


def test_what_tells_nothing_is_left_out(picture, in_base64):
    """Icons, empty plots, what is not a picture, what is not a notebook, a bomb."""
    blank = io.BytesIO()
    Image.new("RGB", (200, 200), "white").save(blank, "PNG")
    huge = io.BytesIO()
    vast = Image.new("1", (9000, 9000))
    vast.putpixel((5, 5), 1)
    vast.save(huge, "PNG")
    values = [in_base64(picture(1, size=(20, 20))), in_base64(blank.getvalue()), "AAAA", "é", 7, None]
    assert list(notebook_figures(notebook(*values, in_base64(huge.getvalue())))) == []
    assert list(notebook_figures(b"[" * 100_000)) == []
    assert list(notebook_figures(b'{"cells": [1, {"outputs": 3}, {"outputs": [null]}]}')) == []
    assert list(report_figures(io.BytesIO(b"%PDF-1.4 nothing"))) == []
